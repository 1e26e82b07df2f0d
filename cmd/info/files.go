package info

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"entropipe/cmd/command"
	"entropipe/cmd/config"
	"entropipe/cmd/mistake"
	"entropipe/sinks"
	"entropipe/sinks/read"
)

// checkForms returns a mistake.Usage if flags of one form are given with another one.
func (c *Command) checkForms() error {
	switch {
	case c.Files && c.SQL:
		return mistake.About("--files and --sql both print what opens the tables: say one of them", "files", "sql")
	case !c.Files && c.With != "":
		return mistake.About("--with says where --files finds compacted rows: want --files, too", "with", "files")
	case !c.Files && c.Format != read.DuckDB:
		return mistake.About("--format is the one of --files: want --files, too", "format", "files")
	case c.Files && len(c.What) != 1:
		return mistake.About("--files describes one output", "files")
	case c.With != "":
		return command.CheckAddress("with", c.With)
	}
	return nil
}

// printFiles prints what opens the files of an output, and in place of those that a compaction
// covers the files of the compaction.
func (c *Command) printFiles(e *command.Env) error {
	out, err := command.OpenOutput(e.Ctx, c.What[0], &c.Bucket)
	if err != nil {
		return err
	}
	defer out.Close()
	var with sinks.Reader
	if c.With != "" {
		store, err := command.OpenOutput(e.Ctx, c.With, &c.Bucket)
		if err != nil {
			return fmt.Errorf("--with: %w", err)
		}
		defer store.Close()
		with = store
	}
	var list *read.FileList
	err = command.UntilStopped(e, func() (err error) {
		list, err = read.ListFiles(e.Ctx, out, with)
		return err
	})
	if wrong := (*sinks.ConfigError)(nil); errors.As(err, &wrong) {
		return &mistake.Config{Problems: []mistake.Problem{{Path: wrong.Field, What: wrong.Problem}}}
	}
	if retired := (*read.RetiredError)(nil); errors.As(err, &retired) {
		return fmt.Errorf("--files: %s: %w; name it with --with", config.ShownPath(c.What[0]), err)
	}
	if err != nil {
		return fmt.Errorf("--files: %s: %w", config.ShownPath(c.What[0]), err)
	}
	roots := read.Roots{Out: command.WholeOutput(c.What[0]), Endpoint: c.Bucket.Endpoint, Region: c.Bucket.Region}
	if c.With != "" {
		roots.With = command.WholeOutput(c.With)
	}
	if c.JSON {
		encoder := json.NewEncoder(e.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(struct {
			Out  string `json:"out"`
			With string `json:"with,omitempty"`
			*read.FileList
		}{roots.Out, roots.With, list})
	}
	_, err = io.WriteString(e.Stdout, list.Text(c.Format, roots))
	return err
}
