package train

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"entropipe/models/mat"
	"entropipe/models/safetensors"
	"entropipe/ops/leaktest"
	"entropipe/sparse/model"
	"entropipe/sparse/support"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// small is a configuration that learns in a second.
func small(r Regulariser) Config {
	return Config{Layers: 2, Dim: 32, Heads: 2, Context: 40, Steps: 80, Batch: 4, Rate: 0.01, Every: 40, Workers: 2,
		Seed: 5, Regulariser: r, Block: 8}
}

// A language model learns what there is to learn: its text's next token is,
// in four of five cases, a function of the one before the last, so without
// attention the
// loss stays near log 11, 2.398.
func TestLanguageModelLearns(t *testing.T) {
	for _, reg := range []Regulariser{None, Entropy, L1} {
		c := small(reg)
		if reg == L1 {
			c.Sparsity = 0.4
		}
		r, err := LM(context.Background(), c, someText(t, 20000, 2), "", "")
		if err != nil {
			t.Fatal(err)
		}
		if r.Held.Loss > 1.9 || r.Held.Accuracy < 0.45 {
			t.Errorf("%s: held-out loss %.3f and accuracy %.3f after %d steps, want less than 1.9 and more than "+
				"0.45 (seed %d)", reg, r.Held.Loss, r.Held.Accuracy, r.Steps, c.Seed)
		}
		if n := len(r.Losses) * c.Context; r.Held.Targets != n || len(r.Losses) != 49 {
			t.Errorf("%s: %d sequences held out, %d targets; want 49, %d", reg, len(r.Losses), r.Held.Targets, n)
		}
	}
}

func TestImageClassifierLearns(t *testing.T) {
	c := small(None)
	c.Patch, c.Steps, c.Batch, c.Rate = 4, 120, 16, 0.005
	images := blobs(240)
	r, err := ViT(context.Background(), c, images, "", "")
	if err != nil {
		t.Fatal(err)
	}
	if r.Held.Accuracy < 0.9 || len(r.Right) != 40 {
		t.Errorf("accuracy %.3f of %d held-out images, want 0.9 of 40 (seed %d)", r.Held.Accuracy, len(r.Right), c.Seed)
	}
}

// blobs are images with a bright quarter, which is the class.
func blobs(n int) *Images {
	m := &Images{Side: 12, Names: []string{"a", "b", "c", "d"}, Name: "blobs"}
	for i := range n {
		class := i * 7 % 4
		for y := range 12 {
			for x := range 12 {
				v := uint8((i*31 + x*17 + y*29) % 60)
				if x/6+2*(y/6) == class {
					v += 100
				}
				m.Pixels = append(m.Pixels, v)
			}
		}
		m.Labels = append(m.Labels, int32(class))
	}
	if err := m.seal(); err != nil {
		panic(err)
	}
	return m
}

// The regulariser Entropy makes queries use fewer clusters: its value ends lower than
// in a training without it. The regulariser Paper lowers its own entropy towards 0.
func TestRegularisersLowerWhatTheySay(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	value := func(c Config, reg Regulariser) float64 {
		tr, err := NewLM(c, someText(t, 5000, 3))
		if err != nil {
			t.Fatal(err)
		}
		for !tr.Done() {
			if err := tr.Step(); err != nil {
				t.Fatal(err)
			}
		}
		return tr.records[len(tr.records)-1].Regulariser
	}
	for _, reg := range []Regulariser{Entropy, Paper} {
		c := small(reg)
		c.Lambda = 0.3
		paid := value(c, reg)
		c.Lambda = 1e-9
		c.Mu = c.Lambda / 2
		if free := value(c, reg); paid > free-0.1 {
			t.Errorf("%s: value %.3f with weight 0.3, %.3f without", reg, paid, free)
		}
	}
}

// Gates that are closed for good leave no weight. Sparsity sets their number in every
// row, and the diagonal stays open.
func TestGatesClose(t *testing.T) {
	for _, reg := range []Regulariser{L1, Window} {
		t.Run(string(reg), func(t *testing.T) { gatesClose(t, reg) })
	}
}

func gatesClose(t *testing.T, reg Regulariser) {
	c := small(reg)
	c.Sparsity, c.Steps = 0.5, 20
	tr, err := NewLM(c, someText(t, 3000, 4))
	if err != nil {
		t.Fatal(err)
	}
	for !tr.Done() {
		if err := tr.Step(); err != nil {
			t.Fatal(err)
		}
	}
	p := newPass(tr.net, 1)
	p.begin(1)
	tr.data.held(p, 0, 0)
	tr.net.pack(1)
	p.forward(tr.gates)
	rows := tr.gates.rows
	for l, heads := range tr.Open() {
		for h, open := range heads {
			a := p.head(l, 0, h, p.layers[l].qkv)
			for u := range rows {
				shut := 0
				for b := range u + 1 {
					if reg == Window && b > 0 && open[u*rows+b] != (b > int(c.Sparsity*float64(u+1)) || b == u) {
						t.Errorf("layer %d head %d, row %d: block %d is open: %v", l, h, u, b, open[u*rows+b])
					}
					if open[u*rows+b] {
						continue
					}
					shut++
					for q := u * c.Block; q < (u+1)*c.Block; q++ {
						for k := b * c.Block; k < (b+1)*c.Block; k++ {
							if w := a.probs.Row(q)[k]; w != 0 {
								t.Fatalf("layer %d head %d: query %d gives key %d of a closed block %v", l, h, q, k, w)
							}
						}
					}
				}
				if want := int(c.Sparsity * float64(u+1)); shut != want || !open[u*rows+u] {
					t.Errorf("layer %d head %d, row %d: %d blocks closed (diagonal open: %v), want %d", l, h, u, shut,
						open[u*rows+u], want)
				}
			}
		}
	}
	gates, block := tr.Gates()
	if reg == Window {
		if gates != nil {
			t.Errorf("a window has learned gates: %v", gates)
		}
		return
	}
	if block != c.Block || gates[0][0][0] != 1 || gates[0][0][1] != 0 ||
		!(gates[0][0][rows] > 0 && gates[0][0][rows] < 1) {
		t.Errorf("gates of blocks of %d: %v", block, gates[0][0][:rows+1])
	}
}

// A gate and a mask of the same sparsity read as many blocks a row: what they lose is
// compared at that sparsity.
func TestGatesReadAsManyBlocksAsMasks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := gates{layers: 1, heads: 2, rows: rapid.IntRange(1, 20).Draw(t, "rows"),
			causal: rapid.Bool().Draw(t, "causal")}
		n := g.heads * g.rows * g.rows
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed of the logits"), 0))
		g.theta, g.shut = make([]float32, n), make([]bool, n)
		for i := range g.theta {
			g.theta[i] = float32(random.NormFloat64())
		}
		sparsity := rapid.Float64Range(0, 1).Draw(t, "sparsity")
		g.close(sparsity)
		for i := range g.heads * g.rows {
			u, row := i%g.rows, g.shut[i*g.rows:(i+1)*g.rows]
			open := 0
			for b := range row {
				if !row[b] && !g.unseen(u, b) {
					open++
				}
			}
			if want := support.Budget(sparsity, u, g.rows, g.causal); open != want || row[u] {
				t.Errorf("row %d of %d: %d blocks open (diagonal: %v), want %d", u, g.rows, open, !row[u], want)
			}
		}
	})
}

// A training that is interrupted goes on to the bits that it would have had.
func TestResume(t *testing.T) {
	text := someText(t, 3000, 5)
	for _, reg := range []Regulariser{None, Entropy, Paper, L1, Window} {
		c := small(reg)
		c.Steps = 40
		if reg == L1 || reg == Window {
			c.Sparsity = 0.4
		}
		whole, err := NewLM(c, text)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "checkpoint.safetensors")
		for !whole.Done() {
			if err := whole.Step(); err != nil {
				t.Fatal(err)
			}
			if whole.step == 29 { // past the beginning of everything
				if err := whole.Save(path); err != nil {
					t.Fatal(err)
				}
			}
		}
		c.Workers = 1
		later, err := NewLM(c, text)
		if err != nil {
			t.Fatal(err)
		}
		if err := later.Resume(path); err != nil {
			t.Fatal(err)
		}
		for !later.Done() {
			if err := later.Step(); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(whole.net.params, later.net.params) {
			t.Errorf("%s: parameters differ from those without interruption", reg)
		}
		if len(whole.records) != len(later.records) {
			t.Errorf("%s: %d records, want %d", reg, len(later.records), len(whole.records))
		}
		for _, wrong := range []struct {
			change func(c *Config) *Text
			want   string
		}{
			{func(c *Config) *Text { c.Seed++; return text }, "other settings: Seed was 5 and is 6"},
			{func(c *Config) *Text { return someText(t, 3000, 6) }, "other data"},
		} {
			other := c
			data := wrong.change(&other)
			tr, err := NewLM(other, data)
			if err != nil {
				t.Fatal(err)
			}
			if err := tr.Resume(path); err == nil || !strings.Contains(err.Error(), wrong.want) {
				t.Errorf("%s: resumed with %v, want %q", reg, err, wrong.want)
			}
		}
	}
}

// A written model opens and computes the trainer's logits.
func TestDirectoriesOpen(t *testing.T) {
	c := small(None)
	c.Steps = 12
	text := someText(t, 3000, 7)
	dir := t.TempDir()
	r, err := LM(context.Background(), c, text, dir, "made by a test")
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := m.NewSession(1)
	ids, next := text.Windows(c.Context)
	for w := range ids {
		hidden, err := s.Hidden(model.Batch{IDs: ids[w], Starts: []int32{0, int32(c.Context)}}, model.Options{})
		if err != nil {
			t.Fatal(err)
		}
		logits := mat.Of(hidden.Rows, text.Vocab, make([]float32, hidden.Rows*text.Vocab))
		s.Logits(logits, hidden)
		mean := 0.0
		for i := range logits.Rows {
			l, _ := CrossEntropy(logits.Row(i), next[w][i])
			mean += l / float64(c.Context)
		}
		if math.Abs(mean-r.Losses[w]) > 1e-5 {
			t.Fatalf("window %d: loss %v by the model, %v by the trainer", w, mean, r.Losses[w])
		}
	}
	card, err := os.ReadFile(filepath.Join(dir, cardFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"made by a test", text.SHA256, "| 12, 4, 5 |", "perplexity"} {
		if !strings.Contains(string(card), want) {
			t.Errorf("the card lacks %q:\n%s", want, card)
		}
	}
	history, err := os.ReadFile(filepath.Join(dir, logFile))
	if err != nil || strings.Count(string(history), "\n") != len(r.Trainer.Records()) {
		t.Errorf("history %q: %v", history, err)
	}
}

func TestImageDirectoriesOpen(t *testing.T) {
	c := small(None)
	c.Steps, c.Patch = 12, 4
	images := blobs(60)
	for _, dtype := range []safetensors.DType{safetensors.F32, safetensors.F16} {
		tr, err := NewViT(c, images)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tr.finish(context.Background(), "", ""); err != nil {
			t.Fatal(err)
		}
		dir, bound := t.TempDir(), map[safetensors.DType]float64{safetensors.F32: 1e-5, safetensors.F16: 5e-3}[dtype]
		if err := tr.Write(dir, dtype, ""); err != nil {
			t.Fatal(err)
		}
		m, err := model.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		s := m.NewSession(1)
		losses, _ := tr.Each(0)
		for k, i := range images.HeldOut() {
			pixels := make([]float32, images.Side*images.Side)
			Normalised(pixels, images.Image(i))
			hidden, err := s.Images(pixels, 1, model.Options{})
			if err != nil {
				t.Fatal(err)
			}
			logits := mat.Of(1, len(images.Names), make([]float32, len(images.Names)))
			s.Classify(logits, hidden)
			if l, _ := CrossEntropy(logits.Row(0), images.Labels[i]); math.Abs(l-losses[k]) > bound {
				t.Fatalf("%s: image %d: loss %v by the model, %v by the trainer", dtype, i, l, losses[k])
			}
		}
	}
}

// Write leaves no gates, anchors or tokenizer of an earlier training in its
// directory.
func TestOneTrainingADirectory(t *testing.T) {
	dir := t.TempDir()
	begin := []string{cardFile, "config.json", "model.safetensors", logFile}
	for _, step := range []struct {
		of    Regulariser
		bytes bool
		more  []string
	}{
		{L1, true, []string{gatesFile, tokenizerFile, classFile}}, {Entropy, false, []string{anchorsFile}},
		{Window, false, []string{gatesFile}}, {None, true, []string{tokenizerFile, classFile}}, {None, false, nil},
	} {
		c, text := small(step.of), someText(t, 3000, 7)
		c.Steps = 4
		if step.of == L1 || step.of == Window {
			c.Sparsity = 0.5
		}
		if step.bytes {
			var err error
			if text, err = ByteText("made", []byte(strings.Repeat("it says so. ", 200))); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := LM(t.Context(), c, text, dir, ""); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		want := slices.Sorted(slices.Values(slices.Concat(begin, step.more)))
		if !slices.Equal(names, want) {
			t.Errorf("%s, bytes %v: the directory holds %q, want %q", step.of, step.bytes, names, want)
		}
	}
}

// The context ends a training.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := LM(ctx, small(None), someText(t, 3000, 8), "", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestConfigurationErrors(t *testing.T) {
	text := someText(t, 3000, 9)
	for _, c := range []struct {
		change func(c *Config)
		want   string
	}{
		{func(c *Config) { c.Heads = 3 }, "dim 32 does not divide into 3 heads"},
		{func(c *Config) { c.Steps = 0 }, "steps or a time"},
		{func(c *Config) { c.Time = 1 }, "steps or a time"},
		{func(c *Config) { c.Layers = -1 }, "layers is -1 but must be 1 to 64"},
		{func(c *Config) { c.Dim = 1 << 20 }, "dim is 1048576"},
		{func(c *Config) { c.Rate = math.NaN() }, "rate is NaN"},
		{func(c *Config) { c.Lambda = -1; c.Regulariser = Entropy }, "lambda is -1"},
		{func(c *Config) { c.Regulariser = "l2" }, `regulariser is "l2"`},
		{func(c *Config) { c.Sparsity = 0.5 }, "sparsity is for the regularisers l1 and window"},
		{func(c *Config) { c.Regulariser = Window }, "window needs a sparsity"},
		{func(c *Config) { c.Sparsity = 1; c.Regulariser = L1 }, "sparsity is 1"},
		{func(c *Config) { c.Context = 301 }, "no window of 301"},
		{func(c *Config) { c.Dim, c.Layers = 4096, 64 }, " parameters, more than 268435456"},
	} {
		cfg := small(None)
		c.change(&cfg)
		if _, err := NewLM(cfg, text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	c := small(None)
	c.Patch = 5
	if _, err := NewViT(c, blobs(24)); err == nil || !strings.Contains(err.Error(), "do not divide into patches of 5") {
		t.Errorf("patch of 5: %v", err)
	}
}
