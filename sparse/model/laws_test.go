package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"entropipe/models/mat"
	"entropipe/models/safetensors"
	"entropipe/sparse/hf"
	"entropipe/sparse/hf/hftest"
	"entropipe/sparse/kern"
	"entropipe/sparse/plan"
	"entropipe/sparse/support"
	"pgregory.net/rapid"
)

func load4(t testing.TB) map[string]*Model { return load4As(t, F32) }

func load4As(t testing.TB, w Weights) map[string]*Model {
	t.Helper()
	all := map[string]*Model{}
	for _, text := range []string{hftest.BERT, hftest.GPT2, hftest.LLaMA, hftest.ViT} {
		m := loadTextAs(t, text, w)
		all[m.Config().Arch] = m
	}
	return all
}

// levels runs f at every level that this CPU has; with -short not at the
// portable one, which takes longest.
func levels(t *testing.T, f func(t *testing.T)) {
	first := mat.Portable
	if testing.Short() {
		first = min(mat.AVX2, mat.Best())
	}
	for l := first; l <= mat.Best(); l++ {
		t.Run(l.String(), func(t *testing.T) {
			defer mat.Limit(l)()
			f(t)
		})
	}
}

func join(sequences [][]int32) Batch {
	b := Batch{Starts: []int32{0}}
	for _, q := range sequences {
		b.IDs = append(b.IDs, q...)
		b.Starts = append(b.Starts, int32(len(b.IDs)))
	}
	return b
}

// same says whether all numbers have the same bits.
func same(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

func drawBatch(t *rapid.T, vocab, longest int) [][]int32 {
	one := rapid.SliceOfN(rapid.Int32Range(0, int32(vocab-1)), 1, longest)
	return rapid.SliceOfN(one, 1, 9).Draw(t, "sequences")
}

func TestRowsDoNotDependOnTheirBatch(t *testing.T) {
	all := load4(t)
	levels(t, func(t *testing.T) {
		for _, arch := range []string{hf.BERT, hf.GPT2, hf.LLaMA} {
			rowsAreAlone(t, all[arch])
		}
	})
}

func rowsAreAlone(t *testing.T, m *Model) {
	alone := m.NewSession(1)
	shared := map[int]*Session{1: m.NewSession(1), 2: m.NewSession(2), 5: m.NewSession(5)}
	rapid.Check(t, func(t *rapid.T) {
		sequences := drawBatch(t, m.config.Vocab, m.config.MaxPositions)
		b, workers := join(sequences), rapid.SampledFrom([]int{1, 2, 5}).Draw(t, "workers")
		together, err := shared[workers].Hidden(b, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, q := range sequences {
			h, err := alone.Hidden(one(q), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if !same(h.Data, together.Slice(int(b.Starts[i]), int(b.Starts[i+1])).Data[:len(h.Data)]) {
				t.Fatalf("%s, %d workers: sequence %d of %v differs from itself alone", m.config.Arch,
					workers, i, sequences)
			}
		}
	})
}

// Rows of a causal model do not depend on later tokens.
func TestPrefixesHaveTheSameRows(t *testing.T) {
	all := load4(t)
	for _, arch := range []string{hf.GPT2, hf.LLaMA} {
		m := all[arch]
		s, u := m.NewSession(2), m.NewSession(1)
		rapid.Check(t, func(t *rapid.T) {
			q := rapid.SliceOfN(rapid.Int32Range(0, 60), 2, 96).Draw(t, "ids")
			n := rapid.IntRange(1, len(q)).Draw(t, "prefix")
			whole, err := s.Hidden(one(q), Options{})
			if err != nil {
				t.Fatal(err)
			}
			part, err := u.Hidden(one(q[:n]), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if !same(part.Data, whole.Data[:len(part.Data)]) {
				t.Fatalf("%s: the first %d rows change with what follows: %v", arch, n, q)
			}
		})
	}
}

// Options.Attend gets the jobs of every layer.
func TestAnotherAttention(t *testing.T) {
	for arch, m := range load4(t) {
		if arch == hf.ViT {
			continue
		}
		s, u := m.NewSession(1), m.NewSession(1)
		var other kern.Scratch
		calls := 0
		b := Batch{IDs: []int32{1, 2, 3, 4, 5}, Starts: []int32{0, 2, 5}}
		got, err := s.Hidden(b, Options{Attend: func(jobs []kern.Job, workers int) {
			if len(jobs) != 2 || workers != 1 {
				t.Errorf("%s: %d jobs, %d workers", arch, len(jobs), workers)
			}
			calls++
			other.Attend(jobs, workers)
		}})
		want, err2 := u.Hidden(b, Options{})
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if calls != m.Config().Layers || !same(got.Data, want.Data) {
			t.Errorf("%s: %d calls for %d layers, or other rows", arch, calls, m.Config().Layers)
		}
	}
}

func TestImagesDoNotDependOnTheirBatch(t *testing.T) {
	m := loadText(t, hftest.ViT)
	c := m.Config()
	size := c.Colors * c.Image[0] * c.Image[1]
	pixels := hftest.Values("pixels", 40*size)
	levels(t, func(t *testing.T) {
		all, err := m.NewSession(3).Images(pixels, 40, Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := m.NewSession(1)
		for i := range 40 {
			h, err := s.Images(pixels[i*size:(i+1)*size], 1, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if !same(h.Data, all.Slice(i*c.MaxPositions, (i+1)*c.MaxPositions).Data[:len(h.Data)]) {
				t.Errorf("image %d differs from itself alone", i)
			}
		}
	})
}

// causal returns a layout of n keys in blocks of 16: the first block, the one
// before, and its own; local leaves out the first.
func causal(n int, local bool) *support.Layout {
	return support.New(n, 16, true, func(r int) []int32 {
		cols := []int32{int32(r)}
		if r > 0 {
			cols = append(cols, int32(r-1))
		}
		if r > 1 && !local {
			cols = append(cols, 0)
		}
		slices.Sort(cols)
		return cols
	})
}

// testSet gives the heads of a model in turn: sink and window, everything, a
// window alone.
func testSet(m *Model) *support.Set {
	c := m.config
	const n = 96
	s := &support.Set{
		Facts: support.Facts{Arch: c.Arch, Weights: m.sha, Layers: c.Layers, Heads: c.Heads, KVHeads: c.KVHeads,
			Dim: c.Dim, Causal: c.Causal},
		Block: 16, Mode: support.Static, Select: support.Selector{Name: "imported"}, Serve: support.Sparse,
		Buckets: []support.Bucket{{Length: n, Layouts: []*support.Layout{causal(n, false), causal(n, true)}}},
	}
	for i := range c.Layers * c.KVHeads {
		s.Buckets[0].Of = append(s.Buckets[0].Of, []int32{0, -1, 1}[i%3])
	}
	return s
}

func sparsePlan(t testing.TB, m *Model) func(n int) *plan.Plan {
	t.Helper()
	set := testSet(m)
	p, err := plan.New(set, plan.Facts{Facts: set.Facts, Always: true})
	if err != nil {
		t.Fatal(err)
	}
	return p.For
}

// loadTensors writes a model and loads it.
func loadTensors(t testing.TB, c *hf.Config, tensors map[string][]float32) *Model {
	t.Helper()
	dir := t.TempDir()
	if err := hf.Save(dir, c, tensors, safetensors.F32); err != nil {
		t.Fatal(err)
	}
	m, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Tokens generated with a cache are those of computing everything again.
func TestGenerateEqualsRecomputation(t *testing.T) {
	all := load4(t)
	for _, arch := range []string{hf.GPT2, hf.LLaMA} {
		m := all[arch]
		for name, forPlan := range map[string]func(int) *plan.Plan{"dense": nil, "sparse": sparsePlan(t, m)} {
			t.Run(arch+" "+name, func(t *testing.T) { recompute(t, m, forPlan) })
		}
	}
}

func recompute(t *testing.T, m *Model, forPlan func(int) *plan.Plan) {
	r := rand.New(rand.NewPCG(7, 1))
	const more = 40
	var sequences [][]int32
	for _, n := range []int{1, 3, 17, 33, 48, 56} {
		q := make([]int32, n)
		for i := range q {
			q[i] = r.Int32N(int32(m.config.Vocab))
		}
		sequences = append(sequences, q)
	}
	got, err := m.NewSession(2).Generate(join(sequences), more, Options{Plan: forPlan})
	if err != nil {
		t.Fatal(err)
	}
	s := m.NewSession(1)
	logits := mat.Of(1, m.config.Vocab, make([]float32, m.config.Vocab))
	for i, q := range sequences {
		o := Options{}
		if forPlan != nil {
			o.Plan = func(int) *plan.Plan { return forPlan(len(sequences[i]) + more) }
		}
		for k := range more {
			h, err := s.Hidden(one(q), o)
			if err != nil {
				t.Fatal(err)
			}
			s.Logits(logits, h.Slice(h.Rows-1, h.Rows))
			if best, _ := largest(logits.Data); int32(best) != got[i][k] {
				t.Fatalf("sequence %d, token %d: %d, computed again %d (prompt %v)", i, k, got[i][k],
					best, sequences[i])
			}
			q = append(q, got[i][k])
		}
	}
}

// The rows that Generate computes one by one have the bits of Hidden.
func TestStepsHaveTheBitsOfPrompts(t *testing.T) {
	all := load4(t)
	levels(t, func(t *testing.T) {
		for _, arch := range []string{hf.GPT2, hf.LLaMA} {
			for name, forPlan := range map[string]func(int) *plan.Plan{"dense": nil,
				"sparse": sparsePlan(t, all[arch])} {
				t.Run(fmt.Sprint(arch, " ", name), func(t *testing.T) { stepBits(t, all[arch], forPlan) })
			}
		}
	})
}

func stepBits(t *testing.T, m *Model, forPlan func(int) *plan.Plan) {
	s := m.NewSession(2)
	g := &generation{Session: s, maxNew: 60}
	defer g.close()
	prompts := [][]int32{{3, 1, 4, 1, 5, 9, 2, 6}, {2}, {27, 18, 28}}
	if err := g.prompt(join(prompts), Options{Plan: forPlan}); err != nil {
		t.Fatal(err)
	}
	whole := m.NewSession(1)
	steps := 59
	if mat.Best() == mat.Portable {
		steps = 20 // it takes its time
	}
	for step := range steps {
		for i, q := range g.open {
			prompts[i] = append(prompts[i], q.next)
		}
		if err := g.step(); err != nil {
			t.Fatal(err)
		}
		for i, q := range prompts {
			o := Options{}
			if forPlan != nil {
				o.Plan = func(int) *plan.Plan { return forPlan(len(q) - step - 1 + 60) }
			}
			h, err := whole.Hidden(one(q), o)
			if err != nil {
				t.Fatal(err)
			}
			if !same(h.Row(h.Rows-1), g.rows().Row(i)) {
				t.Fatalf("step %d, sequence %d: the row differs from that of %v computed at once", step, i, q)
			}
		}
	}
}

// Generate holds the pages that later tokens read, as the plan says, and no
// more; and none afterwards.
func TestGenerateHoldsWhatThePlanSays(t *testing.T) {
	m := loadText(t, hftest.LLaMA)
	c, forPlan := m.config, sparsePlan(t, m)
	s := m.NewSession(1)
	const prompt, more = 50, 46
	ids := make([]int32, prompt)
	if _, err := s.Generate(one(ids), more, Options{Plan: forPlan}); err != nil {
		t.Fatal(err)
	}
	p, most := forPlan(prompt+more), 0
	for n := prompt; n < prompt+more; n++ { // n tokens are in the cache
		held := 0
		for l := range c.Layers {
			for h := range c.KVHeads {
				block := 16
				if p.Layouts[l][h] == nil {
					block = 64
				}
				for b := 0; b*block < n; b++ {
					if p.LastUse(l, h, b) >= (n-1)/block {
						held += 4 * kern.PageSize(block, c.Dim)
					}
				}
			}
		}
		most = max(most, held)
	}
	if inUse, peak := s.CacheBytes(); inUse != 0 || peak != most {
		t.Errorf("%d bytes in use after the end, %d at most, want 0 and %d", inUse, peak, most)
	}
	if _, err := s.Generate(one(ids), more, Options{}); err != nil {
		t.Fatal(err)
	}
	if _, dense := s.CacheBytes(); dense <= most {
		t.Errorf("dense attention holds %d bytes, sparse %d", dense, most)
	}
}

func TestFullLayoutsGiveDenseBits(t *testing.T) {
	for arch, m := range load4(t) {
		if arch == hf.ViT {
			continue
		}
		full := support.New(80, 16, m.config.Causal, func(r int) []int32 {
			var cols []int32
			for c := int32(0); int(c) < 5 && (!m.config.Causal || int(c) <= r); c++ {
				cols = append(cols, c)
			}
			return cols
		})
		ids := make([]int32, 80)
		for i := range ids {
			ids[i] = int32(i * 7 % 61)
		}
		s, u := m.NewSession(2), m.NewSession(2)
		dense, err := s.Hidden(one(ids), Options{})
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		sparse, err := u.Hidden(one(ids), Options{Hook: func(layer, sequence int, j *kern.Job) {
			calls++
			for range m.config.KVHeads {
				j.Layouts = append(j.Layouts, full)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		if !same(dense.Data, sparse.Data) || calls != m.config.Layers {
			t.Errorf("%s: a layout of all blocks changes bits, or the hook was called %d times", arch, calls)
		}
	}
}
