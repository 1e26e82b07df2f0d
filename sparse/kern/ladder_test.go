package kern

import (
	"math/rand/v2"
	"slices"
	"testing"

	"entropipe/sparse/support"
)

// Whatever rung a row ends on, its δ is what was asked for; rows that stay keep
// the bits of their layout; a ladder without rungs and without tolerance is dense
// attention, and its rows have dense bits. Audit counts the same, and finds no
// larger δ.
func TestLadderKeepsItsPromise(t *testing.T) {
	levels(t, func(t *testing.T) {
		all := Rungs{}
		for seed := range 24 {
			r := rand.New(rand.NewPCG(uint64(seed), 17))
			j := randomHead(r)
			j.Scale, j.Causal = min(j.Scale, 1), false
			plain, dense := attended(j, 1), j
			dense.Layouts = nil
			whole := attended(dense, 1)
			var s Scratch
			l := Ladder{Delta: r.Float64() * 0.5, Most: r.IntN(4)}
			var rungs [1]Rungs
			s.AttendWithin([]Job{j}, l, rungs[:], 1)
			got := rungs[0]
			if got.Rows != j.Q.Rows || got.Extended+got.Dense > got.Rows || got.Blocks > got.Extended*l.Most ||
				got.Blocks < got.Extended {
				t.Fatalf("seed %d: %+v", seed, got)
			}
			all.Add(got)
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
			stat := s.Audit(nil, &j, &l, 1)[0]
			if stat.Rungs != got || stat.Delta > l.Delta+1e-5 || stat.Error > stat.Bound {
				t.Errorf("seed %d: audited %+v, counted %+v, δ at most %g", seed, stat, got, l.Delta)
			}
			s.AttendWithin([]Job{j}, Ladder{Delta: -1}, rungs[:], 1)
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

// The keys that a row reads, its bits and the counts do not depend on other rows, on
// other jobs, or on the number of workers.
func TestLadderRowsDoNotDependOnTheirBatch(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(0, 18))
		j := newJob(r, 50, 50, 4, 2, 32)
		j.Scale *= 2
		j.Layouts = []*support.Layout{sparseLayout(r, 50, false), nil}
		other := newJob(r, 70, 70, 4, 2, 32)
		other.Layouts = []*support.Layout{sparseLayout(r, 70, false), sparseLayout(r, 70, false)}
		ladder := Ladder{Delta: 0.4, Most: 3}
		var s Scratch
		var rungs [2]Rungs
		s.AttendWithin([]Job{other, j}, ladder, rungs[:], 2)
		rows := make([][]float32, 50)
		for i := range rows {
			rows[i] = slices.Clone(j.Out.Row(i))
		}
		if rungs[0].Rows != 4*70 || rungs[1].Rows != 2*50 {
			t.Errorf("rows of heads with layouts: %+v", rungs)
		}
		var sum [1]Rungs
		for i := range 50 {
			one := j
			one.Q, one.Out, one.Offset = j.Q.Slice(i, i+1), j.Out.Slice(i, i+1), i
			s.AttendWithin([]Job{one}, ladder, sum[:], 1)
			if !slices.Equal(rows[i], one.Out.Row(0)) {
				t.Fatalf("row %d alone differs", i)
			}
		}
		if sum[0] != rungs[1] {
			t.Errorf("%+v together, %+v one by one", rungs[1], sum[0])
		}
	})
}

// A decoder has no ladder.
func TestLadderRefusesCausalJobs(t *testing.T) {
	j := newJob(rand.New(rand.NewPCG(1, 18)), 4, 4, 1, 1, 16)
	j.Causal = true
	for name, f := range map[string]func(s *Scratch){
		"causal":   func(s *Scratch) { s.AttendWithin([]Job{j}, Ladder{}, make([]Rungs, 1), 1) },
		"no rungs": func(s *Scratch) { s.AttendWithin([]Job{j}, Ladder{}, nil, 1) },
	} {
		func() {
			defer func() {
				if recover() != badLadder {
					t.Errorf("%s: no panic, or another", name)
				}
			}()
			f(new(Scratch))
		}()
	}
}
