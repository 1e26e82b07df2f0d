package train

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Regulariser names a term that a training adds to its loss, so that attention
// can be cut to few blocks afterwards.
type Regulariser string

// The regularisers.
const (
	None Regulariser = "none"
	// Entropy is λ·mean_t H(a_t) - μ·H(s), where a_t is the attention of query t to
	// clusters of keys and s holds the clusters' shares of the keys. It favours few
	// clusters a query, and clusters of like size. Clusters are soft, around anchors
	// that follow the centroids of the keys and take no gradient of the entropy.
	Entropy Regulariser = "entropy"
	// Paper is λ·H(s) alone, with learned anchors: the differentiable entropy of
	// "Differentiable Entropy Regularization" on keys, with its temperature falling
	// from 10 to 5. It is here for comparison: it ignores the queries, and its
	// optimum is one anchor that takes every key.
	Paper Regulariser = "paper"
	// L1 learns a gate in (0, 1) for every block of queries and keys, which
	// multiplies the weights of the block before they are normalised, and adds λ
	// times the sum of the gates to the loss. Config.Sparsity turns gates into masks.
	L1 Regulariser = "l1"
	// Window adds nothing to the loss. It closes as many blocks as L1 does, at the
	// same time, but keeps the nearest blocks and the first. A comparison with L1
	// shows the gain of learning which blocks to read, apart from the gain of
	// training with few blocks.
	Window Regulariser = "window"
)

// Config holds the settings of a training. A zero value takes the default that
// the field's comment names.
type Config struct {
	Layers int // number of blocks; default 2
	Dim    int // numbers of a token; default 128
	Heads  int // attention heads, a divisor of Dim; default 4

	// Context is the number of tokens of a sequence of text; default 256. An image
	// has one token for each patch and one for the class.
	Context int
	Patch   int // pixels a side of an image's patch; default 4
	// Shift is the largest distance, in pixels along each axis, by which every
	// image of a batch is moved at random; default 0.
	Shift int

	Steps int           // number of steps; 0: until Time has passed
	Time  time.Duration // length of the training; 0: until Steps are done. Exactly one of both is required.
	Batch int           // sequences a step; default 4 for text, 32 for images
	Rate  float64       // largest learning rate; default 0.006 for text, 0.0007 for images
	Seed  uint64

	Regulariser Regulariser // default None
	Lambda      float64     // weight of the regulariser; default 0.03 for Entropy and Paper, 0.01 for L1
	Mu          float64     // weight of the clusters' balance in Entropy; default Lambda/2
	Block       int         // tokens a side of a block with a gate; default 16
	// Sparsity is the share of blocks that L1 and Window close for good after seven
	// tenths of the training, rounded as support.Budget rounds it; the remaining steps
	// train without these blocks. 0 closes none, and Window requires more.
	Sparsity float64

	// Smoothing is the share of every target that goes to all classes or tokens alike
	// (label smoothing, Szegedy et al. 2016); default 0.
	Smoothing float64 `json:",omitempty"`
	// Adversarial is how far every pixel of an image may be moved before the network
	// learns from it, between 0 and 1 for black and white: from a random place within
	// that distance one step along the sign of the gradient of the loss (fast
	// adversarial training, Wong et al. 2020). Default 0; for images only.
	Adversarial float64 `json:",omitempty"`
	// Pruned is the share of the weights of every matrix of the blocks, smallest
	// magnitudes first, that become 0 for good after seven tenths of the training.
	// Default 0.
	Pruned float64 `json:",omitempty"`

	Every   int // steps between two judgements on held-out sequences; default 250
	Judged  int // sequences of such a judgement; default 64 for text, 512 for images
	Workers int // goroutines; default 1. The model does not depend on it.
}

// Limits of a configuration.
const (
	maxLayers  = 64
	maxDim     = 4096
	maxContext = 1 << 14
	maxBatch   = 1 << 14
)

// modality is the kind of a network's input.
type modality int

const (
	ofText modality = iota
	ofImages
)

// withDefaults returns the configuration with its defaults, or an error that names
// the first setting out of range.
func (c Config) withDefaults(input modality) (Config, error) {
	batch, judged, rate := 4, 64, 0.006
	if input == ofImages {
		batch, judged, rate = 32, 512, 0.0007
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
	return c, c.check()
}

// check returns an error that names the first setting out of range.
func (c *Config) check() error {
	for _, f := range []struct {
		name      string
		value     int
		from, end int
	}{
		{"layers", c.Layers, 1, maxLayers}, {"dim", c.Dim, 1, maxDim}, {"heads", c.Heads, 1, c.Dim},
		{"context", c.Context, 2, maxContext}, {"patch", c.Patch, 1, 1 << 10}, {"shift", c.Shift, 0, 1 << 10},
		{"steps", c.Steps, 0, math.MaxInt32}, {"batch", c.Batch, 1, maxBatch}, {"block", c.Block, 1, maxContext},
		{"every", c.Every, 1, math.MaxInt32}, {"judged", c.Judged, 1, math.MaxInt32},
		{"workers", c.Workers, 1, 1 << 10},
	} {
		if f.value < f.from || f.value > f.end {
			return fmt.Errorf("%s is %d but must be %d to %d", f.name, f.value, f.from, f.end)
		}
	}
	switch {
	case c.Dim%c.Heads != 0:
		return fmt.Errorf("dim %d does not divide into %d heads", c.Dim, c.Heads)
	case (c.Steps > 0) == (c.Time > 0):
		return fmt.Errorf("a training needs either a number of steps or a time")
	case !(c.Rate > 0 && c.Rate <= 1):
		return fmt.Errorf("rate is %v but must be more than 0 and at most 1", c.Rate)
	case !(c.Lambda >= 0 && c.Lambda <= 1e3) || !(c.Mu >= 0 && c.Mu <= 1e3):
		return fmt.Errorf("lambda is %v and mu is %v but both must be 0 to 1000", c.Lambda, c.Mu)
	case !(c.Sparsity >= 0 && c.Sparsity < 1):
		return fmt.Errorf("sparsity is %v but must be at least 0 and less than 1", c.Sparsity)
	case c.Sparsity > 0 && c.Regulariser != L1 && c.Regulariser != Window:
		return fmt.Errorf("sparsity is for the regularisers %s and %s, not %s", L1, Window, c.Regulariser)
	case !(c.Smoothing >= 0 && c.Smoothing < 1) || !(c.Pruned >= 0 && c.Pruned < 1):
		return fmt.Errorf("smoothing is %v and pruned is %v but both must be at least 0 and less than 1", c.Smoothing,
			c.Pruned)
	case !(c.Adversarial >= 0 && c.Adversarial <= 1):
		return fmt.Errorf("adversarial is %v but must be 0 to 1", c.Adversarial)
	case c.Sparsity == 0 && c.Regulariser == Window:
		return fmt.Errorf("regulariser %s needs a sparsity of more than 0", Window)
	}
	switch c.Regulariser {
	case None, Entropy, Paper, L1, Window:
		return nil
	}
	return fmt.Errorf("regulariser is %q but must be %s, %s, %s, %s or %s",
		c.Regulariser, None, Entropy, Paper, L1, Window)
}

const (
	gradientNorm = 1.0  // longer gradients are scaled down to this norm
	weightDecay  = 0.1  // decay of matrices
	warmSteps    = 100  // steps until the rate reaches Config.Rate
	lastRate     = 0.02 // final rate as a share of Config.Rate
	alphaFirst   = 10.0 // first inverse temperature of Paper
	alphaLast    = 5.0  // last inverse temperature of Paper
	hardFrom     = 0.7  // share of the training after which gates close and weights are pruned
)

// plan holds the settings of one step.
type plan struct {
	rate, lambda, mu, alpha float64
	hard, prune             bool
}

// plan returns the settings of the next step, a function of its number and of the
// share of the training done. The rate rises over the first steps and falls by a
// cosine. The weight of the regulariser rises from 0 after a tenth of the training
// to its full value after two tenths.
func (t *Trainer) plan() plan {
	c, done := &t.cfg, t.Progress()
	begun := max(0, min(1, (done-0.1)/0.1))
	return plan{
		rate: c.Rate * min(1, float64(t.step+1)/warmSteps) *
			(lastRate + (1-lastRate)*(1+math.Cos(math.Pi*done))/2),
		lambda: c.Lambda * begun,
		mu:     c.Mu * begun,
		alpha:  alphaLast + (alphaFirst-alphaLast)*(1+math.Cos(math.Pi*done))/2,
		hard:   c.Sparsity > 0 && done >= hardFrom,
		prune:  c.Pruned > 0 && done >= hardFrom,
	}
}
