package schemas

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"entropipe/schemas/codec"
	"entropipe/schemas/codec/codectest"
)

// sample is a value of a content type with the points of samplePoints.
type sample struct {
	name  string // short name of the content type
	value []byte
}

// samplePoints are the numbers of three points, which every format holds exactly.
func samplePoints() []float32 {
	return []float32{1, 2, 3, 5, -1.5, 0, -1.75, 0, 49.515625, 22.65625, 2.046875, 99}
}

// sampleNs is the time that samples with a time have.
const sampleNs = 1317042737_000000005

// samples has a value of every content type.
func samples(t testing.TB) []sample {
	t.Helper()
	points := samplePoints()
	c := codectest.Cloud{Frame: "top", Sec: sampleNs / 1_000_000_000, Nsec: sampleNs % 1_000_000_000}
	for i := 0; i < len(points); i += 4 {
		c.X, c.Y, c.Z = append(c.X, points[i]), append(c.Y, points[i+1]), append(c.Z, points[i+2])
		c.Intensity = append(c.Intensity, points[i+3])
	}
	var cloud PointCloud
	cloud.Cloud32.X, cloud.Cloud32.Y, cloud.Cloud32.Z, cloud.Intensity = c.X, c.Y, c.Z, c.Intensity
	arrow, err := new(Encoder).AppendPoints(nil, cloud)
	if err != nil {
		t.Fatal(err)
	}
	list := []sample{{"arrow", arrow}}
	for _, name := range codectest.Names() {
		if formatNamed([]byte(name)) != nil {
			list = append(list, sample{name, c.Value(name)})
		}
	}
	return list
}

// typed are the headers of a value of that content type.
func typed(contentType string) []Header { return []Header{{HeaderContentType, []byte(contentType)}} }

// same reports whether f holds samplePoints.
func same(f *Frame) bool {
	want := samplePoints()
	if f.Len() != 3 || !f.HasZ() || len(f.Intensity) != 3 {
		return false
	}
	for i := range 3 {
		got := [...]float64{0, 0, 0, float64(f.Intensity[i])}
		if f.Double {
			got[0], got[1], got[2] = f.Cloud64.X[i], f.Cloud64.Y[i], f.Cloud64.Z[i]
		} else {
			got[0], got[1], got[2] = float64(f.Cloud32.X[i]), float64(f.Cloud32.Y[i]), float64(f.Cloud32.Z[i])
		}
		for k, v := range got {
			if v != float64(want[4*i+k]) {
				return false
			}
		}
	}
	return true
}

// checkSame asserts that m holds the samplePoints.
func checkSame(t *testing.T, d *Decoder, m Message, name string, about ...any) {
	t.Helper()
	if frames, err := d.Decode(m); err != nil {
		t.Errorf("%s: %v: %v", name, about, err)
	} else if !same(&frames[0]) {
		t.Errorf("%s: %v: %+v", name, about, frames[0])
	}
}

func TestEveryContentTypeHasASample(t *testing.T) {
	all := samples(t)
	for _, name := range ContentTypeNames() {
		if !slices.ContainsFunc(all, func(s sample) bool { return s.name == name }) {
			t.Errorf("%s has no value in the tests", name)
		}
	}
}

// A value is read by each name of its content type, in a header, by header format, and by the
// setting of its topic.
func TestContentTypes(t *testing.T) {
	var d Decoder
	for _, s := range samples(t) {
		f := formatNamed([]byte(s.name))
		names := append([]string{f.contentType, strings.ToUpper(f.contentType), " " + f.contentType + " ; v=1"},
			f.also...)
		for _, p := range f.params {
			names = append(names, f.contentType+"; type="+p, f.within+`; proto="`+p+`"`)
		}
		for _, name := range names {
			if f.within == contentTypeOctets && strings.HasPrefix(name, contentTypeOctets) {
				continue
			}
			checkSame(t, &d, Message{Topic: "t", Value: s.value, Headers: typed(name)}, s.name, name)
		}
		general := append(typed(f.within), Header{HeaderFormat, []byte(s.name)})
		checkSame(t, &d, Message{Topic: "t", Value: s.value, Headers: general}, s.name, f.within, "and format")
		for _, types := range []ContentTypes{valuesOf("", s.name), valuesOf("t", s.name), valuesOf("t", f.contentType),
			valuesOf("", "kitti", "t", s.name)} {
			d := Decoder{ContentTypes: types}
			for _, headers := range [][]Header{nil, typed(contentTypeOctets), {{HeaderSchema, []byte(SchemaPoints)}}} {
				checkSame(t, &d, Message{Topic: "t", Value: s.value, Headers: headers}, s.name, "by its topic", headers)
			}
		}
	}
}

// A header goes before the topic's content type; so does an Arrow stream.
func TestHeadersGoBeforeContentTypesOfTopics(t *testing.T) {
	all := samples(t)
	for _, topic := range all {
		d := Decoder{ContentTypes: valuesOf("t", topic.name)}
		for _, s := range all {
			headers := typed(formatNamed([]byte(s.name)).contentType)
			checkSame(t, &d, Message{Topic: "t", Value: s.value, Headers: headers}, s.name, "in a topic of", topic.name)
		}
		checkSame(t, &d, Message{Topic: "t", Value: all[0].value}, "Arrow without a header", topic.name)
	}
}

// The names and the time that headers do not give come from the topic, key, offset and Kafka;
// headers that contradict the content type are rejects.
func TestHeadersOfForeignValues(t *testing.T) {
	var d Decoder
	for _, s := range samples(t) {
		if s.name == "arrow" {
			continue
		}
		headers := typed(formatNamed([]byte(s.name)).contentType)
		all := append(slices.Clone(headers), Header{HeaderDataset, []byte("set")},
			Header{HeaderSequence, []byte("drive")}, Header{HeaderSensor, []byte("top")},
			Header{HeaderFrameID, []byte("7")}, Header{HeaderTimeNs, []byte("9")})
		frames, err := d.Decode(Message{Topic: "t", Offset: 5, Key: []byte("key"), Value: s.value, Headers: all})
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if k := frames[0].FrameKey; k.Dataset != "set" || k.Sequence != "drive" || k.Sensor != "top" ||
			k.FrameID != 7 || k.TimeNs != 9 {
			t.Errorf("%s: names %+v", s.name, k)
		}
		frames, err = d.Decode(Message{Topic: "t", Offset: 5, Key: []byte("key"), Value: s.value, Headers: headers})
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if k := frames[0].FrameKey; k.Dataset != "t" || k.Sequence != "key" || k.FrameID != 5 {
			t.Errorf("%s: default names %+v", s.name, k)
		}
		for reason, h := range map[string]Header{
			ReasonUnknownSchema: {HeaderSchema, []byte(SchemaSketches)},
			ReasonBadHeader:     {HeaderPrunedFor, []byte("hull2d")},
		} {
			_, err := d.Decode(Message{Topic: "t", Value: s.value, Headers: append(slices.Clone(headers), h)})
			if reasonOf(t, err) != reason {
				t.Errorf("%s with header %s: %v, want %s", s.name, h.Key, err, reason)
			}
		}
		if _, err := d.Decode(Message{Topic: "t", Headers: headers}); reasonOf(t, err) != ReasonEmpty {
			t.Errorf("%s: a tombstone: %v", s.name, err)
		}
		small := Decoder{MaxBytes: int64(len(s.value)) - 1}
		_, err = small.Decode(Message{Topic: "t", Value: s.value, Headers: headers})
		if reasonOf(t, err) != ReasonTooLarge {
			t.Errorf("%s of %d bytes, limit %d: %v", s.name, len(s.value), small.MaxBytes, err)
		}
	}
}

// What a value says of itself counts where no header says it: the frame it names is the
// sensor, its stamp is the time unless it is 0.
func TestNamesWithinForeignValues(t *testing.T) {
	var d Decoder
	for _, s := range samples(t) {
		k := FrameKey{TimeNs: 7_000_000}
		switch s.name {
		case "pointcloud2", "foxglove", "foxglove-json":
			k.Sensor, k.TimeNs = "top", sampleNs
		}
		m := Message{Topic: "t", Value: s.value, Time: time.UnixMilli(7),
			Headers: typed(formatNamed([]byte(s.name)).contentType)}
		frames, err := d.Decode(m)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if got := frames[0]; got.Sensor != k.Sensor || got.TimeNs != k.TimeNs || got.Pose != nil {
			t.Errorf("%s: sensor %q, time %d, pose %v; want %q, %d, none", s.name, got.Sensor, got.TimeNs, got.Pose,
				k.Sensor, k.TimeNs)
		}
	}
	c := codectest.Cloud{Frame: strings.Repeat("x", maxName+1), X: []float32{1}, Y: []float32{2}, Z: []float32{3},
		Intensity: []float32{4}}
	for _, name := range []string{"pointcloud2", "foxglove", "foxglove-json"} {
		for _, frame := range []string{"", c.Frame, "\xff\xfe"} {
			if frame == "\xff\xfe" && name == "foxglove-json" {
				continue // JSON cannot hold it
			}
			of := c
			of.Frame = frame
			m := Message{Topic: "t", Value: of.Value(name), Headers: typed(formatNamed([]byte(name)).contentType)}
			frames, err := d.Decode(m)
			switch {
			case frame == "" && (err != nil || frames[0].TimeNs != 0 || frames[0].Sensor != ""):
				t.Errorf("%s without frame and stamp: %+v, %v", name, frames, err)
			case frame != "" && err == nil:
				t.Errorf("%s in frame %.8q of %d bytes is accepted", name, frame, len(frame))
			}
			if reason := reasonOf(t, err); frame != "" && reason != ReasonBadValue && reason != ReasonCorrupt {
				t.Errorf("%s in frame %.8q: %v", name, frame, err)
			}
		}
	}
}

// A pose of the value is that of the frame, unless header pose has one, and owns its memory.
func TestPoseWithinForeignValues(t *testing.T) {
	value := []byte(`{"frame_id":"map","pose":{"position":{"x":4,"y":5,"z":6},"orientation":{"w":1}},` +
		`"point_stride":8,"fields":[{"name":"x","offset":0,"type":7},{"name":"y","offset":4,"type":7}],` +
		`"data":"AACAPwAAAEA="}`)
	var d Decoder
	m := Message{Topic: "t", Value: value, Headers: typed(ContentTypeFoxgloveJSON)}
	frames, err := d.Decode(m)
	if err != nil {
		t.Fatal(err)
	}
	first := frames[0].Pose
	if want := (codec.Pose{1, 0, 0, 4, 0, 1, 0, 5, 0, 0, 1, 6}); first == nil || *first != want || frames[0].HasZ() {
		t.Errorf("pose %v, want %v", first, want)
	}
	m.Headers = append(m.Headers, Header{HeaderPose, []byte("1,0,0,7,0,1,0,8,0,0,1,9")})
	if frames, err = d.Decode(m); err != nil || frames[0].Pose[3] != 7 || first[3] != 4 {
		t.Errorf("with header pose: %v, %v; before %v", frames, err, first)
	}
}

// A value of a registry is named whatever content type it comes as, and at least hinted at
// where its first bytes may be numbers.
func TestRegistriesBeforeForeignValues(t *testing.T) {
	for _, s := range samples(t) {
		f := formatNamed([]byte(s.name))
		if f == arrowFormat {
			continue
		}
		value := append([]byte{0, 0, 0, 2, 0x39}, s.value...)
		if s.name == "foxglove" {
			value = append([]byte{0, 0, 0, 2, 0x39, 0}, s.value...)
		}
		_, err := new(Decoder).Decode(Message{Topic: "t", Value: value, Headers: typed(f.contentType)})
		reason := reasonOf(t, err)
		if !strings.Contains(err.Error(), "schema id 569") || reason != ReasonSchemaRegistry && !f.numbers {
			t.Errorf("%s: %v", s.name, err)
		}
		if s.name == "foxglove" && !strings.Contains(err.Error(), "message index [0]") {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

// Columns of an earlier value do not remain, whatever its content type was.
func TestNothingRemainsOfTheLastValue(t *testing.T) {
	all := samples(t)
	var d Decoder
	for _, before := range all {
		for _, s := range all {
			for _, x := range []sample{before, s} {
				m := Message{Topic: "t", Value: x.value, Headers: typed(formatNamed([]byte(x.name)).contentType)}
				checkSame(t, &d, m, x.name, "after", before.name)
			}
		}
	}
}

// Each value is cut at every byte, under its own content type and under each other one.
func TestCutValuesOfEveryContentType(t *testing.T) {
	var d Decoder
	n := 0
	for _, s := range samples(t) {
		for _, name := range ContentTypeNames() {
			headers := typed(formatNamed([]byte(name)).contentType)
			for cut := range s.value {
				_, err := d.Decode(Message{Topic: "t", Value: s.value[:cut:cut], Headers: headers})
				if reason := reasonOf(t, err); reason == ReasonInternal || reason == ReasonArrowPanic {
					t.Fatalf("%d bytes of %s as %s: %v", cut, s.name, name, err)
				}
				n++
			}
		}
	}
	t.Logf("%d values", n)
}

// In the steady state a value of numbers is decoded without allocating, and one with names of
// fields allocates these.
func TestAllocationsOfForeignValues(t *testing.T) {
	for _, s := range samples(t) {
		if most, ok := map[string]float64{"kitti": 0, "nuscenes": 0, "pointcloud2": 8,
			"foxglove": 16}[s.name]; ok {
			var d Decoder
			m := Message{Topic: "t", Value: s.value, Headers: typed(formatNamed([]byte(s.name)).contentType)}
			if n := testing.AllocsPerRun(20, func() {
				if _, err := d.Decode(m); err != nil {
					t.Fatal(err)
				}
			}); n > most {
				t.Errorf("%s: %v allocations, want at most %v", s.name, n, most)
			}
		}
	}
}

// FuzzContentTypes asserts for any bytes under any content type, by header or topic: Decode
// returns, the reader of no format panics, memory is in proportion to the bytes or the limit,
// and a frame's columns have equal lengths.
func FuzzContentTypes(f *testing.F) {
	names := ContentTypeNames()
	for _, s := range samples(f) {
		f.Add(s.value, uint8(slices.Index(names, s.name)), false)
		f.Add(s.value[:len(s.value)*2/3], uint8(slices.Index(names, s.name)), true)
	}
	for _, c := range wrapped(f) {
		f.Add(c.value, uint8(1), true)
	}
	const limit = 1 << 20
	decoders := map[string]*Decoder{}
	for _, name := range names {
		decoders[name] = &Decoder{MaxBytes: limit, ContentTypes: valuesOf("", name)}
	}
	f.Fuzz(func(t *testing.T, value []byte, kind uint8, header bool) {
		name := names[int(kind)%len(names)]
		d, m := decoders[name], Message{Topic: "t", Value: value}
		if header {
			m.Headers = typed(formatNamed([]byte(name)).contentType)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		frames, err := d.Decode(m)
		runtime.ReadMemStats(&after)
		if spent, most := after.TotalAlloc-before.TotalAlloc, uint64(64*len(value)+8*limit+lz4Blocks); spent > most {
			t.Fatalf("%s: %d bytes allocated for a value of %d (%v)", name, spent, len(value), err)
		}
		if reason := reasonOf(t, err); reason == ReasonInternal || reason == ReasonArrowPanic {
			t.Fatalf("%s: %v\nvalue %x", name, err, value)
		}
		for i := range frames {
			checkColumns(t, &frames[i])
		}
	})
}

// checkColumns asserts that all columns of a frame have a value for each point.
func checkColumns(t *testing.T, f *Frame) {
	t.Helper()
	n := f.Len()
	lengths := []int{len(f.Intensity)}
	if f.Double {
		lengths = append(lengths, len(f.Cloud64.Y), len(f.Cloud64.Z))
	} else {
		lengths = append(lengths, len(f.Cloud32.Y), len(f.Cloud32.Z))
	}
	for _, l := range lengths {
		if l != n && l != 0 {
			t.Fatalf("%d points with columns of %d values", n, lengths)
		}
	}
	if n > 0 && lengths[1] != n {
		t.Fatalf("%d points without y", n)
	}
}

// wrappedValue is a value that is no message, and what its reject says.
type wrappedValue struct {
	name    string
	value   []byte
	reason  string
	says    string
	headers []Header
}

// wrapped are files of many clouds, packed files, and values of schema registries.
func wrapped(t testing.TB) []wrappedValue {
	t.Helper()
	pad := func(magic string) []byte { return append([]byte(magic), bytes.Repeat([]byte("\x07\xe1 "), 40)...) }
	tfrecord := binary.LittleEndian.AppendUint64(nil, 5)
	sum := crcOf(tfrecord)
	tfrecord = append(binary.LittleEndian.AppendUint32(tfrecord, sum), "12345...."...)
	registry := func(id uint32, payload string) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{0}, id), payload...)
	}
	laz := pad("LASF" + strings.Repeat("\x00", 100) + "\x81")
	protobuf := "\x0a\x04\x08\x01\x10\x02\x12\x03map"
	var list []wrappedValue
	for magic, says := range map[string]string{
		"\x89MCAP0\r\n":       "an MCAP file",
		"SQLite format 3\x00": "an SQLite database",
		"PAR1":                "a Parquet file",
		"\x1f\x8b\x08":        "a gzip file",
		"\x28\xb5\x2f\xfd":    "a Zstandard file",
		"PK\x03\x04":          "a ZIP archive",
		"\xd4\xc3\xb2\xa1":    "a pcap capture",
		"#ROSBAG V2.0\n":      "a ROS 1 bag",
	} {
		list = append(list, wrappedValue{says, pad(magic), ReasonContainer, says, nil})
	}
	avro := []Header{{HeaderContentType, []byte("application/vnd.apache.avro+binary")}}
	return append(list,
		wrappedValue{"TFRecord", tfrecord, ReasonContainer, "a TFRecord file", nil},
		wrappedValue{"LAZ", laz, ReasonContainer, "pdal translate", nil},
		wrappedValue{"Arrow file", pad("ARROW1\x00\x00"), ReasonFileFormat, "an Arrow file", nil},
		wrappedValue{"Avro", registry(42, "\x02\x06abc"), ReasonSchemaRegistry, "schema id 42", nil},
		wrappedValue{"Avro by its type", registry(100_007, "\x02\x06abc"), ReasonSchemaRegistry,
			"schema id 100007", avro},
		wrappedValue{"JSON of a registry", registry(7, ` {"x":1}`), ReasonSchemaRegistry, "schema id 7, before JSON",
			typed("application/vnd.schemaregistry.v1+json")},
		wrappedValue{"Protobuf, first message", registry(9, "\x00"+protobuf), ReasonSchemaRegistry,
			"schema id 9, before Protobuf with message index [0]", nil},
		wrappedValue{"Protobuf, nested message", registry(9, "\x04\x02\x00"+protobuf), ReasonSchemaRegistry,
			"with message index [1 0]", nil},
		wrappedValue{"an id in the header", []byte("\x02\x06abc"), ReasonNotArrow,
			"schema 00010203-0405-0607-0809-0a0b0c0d0e0f", []Header{{"__value_schema_id",
				[]byte("\x01\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f")}}},
		wrappedValue{"unknown type", pad("glTF"), ReasonUnknownContentType, "the value is a binary glTF file",
			typed("model/gltf-binary")},
	)
}

// crcOf is the masked checksum of TFRecord.
func crcOf(b []byte) uint32 {
	sum := Message{Value: b}
	crc := sum.ID().CRC32C
	return (crc>>15 | crc<<17) + 0xa282ead8
}

// What is no message of a cloud is refused by its name, whatever content type it comes as.
func TestContainersAndRegistriesAreNamed(t *testing.T) {
	for _, c := range wrapped(t) {
		_, err := new(Decoder).Decode(Message{Topic: "t", Value: c.value, Headers: c.headers})
		if reasonOf(t, err) != c.reason || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s and %q", c.name, err, c.reason, c.says)
		}
		if c.reason != ReasonContainer {
			continue
		}
		for _, name := range ContentTypeNames() {
			f := formatNamed([]byte(name))
			_, err := new(Decoder).Decode(Message{Topic: "t", Value: c.value, Headers: typed(f.contentType)})
			if reason := reasonOf(t, err); reason != ReasonContainer && !(name == "las" && c.name == "LAZ") {
				t.Errorf("%s as %s: %v", c.name, name, err)
			}
		}
	}
}

// A value without a content type that begins as one of the formats is refused with the two
// ways to have it read.
func TestFormatsWithoutContentTypeAreNamed(t *testing.T) {
	for _, s := range samples(t) {
		f := formatNamed([]byte(s.name))
		if f == arrowFormat || s.name == "nuscenes" { // nothing tells it from other numbers
			continue
		}
		_, err := new(Decoder).Decode(Message{Topic: "scans", Value: s.value})
		if reasonOf(t, err) != ReasonNotArrow || !strings.Contains(err.Error(), "content-type: "+f.contentType) ||
			!strings.Contains(err.Error(), "--content-type scans="+s.name) {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

// A content type is refused where it names another message, or none.
func TestForeignContentTypes(t *testing.T) {
	for text, says := range map[string]string{
		"image/png":            "this build reads " + ContentTypeArrow,
		"application/json":     "does not say what message",
		"application/protobuf": "does not say what message",
	} {
		_, err := new(Decoder).Decode(Message{Topic: "t", Value: []byte("{}"), Headers: typed(text)})
		if reasonOf(t, err) != ReasonUnknownContentType || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
	var types ContentTypes
	for _, text := range []string{"", "kiti", "image/png", "application/octet-stream", "velodyne"} {
		if types.Set("", text) {
			t.Errorf("%q is a content type", text)
		}
	}
}
