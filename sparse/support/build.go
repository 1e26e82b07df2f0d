package support

// Blocks returns the number of blocks of n keys, ⌈n/block⌉.
func Blocks(n, block int) int { return (n + block - 1) / block }

// New returns the layout for sequences of n tokens in which query block r reads the
// key blocks row(r). row must return them in ascending order. Blocks on the diagonal
// of a causal layout are of kind Edge, and so is the last column if n is no multiple
// of block; all others are Full. New checks nothing: see Validate.
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
