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

type TrainViT struct {
	Source string `arg:"" name:"source" placeholder:"DIR|shapes" help:"Images to learn from: a folder with a folder of PNG files for every class, or with sheets whose rows are images beside a file labels.js; or the word shapes. Every sixth image is held out."`

	Patch  int `default:"4" help:"Pixels a side of a patch (${default})." group:"Model"`
	Batch  int `default:"32" help:"Images a step (${default})." group:"Training"`
	Shift  int `default:"0" help:"Move every image by up to so many pixels each way (${default})." group:"Training"`
	Images int `default:"12000" help:"Number of drawn shapes (${default})." group:"Data"`
	Side   int `default:"28" help:"Pixels a side of drawn shapes (${default})." group:"Data"`
	transformerFlags
}

func (TrainViT) Help() string {
	return `Trains an image classifier of the ViT class from nothing, on this machine's processor, and writes it as
a directory that Hugging Face's transformers opens. Images become grey. The word shapes stands for drawn
images, an object of one of eight classes on a texture, whose pixels are known.

Examples:
  entropipe train-vit mnist/ --shift 2 --minutes 5 --out digits/ --progress
  entropipe train-vit shapes --steps 3000 --seed 42 --regulariser entropy --out shapes/`
}

// Run trains, writes the directory and says what came of it.
func (c *TrainViT) Run(e *command.Env) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	cfg.Patch, cfg.Batch, cfg.Shift = c.Patch, c.Batch, c.Shift
	if err := errors.Join(command.CheckAmount("patch", c.Patch, 1, 1<<10), command.CheckAmount("batch", c.Batch, 1, 1<<14), command.CheckAmount("shift", c.Shift, 0, 1<<10),
		command.CheckAmount("images", c.Images, 12, 1<<20), command.CheckAmount("side", c.Side, 8, 1<<10)); err != nil {
		return err
	}
	images, err := c.read()
	if err != nil {
		return err
	}
	images.Name = cmp.Or(c.About, images.Name)
	e.Log.Info("images to learn from", "images", images.Len(), "held_out", len(images.HeldOut()), "side", images.Side, "classes", len(images.Names))
	t, err := train.NewViT(cfg, images)
	if err != nil {
		return mistake.NewUsage(err)
	}
	command := "entropipe train-vit " + filepath.Base(c.Source) + fmt.Sprintf(" --patch %d --shift %d", c.Patch, c.Shift)
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
