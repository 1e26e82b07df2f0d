package net

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/models"
)

// randomModel has weights of the size that training begins with, and
// normalisation that does something.
func randomModel(dims int, sigma float64, seed uint64) *models.EntropyNet {
	r := rand.New(rand.NewPCG(seed, 1))
	m := &models.EntropyNet{Tensors: map[string]models.Tensor{},
		Meta: models.Meta{Mode: models.Perturb, Dims: dims, Ops: []string{"hull2d"},
			Normalise: models.NormaliseBox, Sigma: sigma, Seed: seed}}
	tensor := func(name string, scale, about float64, shape ...int) {
		t := models.Tensor{Shape: shape}
		size := 1
		for _, s := range shape {
			size *= s
		}
		for range size {
			t.Data = append(t.Data, float32(about+scale*r.NormFloat64()))
		}
		m.Tensors[name] = t
	}
	layer := func(name string, in, out int) {
		tensor(name+".weight", math.Sqrt(2/float64(in)), 0, out, in)
		tensor(name+".bias", 0.1, 0, out)
		tensor(name+".bn.gamma", 0.1, 1, out)
		tensor(name+".bn.beta", 0.1, 0, out)
		tensor(name+".bn.mean", 0.3, 0.2, out)
		tensor(name+".bn.var", 0.05, 1, out)
	}
	in := dims
	for l, out := range Local {
		layer(fmt.Sprintf("local.%d", l), in, out)
		in = out
	}
	layer("head.0", 2*Global, Head)
	tensor("head.1.weight", 0.05, 0, dims, Head)
	tensor("head.1.bias", 0.1, 0, dims)
	if err := m.Validate(); err != nil {
		panic(err)
	}
	return m
}

// reference is the network in float64, layer by layer as the model names them.
func reference(m *models.EntropyNet, points []float32) []float64 {
	dims := m.Meta.Dims
	dense := func(name string, x []float64) []float64 {
		w, b := m.Tensors[name+".weight"], m.Tensors[name+".bias"]
		y := make([]float64, w.Shape[0])
		for j := range y {
			y[j] = float64(b.Data[j])
			for k, v := range x {
				y[j] += float64(w.Data[j*w.Shape[1]+k]) * v
			}
			if gamma, ok := m.Tensors[name+".bn.gamma"]; ok {
				mean, vari := float64(m.Tensors[name+".bn.mean"].Data[j]), float64(m.Tensors[name+".bn.var"].Data[j])
				y[j] = max(0, float64(gamma.Data[j])*(y[j]-mean)/math.Sqrt(vari+1e-5)+
					float64(m.Tensors[name+".bn.beta"].Data[j]))
			}
		}
		return y
	}
	var local [][]float64
	peak := make([]float64, Global)
	for i := 0; i < len(points); i += dims {
		x := make([]float64, dims)
		for d := range x {
			x[d] = float64(points[i+d])
		}
		for l := range Local {
			x = dense(fmt.Sprintf("local.%d", l), x)
		}
		local = append(local, x)
		for k, v := range x {
			peak[k] = max(peak[k], v)
		}
	}
	var out []float64
	for _, x := range local {
		for _, v := range dense("head.1", dense("head.0", append(x[:Global:Global], peak...))) {
			out = append(out, math.Tanh(v))
		}
	}
	return out
}

func randomPoints(n, dims int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 2))
	p := make([]float32, n*dims)
	for i := range p {
		p[i] = r.Float32()
	}
	return p
}

// The folded network is the one that the model describes.
func TestDisplacementsAreTheModels(t *testing.T) {
	for _, dims := range []int{2, 3} {
		m := randomModel(dims, 1, 7)
		n, err := New(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, count := range []int{1, 2, 13, tile + 1} {
			p := randomPoints(count, dims, uint64(count))
			got := make([]float32, len(p))
			(&Runner{}).Displace(got, p, n)
			for i, want := range reference(m, p) {
				if math.Abs(float64(got[i])-want) > 2e-5 {
					t.Fatalf("d = %d, %d points: displacement %d is %v, want %v", dims, count, i, got[i], want)
				}
			}
		}
	}
}

// The bits of a point's displacement depend on neither workers nor neighbours
// nor order.
func TestDisplacementsDependOnThePointOnly(t *testing.T) {
	n, err := New(randomModel(3, 1, 3))
	if err != nil {
		t.Fatal(err)
	}
	const count = 5*tile + 31
	p := randomPoints(count, 3, 1)
	want := make([]float32, len(p))
	(&Runner{}).Displace(want, p, n)
	for workers := 2; workers <= 5; workers++ {
		got := make([]float32, len(p))
		r := &Runner{Workers: workers}
		for range 2 {
			r.Displace(got, p, n)
		}
		for i := range got {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				t.Fatalf("%d workers: displacement %d is %v, want %v", workers, i, got[i], want[i])
			}
		}
	}
	order := rand.New(rand.NewPCG(5, 5)).Perm(count)
	shuffled, got := make([]float32, len(p)), make([]float32, len(p))
	for k, i := range order {
		copy(shuffled[3*k:3*k+3], p[3*i:])
	}
	(&Runner{Workers: 2}).Displace(got, shuffled, n)
	for k, i := range order {
		for d := range 3 {
			if got[3*k+d] != want[3*i+d] {
				t.Fatalf("point %d moves by %v at place %d, by %v at its own", i, got[3*k:3*k+3], k, want[3*i:3*i+3])
			}
		}
	}
}

// No coordinate moves by more than sigma, on any cloud, and the result is
// finite.
func TestNoCoordinateMovesByMoreThanSigma(t *testing.T) {
	const sigma = 0.25
	n, err := New(randomModel(3, sigma, 4))
	if err != nil {
		t.Fatal(err)
	}
	m := Mover[float64]{Net: n}
	for _, g := range geomtest.Clouds3D[float64](200, 2) {
		was := geom.Cloud[float64]{X: append([]float64(nil), g.Cloud.X...), Y: append([]float64(nil), g.Cloud.Y...),
			Z: append([]float64(nil), g.Cloud.Z...)}
		got := m.Move(g.Cloud)
		if got.Len() != was.Len() || !got.Finite() {
			t.Fatalf("%s: %d points, finite %v", g.Name, got.Len(), got.Finite())
		}
		for d, axis := range [][]float64{got.X, got.Y, got.Z} {
			before := [][]float64{was.X, was.Y, was.Z}[d]
			for i, v := range axis {
				if e := math.Abs(v - before[i]); e > sigma*(1+1e-12)+1e-15*math.Abs(v) {
					t.Fatalf("%s: coordinate %d of point %d moves by %v", g.Name, d, i, e)
				}
			}
		}
	}
	if got := m.Move(geom.Cloud[float64]{}); got.Len() != 0 {
		t.Errorf("no point moved to %v", got)
	}
}

// A network for the plane leaves z alone.
func TestPlanarNetworkKeepsZ(t *testing.T) {
	n, err := New(randomModel(2, 1, 4))
	if err != nil {
		t.Fatal(err)
	}
	c := geomtest.Cube[float32](50, 1)
	got := (&Mover[float32]{Net: n}).Move(c)
	if &got.Z[0] != &c.Z[0] || &got.X[0] == &c.X[0] {
		t.Error("z was copied or x was not")
	}
}

func TestSeedModelHoldsNoNetwork(t *testing.T) {
	m := &models.EntropyNet{Meta: models.Meta{Mode: models.Seed}}
	if _, err := New(m); err == nil || err.Error() != "a model of mode seed holds no network: want perturb or denoise" {
		t.Errorf("got %v", err)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	n, err := New(randomModel(3, 1, 3))
	if err != nil {
		t.Fatal(err)
	}
	c := geomtest.Cube[float32](1000, 1)
	m := Mover[float32]{Net: n}
	m.Move(c)
	if a := testing.AllocsPerRun(5, func() { m.Move(c) }); a > 0 {
		t.Errorf("%v allocations a frame", a)
	}
}

// Beside it stands the rate of the largest product of the network by itself,
// which no network that is made of products can beat.
func BenchmarkDisplace(b *testing.B) {
	n, err := New(randomModel(2, 1, 3))
	if err != nil {
		b.Fatal(err)
	}
	const operations = 2 * (64*2 + 64*128 + 2*128*256 + 128*2)
	for _, count := range []int{10_000, 100_000, 1_000_000} {
		p := randomPoints(count, 2, 1)
		dst := make([]float32, len(p))
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("n=%d/workers=%d", count, workers), func(b *testing.B) {
				r := Runner{Workers: workers}
				r.Displace(dst, p, n)
				for b.Loop() {
					r.Displace(dst, p, n)
				}
				ns := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
				b.ReportMetric(ns/float64(count), "ns/point")
				b.ReportMetric(operations*float64(count)/ns, "GFLOP/s")
			})
		}
	}
}
