package kern

import (
	"math/rand/v2"
	"slices"
	"testing"

	"entropipe/sparse/support"
)

// Whatever rung a row ends on, its δ is what was asked for; rows that were
// certified by their layout alone keep its bits; a ladder without rungs and
// without tolerance is dense attention, and its rows have dense bits.
func TestLadderKeepsItsPromise(t *testing.T) {
	levels(t, func(t *testing.T) {
		all := Rungs{}
		for seed := range 12 {
			r := rand.New(rand.NewPCG(uint64(seed), 17))
			j := randomHead(r)
			j.Scale = min(j.Scale, 1)
			plain, dense := attended(j, 1), j
			dense.Layouts = nil
			whole := attended(dense, 1)
			var s Scratch
			l := Ladder{Delta: r.Float64() * 0.5, Most: r.IntN(4)}
			got := s.AttendWithin(&j, l, 1)
			if got.Rows != j.Q.Rows || got.Extended+got.Dense > got.Rows || got.Blocks > got.Extended*l.Most {
				t.Fatalf("seed %d: %+v", seed, got)
			}
			all.Rows, all.Extended, all.Dense = all.Rows+got.Rows, all.Extended+got.Extended, all.Dense+got.Dense
			same, denseRows := 0, 0
			for i := range j.Q.Rows {
				is := trueOf(&j, i, 0)
				if slices.Equal(j.Out.Row(i), plain[i]) {
					same++
					if is.delta > l.Delta+1e-5 && !slices.Equal(j.Out.Row(i), whole[i]) {
						t.Errorf("seed %d, row %d: δ %g was left", seed, i, is.delta)
					}
				}
				if slices.Equal(j.Out.Row(i), whole[i]) {
					denseRows++
				} else if e := distance(j.Out.Row(i), whole[i]); e > 2*is.radius*l.Delta+1e-4 {
					t.Errorf("seed %d, row %d: error %g with δ at most %g", seed, i, e, l.Delta)
				}
			}
			if denseRows < got.Dense || same < j.Q.Rows-got.Dense-got.Extended {
				t.Errorf("seed %d: %d rows are dense, %d as the layout's; %+v", seed, denseRows, same, got)
			}
			s.AttendWithin(&j, Ladder{Delta: -1}, 1)
			for i := range j.Q.Rows {
				if !slices.Equal(j.Out.Row(i), whole[i]) {
					t.Errorf("seed %d, row %d: not dense without tolerance", seed, i)
				}
			}
		}
		if all.Extended == 0 || all.Dense == 0 || all.Extended+all.Dense == all.Rows {
			t.Errorf("rungs that no seed reaches: %+v", all)
		}
	})
}

// What a row reads is the row's own affair.
func TestLadderRowsDoNotDependOnTheirBatch(t *testing.T) {
	levels(t, func(t *testing.T) {
		for seed := range 1 {
			r := rand.New(rand.NewPCG(uint64(seed), 18))
			j := newJob(r, 50, 50, 4, 2, 32)
			j.Scale *= 2
			l := sparseLayout(r, 50, false)
			j.Layouts = []*support.Layout{l, nil}
			ladder := Ladder{Delta: 0.4, Most: 3}
			var s Scratch
			all := s.AttendWithin(&j, ladder, 2)
			rows := make([][]float32, 50)
			for i := range rows {
				rows[i] = slices.Clone(j.Out.Row(i))
			}
			sum := Rungs{}
			for i := range 50 {
				one := j
				one.Q, one.Out, one.Offset = j.Q.Slice(i, i+1), j.Out.Slice(i, i+1), i
				got := s.AttendWithin(&one, ladder, 1)
				sum.Rows, sum.Extended, sum.Dense, sum.Blocks = sum.Rows+got.Rows, sum.Extended+got.Extended, sum.Dense+got.Dense, sum.Blocks+got.Blocks
				if !slices.Equal(rows[i], one.Out.Row(0)) {
					t.Fatalf("seed %d: row %d alone differs", seed, i)
				}
			}
			if sum != all {
				t.Errorf("seed %d: %+v together, %+v one by one", seed, all, sum)
			}
		}
	})
}
