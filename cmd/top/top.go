// Package top is the command top: it shows the numbers of a process that runs with --listen, or
// the totals of an output, in a terminal; elsewhere it prints one JSON document.
//
// A source (client.go, output.go) gives readings, which a poller asks for in a goroutine of its
// own. A model (model.go) holds what is known and what the keys have chosen; it changes by events
// alone. view.go, panes.go draw it as rows of styled text, without a terminal; screen.go puts the
// rows on one. Text that comes from a network or a file passes through safe (text.go): it may
// hold escape sequences.
package top

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
)

// Command is the command top: its flags and argument.
type Command struct {
	What      string        `arg:""`
	TokenFile string        `placeholder:"FILE"`
	Interval  time.Duration `default:"0s"`
	JSON      bool          `name:"json" xor:"form"`
	Once      bool          `xor:"form"`

	Bucket command.Bucket `embed:"" group:"Object store"`
}

// Check returns the mistakes in the flags.
func (c *Command) Check() error {
	if c.Interval != 0 && (c.Interval < leastInterval || c.Interval > mostInterval) {
		return mistake.Value("interval", " %v: want 0, or %v to %v", c.Interval, leastInterval, mostInterval)
	}
	return nil
}

// Limits of --interval. A shorter one would burden the process that is watched.
const (
	leastInterval = 200 * time.Millisecond
	mostInterval  = time.Hour
)

// firstPatience bounds the time until an address or an output answers for the first time.
const firstPatience = 4 * time.Second

// Run checks the flags and runs the command.
func (c *Command) Run(e *command.Env) error {
	if err := c.Check(); err != nil {
		return err
	}
	from, err := c.open(e.Ctx)
	if err != nil {
		return err
	}
	defer from.close()
	first, err := from.read(e.Ctx)
	if err != nil {
		return err
	}
	out, isFile := e.Stdout.(*os.File)
	terminal := isFile && command.IsTerminal(out)
	switch {
	case c.JSON || !terminal:
		if first, err = whole(e.Ctx, from, first); err != nil {
			return err
		}
		return printJSON(e.Stdout, first)
	case c.Once:
		if first, err = whole(e.Ctx, from, first); err != nil {
			return err
		}
		return printOnce(e.Stdout, from.name(), first)
	}
	interval := c.Interval
	if interval == 0 {
		interval = from.usual()
	}
	if command.IsDumb() {
		return printLines(e, from, first, interval)
	}
	return show(e, from, first, interval)
}

// source gives readings. Its methods are called one after the other.
type source interface {
	name() string         // the address or the folder
	usual() time.Duration // the usual interval between readings
	read(ctx context.Context) (*reading, error)
	close()
}

// whole reads on until nothing is left to be read.
func whole(ctx context.Context, from source, r *reading) (*reading, error) {
	for r.left > 0 {
		var err error
		if r, err = from.read(ctx); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// printJSON writes the document of a reading. Control characters beyond ASCII, which JSON
// allows in texts, are escaped: a terminal could obey them.
func printJSON(w io.Writer, r *reading) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r.document); err != nil {
		return fmt.Errorf("the answer is no JSON: %w", err)
	}
	for _, part := range text.String() {
		var err error
		if part >= 0x7f && part < 0xa0 {
			_, err = fmt.Fprintf(w, `\u%04x`, part)
		} else {
			_, err = io.WriteString(w, string(part))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// printOnce writes all panes as text.
func printOnce(w io.Writer, name string, r *reading) error {
	m := newModel(name, r.at)
	m.take(r)
	m.width, m.height = onceWidth, 1
	for _, row := range append(m.head(), m.body()...) {
		if _, err := io.WriteString(w, row.String()+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// onceWidth is the width of what --once prints.
const onceWidth = 100

// printLines writes a line for each reading, for terminals that cannot do more, until a signal.
func printLines(e *command.Env, from source, r *reading, interval time.Duration) error {
	if _, err := io.WriteString(e.Stdout, r.line()+"\n"); err != nil {
		return err
	}
	news := make(chan any)
	go poll(e.Ctx, from, interval, news)
	for {
		select {
		case <-e.Ctx.Done():
			return nil
		case event := <-news:
			line := ""
			switch event := event.(type) {
			case *reading:
				line = event.line()
			case failure:
				line = fmt.Sprintf("%s %s; next try in %v", event.at.Format(time.TimeOnly), safe(event.err.Error()),
					event.wait.Round(time.Second))
			case crash:
				return errors.New(event.String())
			}
			if _, err := io.WriteString(e.Stdout, line+"\n"); err != nil {
				return err
			}
		}
	}
}
