// Command backfill measures what taking archives to tables without a broker costs: beside
// produce and run, in two processes beside one, in memory, from the points of an old output,
// and by a model of its costs up to 10^9 frames.
//
// All ways that are compared run in turns, in one run, and write the same rows, which is
// checked before anything is timed.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"entropipe/benchmarks/rig"
)

type cli struct {
	Speed   speedCmd   `cmd:"" help:"Hulls and maxima of KITTI scans: beside produce and run, and by two processes."`
	Memory  memoryCmd  `cmd:"" help:"Peak memory over archives of many files, large files, drawings and texts."`
	Parquet parquetCmd `cmd:"" help:"Hulls, maxima and triangles from the points of an old output."`
	Spark   sparkCmd   `cmd:"" help:"Processor time beside Spark, whose UDFs call SciPy, shapely and moocore."`
	Model   modelCmd   `cmd:"" help:"Costs by frames, lanes and commits, and what they become at 10^9 frames."`
	Render  renderCmd  `cmd:"" help:"Write the page again from the records; measure nothing."`

	common
}

// common are the flags of all commands.
type common struct {
	Quick   bool   `help:"Small inputs and few turns; keeps no result."`
	Results string `placeholder:"DIR" help:"Folder of the result (benchmarks/results; --quick: none); -: none."`
	Scratch string `placeholder:"DIR" help:"Folder for archives and outputs; default: a temporary one."`
}

func main() {
	rig.Main("backfill", func(ctx context.Context) error { return command(ctx, os.Args[1:]) })
}

// command runs one command line.
func command(ctx context.Context, args []string) error {
	var c cli
	parser, err := kong.New(&c, kong.Name("backfill"),
		kong.Description("Measures taking archives to tables without a broker."))
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return err
	}
	b, err := c.open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(parsed.Run(b), b.close())
}

// bench is what all commands need.
type bench struct {
	ways
	common
	report *report
	run    string // names the records of this run
	temp   string // folder to remove
}

func (c *common) open(ctx context.Context) (*bench, error) {
	results, err := rig.ResultsFolder(c.Results, rig.KindOf(c.Quick))
	if err != nil {
		return nil, err
	}
	b := &bench{common: *c, run: time.Now().UTC().Format(time.RFC3339)}
	b.ctx, b.core = ctx, -1
	b.report, err = newReport(results)
	return b, err
}

// prepare builds the program and makes the scratch folder. Commands that measure call it first.
func (b *bench) prepare() (err error) {
	if b.Scratch == "" {
		if b.temp, err = os.MkdirTemp("", "entropipe-backfill-"); err != nil {
			return err
		}
		b.Scratch = b.temp
	}
	if b.Scratch, err = filepath.Abs(b.Scratch); err != nil {
		return err
	}
	if err := os.MkdirAll(b.Scratch, 0o777); err != nil {
		return err
	}
	if b.program.Path == "" {
		b.program, err = rig.Build(b.ctx, b.Scratch)
	}
	return err
}

func (b *bench) close() error {
	if b.temp == "" {
		return nil
	}
	return os.RemoveAll(b.temp)
}

// path returns a path in the scratch folder.
func (b *bench) path(parts ...string) string {
	return filepath.Join(append([]string{b.Scratch}, parts...)...)
}

// add keeps the figures of this run.
func (b *bench) add(f figures) error {
	f.Run = b.run
	return b.report.add(f)
}

// finish prints the page of all records, and writes it where results are kept.
func (b *bench) finish() error { return b.report.write(os.Stdout) }

// scans returns KITTI scans: those of a drive of the real data, or where there are none made-up
// ones of as many points.
func (b *bench) scans() (files []string, err error) {
	if dir, err := rig.TestData("kitti", "raw_2011_09_26_drive_0005"); err == nil {
		files, err := filepath.Glob(filepath.Join(dir, "*.bin"))
		if err == nil && len(files) > 0 {
			return copied(files, b.path("scans"))
		}
	}
	if err := (rig.Archive{Dir: b.Scratch, Seed: 1}).Drive("scans", 5, 120_000); err != nil {
		return nil, err
	}
	files, err = filepath.Glob(b.path("scans", "*.bin"))
	return files, cmp.Or(err, map[bool]error{true: errors.New("no scans")}[len(files) == 0])
}

// copied copies files into a folder, beside which links to them can be made.
func copied(files []string, folder string) ([]string, error) {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, err
	}
	files = slices.Clone(files)
	for i, from := range files {
		data, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		files[i] = filepath.Join(folder, filepath.Base(from))
		if err := os.WriteFile(files[i], data, 0o666); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// drives makes an archive of drives of scans, and returns its folder and its bytes.
func (b *bench) drives(name string, drives, scans int) (folder string, bytes int64, err error) {
	files, err := b.scans()
	if err != nil {
		return "", 0, err
	}
	folder = b.path(name)
	for i := range drives {
		if err := linked(filepath.Join(folder, fmt.Sprintf("drive-%04d", i)), files, scans); err != nil {
			return "", 0, err
		}
	}
	for i := range scans {
		info, err := os.Stat(files[i%len(files)])
		if err != nil {
			return "", 0, err
		}
		bytes += int64(drives) * info.Size()
	}
	return folder, bytes, nil
}

// renderCmd writes the page.
type renderCmd struct{}

// Run is the subcommand.
func (renderCmd) Run(b *bench) error { return b.finish() }
