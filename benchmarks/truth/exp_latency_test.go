package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"entropipe/models/mat"
	"entropipe/sparse/kern"
	"entropipe/sparse/support"
)

// Every mask is sound and reads its budget in every row, or its times could not
// be compared; runs are those of the keys that queries read.
func TestMasksReadTheirBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		block := rapid.SampledFrom([]int{16, 32}).Draw(t, "block")
		blocks := rapid.IntRange(4, 24).Draw(t, "blocks")
		budget := rapid.IntRange(1, blocks/2).Draw(t, "budget")
		head := rapid.IntRange(0, 11).Draw(t, "head")
		n := blocks * block
		for _, m := range latencyMaskList {
			l := m.draw(n, block, budget, head)
			if err := l.Validate(false); err != nil {
				t.Fatalf("%s: %v", m.name, err)
			}
			for r := range l.Rows {
				if cols, _ := l.Row(r); len(cols) != budget {
					t.Fatalf("%s: row %d reads %v, want %d blocks", m.name, r, cols, budget)
				}
			}
			kernel, sequence := runs(l, n)
			if sequence > kernel+1e-9 && l.Order == nil || kernel < float64(block) ||
				kernel > float64(budget*block) || sequence < 1 {
				t.Fatalf("%s: runs of %v keys, of %v in the sequence, with %d blocks of %d", m.name, kernel,
					sequence, budget, block)
			}
			if l.Order == nil && kernel != sequence {
				t.Fatalf("%s: runs of %v and %v in the same order", m.name, kernel, sequence)
			}
		}
	})
}

func TestRunsOfALayout(t *testing.T) {
	l := support.New(64, 16, false, func(r int) []int32 { return [][]int32{{0, 1}, {0, 2}, {1, 2, 3}, {3}}[r] })
	// 8 blocks in 5 runs.
	if kernel, sequence := runs(l, 64); kernel != 16*8/5. || sequence != 16*8/5. {
		t.Errorf("runs of %v and %v, want 25.6", kernel, sequence)
	}
	l.Order = make([]int32, 64) // every other key first
	for i := range l.Order {
		l.Order[i] = int32(2*i%64 + 2*i/64)
	}
	if kernel, sequence := runs(l, 64); kernel != 25.6 || sequence >= 16 {
		t.Errorf("runs of %v, and of %v in the sequence, want 25.6 and less than 16", kernel, sequence)
	}
}

// LongNet's heads of one rate together read what a whole segment has.
func TestDilationCoversItsSegment(t *testing.T) {
	const blocks, block, budget = 16, 16, 4
	read := map[int]map[int32]int{} // by rate
	for head := range 12 {
		rate := 1 << (head % 3)
		l := drawDilated(blocks*block, block, budget, head)
		cols, _ := l.Row(5)
		if read[rate] == nil {
			read[rate] = map[int32]int{}
		}
		for _, c := range cols {
			read[rate][c]++
		}
	}
	for rate, cols := range read {
		if want := budget * rate; len(cols) != want {
			t.Errorf("heads of rate %d read %d blocks in all, want %d: %v", rate, len(cols), want, cols)
		}
	}
}

// The plain form and the tiled kernel are within the stated bound of float64, at
// every level, whatever the size of scores.
func TestFormsAreTheSameFunction(t *testing.T) {
	for _, level := range []mat.Level{mat.Portable, mat.AVX2, mat.AVX512} {
		if level > mat.Best() {
			continue
		}
		t.Run(level.String(), func(t *testing.T) {
			defer mat.Limit(level)()
			records, err := latencyExactness(64)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				if v := r.Values; max(v["tiled"], v["plain"]) > v["bound"] || !(v["apart"] >= 0) {
					t.Errorf("%v %v", r.Text, v)
				}
			}
		})
	}
}

// A row of the plain form has the same bits in tiles of any height.
func TestPlainTilesAreTheWhole(t *testing.T) {
	j := newLatencyJob(latencyShape{keys: 100, dim: 24, heads: 2})
	var whole []float32
	for _, rows := range []int{100, 48, 7, 1} {
		new(plainAttention).attend(&j, rows, nil)
		if whole == nil {
			whole = slices.Clone(j.Out.Data)
		}
		if !slices.Equal(j.Out.Data, whole) {
			t.Errorf("%d rows at a time give other bits than all", rows)
		}
	}
}

// Retention in chunks is the recurrence state = γ·state + k⊗v, out = scale·q·state,
// but for rounding: a number of the output is a sum of products of which each is
// rounded at most once for a key, twice where its chunk begins, and in two sums.
func TestRetentionIsItsRecurrence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := latencyShape{keys: rapid.IntRange(1, 70).Draw(t, "keys"),
			dim: rapid.SampledFrom([]int{1, 8, 20}).Draw(t, "dim"), heads: rapid.IntRange(1, 3).Draw(t, "heads")}
		chunk := rapid.SampledFrom([]int{1, 16, 32, 100}).Draw(t, "chunk")
		j := newLatencyJob(s)
		newRetention(s.heads, s.dim, chunk, j.Scale).attend(&j)
		for h := range s.heads {
			state, size := make([]float64, s.dim*s.dim), make([]float64, s.dim*s.dim) // size: of the sums' terms
			rounding := float64(2*s.keys+s.dim+16) * 0x1p-23
			for i := range s.keys {
				q, k, v := j.Q.Row(i)[h*s.dim:], j.K.Row(i)[h*s.dim:], j.V.Row(i)[h*s.dim:]
				for c := range s.dim {
					want, terms := 0.0, 0.0
					for a := range s.dim {
						at, product, weight := a*s.dim+c, float64(k[a])*float64(v[c]), float64(j.Scale)*float64(q[a])
						state[at] = retentionDecay(h)*state[at] + product
						size[at] = retentionDecay(h)*size[at] + math.Abs(product)
						want += weight * state[at]
						terms += math.Abs(weight) * size[at]
					}
					if got := float64(j.Out.Row(i)[h*s.dim+c]); math.Abs(got-want) > rounding*terms {
						t.Fatalf("head %d, row %d, column %d: %v, want %v", h, i, c, got, want)
					}
				}
			}
		}
	})
}

// The page has all four parts, and none of its figures is broken.
func TestLatencyPageIsWhole(t *testing.T) {
	var records []record
	for _, c := range latencyCells(quick) {
		some, err := c.run(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", c.key, err)
		}
		records = append(records, some...)
	}
	for _, part := range []string{"masks", "forms", "exactness", "layer"} {
		if len(partOf(records, part)) == 0 {
			t.Errorf("no record of part %q", part)
		}
	}
	for _, r := range records {
		for name, v := range r.Values {
			if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
				t.Errorf("%v: %s is %v", r.Text, name, v)
			}
		}
	}
	page := latencyVerdict(records)
	for _, want := range []string{"At equal budget", "## Forms of attention", formRetention, "## Is the tiled kernel",
		"0 of 12 lines", "## What reaches a whole layer", "attention is "} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
		t.Errorf("page:\n%s", page)
	}
}

// What a part says before it has records, as when a run was cut short.
func TestLatencyPageWithoutRecords(t *testing.T) {
	if page := latencyVerdict(nil); strings.Contains(page, "NaN") || !strings.Contains(page, "yet") {
		t.Errorf("page:\n%s", page)
	}
}

func TestAmdahl(t *testing.T) {
	for _, c := range []struct{ share, part, want float64 }{{0, .25, 1}, {1, .25, 4}, {.5, 0, 2},
		{.5, .5, 4. / 3}, {.3, 1, 1}} {
		if got := amdahl(c.share, c.part); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("share %v in part %v: %v, want %v", c.share, c.part, got, c.want)
		}
		if c.part < 1 {
			if back := shareFor(c.want, c.part); math.Abs(back-c.share) > 1e-12 {
				t.Errorf("%v times by part %v: share %v, want %v", c.want, c.part, back, c.share)
			}
		}
	}
	if s := paysAfterBatches(1.47); s != "450383" {
		t.Errorf("the paper's own figures pay after %s batches, want 450383", s)
	}
	if s := paysAfterBatches(1); s != "never" {
		t.Errorf("no speed-up pays after %s", s)
	}
}

// Each entry runs once a round, and begins a round as often as any.
func TestTurnsAreFair(t *testing.T) {
	var calls []int
	entry := func(k int) func() { return func() { calls = append(calls, k) } }
	ms := inTurns(5, 2, entry(0), entry(1), entry(2))
	if len(ms) != 3 || len(ms[0]) != 5 || len(calls) != 6*3*2 {
		t.Fatalf("%d entries, %d rounds, %d calls", len(ms), len(ms[0]), len(calls))
	}
	first := map[int]int{}
	for k := 0; k < len(calls); k += 6 {
		first[calls[k]]++
	}
	if fmt.Sprint(first) != "map[0:2 1:2 2:2]" {
		t.Errorf("entries begin a round %v", first)
	}
}

// keepOnly leaves the listed scores.
func TestKeepOnly(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		scores, keep := make([]float32, 20), []int32{}
		for j := range scores {
			scores[j] = 1
			if r.IntN(2) == 0 {
				keep = append(keep, int32(j))
			}
		}
		list := slices.Clone(keep)
		r.Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
		keepOnly(scores, list)
		for j, s := range scores {
			if kept := slices.Contains(keep, int32(j)); kept != (s == 1) || !kept && s != forbidden {
				t.Fatalf("of %v score %d is %v", keep, j, s)
			}
		}
	}
}

// The kernel and the plain form take the same job.
func TestFormsOfOneJob(t *testing.T) {
	s := latencyShape{keys: 130, dim: 32, heads: 3}
	j := newLatencyJob(s)
	new(plainAttention).attend(&j, plainTile, nil)
	plain := slices.Clone(j.Out.Data)
	new(kern.Scratch).Attend([]kern.Job{j}, 1)
	for i, x := range j.Out.Data {
		if d := math.Abs(float64(x - plain[i])); d > 1e-5 {
			t.Fatalf("number %d: tiled %v, plain %v", i, x, plain[i])
		}
	}
}
