package net

import (
	"math"
	"sync"
	"sync/atomic"

	"entropipe/models/mat"
)

// Runner runs networks. The zero value is ready. A Runner keeps its scratch memory,
// half a kilobyte a point, between calls, and is not safe for concurrent use.
type Runner struct {
	// Workers is the number of goroutines that share the points; 0 and 1 mean the
	// caller's goroutine alone. The result does not depend on Workers.
	Workers int

	lanes  []lane
	heads  []float32 // head of every point without the frame's part, [point][Head]
	peaks  [Global]float32
	offset [Head]float32
	next   atomic.Int64
	run    job
}

// job is the work that the goroutines share.
type job struct {
	net         *Net
	dst, points []float32
	second      bool // the second pass, which needs the frame's features
}

// lane is the scratch memory of one goroutine.
type lane struct {
	features [3][]float32 // features of one tile, by layer
	head     []float32
	peaks    [Global]float32
}

// tile is the number of points that go through all layers together: their
// features and the weights fit in the second cache.
const tile = 144

var ones = func() (v [Head]float32) {
	for i := range v {
		v[i] = 1
	}
	return v
}()

// Displace sets dst to the displacements of the points of one frame. Both slices
// have shape [n][d], d = n.Dims(). Points are in normalised coordinates,
// displacements in units of sigma, from -1 to 1. Displace panics if the lengths
// differ. It does nothing without points.
//
// Cost: 2·(64d + 64·128 + 2·128·256 + 128d) operations a point. The frame's
// features add one vector to the head of every point, so the first pass over the
// points computes the head's other half, and the second pass reads 128 numbers a
// point.
func (r *Runner) Displace(dst, points []float32, n *Net) {
	count := len(points) / n.dims
	if len(points) != count*n.dims || len(dst) != len(points) {
		panic("net: points and displacements of unequal lengths")
	}
	if count == 0 {
		return
	}
	if need := count * Head; cap(r.heads) < need {
		r.heads = make([]float32, need)
	}
	r.heads = r.heads[:count*Head]
	r.prepare()
	r.run = job{net: n, dst: dst, points: points}
	r.share(count)
	r.peaks = r.lanes[0].peaks
	for k := range r.lanes[1:] {
		for i, v := range r.lanes[k+1].peaks {
			r.peaks[i] = max(r.peaks[i], v)
		}
	}
	for j := range r.offset {
		r.offset[j] = n.offset[j]
		for k, w := range n.global[j*Global : (j+1)*Global] {
			r.offset[j] += float32(w * r.peaks[k])
		}
	}
	r.run.second = true
	r.share(count)
	r.run = job{}
}

func (r *Runner) prepare() {
	for len(r.lanes) < max(r.Workers, 1) {
		l := lane{head: make([]float32, tile*Head)}
		for k, w := range Local {
			l.features[k] = make([]float32, tile*w)
		}
		r.lanes = append(r.lanes, l)
	}
	r.lanes = r.lanes[:max(r.Workers, 1)]
	for k := range r.lanes {
		for i := range r.lanes[k].peaks {
			r.lanes[k].peaks[i] = float32(math.Inf(-1))
		}
	}
}

func (r *Runner) work(l *lane, lo, hi int) {
	if r.run.second {
		r.outputs(l, lo, hi)
	} else {
		r.local(l, lo, hi)
	}
}

// local computes the layers of points lo to hi-1 that do not need the frame's
// features.
func (r *Runner) local(l *lane, lo, hi int) {
	n := r.run.net
	x := mat.Of(hi-lo, n.dims, r.run.points[lo*n.dims:hi*n.dims])
	for k, w := range Local {
		y := mat.Of(hi-lo, w, l.features[k])
		n.local[k].Mul(y, x, mat.Epilogue{Bias: n.bias[k], ReLU: true}, 1)
		x = y
	}
	mat.ColumnMax(l.peaks[:], nil, x, 0)
	n.head.Mul(mat.Of(hi-lo, Head, r.heads[lo*Head:hi*Head]), x, mat.Epilogue{}, 1)
}

// outputs computes the displacements of points lo to hi-1.
func (r *Runner) outputs(l *lane, lo, hi int) {
	n := r.run.net
	h := mat.Of(hi-lo, Head, l.head)
	mat.AffineReLU(h, mat.Of(hi-lo, Head, r.heads[lo*Head:hi*Head]), ones[:], r.offset[:])
	out := r.run.dst[lo*n.dims : hi*n.dims]
	n.last.Mul(mat.Of(hi-lo, n.dims, out), h, mat.Epilogue{Bias: n.end}, 1)
	mat.Tanh(out, out)
}

// share distributes the tiles of the points over the goroutines and their lanes.
func (r *Runner) share(count int) {
	if len(r.lanes) == 1 || count <= tile {
		for lo := 0; lo < count; lo += tile {
			r.work(&r.lanes[0], lo, min(lo+tile, count))
		}
		return
	}
	r.next.Store(0)
	var wait sync.WaitGroup
	for k := range r.lanes[1:] {
		wait.Go(func() { r.take(&r.lanes[k+1], count) })
	}
	r.take(&r.lanes[0], count)
	wait.Wait()
}

// take works on tiles until none is left.
func (r *Runner) take(l *lane, count int) {
	for {
		lo := int(r.next.Add(1)-1) * tile
		if lo >= count {
			return
		}
		r.work(l, lo, min(lo+tile, count))
	}
}
