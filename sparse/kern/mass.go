package kern

import (
	"math"

	"entropipe/models/mat"
)

// BlockMass sets dst to the mean softmax mass that the queries of a block give
// to the keys of a block, with dense weights (layouts are not looked at), within
// 1e-5. dst is row-major [blocks of queries][blocks of keys], both counted from
// the job's first row; every row sums to 1, or to 0 without keys. It panics if
// head or dst do not fit, or if block is no multiple of 16. Cost: as the scores
// of the head. It allocates, and may run at the same time as other calls.
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

// row is the row of dst that query i belongs to, and its part of the mean.
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
	sums := make([]float64, 6*m.cols) // of a group's weights, by block
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

// group adds rows r to r+h-1 of a tile.
func (m *masses) group(w *worker, v *view, r, h int, sums []float64) {
	w.blockSums(v, r, h, m.block, m.cols, sums)
	for q := range h {
		row, part := m.row(v.lo + r + q)
		for b, s := range sums[q*m.cols:][:m.cols] {
			row[b] += s / float64(w.total[r+q]) * part
		}
	}
}

// blockSums takes rows r to r+h-1 of a tile through the weights of its list, of
// which w.total is the sum. sums [h][cols], unless it is nil, becomes the sums by
// block. Sums of earlier chunks shrink as those of values would.
func (w *worker) blockSums(v *view, r, h, block, cols int, sums []float64) {
	clear(sums)
	for at := 0; at < len(w.list); at += chunk {
		n := w.weights(v, r, h, at, min(at+chunk, len(w.list)))
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

// sumOf adds the numbers of a panel in four chains: one would wait for each sum.
func sumOf(s []float32) float32 {
	_ = s[panel-1]
	return s[0] + s[4] + s[8] + s[12] + (s[1] + s[5] + s[9] + s[13]) + (s[2] + s[6] + s[10] + s[14] + (s[3] + s[7] + s[11] + s[15]))
}
