package export

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"entropipe/cmd/command"
	"entropipe/cmd/config"
	"entropipe/cmd/mistake"
	"entropipe/models"
)

// isModel says whether what is exported is a model's file, not a folder.
func (c *Command) isModel() bool {
	info, err := os.Stat(c.Out)
	return strings.EqualFold(filepath.Ext(c.Out), ".safetensors") && (err != nil || !info.IsDir())
}

// exportModel writes a model's network as onnx.
func (c *Command) exportModel(e *command.Env) error {
	switch ext := strings.ToLower(filepath.Ext(c.File)); {
	case c.As != "" && c.As != "onnx":
		return mistake.NewUsage(fmt.Errorf("--as %s: a model is exported as onnx", c.As))
	case c.As == "" && ext != ".onnx" && ext != "" && c.File != "-":
		return mistake.NewUsage(fmt.Errorf("-o %s: a model is exported as onnx; add --as onnx to write it there all "+
			"the same", c.File))
	case c.Topic != "" || c.Partition != nil || c.Offset != nil || c.Index != nil || c.Dataset != "" ||
		c.Sequence != "" || c.FrameID != nil || len(c.Layers) > 0 || c.ASCII || c.All:
		return mistake.NewUsage(errors.New("a model has no frames: which frame, and how, is said of an output folder"))
	}
	c.As = "onnx"
	if err := c.checkTerminal(e.Stdout); err != nil {
		return err
	}
	m, err := models.ReadEntropyNet(c.Out)
	if err != nil {
		return err
	}
	if m.Meta.Mode == models.Seed {
		return fmt.Errorf("export %s: a %s model is directions and has no network that onnx could hold",
			config.ShownPath(c.Out), m.Meta.Mode)
	}
	return c.send(e.Stdout, func(w *bufio.Writer) error { return m.WriteONNX(w) })
}
