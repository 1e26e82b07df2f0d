package foxglove

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"entropipe/ops/live"
	"entropipe/schemas"
	"entropipe/schemas/codec"
	messages "entropipe/schemas/codec/foxglove"
)

// message decodes a message of a kind by its schema.
func message(t *testing.T, k kind, b []byte) protoreflect.Message {
	t.Helper()
	name := channelOf(0, "", k).SchemaName
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(messages.Schema(name), &set); err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		t.Fatal(err)
	}
	d, err := files.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		t.Fatal(err)
	}
	m := dynamicpb.NewMessage(d.(protoreflect.MessageDescriptor))
	if err := proto.Unmarshal(b, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// field returns a field of a message, by a path of names; a number is an element of a list.
func field(m protoreflect.Message, path ...any) protoreflect.Value {
	v := protoreflect.ValueOfMessage(m)
	for _, step := range path {
		if i, isNumber := step.(int); isNumber {
			v = v.List().Get(i)
		} else {
			v = v.Message().Get(v.Message().Descriptor().Fields().ByName(protoreflect.Name(step.(string))))
		}
	}
	return v
}

// placed returns where a viewer places the points of a figure: its pose plus each point.
func placed(figure protoreflect.Message) (all [][3]float64) {
	points := field(figure, "points").List()
	for i := range points.Len() {
		var p [3]float64
		for axis, name := range []string{"x", "y", "z"} {
			p[axis] = field(figure, "pose", "position", name).Float() + field(points.Get(i).Message(), name).Float()
		}
		all = append(all, p)
	}
	return all
}

// bits reports whether two coordinates have the same bits.
func bits(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }

// The hull of a frame that a tap copied has the coordinates of the operator, bit for bit,
// wherever the frame lies; its height is that of the copied points.
func TestHullHasTheBitsOfTheOperator(t *testing.T) {
	for _, at := range [][2]float64{{0, 0}, {500_000.25, 4_000_000.125}, {-7e7, 3e7}, {1e12, -1e12}, {70_000, 0}} {
		for _, size := range []float64{1e-3, 1, 1000} {
			name := fmt.Sprintf("at %v, size %g", at, size)
			fr := &schemas.Frame{}
			fr.Double = true
			r := &schemas.Result{Hull: &schemas.Hull{Status: schemas.StatusOK}}
			for i := range 64 {
				angle := float64(i) * math.Pi / 32
				x, y := at[0]+size*math.Cos(angle)/3, at[1]+size*math.Sin(angle)/3
				fr.Cloud64.X, fr.Cloud64.Y = append(fr.Cloud64.X, x), append(fr.Cloud64.Y, y)
				fr.Cloud64.Z = append(fr.Cloud64.Z, float64(i)/7)
				r.Hull.Idx = append(r.Hull.Idx, int32(i))
				r.Hull.X, r.Hull.Y = append(r.Hull.X, x), append(r.Hull.Y, y)
			}
			r.NPoints = 64
			s := live.Capture(&schemas.Message{}, fr, r)
			of := &stream{name: "a"}
			m := message(t, hull, new(encoder).append(nil, hull, of, s))
			got := placed(field(m, "entities", 0, "lines", 0).Message())
			if len(got) != 64 {
				t.Fatalf("%s: %d corners", name, len(got))
			}
			for i, p := range got {
				if !bits(p[0], r.Hull.X[i]) || !bits(p[1], r.Hull.Y[i]) || !bits(p[2], s.Origin[2]+float64(s.Z[i])) {
					t.Fatalf("%s: corner %d is %v instead of %v, %v", name, i, p, r.Hull.X[i], r.Hull.Y[i])
				}
			}
		}
	}
}

// What a scene does not have leaves out figures, not entities; points that are not finite are
// left out and the others numbered; a stream in the plane has z 0.
func TestScenesOfAllKinds(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	plane := &live.Scene{NPoints: 3, X: []float32{1, 2, 3}, Y: []float32{4, 5, 6}}
	holes := &live.Scene{NPoints: 4, X: []float32{1, nan, 3, 4}, Y: []float32{1, 2, inf, 4}, Z: []float32{1, 2, 3, 4},
		Intensity: []float32{.1, .2, .3, .4}, Return: []int32{1, 2, 3, 4}}
	sample := drive(0, 9, [3]float64{})
	sample.Sampled, sample.NPoints, sample.Triangles = true, 90, nil
	sample.Numbers = []int32{0, 1, 2, 13, 24, 35, 46, 57, 68}
	sample.Hull.Idx = []int32{0, 13, 46}
	sample.Maxima[0].Idx = []int32{13, 14} // the second one is not held
	foreign := drive(0, 9, [3]float64{})
	foreign.Triangles = []int32{0, 1, 99}
	for _, c := range []struct {
		name             string
		scene            *live.Scene
		points           int
		index            []int32
		line, faces, net int // figures
	}{
		{"nothing", &live.Scene{}, 0, nil, 0, 0, 0},
		{"plane", plane, 3, nil, 0, 0, 0},
		{"holes", holes, 2, []int32{0, 3}, 0, 0, 0},
		{"sample", sample, 9, sample.Numbers, 1, 1, 0},
		{"triangle of no point", foreign, 9, nil, 1, 1, 0},
		{"all", drive(0, 9, [3]float64{1e6, 1e6, 0}), 9, nil, 1, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			of, e := &stream{name: "a"}, new(encoder)
			cloud := message(t, points, e.append(nil, points, of, c.scene))
			stride, data := int(field(cloud, "point_stride").Uint()), field(cloud, "data").Bytes()
			if len(data) != c.points*stride {
				t.Errorf("%d bytes of data with stride %d, want %d points", len(data), stride, c.points)
			}
			var decoded codec.Cloud
			if c.points > 0 {
				if err := messages.Decode(&decoded, e.append(nil, points, of, c.scene), 1<<20); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(decoded.Cloud32.Z, make([]float32, c.points)) != (c.scene.Z != nil) {
					t.Errorf("z %v", decoded.Cloud32.Z)
				}
			}
			fields, last := field(cloud, "fields").List(), ""
			if n := fields.Len(); n > 0 {
				last = field(fields.Get(n-1).Message(), "name").String()
			}
			if (last == "index") != (c.index != nil) {
				t.Errorf("last field %q, index wanted: %v", last, c.index)
			}
			for k, number := range c.index {
				at := k*stride + stride - 4
				if got := int32(data[at]) | int32(data[at+1])<<8; got != number {
					t.Errorf("index %d of point %d, want %d", got, k, number)
				}
			}
			for _, layer := range []struct {
				kind    kind
				lists   string
				figures int
			}{{hull, "lines", c.line}, {hull3d, "triangles", c.faces}, {mesh, "triangles", c.net}} {
				m := message(t, layer.kind, e.append(nil, layer.kind, of, c.scene))
				if n := field(m, "entities").List().Len(); n != 1 {
					t.Fatalf("%s: %d entities", kindNames[layer.kind], n)
				}
				if n := field(m, "entities", 0, layer.lists).List().Len(); n != layer.figures {
					t.Errorf("%s: %d figures, want %d", kindNames[layer.kind], n, layer.figures)
				}
			}
			m := message(t, maxima, e.append(nil, maxima, of, c.scene))
			if n := field(m, "entities", 0, "lines").List().Len(); n != min(len(c.scene.Maxima), 1) {
				t.Errorf("%d lines of maxima", n)
			}
		})
	}
}

// Several clients of a channel cost one encoding, and each gets the scene it asked for.
func TestPayloadsAreShared(t *testing.T) {
	var all payloads
	one, two := all.use(5), all.use(5)
	if one != two {
		t.Fatal("two payloads of one channel")
	}
	of := &stream{name: "a"}
	old, fresh := drive(1, 9, [3]float64{}), drive(2, 9, [3]float64{})
	want := map[*live.Scene]string{old: string(new(encoder).append(nil, frames, of, old)),
		fresh: string(new(encoder).append(nil, frames, of, fresh))}
	for _, s := range []*live.Scene{old, fresh, fresh, old} {
		if got := string(one.append(nil, frames, of, s)); got != want[s] {
			t.Errorf("offset %d: %s", s.Offset, got)
		}
	}
	all.release(5)
	all.release(5)
	all.release(5)
	if len(all.byChannel) != 0 {
		t.Error("a payload is kept")
	}
}

func BenchmarkEncode(b *testing.B) {
	const n = 120_000
	fr := &schemas.Frame{}
	for i := range n {
		fr.Cloud32.X = append(fr.Cloud32.X, float32(i%977))
		fr.Cloud32.Y = append(fr.Cloud32.Y, float32(i/977))
		fr.Cloud32.Z = append(fr.Cloud32.Z, float32(i%7))
	}
	r := &schemas.Result{NPoints: n}
	for i := range int32(n) - 2 {
		r.Triangles = append(r.Triangles, i, i+1, i+2, i+2, i+1, i)
	}
	s, of, e := live.Capture(&schemas.Message{}, fr, r), &stream{name: "a"}, new(encoder)
	for _, k := range []kind{points, mesh, frames} {
		b.Run(kindNames[k], func(b *testing.B) {
			var buffer []byte
			for b.Loop() {
				buffer = e.append(buffer[:0], k, of, s)
			}
			b.SetBytes(int64(len(buffer)))
		})
	}
}
