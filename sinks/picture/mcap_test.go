package picture

import (
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"math"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"entropipe/schemas"
	"entropipe/schemas/codec"
	"entropipe/schemas/codec/foxglove"
	"entropipe/schemas/codec/mcap"
)

// mcapOf writes frames to a file.
func mcapOf(t *testing.T, results []schemas.Result, layers []string) (file []byte, repeats int64) {
	t.Helper()
	var levels Levels
	for i := range results {
		levels.See(&results[i].FrameKey)
	}
	var b bytes.Buffer
	m := NewMCAP(&b, levels)
	for i := range results {
		r := results[i]
		if err := m.Add(NewFrame(&r, layers)); err != nil {
			t.Fatal(err)
		}
	}
	repeats, err := m.Close()
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), repeats
}

// messagesOf returns the messages of each topic.
func messagesOf(t *testing.T, file []byte) map[string][]mcap.Message {
	t.Helper()
	all := map[string][]mcap.Message{}
	r := mcap.NewReader(bytes.NewReader(file))
	for {
		var m mcap.Message
		err := r.Next(&m)
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		m.Data = slices.Clone(m.Data)
		all[m.Channel.Topic] = append(all[m.Channel.Topic], m)
	}
}

// field returns the contents of the fields with that path of numbers in a message.
func field(t *testing.T, data []byte, path ...protowire.Number) (found [][]byte) {
	t.Helper()
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		size := protowire.ConsumeFieldValue(number, kind, data[n:])
		if size < 0 {
			t.Fatal(protowire.ParseError(size))
		}
		if value := data[n : n+size]; number == path[0] {
			if kind == protowire.BytesType {
				value, _ = protowire.ConsumeBytes(value)
			}
			if len(path) == 1 {
				found = append(found, value)
			} else {
				found = append(found, field(t, value, path[1:]...)...)
			}
		}
		data = data[n+size:]
	}
	return found
}

// vectors returns the points of all primitives of a kind (11: lines, 12: triangles).
func vectors(t *testing.T, data []byte, kind, points protowire.Number) (all [][3]float64) {
	t.Helper()
	for _, point := range field(t, data, 2, kind, points) {
		var v [3]float64
		for axis := range v {
			if x := field(t, point, protowire.Number(axis+1)); len(x) == 1 {
				v[axis] = math.Float64frombits(binary.LittleEndian.Uint64(x[0]))
			}
		}
		all = append(all, v)
	}
	return all
}

// drive is a sequence of small frames of two sensors, with all columns.
func drive() (all []schemas.Result) {
	for i := range int64(6) {
		x := float32(i)
		r := schemas.Result{FrameKey: schemas.FrameKey{Topic: "points", Offset: i, Dataset: "d", Sequence: "s",
			Sensor: []string{"top", "/front/"}[i%2], FrameID: i / 2, TimeNs: 1e9 * (i/2 + 1)}, NPoints: 5, NDropped: 1,
			Hull: &schemas.Hull{Idx: []int32{0, 2, 4}, X: []float64{0, 1, 0}, Y: []float64{0, 0, 1}, Area: .5,
				Perimeter: 4},
			Maxima:    []schemas.Maxima{{Directions: "x:max,y:max", Idx: []int32{2, 4}}},
			Triangles: []int32{0, 2, 3, 0, 3, 4, 2, 4, 3}, Hull3: &schemas.Hull3{Idx: []int32{0, 2, 3, 4},
				Faces: []int32{0, 2, 4}},
			Points: &schemas.Points{Idx: []int32{0, 2, 3, 4}, X32: []float32{0, 1, .25, 0},
				Y32: []float32{0, 0, .25, 1},
				Z32: []float32{x, x, x + 1, x - 1}, Intensity: []float32{1, 2, 3, 4}}}
		r.Points.Ring, r.Points.TOffsetNs = []int32{1, 2, 3, int32(i)}, []int64{-1, 0, 1, 1 << 40}
		if i > 1 {
			r.Pose = &codec.Pose{0, -1, 0, 10, 1, 0, 0, float64(i), 0, 0, 1, 30}
		}
		all = append(all, r)
	}
	return all
}

// The file has what the frames have: points with their columns, hulls and meshes with the
// coordinates of the tables, times and poses.
func TestMCAPHasTheFrames(t *testing.T) {
	frames := drive()
	file, repeats := mcapOf(t, frames, allLayers)
	if again, _ := mcapOf(t, drive(), allLayers); !bytes.Equal(file, again) {
		t.Error("the same frames give other bytes")
	}
	topics := messagesOf(t, file)
	if n := len(topics["/top/tf"]) + len(topics["/front/tf"]); len(topics) != 12 || n != 4 || repeats != 0 {
		t.Errorf("%d topics, %d transforms, %d messages with equal times", len(topics), n, repeats)
	}
	for i := range frames {
		r := &frames[i]
		sensor := []string{"/top", "/front"}[i%2]
		message := func(topic, schema string) *mcap.Message {
			of := topics[sensor+topic]
			if len(of) != 3 || of[i/2].Channel.SchemaName() != schema || of[i/2].LogTime != uint64(r.TimeNs) {
				t.Fatalf("topic %s%s has %d messages; want 3 of schema %s", sensor, topic, len(of), schema)
			}
			return &of[i/2]
		}
		var c codec.Cloud
		if err := foxglove.Decode(&c, message("/points", foxglove.PointCloudSchema).Data, 1<<20); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(c.Cloud32.X, r.Points.X32) || !slices.Equal(c.Cloud32.Z, r.Points.Z32) ||
			!slices.Equal(c.Points.Intensity, r.Points.Intensity) || !slices.Equal(c.Ring, r.Points.Ring) ||
			c.Sensor != sensor[1:] || c.TimeNs != r.TimeNs {
			t.Errorf("frame %d: the points are %+v", i, c.Points)
		}
		if want := [][3]float64{{0, 0, float64(i)}, {1, 0, float64(i)}, {0, 1, float64(i - 1)}}; !slices.Equal(want,
			vectors(t, message("/hull", foxglove.SceneUpdateSchema).Data, 11, 5)) {
			t.Errorf("frame %d: the hull is not %v", i, want)
		}
		mesh := message("/mesh", foxglove.SceneUpdateSchema).Data
		corners, indices := vectors(t, mesh, 12, 2), field(t, mesh, 2, 12, 5)
		if len(indices) != 1 || len(corners) != 4 {
			t.Fatalf("frame %d: the mesh has %d points and %d lists of indices", i, len(corners), len(indices))
		}
		for k, v := range r.Triangles {
			at := int(binary.LittleEndian.Uint32(indices[0][4*k:]))
			if row := slices.Index(r.Points.Idx, v); corners[at][0] != float64(r.Points.X32[row]) ||
				corners[at][2] != float64(r.Points.Z32[row]) {
				t.Errorf("frame %d: corner %d of the mesh is %v", i, k, corners[at])
			}
		}
		if n := len(vectors(t, message("/maxima", foxglove.SceneUpdateSchema).Data, 11, 5)); n != 2*6 {
			t.Errorf("frame %d: %d ends of strokes for two maxima, want 12", i, n)
		}
		if n := len(vectors(t, message("/hull3d", foxglove.SceneUpdateSchema).Data, 12, 2)); n != 3 {
			t.Errorf("frame %d: %d corners of faces, want 3", i, n)
		}
	}
}

// Topics have the names that differ, and a frame that lacks what is shown is written empty.
func TestMCAPOfOneSensor(t *testing.T) {
	frames := drive()[:3]
	for i := range frames {
		frames[i].Sensor, frames[i].TimeNs = "", 5
	}
	frames[1].Hull, frames[1].Points = &schemas.Hull{}, &schemas.Points{}
	frames[1].Maxima, frames[1].Triangles = nil, nil
	frames[1].NPoints, frames[1].NDropped = 3, 3
	frames[2].Points = nil // table points is not written
	file, repeats := mcapOf(t, frames, allLayers)
	topics := messagesOf(t, file)
	for topic, want := range map[string]int{"/points": 2, "/hull": 3, "/mesh": 2, "/maxima": 2, "/tf": 1} {
		if len(topics[topic]) != want {
			t.Errorf("topic %s has %d messages, want %d", topic, len(topics[topic]), want)
		}
	}
	if n := len(vectors(t, topics["/hull"][1].Data, 11, 5)); n != 0 {
		t.Errorf("the hull of nothing has %d points", n)
	}
	if v := vectors(t, topics["/hull"][2].Data, 11, 5); len(v) != 3 || v[1] != [3]float64{1, 0, 0} {
		t.Errorf("the hull without table points is %v", v)
	}
	if repeats != 6 {
		t.Errorf("%d messages have the time of the one before, want 6", repeats)
	}
}

// A viewer can place everything: each frame of reference of a file that has several leads
// to the world at every time, and one that is alone needs no transform. All entities of a
// topic have one name, so that those of the last frame go.
func TestMCAPPlacesEverySource(t *testing.T) {
	with := func(posed ...bool) []schemas.Result {
		frames := drive()[:4]
		for i := range frames {
			frames[i].Sensor, frames[i].Pose = []string{"top", "rear"}[i%2], nil
			if posed[i%2] && i > 1 {
				frames[i].Pose = &codec.Pose{0: 1, 3: 7, 5: 1, 10: 1}
			}
		}
		return frames
	}
	alone := with(false, false)[:1]
	for name, c := range map[string]struct {
		frames []schemas.Result
		want   map[string]int
	}{
		"no pose":           {with(false, false), map[string]int{"/top/tf": 2, "/rear/tf": 2}},
		"poses of one":      {with(true, false), map[string]int{"/top/tf": 1, "/rear/tf": 2}},
		"poses of both":     {with(true, true), map[string]int{"/top/tf": 1, "/rear/tf": 1}},
		"one without poses": {alone, map[string]int{}},
	} {
		file, _ := mcapOf(t, c.frames, allLayers)
		topics := messagesOf(t, file)
		transforms, shown := map[string]int{}, map[string]bool{}
		children := map[string]bool{}
		for topic, messages := range topics {
			names := map[string]bool{}
			for i := range messages {
				m := &messages[i]
				switch m.Channel.SchemaName() {
				case foxglove.FrameTransformSchema:
					transforms[topic]++
					children[string(field(t, m.Data, 3)[0])] = true
				case foxglove.PointCloudSchema:
					shown[string(field(t, m.Data, 2)[0])] = true
				default:
					shown[string(field(t, m.Data, 2, 2)[0])] = true
					names[string(field(t, m.Data, 2, 3)[0])] = true
					if lifetime := field(t, m.Data, 2, 4); len(lifetime) > 0 && len(lifetime[0]) > 0 {
						t.Errorf("%s: an entity of %s ends by itself", name, topic)
					}
				}
			}
			if len(names) > 1 {
				t.Errorf("%s: entities of %s are called %v", name, topic, names)
			}
		}
		if !maps.Equal(transforms, c.want) {
			t.Errorf("%s: transforms %v, want %v", name, transforms, c.want)
		}
		if len(children) > 0 && !maps.Equal(shown, children) || len(children) == 0 && len(shown) != 1 {
			t.Errorf("%s: messages stand in %v, transforms lead from %v", name, shown, children)
		}
	}
}
