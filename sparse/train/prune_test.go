package train

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"testing"
)

// Law: after seven tenths of the training exactly the share Pruned of every matrix of
// the blocks is 0 and stays 0, in the file that is written, too. All other matrices
// stay whole. The network still learns.
func TestPrunedWeightsStayZero(t *testing.T) {
	for _, share := range []float64{0.5, 0.9} {
		c := small(None)
		c.Pruned = share
		r, err := LM(context.Background(), c, someText(t, 20000, 2), "", "")
		if err != nil {
			t.Fatal(err)
		}
		tr, matrices := r.Trainer, 0
		zeros := func(v []float32) (n int) {
			for _, x := range v {
				if x == 0 {
					n++
				}
			}
			return n
		}
		tr.net.form.blockMatrices(func(lo, hi int) {
			matrices++
			if got, want := zeros(tr.net.params[lo:hi]), int(share*float64(hi-lo)); got != want {
				t.Errorf("%v: %d of %d weights are 0, want %d", share, got, hi-lo, want)
			}
		})
		w := &tr.net.w
		if matrices != 8 || zeros(w.blocks[1].down.Data) != int(share*float64(len(w.blocks[1].down.Data))) ||
			zeros(w.blocks[0].qkv.Data) != int(share*float64(len(w.blocks[0].qkv.Data))) {
			t.Errorf("%v: %d matrices, which are not those of the blocks", share, matrices)
		}
		if n := zeros(w.tokens.Data) + zeros(w.positions.Data); n != 0 {
			t.Errorf("%v: %d values outside the blocks are 0", share, n)
		}
		if r.Held.Loss > 2.1 {
			t.Errorf("%v: held-out loss %.3f, want less than 2.1 (2.398 without learning, seed %d)", share,
				r.Held.Loss, c.Seed)
		}
	}
}

// The smallest magnitudes go, and what stays keeps its value.
func TestPruningTakesTheSmallest(t *testing.T) {
	c := small(None)
	c.Pruned = 0.3
	tr, err := NewLM(c, someText(t, 2000, 2))
	if err != nil {
		t.Fatal(err)
	}
	before := slices.Clone(tr.net.params)
	tr.prune()
	tr.net.form.blockMatrices(func(lo, hi int) {
		most, least := 0.0, math.Inf(1)
		for i := lo; i < hi; i++ {
			size := math.Abs(float64(before[i]))
			if tr.net.params[i] == 0 {
				most = max(most, size)
			} else if least = min(least, size); tr.net.params[i] != before[i] {
				t.Fatalf("weight %d was %v and is %v", i, before[i], tr.net.params[i])
			}
		}
		if most > least {
			t.Errorf("a weight of %v is pruned, one of %v stays", most, least)
		}
	})
}

// A pruned, smoothed or adversarial training has the same bits for any number of
// workers, and when it is resumed before or after the pruning.
func TestNewSettingsKeepTheBits(t *testing.T) {
	for name, set := range map[string]func(*Config){
		"pruned":      func(c *Config) { c.Pruned = 0.6 },
		"smoothed":    func(c *Config) { c.Smoothing = 0.1 },
		"adversarial": func(c *Config) { c.Adversarial, c.Regulariser, c.Sparsity = 0.1, Window, 0.3 },
	} {
		c := Config{Layers: 1, Dim: 16, Heads: 2, Patch: 4, Steps: 20, Batch: 24, Seed: 5, Block: 4}
		set(&c)
		train := func(workers, stop int) []float32 {
			c.Workers = workers
			tr, err := NewViT(c, blobs(60))
			for err == nil && !tr.Done() {
				if tr.step == stop {
					path := filepath.Join(t.TempDir(), "checkpoint")
					if err = tr.Save(path); err != nil {
						break
					}
					if tr, err = NewViT(c, blobs(60)); err != nil {
						break
					}
					if err = tr.Resume(path); err != nil {
						break
					}
				}
				err = tr.Step()
			}
			if err != nil {
				t.Fatal(err)
			}
			return tr.net.params
		}
		want := train(1, -1)
		for _, stop := range []int{7, 17} {
			if !slices.Equal(train(3, stop), want) {
				t.Errorf("%s: other bits with 3 workers, resumed at step %d", name, stop)
			}
		}
	}
}

// Law: the gradient of the smoothed loss is that of its value, and without smoothing
// both are the cross entropy.
func TestSmoothedLoss(t *testing.T) {
	tr, _ := settled(t, false, None, 1)
	tr.net.pack(1)
	p := <-tr.passes
	p.begin(2)
	tr.data.batch(p, 3, 0, 0)
	p.forward(nil)
	logits := p.outputs()
	before := slices.Clone(logits.Data)
	for _, smoothing := range []float64{0, 0.1, 0.5} {
		want := 0.0
		for s := range p.seqs {
			row := before[s*logits.Cols : (s+1)*logits.Cols]
			for j := range row {
				loss, _ := CrossEntropy(row, int32(j))
				q := smoothing / float64(len(row))
				if int32(j) == p.labels[s] {
					q += 1 - smoothing
				}
				want += q * loss / float64(p.seqs)
			}
		}
		view := tr.parts[0]
		clear(view.grads)
		got := p.loss(&view.view, p.seqs, smoothing)
		if math.Abs(got-want) > 1e-5 {
			t.Errorf("smoothing %v: loss %v, want %v", smoothing, got, want)
		}
		// The gradient of the head's bias is the sum over the images of p - q.
		for j := range logits.Cols {
			sum := 0.0
			for s := range p.seqs {
				row := before[s*logits.Cols : (s+1)*logits.Cols]
				loss, _ := CrossEntropy(row, int32(j))
				sum += (math.Exp(-loss) - smoothing/float64(len(row))) / float64(p.seqs)
				if int32(j) == p.labels[s] {
					sum -= (1 - smoothing) / float64(p.seqs)
				}
			}
			if g := float64(view.view.headB[j]); math.Abs(g-sum) > 1e-5 {
				t.Errorf("smoothing %v: gradient of the bias of class %d is %v, want %v", smoothing, j, g, sum)
			}
		}
	}
	tr.passes <- p
}

// Law: an adversary stays within its distance and within what a pixel can be, and
// raises the loss more than noise of the same size does.
func TestAdversaryRaisesTheLoss(t *testing.T) {
	c := small(None)
	c.Patch, c.Steps, c.Batch, c.Rate, c.Adversarial = 4, 120, 16, 0.005, 0.08
	tr, err := NewViT(c, blobs(240))
	for err == nil && !tr.Done() {
		err = tr.Step()
	}
	if err != nil {
		t.Fatal(err)
	}
	p := <-tr.passes
	defer func() { tr.passes <- p }()
	lossOf := func() float64 {
		p.forward(nil)
		return p.loss(&p.adversary.view, p.seqs, 0)
	}
	p.begin(p.most)
	tr.data.batch(p, 9, 1, 0)
	clean := slices.Clone(p.pixels[:p.seqs*144])
	quiet := lossOf()
	p.adversary.move(p, tr, 0)
	for i, v := range p.pixels[:len(clean)] {
		if d := math.Abs(float64(v - clean[i])); d > pixelScale*c.Adversarial+1e-6 || v < -1 || v > 1 {
			t.Fatalf("pixel %d was %v and is %v", i, clean[i], v)
		}
	}
	moved := slices.Clone(p.pixels[:len(clean)])
	attacked := lossOf()
	for i := range clean { // the same distances, the other way in half of the places
		p.pixels[i] = clean[i] + (moved[i]-clean[i])*float32(1-2*(i*7919%2))
	}
	if noise := lossOf(); !(attacked > quiet && attacked > noise) {
		t.Errorf("loss %v, of noise %v, of the adversary %v", quiet, noise, attacked)
	}
	if held := tr.Judge(0); held.Accuracy < 0.8 {
		t.Errorf("accuracy %.3f after adversarial training (seed %d)", held.Accuracy, c.Seed)
	}
}

// Settings out of range are errors that name them.
func TestNewSettingsAreChecked(t *testing.T) {
	for name, c := range map[string]Config{
		"smoothing": {Steps: 1, Smoothing: 1}, "pruned": {Steps: 1, Pruned: -0.1},
		"adversarial": {Steps: 1, Adversarial: math.NaN()},
	} {
		if _, err := NewViT(c, blobs(60)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	c := small(None)
	c.Adversarial = 0.1
	if _, err := NewLM(c, someText(t, 2000, 1)); err == nil {
		t.Error("adversarial training on text: no error")
	}
}
