package maxima

import (
	"slices"
	"sync"

	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

const (
	filterFrom = 768     // points; below, all of them go to the list
	sampleMax  = 4096    // largest number of points in a sample
	sampleRate = 64      // sampling stride: one point in sampleRate, between these limits
	sampleMin  = 128     // least number of points in a sample
	workerFrom = 1 << 16 // number of points that keep a goroutine busy
	fieldFrom  = 4096    // survivors that make another pass worth its cost
	shuffle    = 1021    // a prime; no sample's size is a multiple of it
	rounds     = 4       // largest number of samples of the survivors
)

// filter drops points that a sampled point dominates.
type filter[T geom.Float] struct {
	pivots  pivots[T]
	field   field[T]
	sample  [MaxDims][]T
	workers []*worker[T]
	group   sync.WaitGroup
	spare   []int32
}

// worker is the working memory of one goroutine, for its part of a cloud.
type worker[T geom.Float] struct {
	pass   kernel.Pivots[T]
	axes   [MaxDims][]T
	dims   int
	first  int
	ids    []int32
	finite bool
	start  func() // calls filter and tells the group; made once, so that a start does not allocate
}

func (w *worker[T]) filter() {
	w.ids, w.finite = w.pass.Undominated(w.ids[:0], w.axes[:w.dims], w.first)
}

// team returns count workers.
func (f *filter[T]) team(count int) []*worker[T] {
	for len(f.workers) < count {
		w := new(worker[T])
		w.start = func() {
			w.filter()
			f.group.Done()
		}
		f.workers = append(f.workers, w)
	}
	return f.workers[:count]
}

// survivors sets m.ids and m.v to the points that may be maximal.
func (m *Maxima[T]) survivors(axes [][]T) {
	n, dims := len(axes[0]), len(axes)
	m.v = m.room[:dims]
	m.touched += n
	if n < filterFrom || !m.pickFrom(axes, m.Min) {
		m.ids = appendAll(m.ids[:0], n)
		for k, v := range axes {
			if !kernel.Finite(v) {
				panic(badFinite)
			}
			m.v[k] = append(m.v[k][:0], v...)
			if m.Min[k] {
				negate(m.v[k])
			}
		}
		return
	}
	m.firstPass(axes)
	for k, v := range axes {
		m.v[k] = take(m.v[k][:0], v, m.ids, sign[T](m.Min[k]))
	}
	m.usePivots()
	m.useField()
	for range rounds {
		before := len(m.ids)
		if before < fieldFrom {
			return
		}
		if m.pickFrom(m.v, [MaxDims]bool{}) {
			m.usePivots()
		}
		m.useField()
		if 4*len(m.ids) > 3*before {
			return
		}
	}
}

// pickFrom chooses pivots among a sample of points, with the axes in low negated. It
// returns false where the pivots would drop few points.
func (m *Maxima[T]) pickFrom(points [][]T, low [MaxDims]bool) bool {
	n := len(points[0])
	size := min(max(n/sampleRate, sampleMin), sampleMax) &^ 63
	f := &m.filter
	for k, v := range points {
		s, t := sign[T](low[k]), slices.Grow(f.sample[k][:0], sampleMax)[:size]
		for i := range t {
			t[i*shuffle%size] = s * v[kernel.SampleAt(i, size, n)]
		}
		if !kernel.Finite(t) {
			panic(badFinite)
		}
		f.sample[k] = t
	}
	return m.pick(f.sample[:len(points)])
}

// firstPass compares all points with the first group of pivots. A cloud with few
// maximal points costs one pass over memory, and that pass hides the time of one
// group only; the other pivots are for the survivors.
func (m *Maxima[T]) firstPass(axes [][]T) {
	f, n := &m.filter, len(axes[0])
	count := min(max(m.Workers, 1), n/workerFrom+1)
	team := f.team(count)
	for k, w := range team {
		lo, hi := k*n/count, (k+1)*n/count
		for a, v := range axes {
			w.axes[a] = v[lo:hi]
		}
		w.dims, w.first = len(axes), lo
		w.pass.Values, w.pass.Low = f.pivots.best(len(axes)), m.Min
	}
	f.group.Add(count - 1)
	for _, w := range team[1:] {
		go w.start()
	}
	team[0].filter()
	f.group.Wait()
	m.ids, team[0].ids = team[0].ids, m.ids
	finite := true
	for k, w := range team {
		if k > 0 {
			m.ids = append(m.ids, w.ids...)
		}
		finite = finite && w.finite
		clear(w.axes[:]) // the memory belongs to the caller
	}
	if !finite {
		panic(badFinite)
	}
}

// usePivots drops the survivors that a pivot dominates.
func (m *Maxima[T]) usePivots() {
	f := &m.filter
	m.touched += len(m.ids)
	f.pivots.pass.Values = f.pivots.values
	f.spare, _ = f.pivots.pass.Undominated(f.spare[:0], m.v, 0)
	m.moveUp(f.spare)
}

// useField drops the survivors in space that the field covers, where there are
// enough of them.
func (m *Maxima[T]) useField() {
	f := &m.filter
	if len(m.v) == 3 && len(m.ids) >= fieldFrom && m.crowded < 0.9 && f.field.fit(f.sample[:3]) {
		m.touched += len(m.ids)
		f.spare = f.field.outside(f.spare[:0], m.v)
		m.moveUp(f.spare)
	}
}

// moveUp keeps the survivors at the given positions, which ascend.
func (m *Maxima[T]) moveUp(at []int32) {
	for k := range m.v {
		v := m.v[k]
		for j, i := range at {
			v[j] = v[i]
		}
		m.v[k] = v[:len(at)]
	}
	for j, i := range at {
		m.ids[j] = m.ids[i]
	}
	m.ids = m.ids[:len(at)]
}

// take appends factor*v[i] for all i in ids. The filter lets every NaN and +Inf
// pass, and take panics at them; the filter finds -Inf itself.
func take[T geom.Float](dst, v []T, ids []int32, factor T) []T {
	bad := T(0)
	dst = slices.Grow(dst, len(ids))[:len(ids)]
	for k, i := range ids {
		x := v[i]
		bad += x - x
		dst[k] = factor * x
	}
	if bad != 0 {
		panic(badFinite)
	}
	return dst
}

// appendAll appends 0 to n-1.
func appendAll(ids []int32, n int) []int32 {
	ids = slices.Grow(ids, n)[:n]
	for i := range ids {
		ids[i] = int32(i)
	}
	return ids
}

func negate[T geom.Float](v []T) {
	for i := range v {
		v[i] = -v[i]
	}
}
