package transformer

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
	"entropipe/sparse/train"
)

// TrainViT is the command train-vit: its flags and argument.
type TrainViT struct {
	Source string `arg:"" name:"source" placeholder:"DIR|shapes"`

	Patch  int `default:"4" group:"Model"`
	Batch  int `default:"32" group:"Training"`
	Shift  int `default:"0" group:"Training"`
	Images int `default:"12000" group:"Data"`
	Side   int `default:"28" group:"Data"`
	transformerFlags
}

// Run trains, writes the directory and says what came of it.
func (c *TrainViT) Run(e *command.Env) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	cfg.Patch, cfg.Batch, cfg.Shift = c.Patch, c.Batch, c.Shift
	if err := errors.Join(command.CheckAmount("patch", c.Patch, 1, 1<<10),
		command.CheckAmount("batch", c.Batch, 1, 1<<14), command.CheckAmount("shift", c.Shift, 0, 1<<10),
		command.CheckAmount("images", c.Images, 12, 1<<20), command.CheckAmount("side", c.Side, 8, 1<<10)); err != nil {
		return err
	}
	images, err := c.read()
	if err != nil {
		return err
	}
	images.Name = cmp.Or(c.About, images.Name)
	e.Log.Info("images to learn from", "images", images.Len(), "held_out", len(images.HeldOut()), "side", images.Side,
		"classes", len(images.Names))
	t, err := train.NewViT(cfg, images)
	if err != nil {
		return mistake.NewUsage(err)
	}
	command := "entropipe train-vit " + filepath.Base(c.Source) +
		fmt.Sprintf(" --patch %d --shift %d", c.Patch, c.Shift)
	if c.Source == shapesSource {
		command += fmt.Sprintf(" --images %d --side %d", c.Images, c.Side)
	}
	return c.run(e, t, command)
}

// shapesSource stands for images that are drawn.
const shapesSource = "shapes"

func (c *TrainViT) read() (*train.Images, error) {
	if c.Source == shapesSource {
		if c.Images*c.Side*c.Side > 1<<30 {
			return nil, mistake.NewUsage(errors.New("--images, --side: more than 2^30 pixels in all"))
		}
		return train.Shapes(c.Images, c.Side, c.Seed), nil
	}
	info, err := os.Stat(c.Source)
	if err != nil {
		return nil, fmt.Errorf("%w (a source is a folder, or the word shapes)", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s: is no folder", c.Source)
	}
	return train.ReadImages(os.DirFS(c.Source), filepath.Base(c.Source))
}
