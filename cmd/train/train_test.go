package train

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"entropipe/models"
	"entropipe/preprocess/train"
)

// flags are those of a command line without any.
func flags() Command {
	return Command{Source: []string{"scans"}, Mode: models.Perturb, Ops: "hull2d", Regulariser: "F", Steps: 2000,
		Seed: 1, Batch: 8, Points: 2048, Lambda: 0.01, Anchors: 16, Tau: 0.0005, Tolerance: 0.0025, Frames: 200,
		Out: "m.safetensors"}
}

// The paper's names are the names of the losses; the older ones stay.
func TestNamesOfLosses(t *testing.T) {
	for name, want := range map[string]train.Regulariser{"H_diff": train.HDiff, "hdiff": train.HDiff,
		"H_soft": train.HSoft, "hsoft": train.HSoft, "F": train.F, "none": train.None} {
		c := flags()
		c.Regulariser = name
		cfg, _, err := c.config()
		if err != nil || cfg.Regulariser != want || !strings.Contains(c.command(), "--regulariser "+name) {
			t.Errorf("%s: %+v, %v; %q", name, cfg, err, c.command())
		}
	}
}

// The flags of a loss are its own: they reach the training and stand in the model's command
// line, and with another loss or mode they are a mistake, not a silence.
func TestFlagsOfLosses(t *testing.T) {
	for _, f := range []struct {
		flag   string
		set    func(*Command)
		takers string // names of the losses that take it
		is     func(train.Config) bool
	}{
		{"--anchors 5", func(c *Command) { c.Anchors = 5 }, "H_diff",
			func(c train.Config) bool { return c.Anchors == 5 }},
		{"--alpha 7", func(c *Command) { c.Alpha = 7 }, "H_diff", func(c train.Config) bool { return c.Alpha == 7 }},
		{"--tau 0.01", func(c *Command) { c.Tau = 0.01 }, "F H_soft",
			func(c train.Config) bool { return c.Tau == 0.01 }},
		{"--lambda 0.5", func(c *Command) { c.Lambda = 0.5 }, "F H_diff H_soft",
			func(c train.Config) bool { return c.Lambda == 0.5 }},
	} {
		for _, name := range []string{"F", "H_diff", "H_soft", "none"} {
			c := flags()
			c.Regulariser = name
			f.set(&c)
			cfg, _, err := c.config()
			if !slices.Contains(strings.Fields(f.takers), name) {
				if err == nil || !strings.Contains(err.Error(), strings.Fields(f.flag)[0]+" has no effect here") {
					t.Errorf("%s with %s: %v", f.flag, name, err)
				}
			} else if err != nil || !f.is(cfg) || !strings.Contains(c.command(), f.flag) {
				t.Errorf("%s with %s: %v, %+v, %q", f.flag, name, err, cfg, c.command())
			}
		}
	}
	for flag, c := range map[string]Command{"--noise": {Mode: models.Perturb, Noise: 1},
		"--tolerance": {Mode: models.Denoise, Tolerance: 1}} {
		d := flags()
		d.Mode, d.Ops, d.Noise = c.Mode, "", c.Noise
		d.Tolerance = cmp.Or(c.Tolerance, d.Tolerance)
		if _, _, err := d.config(); err == nil || !strings.Contains(err.Error(), flag+" has no effect here") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// --as-printed refuses every flag that it sets itself, and is in the model's command line.
func TestAsPrintedSetsTheProtocol(t *testing.T) {
	c := flags()
	c.AsPrinted = true
	if _, _, err := c.config(); err != nil {
		t.Fatal(err)
	}
	if got, want := c.command(), "entropipe train scans --mode perturb --ops hull2d --as-printed --seed 1 "+
		"--points 2048 --frames 200 --out m.safetensors"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for flag, set := range map[string]func(*Command){
		"--mode": func(c *Command) { c.Mode = models.Denoise }, "--sigma": func(c *Command) { c.Sigma = 1 },
		"--regulariser": func(c *Command) { c.Regulariser = "H_soft" }, "--steps": func(c *Command) { c.Steps = 5 },
		"--batch": func(c *Command) { c.Batch = 4 }, "--lambda": func(c *Command) { c.Lambda = 1 },
		"--anchors": func(c *Command) { c.Anchors = 8 }, "--alpha": func(c *Command) { c.Alpha = 8 },
		"--tau": func(c *Command) { c.Tau = .1 }, "--tolerance": func(c *Command) { c.Tolerance = .1 },
	} {
		c := flags()
		c.AsPrinted = true
		set(&c)
		if _, _, err := c.config(); err == nil || !strings.Contains(err.Error(), "sets "+flag+" itself") {
			t.Errorf("%s: %v", flag, err)
		}
	}
	c = flags()
	c.Tau = 0
	if _, _, err := c.config(); err == nil || !strings.Contains(err.Error(), "--tau 0") {
		t.Errorf("tau 0: %v", err)
	}
}
