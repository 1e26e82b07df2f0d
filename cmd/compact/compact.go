// Package compact holds the commands compact and vacuum: the first copies the commits of an
// output to another one, in larger files, the second deletes files whose rows that one has.
// Package sinks/compact does the work.
package compact

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"entropipe/cmd/command"
	"entropipe/cmd/config"
	"entropipe/cmd/config/value"
	"entropipe/cmd/mistake"
	"entropipe/sinks"
	"entropipe/sinks/compact"
	"entropipe/sinks/tables"
)

// Command is the command compact: its flags and arguments.
type Command struct {
	Out         string        `arg:"" type:"output"`
	Into        string        `placeholder:"OUT2" group:"Compaction"`
	TargetBytes value.Size    `default:"256MiB" group:"Compaction"`
	Follow      bool          `group:"Compaction"`
	MaxAge      time.Duration `default:"1h" group:"Compaction"`
	Poll        time.Duration `default:"10s" group:"Compaction"`
	JSON        bool          `name:"json" group:"Compaction"`

	Bucket command.Bucket `embed:"" group:"Object store"`
}

// Check returns all mistakes of the flags, joined, each a mistake.Usage.
func (c *Command) Check() error {
	into := command.CheckAddress("into", c.Into)
	if c.Into == "" {
		into = mistake.About("--into is missing: the folder or s3://BUCKET/PREFIX of the compaction", "into")
	} else if into == nil {
		into = c.checkPlaces()
	}
	return errors.Join(into, c.Bucket.Check(c.Out),
		command.CheckAmount("target-bytes", c.TargetBytes, 1<<10, 2<<30),
		command.CheckAmount("max-age", c.MaxAge, 0, math.MaxInt64),
		command.CheckAmount("poll", c.Poll, 10*time.Millisecond, math.MaxInt64))
}

// checkPlaces returns a mistake.Usage if one of the two outputs lies in the other one.
func (c *Command) checkPlaces() error {
	inner, outer := within(c.Into, c.Out), within(c.Out, c.Into)
	switch {
	case inner && outer:
		return mistake.Value("into", " %s: it is the output itself; name another folder or prefix", c.Into)
	case inner:
		return mistake.Value("into", " %s: it is within %s, whose readers would take its files for that output's",
			c.Into, c.Out)
	case outer:
		return mistake.Value("into", " %s: %s is within it, and its readers would take that output's files for its own",
			c.Into, c.Out)
	}
	return nil
}

// within tells whether one output lies in another one, or is it.
func within(inner, outer string) bool {
	if command.IsBucket(inner) != command.IsBucket(outer) {
		return false
	}
	if command.IsBucket(inner) {
		return strings.HasPrefix(strings.TrimRight(inner, "/")+"/", strings.TrimRight(outer, "/")+"/")
	}
	a, err := filepath.Abs(inner)
	b, err2 := filepath.Abs(outer)
	if err != nil || err2 != nil {
		return false
	}
	way, err := filepath.Rel(b, a)
	return err == nil && way != ".." && !strings.HasPrefix(way, ".."+string(filepath.Separator))
}

// Run checks the flags and runs the command.
func (c *Command) Run(e *command.Env) error {
	if err := c.Check(); err != nil {
		return err
	}
	from, err := command.OpenOutput(e.Ctx, c.Out, &c.Bucket)
	if err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	defer from.Close()
	into, err := command.MakeOutput(e.Ctx, c.Into, &c.Bucket)
	if err != nil {
		return fmt.Errorf("compact: --into: %w", err)
	}
	defer into.Close()
	err = c.compact(e, from, into)
	if wrong := (*sinks.ConfigError)(nil); errors.As(err, &wrong) {
		return &mistake.Config{Problems: []mistake.Problem{{Path: wrong.Field, What: wrong.Problem}}}
	}
	return err
}

// compact copies, and prints what was copied, after an error, too.
func (c *Command) compact(e *command.Env, from, into command.Store) error {
	w, err := compact.Open(e.Ctx, from, into, compact.Config{TargetBytes: int64(c.TargetBytes), MaxAge: c.MaxAge,
		Poll: c.Poll, Version: command.Version, Waiting: func(err error) {
			e.Log.Warn("compact waits, and tries again", "error", err)
		}})
	if err == nil {
		err = into.CheckWritable(e.Ctx, tables.Names())
	}
	if err != nil {
		return fmt.Errorf("compact %s: %w", config.ShownPath(c.Out), err)
	}
	err = c.copy(e, w)
	found := &copied{Copied: w.Copied()}
	if failed := command.PrintResult(e.Stdout, c.JSON, found); err == nil {
		err = failed
	}
	return err
}

func (c *Command) copy(e *command.Env, w *compact.Compactor) error {
	begin := time.Now()
	show := command.StartProgress(e.Stderr, e.Log, "commits", 0, func() (int64, string) {
		d := w.Copied()
		since := time.Since(begin)
		return d.Commits, fmt.Sprintf("in %s files of %s, %s", command.Count(d.Into), command.ByteSize(d.Bytes),
			command.Rate(d.Bytes>>20, "MiB", since))
	})
	defer show.Stop()
	if !c.Follow {
		err := w.Run(e.Ctx)
		if e.Ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return &command.InterruptedError{Left: "the compaction"}
		}
		return c.named(err)
	}
	if err := w.Follow(e.Ctx); e.Ctx.Err() == nil {
		return c.named(err)
	}
	return nil
}

func (c *Command) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("compact %s: %w; what was committed stays, and the command goes on from there",
		config.ShownPath(c.Out), err)
}

// copied is the result of compact.
type copied struct{ compact.Copied }

// String describes the result in one line.
func (c *copied) String() string {
	if c.Ranges == 0 {
		return "nothing new to compact\n"
	}
	return fmt.Sprintf("%s commits with %s files, %s, became %s commits with %s files, %s\n", command.Count(c.Commits),
		command.Count(c.Files), command.ByteSize(c.BytesRead), command.Count(c.Ranges), command.Count(c.Into),
		command.ByteSize(c.Bytes))
}
