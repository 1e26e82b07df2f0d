package kern

import (
	"math"
	"math/rand/v2"

	"entropipe/sparse/support"
)

// tail holds the keys that one query did not read: whole blocks, and single keys
// of blocks that the query read in part or may see in part.
type tail struct {
	c      *Certifier
	i      int
	query  []float32
	blocks []*summary
	keys   []int32
}

func (t *tail) split() {
	j, end := t.c.job, int32(t.c.job.horizon(t.i))
	l := j.layout(t.c.head)
	if l == nil {
		return
	}
	row := (j.Offset + t.i) / l.Block
	cols, kinds := l.Row(row)
	masks := maskedBefore(l, row)
	for b := range t.c.blocks {
		s := &t.c.blocks[b]
		if len(cols) == 0 || int(cols[0]) != b {
			if len(s.keys) > 0 && s.last < end {
				t.blocks = append(t.blocks, s)
				continue
			}
			for _, k := range s.keys {
				if k < end {
					t.keys = append(t.keys, k)
				}
			}
			continue
		}
		if kinds[0] == support.Masked {
			t.unselected(l, b, l.Bits[masks*l.Words():], end)
			masks++
		}
		cols, kinds = cols[1:], kinds[1:]
	}
}

// unselected appends to t.keys the keys of column block b that bits do not select.
func (t *tail) unselected(l *support.Layout, b int, bits []uint64, end int32) {
	at := (t.c.job.Offset + t.i) % l.Block * l.Block
	for c := range l.Block {
		k := int32(keyOf(l, b*l.Block+c))
		if k >= 0 && k < end && bits[(at+c)/64]>>((at+c)%64)&1 == 0 {
			t.keys = append(t.keys, k)
		}
	}
}

// kept returns ln Σ exp(score) over the keys that were read, and ỹ.
func (t *tail) kept() (log float64, y []float64) {
	j := t.c.job
	y = make([]float64, j.Dim)
	top, sum := math.Inf(-1), 0.0
	j.visible(t.i, t.c.head, func(k int) { top = max(top, j.score(t.i, k, t.c.head)) })
	j.visible(t.i, t.c.head, func(k int) {
		w := math.Exp(j.score(t.i, k, t.c.head) - top)
		sum += w
		for e, v := range j.value(k, t.c.head) {
			y[e] += w * float64(v)
		}
	})
	if sum > 0 {
		for e := range y {
			y[e] /= sum
		}
	}
	return top + math.Log(sum), y
}

// bounds returns the logarithms of a lower and an upper bound of the tail's sum.
func (t *tail) bounds() (lo, up float64) {
	lo, up = math.Inf(-1), math.Inf(-1)
	for _, k := range t.keys {
		s := t.c.job.score(t.i, int(k), t.c.head)
		lo, up = logAdd(lo, s), logAdd(up, s)
	}
	if t.c.Method == Exact {
		for _, b := range t.blocks {
			for _, k := range b.keys {
				s := t.c.job.score(t.i, int(k), t.c.head)
				lo, up = logAdd(lo, s), logAdd(up, s)
			}
		}
		return lo, up
	}
	ups := make([]float64, len(t.blocks))
	low, high := math.Inf(-1), math.Inf(-1)
	for i, b := range t.blocks {
		l, u := t.block(b)
		ups[i] = u
		low, high = logAdd(low, l), logAdd(high, u)
	}
	if t.c.Method == Sampled && len(t.blocks) > 0 {
		l, u := t.sample(ups, high)
		low, high = max(low, l), min(high, u)
	}
	return logAdd(lo, low), logAdd(up, high)
}

// block returns the logarithms of a lower and an upper bound of the sum T of a
// block of n keys. If A >= |q·(k-mean)| for each of its keys k, and v is at least
// the mean square of q·(k-mean), then
//
//	n·e^(q·mean) <= T <= n·e^(q·mean)·min(cosh A, 1+(e^A-1-A)·v/A²).
func (t *tail) block(b *summary) (lo, up float64) {
	r := t.span(b)
	log := math.Log(float64(len(b.keys))) + r.mean
	return log - r.room, log + min(logCosh(r.a), logBennett(r.a, r.v)) + r.room
}

// scoreRange bounds the scores s of a block's keys.
type scoreRange struct {
	mean float64 // q·mean
	a    float64 // an upper bound of |s-mean|
	v    float64 // an upper bound of the mean of (s-mean)²
	room float64 // an upper bound of the rounding error of these numbers and of scores
}

func (t *tail) span(b *summary) scoreRange {
	r := scoreRange{}
	norm, box, size := 0.0, 0.0, 0.0
	for e, x := range t.query {
		q := float64(x) * float64(t.c.job.Scale)
		r.mean += q * b.mean[e]
		size += math.Abs(q * b.mean[e])
		norm += q * q
		box += math.Abs(q) * b.half[e]
	}
	r.a = min(math.Sqrt(norm)*b.radius, box)
	r.v = min(norm*b.spread, r.a*r.a)
	r.room = 1e-12 * (1 + size + r.a)
	return r
}

func logCosh(a float64) float64 { return a + math.Log1p(math.Exp(-2*a)) - math.Ln2 }

// logBennett returns ln(1+(e^a-1-a)·v/a²).
func logBennett(a, v float64) float64 {
	switch {
	case a == 0 || v == 0:
		return 0
	case a < 1e-3: // (e^a-1-a)/a² is at most this
		return math.Log1p(v * (0.5 + a/6 + a*a/20))
	case a > 40: // ln((e^a-1-a)·v/a²) alone, and then 1 beside it
		return logAdd(0, a+math.Log1p(-(1+a)*math.Exp(-a))+math.Log(v/(a*a)))
	}
	return math.Log1p((math.Expm1(a) - a) * v / (a * a))
}

// sample returns the logarithms of bounds of the sum of the blocks, from keys
// drawn from blocks in proportion to the blocks' upper bounds. ups are the
// logarithms of these bounds, and all is the logarithm of their sum. A draw,
// e^score·n_b/(share of b), lies between 0 and the largest
// e^all·e^(score-mean bound), so the margins of Maurer and Pontil (2009,
// theorem 4) hold, with half of the risk on each side.
func (t *tail) sample(ups []float64, all float64) (lo, up float64) {
	r := rand.New(rand.NewPCG(t.c.Seed, uint64(t.c.job.Offset+t.i)))
	m := max(t.c.Samples, 2)
	reach := math.Inf(-1) // ln(largest possible draw) - all
	for i, b := range t.blocks {
		s := t.span(b)
		reach = max(reach, s.mean+s.a+s.room-(ups[i]-math.Log(float64(len(b.keys)))))
	}
	mean, square := 0.0, 0.0 // mean and squared deviations of draws, in units of e^(all+reach)
	for n := range m {
		x := r.Float64()
		i := 0
		for ; i < len(ups)-1; i++ {
			if x -= math.Exp(ups[i] - all); x < 0 {
				break
			}
		}
		b := t.blocks[i]
		s := t.c.job.score(t.i, int(b.keys[r.IntN(len(b.keys))]), t.c.head)
		d := min(math.Exp(s-(ups[i]-math.Log(float64(len(b.keys))))-reach), 1)
		step := (d - mean) / float64(n+1)
		square += (d - mean) * (d - mean - step)
		mean += step
	}
	log := math.Log(4 / t.c.Risk) // two sides, and 2/δ in the theorem
	margin := math.Sqrt(2*square/float64(m-1)*log/float64(m)) + 7*log/(3*float64(m-1))
	return all + reach + math.Log(max(mean-margin, 0)), all + reach + math.Log(mean+margin)
}

// logAdd returns ln(e^a+e^b).
func logAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}
