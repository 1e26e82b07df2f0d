package schemas

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"strings"
	"testing"

	"entropipe/algos/geomtest"
)

// scanOf is a raw value of these numbers.
func scanOf(numbers ...float32) []byte {
	var b []byte
	for _, v := range numbers {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// valuesOf are the content types of topics, as --content-type names them.
func valuesOf(settings ...string) (c ContentTypes) {
	for i := 0; i < len(settings); i += 2 {
		if !c.Set(settings[i], settings[i+1]) {
			panic("no content type: " + settings[i+1])
		}
	}
	return c
}

var rawHere = valuesOf("scans", "kitti")

// A value without a header is a raw .bin only in a topic that is said to hold
// some. Elsewhere its reject says what would make it readable.
func TestRawValuesWithoutHeader(t *testing.T) {
	want, err := new(Decoder).Decode(Message{Topic: "scans", Value: kittiValue(),
		Headers: []Header{{HeaderContentType, []byte(ContentTypeKITTI)}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		raw     ContentTypes
		headers []Header
	}{
		"this topic":        {raw: rawHere},
		"all topics":        {raw: valuesOf("", "kitti")},
		"nothing but bytes": {raw: rawHere, headers: []Header{{HeaderContentType, []byte("application/octet-stream")}}},
		"its schema": {raw: rawHere, headers: []Header{{HeaderSchema, []byte(SchemaPoints)},
			{HeaderSequence, []byte("scans")}}},
	} {
		d := Decoder{ContentTypes: c.raw}
		got, err := d.Decode(Message{Topic: "scans", Value: kittiValue(), Headers: c.headers})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !sameCloud(got[0].Cloud32, want[0].Cloud32) ||
			!bytes.Equal(bytesOf(got[0].Intensity), bytesOf(want[0].Intensity)) {
			t.Errorf("%s: %+v", name, got[0])
		}
	}
	for name, raw := range map[string]ContentTypes{"no topic": {}, "another topic": valuesOf("others", "kitti")} {
		_, err := (&Decoder{ContentTypes: raw}).Decode(Message{Topic: "scans", Value: kittiValue()})
		if reasonOf(t, err) != ReasonNotArrow || !strings.Contains(err.Error(), "content-type: "+ContentTypeKITTI) ||
			!strings.Contains(err.Error(), "--content-type scans=kitti") ||
			!strings.Contains(err.Error(), "of 3 points") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The sender's word goes before the topic's.
func TestHeadersGoBeforeTheTopicsSetting(t *testing.T) {
	for name, c := range map[string]struct {
		header Header
		reason string
	}{
		"Arrow":    {Header{HeaderContentType, []byte(ContentTypeArrow)}, ReasonNotArrow},
		"drawings": {Header{HeaderSchema, []byte(SchemaSketches)}, ReasonNotArrow},
		"foreign":  {Header{HeaderContentType, []byte("text/plain")}, ReasonUnknownContentType},
	} {
		_, err := (&Decoder{ContentTypes: rawHere}).Decode(Message{Topic: "scans", Value: kittiValue(),
			Headers: []Header{c.header}})
		if reasonOf(t, err) != c.reason || strings.Contains(err.Error(), "--content-type") {
			t.Errorf("%s: %v", name, err)
		}
	}
	d := Decoder{ContentTypes: rawHere}
	arrow := pointsValue(t)
	frames, err := d.Decode(Message{Topic: "scans", Value: arrow})
	if err != nil || frames[0].Len() != 2 {
		t.Errorf("an Arrow stream in a topic of raw values: %v %v", frames, err)
	}
}

func pointsValue(t *testing.T) []byte {
	t.Helper()
	var c PointCloud
	c.Cloud32.X, c.Cloud32.Y = []float32{1, 2}, []float32{3, 4}
	value, err := new(Encoder).AppendPoints(nil, c)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// What a scan cannot hold is a reject that says where.
func TestRawValuesMustBePlausible(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	float64s := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, math.Float64bits(1.1)),
		math.Float64bits(2.3))
	for name, c := range map[string]struct {
		value []byte
		says  string // "": a frame
	}{
		"no byte":           {[]byte{}, ""},
		"zeros":             {make([]byte, 64), ""},
		"far":               {scanOf(-99999, 1e5, 0, 65535), ""},
		"half without echo": {scanOf(1, 2, 3, 0, nan, inf, nan, nan), ""},
		"most without echo": {scanOf(1, 2, 3, 0, nan, 0, 0, 0, 0, inf, 0, 0), "2 of 3 points"},
		"too far":           {scanOf(1, 2, 3, 0, 1, 2e5, 3, 0), "point 1 would have y 200000"},
		"tiny":              {scanOf(1, 2, 1e-30, 0), "point 0 would have z"},
		"negative echo":     {scanOf(1, 2, 3, -1), "reflectance -1"},
		"text":              {[]byte("sixteen letters."), "point 0"},
		"JSON":              {[]byte(`{"x":[1,2],"y":[3,4],"z":[1,2],"i":[1,2,3,4,5]}` + " "), "point 0"},
		"integers": {binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 1<<32+7), 3),
			"point 0"},
		"digits":              {bytes.Repeat([]byte("0123"), 64), "no coordinate would be larger"},
		"float64":             {float64s, "point 0"},
		"cut":                 {kittiValue()[:40], "40 bytes are no whole number"},
		"five values a point": {scanOf(1, 2, 3, 0, 31), "20 bytes are no whole number"},
	} {
		d := Decoder{ContentTypes: rawHere}
		frames, err := d.Decode(Message{Topic: "scans", Value: c.value})
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.says == "" && (frames[0].Len() != len(c.value)/16 || !frames[0].HasZ()):
			t.Errorf("%s: %+v", name, frames[0])
		case c.says != "" && (reasonOf(t, err) != ReasonNotArrow || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	if _, err := (&Decoder{ContentTypes: rawHere}).Decode(Message{Topic: "scans"}); reasonOf(t, err) != ReasonEmpty {
		t.Errorf("a tombstone: %v", err)
	}
}

// Every real scan is plausible, and no Arrow stream is read as a scan.
func TestRealScansArePlausible(t *testing.T) {
	for _, f := range geomtest.RealFrames(t) {
		value, err := os.ReadFile(geomtest.TestData(t, "kitti", f.Name))
		if err != nil {
			t.Fatal(err)
		}
		if why := implausible(value); why != "" {
			t.Errorf("%s: %s", f.Name, why)
		}
	}
}
