package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"entropipe/benchmarks/rig"
)

// memoryCmd measures peak memory.
type memoryCmd struct {
	Only []string `placeholder:"NAME,..." help:"Archives to measure; default: all."`
	Jobs int      `default:"4" help:"Lanes at a time (${default})."`
}

// goalMemory is the most that a process may have resident, in bytes.
const goalMemory = 400e6

// memoryCase is an archive whose size must not matter.
type memoryCase struct {
	name, title string
	run         string // flags of backfill
	make        func(b *bench, dir string, full bool) (source []string, err error)
}

var memoryCases = []memoryCase{
	{"files", "100,000 scans of 20 points in 5 drives", "--ops hull2d,maxima3d",
		func(b *bench, dir string, full bool) ([]string, error) {
			for i := range 5 {
				if err := (rig.Archive{Dir: dir, Seed: 1}).Drive(fmt.Sprint("drive-", i),
					pick(full, 20_000, 20), 20); err != nil {
					return nil, err
				}
			}
			return []string{"files", dir}, nil
		}},
	{"drive", "1,000 KITTI scans in 8 drives", "--ops hull2d,maxima3d",
		func(b *bench, dir string, full bool) ([]string, error) {
			folder, _, err := b.drives("memory/drives", 8, pick(full, 125, 2))
			return []string{"files", folder}, err
		}},
	{"recording", "an MCAP recording of 600 frames of 120,000 points", "--ops hull2d,maxima3d",
		form("mcap", 600, 120_000)},
	{"segment", "a Waymo segment of 198 frames", "--ops hull2d,maxima3d", form("waymo", 198, 160_000)},
	{"cloud", "a PCD file of 3,000,000 points", "--ops hull2d,maxima3d",
		func(_ *bench, dir string, full bool) ([]string, error) {
			return []string{"files", dir}, rig.Archive{Dir: dir, Seed: 1}.PCD("cloud", 1, pick(full, 3_000_000, 1000))
		}},
	{"drawings", "400,000 drawings in 4 files", "", func(_ *bench, dir string, full bool) ([]string, error) {
		var errs []error
		for i := range 4 {
			errs = append(errs, rig.Archive{Dir: dir, Seed: 1}.Drawings(fmt.Sprintf("%d.ndjson", i),
				pick(full, 100_000, 50), 0))
		}
		return []string{"files", dir}, errors.Join(errs...)
	}},
	{"texts", "20,000 texts in 4 files, builtin:bytes", "--lm builtin:bytes",
		func(_ *bench, dir string, full bool) ([]string, error) {
			source := []string{"tokens"}
			var errs []error
			for i := range 4 {
				name := fmt.Sprintf("%d.jsonl", i)
				errs = append(errs, rig.Archive{Dir: dir, Seed: 1}.Texts(name, pick(full, 5000, 20), 200, 0))
				source = append(source, dir+"/"+name)
			}
			return source, errors.Join(errs...)
		}},
}

// pick returns the number of a full run, or of a quick one.
func pick(full bool, of, quick int) int {
	if full {
		return of
	}
	return quick
}

// form returns a function that has benchmarks/formats write an input.
func form(name string, frames, points int) func(*bench, string, bool) ([]string, error) {
	return func(b *bench, dir string, full bool) ([]string, error) {
		root, err := rig.Root()
		if err != nil {
			return nil, err
		}
		program := b.path("formats")
		if _, err := os.Stat(program); err != nil {
			build := exec.CommandContext(b.ctx, "go", "build", "-o", program, "./benchmarks/formats")
			build.Dir = root
			if said, err := build.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("go build ./benchmarks/formats: %w\n%s", err, said)
			}
		}
		write := exec.CommandContext(b.ctx, program, "write", name, dir, "--frames",
			strconv.Itoa(pick(full, frames, 3)),
			"--points", strconv.Itoa(pick(full, points, 1000)))
		said, err := write.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s: %w\n%s", write, err, said)
		}
		return []string{"files", dir}, err
	}
}

// Run is the subcommand.
func (c *memoryCmd) Run(b *bench) error {
	if err := b.prepare(); err != nil {
		return err
	}
	for _, of := range memoryCases {
		if len(c.Only) > 0 && !slices.Contains(c.Only, of.name) {
			continue
		}
		f, err := c.measure(b, of)
		if err != nil {
			return fmt.Errorf("%s: %w", of.name, err)
		}
		fmt.Printf("%-12s %8.0f MB resident, %8d rows, %7.1f s, processor %7.1f s\n", of.name,
			float64(f.MaxRSS)/1e6, f.Rows,
			f.WallS, f.CPUS)
		if err := b.add(f); err != nil {
			return err
		}
	}
	return b.finish()
}

// measure makes an archive and takes it to an output, both of which it removes.
func (c *memoryCmd) measure(b *bench, of memoryCase) (f figures, err error) {
	dir, out := b.path("memory"), b.path("out")
	defer os.RemoveAll(out)
	defer os.RemoveAll(dir)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return f, err
	}
	source, err := of.make(b, dir, !b.Quick)
	if err != nil {
		return f, err
	}
	t, err := b.backfill(job{source, strings.Fields(of.run)}, out, []string{"--jobs", strconv.Itoa(c.Jobs)})
	if err != nil {
		return f, fmt.Errorf("%w\n%s", err, t.Said)
	}
	manifests, err := rig.Manifests(out)
	if err != nil {
		return f, err
	}
	for _, m := range manifests {
		f.Rows += m.Counts.Frames + m.Counts.Sequences
	}
	if f.Rows == 0 {
		return f, fmt.Errorf("no rows\n%s", t.Said)
	}
	f.What, f.Case, f.Jobs, f.MaxRSS = "memory", of.name, c.Jobs, t.MaxRSS
	f.WallS, f.CPUS = t.Wall.Seconds(), t.CPU.Seconds()
	return f, nil
}
