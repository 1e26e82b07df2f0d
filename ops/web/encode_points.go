package web

import (
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"entropipe/ops/live"
	"entropipe/schemas"
)

func (e *encoder) frame() {
	s, h := e.scene, &e.header
	h.Points, h.Space, h.Triangles, h.Origin = s.NPoints, s.Z != nil, s.Meshed, s.Origin
	if d := s.Drawing; d != nil {
		h.Drawing = &headerDrawing{d.ID, d.Label}
	}
	for op := range schemas.NumOps {
		if r := s.Ops[op]; r.Status != "" {
			h.Ops[op.String()] = headerOp{r.Status, r.N, float64(r.Ns) / 1e6}
		}
	}
	memory := points.Get().(*pointMemory)
	defer points.Put(memory)
	e.choose(memory)
	h.Held, h.Sampled = len(e.sent), s.Sampled || len(e.sent) < s.Len()
	e.reserve()
	e.coordinates()
	e.attributes()
	e.hulls()
	e.mesh()
}

// pointMemory is memory of the points that are sent, for one encoder at a time.
type pointMemory struct {
	at  []int32
	xyz [3][]float32
}

var points = sync.Pool{New: func() any { return new(pointMemory) }}

// choose sets the points to send: those with finite coordinates, of a large frame a sample.
func (e *encoder) choose(memory *pointMemory) {
	s := e.scene
	most := s.Len()
	if !e.exact {
		most = min(most, live.SamplePoints)
	}
	at := live.AppendStrata(memory.at[:0], s.Len(), most)
	x, y, z := memory.xyz[0][:0], memory.xyz[1][:0], memory.xyz[2][:0]
	x, y = slices.Grow(x, len(at))[:len(at)], slices.Grow(y, len(at))[:len(at)]
	n := 0
	if s.Z == nil {
		for _, i := range at {
			x[n], y[n], at[n] = s.X[i], s.Y[i], i
			if finite(x[n]) && finite(y[n]) {
				n++
			}
		}
	} else {
		z = slices.Grow(z, len(at))[:len(at)]
		for _, i := range at {
			x[n], y[n], z[n], at[n] = s.X[i], s.Y[i], s.Z[i], i
			if finite(x[n]) && finite(y[n]) && finite(z[n]) {
				n++
			}
		}
	}
	*memory = pointMemory{at, [3][]float32{x, y, z}}
	e.sent, e.xyz = at[:n], [3][]float32{x[:n], y[:n], nil}
	if s.Z != nil {
		e.xyz[2] = z[:n]
	}
}

// reserve makes room for the sections, so that few of them grow it.
func (e *encoder) reserve() {
	s, each := e.scene, 6
	if e.exact {
		each = 12
	}
	for _, present := range []bool{s.Intensity != nil, s.Return != nil} {
		if present {
			each++
		}
	}
	room := headroom + each*len(e.sent) + 64
	for _, numbers := range s.Corners() {
		room += 12 * len(numbers)
	}
	if s.Hull3 != nil {
		room += 4 * len(s.Hull3.Faces)
	}
	if s.Triangles != nil && (e.exact || len(s.Triangles) <= 3*maxMesh) {
		room += 4 * len(s.Triangles)
	}
	e.body = make([]byte, headroom, room+4*len(s.Strokes))
}

func finite[T float32 | float64](v T) bool { return v-v == 0 }

// at returns the coordinate of point i along an axis.
func (e *encoder) at(axis int, i int32) float32 {
	switch s := e.scene; {
	case axis == 0:
		return s.X[i]
	case axis == 1:
		return s.Y[i]
	case s.Z != nil:
		return s.Z[i]
	}
	return 0
}

// extent returns the least and the largest of some finite values; zeros if there is none.
func extent(values []float32) (low, high float32) {
	if len(values) == 0 {
		return 0, 0
	}
	low, high = values[0], values[0]
	for _, v := range values {
		if v < low {
			low = v
		}
		if v > high {
			high = v
		}
	}
	return low, high
}

// coordinates writes section xyz and the box.
func (e *encoder) coordinates() {
	h, n := &e.header, len(e.sent)
	for axis, values := range e.xyz {
		h.Min[axis], h.Max[axis] = extent(values)
	}
	if e.exact {
		to := e.begin("xyz", "f32", 4, 3*n)
		for axis, values := range e.xyz {
			for k, v := range values { // zeros in the plane
				binary.LittleEndian.PutUint32(to[12*k+4*axis:], math.Float32bits(v))
			}
		}
		return
	}
	to := e.begin("xyz", "i16", 2, 3*n)
	for axis, values := range e.xyz {
		low, scale := float64(h.Min[axis]), 0.
		if extent := float64(h.Max[axis]) - low; extent > 0 {
			scale = 65535 / extent
		}
		if values == nil {
			values = e.xyz[0] // their scale is 0
			low = 0
		}
		for k, v := range values {
			q := (float64(v)-low)*scale + .5
			binary.LittleEndian.PutUint16(to[6*k+2*axis:], uint16(int32(q)-32768))
		}
	}
}

// attributes writes what points have beside coordinates, and the strokes.
func (e *encoder) attributes() {
	s := e.scene
	if s.Intensity != nil {
		e.intensity()
	}
	if s.Return != nil {
		to := e.begin("return", "u8", 1, len(e.sent))
		for k, i := range e.sent {
			to[k] = byte(min(max(s.Return[i], 0), 255))
		}
	}
	if s.Strokes != nil {
		to := e.begin("strokes", "u32", 4, len(s.Strokes))
		for n, end := range s.Strokes {
			k, _ := slices.BinarySearch(e.sent, end)
			binary.LittleEndian.PutUint32(to[4*n:], uint32(k))
		}
	}
}

// intensity writes the intensities, as bytes between the least and the largest finite one.
func (e *encoder) intensity() {
	values := e.scene.Intensity
	low, high := float32(math.Inf(1)), float32(math.Inf(-1))
	for _, i := range e.sent {
		v := values[i]
		if v < low && finite(v) {
			low = v
		}
		if v > high && finite(v) {
			high = v
		}
	}
	if low <= high {
		e.header.Intensity = &[2]float32{low, high}
	}
	to, scale := e.begin("intensity", "u8", 1, len(e.sent)), 0.
	if high > low {
		scale = 255 / (float64(high) - float64(low))
	}
	for k, i := range e.sent {
		if v := values[i]; finite(v) {
			to[k] = byte((float64(v)-float64(low))*scale + .5)
		}
	}
}
