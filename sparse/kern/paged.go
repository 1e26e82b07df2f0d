package kern

import "entropipe/models/mat"

// Paged is where the keys and values of one key and value head lie, as the
// kernels read them, so that a job of one query packs nothing. A page holds
// Block positions, its keys in panels of 16, each [Dim][16], then its values
// [Block][Dim]; rows of values, and panels, are as long as for a Dim that is a
// multiple of 16.
type Paged struct {
	Pages []float32 // one after the other, PageSize numbers each
	Block int       // a multiple of 16
	At    []int32   // the page of each block of positions, negative: none, and no query may read it
}

// PageSize returns the numbers of a page of block positions.
func PageSize(block, dim int) int { return 2 * block * wideOf(dim) }

// WritePage stores keys and values, dim columns of k and v from column on, in
// a page of block positions from position at on. Rows of a page are written in
// their order; what the page held before is of no meaning.
func WritePage(page []float32, block, dim, at int, k, v mat.Matrix, column int) {
	wide := wideOf(dim)
	keys, values := page[:block*wide], page[block*wide:2*block*wide]
	for r := 0; r < k.Rows; {
		place := at + r
		if place%panel == 0 {
			clear(values[place*wide:][:panel*wide]) // a panel is read whole, before all of it is written
		}
		to := keys[place/panel*panel*wide:][:panel*dim]
		n := 1
		if place%panel == 0 && r+panel <= k.Rows && mat.Best() != mat.Portable {
			n = panel
			turn(to, k.Data[r*k.Stride+column:], k.Stride, dim)
		} else {
			if place%panel == 0 {
				clear(to)
			}
			for c, x := range k.Row(r)[column : column+dim] {
				to[c*panel+place%panel] = x
			}
		}
		for i := range n {
			copy(values[(place+i)*wide:][:dim], v.Row(r + i)[column:])
		}
		r += n
	}
}

// fits says that pages of every block of rows positions are named; where each
// lies is looked at when it is read.
func (p *Paged) fits(rows int) bool {
	return p.Block > 0 && p.Block%panel == 0 && len(p.At)*p.Block >= rows
}

// abreast says that all heads of a key and value head are one tile.
func (j *Job) abreast() bool { return j.Paged != nil && j.Q.Rows == 1 }

// open makes the pages the memory of a pack.
func (p *pack) open() {
	of := &p.job.Paged[p.kv]
	p.keyPanel = panel * p.job.wide()
	if len(of.Pages) > 0 {
		p.keys, p.values = of.Pages, of.Pages[of.Block*p.job.wide():]
	}
}

// locate sets at to where the panels of list are packed.
func (p *pack) locate(at, list []int32) []int32 {
	of := &p.job.Paged[p.kv]
	per := int32(of.Block / panel)
	pages := int32(len(of.Pages) / PageSize(of.Block, p.job.Dim))
	at = at[:0]
	for _, i := range list {
		page := of.At[i/per]
		if page < 0 || page >= pages {
			panic(badPage)
		}
		at = append(at, page*2*per+i%per)
	}
	return at
}

// unpaged returns the job with keys and values as rows; those without a page
// are zeros.
func (j *Job) unpaged() *Job {
	to, wide, cols := *j, j.wide(), j.KVHeads*j.Dim
	to.Paged, to.K, to.V = nil, mat.Of(j.K.Rows, cols, make([]float32, j.K.Rows*cols)), mat.Of(j.K.Rows, cols, make([]float32, j.K.Rows*cols))
	for h, of := range j.Paged {
		for i := range j.K.Rows {
			at := int(of.At[i/of.Block])
			if at < 0 {
				continue
			}
			page, place := of.Pages[at*PageSize(of.Block, j.Dim):], i%of.Block
			keys, values := page[place/panel*panel*wide:], page[(of.Block+place)*wide:]
			for c := range j.Dim {
				to.K.Row(i)[h*j.Dim+c] = keys[c*panel+place%panel]
				to.V.Row(i)[h*j.Dim+c] = values[c]
			}
		}
	}
	return &to
}
