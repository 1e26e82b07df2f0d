package foxglove

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"entropipe/schemas/codec"
)

// golden is a KITTI frame of three points.
const golden = "\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40\x00\x00\x00\x3f" +
	"\x00\x00\xc0\xbf\x00\x00\x00\x00\xa4\x70\xdd\xbf\x00\x00\x00\x00" +
	"\x7b\x14\x46\x42\x10\x58\xb5\x41\x96\x43\x03\x40\xa4\x70\x7d\x3f"

func kitti() PointCloud {
	return PointCloud{TimeNs: 1317042145964389445, FrameID: "velodyne", Stride: 16, Data: []byte(golden),
		Fields: []Field{{"x", 0, Float32}, {"y", 4, Float32}, {"z", 8, Float32}, {"intensity", 12, Float32}}}
}

// text returns m in JSON, as the Foxglove schemas have it.
func (m *PointCloud) text() string {
	var fields []string
	for _, f := range m.Fields {
		fields = append(fields, fmt.Sprintf(`{"name":%q,"offset":%d,"type":%d}`, f.Name, f.Offset, f.Type))
	}
	p, o := m.Pose.Position, m.Pose.Orientation
	return fmt.Sprintf(`{"timestamp":{"sec":%d,"nsec":%d},"frame_id":%q,"pose":{"position":{"x":%g,"y":%g,"z":%g},`+
		`"orientation":{"x":%g,"y":%g,"z":%g,"w":%g}},"point_stride":%d,"fields":[%s],"data":%q}`, m.TimeNs/1e9,
		m.TimeNs%1e9, m.FrameID, p.X, p.Y, p.Z, o.X, o.Y, o.Z, o.W, m.Stride, strings.Join(fields, ","),
		base64.StdEncoding.EncodeToString(m.Data))
}

// forms are the encodings of a message.
var forms = []struct {
	name   string
	encode func(*PointCloud) []byte
	decode func(*codec.Cloud, []byte, int64) error
}{
	{"protobuf", func(m *PointCloud) []byte { return m.Append(nil) }, Decode},
	{"json", func(m *PointCloud) []byte { return []byte(m.text()) }, DecodeJSON},
}

func TestKITTIFrame(t *testing.T) {
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			in := kitti()
			in.Pose = Pose{Vector{1, 2, 3}, Quaternion{0, 0, math.Sqrt2, math.Sqrt2}} // 90 degrees, not of unit length
			var c codec.Cloud
			if err := form.decode(&c, form.encode(&in), 1<<20); err != nil {
				t.Fatal(err)
			}
			if c.Sensor != "velodyne" || c.TimeNs != 1317042145964389445 || !c.HasTime {
				t.Errorf("%q at %d", c.Sensor, c.TimeNs)
			}
			if diff := cmp.Diff([][]float32{{1, -1.5, 49.52}, {2, 0, 22.668}, {3, -1.73, 2.051}, {0.5, 0, 0.99}},
				[][]float32{c.Cloud32.X, c.Cloud32.Y, c.Cloud32.Z, c.Points.Intensity}); diff != "" {
				t.Error(diff)
			}
			want := codec.Pose{0, -1, 0, 1, 1, 0, 0, 2, 0, 0, 1, 3}
			for i, v := range c.Pose {
				if math.Abs(v-want[i]) > 1e-15 {
					t.Errorf("pose %v", *c.Pose)
				}
			}
			in = kitti()
			if err := form.decode(&c, form.encode(&in), 1<<20); err != nil || c.Pose != nil {
				t.Errorf("identity: %v, %v", c.Pose, err)
			}
		})
	}
}

// The numbers of types are not those of ROS.
func TestEveryType(t *testing.T) {
	for _, form := range forms {
		for kind, name := range typeNames[1:] {
			in := kitti()
			in.Fields = []Field{{"x", 0, NumericType(kind + 1)}, {"y", 8, Float64}}
			in.Data = make([]byte, 16)
			for i := range 8 {
				in.Data[i] = 0x41
			}
			want := map[string]float64{"UINT8": 0x41, "INT8": 0x41, "UINT16": 0x4141, "INT16": 0x4141,
				"UINT32": 0x41414141, "INT32": 0x41414141, "FLOAT32": float64(math.Float32frombits(0x41414141)),
				"FLOAT64": math.Float64frombits(0x4141414141414141)}[name]
			var c codec.Cloud
			if err := form.decode(&c, form.encode(&in), 1<<20); err != nil || c.Cloud64.X[0] != want {
				t.Errorf("%s %s: %v instead of %v (%v)", form.name, name, c.Cloud64.X, want, err)
			}
		}
	}
}

func TestFormsOfJSON(t *testing.T) {
	in := kitti()
	text := strings.Replace(in.text(), `{"sec":1317042145,"nsec":964389445}`, `"2011-09-26T13:02:25.964389445Z"`, 1)
	text = strings.ReplaceAll(text, `"type":7`, `"type":"FLOAT32"`)
	var c codec.Cloud
	if err := DecodeJSON(&c, []byte(text), 1<<20); err != nil || c.TimeNs != in.TimeNs || c.Len() != 3 {
		t.Error(err, c.TimeNs, c.Len())
	}
}

func TestEveryTruncation(t *testing.T) {
	for _, form := range forms {
		in := kitti()
		value := form.encode(&in)
		for n := range len(value) {
			var c codec.Cloud
			var fault *codec.Error
			err := form.decode(&c, value[:n], 1<<20)
			if form.name == "protobuf" && err == nil && c.Len() == 0 {
				continue // Protobuf has no end: without its last field a message is one without data
			}
			if !errors.As(err, &fault) {
				t.Errorf("%s: %d of %d bytes: %v, %d points", form.name, n, len(value), err, c.Len())
			}
		}
	}
}

func TestFaults(t *testing.T) {
	for _, form := range forms {
		for _, c := range []struct {
			name, reason, detail string
			change               func(*PointCloud)
		}{
			{"stride 0", codec.BadLength, "point_stride", func(m *PointCloud) { m.Stride = 0 }},
			{"stride 2^31", codec.BadLength, "point_stride", func(m *PointCloud) { m.Stride = 1 << 31 }},
			{"part of a point", codec.BadLength, "multiple", func(m *PointCloud) { m.Data = m.Data[:47] }},
			{"type 9", codec.BadType, "type 9", func(m *PointCloud) { m.Fields[0].Type = 9 }},
			{"type 0", codec.BadType, "type 0", func(m *PointCloud) { m.Fields[0].Type = 0 }},
			{"field beyond", codec.BadLength, "stands at", func(m *PointCloud) { m.Fields[0].Offset = 13 }},
			{"two x", codec.Duplicate, "two fields x", func(m *PointCloud) { m.Fields[1].Name = "x" }},
			{"no fields", codec.Missing, "no field", func(m *PointCloud) { m.Fields = nil }},
			{"many fields", codec.Corrupt, "fields", func(m *PointCloud) { m.Fields = make([]Field, 5000) }},
			{"limit", codec.TooLarge, "limit", func(m *PointCloud) { m.Data = make([]byte, 1<<20) }},
		} {
			t.Run(form.name+" "+c.name, func(t *testing.T) {
				in := kitti()
				c.change(&in)
				var got codec.Cloud
				var fault *codec.Error
				err := form.decode(&got, form.encode(&in), 1<<20)
				if !errors.As(err, &fault) || fault.Reason != c.reason || !strings.Contains(err.Error(), c.detail) {
					t.Errorf("%v", err)
				}
			})
		}
	}
}

func TestFaultsOfTheEncodings(t *testing.T) {
	nan := kitti()
	nan.Pose.Position.X = math.NaN()
	for _, c := range []struct {
		name, reason string
		decode       func(*codec.Cloud, []byte, int64) error
		value        string
	}{
		{"nothing", codec.Empty, Decode, ""},
		{"no JSON at all", codec.Empty, DecodeJSON, ""},
		{"field 0", codec.Corrupt, Decode, "\x00\x01"},
		{"long field", codec.Truncated, Decode, "\x32\xff\xff\xff\xff\x0f"},
		{"end of a group", codec.Truncated, Decode, "\x0c"},
		{"seconds", codec.BadValue, Decode, "\x0a\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"},
		{"NaN in the pose", codec.BadValue, Decode, string(nan.Append(nil))},
		{"no JSON", codec.Corrupt, DecodeJSON, "hello"},
		{"half an object", codec.Truncated, DecodeJSON, `{"data":"AA`},
		{"number as data", codec.BadType, DecodeJSON, `{"data":5}`},
		{"no base64", codec.BadValue, DecodeJSON, `{"data":"?"}`},
		{"no time", codec.BadValue, DecodeJSON, `{"timestamp":"noon"}`},
		{"seconds in JSON", codec.BadValue, DecodeJSON, `{"timestamp":{"sec":9223372036854775807}}`},
		{"unknown type", codec.BadType, DecodeJSON, `{"point_stride":8,"fields":[{"name":"x","type":"FLOAT16"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got codec.Cloud
			var fault *codec.Error
			if err := c.decode(&got, []byte(c.value), 1<<20); !errors.As(err, &fault) || fault.Reason != c.reason {
				t.Errorf("%v instead of %s", err, c.reason)
			}
		})
	}
}

// A rotation becomes a quaternion and the same rotation again.
func TestPoseOf(t *testing.T) {
	for _, q := range []Quaternion{{0, 0, 0, 1}, {1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {.5, .5, .5, .5},
		{.1, -.2, .3, .9}, {.9, .1, -.2, .05}, {.1, .9, -.2, .05}, {.1, .2, -.9, .05}} {
		in := Pose{Vector{1, -2, 3}, q}
		m, _ := in.matrix()
		back := PoseOf(m)
		again, _ := back.matrix()
		for i := range m {
			if math.Abs(m[i]-again[i]) > 1e-15 {
				t.Errorf("%v: %v instead of %v", q, *again, *m)
				break
			}
		}
	}
	if p := PoseOf(nil); p != (Pose{}) {
		t.Error(p)
	}
}

// message decodes bytes by the schema that stands beside them in a file.
func message(t *testing.T, schema string, b []byte) protoreflect.Message {
	t.Helper()
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(Schema(schema), &set); err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		t.Fatal(err)
	}
	d, err := files.FindDescriptorByName(protoreflect.FullName(schema))
	if err != nil {
		t.Fatal(err)
	}
	m := dynamicpb.NewMessage(d.(protoreflect.MessageDescriptor))
	if err := (proto.UnmarshalOptions{Resolver: &protoregistry.Types{}}).Unmarshal(b, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// Go's Protobuf reads our messages by our schemas, and finds no unknown field.
func TestMessagesFitTheirSchemas(t *testing.T) {
	cloud := kitti()
	cloud.Pose.Position.X = 5
	scene := SceneUpdate{Entities: []Entity{{TimeNs: -1, FrameID: "map", ID: "hull", LifetimeNs: 1_500_000_000,
		FrameLocked: true, Metadata: []KeyValue{{"k", "v"}},
		Lines: []Line{{Type: LineLoop, Thickness: 2, ScaleInvariant: true, Points: []Vector{{1, 2, 3}, {}},
			Color: Color{1, 0, 0, 1}, Indices: []uint32{0, 1}}},
		Triangles: []Triangles{{Points: []Vector{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, Colors: []Color{{A: 1}},
			Indices: []uint32{2, 1, 0}}}}}}
	transform := FrameTransform{TimeNs: 3, Parent: "map", Child: "os", Pose: Pose{Position: Vector{Z: 2}}}
	for _, c := range []struct {
		schema string
		b      []byte
		want   string
	}{
		{PointCloudSchema, cloud.Append(nil), `timestamp:{seconds:1317042145 nanos:964389445} frame_id:"velodyne" ` +
			`pose:{position:{x:5} orientation:{w:1}} point_stride:16 fields:{name:"x" type:FLOAT32} ` +
			`fields:{name:"y" offset:4 type:FLOAT32} fields:{name:"z" offset:8 type:FLOAT32} ` +
			`fields:{name:"intensity" offset:12 type:FLOAT32}`},
		{SceneUpdateSchema, scene.Append(nil), `entities:{timestamp:{seconds:-1 nanos:999999999} frame_id:"map" ` +
			`id:"hull" lifetime:{seconds:1 nanos:500000000} frame_locked:true metadata:{key:"k" value:"v"} ` +
			`lines:{type:LINE_LOOP pose:{position:{} orientation:{w:1}} thickness:2 scale_invariant:true ` +
			`points:{x:1 y:2 z:3} points:{} color:{r:1 a:1} indices:0 indices:1} ` +
			`triangles:{pose:{position:{} orientation:{w:1}} points:{x:1} points:{y:1} points:{z:1} color:{} ` +
			`colors:{a:1} indices:2 indices:1 indices:0}}`},
		{FrameTransformSchema, transform.Append(nil), `timestamp:{nanos:3} parent_frame_id:"map" child_frame_id:"os" ` +
			`translation:{z:2} rotation:{w:1}`},
	} {
		got := strings.Join(strings.Fields(fmt.Sprint(message(t, c.schema, c.b))), " ")
		if i := strings.Index(got, " data:"); i > 0 {
			got = got[:i]
		}
		if got != c.want {
			t.Errorf("%s:\n%s\n%s", c.schema, got, c.want)
		}
	}
	if Schema("foxglove.Unheard") != nil || Schema("PointCloud") != nil {
		t.Error("a schema of an unknown name")
	}
}

func FuzzFoxglove(f *testing.F) {
	in := kitti()
	in.Pose.Orientation = Quaternion{1, 2, 3, 4}
	f.Add(in.Append(nil))
	fuzz(f, Decode)
}

func FuzzFoxgloveJSON(f *testing.F) {
	in := kitti()
	f.Add([]byte(in.text()))
	fuzz(f, DecodeJSON)
}

func fuzz(f *testing.F, decode func(*codec.Cloud, []byte, int64) error) {
	var c codec.Cloud
	f.Fuzz(func(t *testing.T, value []byte) {
		const limit = 1 << 16
		err := decode(&c, value, limit)
		var fault *codec.Error
		if err != nil && !errors.As(err, &fault) {
			t.Fatalf("%T %v", err, err)
		}
		if err == nil && int64(c.Len())*8 > limit {
			t.Fatalf("%d points", c.Len())
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	in := kitti()
	in.Data = make([]byte, 16*120_000)
	for i := range 120_000 * 4 {
		binary.LittleEndian.PutUint32(in.Data[4*i:], math.Float32bits(float32(i)/7))
	}
	for _, form := range forms {
		b.Run(form.name, func(b *testing.B) {
			value := form.encode(&in)
			var c codec.Cloud
			b.SetBytes(int64(len(value)))
			for b.Loop() {
				if err := form.decode(&c, value, 64<<20); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
