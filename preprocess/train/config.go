package train

import (
	"fmt"
	"slices"
	"strings"

	"entropipe/algos/entropy"
	"entropipe/models"
)

// Regulariser names the term that is added to the task's loss.
type Regulariser string

// The regularisers. HDiff and HSoft are the paper's, for comparison.
const (
	None  Regulariser = "none"
	F     Regulariser = "F"     // entropy.Surrogate, which follows the entropy of the frame
	HDiff Regulariser = "hdiff" // entropy.BallEntropy, anchors learned with the network
	HSoft Regulariser = "hsoft" // entropy.CellEntropy, half-spaces learned with the network
)

// Problems holds the operators that a network can be trained for.
var Problems = []entropy.Problem{entropy.Hull2D, entropy.Hull3D, entropy.Maxima2D, entropy.Maxima3D}

// ParseProblem returns the operator with the name, and false for an unknown name.
func ParseProblem(name string) (entropy.Problem, bool) {
	i := slices.IndexFunc(Problems, func(p entropy.Problem) bool { return p.String() == name })
	if i < 0 {
		return 0, false
	}
	return Problems[i], true
}

// Config is the configuration of a training. A field that is 0 gets its default,
// which its comment names. The result depends on all fields but Workers.
//
// Plateau chooses the model by the held-out loss, as the paper does, instead: the model
// of the least loss is kept, and a judgement counts against Patience unless its loss is
// below the last one that counted by more than this share of it.
type Config struct {
	Mode        string // models.Perturb or models.Denoise
	Ops         []entropy.Problem
	Regulariser Regulariser
	Steps       int     // 2000
	Seed        uint64  // seed of all random numbers
	Batch       int     // clouds a step: 8
	Points      int     // points of a cloud: 2048
	Sigma       float64 // bound of a displacement, in the frames' units: 1/100 of their extent, or what Noise asks for
	Lambda      float64 // weight of the regulariser: 1e-2
	Witnesses   int     // witnesses of F: 32
	Anchors     int     // anchors of HDiff, the paper's k: 16, at most a quarter of the first frame's points
	HalfSpaces  int     // half-spaces of HSoft: 8
	Alpha       float64 // sharpness of HDiff's assignments throughout; 0: from 10 to 5, as the paper anneals it
	Tau         float64 // last temperature of F and HSoft, the first is 1e-2: 5e-4
	Noise       Noise   // for Denoise: 1/300 of the extent, 1 % outliers within 8 deviations
	Every       int     // steps between two judgements: 100
	Patience    int     // judgements in a row without a better one that end the training: 10
	Tolerance   float64 // for Perturb: tolerated mean error of the answers, in diagonals of the frame: 0.0025
	Plateau     float64 // see below; 0: judgements compare entropy and error, or F1
	Workers     int     `json:"-"`
}

// Constants of training, from the paper where it prints them.
const (
	learningRate = 1e-3
	weightDecay  = 1e-4
	gradientNorm = 1.0
	dropoutRate  = 0.1

	tauFirst              = 1e-2
	alphaFirst, alphaLast = 10.0, 5.0
)

// withDefaults returns c with defaults in place of zeros, or what is wrong with c.
func (c Config) withDefaults(d *Data) (Config, error) {
	set(&c.Regulariser, F)
	set(&c.Steps, 2000)
	set(&c.Batch, 8)
	set(&c.Points, 2048)
	set(&c.Lambda, 1e-2)
	set(&c.Witnesses, 32)
	set(&c.Anchors, 16)
	set(&c.HalfSpaces, 8)
	set(&c.Tau, 5e-4)
	set(&c.Every, 100)
	set(&c.Patience, 10)
	set(&c.Tolerance, 0.0025)
	set(&c.Workers, 1)
	extent := d.Extent()
	if c.Mode == models.Denoise {
		set(&c.Noise, Noise{Sigma: extent / 300, Outliers: 0.01, Reach: 8})
		set(&c.Sigma, 3*c.Noise.Sigma)
	} else {
		set(&c.Sigma, extent/100)
	}
	return c, c.check(d)
}

// AsPrinted returns the paper's protocol for the frames of d: batches of 32 clouds, 200
// epochs, H_diff of 16 anchors with alpha from 10 to 5 and a weight of 0.1, displacements of
// at most a tenth of the extent, the model of the least held-out loss. Training ends after
// ten evaluations, one in ten epochs, none of which lowers that loss by more than 1 %.
func AsPrinted(op entropy.Problem, d *Data) Config {
	const batch, epochs, every = 32, 200, 10
	epoch := max(1, (len(d.Learn)+batch-1)/batch)
	return Config{Mode: models.Perturb, Ops: []entropy.Problem{op}, Regulariser: HDiff, Steps: epochs * epoch,
		Batch: batch, Sigma: d.Extent() / 10, Lambda: 0.1, Anchors: 16, Every: every * epoch, Patience: 10,
		Plateau: 0.01}
}

func set[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

func (c *Config) check(d *Data) error {
	switch {
	case c.Mode != models.Perturb && c.Mode != models.Denoise:
		return fmt.Errorf("mode %q cannot be trained here, want %s or %s", c.Mode, models.Perturb, models.Denoise)
	case !slices.Contains([]Regulariser{None, F, HDiff, HSoft}, c.Regulariser):
		return fmt.Errorf("regulariser %q is unknown, want none, F, hdiff or hsoft", c.Regulariser)
	case len(c.Ops) == 0:
		return fmt.Errorf("the training names no operator, want %s", problemNames(Problems))
	case c.Steps < 1 || c.Batch < 1 || c.Points < leastPoints || c.Witnesses < 2 || c.Every < 1 || c.Patience < 1:
		return fmt.Errorf("one of steps %d, batch %d, points %d, witnesses %d, every %d, patience %d is too small",
			c.Steps, c.Batch, c.Points, c.Witnesses, c.Every, c.Patience)
	case c.Anchors < 1 || c.HalfSpaces < 1 || c.HalfSpaces > entropy.MaxHalfSpaces:
		return fmt.Errorf("anchors %d must be at least 1, half-spaces %d from 1 to %d", c.Anchors, c.HalfSpaces,
			entropy.MaxHalfSpaces)
	case !(c.Alpha >= 0) || !(c.Tau > 0) || !(c.Plateau >= 0 && c.Plateau < 1):
		return fmt.Errorf("alpha %v must be at least 0, tau %v above 0, plateau %v from 0 to below 1", c.Alpha, c.Tau,
			c.Plateau)
	case !(c.Sigma > 0) || !(c.Lambda >= 0) || !(c.Tolerance > 0):
		return fmt.Errorf("sigma %v, lambda %v and tolerance %v must be numbers above 0 (a frame of equal points "+
			"has no extent)", c.Sigma, c.Lambda, c.Tolerance)
	case c.Mode == models.Denoise && !(c.Noise.Sigma > 0 && c.Noise.Outliers >= 0 && c.Noise.Outliers <= 1 &&
		c.Noise.Reach >= 0):
		return fmt.Errorf("noise %+v needs a deviation above 0, a fraction of outliers, and a reach", c.Noise)
	}
	for i, op := range c.Ops {
		switch {
		case !slices.Contains(Problems, op):
			return fmt.Errorf("operator %v cannot be trained for, want %s", op, problemNames(Problems))
		case slices.Contains(c.Ops[:i], op):
			return fmt.Errorf("operator %v is named twice", op)
		case d.Dims < 3 && inSpace(op):
			return fmt.Errorf("operator %v needs points of 3 dimensions, and the data have %d", op, d.Dims)
		case c.Mode == models.Denoise && !isMaxima(op):
			return fmt.Errorf("mode %s does not serve operator %v, it serves maxima alone", models.Denoise, op)
		}
	}
	return nil
}

func problemNames(ps []entropy.Problem) string {
	var names []string
	for _, p := range ps {
		names = append(names, p.String())
	}
	return strings.Join(names, ", ")
}

func inSpace(p entropy.Problem) bool  { return p == entropy.Hull3D || p == entropy.Maxima3D }
func isMaxima(p entropy.Problem) bool { return p == entropy.Maxima2D || p == entropy.Maxima3D }
