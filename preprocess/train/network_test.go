package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"entropipe/models/mat"
	"entropipe/preprocess/net"
)

// reference64 is the network in training, in float64 and without any of the
// rearrangement: every layer by itself, the global feature beside each row.
type reference64 struct {
	dims   int
	params []float64
	at     []int // where each tensor begins
	mask   []float64
}

// tensors names the parameters in their order.
func (n *network) tensors() (names []string, sizes []int) {
	for l := range 4 {
		names = append(names, fmt.Sprintf("weight %d", l), fmt.Sprintf("gamma %d", l), fmt.Sprintf("beta %d", l))
		sizes = append(sizes, len(n.weights[l]), n.width(l), n.width(l))
	}
	return append(names, "last weight", "last bias"), append(sizes, len(n.last), n.dims)
}

func newReference(n *network) *reference64 {
	r := &reference64{dims: n.dims, at: []int{0}}
	for _, v := range n.params {
		r.params = append(r.params, float64(v))
	}
	_, sizes := n.tensors()
	for _, s := range sizes {
		r.at = append(r.at, r.at[len(r.at)-1]+s)
	}
	rows := n.ends[len(n.ends)-1]
	ones := make([]float32, rows*net.Head)
	for i := range ones {
		ones[i] = 1
	}
	n.dropOut(mat.Of(rows, net.Head, ones), 0)
	for _, v := range ones {
		r.mask = append(r.mask, float64(v)/(1-n.dropout))
	}
	return r
}

func (r *reference64) tensor(k int) []float64 { return r.params[r.at[k]:r.at[k+1]] }

// outputs returns the last layer's numbers for rows of clouds that end at ends.
func (r *reference64) outputs(x []float32, ends []int) [][]float64 {
	rows := make([][]float64, ends[len(ends)-1])
	for i := range rows {
		for d := range r.dims {
			rows[i] = append(rows[i], float64(x[i*r.dims+d]))
		}
	}
	for l := range 4 {
		if l == 3 {
			rows = withPeaks(rows, ends)
		}
		rows = batchNormalised(linear(rows, r.tensor(3*l), nil), r.tensor(3*l+1), r.tensor(3*l+2))
	}
	for i, row := range rows {
		for j := range row {
			row[j] *= r.mask[i*net.Head+j]
		}
	}
	return linear(rows, r.tensor(12), r.tensor(13))
}

func linear(rows [][]float64, w, bias []float64) [][]float64 {
	out := make([][]float64, len(rows))
	in := len(rows[0])
	for i, x := range rows {
		out[i] = make([]float64, len(w)/in)
		for j := range out[i] {
			if bias != nil {
				out[i][j] = bias[j]
			}
			for k, v := range x {
				out[i][j] += w[j*in+k] * v
			}
		}
	}
	return out
}

func batchNormalised(rows [][]float64, gamma, beta []float64) [][]float64 {
	for j := range gamma {
		mean, vari := 0.0, 0.0
		for _, x := range rows {
			mean += x[j] / float64(len(rows))
		}
		for _, x := range rows {
			vari += (x[j] - mean) * (x[j] - mean) / float64(len(rows))
		}
		for _, x := range rows {
			x[j] = max(0, gamma[j]*(x[j]-mean)/math.Sqrt(vari+1e-5)+beta[j])
		}
	}
	return rows
}

func withPeaks(rows [][]float64, ends []int) [][]float64 {
	out := make([][]float64, len(rows))
	first := 0
	for _, end := range ends {
		peak := make([]float64, len(rows[0]))
		for _, x := range rows[first:end] {
			for k, v := range x {
				peak[k] = max(peak[k], v)
			}
		}
		for i := first; i < end; i++ {
			out[i] = append(append([]float64(nil), rows[i]...), peak...)
		}
		first = end
	}
	return out
}

// taught returns a network with a batch of clouds of unequal sizes, after a
// forward pass, with parameters away from their first values.
func taught(dims, workers int, dropout float64) (n *network, x []float32, weight []float32) {
	r := rand.New(rand.NewPCG(9, uint64(dims)))
	n = newNetwork(dims, workers, dropout, r)
	for i := range n.params {
		n.params[i] += 0.05 * float32(r.NormFloat64())
	}
	n.state = 12345
	n.tile = 16
	ends := []int{n.tile + 3, 3 * n.tile, 3*n.tile + 1, 4 * n.tile}
	x = n.reserve(ends)
	for i := range x {
		x[i] = r.Float32()
	}
	weight = make([]float32, len(x))
	for i := range weight {
		weight[i] = float32(r.NormFloat64())
	}
	n.forward()
	return n, x, weight
}

// In training the network computes what its layers say, one by one.
func TestForwardIsTheReference(t *testing.T) {
	for _, dims := range []int{2, 3} {
		for _, dropout := range []float64{0, 0.1} {
			n, x, _ := taught(dims, 1, dropout)
			for i, row := range newReference(n).outputs(x, n.ends) {
				for d, want := range row {
					if got := float64(n.out[i*dims+d]); math.Abs(got-want) > 2e-4*(1+math.Abs(want)) {
						t.Fatalf("d = %d, dropout %v: row %d: %v, want %v", dims, dropout, i, got, want)
					}
				}
			}
		}
	}
}

// The gradient of every tensor is the finite difference of the reference, in
// random directions within the tensor. The loss is Σ weight·out.
func TestGradientsAreFiniteDifferences(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, dims := range []int{2, 3} {
		n, x, weight := taught(dims, 2, 0.1)
		copy(n.dOut, weight)
		n.backward()
		ref := newReference(n)
		loss := func() (sum float64) {
			for i, row := range ref.outputs(x, n.ends) {
				for d, v := range row {
					sum += v * float64(weight[i*dims+d])
				}
			}
			return sum
		}
		names, _ := n.tensors()
		r := rand.New(rand.NewPCG(3, 3))
		for k, name := range names {
			grad := n.grads[ref.at[k]:ref.at[k+1]]
			size := 0.0
			for _, g := range grad {
				size += float64(g) * float64(g)
			}
			size = math.Sqrt(size)
			// Along the gradient itself, and in space in a random direction too.
			for try := range dims - 1 {
				dir, norm := make([]float64, len(grad)), 0.0
				for i := range dir {
					if dir[i] = float64(grad[i]); try > 0 {
						dir[i] = r.NormFloat64()
					}
					norm += dir[i] * dir[i]
				}
				norm = math.Sqrt(norm)
				was := append([]float64(nil), ref.tensor(k)...)
				move := func(h float64) float64 {
					for i := range was {
						ref.tensor(k)[i] = was[i] + h*dir[i]/norm
					}
					return loss()
				}
				const h = 1e-6
				numeric := (move(h) - move(-h)) / (2 * h)
				copy(ref.tensor(k), was)
				analytic := 0.0
				for i, g := range grad {
					analytic += float64(g) * dir[i] / norm
				}
				if math.Abs(numeric-analytic) > 2e-3*size {
					t.Errorf("d = %d: %s: slope %v, finite difference %v (gradient %v)", dims, name,
						analytic, numeric, size)
				}
			}
		}
	}
}

// A step has the same bits whatever the number of goroutines.
func TestStepDoesNotDependOnWorkers(t *testing.T) {
	want, _, weight := taught(3, 1, 0.1)
	copy(want.dOut, weight)
	want.backward()
	for workers := 2; workers <= 4; workers++ {
		n, _, _ := taught(3, workers, 0.1)
		copy(n.dOut, weight)
		n.backward()
		for i, g := range n.grads {
			if math.Float32bits(g) != math.Float32bits(want.grads[i]) {
				t.Fatalf("%d workers: gradient %d is %v, want %v", workers, i, g, want.grads[i])
			}
		}
		for l := range n.norms {
			for j, v := range n.norms[l].vari {
				if v != want.norms[l].vari[j] || n.norms[l].mean[j] != want.norms[l].mean[j] {
					t.Fatalf("%d workers: running figures of layer %d differ", workers, l)
				}
			}
		}
	}
}

// Dropout clears what it says it clears, and every column alike.
func TestDropoutRate(t *testing.T) {
	n := newNetwork(2, 1, 0.1, rand.New(rand.NewPCG(1, 1)))
	const rows = 20000
	h := make([]float32, rows*net.Head)
	for i := range h {
		h[i] = 1
	}
	n.state = 77
	n.dropOut(mat.Of(rows, net.Head, h), 0)
	for j := range net.Head {
		dropped := 0
		for i := range rows {
			if h[i*net.Head+j] == 0 {
				dropped++
			}
		}
		p := float64(dropped) / rows
		if sd := math.Sqrt(n.dropout * (1 - n.dropout) / rows); math.Abs(p-n.dropout) > 5*sd {
			t.Errorf("column %d: %v dropped, want %v", j, p, n.dropout)
		}
	}
}
