package kern

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"entropipe/models/mat"
	"entropipe/sparse/support"
	"pgregory.net/rapid"
)

// paged returns the job with its keys and values in pages of a random order,
// written in random pieces to memory that holds NaN. Blocks that no query's
// layout names have no page.
func paged(t *rapid.T, r *rand.Rand, j Job) Job {
	k, v := j.K, j.V
	j.K, j.V = mat.Matrix{Rows: k.Rows}, mat.Matrix{}
	for h := range j.KVHeads {
		of := Paged{Block: rapid.SampledFrom([]int{16, 32, 48, 64}).Draw(t, "page")}
		if len(j.Layouts) > 0 && j.Layouts[h] != nil {
			of.Block = j.Layouts[h].Block
		}
		blocks := (k.Rows + of.Block - 1) / of.Block
		size := PageSize(of.Block, j.Dim)
		of.Pages = make([]float32, (blocks+2)*size)
		for i := range of.Pages {
			of.Pages[i] = float32(math.NaN())
		}
		for b, page := range r.Perm(blocks + 2)[:blocks] {
			of.At = append(of.At, int32(page))
			if !names(j.Layouts, h, b) {
				of.At[b] = -1
				continue
			}
			end := min(of.Block, k.Rows-b*of.Block)
			for at := 0; at < end; {
				n := 1 + r.IntN(end-at)
				first := b*of.Block + at
				WritePage(of.Pages[page*size:][:size], of.Block, j.Dim, at, k.Slice(first, first+n),
					v.Slice(first, first+n), h*j.Dim)
				at += n
			}
		}
		j.Paged = append(j.Paged, of)
	}
	return j
}

// names says that some row of head h's layout reads a block of keys.
func names(layouts []*support.Layout, h, block int) bool {
	return len(layouts) == 0 || layouts[h] == nil || slices.Contains(layouts[h].Col, int32(block))
}

func TestPagedKeysGiveTheSameBits(t *testing.T) {
	levels(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			j := drawJob(t)
			for _, l := range j.Layouts {
				if l.Order != nil {
					t.Skip("pages have the order of positions")
				}
			}
			if rapid.Bool().Draw(t, "one query") {
				j.Offset += j.Q.Rows - 1
				j.Q, j.Out = j.Q.Slice(j.Q.Rows-1, j.Q.Rows), j.Out.Slice(j.Q.Rows-1, j.Q.Rows)
			}
			j.LogSums = make([]float64, j.Q.Rows*j.Heads)
			want := attended(j, 1)
			sums := slices.Clone(j.LogSums)
			p := paged(t, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "pages"), 8)), j)
			got := attended(p, rapid.IntRange(1, 4).Draw(t, "workers"))
			for i := range want {
				if !slices.Equal(got[i], want[i]) {
					t.Fatalf("row %d: %v from pages, %v from rows", i, got[i], want[i])
				}
			}
			if !slices.Equal(sums, j.LogSums) {
				t.Fatalf("sums' logarithms: %v from pages, %v from rows", j.LogSums, sums)
			}
		})
	})
}

func TestPagesThatAreMissingPanic(t *testing.T) {
	if mat.Best() == mat.Portable {
		t.Skip("the kernels by vectors look where a page is; plain Go would read zeros")
	}
	r := rand.New(rand.NewPCG(5, 6))
	job := func(change func(p *Paged)) Job {
		j := newJob(r, 1, 40, 1, 1, 16)
		of := Paged{Block: 16, At: []int32{1, 0, 2}, Pages: make([]float32, 3*PageSize(16, 16))}
		change(&of)
		j.K, j.V, j.Paged = mat.Matrix{Rows: 40}, mat.Matrix{}, []Paged{of}
		return j
	}
	for name, change := range map[string]func(p *Paged){
		"gone":             func(p *Paged) { p.At[1] = -1 },
		"beyond":           func(p *Paged) { p.At[0] = 3 },
		"fewer than keys":  func(p *Paged) { p.At = p.At[:2] },
		"block of nothing": func(p *Paged) { p.Block = 0 },
		"block of 8":       func(p *Paged) { p.Block = 8 },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() != badPage {
					t.Error("no panic that speaks of pages")
				}
			}()
			new(Scratch).Attend([]Job{job(change)}, 1)
		})
	}
	new(Scratch).Attend([]Job{job(func(*Paged) {})}, 1)
}
