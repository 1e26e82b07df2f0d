package kern

import (
	"math"

	"entropipe/models/mat"
)

// BlockMass sets dst to the mean softmax mass that the queries of a block give to
// the keys of a block, within 1e-5. The weights are those of dense attention:
// BlockMass ignores layouts. dst is row-major [blocks of queries][blocks of keys],
// and both blocks are counted from the job's first row. Every row sums to 1; it is
// 0 if the job has no keys. BlockMass panics if head is out of range, if dst has
// another length, if block is no multiple of 16, or if the job is paged. Cost: the
// scores of the head, and memory for its packed keys and values. Concurrent calls
// are safe if their dst differ.
func BlockMass(dst []float64, j *Job, head, block int) {
	j.checkRows()
	if head < 0 || head >= j.Heads || block <= 0 || block%panel != 0 {
		panic(badMass)
	}
	rows, cols := (j.Q.Rows+block-1)/block, (j.K.Rows+block-1)/block
	if len(dst) != rows*cols {
		panic(badMass)
	}
	clear(dst)
	if len(dst) == 0 {
		return
	}
	dense := *j
	dense.Layouts = nil
	m := masses{dst, &dense, head, block, cols}
	if mat.Best() == mat.Portable {
		m.portable()
		return
	}
	m.vector()
}

// masses is a call of BlockMass.
type masses struct {
	dst               []float64
	job               *Job
	head, block, cols int
}

// row returns the row of dst that query i belongs to, and the share of that query
// in the row's mean: 1/(queries of the block).
func (m *masses) row(i int) (row []float64, part float64) {
	b := i / m.block
	return m.dst[b*m.cols:][:m.cols], 1 / float64(min(m.block, m.job.Q.Rows-b*m.block))
}

func (m *masses) portable() {
	weights := make([]float64, m.job.K.Rows)
	for i := range m.job.Q.Rows {
		row, part := m.row(i)
		w := weights[:m.job.horizon(i)]
		top, total := math.Inf(-1), 0.0
		for k := range w {
			w[k] = m.job.score(i, k, m.head)
			top = max(top, w[k])
		}
		for k := range w {
			w[k] = math.Exp(w[k] - top)
			total += w[k]
		}
		for k := range w {
			row[k/m.block] += w[k] / total * part
		}
	}
}

// vector takes the weights of six rows at a time from the kernels of Attend.
func (m *masses) vector() {
	j := m.job
	p := pack{job: j, kv: j.kv(m.head), panels: j.packedPanels(j.kv(m.head))}
	w := new(worker)
	p.fill(make([]float32, p.size()), &w.tmp)
	sums := make([]float64, 6*m.cols) // [6][cols] weights of a group, summed by block
	for lo := 0; lo < j.Q.Rows; lo += tileRows {
		hi := min(lo+tileRows, j.Q.Rows)
		v := w.start(&p, m.head, lo, hi)
		for r := 0; r < hi-lo; {
			h := height(hi - lo - r)
			m.group(w, &v, r, h, sums)
			r += h
		}
	}
}

// group adds rows r to r+h-1 of a tile to dst.
func (m *masses) group(w *worker, view *tileView, r, h int, sums []float64) {
	w.blockSums(view, r, h, m.block, m.cols, sums)
	for q := range h {
		row, part := m.row(view.lo + r + q)
		for b, s := range sums[q*m.cols:][:m.cols] {
			row[b] += s / float64(w.total[r+q]) * part
		}
	}
}

// blockSums computes the weights of rows r to r+h-1 of a tile for all listed
// panels; w.total becomes their sum. If sums [h][cols] is not nil, it receives the
// sums by block. When a chunk raises a row's top, the sums of earlier chunks are
// scaled by w.factor, as the sums of values are.
func (w *worker) blockSums(view *tileView, r, h, block, cols int, sums []float64) {
	clear(sums)
	for at := 0; at < len(w.list); at += chunk {
		n := w.weights(view, r, h, at, min(at+chunk, len(w.list)))
		if n == 0 {
			break
		}
		if sums == nil {
			continue
		}
		for q := range h {
			row := sums[q*cols:][:cols]
			for b := range min(cols, at*panel/block+1) {
				row[b] *= float64(w.factor[r+q])
			}
			for p := range n {
				row[(at+p)*panel/block] += float64(sumOf(w.scores[q*lead+p*panel:][:panel]))
			}
		}
	}
}

// sumOf adds the numbers of a panel in four chains: in a single chain each
// addition would wait for the one before.
func sumOf(s []float32) float32 {
	_ = s[panel-1]
	return s[0] + s[4] + s[8] + s[12] + (s[1] + s[5] + s[9] + s[13]) +
		(s[2] + s[6] + s[10] + s[14] + (s[3] + s[7] + s[11] + s[15]))
}
