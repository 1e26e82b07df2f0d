package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/sparse/support"
)

// maskForms are the forms of other programs, for --as.
var maskForms = []string{support.ORT, support.Flex, support.FlashInfer}

// isMask says whether what is exported is a folder of a mask.
func (c *exportCmd) isMask() bool {
	_, err := os.Stat(filepath.Join(c.Out, support.ConfigFile))
	return err == nil
}

// exportMask writes a mask's layouts as another program's tensors.
func (c *exportCmd) exportMask(e *env) error {
	switch {
	case !slices.Contains(maskForms, c.As):
		return usageError{fmt.Errorf("%s is a mask: say for whom with --as %s", shownPath(c.Out), strings.Join(maskForms, "|"))}
	case c.Topic != "" || c.Partition != nil || c.Offset != nil || c.Index != nil || c.Dataset != "" || c.Sequence != "" || c.FrameID != nil || len(c.Layers) > 0 || c.ASCII:
		return usageError{errors.New("a mask has no frames: which frame, and how, is said of an output folder")}
	}
	if f, ok := e.stdout.(*os.File); ok && (c.File == "" || c.File == "-") && isTerminal(f) {
		return usageError{fmt.Errorf("%s is binary, and stdout a terminal: name a file with -o", c.As)}
	}
	s, err := support.Read(c.Out)
	if err != nil {
		return err
	}
	err = c.send(e.stdout, func(w *bufio.Writer) error { return s.Export(w, c.As) })
	if err != nil {
		return fmt.Errorf("export %s: %w", shownPath(c.Out), err)
	}
	return nil
}
