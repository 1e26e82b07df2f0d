package replay

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/schemas/codec"
	"entropipe/schemas/codec/foxglove"
	"entropipe/schemas/codec/mcap"
)

// pointCloud2Definition is the text by which readers without the message decode it.
var pointCloud2Definition = strings.ReplaceAll(`std_msgs/Header header
uint32 height
uint32 width
sensor_msgs/PointField[] fields
bool is_bigendian
uint32 point_step
uint32 row_step
uint8[] data
bool is_dense
---
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
---
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
---
MSG: sensor_msgs/PointField
string name
uint32 offset
uint8 datatype
uint32 count
`, "---", strings.Repeat("=", 80))

// pointCloud2 returns a PointCloud2 in CDR, of x, y, z and intensity as float32.
func pointCloud2(frame string, ns int64, data []byte) []byte {
	b := []byte{0, 1, 0, 0}
	u32 := func(v ...uint32) {
		for _, v := range v {
			b = append(b, make([]byte, -len(b)&3)...)
			b = binary.LittleEndian.AppendUint32(b, v)
		}
	}
	text := func(s string) { u32(uint32(len(s) + 1)); b = append(append(b, s...), 0) }
	u32(uint32(ns/1e9), uint32(ns%1e9))
	text(frame)
	u32(1, uint32(len(data)/16), 4)
	for i, name := range []string{"x", "y", "z", "intensity"} {
		text(name)
		u32(uint32(4 * i))
		b = append(b, 7)
		u32(1)
	}
	b = append(b, 0)
	u32(16, uint32(len(data)), uint32(len(data)))
	return append(append(b, data...), 1)
}

// foxgloveCloud returns the message in Protobuf and in JSON.
func foxgloveCloud(frame string, ns int64, pose foxglove.Pose, data []byte) (protobuf, text []byte) {
	m := foxglove.PointCloud{TimeNs: ns, FrameID: frame, Pose: pose, Stride: 16, Data: data}
	fields := ""
	for i, name := range []string{"x", "y", "z", "intensity"} {
		m.Fields = append(m.Fields, foxglove.Field{Name: name, Offset: uint32(4 * i), Type: foxglove.Float32})
		fields += fmt.Sprintf(`,{"name":%q,"offset":%d,"type":7}`, name, 4*i)
	}
	o := pose.Orientation
	text = fmt.Appendf(nil, `{"timestamp":{"sec":%d,"nsec":%d},"frame_id":%q,"pose":{"position":{"x":%v,"y":%v,`+
		`"z":%v},"orientation":{"x":%v,"y":%v,"z":%v,"w":%v}},"point_stride":16,"fields":[%s],"data":%q}`, ns/1e9,
		ns%1e9, frame, pose.Position.X, pose.Position.Y, pose.Position.Z, o.X, o.Y, o.Z, o.W, fields[1:],
		base64.StdEncoding.EncodeToString(data))
	return m.Append(nil), text
}

// recorder writes an MCAP file with a topic of each encoding, and one of no clouds.
type recorder struct {
	file bytes.Buffer
	*mcap.Writer
	lidar, proto, js, tf uint16
}

func record(o mcap.Options) *recorder {
	r := &recorder{}
	r.Writer = mcap.NewWriter(&r.file, o)
	ros := r.AddSchema("sensor_msgs/msg/PointCloud2", "ros2msg", []byte(pointCloud2Definition))
	cloud := r.AddSchema("foxglove.PointCloud", "protobuf", foxglove.Schema("foxglove.PointCloud"))
	text := r.AddSchema("foxglove.PointCloud", "jsonschema", []byte("{}"))
	tf := r.AddSchema("tf2_msgs/msg/TFMessage", "ros2msg", nil)
	r.tf = r.AddChannel("/tf", "cdr", tf, nil)
	r.lidar = r.AddChannel("/lidar", "cdr", ros, nil)
	r.proto = r.AddChannel("/proto", "protobuf", cloud, nil)
	r.js = r.AddChannel("/json", "json", text, nil)
	return r
}

const second = int64(1e9)

// drive3 records rounds of a cloud on each topic, stamped 1000 s, 1001 s … and logged a
// second later.
func drive3(t testing.TB, rounds int, data []byte, o mcap.Options) []byte {
	r := record(o)
	for i := range int64(rounds) {
		at := (1000 + i) * second
		protobuf, text := foxgloveCloud("os_sensor", at, foxglove.Pose{Position: foxglove.Vector{Z: 2}}, data)
		for _, m := range []struct {
			channel uint16
			data    []byte
		}{{r.tf, []byte{1, 2, 3}}, {r.lidar, pointCloud2("velodyne", at, data)}, {r.js, text}, {r.proto, protobuf}} {
			r.Write(m.channel, uint32(i), uint64(at+second), uint64(at+2*second), m.data)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return r.file.Bytes()
}

// named is what an item says of itself.
type named struct {
	Sequence, Sensor string
	Number, TimeNs   int64
	Points           int
}

func namesOf(items []Item) (got []named) {
	for i := range items {
		it := &items[i]
		got = append(got, named{it.Sequence, it.Sensor, it.Number, it.TimeNs, it.Cloud.Len()})
	}
	return got
}

func TestTopicsOfMCAP(t *testing.T) {
	path := write(t, drive3(t, 2, golden(t), mcap.Options{Compression: mcap.Zstd}), t.TempDir(), "drive.mcap")
	s := open(t, MCAP{Paths: []string{path}})
	items := all(t, s)
	want := []named{{"drive", "/lidar", 0, 1000 * second, 3}, {"drive", "/json", 0, 1000 * second, 3},
		{"drive", "/proto", 0, 1000 * second, 3}, {"drive", "/lidar", 1, 1001 * second, 3},
		{"drive", "/json", 1, 1001 * second, 3}, {"drive", "/proto", 1, 1001 * second, 3}}
	if d := cmp.Diff(want, namesOf(items)); d != "" {
		t.Error(d)
	}
	for i := range items {
		checkGolden(t, &items[i])
		it := &items[i]
		if it.Dataset != "mcap" || it.Clock != UTC || (it.Pose == nil) != (it.Sensor == "/lidar") {
			t.Errorf("%s: %s, clock %d, pose %v", it.Sensor, it.Dataset, it.Clock, it.Pose)
		}
		if it.Pose != nil && *it.Pose != (codec.Pose{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2}) {
			t.Errorf("%s: pose %v", it.Sensor, *it.Pose)
		}
	}
	if n := s.(interface{ Len() int64 }).Len(); n != 6 {
		t.Errorf("Len %d", n)
	}
	if err := s.Rewind(); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, namesOf(all(t, s))); d != "" {
		t.Errorf("again: %s", d)
	}
	only := namesOf(all(t, open(t, MCAP{Paths: []string{path}, Topics: []string{"/proto", "/json"}})))
	if d := cmp.Diff(slices.DeleteFunc(want, func(n named) bool { return n.Sensor == "/lidar" }), only); d != "" {
		t.Error(d)
	}
}

func TestTimesOfMCAP(t *testing.T) {
	r := record(mcap.Options{})
	r.Write(r.lidar, 0, 7, 8, pointCloud2("a", 5*second, golden(t)))
	r.Write(r.lidar, 0, 17, 18, pointCloud2("a", 0, golden(t)))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	path := write(t, r.file.Bytes(), t.TempDir(), "a.mcap")
	for mode, want := range map[string][]int64{"": {5 * second, 17}, HeaderTime: {5 * second, 17}, LogTime: {7, 17},
		PublishTime: {8, 18}} {
		items := all(t, open(t, MCAP{Paths: []string{path}, Time: mode}))
		if got := []int64{items[0].TimeNs, items[1].TimeNs}; !slices.Equal(got, want) {
			t.Errorf("%q: %v instead of %v", mode, got, want)
		}
	}
	_, err := MCAP{Paths: []string{path}, Time: "noon"}.Open()
	failsWith(t, err, "noon", "header, log or publish")
}

// Offsets of points begin at the time of the frame, whichever it is.
func TestOffsetsFollowTheTime(t *testing.T) {
	data := make([]byte, 24)
	binary.LittleEndian.PutUint64(data[8:], math.Float64bits(0.5))
	m := foxglove.PointCloud{TimeNs: 10 * second, Stride: 24, Data: data, Fields: []foxglove.Field{
		{Name: "x", Type: foxglove.Float32}, {Name: "y", Offset: 4, Type: foxglove.Float32},
		{Name: "time", Offset: 8, Type: foxglove.Float64}, {Name: "wind", Offset: 16, Type: foxglove.Float64}}}
	r := record(mcap.Options{})
	r.Write(r.proto, 0, uint64(12*second), 0, m.Append(nil))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	path := write(t, r.file.Bytes(), t.TempDir(), "a.mcap")
	for mode, want := range map[string]int64{HeaderTime: second / 2, LogTime: -3 * second / 2} {
		s := open(t, MCAP{Paths: []string{path}, Time: mode})
		var it Item
		if err := s.Next(&it); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(it.Cloud.TOffsetNs, []int64{want}) || !slices.Equal(it.Ignored, []string{"wind"}) {
			t.Errorf("%s: %v instead of %d; ignored %v", mode, it.Cloud.TOffsetNs, want, it.Ignored)
		}
	}
}

func TestFilesWithoutClouds(t *testing.T) {
	good := write(t, drive3(t, 1, golden(t), mcap.Options{}), t.TempDir(), "drive.mcap")
	var file bytes.Buffer
	w := mcap.NewWriter(&file, mcap.Options{})
	w.AddChannel("/old", "ros1", w.AddSchema("sensor_msgs/PointCloud2", "ros1msg", nil), nil)
	w.AddChannel("/odd", "json", 0, nil)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	ros1 := write(t, file.Bytes(), t.TempDir(), "old.mcap")
	for _, c := range []struct {
		name  string
		m     MCAP
		words []string
	}{
		{"no topic of clouds", MCAP{Paths: []string{ros1}}, []string{"old.mcap", "/odd (no schema, json)",
			"/old (sensor_msgs/PointCloud2, ros1)", "ROS 1"}},
		{"unknown topic", MCAP{Paths: []string{good}, Topics: []string{"/lidar", "/radar"}},
			[]string{"no topic /radar", "/lidar (sensor_msgs/msg/PointCloud2, cdr)",
				"/proto (foxglove.PointCloud, protobuf)"}},
		{"topic of no clouds", MCAP{Paths: []string{good}, Topics: []string{"/tf"}},
			[]string{"/tf (tf2_msgs/msg/TFMessage, cdr) holds no point clouds"}},
		{"no file", MCAP{}, []string{"no file is named"}},
		{"missing file", MCAP{Paths: []string{filepath.Join(filepath.Dir(good), "none.mcap")}}, []string{"none.mcap"}},
		{"empty folder", MCAP{Paths: []string{t.TempDir()}}, []string{"no .mcap file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.m.Open()
			failsWith(t, err, c.words...)
		})
	}
	// A file without a summary is read to its end first.
	for _, c := range []struct {
		path, word string
		topics     []string
	}{{ros1, "ROS 1", nil}, {good, "no topic /radar", []string{"/radar"}}} {
		whole, err := os.ReadFile(c.path)
		if err != nil {
			t.Fatal(err)
		}
		path := write(t, whole[:len(whole)-10], t.TempDir(), "cut.mcap")
		s := open(t, MCAP{Paths: []string{path}, Topics: c.topics})
		var it Item
		failsWith(t, s.Next(&it), c.word)
	}
	draco := write(t, []byte("DRACO\x02\x02\x01"), t.TempDir(), "a.mcap")
	var it Item
	failsWith(t, open(t, MCAP{Paths: []string{draco}}).Next(&it), draco, "a Draco file", "--skip-bad")
}

func TestBagInParts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "morning")
	for _, part := range []string{"morning_0.mcap", "morning_2.mcap", "morning_10.mcap"} {
		write(t, drive3(t, 1, golden(t), mcap.Options{}), dir, part)
	}
	var got []string
	paths := func() []string {
		got = nil
		for _, it := range all(t, open(t, MCAP{Paths: []string{dir}, Topics: []string{"/lidar"}})) {
			got = append(got, fmt.Sprint(it.Sequence, it.Number))
		}
		return got
	}
	if d := cmp.Diff([]string{"morning_00", "morning_20", "morning_100"}, paths()); d != "" {
		t.Error(d)
	}
	write(t, []byte("rosbag2_bagfile_information:\n"), dir, "metadata.yaml")
	if d := cmp.Diff([]string{"morning0", "morning1", "morning2"}, paths()); d != "" {
		t.Error(d)
	}
}

// Skipped messages keep their numbers.
func TestBadMessagesOfMCAP(t *testing.T) {
	r := record(mcap.Options{ChunkSize: 1})
	good := pointCloud2("a", second, golden(t))
	for i, data := range [][]byte{good, good[:50], good, append(bytes.Repeat(good, 20), 0), good} {
		r.Write(r.lidar, uint32(i), 0, 0, data)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	path := write(t, r.file.Bytes(), t.TempDir(), "a.mcap")
	s := open(t, MCAP{Paths: []string{path}, MaxFrameBytes: 1000})
	var it Item
	if err := s.Next(&it); err != nil {
		t.Fatal(err)
	}
	failsWith(t, s.Next(&it), path, "record", "at byte", "message 1 of /lidar", "ends within its fields", "--skip-bad")
	log, book := logBook()
	s = open(t, MCAP{Paths: []string{path}, MaxFrameBytes: 1000, SkipBad: true, Log: log})
	var numbers []int64
	for _, it := range all(t, s) {
		numbers = append(numbers, it.Number)
	}
	if !slices.Equal(numbers, []int64{0, 2, 4}) || s.(*mcapSource).Skipped() != 2 {
		t.Errorf("%v, %d skipped", numbers, s.(*mcapSource).Skipped())
	}
	if !strings.Contains(book.String(), "more than the limit of 1000") {
		t.Error(book)
	}
	// A chunk that is damaged is one bad input; the checksum of the file is another.
	file := r.file.Bytes()
	file[bytes.LastIndex(file, good)+100] ^= 1
	path = write(t, file, t.TempDir(), "b.mcap")
	s = open(t, MCAP{Paths: []string{path}, MaxFrameBytes: 1000, SkipBad: true})
	if n := len(all(t, s)); n != 2 || s.(*mcapSource).Skipped() != 4 {
		t.Errorf("%d items, %d skipped", n, s.(*mcapSource).Skipped())
	}
}

// A chunk whose lengths are both damaged costs its own clouds, with an index and without; the
// error says where and how many bytes. The file stops the command unless it may be skipped.
func TestDamagedLengthOfMCAP(t *testing.T) {
	whole := drive3(t, 6, make([]byte, 160), mcap.Options{ChunkSize: 900, Compression: mcap.LZ4})
	summary, err := mcap.ReadSummary(bytes.NewReader(whole), int64(len(whole)))
	if err != nil || len(summary.Chunks) < 4 {
		t.Fatal(summary, err)
	}
	at := summary.Chunks[2]
	for name, end := range map[string]int{"index": len(whole), "no index": int(summary.Chunks[len(summary.Chunks)-1])} {
		file := write(t, bytes.Clone(whole[:end]), t.TempDir(), "a.mcap")
		all := mcapNumbers(t, MCAP{Paths: []string{file}})
		bad := bytes.Clone(whole[:end])
		bad[at+8], bad[at+9+32+4] = 0x10, 0x10 // lengths of the chunk and of its records
		bad[at+9+28] = 0xff                    // and the name of the compression
		file = write(t, bad, t.TempDir(), "a.mcap")
		src, err := MCAP{Paths: []string{file}}.Open()
		if err != nil {
			t.Fatal(err)
		}
		var it Item
		for err = nil; err == nil; {
			err = src.Next(&it)
		}
		src.Close()
		failsWith(t, err, fmt.Sprintf("at byte %d: the bytes are no whole chunk: ", at), "bytes are lost")
		left := mcapNumbers(t, MCAP{Paths: []string{file}, SkipBad: true})
		if len(left) < len(all)-4 || len(left) >= len(all) || !slices.Equal(left[len(left)-2:], all[len(all)-2:]) {
			t.Errorf("%s: %d of %d clouds are left: %v", name, len(left), len(all), left)
		}
	}
}

// mcapNumbers returns the time and the sensor of every cloud.
func mcapNumbers(t *testing.T, m MCAP) (clouds []string) {
	t.Helper()
	src, err := m.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for {
		var it Item
		switch err := src.Next(&it); err {
		case nil:
			clouds = append(clouds, fmt.Sprint(it.TimeNs, it.Sensor))
		case io.EOF:
			return clouds
		default:
			t.Fatal(err)
		}
	}
}

// A robot lost power: the clouds before are there, and the log says where the file ends.
func TestEveryTruncationOfMCAP(t *testing.T) {
	for _, compression := range []string{mcap.None, mcap.LZ4, mcap.Zstd} {
		file := drive3(t, 2, golden(t), mcap.Options{Compression: compression, ChunkSize: 1500})
		whole := namesOf(all(t, open(t, MCAP{Paths: []string{write(t, file, t.TempDir(), "a.mcap")}})))
		dir, before := t.TempDir(), 0
		for size := 8; size < len(file); size += 5 + size%23 {
			log, book := logBook()
			s := open(t, MCAP{Paths: []string{write(t, file[:size], dir, "a.mcap")}, Log: log})
			got := 0
			var it Item
			err := s.Next(&it)
			for ; err == nil; err = s.Next(&it) {
				if d := cmp.Diff(whole[got], namesOf([]Item{it})[0]); d != "" {
					t.Fatalf("%d bytes: %s", size, d)
				}
				got++
			}
			if err != io.EOF && !strings.Contains(err.Error(), "holds point clouds") {
				t.Fatalf("%d bytes: %v", size, err)
			}
			if got < before || !strings.Contains(book.String(), "was not closed") {
				t.Fatalf("%d bytes: %d items, %d before; %s", size, got, before, book)
			}
			before = got
			s.Close()
		}
		if before != len(whole) {
			t.Errorf("%s: %d of %d items of the longest part", compression, before, len(whole))
		}
	}
}

// Transforms of the recording and the pose of a Foxglove message follow one another.
func TestPosesOfMCAP(t *testing.T) {
	r := record(mcap.Options{})
	static := r.AddChannel("/tf_static", "cdr", 4, nil)
	at := 1_700_000_000 * second
	write1 := func(channel uint16, data []byte) { r.Write(channel, 0, uint64(at), 0, data) }
	write1(static, rosTransforms(turn("base_link", "lidar", at/1e6, 0, 0, 0, 2)))
	write1(r.lidar, pointCloud2("lidar", at, golden(t)))
	write1(r.tf, rosTransforms(turn("odom", "base_link", at/1e6, 0, 5, 0, 0)))
	write1(r.lidar, pointCloud2("lidar", at, golden(t)))
	protobuf, text := foxgloveCloud("lidar", at, foxglove.Pose{Position: foxglove.Vector{Y: 3}}, golden(t))
	write1(r.proto, protobuf)
	protobuf, _ = foxgloveCloud("camera", at, foxglove.Pose{Position: foxglove.Vector{Y: 3}}, golden(t))
	write1(r.proto, protobuf)
	write1(r.js, text)
	write1(r.lidar, pointCloud2("lidar", 0, golden(t)))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	log, book := logBook()
	s := open(t, MCAP{Paths: []string{write(t, r.file.Bytes(), t.TempDir(), "a.mcap")}, Log: log})
	for pass := range 2 {
		var got []string
		for _, it := range all(t, s) {
			text := "none"
			if it.Pose != nil {
				text = fmt.Sprint(it.Pose[3], it.Pose[7], it.Pose[11])
			}
			got = append(got, text)
		}
		if d := cmp.Diff([]string{"none", "5 0 2", "5 3 2", "0 3 0", "5 3 2", "5 0 2"}, got); d != "" {
			t.Errorf("pass %d: %s", pass, d)
		}
		if err := s.Rewind(); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(book.String(), "\n"); n != 2 || !strings.Contains(book.String(), "static transforms only") ||
		!strings.Contains(book.String(), "clouds=2 of=6") {
		t.Errorf("the log: %s", book)
	}
}

// Transforms of Foxglove give poses as those of ROS do, in each encoding.
func TestFoxglovePosesOfMCAP(t *testing.T) {
	at := 1_700_000_000 * second
	step := func(ns int64, x float64) (protobuf []byte, text string) {
		m := foxglove.FrameTransform{TimeNs: ns, Parent: "map", Child: "lidar",
			Pose: foxglove.Pose{Position: foxglove.Vector{X: x, Y: 1}, Orientation: foxglove.Quaternion{W: 1}}}
		return m.Append(nil), fmt.Sprintf(`{"timestamp":{"sec":%d,"nsec":%d},"parent_frame_id":"map","child_frame_id":`+
			`"lidar","translation":{"x":%v,"y":1,"z":0},"rotation":{"x":0,"y":0,"z":0,"w":1}}`, ns/1e9, ns%1e9, x)
	}
	early, earlyText := step(at-second/10, 4)
	late, lateText := step(at+second/10, 6)
	list := func(b []byte) []byte { return append([]byte{1<<3 | 2, byte(len(b))}, b...) }
	for _, c := range []struct {
		schema, encoding string
		messages         [][]byte
	}{
		{"foxglove.FrameTransform", "protobuf", [][]byte{early, late}},
		{"foxglove.FrameTransform", "json", [][]byte{[]byte(earlyText), []byte(lateText)}},
		{"foxglove.FrameTransforms", "protobuf", [][]byte{append(list(early), list(late)...)}},
		{"foxglove.FrameTransforms", "json", [][]byte{[]byte(`{"transforms":[` + earlyText + "," + lateText + "]}")}},
	} {
		r := record(mcap.Options{})
		channel := r.AddChannel("/poses", c.encoding, r.AddSchema(c.schema, c.encoding, nil), nil)
		for _, m := range c.messages {
			r.Write(channel, 0, uint64(at), 0, m)
		}
		r.Write(r.lidar, 0, uint64(at), 0, pointCloud2("lidar", at, golden(t)))
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		items := all(t, open(t, MCAP{Paths: []string{write(t, r.file.Bytes(), t.TempDir(), "a.mcap")}}))
		want := codec.Pose{1, 0, 0, 5, 0, 1, 0, 1, 0, 0, 1, 0}
		if len(items) != 1 || items[0].Pose == nil || *items[0].Pose != want {
			t.Errorf("%s in %s: %v, want %v", c.schema, c.encoding, items[0].Pose, want)
		}
	}
}

func TestRobotWithoutClouds(t *testing.T) {
	root := os.Getenv("ENTROPIPE_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data")
	}
	path := filepath.Join(root, "streams", "evo", "nav2_turtlebot.mcap")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("real data: %v (set ENTROPIPE_TESTDATA)", err)
	}
	_, err := MCAP{Paths: []string{path}}.Open()
	failsWith(t, err, "no topic holds point clouds", "/amcl_pose (geometry_msgs/msg/PoseWithCovarianceStamped, cdr)",
		"/odom (nav_msgs/msg/Odometry, cdr)", "/tf (", "/tf_static (")
}

func BenchmarkMCAP(b *testing.B) {
	data := make([]byte, 16*120_000)
	for i := range 4 * 120_000 {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(float32(math.Sin(float64(i)))*80))
	}
	for _, compression := range []string{mcap.None, mcap.LZ4, mcap.Zstd} {
		b.Run("compression="+compression, func(b *testing.B) {
			r := record(mcap.Options{Compression: compression, ChunkSize: 4 << 20})
			for i := range int64(20) {
				r.Write(r.lidar, uint32(i), 0, 0, pointCloud2("velodyne", second*(i+1), data))
			}
			if err := r.Close(); err != nil {
				b.Fatal(err)
			}
			path := filepath.Join(b.TempDir(), "a.mcap")
			if err := os.WriteFile(path, r.file.Bytes(), 0o666); err != nil {
				b.Fatal(err)
			}
			s, err := MCAP{Paths: []string{path}}.Open()
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			b.SetBytes(int64(20 * len(data)))
			for b.Loop() {
				var it Item
				for err = s.Next(&it); err == nil; err = s.Next(&it) {
				}
				if err != io.EOF || s.Rewind() != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
