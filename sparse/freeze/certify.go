package freeze

import (
	"fmt"
	"math"
	"slices"

	"entropipe/models/mat"
	"entropipe/sparse/kern"
	"entropipe/sparse/model"
	"entropipe/sparse/plan"
	"entropipe/sparse/support"
)

// bins is the number of bins of kept mass, and so the precision of its percentiles.
const bins = 10000

// account sums the kept mass and the errors of a head's queries, over all inputs
// that judge.
type account struct {
	histogram          []int64
	queries            int64
	mass, least        float64
	worst, radius, run float64
	broken             bool // a number was not finite
}

// certify sets s.Certs. It measures every head on the inputs that judge, with the
// layout for each input's length, in dense passes, so that the inputs of a layer are
// those for which its layout was chosen.
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
	if err != nil {
		return err
	}
	s.Certs = make([]support.Cert, len(accounts))
	for i := range accounts {
		if accounts[i].broken {
			return fmt.Errorf("freeze: attention of layer %d, head %d: weights or values are not finite",
				i/f.c.Heads, i%f.c.Heads)
		}
		s.Certs[i] = accounts[i].cert()
	}
	return nil
}

// serving applies a set, even if the set recommends dense attention.
type serving struct{ planner *plan.Planner }

func newServing(s *support.Set) (*serving, error) {
	p, err := plan.New(s, plan.Facts{Facts: s.Facts, Always: true})
	return &serving{p}, err
}

// layouts returns the layouts of a layer's key heads for a job, or nil if they are
// dense.
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

// add compares the dense attention of head h with the attention by its layout (nil
// for dense), query by query, in float64. The sparse result divides the kept sum by
// its mass, so that the difference is a sum of values: an unread value has its
// weight w as factor, a read value w·(1-1/mass).
func (a *account) add(j *kern.Job, h int, l *support.Layout) {
	n, kv := j.Q.Rows, h*j.KVHeads/j.Heads
	k, v := floats(j.K, kv, j.Dim), floats(j.V, kv, j.Dim)
	w, kept, lost := make([]float64, n), make([]bool, n), make([]float64, j.Dim)
	query := make([]float64, j.Dim)
	for at := range n {
		a.radius = max(a.radius, norm(v[at*j.Dim:][:j.Dim]))
	}
	var keys []int32
	for q := range n {
		end := n
		if j.Causal {
			end = q + 1
		}
		for c, x := range j.Q.Row(q)[h*j.Dim:][:j.Dim] {
			query[c] = float64(x) * float64(j.Scale)
		}
		weights(w[:end], query, k)
		if keys = keys[:0]; l != nil {
			clear(kept)
			keys = l.AppendKeys(keys, q, n, j.Causal)
			for _, key := range keys {
				kept[key] = true
			}
		}
		mass, runs, count := 0.0, 0, 0
		for key, x := range w[:end] {
			if l == nil || kept[key] {
				mass += x
				count++
				if key == 0 || l != nil && !kept[key-1] {
					runs++
				}
			}
		}
		for key := range w[:end] {
			if mass > 0 && (l == nil || kept[key]) {
				w[key] -= w[key] / mass
			}
		}
		weigh(lost, w[:end], v)
		a.note(mass, norm(lost), float64(count)/float64(max(runs, 1)))
	}
}

// note adds one query: its kept mass, the norm of its error, and its mean run.
func (a *account) note(mass, lost, run float64) {
	if mass = min(mass, 1); math.IsNaN(mass+lost) || math.IsInf(lost, 0) {
		a.broken = true
		return
	}
	a.queries++
	a.mass += mass
	a.least = min(a.least, mass)
	a.worst = max(a.worst, lost)
	a.run += run
	a.histogram[int(mass*bins)]++
}

// cert returns the certificate of the head. Without queries its mass is 1.
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
		Error: float32(a.worst), Bound: float32(2 * a.radius * (1 - a.least)),
		Radius: float32(a.radius), Run: float32(a.run / n),
	}
}

// floats returns a head's columns of m as float64, [rows][dim].
func floats(m mat.Matrix, head, dim int) []float64 {
	v := make([]float64, 0, m.Rows*dim)
	for i := range m.Rows {
		for _, x := range m.Row(i)[head*dim:][:dim] {
			v = append(v, float64(x))
		}
	}
	return v
}

// weights sets w to the softmax weights that a query gives to the first len(w) of
// keys [keys][dim]. It computes four sums at a time, so that none waits for another.
func weights(w, query, keys []float64) {
	dim := len(query)
	i := 0
	for ; i+4 <= len(w); i += 4 {
		a, b := keys[i*dim:][:dim], keys[(i+1)*dim:][:dim]
		c, d := keys[(i+2)*dim:][:dim], keys[(i+3)*dim:][:dim]
		var s, t, u, v float64
		for at, x := range query {
			s, t, u, v = s+x*a[at], t+x*b[at], u+x*c[at], v+x*d[at]
		}
		w[i], w[i+1], w[i+2], w[i+3] = s, t, u, v
	}
	for ; i < len(w); i++ {
		w[i] = 0
		for at, x := range keys[i*dim:][:dim] {
			w[i] += query[at] * x
		}
	}
	most, sum := slices.Max(w), 0.0
	for k, s := range w {
		w[k] = math.Exp(s - most)
		sum += w[k]
	}
	for k := range w {
		w[k] /= sum
	}
}

// weigh sets dst [dim] to the sum of values [len(w)][dim] times their weights.
func weigh(dst, w, values []float64) {
	dim := len(dst)
	clear(dst)
	i := 0
	for ; i+4 <= len(w); i += 4 {
		a, b := values[i*dim:][:dim], values[(i+1)*dim:][:dim]
		c, d := values[(i+2)*dim:][:dim], values[(i+3)*dim:][:dim]
		s, t, u, v := w[i], w[i+1], w[i+2], w[i+3]
		for at := range dst {
			dst[at] += s*a[at] + t*b[at] + u*c[at] + v*d[at]
		}
	}
	for ; i < len(w); i++ {
		for at, x := range values[i*dim:][:dim] {
			dst[at] += w[i] * x
		}
	}
}

func norm[F float32 | float64](v []F) float64 {
	s := 0.0
	for _, x := range v {
		s += float64(x) * float64(x)
	}
	return math.Sqrt(s)
}
