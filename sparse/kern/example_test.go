package kern_test

import (
	"fmt"

	"entropipe/models/mat"
	"entropipe/sparse/kern"
	"entropipe/sparse/support"
)

// Seventeen keys lie in two blocks of 16. The layout lets every query read the
// first block only.
func Example() {
	n := 17
	keys, values := mat.Of(n, 2, make([]float32, 2*n)), mat.Of(n, 2, make([]float32, 2*n))
	for k := range n {
		keys.Row(k)[0] = float32(k % 2)    // odd keys look alike
		values.Row(k)[0] = float32(k % 2)  // how much weight they get
		values.Row(k)[1] = float32(k / 16) // weight of the second block
	}
	query := mat.Of(1, 2, []float32{1, 0})
	job := kern.Job{Q: query, K: keys, V: values, Out: mat.Of(1, 2, make([]float32, 2)), Heads: 1,
		KVHeads: 1, Dim: 2, Scale: 1}
	var s kern.Scratch
	s.Attend([]kern.Job{job}, 1)
	fmt.Printf("dense: odd keys %.3f, second block %.3f\n", job.Out.Row(0)[0], job.Out.Row(0)[1])

	job.Layouts = []*support.Layout{{Block: 16, Rows: 2, Cols: 2, RowPtr: []int32{0, 1, 2}, Col: []int32{0, 0},
		Kind: []uint8{support.Full, support.Full}}}
	stat := s.Audit(nil, &job, nil, 1)[0]
	fmt.Printf("sparse: odd keys %.3f, second block %.3f\n", job.Out.Row(0)[0], job.Out.Row(0)[1])
	fmt.Printf("left out %.3f, error %.3f, at most %.3f\n", stat.Delta, stat.Error, stat.Bound)
	// Output:
	// dense: odd keys 0.707, second block 0.033
	// sparse: odd keys 0.731, second block 0.000
	// left out 0.033, error 0.040, at most 0.065
}
