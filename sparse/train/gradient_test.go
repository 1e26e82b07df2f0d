package train

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"entropipe/models/mat"
)

// someText is a text whose next token mostly depends on the one before the last.
func someText(t testing.TB, length int, seed uint64) *Text {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 5))
	ids := make([]int32, length)
	for i := range ids {
		ids[i] = int32(r.IntN(11))
		if i >= 2 && r.IntN(5) > 0 {
			ids[i] = (ids[i-2]*3 + 1) % 11
		}
	}
	text, err := TokenText("made", ids, 11, nil)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// settled returns a trainer of each kind with parameters away from their first
// values, at a step where the regulariser has its weight, and that step's plan.
func settled(t testing.TB, text bool, r Regulariser, workers int) (*Trainer, plan) {
	t.Helper()
	c := Config{Layers: 2, Dim: 24, Heads: 3, Context: 67, Patch: 2, Steps: 100, Batch: 2, Regulariser: r, Lambda: 0.7,
		Workers: workers, Block: 16, Seed: 3, Shift: 1}
	var tr *Trainer
	var err error
	if text {
		tr, err = NewLM(c, someText(t, 2000, 1))
	} else {
		c.Block = 8
		tr, err = NewViT(c, Shapes(60, 18, 4)) // 82 tokens: more than keyBlock
	}
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(7, 7))
	for i := range tr.net.params {
		tr.net.params[i] += 0.1 * float32(random.NormFloat64())
	}
	if tr.gates != nil {
		for i := range tr.gates.theta {
			tr.gates.theta[i] = float32(random.NormFloat64())
		}
	}
	tr.step = 40
	p := tr.plan()
	if p.lambda != tr.cfg.Lambda {
		t.Fatalf("step %d: the regulariser has weight %v", tr.step, p.lambda)
	}
	tr.prepareRegulariser(p)
	if r == Paper { // sharp enough for a gradient that says something
		p.alpha = 3
	}
	return tr, p
}

// doubles copies to float64.
func doubles(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

// total is the loss of the trainer's batch by the reference.
func (r *reference) total(tr *Trainer, pl plan) float64 {
	if r.batch == nil {
		r.batch = newPass(tr.net, tr.cfg.Batch)
		r.batch.begin(tr.cfg.Batch)
		tr.data.batch(r.batch, tr.cfg.Seed, tr.step, 0)
	}
	p := r.batch
	m, v := r.cut()
	sum := 0.0
	for s := range p.seqs {
		x := make([][]float64, r.f.n)
		var targets []int32
		for i := range x {
			x[i] = slices.Clone(m["positions"][i])
			var first []float64
			switch {
			case r.f.causal():
				first = m["tokens"][p.ids[s*r.f.n+i]]
				targets = append(targets, p.next[s*r.f.n+i])
			case i == 0:
				first = v["class"]
				targets = append(targets, p.labels[s])
			default:
				first = affine(doubles(p.patchesOf(s).Row(i-1)), v["patchB"], m["patches"])
			}
			for j, y := range first {
				x[i][j] += y
			}
		}
		loss, penalty := r.sequence(x, targets, pl.lambda, pl.mu)
		sum += (loss + pl.lambda*penalty) / float64(p.seqs)
	}
	if tr.gates != nil {
		share := 1 / float64(tr.gates.layers*tr.gates.heads*tr.gates.rows)
		for i, x := range r.theta {
			u, b := i/tr.gates.rows%tr.gates.rows, i%tr.gates.rows
			if u != b && !tr.gates.unseen(u, b) {
				sum += pl.lambda * share * logistic(x)
			}
		}
	}
	return sum
}

func referenceOf(tr *Trainer, pl plan) *reference {
	r := &reference{f: tr.net.form, params: doubles(tr.net.params), cfg: &tr.cfg}
	if tr.gates != nil {
		r.theta = doubles(tr.gates.theta)
	}
	if tr.anchors != nil {
		r.c, r.alpha = doubles(tr.anchors.c), slices.Clone(tr.anchors.alpha)
		if tr.cfg.Regulariser == Paper {
			for i := range r.alpha {
				r.alpha[i] = pl.alpha
			}
		}
	}
	return r
}

// The gradient of every tensor, gate and anchor is the finite difference of the
// reference along it, with every regulariser, and along a random direction.
func TestGradientsAreFiniteDifferences(t *testing.T) {
	for _, text := range []bool{true, false} {
		for _, reg := range []Regulariser{None, Entropy, Paper, L1} {
			t.Run(fmt.Sprintf("text=%v/%s", text, reg), func(t *testing.T) {
				if testing.Short() && reg != Entropy {
					t.Skip("takes seconds")
				}
				tr, pl := settled(t, text, reg, 2)
				tr.net.pack(1)
				tr.gradients(pl)
				rec := tr.sum(pl)
				ref := referenceOf(tr, pl)
				if want := ref.total(tr, pl); math.Abs(rec.Loss+pl.lambda*rec.Regulariser-want) > 1e-4*math.Abs(want) {
					t.Errorf("loss %v and regulariser %v: together %v, the reference has %v", rec.Loss, rec.Regulariser,
						rec.Loss+pl.lambda*rec.Regulariser, want)
				}
				check := slopes{t: t, tries: 1, value: func() float64 { return ref.total(tr, pl) },
					r: rand.New(rand.NewPCG(3, 3))}
				if reg == None {
					check.tries = 2
				}
				places := tensorsOf(&ref.f)
				for _, name := range slices.Sorted(maps.Keys(places)) {
					if reg != None && !slices.Contains([]string{"0qkv", "1qkv", "1qkvB", "positions"}, name) {
						continue // a regulariser reaches the others through these
					}
					at := places[name]
					end := at.at + at.rows*at.cols
					check.compare(name, ref.params[at.at:end], tr.parts[0].grads[at.at:end])
				}
				if tr.gates != nil {
					check.compare("gates", ref.theta, tr.parts[0].gates)
				}
				if reg == Paper {
					check.compare("anchors", ref.c, tr.parts[0].anchors)
				}
			})
		}
	}
}

// slopes compares gradients with finite differences of value.
type slopes struct {
	t     *testing.T
	tries int // directions: along the gradient, then random ones
	value func() float64
	r     *rand.Rand
}

func (s *slopes) compare(name string, x []float64, grad []float32) {
	size := 0.0
	for _, g := range grad {
		size += float64(g) * float64(g)
	}
	size = math.Sqrt(size)
	for try := range s.tries {
		dir, norm, slope := make([]float64, len(grad)), 0.0, 0.0
		for i := range dir {
			if dir[i] = float64(grad[i]); try > 0 {
				dir[i] = s.r.NormFloat64()
			}
			norm += dir[i] * dir[i]
		}
		norm = math.Sqrt(norm)
		was := slices.Clone(x)
		move := func(h float64) float64 {
			for i := range was {
				x[i] = was[i] + h*dir[i]/norm
			}
			return s.value()
		}
		const h = 1e-5
		numeric := (move(h) - move(-h)) / (2 * h)
		copy(x, was)
		for i, g := range grad {
			slope += float64(g) * dir[i] / norm
		}
		if math.Abs(numeric-slope) > 1e-3*size+1e-8 || size == 0 {
			s.t.Errorf("%s, direction %d: slope %v, finite difference %v (gradient %v)", name, try,
				slope, numeric, size)
		}
	}
}

// A step has the same bits for any number of workers.
func TestStepDoesNotDependOnWorkers(t *testing.T) {
	for _, text := range []bool{true, false} {
		for _, reg := range []Regulariser{None, Entropy, Paper, L1} {
			var want []float32
			for _, workers := range []int{1, 2, 5} {
				tr, _ := settled(t, text, reg, workers)
				for range 3 {
					if err := tr.Step(); err != nil {
						t.Fatal(err)
					}
				}
				if want == nil {
					want = slices.Clone(tr.net.params)
				}
				for i, v := range tr.net.params {
					if math.Float32bits(v) != math.Float32bits(want[i]) {
						t.Fatalf("text %v, %s: with %d workers parameter %d is %v, with one %v", text, reg,
							workers, i, v, want[i])
					}
				}
			}
		}
	}
}

// Whatever the vector units, losses, regularisers and gradients are the
// reference's.
func TestEveryLevel(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		for _, text := range []bool{true, false} {
			tr, pl := settled(t, text, Entropy, 1)
			tr.net.pack(1)
			tr.gradients(pl)
			rec := tr.sum(pl)
			ref := referenceOf(tr, pl)
			if got, want := rec.Loss+pl.lambda*rec.Regulariser,
				ref.total(tr, pl); math.Abs(got-want) > 1e-4*math.Abs(want) {
				t.Errorf("text %v: loss and regulariser %v, the reference has %v", text, got, want)
			}
			check := slopes{t: t, tries: 1, value: func() float64 { return ref.total(tr, pl) }}
			for _, name := range []string{"0qkv", "positions"} {
				at := tensorsOf(&ref.f)[name]
				end := at.at + at.rows*at.cols
				check.compare(name, ref.params[at.at:end], tr.parts[0].grads[at.at:end])
			}
		}
	})
}

// everyLevel runs f at each level that this CPU has.
func everyLevel(t *testing.T, f func(t *testing.T)) {
	for _, l := range []mat.Level{mat.Portable, mat.AVX2, mat.AVX512} {
		t.Run(l.String(), func(t *testing.T) {
			if l > mat.Best() {
				t.Skipf("this CPU has %v", mat.Best())
			}
			defer mat.Limit(l)()
			f(t)
		})
	}
}
