package kern

import "math"

// pack holds the keys and values of one key and value head of a job, in the
// order of its layout's columns.
type pack struct {
	job    *Job
	kv     int
	panels int       // of keys; the last may lack some
	keys   []float32 // [panels][Dim][panel]; zeros where no key is
	values []float32 // [panels*panel][wide]; zeros where no key is
	order  []int32   // [panels*panel] the key at a place, MaxInt32 where none is; nil: the place itself
}

// wide is the number of columns of packed values.
func (j *Job) wide() int { return (j.Dim + panel - 1) / panel * panel }

// packedPanels is how many panels the keys of a head take.
func (j *Job) packedPanels(kv int) int {
	if len(j.Layouts) > 0 && j.Layouts[kv] != nil && j.Layouts[kv].Order != nil {
		l := j.Layouts[kv]
		return l.Cols * l.Block / panel
	}
	return (j.K.Rows + panel - 1) / panel
}

// size is the number of floats that reset takes.
func (p *pack) size() int { return p.panels * panel * (p.job.Dim + p.job.wide()) }

// fill packs into memory, of which it takes size numbers, and returns what is
// left. tmp is used again by later calls.
func (p *pack) fill(memory []float32, tmp *[]float32) (left []float32) {
	j := p.job
	n := p.panels * panel
	p.keys, memory = memory[:n*j.Dim:n*j.Dim], memory[n*j.Dim:]
	p.values, memory = memory[:n*j.wide():n*j.wide()], memory[n*j.wide():]
	p.setOrder()
	for i := range p.panels {
		p.packKeys(i, tmp)
	}
	p.packValues()
	return memory
}

func (p *pack) setOrder() {
	j := p.job
	p.order = p.order[:0]
	if len(j.Layouts) == 0 || j.Layouts[p.kv] == nil || j.Layouts[p.kv].Order == nil {
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
}

// row returns the numbers of the key at a place in m, nil where no key is.
func (p *pack) row(data []float32, stride, place int) []float32 {
	if p.order != nil {
		place = int(p.order[place])
	}
	if place >= p.job.K.Rows {
		return nil
	}
	return data[place*stride+p.kv*p.job.Dim:][:p.job.Dim]
}

// packKeys packs panel i.
func (p *pack) packKeys(i int, tmp *[]float32) {
	j := p.job
	dst := p.keys[i*panel*j.Dim:][:panel*j.Dim]
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

func (p *pack) packValues() {
	wide := p.job.wide()
	for place := range p.panels * panel {
		to := p.values[place*wide:][:wide]
		clear(to[copy(to, p.row(p.job.V.Data, p.job.V.Stride, place)):])
	}
}
