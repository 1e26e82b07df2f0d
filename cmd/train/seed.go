package train

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/algos/geom"
	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
	"entropipe/models"
	"entropipe/preprocess/seedfit"
)

// runSeed fits the directions of a seed model, which are chosen, not trained:
// there are no steps to show, to judge or to resume.
func (c *Command) runSeed(e *command.Env) error {
	if err := c.checkSeed(); err != nil {
		return err
	}
	d := seedData{sum: sha256.New()}
	if err := c.each(e, d.add); err != nil {
		return err
	}
	m, err := seedfit.Fit(d.learn, seedfit.Options{Directions: c.Directions, Seed: c.Seed,
		Dataset: d.dataset.or(c.Dataset), Sensor: d.sensor.or(c.Sensor),
		DataSHA256: hex.EncodeToString(d.sum.Sum(nil)), Command: c.seedCommand()})
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(c.Source, " "), err)
	}
	card, err := d.card(m)
	if err != nil {
		return err
	}
	if err := m.Write(c.Out); err != nil {
		return err
	}
	if err := card.Write(c.Out, m); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "%s: seed model for hull3d, %d directions (%.3g %% of the points survive "+
		"hull3d's sieve), SHA-256 %.12s…\n",
		c.Out, c.Directions, 100*m.Meta.Survivors["hull3d"], m.SHA256)
	return err
}

// checkSeed returns the first mistake, as a Usage.
func (c *Command) checkSeed() error {
	c.Directions = cmp.Or(c.Directions, 32)
	if c.Ops != "" && c.Ops != "hull3d" {
		return mistake.NewUsage(fmt.Errorf("--ops %s: seed models are for hull3d; the other operators find better "+
			"samples themselves", c.Ops))
	}
	if filepath.Ext(c.Out) != ".safetensors" {
		return mistake.NewUsage(fmt.Errorf("--out %s: want a name that ends in .safetensors", c.Out))
	}
	if c.Resume {
		return mistake.NewUsage(errors.New("--resume: fitting directions takes seconds, and leaves no checkpoint"))
	}
	return errors.Join(c.checkPrinted(), command.CheckAmount("directions", c.Directions, 24, 1024),
		command.CheckAmount("frames", c.Frames, 1, 1<<20))
}

// seedCommand is the command line that makes the model.
func (c *Command) seedCommand() string {
	args := append([]string{"entropipe train"}, c.Source...)
	if c.Source[0] == "synthetic" {
		args = append(args, "--kind", c.Kind)
	}
	args = append(args, "--mode", c.Mode, "--directions", fmt.Sprint(c.Directions), "--seed", fmt.Sprint(c.Seed),
		"--frames", fmt.Sprint(c.Frames))
	if c.Dataset != "" {
		args = append(args, "--dataset", c.Dataset)
	}
	if c.Sensor != "" {
		args = append(args, "--sensor", c.Sensor)
	}
	return strings.Join(append(args, "--out", filepath.Base(c.Out)), " ")
}

// seedData are frames to fit to and, every fifth, to calibrate on.
type seedData struct {
	learn, judge    []geom.Cloud[float32]
	dataset, sensor names
	sum             hash.Hash
}

// add keeps a copy of a frame in space, without non-finite points.
func (d *seedData) add(f learned) error {
	c := f.cloud
	d.dataset.add(f.dataset)
	d.sensor.add(f.sensor)
	if c.Z == nil {
		return nil
	}
	own := geom.Cloud[float32]{X: slices.Clone(c.X), Y: slices.Clone(c.Y), Z: slices.Clone(c.Z)}
	if !own.Finite() {
		own = geom.Cloud[float32]{Z: []float32{}}
		for i := range c.X {
			if x, y, z := c.X[i], c.Y[i], c.Z[i]; x-x == 0 && y-y == 0 && z-z == 0 {
				own.X, own.Y, own.Z = append(own.X, x), append(own.Y, y), append(own.Z, z)
			}
		}
	}
	for i := range own.X {
		var b [12]byte
		for k, v := range []float32{own.X[i], own.Y[i], own.Z[i]} {
			bits := math.Float32bits(v)
			b[4*k], b[4*k+1], b[4*k+2], b[4*k+3] = byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24)
		}
		if _, err := d.sum.Write(b[:]); err != nil {
			return err
		}
	}
	if (len(d.learn)+len(d.judge))%5 == 4 {
		d.judge = append(d.judge, own)
	} else {
		d.learn = append(d.learn, own)
	}
	return nil
}

// card judges the model on the frames held out, which become its calibration
// where there are any.
func (d *seedData) card(m *models.EntropyNet) (*models.Card, error) {
	card := &models.Card{
		Title: "Directions for hull3d",
		Purpose: "Tells the hull in space which points of a frame to begin with. Rows are the same with any model; " +
			"only the time differs.",
		Limits: []string{
			"Frames below 32,768 points get no hints: their hulls take about the time that hints take.",
			"Made for frames like those it was fitted to; the stage turns hints off where they do not help.",
		},
	}
	for _, part := range []struct {
		name, use string
		frames    []geom.Cloud[float32]
	}{{"learned", "training", d.learn}, {"held out", "calibration", d.judge}} {
		if len(part.frames) == 0 {
			continue
		}
		data := models.CardData{Name: part.name, Use: part.use, Frames: len(part.frames)}
		for _, c := range part.frames {
			data.Points += int64(c.Len())
		}
		card.Data = append(card.Data, data)
		survived, err := seedfit.Survivors(m, part.frames)
		if err != nil {
			return nil, err
		}
		m.Meta.Survivors["hull3d"] = survived
		card.Metrics = append(card.Metrics,
			models.Metric{Name: "points that hull3d's sieve leaves, with hints", On: part.name,
				Value: 100 * survived, Unit: "%"},
			models.Metric{Name: "the same, without", On: part.name, Value: 100 * seedfit.Unhinted(part.frames),
				Unit: "%"})
	}
	return card, nil
}
