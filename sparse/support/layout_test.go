package support

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawLayout draws a valid layout of at most 6 blocks of 16, that a sequence of
// n tokens fills.
func drawLayout(t *rapid.T, causal bool) (l *Layout, n int) {
	n = rapid.IntRange(1, 96).Draw(t, "n")
	blocks := Blocks(n, 16)
	l = New(n, 16, causal, func(r int) []int32 {
		var cols []int32
		for c := range blocks {
			if c == r || (!causal || c < r) && rapid.Bool().Draw(t, "read") {
				cols = append(cols, int32(c))
			}
		}
		return cols
	})
	for r := range l.Rows {
		cols, kinds := l.Row(r)
		for i, c := range cols {
			if int(c) == r || rapid.IntRange(0, 3).Draw(t, "masked") > 0 {
				continue
			}
			kinds[i] = Masked
		}
	}
	for range count(l.Kind, Masked) * l.Words() {
		l.Bits = append(l.Bits, rapid.Uint64().Draw(t, "bits"))
	}
	if !causal && rapid.Bool().Draw(t, "ordered") {
		for k := range n {
			l.Order = append(l.Order, int32(k))
		}
		l.Order = rapid.Permutation(l.Order).Draw(t, "order")
	}
	return l, n
}

func TestLayoutsThatAreMadeAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		causal := rapid.Bool().Draw(t, "causal")
		l, _ := drawLayout(t, causal)
		if err := l.Validate(causal); err != nil {
			t.Fatalf("%+v: %v", l, err)
		}
		if s := l.Sparsity(causal); s < 0 || s >= 1 {
			t.Fatalf("sparsity %v", s)
		}
	})
}

// A prefix of a layout reads what the layout reads, as far as there are keys:
// for a causal one exactly that.
func TestPrefixReadsWhatTheLayoutReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		causal := rapid.Bool().Draw(t, "causal")
		l, most := drawLayout(t, causal)
		n := rapid.IntRange(1, most).Draw(t, "prefix")
		p := l.Prefix(n)
		if p == nil {
			if l.Order != nil && n != most || leavesARowEmpty(l, n) {
				return
			}
			t.Fatalf("no prefix of %d", n)
		}
		if l.Order == nil && p.Rows != Blocks(n, 16) {
			t.Fatalf("%d rows for %d tokens", p.Rows, n)
		}
		for q := range n {
			want := slices.DeleteFunc(l.AppendKeys(nil, q, most, causal), func(k int32) bool { return int(k) >= n })
			if got := p.AppendKeys(nil, q, n, causal); !slices.Equal(got, want) {
				t.Fatalf("query %d of %d reads %v, want %v", q, n, got, want)
			}
		}
		for i, k := range p.Kind {
			if k == Full && l.Order == nil && (int(p.Col[i])+1)*16 > n {
				t.Fatalf("entry %d of the prefix of %d is kind is full", i, n)
			}
		}
	})
}

func leavesARowEmpty(l *Layout, n int) bool {
	for r := range Blocks(n, l.Block) {
		if cols, _ := l.Row(r); int(cols[0]) >= Blocks(n, l.Block) {
			return true
		}
	}
	return false
}

// A query whose bits name keys beyond a prefix alone would read nothing there:
// such a prefix does not exist, and longer ones do.
func TestPrefixLeavesEveryQueryAKey(t *testing.T) {
	l := &Layout{Block: 16, Rows: 2, Cols: 2, RowPtr: []int32{0, 2, 4}, Col: []int32{0, 1, 0, 1},
		Kind: []uint8{Masked, Masked, Full, Full}}
	l.Bits = make([]uint64, 2*l.Words())
	for q := range 16 { // query 3 reads key 26, the others key 0
		at := q * 16
		if q == 3 {
			at += 16*16 + 10
		}
		l.Bits[at/64] |= 1 << (at % 64)
	}
	if err := l.Validate(false); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 32; n++ {
		p := l.Prefix(n)
		if want := n <= 3 || n >= 27; (p != nil) != want {
			t.Errorf("prefix of %d: %+v", n, p)
		}
		for q := 0; p != nil && q < n; q++ {
			if len(p.AppendKeys(nil, q, n, false)) == 0 {
				t.Errorf("prefix of %d: query %d reads no key", n, q)
			}
		}
	}
	for k := range int32(26) { // place 26 holds no key
		l.Order = append(l.Order, k)
	}
	l.Kind[3] = Edge
	if err := l.Validate(false); err == nil || !strings.Contains(err.Error(), "query 3 of it reads no key") {
		t.Errorf("bits where an order has no key: %v", err)
	}
	beyond := &Layout{Block: 16, Rows: 1, Cols: 1, RowPtr: []int32{0, 1}, Col: []int32{0}, Kind: []uint8{Masked},
		Order: []int32{2, 0, 1}}
	beyond.Bits = make([]uint64, beyond.Words())
	for q := range 3 {
		beyond.Bits[q*16/64] |= 1 << (q * 16 % 64)
	}
	if err := beyond.Validate(false); err != nil {
		t.Errorf("queries 3 to 15 of three do not exist: %v", err)
	}
}

func TestPrefixOfTheWholeIsTheLayout(t *testing.T) {
	l := full(64, false)
	if l.Prefix(64) != l {
		t.Error("a copy was made")
	}
	for _, n := range []int{-1, 0, 65} {
		if p := l.Prefix(n); p != nil {
			t.Errorf("%d tokens: %+v", n, p)
		}
	}
}

func full(n int, causal bool) *Layout {
	blocks := Blocks(n, 16)
	return New(n, 16, causal, func(r int) (cols []int32) {
		for c := range blocks {
			if !causal || c <= r {
				cols = append(cols, int32(c))
			}
		}
		return cols
	})
}

func TestSparsityIsRelativeToWhatCanBeRead(t *testing.T) {
	for _, causal := range []bool{false, true} {
		if s := full(96, causal).Sparsity(causal); s != 0 {
			t.Errorf("a full layout, causal %v: %v", causal, s)
		}
	}
	diagonal := New(64, 16, true, func(r int) []int32 { return []int32{int32(r)} })
	if s := diagonal.Sparsity(true); math.Abs(s-0.6) > 1e-12 {
		t.Errorf("4 of 10 blocks: %v", s)
	}
	if s := diagonal.Sparsity(false); math.Abs(s-0.75) > 1e-12 {
		t.Errorf("4 of 16 blocks: %v", s)
	}
}

func TestValidateFindsEveryFault(t *testing.T) {
	for _, c := range []struct {
		name   string
		causal bool
		breaks func(l *Layout)
		want   string
	}{
		{"block", false, func(l *Layout) { l.Block = 17 }, "block is 17"},
		{"no rows", false, func(l *Layout) { l.Rows = 0 }, "must be 1 to"},
		{"huge", false, func(l *Layout) { l.Cols = MaxBlocks + 1 }, "must be 1 to"},
		{"not square", true, func(l *Layout) { l.Cols++ }, "square"},
		{"pointers", false, func(l *Layout) { l.RowPtr = l.RowPtr[1:] }, "do not fit"},
		{"pointers fall", false, func(l *Layout) { l.RowPtr[1], l.RowPtr[2] = l.RowPtr[2], l.RowPtr[1] },
			"less than the one before"},
		{"kinds", false, func(l *Layout) { l.Kind = l.Kind[1:] }, "do not fit"},
		{"kind", false, func(l *Layout) { l.Kind[0] = 3 }, "does not exist"},
		{"column below", false, func(l *Layout) { l.Col[0] = -1 }, "out of range"},
		{"column beyond", false, func(l *Layout) { l.Col[len(l.Col)-1] = 4 }, "out of range"},
		{"columns fall", false, func(l *Layout) { l.Col[0], l.Col[1] = 1, 0 }, "order"},
		{"empty row", false, func(l *Layout) { l.RowPtr[1] = 0 }, "reads no key block"},
		{"future", true, func(l *Layout) { l.Col[0] = 1 }, "after it"},
		{"full diagonal", true, func(l *Layout) { l.Kind[0] = Full }, "kind is full"},
		{"no diagonal", true, func(l *Layout) { *l = *New(64, 16, true, func(int) []int32 { return []int32{0} }) },
			"own keys"},
		{"bits", false, func(l *Layout) { l.Bits = make([]uint64, 4) }, "words of bits"},
		{"bits missing", false, func(l *Layout) { l.Kind[0] = Masked }, "words of bits"},
		{"own bit", true, func(l *Layout) { l.Kind[0], l.Bits = Masked, make([]uint64, 4) }, "its own key"},
		{"no bit", false, func(l *Layout) { diagonalBits(l); clear(l.Bits[8:9]) }, "reads no key"},
		{"order causal", true, func(l *Layout) { l.Order = []int32{0} }, "read later keys"},
		{"order short", false, func(l *Layout) { l.Order = []int32{0} }, "order has 1 keys"},
		{"order twice", false, func(l *Layout) { l.Order = make([]int32, 64) }, "permutation"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := full(64, c.causal)
			c.breaks(l)
			err := l.Validate(c.causal)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// diagonalBits makes a layout whose queries read their own key alone.
func diagonalBits(l *Layout) {
	*l = *New(64, 16, false, func(r int) []int32 { return []int32{int32(r)} })
	for i := range l.Kind {
		l.Kind[i] = Masked
		bits := make([]uint64, l.Words())
		for q := range 16 {
			bits[q*17/64] |= 1 << (q * 17 % 64)
		}
		l.Bits = append(l.Bits, bits...)
	}
}

func TestBudgetsOfCausalRowsDoNotDependOnTheLength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sparsity := rapid.Float64Range(0, 0.99).Draw(t, "sparsity")
		r := rapid.IntRange(0, 200).Draw(t, "row")
		a, b := Budget(sparsity, r, r+1, true), Budget(sparsity, r, r+300, true)
		if a != b || a < 1 || a > r+1 {
			t.Fatalf("%d and %d of %d", a, b, r+1)
		}
		exact := (1 - sparsity) * 200
		if whole := Budget(sparsity, r, 200, false); whole < 1 ||
			math.Abs(float64(whole)-exact) > 0.5+1e-6 && !(whole == 1 && exact < 1) {
			t.Fatalf("%d of 200 at %v", whole, sparsity)
		}
	})
}

// Whatever the scores, Top keeps what is needed, then the largest, then the
// lowest.
func TestTopIsByScoreThenByNumber(t *testing.T) {
	for _, c := range []struct {
		score  []float64
		budget int
		need   []int
		want   []int32
	}{
		{[]float64{1, 3, 2, 3}, 2, nil, []int32{1, 3}},
		{[]float64{1, 3, 3, 3}, 2, nil, []int32{1, 2}},
		{[]float64{0, 0, 0, 9}, 1, []int{2, 0}, []int32{2}},
		{[]float64{0, 0, 0, 9}, 3, []int{2, 2}, []int32{0, 2, 3}},
		{[]float64{5}, 4, []int{0}, []int32{0}},
	} {
		if got := Top(c.score, c.budget, c.need...); !slices.Equal(got, c.want) {
			t.Errorf("%v, %d, %v: got %v, want %v", c.score, c.budget, c.need, got, c.want)
		}
	}
}
