package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"entropipe/models/mat"
	"entropipe/sparse/kern"
	"entropipe/sparse/support"
)

// newSet is a set of 2 layers of 2 heads with random layouts for one bucket of
// n tokens; layer 1's second head is dense.
func newSet(causal bool, n int, seed uint64) *support.Set {
	r := rand.New(rand.NewPCG(1, seed))
	s := &support.Set{
		Facts: support.Facts{Arch: "gpt2", Weights: "00", Layers: 2, Heads: 4, KVHeads: 2, Dim: 32, Causal: causal},
		Block: 16, Mode: support.Static, Select: support.Selector{Name: "mass", Sparsity: 0.5}, Serve: support.Sparse,
	}
	b := support.Bucket{Length: n, Of: []int32{0, 1, 2, -1}}
	blocks := support.Blocks(n, 16)
	for range 3 {
		b.Layouts = append(b.Layouts, support.New(n, 16, causal, func(row int) (cols []int32) {
			for c := range blocks {
				if c == row || (!causal || c < row) && r.IntN(3) == 0 {
					cols = append(cols, int32(c))
				}
			}
			return cols
		}))
	}
	s.Buckets = []support.Bucket{b}
	return s
}

func newPlanner(t testing.TB, s *support.Set, always bool) *Planner {
	t.Helper()
	p, err := New(s, Facts{Facts: s.Facts, Always: always})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPlansSayWhyTheyAreDense(t *testing.T) {
	dense := newSet(false, 512, 1)
	dense.Serve, dense.Reason = support.Dense, "loses 3 points"
	all := newSet(false, 512, 1)
	all.Buckets[0].Of = []int32{-1, -1, -1, -1}
	learned := newSet(false, 512, 1)
	learned.Quality = &support.Quality{Metric: "perplexity", Unit: "%", LostLow: -12, LostHigh: -8}
	for _, c := range []struct {
		name   string
		set    *support.Set
		always bool
		n      int
		want   string
	}{
		{"short, but learned with the mask", learned, false, 40, ""},
		{"sparse", newSet(false, 512, 1), false, 512, ""},
		{"the set", dense, false, 512, "the mask says dense: loses 3 points"},
		{"the set, forced", dense, true, 512, ""},
		{"short", newSet(false, 512, 1), false, 40, "40 tokens with"},
		{"short, forced", newSet(false, 512, 1), true, 40, ""},
		{"long", newSet(false, 512, 1), true, 513, "longer than the longest bucket, 512"},
		{"empty", newSet(false, 512, 1), true, 0, "no tokens"},
		{"dense heads", all, true, 512, "every head is dense"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlanner(t, c.set, c.always).For(c.n)
			if c.want == "" && p.Dense != "" || !strings.Contains(p.Dense, c.want) {
				t.Errorf("got %q, want %q", p.Dense, c.want)
			}
			if (p.Layouts == nil) != (p.Dense != "") || len(p.MaskSHA) != 64 {
				t.Errorf("layouts %v, hash %q", p.Layouts != nil, p.MaskSHA)
			}
		})
	}
}

// Where bits name single keys, a length whose last keys a query would need is
// dense, whatever was asked before; and a pattern that would read too much at a
// length is, too.
func TestPlansLeaveEveryQueryAKeyAndHaveBounds(t *testing.T) {
	s := newSet(false, 32, 1)
	l := &support.Layout{Block: 16, Rows: 2, Cols: 2, RowPtr: []int32{0, 2, 3}, Col: []int32{0, 1, 0},
		Kind: []uint8{support.Masked, support.Masked, support.Full}}
	l.Bits = make([]uint64, 2*l.Words())
	for q := range 16 { // query 3 reads key 26, the others key 0
		at := q * 16
		if q == 3 {
			at += 16*16 + 10
		}
		l.Bits[at/64] |= 1 << (at % 64)
	}
	s.Buckets[0] = support.Bucket{Length: 32, Layouts: []*support.Layout{l}, Of: []int32{0, 0, 0, -1}}
	for _, lengths := range [][]int{{17, 25, 26, 27, 31, 32}, {31, 27, 26, 17, 32, 25}} {
		p := newPlanner(t, s, true)
		for _, n := range lengths {
			if plan := p.For(n); (plan.Dense == "") != (n >= 27) {
				t.Errorf("%d tokens, asked in the order %v: dense %q", n, lengths, plan.Dense)
			}
		}
	}
	for _, c := range []struct {
		beyond support.Shift
		n      int
		want   string
	}{
		{support.Shift{Sink: 1, Local: 4, Stride: 64}, 1 << 17, ""},
		{support.Shift{Local: 1, Stride: 1}, 1 << 20, "1048576 tokens have too many blocks"},
		{support.Shift{Local: support.MaxBlocks}, 1 << 24, "16777216 tokens have too many blocks"},
	} {
		s := newSet(true, 64, 1)
		s.Beyond = &c.beyond
		if got := newPlanner(t, s, true).For(c.n).Dense; (got == "") != (c.want == "") ||
			!strings.HasPrefix(got, c.want) {
			t.Errorf("%+v, %d tokens: %q, want %q", c.beyond, c.n, got, c.want)
		}
	}
}

func TestASetForAnotherModelIsAnError(t *testing.T) {
	s := newSet(true, 64, 1)
	other := Facts{Facts: s.Facts}
	other.Weights = "11"
	if _, err := New(s, other); err == nil || !strings.Contains(err.Error(), "weights") {
		t.Errorf("other weights: %v", err)
	}
	other = Facts{Facts: s.Facts}
	other.Layers = 3
	if _, err := New(s, other); err == nil || !strings.Contains(err.Error(), "3 layers") {
		t.Errorf("other layers: %v", err)
	}
	s.Buckets[0].Layouts[0].Col[0] = 9
	if _, err := New(s, Facts{Facts: s.Facts}); err == nil {
		t.Error("a broken layout went through")
	}
}

// A plan is what the set's layouts are, cut to n, however often and in which
// order plans are asked for.
func TestPlansAreAFunctionOfTheLength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		causal := rapid.Bool().Draw(t, "causal")
		s := newSet(causal, 96, rapid.Uint64Range(0, 9).Draw(t, "seed"))
		p, err := New(s, Facts{Facts: s.Facts, Always: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range rapid.SliceOfN(rapid.IntRange(1, 96), 1, 8).Draw(t, "lengths") {
			got := p.For(n)
			for head, of := range s.Buckets[0].Of {
				l := got.Layouts[head/2][head%2]
				if of < 0 {
					if l != nil {
						t.Fatalf("n %d, head %d is not dense", n, head)
					}
					continue
				}
				if want := s.Buckets[0].Layouts[of].Prefix(n); !l.Equal(want) {
					t.Fatalf("n %d, head %d: %+v, want %+v", n, head, l, want)
				}
			}
		}
	})
}

func TestEncodersTakeTheShortestBucketThatFits(t *testing.T) {
	s := newSet(false, 96, 1)
	short := newSet(false, 32, 2).Buckets[0]
	s.Buckets = []support.Bucket{short, s.Buckets[0]}
	p := newPlanner(t, s, true)
	for n, bucket := range map[int]int{1: 0, 32: 0, 33: 1, 96: 1} {
		if got, want := p.For(n).Layouts[0][0], s.Buckets[bucket].Layouts[0].Prefix(n); !got.Equal(want) {
			t.Errorf("%d tokens: %+v, want %+v", n, got, want)
		}
	}
}

func TestLongerSequencesTakeThePatternBeyond(t *testing.T) {
	for _, causal := range []bool{false, true} {
		s := newSet(causal, 64, 1)
		s.Beyond = &support.Shift{Sink: 1, Local: 2, Stride: 4}
		p := newPlanner(t, s, true)
		l := p.For(200).Layouts[1][1]
		if err := l.Validate(causal); err != nil {
			t.Fatal(err)
		}
		want := []int32{0, 4, 7, 8}
		if !causal {
			want = []int32{0, 4, 7, 8, 12}
		}
		if got, _ := l.Row(8); !slices.Equal(got, want) {
			t.Errorf("causal %v: row 8 reads %v, want %v", causal, got, want)
		}
	}
}

func TestLastUseIsTheLastRowThatReads(t *testing.T) {
	s := newSet(true, 96, 3)
	for _, n := range []int{1, 40, 96} {
		p := newPlanner(t, s, true).For(n)
		for head := range 4 {
			l := p.Layouts[head/2][head%2]
			for key := range support.Blocks(n, 16) {
				want := math.MaxInt
				if l != nil {
					want = -1
					for r := range l.Rows {
						if cols, _ := l.Row(r); slices.Contains(cols, int32(key)) {
							want = r
						}
					}
				}
				if got := p.LastUse(head/2, head%2, key); got != want {
					t.Errorf("n %d, head %d, block %d: last used by %d, want %d", n, head, key, got, want)
				}
			}
		}
	}
	if got := newPlanner(t, s, true).For(40).LastUse(0, 0, 3); got != math.MaxInt {
		t.Errorf("a block behind the last is freed after row %d", got)
	}
	if got := newPlanner(t, s, true).For(200).LastUse(0, 0, 0); got != math.MaxInt {
		t.Errorf("a dense plan frees a block after row %d", got)
	}
}

func TestPlannersServeSeveralGoroutines(t *testing.T) {
	s := newSet(true, 512, 3)
	p := newPlanner(t, s, true)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for n := 1; n <= 512; n += 7 + g {
				if l := p.For(n).Layouts[0][0]; l.Rows != support.Blocks(n, 16) {
					t.Errorf("%d rows for %d tokens", l.Rows, n)
				}
			}
		})
	}
	wg.Wait()
}

// newJob makes a job of clustered keys for the heads of newSet.
func newJob(n int, seed uint64) *kern.Job {
	r := rand.New(rand.NewPCG(2, seed))
	matrix := func(cols int) mat.Matrix {
		m := mat.Of(n, cols, make([]float32, n*cols))
		for i := range m.Data {
			m.Data[i] = float32(r.NormFloat64())
		}
		return m
	}
	return &kern.Job{Q: matrix(128), Out: matrix(128), K: matrix(64), V: matrix(64), Heads: 4, KVHeads: 2,
		Dim: 32, Scale: 0.17}
}

func anchored(seed uint64) *support.Set {
	s := newSet(false, 512, seed)
	s.Mode, s.Anchors = support.Anchor, &support.Anchors{K: 3, Data: make([]float32, 2*2*3*32)}
	r := rand.New(rand.NewPCG(3, seed))
	for i := range s.Anchors.Data {
		s.Anchors.Data[i] = float32(r.NormFloat64())
	}
	return s
}

// Routed layouts are sound, have the budget and sort the keys by anchor.
func TestRoutesHaveTheirBudget(t *testing.T) {
	p := newPlanner(t, anchored(1), true)
	for _, n := range []int{1, 15, 16, 100, 300} {
		j := newJob(n, uint64(n))
		for kv, l := range p.Route(1, j) {
			if err := l.Validate(false); err != nil {
				t.Fatalf("n %d: %v", n, err)
			}
			a := mat.Of(3, 32, p.set.Anchors.Of(&p.set.Facts, 1, kv))
			last := 0
			for place, k := range l.Order {
				c := nearest(a, head(j.K, int(k), kv, 32))
				if c < last || place > 0 && c == last && k < l.Order[place-1] {
					t.Fatalf("n %d: key %d of cluster %d stands after cluster %d", n, k, c, last)
				}
				last = c
			}
			first := int32(slices.Index(l.Order, 0) / 16)
			for r := range l.Rows {
				cols, _ := l.Row(r)
				if want := support.Budget(0.5, r, l.Cols, false); len(cols) != want || !slices.Contains(cols, first) {
					t.Errorf("n %d: row %d reads %v, want %d with block %d", n, r, cols, want, first)
				}
			}
		}
	}
}

// A row reads the blocks with the largest of its queries' products with the mean
// of a block's keys, and the logarithm of the block's size; of equal ones the
// lower, and in any case that of key 0.
func TestRoutesTakeWhatPromisesMost(t *testing.T) {
	p := newPlanner(t, anchored(2), true)
	const n, block = 300, 16
	j := newJob(n, 5)
	for kv, l := range p.Route(0, j) {
		score := make([]float64, l.Cols)
		for r := range l.Rows {
			for b := range score {
				keys := l.Order[b*block : min((b+1)*block, n)]
				score[b] = math.Inf(-1)
				for q := r * block; q < min((r+1)*block, n); q++ {
					for h := 2 * kv; h < 2*kv+2; h++ {
						dot := 0.0
						for _, k := range keys {
							for c, x := range head(j.K, int(k), kv, 32) {
								dot += float64(x) * float64(head(j.Q, q, h, 32)[c]) / float64(len(keys))
							}
						}
						score[b] = max(score[b], dot*float64(j.Scale)+math.Log(float64(len(keys))))
					}
				}
			}
			cols, _ := l.Row(r)
			least := math.Inf(1) // least score of the blocks read, except for the required block
			for _, c := range cols {
				if int(c) != slices.Index(l.Order, 0)/block {
					least = min(least, score[c])
				}
			}
			for b, s := range score {
				if s > least+1e-5 && !slices.Contains(cols, int32(b)) {
					t.Fatalf("key head %d, row %d reads %v, and block %d promises %v, more than %v", kv,
						r, cols, b, s, least)
				}
			}
		}
	}
}

// Content routing is served where its share of the blocks pays.
func TestRoutesMustPay(t *testing.T) {
	for sparsity, pays := range map[float64]bool{0: false, .1: false, .5: true, .75: true} {
		s := anchored(1)
		s.Select.Sparsity = sparsity
		if got := newPlanner(t, s, false).For(500).Dense; (got == "") != pays {
			t.Errorf("sparsity %v: dense %q", sparsity, got)
		}
	}
}

// The hook gives a job layouts where the plan is sparse, and leaves it alone
// elsewhere; sets of fixed layouts have none.
func TestHookRoutesWhatIsNotDense(t *testing.T) {
	s := anchored(1)
	if newPlanner(t, newSet(false, 64, 1), true).Hook() != nil {
		t.Error("a static set has a hook")
	}
	hook := newPlanner(t, s, true).Hook()
	for _, c := range []struct {
		n    int
		want bool
	}{{100, true}, {513, false}} {
		j := newJob(c.n, 1)
		hook(0, 0, j)
		if got := j.Layouts != nil; got != c.want {
			t.Errorf("%d tokens: layouts %v, want %v", c.n, got, c.want)
		}
	}
}

func ExamplePlanner() {
	causal := func(r int) []int32 { // the first block and the row's own
		if r == 0 {
			return []int32{0}
		}
		return []int32{0, int32(r)}
	}
	set := &support.Set{
		Facts: support.Facts{Arch: "gpt2", Layers: 1, Heads: 1, KVHeads: 1, Dim: 64, Causal: true},
		Block: 64, Mode: support.Static, Select: support.Selector{Name: "window", Sparsity: 0.75},
		Serve: support.Sparse,
		Buckets: []support.Bucket{{Length: 1024, Layouts: []*support.Layout{support.New(1024, 64, true, causal)},
			Of: []int32{0}}},
	}
	planner, err := New(set, Facts{Facts: set.Facts})
	if err != nil {
		fmt.Println(err)
		return
	}
	p := planner.For(1000)
	cols, _ := p.Layouts[0][0].Row(9)
	fmt.Println(cols, p.LastUse(0, 0, 9))
	fmt.Println(planner.For(2000).Dense)
	// Output:
	// [0 9] 9
	// longer than the longest bucket, 1024
}
