package support

import (
	"cmp"
	"math"
	"slices"
)

// Budget returns the number of key blocks that query block r reads at a sparsity,
// in a sequence of blocks blocks: the share 1-sparsity of the blocks that it can
// see, and at least one. In a causal model it does not depend on the length of the
// sequence, so that a layout's first rows are the layout of a shorter sequence.
func Budget(sparsity float64, r, blocks int, causal bool) int {
	if causal {
		return max(1, int(math.Ceil((1-sparsity)*float64(r+1)-1e-9)))
	}
	return min(max(1, int(math.Floor((1-sparsity)*float64(blocks)+0.5+1e-9))), blocks)
}

// Top returns budget columns of a row in ascending order: first the columns of
// need, in their order and as far as the budget allows, then the columns with the
// largest scores. score has a number for every column that the row can see. Among
// equal scores the lower column wins. Cost: O(c log c) for c columns.
func Top(score []float64, budget int, need ...int) []int32 {
	cols := make([]int32, 0, len(score))
	for _, c := range need {
		if len(cols) < budget && !slices.Contains(cols, int32(c)) {
			cols = append(cols, int32(c))
		}
	}
	rest := make([]int32, 0, len(score))
	for c := range score {
		if !slices.Contains(cols, int32(c)) {
			rest = append(rest, int32(c))
		}
	}
	slices.SortStableFunc(rest, func(a, b int32) int { return cmp.Compare(score[b], score[a]) })
	cols = append(cols, rest[:min(budget-len(cols), len(rest))]...)
	slices.Sort(cols)
	return cols
}
