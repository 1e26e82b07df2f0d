// Package batches makes synthetic batches for tests and benchmarks. Equal
// arguments give equal batches.
package batches

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"entropipe/schemas"
	"entropipe/schemas/codec"
)

// Spec says what a synthetic batch looks like.
type Spec struct {
	Topic     string
	Partition int32
	Start     int64
	Records   int      // offsets, of which some are holes and some rejects
	Frames    int      // a message
	Points    int      // a frame
	Datasets  []string // in turn
	Points64  bool     // frames carry Points, in float64
	Plain     bool     // no holes, no rejects, no degenerate frames
	Originals bool     // the messages themselves, too
	Seed      uint64
}

// Synthetic makes a batch whose geometry is right: points in convex position,
// their hull, every other time one in space, two maxima rows, and the fan of triangles from point 0. Every
// seventh offset is a hole, every fifth message a reject, and some frames are
// empty, a point or a line.
func Synthetic(s Spec) *schemas.Batch {
	b := &schemas.Batch{Topic: s.Topic, Partition: s.Partition, Start: s.Start, End: s.Start + int64(s.Records)}
	if len(s.Datasets) == 0 {
		s.Datasets = []string{"synthetic"}
	}
	for o := b.Start; o < b.End; o++ {
		if !s.Plain && o%7 == 3 {
			b.Holes++
			continue
		}
		b.Messages++
		b.Last = &schemas.RecordID{Offset: o, Timestamp: 1700000000000 + o, CRC32C: uint32(o)}
		if s.Originals {
			b.Originals = append(b.Originals, SyntheticOriginal(b, o))
		}
		if !s.Plain && o%5 == 2 {
			b.Rejects = append(b.Rejects, SyntheticReject(b, o))
			continue
		}
		for i := range s.Frames {
			b.Results = append(b.Results, SyntheticResult(s, b, o, int32(i)))
		}
	}
	return b
}

// SyntheticOriginal makes the message of an offset: some are tombstones, some have no key.
func SyntheticOriginal(b *schemas.Batch, offset int64) schemas.Original {
	o := schemas.Original{Topic: b.Topic, Partition: b.Partition, Offset: offset,
		TimeNs:  (1700000000000 + offset) * 1e6,
		Headers: []schemas.Header{{Key: "dataset", Value: []byte("synthetic")}, {Key: "none"}}}
	if offset%3 != 0 {
		o.Key = fmt.Appendf(nil, "key-%d", offset)
	}
	if offset%11 != 5 {
		o.Value = fmt.Appendf(nil, "value of offset %d", offset)
		o.Size = int64(len(o.Value))
	}
	return o
}

func SyntheticReject(b *schemas.Batch, offset int64) schemas.Reject {
	return schemas.Reject{Topic: b.Topic, Partition: b.Partition, Offset: offset, Index: -1,
		TimeNs: 1700000000000000000 + offset,
		Stage:  schemas.StageDecode, Reason: "not_arrow",
		Message: fmt.Sprintf("record %d is no Arrow stream \xff", offset),
		Key:     []byte{0, 255}, Headers: []schemas.Header{{Key: "dataset", Value: []byte("synthetic")},
			{Key: "raw", Value: []byte{1, 254}}, {Key: "none"}},
		Value: []byte("garbage"), ValueSize: 7, ValueSHA: "00"}
}

func SyntheticResult(s Spec, b *schemas.Batch, offset int64, index int32) schemas.Result {
	rng := rand.New(rand.NewPCG(s.Seed, uint64(offset)<<20|uint64(index)))
	n := s.Points
	if !s.Plain {
		switch offset % 11 { // degenerate now and then
		case 1:
			n = 0
		case 4:
			n = 1
		case 6:
			n = 2
		}
	}
	r := schemas.Result{FrameKey: schemas.FrameKey{Dataset: s.Datasets[int(offset)%len(s.Datasets)],
		Sequence: "seq-1", Sensor: "lidar",
		FrameID: offset*1000 + int64(index), TimeNs: 1316995200123456789 + offset*100e6, Topic: b.Topic,
		Partition: b.Partition, Offset: offset, Index: index},
		NPoints: int32(n), LatencyNs: 1000}
	if index%2 == 1 {
		r.Drawing = &schemas.Drawing{ID: offset<<8 | int64(index), Label: fmt.Sprintf("label %d", index%16)}
	}
	h := &schemas.Hull{Status: schemas.StatusOK}
	switch n {
	case 0:
		h.Status = schemas.StatusEmpty
	case 1:
		h.Status = schemas.StatusDegeneratePoint
	case 2:
		h.Status = schemas.StatusDegenerateLine
	}
	h.X, h.Y = convexPoints(rng, n)
	for i := range n {
		h.Idx = append(h.Idx, int32(i))
		j := (i + 1) % n
		h.Perimeter += math.Hypot(h.X[j]-h.X[i], h.Y[j]-h.Y[i])
		h.Area += (h.X[i]*h.Y[j] - h.X[j]*h.Y[i]) / 2
	}
	r.Hull = h
	if index%2 == 0 { // the others have no z
		r.Hull3 = &schemas.Hull3{Idx: h.Idx, Area: 2 * h.Area, Volume: h.Area * rng.Float64(), Status: h.Status}
		if n == 3 {
			r.Hull3.Status = schemas.StatusDegeneratePlane
		}
		for i := int32(1); n > 3 && int(i)+1 < n; i++ { // both sides of the fan
			r.Hull3.Faces = append(r.Hull3.Faces, 0, i, i+1, 0, i+1, i)
		}
		r.Ops[schemas.Hull3D] = schemas.OpResult{Status: r.Hull3.Status, N: int32(n), Ns: 1000}
	}
	r.Maxima = []schemas.Maxima{{Directions: "x:max,y:max", Idx: h.Idx[:n/2]},
		{Directions: "x:max,y:max,z:max", Idx: h.Idx}}
	for i := int32(1); int(i)+1 < n; i++ {
		r.Triangles = append(r.Triangles, 0, i, i+1)
	}
	r.Ops[schemas.Hull2D] = schemas.OpResult{Status: h.Status, N: int32(n), Ns: 1000}
	r.Ops[schemas.Delaunay2D] = schemas.OpResult{Status: h.Status, N: int32(len(r.Triangles) / 3)}
	p := &schemas.Points{Idx: h.Idx}
	if s.Points64 {
		p.X64, p.Y64 = h.X, h.Y
	} else {
		for i := range h.X {
			p.X32, p.Y32, p.Z32 = append(p.X32, float32(h.X[i])), append(p.Y32, float32(h.Y[i])), append(p.Z32, 1)
		}
		p.Intensity = p.Z32
	}
	if r.Offset%2 == 1 { // every other frame has everything that a sensor gives
		r.Pose = &codec.Pose{0, -1, 0, float64(r.Offset), 1, 0, 0, 1e4, 0, 0, 1, -.25}
		for i, v := range p.Int32s() {
			for k := range p.Idx {
				*v = append(*v, int32(i*k))
			}
		}
		for k := range p.Idx {
			p.Elongation, p.TOffsetNs = append(p.Elongation, float32(k)/4), append(p.TOffsetNs, int64(k)-1)
		}
		if len(p.Idx) > 1 { // a point without a value
			p.Label[1], p.TOffsetNs[1] = codec.NoInt32, codec.NoInt64
		}
	}
	r.Points = p
	return r
}

// convexPoints returns n points of a circle, counter-clockwise from the
// lexicographic minimum.
func convexPoints(rng *rand.Rand, n int) (x, y []float64) {
	cx, cy, radius := rng.Float64()*100, rng.Float64()*100, 1+rng.Float64()*50
	turn := rng.Float64()
	type point struct{ x, y float64 }
	points := make([]point, n)
	for i := range points {
		a := 2 * math.Pi * (float64(i) + turn) / float64(max(n, 1))
		points[i] = point{cx + radius*math.Cos(a), cy + radius*math.Sin(a)}
	}
	least := 0
	for i, p := range points {
		if p.x < points[least].x || p.x == points[least].x && p.y < points[least].y {
			least = i
		}
	}
	points = slices.Concat(points[least:], points[:least])
	for _, p := range points {
		x, y = append(x, p.x), append(y, p.y)
	}
	return x, y
}

// Mesh returns n triples that look like a sorted mesh: v0 rises
// slowly, v1 and v2 are near it. The geometry is nobody's.
func Mesh(n int, seed uint64) []int32 {
	rng := rand.New(rand.NewPCG(seed, 1))
	triangles := make([][3]int32, n)
	for i := range triangles {
		v := int32(i / 2)
		triangles[i] = [3]int32{v, v + 1 + rng.Int32N(2000), v + 1 + rng.Int32N(2000)}
	}
	slices.SortFunc(triangles, func(a, b [3]int32) int { return slices.Compare(a[:], b[:]) })
	flat := make([]int32, 0, 3*n)
	for _, t := range triangles {
		flat = append(flat, t[:]...)
	}
	return flat
}
