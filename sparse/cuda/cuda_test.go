//go:build linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"entropipe/models/mat"
	"entropipe/sparse/kern"
	"entropipe/sparse/support"
)

// emulated is the device of testdata/driver.cc, which runs the kernel's source
// on this machine.
func emulated(t *testing.T) *Device {
	t.Helper()
	compiler, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("no g++ for the emulated driver: the kernel and the launch were not tested")
	}
	library := filepath.Join(t.TempDir(), "driver.so")
	if out, err := exec.Command(compiler, "-O1", "-std=c++17", "-shared", "-fPIC", "-Wno-unknown-pragmas", "-o",
		library, "testdata/driver.cc").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	d, err := Open(library)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	if d.Name() != "emulated" {
		t.Fatalf("device %q", d.Name())
	}
	return d
}

func TestEmulatedDevice(t *testing.T) { testDevice(t, emulated(t)) }

// On a GPU, where there is one.
func TestDevice(t *testing.T) {
	d, err := Open("")
	if errors.Is(err, ErrAbsent) {
		t.Skip("no NVIDIA GPU: the kernel has not run on one here")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	t.Log("on", d.Name())
	testDevice(t, d)
}

// testDevice compares with package kern over forms of jobs, several in a call,
// larger after smaller.
func testDevice(t *testing.T, d *Device) {
	for _, c := range []struct {
		queries, keys, heads, kvHeads, dim int
		causal                             bool
		layout                             string
		large                              float32 // factor on the logits
	}{
		{queries: 1, keys: 1, heads: 1, kvHeads: 1, dim: 32},
		{queries: 5, keys: 33, heads: 2, kvHeads: 2, dim: 7},
		{queries: 40, keys: 40, heads: 4, kvHeads: 2, dim: 32, causal: true},
		{queries: 3, keys: 70, heads: 2, kvHeads: 1, dim: 64, causal: true},
		{queries: 100, keys: 100, heads: 2, kvHeads: 2, dim: 32, layout: "full"},
		{queries: 100, keys: 100, heads: 2, kvHeads: 1, dim: 64, layout: "band"},
		{queries: 130, keys: 130, heads: 2, kvHeads: 2, dim: 128, causal: true, layout: "band"},
		{queries: 90, keys: 90, heads: 2, kvHeads: 2, dim: 32, layout: "ordered"},
		{queries: 64, keys: 64, heads: 2, kvHeads: 2, dim: 33, layout: "masked"},
		{queries: 64, keys: 64, heads: 1, kvHeads: 1, dim: 256, layout: "mixed", causal: true},
		{queries: 48, keys: 48, heads: 1, kvHeads: 1, dim: 32, large: 700},
		{queries: 0, keys: 4, heads: 1, kvHeads: 1, dim: 32},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, uint64(c.queries)))
			jobs := make([]kern.Job, 2)
			for i := range jobs {
				jobs[i] = newJob(r, c.queries, c.keys, c.heads, c.kvHeads, c.dim)
				j := &jobs[i]
				if j.Causal = c.causal; c.causal {
					j.Offset = c.keys - c.queries
				}
				if c.large > 0 {
					j.Scale *= c.large
				}
				if c.layout != "" {
					j.Layouts = layouts(r, c.layout, j)
				}
			}
			if err := d.Attend(jobs); err != nil {
				t.Fatal(err)
			}
			for i := range jobs {
				got := append([]float32{}, jobs[i].Out.Data...)
				clear(jobs[i].Out.Data)
				new(kern.Scratch).Attend(jobs[i:i+1], 1)
				tolerance := Tolerance * max(1, float64(c.large))
				for k, want := range jobs[i].Out.Data {
					if diff := math.Abs(float64(got[k] - want)); !(diff <= tolerance) {
						t.Fatalf("job %d, number %d: %v, kern has %v", i, k, got[k], want)
					}
				}
			}
		})
	}
}

// newJob has queries, keys and values in one matrix, as a layer has, where they
// are as many.
func newJob(r *rand.Rand, queries, keys, heads, kvHeads, dim int) kern.Job {
	random := func(rows, cols int) mat.Matrix {
		m := mat.Of(rows, cols, make([]float32, rows*cols))
		for i := range m.Data {
			m.Data[i] = float32(r.NormFloat64())
		}
		return m
	}
	j := kern.Job{Heads: heads, KVHeads: kvHeads, Dim: dim, Scale: float32(1 / math.Sqrt(float64(dim))),
		Out: random(queries, heads*dim)}
	if queries == keys {
		qkv := random(keys, (heads+2*kvHeads)*dim)
		j.Q, j.K, j.V = qkv.Columns(0, heads*dim), qkv.Columns(heads*dim, (heads+kvHeads)*dim),
			qkv.Columns((heads+kvHeads)*dim, (heads+2*kvHeads)*dim)
		return j
	}
	j.Q, j.K, j.V = random(queries, heads*dim), random(keys, kvHeads*dim), random(keys, kvHeads*dim)
	return j
}

func layouts(r *rand.Rand, form string, j *kern.Job) []*support.Layout {
	const block = 16
	rows := support.Blocks(j.K.Rows, block)
	all := make([]*support.Layout, j.KVHeads)
	for h := range all {
		l := support.New(j.K.Rows, block, j.Causal, func(row int) (cols []int32) {
			for c := range rows {
				near := c >= row-1 && c <= row+1
				if form != "band" && form != "mixed" || near || c == 0 {
					if !j.Causal || c <= row {
						cols = append(cols, int32(c))
					}
				}
			}
			return cols
		})
		switch form {
		case "ordered":
			for _, k := range r.Perm(j.K.Rows) {
				l.Order = append(l.Order, int32(k))
			}
		case "masked", "mixed":
			for e := range l.Kind {
				if form == "masked" || e%2 == 0 {
					l.Kind[e] = support.Masked
					for range l.Words() {
						l.Bits = append(l.Bits, r.Uint64()|r.Uint64())
					}
				}
			}
		}
		if all[h] = l; h > 0 && form == "full" {
			all[h] = all[0] // shared
		}
	}
	return all
}

// Every failure of the driver comes back as an error with the call's name.
func TestErrors(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "none.so")); err == nil || errors.Is(err, ErrAbsent) {
		t.Errorf("a library that is not there: %v", err)
	}
	d := emulated(t)
	j := newJob(rand.New(rand.NewPCG(1, 1)), 2, 2, 1, 1, widest+1)
	if err := d.Attend([]kern.Job{j}); err == nil || !strings.Contains(err.Error(), "257") {
		t.Errorf("heads that are too wide: %v", err)
	}
	sums := newJob(rand.New(rand.NewPCG(1, 1)), 2, 2, 1, 1, 32)
	sums.LogSums = make([]float64, 2)
	if err := d.Attend([]kern.Job{sums}); err == nil || !strings.Contains(err.Error(), "the processor's") {
		t.Errorf("sums of weights: %v", err)
	}
	if _, err := d.reserve(0, 2<<30); err == nil ||
		!strings.Contains(err.Error(), "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY") {
		t.Errorf("memory that is not there: %v", err)
	}
	d.Close()
	d.Close()
	if err := d.Attend([]kern.Job{newJob(rand.New(rand.NewPCG(1, 1)), 2, 2, 1, 1, 32)}); err == nil ||
		!strings.Contains(err.Error(), "cuCtxSetCurrent") {
		t.Errorf("a closed device: %v", err)
	}
}
