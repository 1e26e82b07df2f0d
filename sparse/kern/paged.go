package kern

import "entropipe/models/mat"

// Paged holds the keys and values of one key and value head in the form that the
// kernels read, so that a job of one query packs nothing. A page holds Block
// positions: its keys in panels of 16, each [Dim][16], then its values
// [Block][Dim]. Panels and rows of values are padded to a Dim that is a multiple
// of 16. The caller owns the memory; WritePage fills it.
type Paged struct {
	Pages []float32 // consecutive pages of PageSize numbers each
	Block int       // positions of a page; a multiple of 16
	At    []int32   // page of each block of positions; negative if there is none, and no query may read the block
}

// PageSize returns the length of a page of block positions, in float32:
// 2·block·(dim rounded up to a multiple of 16).
func PageSize(block, dim int) int { return 2 * block * wideOf(dim) }

// WritePage stores the rows of k and v, columns column to column+dim-1, in a page
// of block positions, from position at of the page on. A page must be written in
// ascending order of positions. The page need not be cleared before: the first
// row of a panel clears the panel.
func WritePage(page []float32, block, dim, at int, k, v mat.Matrix, column int) {
	wide := wideOf(dim)
	keys, values := page[:block*wide], page[block*wide:2*block*wide]
	for r := 0; r < k.Rows; {
		place := at + r
		if place%panel == 0 {
			clear(values[place*wide:][:panel*wide]) // kernels read whole panels, even half-written ones
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

// fits reports whether At has an entry for every block of rows positions. locate
// checks the entries when they are read.
func (p *Paged) fits(rows int) bool {
	return p.Block > 0 && p.Block%panel == 0 && len(p.At)*p.Block >= rows
}

// abreast reports whether the query heads of a key and value head form one tile.
func (j *Job) abreast() bool { return j.Paged != nil && j.Q.Rows == 1 }

// open makes the pages the memory of a pack.
func (p *pack) open() {
	paged := &p.job.Paged[p.kv]
	p.keyPanel = panel * p.job.wide()
	if len(paged.Pages) > 0 {
		p.keys, p.values = paged.Pages, paged.Pages[paged.Block*p.job.wide():]
	}
}

// locate appends to at[:0] the position of each listed panel among the pages. It
// panics if a panel has no page.
func (p *pack) locate(at, list []int32) []int32 {
	paged := &p.job.Paged[p.kv]
	per := int32(paged.Block / panel)
	pages := int32(len(paged.Pages) / PageSize(paged.Block, p.job.Dim))
	at = at[:0]
	for _, i := range list {
		page := paged.At[i/per]
		if page < 0 || page >= pages {
			panic(badPage)
		}
		at = append(at, page*2*per+i%per)
	}
	return at
}

// unpaged returns a copy of the job with keys and values as rows. Keys and values
// without a page are zeros.
func (j *Job) unpaged() *Job {
	to, wide, cols := *j, j.wide(), j.KVHeads*j.Dim
	to.Paged = nil
	to.K = mat.Of(j.K.Rows, cols, make([]float32, j.K.Rows*cols))
	to.V = mat.Of(j.K.Rows, cols, make([]float32, j.K.Rows*cols))
	for h, paged := range j.Paged {
		for i := range j.K.Rows {
			at := int(paged.At[i/paged.Block])
			if at < 0 {
				continue
			}
			page, place := paged.Pages[at*PageSize(paged.Block, j.Dim):], i%paged.Block
			keys, values := page[place/panel*panel*wide:], page[(paged.Block+place)*wide:]
			for c := range j.Dim {
				to.K.Row(i)[h*j.Dim+c] = keys[c*panel+place%panel]
				to.V.Row(i)[h*j.Dim+c] = values[c]
			}
		}
	}
	return &to
}
