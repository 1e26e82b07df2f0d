package sched

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestPacksInOrder(t *testing.T) {
	for _, c := range []struct {
		name    string
		budget  int
		lengths []int
		want    [][]int32
	}{
		{"nothing", 10, nil, [][]int32{}},
		{"all fit", 10, []int{3, 3, 4}, [][]int32{{0, 1, 2}}},
		{"first fit, not next", 10, []int{6, 8, 4, 2}, [][]int32{{0, 2}, {1, 3}}},
		{"longer than the budget", 10, []int{11, 5, 12, 5}, [][]int32{{0}, {1, 3}, {2}}},
		{"no budget", 0, []int{1, 2}, [][]int32{{0}, {1}}},
	} {
		p := Packer{Budget: c.budget}
		if d := cmp.Diff(c.want, p.Pack(c.lengths), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: budget %d, lengths %v: %s", c.name, c.budget, c.lengths, d)
		}
	}
}

// Every sequence is packed once, in order, within the budget; a packer that was
// used before packs alike; and short sequences leave little room.
func TestPackingLaws(t *testing.T) {
	var used Packer
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.IntRange(1, 4096).Draw(t, "budget")
		lengths := rapid.SliceOfN(rapid.IntRange(1, 700), 0, 300).Draw(t, "lengths")
		used.Budget = budget
		batches := used.Pack(lengths)
		fresh := Packer{Budget: budget}
		if d := cmp.Diff(fresh.Pack(lengths), batches, cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
		var all []int32
		for b, batch := range batches {
			if !slices.IsSorted(batch) || b > 0 && batches[b-1][0] > batch[0] {
				t.Fatalf("batch %d is out of order: %v", b, batches)
			}
			tokens := 0
			for _, i := range batch {
				tokens += lengths[i]
			}
			if tokens > budget && len(batch) > 1 {
				t.Fatalf("batch %d holds %d tokens, the budget is %d", b, tokens, budget)
			}
			if got := used.Fill(b); got != float64(tokens)/float64(budget) {
				t.Fatalf("batch %d of %d tokens has a fill of %v", b, tokens, got)
			}
			all = append(all, batch...)
		}
		slices.Sort(all)
		for i, v := range all {
			if int(v) != i {
				t.Fatalf("sequence %d is there twice or missing: %v", i, all)
			}
		}
		if len(all) != len(lengths) {
			t.Fatalf("%d sequences of %d", len(all), len(lengths))
		}
	})
}

// Lengths that would overflow a sum are packed alone.
func TestHostileLengths(t *testing.T) {
	const huge = int(^uint(0) >> 1)
	p := Packer{Budget: 100}
	if got := p.Pack([]int{huge, huge, 1}); len(got) != 3 {
		t.Errorf("%v, want three batches", got)
	}
}

func TestPackingDoesNotAllocate(t *testing.T) {
	lengths := make([]int, 500)
	for i := range lengths {
		lengths[i] = 1 + i*37%512
	}
	p := Packer{Budget: 4096}
	p.Pack(lengths)
	if n := testing.AllocsPerRun(10, func() { p.Pack(lengths) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
