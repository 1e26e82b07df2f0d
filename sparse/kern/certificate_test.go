package kern

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"

	"entropipe/sparse/support"
)

var campaign = flag.Int("campaign", 150, "random heads whose certificates are held against the truth")

// truth is what a certificate bounds, in float64.
type truth struct {
	delta, error float64
	tailToKept   float64 // |ȳ_tail-ỹ|
	radius       float64
}

func trueOf(j *Job, i, h int) truth {
	read := map[int]bool{}
	j.visible(i, h, func(k int) { read[k] = true })
	top := math.Inf(-1)
	for k := range j.horizon(i) {
		top = max(top, j.score(i, k, h))
	}
	var sum [2]float64 // read, not read
	y := [2][]float64{make([]float64, j.Dim), make([]float64, j.Dim)}
	r := truth{}
	for k := range j.horizon(i) {
		side := 1
		if read[k] {
			side = 0
		}
		w := math.Exp(j.score(i, k, h) - top)
		sum[side] += w
		for e, v := range j.value(k, h) {
			y[side][e] += w * float64(v)
		}
		r.radius = max(r.radius, length(j.value(k, h)))
	}
	all := sum[0] + sum[1]
	r.delta = sum[1] / all
	for e := range j.Dim {
		dense := (y[0][e] + y[1][e]) / all
		kept, tail := 0.0, 0.0
		if sum[0] > 0 {
			kept = y[0][e] / sum[0]
		}
		if sum[1] > 0 {
			tail = y[1][e] / sum[1]
		}
		r.error += (dense - kept) * (dense - kept)
		r.tailToKept += (tail - kept) * (tail - kept)
	}
	r.error, r.tailToKept = math.Sqrt(r.error), math.Sqrt(r.tailToKept)
	return r
}

// randomHead makes a job of one head with a layout: keys in clusters or not,
// scores small or huge, values of any length.
func randomHead(r *rand.Rand) Job {
	n, dim := 1+r.IntN(200), []int{4, 8, 32, 64}[r.IntN(4)]
	j := newJob(r, n, n, 1, 1, dim)
	j.Causal = r.IntN(3) == 0
	if r.IntN(2) == 0 { // keys close together, 16 by 16
		for k := range n {
			copy(j.key(k, 0), j.key(k/16*16, 0))
			for e := range dim {
				j.key(k, 0)[e] += float32(r.NormFloat64() * 0.1)
			}
		}
	}
	j.Scale *= float32(math.Exp(r.Float64()*9 - 4))
	if r.IntN(8) == 0 { // the largest score is 700
		largest := 0.0
		for i := range n {
			for k := range n {
				largest = max(largest, math.Abs(j.score(i, k, 0)))
			}
		}
		if largest > 0 {
			j.Scale *= float32(700 / largest)
		}
	}
	j.Layouts = []*support.Layout{sparseLayout(r, n, j.Causal)}
	return j
}

// sparseLayout keeps the diagonal and some blocks of 16, a few cut by bits.
func sparseLayout(r *rand.Rand, n int, causal bool) *support.Layout {
	blocks := (n + 15) / 16
	l := &support.Layout{Block: 16, Rows: blocks, Cols: blocks, RowPtr: []int32{0}}
	if !causal && r.IntN(2) == 0 {
		for _, k := range r.Perm(n) {
			l.Order = append(l.Order, int32(k))
		}
	}
	density := r.Float64()
	for q := range blocks {
		for c := range blocks {
			if causal && c > q || c != q && r.Float64() > density {
				continue
			}
			kind := support.Edge
			if c != q && r.IntN(4) == 0 {
				kind = support.Masked
				for range l.Words() {
					l.Bits = append(l.Bits, r.Uint64())
				}
			}
			l.Col, l.Kind = append(l.Col, int32(c)), append(l.Kind, kind)
		}
		l.RowPtr = append(l.RowPtr, int32(len(l.Col)))
	}
	return l
}

// δ_lo <= δ <= δ_up and |y-ỹ| <= bound <= 2·B·δ_up, for every method, on
// random heads: 150, or as many as -campaign says; 10^4 take half a minute.
func TestCertificatesHold(t *testing.T) {
	wrong, sampled := 0, 0
	heads := *campaign
	if testing.Short() {
		heads = min(heads, 40)
	}
	for seed := range heads {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		j := randomHead(r)
		c := NewCertifier(&j, 0, 16)
		for range 4 {
			i := r.IntN(j.Q.Rows)
			is := trueOf(&j, i, 0)
			for _, c.Method = range []Method{Cheap, Sampled, Exact} {
				got := c.Certify(i)
				room := 1e-12 * (1 + is.radius)
				ok := got.Lower-1e-12 <= is.delta && is.delta <= got.Upper+1e-12 && is.error <= got.Bound+room
				if got.Probabilistic {
					sampled++
					if !ok {
						wrong++
					}
				} else if !ok {
					t.Errorf("seed %d, query %d, method %d: δ %g, error %g, certificate %+v", seed, i, c.Method,
						is.delta, is.error, got)
				}
				if got.Bound > 2*is.radius*got.Upper+room || got.Upper > 1 || got.Lower < 0 ||
					got.Lower > got.Upper+1e-12 {
					t.Errorf("seed %d, query %d, method %d: %+v", seed, i, c.Method, got)
				}
				if c.Method == Exact && math.Abs(got.Upper-is.delta) > 1e-12 {
					t.Errorf("seed %d, query %d: exact δ %g, want %g", seed, i, got.Upper, is.delta)
				}
			}
		}
	}
	// Each may be wrong with 1e-3.
	if expected := 1e-3 * float64(sampled); float64(wrong) > expected+4*math.Sqrt(expected)+1 {
		t.Errorf("%d of %d sampled certificates are wrong", wrong, sampled)
	}
	t.Logf("%d of %d sampled certificates are wrong", wrong, sampled)
}

// |y-ỹ| = δ·|ȳ_tail-ỹ|, and with values of ±B on either side of the cut, 2·B·δ.
func TestErrorIsTheDroppedShareOfTheDistance(t *testing.T) {
	for seed := range 100 {
		r := rand.New(rand.NewPCG(uint64(seed), 12))
		j := randomHead(r)
		i := r.IntN(j.Q.Rows)
		is := trueOf(&j, i, 0)
		if math.Abs(is.error-is.delta*is.tailToKept) > 1e-12*(1+is.radius) {
			t.Errorf("seed %d, query %d: error %g, identity %g", seed, i, is.error, is.delta*is.tailToKept)
		}
		b := float32(0.1 + r.Float64())
		for k := range j.K.Rows {
			clear(j.value(k, 0))
			j.value(k, 0)[0] = -b
		}
		j.visible(i, 0, func(k int) { j.value(k, 0)[0] = b })
		is = trueOf(&j, i, 0)
		if want := 2 * float64(b) * is.delta; math.Abs(is.error-want) > 1e-12 {
			t.Errorf("seed %d, query %d: adversarial error %g, want 2·B·δ = %g", seed, i, is.error, want)
		}
	}
}

// The keys a query needs for a mass of 1-δ are at most exp(H/δ), H the entropy
// of its weights. That exp(H)/δ, rounded up, would do is false: here it fails,
// and whoever puts it into a budget will find this test.
func TestEntropyBoundsTheKeysNeeded(t *testing.T) {
	const keys, delta, spread = 77, 0.079, 0.154
	j := newJob(rand.New(rand.NewPCG(1, 1)), 1, keys, 1, 1, 1)
	j.Q.Data[0], j.Scale = 1, 1
	j.K.Data[0] = float32(math.Log(1 - spread))
	for k := 1; k < keys; k++ {
		j.K.Data[k] = float32(math.Log(spread / (keys - 1)))
	}
	entropy, mass, needed := 0.0, 0.0, 0
	top := 0.0
	for k := range keys {
		top += math.Exp(j.score(0, k, 0))
	}
	for k := range keys { // already descending
		w := math.Exp(j.score(0, k, 0)) / top
		entropy -= w * math.Log(w)
		if mass < 1-delta-1e-9 {
			mass, needed = mass+w, needed+1
		}
	}
	if float64(needed) <= math.Ceil(math.Exp(entropy)/delta) {
		t.Errorf("%d keys needed, exp(H)/δ is %g: the counter-example is none", needed, math.Exp(entropy)/delta)
	}
	if float64(needed) > math.Exp(entropy/delta) {
		t.Errorf("%d keys needed, exp(H/δ) is only %g", needed, math.Exp(entropy/delta))
	}
}

// What Audit measures must be what is true, and its bound must hold.
func TestAuditMeasuresWhatIsLeftOut(t *testing.T) {
	levels(t, func(t *testing.T) {
		for seed := range 20 {
			r := rand.New(rand.NewPCG(uint64(seed), 13))
			j := randomHead(r)
			if j.Scale > 1 { // float32 scores beyond some dozens differ from those of float64
				j.Scale = 1
			}
			var s Scratch
			stats := s.Audit(nil, &j, nil, 2)
			want := Stat{}
			for i := range j.Q.Rows {
				is := trueOf(&j, i, 0)
				want.KeptMass += (1 - is.delta) / float64(j.Q.Rows)
				want.Delta, want.Error = max(want.Delta, is.delta), max(want.Error, is.error)
			}
			got := stats[0]
			if len(stats) != 1 || math.Abs(got.KeptMass-want.KeptMass) > 2e-5 ||
				math.Abs(got.Delta-want.Delta) > 2e-5 || math.Abs(got.Error-want.Error) > 1e-4 {
				t.Errorf("seed %d: %+v, want %+v", seed, got, want)
			}
			if got.Error > got.Bound {
				t.Errorf("seed %d: error %g beyond bound %g", seed, got.Error, got.Bound)
			}
			sparse := attended(j, 1)
			for i, row := range sparse {
				for e, x := range row {
					if j.Out.Row(i)[e] != x {
						t.Fatalf("seed %d: Audit left another result than Attend", seed)
					}
				}
			}
		}
	})
}

func TestAuditOfADenseHeadLeavesNothingOut(t *testing.T) {
	j := newJob(rand.New(rand.NewPCG(5, 5)), 100, 100, 2, 1, 32)
	var s Scratch
	for _, got := range s.Audit(nil, &j, nil, 1) {
		if got.KeptMass != 1 || got.Delta != 0 || got.Error != 0 {
			t.Errorf("%+v", got)
		}
	}
}
