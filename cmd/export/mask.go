package export

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/cmd/command"
	"entropipe/cmd/config"
	"entropipe/cmd/mistake"
	"entropipe/sparse/support"
)

// maskForms are the forms of other programs, for --as.
var maskForms = []string{support.ORT, support.Flex, support.FlashInfer}

// isMask says whether what is exported is a folder of a mask.
func (c *Command) isMask() bool {
	_, err := os.Stat(filepath.Join(c.Out, support.ConfigFile))
	return err == nil
}

// exportMask writes a mask's layouts as another program's tensors.
func (c *Command) exportMask(e *command.Env) error {
	switch {
	case !slices.Contains(maskForms, c.As):
		return mistake.NewUsage(fmt.Errorf("%s is a mask: say for whom with --as %s", config.ShownPath(c.Out),
			strings.Join(maskForms, "|")))
	case c.Topic != "" || c.Partition != nil || c.Offset != nil || c.Index != nil || c.Dataset != "" ||
		c.Sequence != "" || c.FrameID != nil || len(c.Layers) > 0 || c.ASCII || c.All:
		return mistake.NewUsage(errors.New("a mask has no frames: which frame, and how, is said of an output folder"))
	}
	if f, ok := e.Stdout.(*os.File); ok && (c.File == "" || c.File == "-") && command.IsTerminal(f) {
		return mistake.NewUsage(fmt.Errorf("%s is binary, and stdout a terminal: name a file with -o", c.As))
	}
	s, err := support.Read(c.Out)
	if err != nil {
		return err
	}
	err = c.send(e.Stdout, func(w *bufio.Writer) error { return s.Export(w, c.As) })
	if err != nil {
		return fmt.Errorf("export %s: %w", config.ShownPath(c.Out), err)
	}
	return nil
}
