package support

import (
	"fmt"
	"slices"
)

// Kinds of an entry of a Layout.
const (
	Full   uint8 = iota // every query of the block reads every key of the block
	Edge                // causality or the end of the sequence cut the block: positions decide
	Masked              // Bits select keys for each query, and positions cut further
)

// MaxBlocks is the largest number of rows or columns of a layout: sequences of
// a million keys in blocks of 16.
const MaxBlocks = 1 << 16

// Layout lists the blocks of keys that every block of queries reads, in compressed
// sparse rows of blocks. A Layout must not change after it is made; several
// goroutines may then read it at once.
//
// The first rows and columns of a layout serve every sequence of at most Cols*Block
// keys (Prefix). A layout with an Order serves sequences of len(Order) keys only.
type Layout struct {
	Block      int      // queries of a row block and keys of a column block: 16, 32, 64 or 128
	Rows, Cols int      // numbers of blocks
	RowPtr     []int32  // [Rows+1] entries of row r are RowPtr[r] to RowPtr[r+1]-1
	Col        []int32  // [entries] column block, ascending within a row
	Kind       []uint8  // [entries] Full, Edge or Masked
	Bits       []uint64 // [masked entries][Block*Block bits], row-major, lowest bit first
	// Order holds the keys in the order of the columns: column block c consists of keys
	// Order[c*Block:(c+1)*Block]. It is nil if the keys have their own order.
	Order []int32
}

// Words returns the number of words of the bits of a Masked entry: Block²/64.
func (l *Layout) Words() int { return l.Block * l.Block / 64 }

// Row returns the columns that row r reads, and their kinds. Both are views.
func (l *Layout) Row(r int) (cols []int32, kinds []uint8) {
	lo, hi := l.RowPtr[r], l.RowPtr[r+1]
	return l.Col[lo:hi], l.Kind[lo:hi]
}

// Validate returns an error for the first fault of a layout: a size out of bounds,
// a column out of range or order, a row without a block, a Full block that
// positions cut, too many or too few bits, an Order that is no permutation, or a
// query without a key. A causal layout must have no block above the diagonal, every
// block on the diagonal with every query's own key, and no Order, because queries
// would then read later keys. Cost: O(entries + bits).
func (l *Layout) Validate(causal bool) error {
	if err := l.validateSizes(causal); err != nil {
		return err
	}
	if err := l.validateOrder(); err != nil {
		return err
	}
	masked := 0
	for r := range l.Rows {
		cols, kinds := l.Row(r)
		if len(cols) == 0 {
			return fmt.Errorf("query block %d reads no key block", r)
		}
		whole := false // a block that gives every query a key
		for i, c := range cols {
			if c < 0 || int(c) >= l.Cols || i > 0 && c <= cols[i-1] {
				return fmt.Errorf("query block %d: key block %d out of range or order (%d blocks)", r, c, l.Cols)
			}
			if causal && int(c) > r {
				return fmt.Errorf("query block %d reads key block %d, which lies after it", r, c)
			}
			if kinds[i] == Full && (causal && int(c) == r || (int(c)+1)*l.Block > l.keys()) {
				return fmt.Errorf("query block %d: key block %d is cut by positions but its kind is full", r, c)
			}
			whole = whole || kinds[i] != Masked
		}
		if causal && int(cols[len(cols)-1]) != r {
			return fmt.Errorf("query block %d does not read its own keys", r)
		}
		n := count(kinds, Masked)
		if err := l.validateBits(r, masked, n, whole, causal); err != nil {
			return err
		}
		masked += n
	}
	return nil
}

func (l *Layout) validateSizes(causal bool) error {
	if !slices.Contains([]int{16, 32, 64, 128}, l.Block) {
		return fmt.Errorf("the block is %d but must be 16, 32, 64 or 128", l.Block)
	}
	if l.Rows <= 0 || l.Cols <= 0 || l.Rows > MaxBlocks || l.Cols > MaxBlocks {
		return fmt.Errorf("the layout has %d x %d blocks, but both must be 1 to %d", l.Rows, l.Cols, MaxBlocks)
	}
	if causal && l.Rows != l.Cols {
		return fmt.Errorf("the layout has %d x %d blocks, but a causal layout is square", l.Rows, l.Cols)
	}
	if causal && l.Order != nil {
		return fmt.Errorf("a causal layout has an order of keys, with which queries would read later keys")
	}
	if len(l.RowPtr) != l.Rows+1 || l.RowPtr[0] != 0 || int(l.RowPtr[l.Rows]) != len(l.Col) ||
		len(l.Kind) != len(l.Col) {
		return fmt.Errorf("row pointers, columns and kinds do not fit together")
	}
	for r := range l.Rows {
		if l.RowPtr[r+1] < l.RowPtr[r] {
			return fmt.Errorf("row pointer %d is less than the one before it", r+1)
		}
	}
	masked := 0
	for i, k := range l.Kind {
		if k > Masked {
			return fmt.Errorf("entry %d is of kind %d, which does not exist", i, k)
		}
		if k == Masked {
			masked++
		}
	}
	if len(l.Bits) != masked*l.Words() {
		return fmt.Errorf("%d masked blocks have %d words of bits but must have %d",
			masked, len(l.Bits), masked*l.Words())
	}
	return nil
}

// validateBits checks the n Masked entries of row r, of which the first is number
// first of the layout's Masked entries. whole is true if the row has an entry of
// another kind.
func (l *Layout) validateBits(r, first, n int, whole, causal bool) error {
	if n == 0 || whole && !causal {
		return nil
	}
	_, kinds := l.Row(r)
	if !causal {
		if q := l.keyless(r, first, l.keys()); q >= 0 && (l.Order == nil || r*l.Block+q < len(l.Order)) {
			return fmt.Errorf("query block %d: query %d of it reads no key", r, q)
		}
		return nil
	}
	for q := range l.Block {
		if kinds[len(kinds)-1] == Masked && !l.bit(l.Bits[(first+n-1)*l.Words():], q, q) {
			return fmt.Errorf("query block %d: query %d of it does not read its own key", r, q)
		}
	}
	return nil
}

// keyless returns the first query of row r that reads none of the first n keys of
// the layout's order, or -1 if every query reads one. The row's first Masked entry
// is number first of the layout's.
func (l *Layout) keyless(r, first, n int) int {
	cols, kinds := l.Row(r)
	for q := range l.Block {
		some := false
		for i, at := 0, first; i < len(cols) && !some; i++ {
			from := int(cols[i]) * l.Block
			if kinds[i] != Masked {
				some = from < n
				continue
			}
			bits := l.Bits[at*l.Words():]
			for c := 0; c < min(l.Block, n-from) && !some; c++ {
				some = l.bit(bits, q, c)
			}
			at++
		}
		if !some {
			return q
		}
	}
	return -1
}

func (l *Layout) bit(bits []uint64, q, k int) bool {
	at := q*l.Block + k
	return bits[at/64]>>(at%64)&1 == 1
}

func (l *Layout) validateOrder() error {
	if l.Order == nil {
		return nil
	}
	if n := len(l.Order); n > l.Cols*l.Block || n <= (l.Cols-1)*l.Block {
		return fmt.Errorf("the order has %d keys, which are not %d blocks of %d", n, l.Cols, l.Block)
	}
	seen := make([]bool, len(l.Order))
	for _, k := range l.Order {
		if k < 0 || int(k) >= len(seen) || seen[k] {
			return fmt.Errorf("the order of keys is no permutation: %d", k)
		}
		seen[k] = true
	}
	return nil
}

// keys returns the largest number of keys that the layout serves.
func (l *Layout) keys() int {
	if l.Order != nil {
		return len(l.Order)
	}
	return l.Cols * l.Block
}

// Sparsity returns 1 - (blocks read)/(blocks that a dense layout reads): 0 for a
// full layout. Masked blocks count as read.
func (l *Layout) Sparsity(causal bool) float64 {
	all := l.Rows * l.Cols
	if causal {
		all = 0
		for r := range l.Rows {
			all += min(r+1, l.Cols)
		}
	}
	return 1 - float64(len(l.Col))/float64(all)
}

// Prefix returns the layout of the first n keys and queries; it is l itself if n is
// the length of l. Prefix returns nil if l does not serve n: if it has too few
// columns, an Order of another length, or a query that would read no key. Cost:
// O(entries + bits) and memory for the result.
func (l *Layout) Prefix(n int) *Layout {
	blocks := (n + l.Block - 1) / l.Block
	switch {
	case n <= 0 || blocks > l.Cols || blocks > l.Rows:
		return nil
	case l.Order != nil:
		if n != len(l.Order) {
			return nil
		}
		return l
	case blocks == l.Cols && blocks == l.Rows && n == l.Cols*l.Block:
		return l
	}
	p := &Layout{Block: l.Block, Rows: blocks, Cols: blocks, RowPtr: make([]int32, 1, blocks+1)}
	masked := 0
	for r := range blocks {
		cols, kinds := l.Row(r)
		if q := l.keyless(r, masked, n); q >= 0 && r*l.Block+q < n {
			return nil
		}
		for i, c := range cols {
			if int(c) < blocks {
				kind := kinds[i]
				if kind == Full && (int(c)+1)*l.Block > n {
					kind = Edge
				}
				if kind == Masked {
					p.Bits = append(p.Bits, l.Bits[masked*l.Words():(masked+1)*l.Words()]...)
				}
				p.Col, p.Kind = append(p.Col, c), append(p.Kind, kind)
			}
			if kinds[i] == Masked {
				masked++
			}
		}
		p.RowPtr = append(p.RowPtr, int32(len(p.Col)))
	}
	return p
}

// Equal reports whether all fields of two layouts are equal.
func (l *Layout) Equal(m *Layout) bool {
	return l.Block == m.Block && l.Rows == m.Rows && l.Cols == m.Cols &&
		slices.Equal(l.RowPtr, m.RowPtr) && slices.Equal(l.Col, m.Col) && slices.Equal(l.Kind, m.Kind) &&
		slices.Equal(l.Bits, m.Bits) && slices.Equal(l.Order, m.Order) && (l.Order == nil) == (m.Order == nil)
}

func count(kinds []uint8, kind uint8) int {
	n := 0
	for _, k := range kinds {
		if k == kind {
			n++
		}
	}
	return n
}

// AppendKeys appends to dst the keys that a query of a sequence of n tokens reads,
// in the order of the columns. A query beyond the layout's rows reads none.
func (l *Layout) AppendKeys(dst []int32, query, n int, causal bool) []int32 {
	r, q := query/l.Block, query%l.Block
	if r >= l.Rows {
		return dst
	}
	cols, kinds := l.Row(r)
	masked := count(l.Kind[:l.RowPtr[r]], Masked)
	for i, c := range cols {
		bits := []uint64(nil)
		if kinds[i] == Masked {
			bits = l.Bits[masked*l.Words():][:l.Words()]
			masked++
		}
		for k := range l.Block {
			key := int(c)*l.Block + k
			if l.Order != nil {
				if key >= len(l.Order) {
					break
				}
				key = int(l.Order[key])
			}
			if key < n && (!causal || key <= query) && (bits == nil || l.bit(bits, q, k)) {
				dst = append(dst, int32(key))
			}
		}
	}
	return dst
}
