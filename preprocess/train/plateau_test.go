package train

import (
	"strings"
	"testing"

	"entropipe/algos/entropy"
	"entropipe/models"
)

// With a plateau the model of the least held-out loss is kept, and training ends after
// Patience judgements in a row of which none lowers the loss by more than the share.
func TestPlateauEndsTraining(t *testing.T) {
	for _, r := range []Regulariser{None, F, HDiff, HSoft} {
		cfg := Config{Mode: models.Perturb, Ops: []entropy.Problem{entropy.Hull2D}, Regulariser: r, Steps: 200, Seed: 3,
			Batch: 4, Points: 40, Every: 5, Patience: 3, Plateau: 0.5, Workers: 2, Lambda: 0.1}
		tr := trainer(t, cfg, someData(t, 2, 10, 80), 200)
		least, bar, waited, end := 0.0, 0.0, 0, 0
		for _, rec := range tr.Records() {
			j := rec.Judged
			if j == nil {
				continue
			}
			if least == 0 || j.Loss < least {
				least = j.Loss
			}
			switch {
			case bar == 0 || j.Loss < bar*(1-cfg.Plateau):
				bar, waited = j.Loss, 0
			case rec.Step > 80:
				waited++
			}
			if waited == cfg.Patience && end == 0 {
				end = rec.Step
			}
		}
		if end == 0 {
			end = 200
		}
		if tr.Steps() != end || end == 200 || tr.Best().Loss != least || !(least > 0) {
			t.Errorf("%s: ended at step %d, want %d; loss kept %v, least %v", r, tr.Steps(), end, tr.Best().Loss, least)
		}
	}
}

// The held-out loss of a network that moves nothing is the regulariser's alone.
func TestHeldOutLossOfStillPoints(t *testing.T) {
	cfg := Config{Mode: models.Perturb, Ops: []entropy.Problem{entropy.Hull2D}, Regulariser: HDiff, Steps: 10, Batch: 2,
		Points: 40, Plateau: 0.01, Lambda: 0.1, Anchors: 5, Alpha: 7, Seed: 1}
	d := someData(t, 2, 6, 80)
	tr := trainer(t, cfg, d, 0)
	var j Judgement
	f := &d.Judge[0]
	tr.heldOutLoss(&j, f, f.Cloud, f.Cloud)
	var o objective
	normalised(&o.original, f.Cloud, f.Lo, f.Hi)
	want := (&entropy.BallEntropy[float32]{Alpha: 7}).Value(o.original, tr.anchors)
	if len(tr.anchors) != 5 || j.Regulariser != want || j.Loss != 0.1*want {
		t.Errorf("%d anchors, loss %v, H_diff %v, want 0.1 of %v", len(tr.anchors), j.Loss, j.Regulariser, want)
	}
}

// The protocol as printed: 200 epochs of batches of 32, from H_diff's first weight at epoch
// 20 on, alpha from 10 down to 5 at epoch 110.
func TestAsPrinted(t *testing.T) {
	d := someData(t, 2, 50, 20) // 40 to learn from: two steps an epoch
	tr := trainer(t, AsPrinted(entropy.Hull2D, d), d, 0)
	c := tr.Config()
	if c.Steps != 400 || c.Batch != 32 || c.Lambda != 0.1 || c.Sigma != d.Extent()/10 || c.Every != 20 ||
		c.Regulariser != HDiff || c.Anchors != 16 {
		t.Fatalf("%+v", c)
	}
	for _, want := range []struct {
		epoch         int
		lambda, alpha float64
	}{{0, 0, 10}, {19, 0, 10}, {65, .1, 7.5}, {115, .1, 5}, {199, .1, 5}} {
		p := planOf(&c, 2*want.epoch)
		if p.lambda != want.lambda || p.alpha < want.alpha-.5 || p.alpha > want.alpha+.5 {
			t.Errorf("epoch %d: weight %v, alpha %v, want %v, about %v", want.epoch, p.lambda, p.alpha, want.lambda,
				want.alpha)
		}
	}
}

// Settings of the paper's losses that cannot be are named.
func TestSettingsOfThePapersLosses(t *testing.T) {
	d := someData(t, 2, 3, 50)
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{{func(c *Config) { c.Anchors = -1 }, "anchors -1"}, {func(c *Config) { c.HalfSpaces = 65 }, "half-spaces 65"},
		{func(c *Config) { c.Alpha = -1 }, "alpha -1"}, {func(c *Config) { c.Tau = -1 }, "tau -1"},
		{func(c *Config) { c.Plateau = 1 }, "plateau 1"}} {
		cfg := small(models.Perturb, 2, F)
		c.change(&cfg)
		if _, err := New(cfg, d); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
