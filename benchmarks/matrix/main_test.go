package main

import "testing"

// Rates and ratios are of the shortest runs; a missing library leaves its cells
// empty.
func TestTable(t *testing.T) {
	got := table.Markdown([]result{
		newResult(row{"mul", 10, 10, 10}, 2, map[string][]int64{"ours": {2000, 1000, 3000}, "numpy": {4000}}),
		newResult(row{Op: "exp", M: 10, N: 10}, 1, map[string][]int64{"ours": {100}, "numpy": {50}, "torch": {200}}),
	})
	want := `| operation | threads | ours | NumPy | PyTorch | NumPy/ours | PyTorch/ours |
|---|---|---|---|---|---|---|
| mul 10×10×10 | 2 | 2.0 GF/s | 0.5 GF/s |  | 4.00 |  |
| exp 10×10 | 1 | 1.000 ns | 0.500 ns | 2.000 ns | 0.50 | 2.00 |
`
	if got != want {
		t.Errorf("got\n%s", got)
	}
}
