package pipeline

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/schemas"
	"entropipe/schemas/codec"
)

// message wraps a value as a record that says nothing else of itself.
func message(value []byte) schemas.Message {
	return schemas.Message{Topic: "points", Partition: 2, Offset: 77, Time: time.Unix(100, 5e6).UTC(),
		Key: []byte("seq"), Value: value}
}

func points32(t testing.TB, c geom.Cloud[float32]) []byte {
	t.Helper()
	var e schemas.Encoder
	v, err := e.AppendPoints(nil, schemas.PointCloud{Points: codec.Points{Cloud32: c}})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func points64(t testing.TB, c geom.Cloud[float64]) []byte {
	t.Helper()
	var e schemas.Encoder
	v, err := e.AppendPoints(nil, schemas.PointCloud{Points: codec.Points{Cloud64: c, Double: true}})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Every value that is not a frame is one reject with offset, stage and reason,
// and the worker goes on unharmed.
func TestBrokenValuesBecomeRejects(t *testing.T) {
	good := points32(t, geomtest.Lidar[float32](500, 1))
	noX := bytes.ReplaceAll(slices.Clone(good), []byte("\x01\x00\x00\x00x\x00"), []byte("\x01\x00\x00\x00q\x00"))
	flipped := slices.Clone(good)
	for i := range 64 {
		flipped[8+i*3] ^= 0x55
	}
	kitti := message(make([]byte, 33))
	kitti.Headers = []schemas.Header{{Key: "content-type", Value: []byte(schemas.ContentTypeKITTI)}}
	badID := message(good)
	badID.Headers = []schemas.Header{{Key: "frame_id", Value: []byte("twelve")}}
	oversize := message(good[:100])
	oversize.Oversize = 1 << 30
	tests := map[string]struct {
		m      schemas.Message
		reason string
	}{
		"tombstone":          {message(nil), schemas.ReasonEmpty},
		"empty":              {message([]byte{}), schemas.ReasonEmpty},
		"truncated":          {message(good[:len(good)/2]), schemas.ReasonTruncated},
		"bits flipped":       {message(flipped), ""},
		"64 MiB of zeros":    {message(make([]byte, 64<<20)), ""},
		"no x":               {message(noX), schemas.ReasonMissingColumn},
		"bytes behind":       {message(append(slices.Clone(good), "more"...)), ""},
		"bin not times 16":   {kitti, schemas.ReasonBadLength},
		"frame id no number": {badID, schemas.ReasonBadHeader},
		"zstd bomb":          {message(bomb(t)), ""},
		"cut by the source":  {oversize, schemas.ReasonTooLarge},
		"text":               {message([]byte("x,y,z\n1,2,3\n")), ""},
	}
	f := NewFrames(FrameConfig{MaxBytes: 64 << 20})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			results, rejects := f.Process(test.m)
			if len(results) != 0 || len(rejects) != 1 {
				t.Fatalf("%d results and %d rejects, want one reject", len(results), len(rejects))
			}
			r := rejects[0]
			if r.Offset != 77 || r.Partition != 2 || r.Index != -1 || r.Stage != schemas.StageDecode ||
				r.Message == "" || r.Reason == "" {
				t.Errorf("reject %+v", r)
			}
			if test.reason != "" && r.Reason != test.reason {
				t.Errorf("reason %q (%s), want %q", r.Reason, r.Message, test.reason)
			}
			if r.ValueSize != max(test.m.Oversize, int64(len(test.m.Value))) ||
				len(r.Value) > schemas.MaxRejectValue {
				t.Errorf("value of %d bytes, %d kept, want %d", r.ValueSize, len(r.Value), len(test.m.Value))
			}
			if results, rejects := f.Process(message(good)); len(results) != 1 || len(rejects) != 0 {
				t.Fatalf("a good frame afterwards gives %d results, rejects %+v", len(results), rejects)
			}
		})
	}
}

// bomb is a stream whose one column is a megabyte on the wire, and gigabytes
// when it is believed.
func bomb(t *testing.T) []byte {
	e := schemas.Encoder{Compression: "zstd"}
	v, err := e.AppendPoints(
		nil,
		schemas.PointCloud{Points: codec.Points{Cloud32: geom.Cloud[float32]{X: make([]float32, 1<<18),
			Y: make([]float32, 1<<18)}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	at := bytes.Index(v, []byte{0x28, 0xb5, 0x2f, 0xfd}) - 8 // the length stands before zstd's magic number
	if at < 0 {
		t.Fatal("no compressed buffer in the stream")
	}
	binary.LittleEndian.PutUint64(v[at:], 1<<38)
	return v
}

// Degenerate clouds are results with a status, never an error, and what is in
// the row is what brute force says.
func TestDegenerateCloudsHaveDefinedRows(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	line := geom.Cloud[float32]{X: []float32{3, 1, 2, 1}, Y: []float32{3, 1, 2, 1}}
	many := geomtest.Equal[float32](100_000, 1)
	tests := map[string]struct {
		c               geom.Cloud[float32]
		hull, mesh      schemas.Status
		idx             []int32
		maxima          []int32
		dropped         int32
		area, perimeter float64
		triangles       int32
	}{
		"no point": {geom.Cloud[float32]{}, "empty", "empty", nil, nil, 0, 0, 0, 0},
		"one": {geom.Cloud[float32]{X: []float32{1}, Y: []float32{2}}, "degenerate_point", "degenerate_point",
			[]int32{0}, []int32{0}, 0, 0, 0, 0},
		"two": {geom.Cloud[float32]{X: []float32{4, 1}, Y: []float32{4, 0}}, "degenerate_line",
			"degenerate_line", []int32{1, 0}, []int32{0}, 0, 0, 0, 0},
		"two equal": {geom.Cloud[float32]{X: []float32{0, float32(math.Copysign(0, -1))}, Y: []float32{1, 1}},
			"degenerate_point", "degenerate_point", []int32{0}, []int32{0}, 0, 0, 0, 0},
		"collinear":     {line, "degenerate_line", "degenerate_line", []int32{1, 0}, []int32{0}, 0, 0, 0, 0},
		"100,000 equal": {many, "degenerate_point", "degenerate_point", []int32{0}, []int32{0}, 0, 0, 0, 0},
		"all NaN": {geom.Cloud[float32]{X: []float32{nan, 1, inf}, Y: []float32{1, nan, 2}}, "empty", "empty",
			nil, nil, 3, 0, 0, 0},
		"triangle, NaN": {geom.Cloud[float32]{X: []float32{nan, 0, 2, 0}, Y: []float32{1, 0, 0, 2}}, "ok", "ok",
			[]int32{1, 2, 3}, []int32{2, 3}, 1, 2, 4 + 2*math.Sqrt2, 1},
	}
	f := NewFrames(FrameConfig{})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			results, rejects := f.Process(message(points32(t, test.c)))
			if len(results) != 1 || len(rejects) != 0 {
				t.Fatalf("%d results, rejects %+v", len(results), rejects)
			}
			r := results[0]
			h, d := r.Ops[schemas.Hull2D], r.Ops[schemas.Delaunay2D]
			if h.Status != test.hull || d.Status != test.mesh || r.Hull.Status != test.hull ||
				d.N != test.triangles ||
				int(h.N) != len(test.idx) {
				t.Errorf("hull %+v, Delaunay %+v", h, d)
			}
			if !slices.Equal(r.Hull.Idx, test.idx) || !slices.Equal(r.Maxima[0].Idx, test.maxima) {
				t.Errorf("hull %v, maxima %v, want %v, %v", r.Hull.Idx, r.Maxima[0].Idx, test.idx, test.maxima)
			}
			if r.NPoints != int32(test.c.Len()) || r.NDropped != test.dropped {
				t.Errorf("%d points, %d dropped, want %d, %d", r.NPoints, r.NDropped, test.c.Len(), test.dropped)
			}
			if r.Hull.Area != test.area || math.Abs(r.Hull.Perimeter-test.perimeter) > 1e-12 {
				t.Errorf(
					"area %v, perimeter %v, want %v, %v",
					r.Hull.Area,
					r.Hull.Perimeter,
					test.area,
					test.perimeter,
				)
			}
			if want := (schemas.FrameKey{Dataset: "points", Sequence: "seq", FrameID: 77, TimeNs: 100_005_000_000,
				Topic: "points", Partition: 2, Offset: 77}); !cmp.Equal(r.FrameKey, want) {
				t.Errorf("key %s", cmp.Diff(want, r.FrameKey))
			}
		})
	}
}

// Which operators run follows from the cloud, or from what was asked for.
func TestOperatorsFollowTheCloud(t *testing.T) {
	flat, deep := geomtest.Square[float64](50, 1), geomtest.Cube[float64](50, 1)
	statuses := func(cfg FrameConfig, c geom.Cloud[float64]) string {
		results, _ := NewFrames(cfg).Process(message(points64(t, c)))
		var s []string
		for op := range schemas.NumOps {
			if st := results[0].Ops[op].Status; st != "" {
				s = append(s, op.String()+"="+string(st))
			}
		}
		return strings.Join(s, " ")
	}
	asked := FrameConfig{Ops: []schemas.Op{schemas.Maxima3D, schemas.Maxima2D}}
	solid := FrameConfig{Ops: []schemas.Op{schemas.Hull3D}, Hull3D: true}
	for _, test := range []struct{ got, want string }{
		{statuses(FrameConfig{}, flat), "hull2d=ok maxima2d=ok delaunay2d=ok"},
		{statuses(FrameConfig{}, deep), "hull2d=ok maxima3d=ok delaunay2d=ok"},
		{statuses(FrameConfig{Hull3D: true}, flat), "hull2d=ok maxima2d=ok delaunay2d=ok"},
		{statuses(FrameConfig{Hull3D: true}, deep), "hull2d=ok hull3d=ok maxima3d=ok delaunay2d=ok"},
		{statuses(solid, flat), "hull3d=not_run"},
		{statuses(solid, geom.Cloud[float64]{}), "hull3d=not_run"},
		{statuses(solid, geom.Cloud[float64]{Z: []float64{}}), "hull3d=empty"},
		{statuses(asked, flat), "maxima2d=ok maxima3d=not_run"},
		{statuses(asked, deep), "maxima2d=ok maxima3d=ok"},
	} {
		if test.got != test.want {
			t.Errorf("ran %q, want %q", test.got, test.want)
		}
	}
}

// The latency of a frame counts from Kafka's timestamp, and is 0 without one.
func TestLatencyOfAFrame(t *testing.T) {
	m := message(points64(t, geomtest.Square[float64](5, 1)))
	for sent, want := range map[time.Time]int64{time.Now().Add(-time.Hour): time.Hour.Nanoseconds(), {}: 0,
		time.UnixMilli(-1): 0} {
		m.Time = sent
		results, _ := NewFrames(FrameConfig{}).Process(m)
		if got := results[0].LatencyNs; got < want || got > want+time.Minute.Nanoseconds()*min(want, 1) {
			t.Errorf("sent %v: %d ns, want %d", sent, got, want)
		}
		if results, _ = NewFrames(FrameConfig{Archive: true}).Process(m); results[0].LatencyNs != 0 {
			t.Errorf("recorded %v: %d ns", sent, results[0].LatencyNs)
		}
	}
}

// A hull in space is that of its dimension, for every dimension that a cloud
// can have: a status, corners and faces.
func TestHullsInSpace(t *testing.T) {
	nan := math.NaN()
	tests := map[string]struct {
		x, y, z      []float64
		status       schemas.Status
		idx, faces   []int32
		area, volume float64
	}{
		"no finite point": {[]float64{nan, 1}, []float64{0, 1}, []float64{0, math.Inf(1)}, "empty", nil, nil, 0, 0},
		"equal points": {[]float64{1, 1, 1}, []float64{2, 2, 2}, []float64{0, math.Copysign(0, -1), 0},
			"degenerate_point", []int32{0}, nil, 0, 0},
		"a line": {[]float64{3, 1, 2, 4}, []float64{3, 1, 2, 4}, []float64{3, 1, 2, 4}, "degenerate_line",
			[]int32{1, 3}, nil, 0, 0},
		"a plane": {[]float64{0, 2, 2, 0, 1}, []float64{0, 0, 2, 2, 1}, []float64{0, 2, 2, 0, 1},
			"degenerate_plane", []int32{0, 1, 2, 3}, nil, 0, 0},
		"a corner of a cube, NaN first": {[]float64{nan, 0, 2, 0, 0, 0.5}, []float64{0, 0, 0, 2, 0, 0.5},
			[]float64{0, 0, 0, 0, 2, 0.5}, "ok",
			[]int32{1, 2, 3, 4}, []int32{1, 2, 4, 1, 3, 2, 1, 4, 3, 2, 3, 4}, 6 + 2*math.Sqrt(3), 8. / 6},
		"four points near a plane": {[]float64{5060.398, -8610.71, 4024.078, 3470.444},
			[]float64{-1723.443, 5979.228, -1510.146, 4562.827},
			[]float64{-5627.530889927057, 9875.558738515163, -4488.810436786282, -3294.0380905516877}, "ok",
			[]int32{0, 1, 2, 3}, []int32{0, 1, 3, 0, 2, 1, 0, 3, 2, 1, 2, 3}, 1.160997835253967e+08,
			1.961036756686275e-07},
	}
	f := NewFrames(FrameConfig{Ops: []schemas.Op{schemas.Hull3D}})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			results, rejects := f.Process(message(points64(t, geom.Cloud[float64]{X: test.x, Y: test.y, Z: test.z})))
			if len(results) != 1 || len(rejects) != 0 {
				t.Fatalf("%d results, rejects %+v", len(results), rejects)
			}
			h, op := results[0].Hull3, results[0].Ops[schemas.Hull3D]
			if h.Status != test.status || op.Status != test.status || int(op.N) != len(test.idx) {
				t.Errorf("status %s, %+v, want %s of %d", h.Status, op, test.status, len(test.idx))
			}
			if !slices.Equal(h.Idx, test.idx) || !slices.Equal(h.Faces, test.faces) {
				t.Errorf("corners %v, faces %v, want %v, %v", h.Idx, h.Faces, test.idx, test.faces)
			}
			if math.Abs(h.Area-test.area) > 1e-14*test.area || math.Abs(h.Volume-test.volume) > 1e-14*test.volume ||
				h.ErrorBound != nil {
				t.Errorf("area %v, volume %v, want %v, %v; error bound %v", h.Area, h.Volume, test.area,
					test.volume, h.ErrorBound)
			}
		})
	}
}

// A result owns its memory: the operator's scratch is used again, the hull of
// the frame before stays.
func TestHullsInSpaceOwnTheirMemory(t *testing.T) {
	f := NewFrames(FrameConfig{Ops: []schemas.Op{schemas.Hull3D}})
	first, _ := f.Process(message(points32(t, geomtest.Lidar[float32](2000, 1))))
	idx, faces := slices.Clone(first[0].Hull3.Idx), slices.Clone(first[0].Hull3.Faces)
	f.Process(message(points32(t, geomtest.Lidar[float32](3000, 2))))
	if len(idx) < 4 || !slices.Equal(first[0].Hull3.Idx, idx) || !slices.Equal(first[0].Hull3.Faces, faces) {
		t.Errorf("a hull of %d corners changed with the next frame", len(idx))
	}
}

// Dropped points keep their numbers: the results on a cloud with holes are
// those on the cloud without, renamed, and the copied points too.
func TestIndicesArePositionsAsReceived(t *testing.T) {
	clean := geomtest.Lidar[float32](2000, 3)
	holes := geom.Cloud[float32]{}
	var position []int32 // in holes, of each point of clean
	for i := range clean.X {
		for i%7 == 3 && len(holes.X) < 2*i {
			holes.X, holes.Y, holes.Z = append(holes.X, 1), append(holes.Y, float32(math.NaN())), append(holes.Z, 1)
		}
		position = append(position, int32(len(holes.X)))
		holes.X, holes.Y, holes.Z = append(holes.X, clean.X[i]), append(holes.Y, clean.Y[i]),
			append(holes.Z, clean.Z[i])
	}
	f := NewFrames(FrameConfig{Points: true, Hull3D: true})
	a, _ := f.Process(message(points32(t, clean)))
	b, _ := f.Process(message(points32(t, holes)))
	renamed := func(idx []int32) []int32 {
		out := make([]int32, len(idx))
		for k, i := range idx {
			out[k] = position[i]
		}
		return out
	}
	if !slices.Equal(b[0].Hull.Idx, renamed(a[0].Hull.Idx)) ||
		!slices.Equal(b[0].Maxima[0].Idx, renamed(a[0].Maxima[0].Idx)) ||
		!slices.Equal(b[0].Triangles, renamed(a[0].Triangles)) ||
		!slices.Equal(b[0].Hull3.Idx, renamed(a[0].Hull3.Idx)) ||
		!slices.Equal(b[0].Hull3.Faces, renamed(a[0].Hull3.Faces)) {
		t.Error("results on the cloud with holes are not those on the clean one")
	}
	if !slices.Equal(b[0].Points.Idx, position) || !slices.Equal(b[0].Points.X32, clean.X) ||
		!slices.Equal(b[0].Points.Z32, clean.Z) {
		t.Error("the copied points are not the finite ones at their positions")
	}
	if a[0].NDropped != 0 || int(b[0].NDropped) != len(holes.X)-len(clean.X) {
		t.Errorf("dropped %d and %d", a[0].NDropped, b[0].NDropped)
	}
}

// A panic of an operator costs one frame, which says so; the others of the same
// message and the next message are as if nothing had been.
func TestPanicCostsOneFrame(t *testing.T) {
	good := points32(t, geomtest.Lidar[float32](300, 1))
	var told []any
	f := NewFrames(FrameConfig{OnPanic: func(k schemas.FrameKey, what any, stack []byte) {
		told = append(told, k.Offset, what, len(stack) > 0)
	}})
	f.cfg.Ops = []schemas.Op{schemas.Hull2D, schemas.NumOps} // no operator: running it is a bug
	results, rejects := f.Process(message(good))
	if len(results) != 0 || len(rejects) != 1 || rejects[0].Stage != schemas.StageOperate ||
		rejects[0].Reason != "panic" || rejects[0].Index != 0 {
		t.Fatalf("results %v, rejects %+v", results, rejects)
	}
	if want := []any{int64(77), "pipeline: operate does not know the operator", true}; !cmp.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	f.cfg.Ops = nil
	if results, rejects := f.Process(message(good)); len(results) != 1 || len(rejects) != 0 {
		t.Errorf("afterwards: %d results, rejects %+v", len(results), rejects)
	}
}

// All real drawings, degenerate ones included, packed into messages as the
// producer does: every row equals the exact oracles'.
func TestDrawingsAgainstExactOracles(t *testing.T) {
	drawings := geomtest.Drawings[float64](t)
	f := NewFrames(FrameConfig{})
	for len(drawings) > 0 {
		pack := drawings[:min(200, len(drawings))]
		drawings = drawings[len(pack):]
		var sketches []schemas.Sketch
		for i, d := range pack {
			if d.Cloud.Len() > 0 {
				sketches = append(sketches, schemas.Sketch{Drawing: schemas.Drawing{ID: int64(i), Label: "x"},
					Strokes: []schemas.Stroke{{X: d.Cloud.X, Y: d.Cloud.Y}}})
			}
		}
		var e schemas.Encoder
		v, err := e.AppendSketches(nil, sketches)
		if err != nil {
			t.Fatal(err)
		}
		results, rejects := f.Process(message(v))
		if len(results) != len(sketches) || len(rejects) != 0 {
			t.Fatalf("%d rows for %d drawings, rejects %+v", len(results), len(sketches), rejects)
		}
		for i, r := range results {
			c := pack[sketches[i].ID].Cloud
			if err := checkRow(&r, c, int32(i)); err != nil {
				t.Fatalf("%s: %v", pack[sketches[i].ID].Name, err)
			}
		}
	}
}

func checkRow(r *schemas.Result, c geom.Cloud[float64], index int32) error {
	if r.Index != index || r.FrameID != 77+int64(index) || r.Drawing == nil {
		return fmt.Errorf("row %d is frame %d, index %d, drawing %v", index, r.FrameID, r.Index, r.Drawing)
	}
	if want := geomtest.Hull2D(c); !slices.Equal(r.Hull.Idx, want) {
		return fmt.Errorf("hull %v, want %v", r.Hull.Idx, want)
	}
	if want := geomtest.Maxima(c, 2, [3]bool{}); !slices.Equal(r.Maxima[0].Idx, want) {
		return fmt.Errorf("maxima %v, want %v", r.Maxima[0].Idx, want)
	}
	if len(r.Triangles) > 0 != (len(r.Hull.Idx) > 2) {
		return fmt.Errorf("%d triangles, hull of %d", len(r.Triangles)/3, len(r.Hull.Idx))
	}
	return nil
}
