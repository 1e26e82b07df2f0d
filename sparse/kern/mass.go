package kern

import "math"

// BlockMass sets dst to the mean softmax mass that the queries of a block give
// to the keys of a block, with dense weights (layouts are not looked at). dst is
// row-major [blocks of queries][blocks of keys], both counted from the job's
// first row; every row sums to 1, or to 0 without keys. Cost: as the scores of
// the head.
func BlockMass(dst []float64, j *Job, head, block int) {
	j.check()
	if head < 0 || head >= j.Heads || block <= 0 {
		panic(badMass)
	}
	rows, cols := (j.Q.Rows+block-1)/block, (j.K.Rows+block-1)/block
	if len(dst) != rows*cols {
		panic(badMass)
	}
	clear(dst)
	weights := make([]float64, j.K.Rows)
	for i := range j.Q.Rows {
		row := dst[i/block*cols:][:cols]
		w := weights[:j.horizon(i)]
		top, total := math.Inf(-1), 0.0
		for k := range w {
			w[k] = j.score(i, k, head)
			top = max(top, w[k])
		}
		for k := range w {
			w[k] = math.Exp(w[k] - top)
			total += w[k]
		}
		part := 1 / (total * float64(min(block, j.Q.Rows-i/block*block)))
		for k := range w {
			row[k/block] += w[k] * part
		}
	}
}
