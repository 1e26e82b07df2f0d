package info

import (
	"errors"
	"fmt"
	"io"

	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
	"entropipe/sinks/read"
)

// printSQL prints, for every table of an output that has files, what opens this
// table and no other.
func (c *Command) printSQL(e *command.Env) error {
	if len(c.What) != 1 {
		return mistake.About("--sql describes one output", "sql")
	}
	output := c.What[0]
	store, err := command.FindOutput(e.Ctx, output, &c.Bucket)
	if err != nil {
		return fmt.Errorf("--sql: %w", err)
	}
	defer store.Close()
	if _, err := read.Identify(e.Ctx, store); err != nil {
		return fmt.Errorf("--sql: %s: %w", output, err)
	}
	tables, err := read.WrittenTables(e.Ctx, store)
	if err != nil {
		return err
	}
	if len(tables) == 0 {
		return errors.New("--sql: the output has no file yet")
	}
	replays, err := read.Replays(e.Ctx, store)
	if err != nil {
		return err
	}
	_, err = io.WriteString(e.Stdout, read.SQL(output, tables)+read.MendedSQL(output, tables, replays))
	return err
}
