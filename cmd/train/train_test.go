package train

import (
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
		c.Regulariser, c.Anchors, c.Alpha, c.Tau = name, 5, 7, 0.01
		cfg, _, err := c.config()
		if err != nil || cfg.Regulariser != want || cfg.Anchors != 5 || cfg.Alpha != 7 || cfg.Tau != 0.01 {
			t.Errorf("%s: %+v, %v", name, cfg, err)
		}
		for _, part := range []string{"--regulariser " + name, "--anchors 5", "--alpha 7", "--tau 0.01"} {
			if !strings.Contains(c.command(), part) {
				t.Errorf("%q lacks %q", c.command(), part)
			}
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
