// Command formats times how fast files of every sensor format become columns, and
// messages in Kafka, beside Python's readers, in turns, on one core, in one run.
//
// Words: a form is a format with its compression; an input is a form's files, synthetic or
// real; a task is what is timed: read (files to columns) or kafka (files to acknowledged
// messages); a reader is one way to do it in Python; an entry is ours or a reader with a
// task; a turn is one run of an entry, in a process of its own, over the input one or
// several times.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"entropipe/benchmarks/rig"
	"entropipe/cmd/config/value"
)

type cli struct {
	Measure measureCmd `cmd:"" default:"withargs" help:"Measures, and writes the page."`
	Render  renderCmd  `cmd:"" help:"Writes the page again, from the records."`
	Write   writeCmd   `cmd:"" hidden:"" help:"Writes an input: what measure starts."`
	Read    readCmd    `cmd:"" hidden:"" help:"Reads an input to columns: what measure starts."`
}

type measureCmd struct {
	Quick   bool          `help:"Inputs of 20 MB, one short turn."`
	Formats []string      `placeholder:"FORM" help:"Forms to measure (all): ${forms}."`
	Size    value.Size    `default:"400MB" help:"Bytes of a synthetic input (${default})."`
	Points  int           `default:"120000" help:"Points of a synthetic frame, about (${default})."`
	Turns   int           `default:"6" help:"Turns of each entry; from 6 on intervals have 95 % (${default})."`
	Turn    time.Duration `default:"2s" help:"Least time of a turn, in whole passes over the input (${default})."`
	Long    []string      `default:"mcap,rosbag,waymo" help:"Forms with a long input; none: '' (${default})."`
	Factor  int           `default:"10" help:"Frames of a long input, in inputs of --size (${default})."`
	Python  string        `env:"ENTROPIPE_PYTHON" placeholder:"PATH" help:"Python with its readers; without: ours."`
	Data    string        `placeholder:"DIR" help:"Real files (ENTROPIPE_TESTDATA, ../shared/data); -: none."`
	Scratch string        `placeholder:"DIR" help:"Folder for inputs and logs, up to 20 GB."`
	Results string        `placeholder:"DIR" help:"Folder of the result (benchmarks/results; --quick: none); -: none."`
	Seed    uint64        `default:"1" help:"Seed of the frames (${default})."`
}

type renderCmd struct {
	Results string `placeholder:"DIR" help:"Folder of the result (benchmarks/results)."`
}

func main() {
	rig.Main("formats", func(ctx context.Context) error { return run(ctx, os.Args[1:]) })
}

// run runs the command line.
func run(ctx context.Context, args []string) error {
	var c cli
	parser, err := kong.New(&c, kong.Name("formats"), kong.Description("Times the readers of sensor formats beside "+
		"Python's."), kong.Vars{"forms": strings.Join(formNames(), ", ")})
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return err
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	return parsed.Run()
}

// Run measures every input in turns.
func (c *measureCmd) Run(ctx context.Context) (err error) {
	forms, err := formsNamed(c.Formats)
	if err != nil {
		return err
	}
	long, err := formsNamed(c.Long)
	if err != nil {
		return err
	}
	if len(c.Long) == 0 {
		long = nil
	}
	if c.Quick {
		c.Size, c.Turns, c.Turn = min(c.Size, 20_000_000), 1, min(c.Turn, 200*time.Millisecond)
	}
	if c.Turns < 1 || c.Points < 1 || c.Size < 1 || c.Factor < 1 {
		return errors.New("--turns, --points, --size and --factor are at least 1")
	}
	folder, err := rig.ResultsFolder(c.Results, rig.KindOf(c.Quick))
	if err != nil {
		return err
	}
	r, err := openReport(folder)
	if err != nil {
		return err
	}
	b, err := c.open(ctx, r)
	if err != nil {
		return err
	}
	defer b.close()
	for _, f := range forms {
		if err := b.synthetic(f); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if err := b.real(f); err != nil {
			return fmt.Errorf("real files of %s: %w", f.name, err)
		}
	}
	for _, f := range long {
		if err := b.long(f); err != nil {
			return fmt.Errorf("long input of %s: %w", f.name, err)
		}
	}
	return r.write(os.Stdout)
}

// open builds the program, asks Python for its readers, and makes the scratch folder. The
// caller closes what it returns.
func (c *measureCmd) open(ctx context.Context, r *report) (*bench, error) {
	b := &bench{ctx: ctx, flags: c, report: r, run: time.Now().UTC().Format(time.RFC3339), cores: rig.Cores()}
	parent := c.Scratch
	if parent != "" {
		if err := os.MkdirAll(parent, 0o777); err != nil {
			return nil, err
		}
	}
	var err error
	if b.scratch, err = os.MkdirTemp(parent, "entropipe-formats-"); err != nil {
		return nil, err
	}
	if b.self, err = os.Executable(); err == nil {
		b.program, err = rig.Build(ctx, b.scratch)
	}
	if err == nil && c.Python != "" {
		err = b.findPython()
	}
	switch {
	case c.Data == "-":
	case c.Data != "":
		b.data = c.Data
	default: // real files are measured where they are
		b.data, _ = rig.TestData()
	}
	if err != nil {
		b.close()
		return nil, err
	}
	if len(b.cores) < 2 {
		say("one core alone: the broker shares it with what is measured")
	}
	return b, nil
}

// Run writes the page.
func (c *renderCmd) Run() error {
	folder, err := rig.ResultsFolder(c.Results, rig.FullRun)
	if err != nil {
		return err
	}
	r, err := openReport(folder)
	if err != nil {
		return err
	}
	return r.write(os.Stdout)
}

// say tells what goes on.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "formats: "+format+"\n", args...) }

// root returns a path below the module's root.
func root(parts ...string) (string, error) {
	dir, err := rig.Root()
	return filepath.Join(append([]string{dir}, parts...)...), err
}
