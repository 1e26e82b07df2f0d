package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"entropipe/models/mat"
	"entropipe/models/safetensors"
)

// In a batch with more chunks than parts, the gradient of every tensor, gate and
// anchor is the sum of the gradients of the chunks: a part that continues with
// another chunk keeps its sum.
func TestGradientsOfManyChunksAddUp(t *testing.T) {
	for _, text := range []bool{true, false} {
		for _, reg := range []Regulariser{None, Paper, L1} {
			t.Run(fmt.Sprintf("text=%v/%s", text, reg), func(t *testing.T) {
				tr := trainerOf(t, text, Config{Layers: 1, Dim: 12, Heads: 2, Context: 60, Patch: 2, Steps: 10,
					Batch: 44, Regulariser: reg, Lambda: 0.7, Workers: 2, Block: 16, Seed: 3})
				tr.step = 5
				p := tr.plan()
				tr.prepareRegulariser(p)
				tr.net.pack(1)
				size := chunkOf(&tr.net.form, tr.cfg.Batch)
				chunks := (tr.cfg.Batch + size - 1) / size
				if chunks <= len(tr.parts) {
					t.Fatalf("%d chunks and %d parts: none has two", chunks, len(tr.parts))
				}
				tr.gradients(p)
				rec := tr.sum(p)
				want := map[string][]float64{}
				loss := 0.0
				s := <-tr.passes
				for c := range chunks {
					g := tr.newPart()
					s.begin(min(size, tr.cfg.Batch-c*size))
					tr.data.batch(s, tr.cfg.Seed, tr.step, c*size)
					tr.chunk(s, g, p)
					loss += g.loss
					for name, v := range map[string][]float32{"tensors": g.grads, "gates": g.gates,
						"anchors": g.anchors} {
						if want[name] == nil {
							want[name] = make([]float64, len(v))
						}
						for i, x := range v {
							want[name][i] += float64(x)
						}
					}
				}
				if reg == L1 {
					bare := make([]float32, len(tr.gates.theta)) // the penalty is added once a batch
					tr.gates.penalty(bare, p)
					for i, x := range bare {
						want["gates"][i] += float64(x)
					}
				}
				if math.Abs(loss-rec.Loss) > 1e-9 {
					t.Errorf("loss %v, and of the chunks %v", rec.Loss, loss)
				}
				for name, got := range map[string][]float32{"tensors": tr.parts[0].grads, "gates": tr.parts[0].gates,
					"anchors": tr.parts[0].anchors} {
					largest := 0.0
					for _, w := range want[name] {
						largest = max(largest, math.Abs(w))
					}
					for i, w := range want[name] {
						if math.Abs(float64(got[i])-w) > 2e-5*largest {
							t.Fatalf("%s, number %d: %v, and of the chunks %v (largest %v)", name, i,
								got[i], w, largest)
						}
					}
				}
			})
		}
	}
}

// trainerOf begins a training on a made text, or on drawn shapes.
func trainerOf(t *testing.T, text bool, c Config) *Trainer {
	t.Helper()
	var tr *Trainer
	var err error
	if text {
		tr, err = NewLM(c, someText(t, 2000, 1))
	} else {
		tr, err = NewViT(c, Shapes(60, 16, 4))
	}
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// Anchors are placed among separate clouds of keys, one in each, and then follow
// them: by the share pace of the way at once.
func TestAnchorsFollowTheirKeys(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 8))
	keys := mat.Of(120, 2, make([]float32, 240))
	cloud := func(i int) (x, y float32) { return float32(20 * (i % 3)), float32(-15 * (i % 3)) }
	for i := range keys.Rows {
		x, y := cloud(i)
		keys.Row(i)[0], keys.Row(i)[1] = x+float32(0.5*r.NormFloat64()), y+float32(0.5*r.NormFloat64())
	}
	c := mat.Of(3, 2, make([]float32, 6))
	place(c, keys, r)
	for range 6 {
		centre(c, keys, 1)
	}
	for i := range 3 {
		x, y := cloud(i)
		// 5 % of the others' keys pull, too
		near := slices.IndexFunc([]int{0, 1, 2}, func(a int) bool { return distance(c.Row(a), []float32{x, y}) < 9 })
		if near < 0 {
			t.Fatalf("no anchor stands in the cloud about %v, %v: %v", x, y, c.Data)
		}
	}
	was := slices.Clone(c.Data)
	for i := range keys.Rows {
		keys.Row(i)[0] += 5
	}
	centre(c, keys, 0.2)
	for i := range 3 {
		if dx, dy := c.Row(i)[0]-was[2*i], c.Row(i)[1]-was[2*i+1]; math.Abs(float64(dx)-1) > 0.3 ||
			math.Abs(float64(dy)) > 0.3 {
			t.Errorf("anchor %d went by %v, %v, and its keys by 5, 0", i, dx, dy)
		}
	}
}

// A checkpoint whose state cannot be is an error; so is one of another form.
func TestBrokenCheckpointsAreRefused(t *testing.T) {
	c := Config{Layers: 1, Dim: 12, Heads: 2, Context: 60, Steps: 10, Batch: 2, Regulariser: L1, Sparsity: 0.5,
		Block: 16, Seed: 3}
	tr := trainerOf(t, true, c)
	good := filepath.Join(t.TempDir(), "good.safetensors")
	if err := tr.Save(good); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(good)
	if err != nil {
		t.Fatal(err)
	}
	about := f.Metadata()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	gates := len(tr.gates.shut)
	for _, x := range []struct{ key, value, want string }{
		{"format", "transformer-checkpoint/0", "no checkpoint of this program"},
		{"data_sha256", "00", "other data"},
		{"config", "{}", "other settings"},
		{"state", "{", "state"},
		{"state", `{"step":-1}`, "step is -1"},
		{"state", `{"step":11}`, "step is 11 of 10"},
		{"state", `{"step":3,"elapsed_ns":-5}`, "step is 3"},
		{"state", fmt.Sprintf(`{"step":9,"hard":true,"shut":[%d]}`, gates),
			fmt.Sprintf("gate %d does not exist: there are %d", gates, gates)},
		{"state", `{"step":9,"hard":true,"shut":[-1]}`, "gate -1"},
		{"state", fmt.Sprintf(`{"step":10,"hard":true,"shut":[%d]}`, gates-1), ""},
	} {
		edited := map[string]string{}
		for k, v := range about {
			edited[k] = v
		}
		edited[x.key] = x.value
		path := filepath.Join(t.TempDir(), "edited.safetensors")
		if err := safetensors.WriteFile(path, edited, tr.arrays()); err != nil {
			t.Fatal(err)
		}
		err := trainerOf(t, true, c).Resume(path)
		if x.want == "" && err != nil || x.want != "" &&
			(err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), "edited")) {
			t.Errorf("%s %s: got %v, want %q", x.key, x.value, err, x.want)
		}
	}
	if err := safetensors.WriteFile(good, about, tr.arrays()[:2]); err != nil {
		t.Fatal(err)
	}
	if err := trainerOf(t, true, c).Resume(good); err == nil || !strings.Contains(err.Error(), `"moment.2"`) {
		t.Errorf("without moments: %v", err)
	}
}
