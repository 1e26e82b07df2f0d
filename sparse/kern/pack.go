package kern

import (
	"math"
	"slices"

	"entropipe/models/mat"
)

// pack holds the keys and values of one key and value head of a job, in the
// order of its layout's columns.
type pack struct {
	job    *Job
	kv     int
	panels int       // number of panels of keys; the last panel may be incomplete
	keys   []float32 // [panels][Dim][panel]; zeros where no key is
	values []float32 // [panels*panel][wide]; zeros where no key is
	order  []int32   // [panels*panel] key at each place, MaxInt32 where none is; nil if place i holds key i
	last   []int32   // [panels] largest entry of order in each panel

	keyPanel int // numbers from one panel of keys to the next
}

// wide returns the number of columns of packed values: Dim rounded up to a
// multiple of 16.
func (j *Job) wide() int { return wideOf(j.Dim) }

func wideOf(dim int) int { return (dim + panel - 1) / panel * panel }

// packedPanels returns the number of panels of the keys of a head.
func (j *Job) packedPanels(kv int) int {
	if len(j.Layouts) > 0 && j.Layouts[kv] != nil && j.Layouts[kv].Order != nil {
		l := j.Layouts[kv]
		return l.Cols * l.Block / panel
	}
	return (j.K.Rows + panel - 1) / panel
}

// size returns the number of float32 that fill uses of its memory.
func (p *pack) size() int {
	if p.job.Paged != nil {
		return 0
	}
	return p.panels * panel * (p.job.Dim + p.job.wide())
}

// fill packs the keys and values into the first size numbers of memory and
// returns the rest of it. Later calls reuse tmp.
func (p *pack) fill(memory []float32, tmp *[]float32) (left []float32) {
	j := p.job
	if j.Paged != nil {
		p.open()
		return memory
	}
	n := p.panels * panel
	p.keyPanel = panel * j.Dim
	p.keys, memory = memory[:n*j.Dim:n*j.Dim], memory[n*j.Dim:]
	p.values, memory = memory[:n*j.wide():n*j.wide()], memory[n*j.wide():]
	p.setOrder()
	for i := range p.panels {
		p.soon(j.K, (i+1)*panel)
		p.packKeys(p.keys[i*panel*j.Dim:][:panel*j.Dim], i, tmp)
	}
	for i := range p.panels {
		p.soon(j.V, (i+1)*panel)
		p.packValues(i, i)
	}
	return memory
}

// soon prefetches the rows of the panel that begins at row i.
func (p *pack) soon(m mat.Matrix, i int) {
	if n := min(panel, m.Rows-i); n > 0 {
		fetchRows(m, i, n, p.kv*p.job.Dim, p.job.Dim)
	}
}

// fetchRows prefetches n rows of m from row i on, dim columns from column c on.
func fetchRows(m mat.Matrix, i, n, c, dim int) {
	fetch(&m.Data[i*m.Stride+c], 4*m.Stride, n, (4*dim+63)/64)
}

// few reports whether every query head is one tile. Each tile then reads the
// packed keys once, so that only the listed panels are worth packing, and values
// are read from the job's own matrix.
func (p *pack) few() bool {
	j := p.job
	if j.Paged != nil || j.Dim%panel != 0 || p.ordered() || j.K.Rows == 0 || j.Q.Rows > 6 {
		return false
	}
	l := j.layout(p.kv * (j.Heads / j.KVHeads))
	return l == nil || (j.Offset+j.Q.Rows-1)/l.Block == j.Offset/l.Block
}

// fillListed packs the keys of the listed panels, and the values of the last
// panel if it is incomplete.
func (p *pack) fillListed(list []int32, memory []float32, tmp *[]float32) {
	j := p.job
	n := panel * j.Dim
	p.keyPanel = n
	p.keys, p.values = memory[:len(list)*n], memory[len(list)*n:][:n]
	for i, at := range list {
		p.packKeys(p.keys[i*n:][:n], int(at), tmp)
	}
	if j.K.Rows%panel > 0 {
		p.packValues(0, p.panels-1)
	}
}

func (p *pack) ordered() bool {
	return len(p.job.Layouts) > 0 && p.job.Layouts[p.kv] != nil && p.job.Layouts[p.kv].Order != nil
}

func (p *pack) setOrder() {
	j := p.job
	p.order, p.last = p.order[:0], p.last[:0]
	if !p.ordered() {
		p.order = nil
		return
	}
	for place := range p.panels * panel {
		key := keyOf(j.Layouts[p.kv], place)
		if key < 0 || key >= j.K.Rows {
			key = math.MaxInt32
		}
		p.order = append(p.order, int32(key))
	}
	for keys := range slices.Chunk(p.order, panel) {
		p.last = append(p.last, slices.Max(keys))
	}
}

// row returns the row of data of the key at a place, or nil if no key is there.
func (p *pack) row(data []float32, stride, place int) []float32 {
	if p.order != nil {
		place = int(p.order[place])
	}
	if place >= p.job.K.Rows {
		return nil
	}
	return data[place*stride+p.kv*p.job.Dim:][:p.job.Dim]
}

// packKeys packs panel i into dst.
func (p *pack) packKeys(dst []float32, i int, tmp *[]float32) {
	j := p.job
	if p.order == nil && (i+1)*panel <= j.K.Rows {
		turn(dst, j.K.Data[i*panel*j.K.Stride+p.kv*j.Dim:], j.K.Stride, j.Dim)
		return
	}
	if cap(*tmp) < panel*j.Dim {
		*tmp = make([]float32, panel*j.Dim)
	}
	rows := (*tmp)[:panel*j.Dim]
	for q := range panel {
		to := rows[q*j.Dim:][:j.Dim]
		clear(to[copy(to, p.row(j.K.Data, j.K.Stride, i*panel+q)):])
	}
	turn(dst, rows, j.Dim, j.Dim)
}

// turn sets dst [dim][panel] to panel rows of src, transposed.
func turn(dst, src []float32, stride, dim int) {
	done := dim / 8 * 8
	if done > 0 {
		_ = src[15*stride+dim-1]
		transpose8AVX2(&dst[0], &src[0], 4*stride, dim/8)
		transpose8AVX2(&dst[8], &src[8*stride], 4*stride, dim/8)
	}
	for q := range panel {
		for c := done; c < dim; c++ {
			dst[c*panel+q] = src[q*stride+c]
		}
	}
}

// packValues packs the values of panel i as panel to of p.values.
func (p *pack) packValues(to, i int) {
	wide := p.job.wide()
	for q := range panel {
		dst := p.values[(to*panel+q)*wide:][:wide]
		clear(dst[copy(dst, p.row(p.job.V.Data, p.job.V.Stride, i*panel+q)):])
	}
}
