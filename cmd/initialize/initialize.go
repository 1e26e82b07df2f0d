// Package initialize is the command init: it writes an example of a configuration file.
// (A Go package cannot be called init.)
package initialize

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
	"entropipe/models/atomicfile"
)

// Command writes an example to File.
type Command struct {
	File string `arg:"" optional:"" default:"entropipe.yaml"`

	Tokens bool
	Force  bool
}

//go:embed clouds.yaml
var clouds string

//go:embed tokens.yaml
var tokens string

// Run writes the example and prints what to do next.
func (c *Command) Run(e *command.Env) error {
	text := clouds
	if c.Tokens {
		text = tokens
	}
	if c.File == "-" {
		_, err := io.WriteString(e.Stdout, text)
		return err
	}
	if err := c.write(text); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.Stdout, `%[1]s is written. Next:
  edit %[1]s                             brokers, topic and out are yours
  entropipe validate --schema > entropipe.schema.json   beside it: editors complete keys
  entropipe validate %[1]s --connect     checks the file, brokers and output folder
  entropipe run %[1]s                    starts
`, c.File)
	return err
}

// write writes the file; without Force only where nothing stands.
func (c *Command) write(text string) error {
	if c.Force {
		return atomicfile.Write(c.File, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
	}
	f, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return mistake.NewUsage(fmt.Errorf("%s exists already; --force replaces it", c.File))
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	return errors.Join(err, f.Close())
}
