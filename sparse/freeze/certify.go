package freeze

import (
	"math"

	"entropipe/models/mat"
	"entropipe/sparse/kern"
	"entropipe/sparse/model"
	"entropipe/sparse/plan"
	"entropipe/sparse/support"
)

// bins of kept mass: the hundredth part is known to 1/bins.
const bins = 10000

// account is what a head's queries kept and lost, in all inputs that judge.
type account struct {
	histogram          []int64
	queries            int64
	mass, least        float64
	worst, radius, run float64
}

// certify measures every head of the longest bucket on the inputs that judge:
// on dense passes, so that each head is seen with what it was chosen for.
func (f *run) certify(s *support.Set) error {
	serve, err := newServing(s)
	if err != nil {
		return err
	}
	accounts := make([]account, f.c.Layers*f.c.Heads)
	for i := range accounts {
		accounts[i] = account{histogram: make([]int64, bins+1), least: 1}
	}
	err = f.each("certify", f.calibrate, f.inputs(), func(_ int) model.Options {
		return model.Options{Hook: func(layer, _ int, j *kern.Job) {
			layouts := serve.layouts(layer, j)
			mat.Tiles(j.Heads, 1, f.o.Workers, func(h, _ int) {
				var l *support.Layout
				if layouts != nil {
					l = layouts[h*j.KVHeads/j.Heads]
				}
				accounts[layer*f.c.Heads+h].add(j, h, l)
			})
		}}
	})
	s.Certs = make([]support.Cert, len(accounts))
	for i := range accounts {
		s.Certs[i] = accounts[i].cert()
	}
	return err
}

// serving is a set as it is applied, whatever it says of serving it.
type serving struct{ planner *plan.Planner }

func newServing(s *support.Set) (*serving, error) {
	p, err := plan.New(s, plan.Facts{Facts: s.Facts, Always: true})
	return &serving{p}, err
}

// layouts are those of a layer's key heads for a job, nil if they are dense.
func (v *serving) layouts(layer int, j *kern.Job) []*support.Layout {
	switch p := v.planner.For(j.Q.Rows); {
	case p.Dense != "":
		return nil
	case p.Layouts == nil:
		return v.planner.Route(layer, j)
	default:
		return p.Layouts[layer]
	}
}

// add compares the dense attention of a head with what its layout leaves of it,
// nil being everything: in float64, query by query.
func (a *account) add(j *kern.Job, h int, l *support.Layout) {
	n, kv := j.Q.Rows, h*j.KVHeads/j.Heads
	w, kept := make([]float64, n), make([]bool, n)
	dense, sparse := make([]float64, j.Dim), make([]float64, j.Dim)
	value := func(k int) []float32 { return j.V.Row(k)[kv*j.Dim:][:j.Dim] }
	for k := range n {
		a.radius = max(a.radius, norm(value(k)))
	}
	var keys []int32
	for q := range n {
		end := n
		if j.Causal {
			end = q + 1
		}
		weights(w[:end], j, h, q)
		clear(kept)
		if keys = keys[:0]; l != nil {
			keys = l.AppendKeys(keys, q, n, j.Causal)
		}
		for _, k := range keys {
			kept[k] = true
		}
		mass, runs, count := 0.0, 0, 0
		clear(dense)
		clear(sparse)
		for k, x := range w[:end] {
			reads := l == nil || kept[k]
			if reads {
				mass += x
				count++
				if k == 0 || l != nil && !kept[k-1] {
					runs++
				}
			}
			for c, v := range value(k) {
				dense[c] += x * float64(v)
				if reads {
					sparse[c] += x * float64(v)
				}
			}
		}
		a.note(mass, dense, sparse, float64(count)/float64(max(runs, 1)))
	}
}

// note takes one query: sparse is the sum of what is kept, which the kernel
// divides by its mass.
func (a *account) note(mass float64, dense, sparse []float64, run float64) {
	lost := 0.0
	for c := range dense {
		d := dense[c]
		if mass > 0 {
			d -= sparse[c] / mass
		}
		lost += d * d
	}
	mass = min(mass, 1)
	a.queries++
	a.mass += mass
	a.least = min(a.least, mass)
	a.worst = max(a.worst, math.Sqrt(lost))
	a.run += run
	a.histogram[int(mass*bins)]++
}

// cert is the head's line. With nothing seen it keeps everything.
func (a *account) cert() support.Cert {
	if a.queries == 0 {
		return support.Cert{MassMean: 1, MassP01: 1, MassMin: 1}
	}
	below, bin := int64(0), 0
	for bin < bins && below+a.histogram[bin] <= a.queries/100 {
		below += a.histogram[bin]
		bin++
	}
	n := float64(a.queries)
	return support.Cert{
		MassMean: float32(a.mass / n), MassP01: float32(float64(bin) / bins), MassMin: float32(a.least),
		Error: float32(a.worst), Bound: float32(2 * a.radius * (1 - a.least)), Radius: float32(a.radius), Run: float32(a.run / n),
	}
}

// weights sets w to the softmax weights that query q gives the first len(w)
// keys.
func weights(w []float64, j *kern.Job, h, q int) {
	query := j.Q.Row(q)[h*j.Dim:][:j.Dim]
	kv := h * j.KVHeads / j.Heads
	most, sum := math.Inf(-1), 0.0
	for k := range w {
		s := 0.0
		for c, x := range j.K.Row(k)[kv*j.Dim:][:j.Dim] {
			s += float64(x) * float64(query[c])
		}
		w[k] = s * float64(j.Scale)
		most = max(most, w[k])
	}
	for k, s := range w {
		w[k] = math.Exp(s - most)
		sum += w[k]
	}
	for k := range w {
		w[k] /= sum
	}
}

func norm(v []float32) float64 {
	s := 0.0
	for _, x := range v {
		s += float64(x) * float64(x)
	}
	return math.Sqrt(s)
}
