package support

// Blocks returns the number of blocks that n keys make.
func Blocks(n, block int) int { return (n + block - 1) / block }

// New makes the layout of sequences of n tokens whose query block r reads the
// key blocks row(r), ascending: the diagonal is an Edge when causal, and so is
// the last column where n cuts it. Validate judges the result.
func New(n, block int, causal bool, row func(r int) []int32) *Layout {
	blocks := Blocks(n, block)
	l := &Layout{Block: block, Rows: blocks, Cols: blocks, RowPtr: make([]int32, 1, blocks+1)}
	for r := range blocks {
		for _, c := range row(r) {
			kind := Full
			if causal && int(c) == r || (int(c)+1)*block > n {
				kind = Edge
			}
			l.Col, l.Kind = append(l.Col, c), append(l.Kind, kind)
		}
		l.RowPtr = append(l.RowPtr, int32(len(l.Col)))
	}
	return l
}
