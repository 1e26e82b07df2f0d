package train

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Regulariser is what a training lowers beside its loss, so that attention can
// be cut to few blocks afterwards.
type Regulariser string

// The regularisers.
const (
	None Regulariser = "none"
	// Entropy is λ·mean_t H(a_t) - μ·H(s), with a_t the attention of query t to
	// clusters of keys and s the clusters' shares of the keys: few clusters a
	// query, and clusters of like size. Clusters are soft, about anchors that
	// follow the keys as their centroids and take no gradient of the entropy.
	Entropy Regulariser = "entropy"
	// Paper is λ·H(s) alone, with anchors that are learned: the differentiable
	// entropy of "Differentiable Entropy Regularization" on keys, with its
	// temperature of 10 falling to 5. Here to compare with: it does not see the
	// queries, and one anchor that takes every key is its optimum.
	Paper Regulariser = "paper"
	// L1 learns a gate in (0, 1) for every block of queries and keys, which
	// multiplies the weights of the block before they are normalised, and pays
	// λ for the sum of the gates. The gates end as masks: see Config.Sparsity.
	L1 Regulariser = "l1"
	// Window lowers nothing: it closes all blocks but the nearest and the first
	// when L1 closes those that it learned to do without, and as many. It tells
	// what learning which blocks to read is worth, apart from learning to do with
	// few of them.
	Window Regulariser = "window"
)

// Config is how to train. The zero value of a field that is not said to be
// required takes its default.
type Config struct {
	Layers int // blocks; 2
	Dim    int // numbers of a token; 128
	Heads  int // of attention; 4; divides Dim

	// Context is the number of tokens of a sequence of text, 256. Images have
	// as many tokens as patches, and one for the class.
	Context int
	Patch   int // pixels a side of an image's patch; 4
	// Shift moves every image of a batch by up to so many pixels each way.
	Shift int

	Steps int           // 0: as many as Time allows
	Time  time.Duration // 0: as long as Steps take; one of both is required
	Batch int           // sequences a step; text 4, images 32
	Rate  float64       // of learning, after the first steps; 0.006, images 0.0007
	Seed  uint64

	Regulariser Regulariser // None
	Lambda      float64     // its weight; Entropy and Paper 0.03, L1 0.01
	Mu          float64     // of the clusters' balance; Lambda/2
	Block       int         // tokens a side of a block with a gate; 16
	// Sparsity is the share of blocks that L1 and Window close for good after
	// seven tenths of the training; what follows learns to do without them. 0:
	// none; Window wants some.
	Sparsity float64

	Every   int // steps between two looks at held-out sequences; 250
	Judged  int // sequences of such a look; text 64, images 512
	Workers int // goroutines; 1. The model does not depend on it.
}

// Beyond these a configuration is a mistake.
const (
	maxLayers  = 64
	maxDim     = 4096
	maxContext = 1 << 14
	maxBatch   = 1 << 14
)

// withDefaults returns the configuration in full, or what is wrong with it.
func (c Config) withDefaults(text bool) (Config, error) {
	batch, judged, rate := 32, 512, 0.0007
	if text {
		batch, judged, rate = 4, 64, 0.006
	}
	c.Layers, c.Dim, c.Heads = cmp.Or(c.Layers, 2), cmp.Or(c.Dim, 128), cmp.Or(c.Heads, 4)
	c.Context, c.Patch, c.Block = cmp.Or(c.Context, 256), cmp.Or(c.Patch, 4), cmp.Or(c.Block, 16)
	c.Batch, c.Judged, c.Rate = cmp.Or(c.Batch, batch), cmp.Or(c.Judged, judged), cmp.Or(c.Rate, rate)
	c.Every, c.Workers = cmp.Or(c.Every, 250), cmp.Or(c.Workers, 1)
	c.Regulariser = cmp.Or(c.Regulariser, None)
	switch c.Regulariser {
	case None, Window:
		c.Lambda, c.Mu = 0, 0
	case Entropy:
		c.Lambda = cmp.Or(c.Lambda, 0.03)
		c.Mu = cmp.Or(c.Mu, c.Lambda/2)
	case Paper:
		c.Lambda, c.Mu = cmp.Or(c.Lambda, 0.03), 0
	case L1:
		c.Lambda, c.Mu = cmp.Or(c.Lambda, 0.01), 0
	}
	return c, c.check(text)
}

func (c *Config) check(text bool) error {
	for _, f := range []struct {
		name      string
		value     int
		from, end int
	}{{"layers", c.Layers, 1, maxLayers}, {"dim", c.Dim, 1, maxDim}, {"heads", c.Heads, 1, c.Dim}, {"context", c.Context, 2, maxContext},
		{"patch", c.Patch, 1, 1 << 10}, {"shift", c.Shift, 0, 1 << 10}, {"steps", c.Steps, 0, math.MaxInt32}, {"batch", c.Batch, 1, maxBatch},
		{"block", c.Block, 1, maxContext}, {"every", c.Every, 1, math.MaxInt32}, {"judged", c.Judged, 1, math.MaxInt32}, {"workers", c.Workers, 1, 1 << 10}} {
		if f.value < f.from || f.value > f.end {
			return fmt.Errorf("%s %d: want %d to %d", f.name, f.value, f.from, f.end)
		}
	}
	switch {
	case c.Dim%c.Heads != 0:
		return fmt.Errorf("dim %d does not divide into %d heads", c.Dim, c.Heads)
	case (c.Steps > 0) == (c.Time > 0):
		return fmt.Errorf("want a number of steps or a time, and not both")
	case !(c.Rate > 0 && c.Rate <= 1):
		return fmt.Errorf("rate %v: want more than 0, at most 1", c.Rate)
	case !(c.Lambda >= 0 && c.Lambda <= 1e3) || !(c.Mu >= 0 && c.Mu <= 1e3):
		return fmt.Errorf("lambda %v, mu %v: want 0 to 1000", c.Lambda, c.Mu)
	case !(c.Sparsity >= 0 && c.Sparsity < 1):
		return fmt.Errorf("sparsity %v: want from 0 to less than 1", c.Sparsity)
	case c.Sparsity > 0 && c.Regulariser != L1 && c.Regulariser != Window:
		return fmt.Errorf("sparsity is for the regularisers %s and %s, not %s", L1, Window, c.Regulariser)
	case c.Sparsity == 0 && c.Regulariser == Window:
		return fmt.Errorf("regulariser %s: want a sparsity of more than 0", Window)
	}
	switch c.Regulariser {
	case None, Entropy, Paper, L1, Window:
		return nil
	}
	return fmt.Errorf("regulariser %q: want %s, %s, %s, %s or %s", c.Regulariser, None, Entropy, Paper, L1, Window)
}

const (
	gradientNorm = 1.0  // longer gradients are cut to it
	weightDecay  = 0.1  // of matrices
	warmSteps    = 100  // until the rate is what was asked for
	lastRate     = 0.02 // of the rate, in the end
	alphaFirst   = 10.0 // of Paper
	alphaLast    = 5.0
	hardFrom     = 0.7 // of the training: gates that are to close do
)

// plan is what a step is taken with.
type plan struct {
	rate, lambda, mu, alpha float64
	hard                    bool
}

// plan is a function of the step and of the share of the training done. The
// rate rises over the first steps and falls by a cosine; the regulariser begins
// after a tenth of the training and has its weight after two.
func (t *Trainer) plan() plan {
	c, done := &t.cfg, t.Progress()
	begun := max(0, min(1, (done-0.1)/0.1))
	return plan{
		rate:   c.Rate * min(1, float64(t.step+1)/warmSteps) * (lastRate + (1-lastRate)*(1+math.Cos(math.Pi*done))/2),
		lambda: c.Lambda * begun,
		mu:     c.Mu * begun,
		alpha:  alphaLast + (alphaFirst-alphaLast)*(1+math.Cos(math.Pi*done))/2,
		hard:   c.Sparsity > 0 && done >= hardFrom,
	}
}
