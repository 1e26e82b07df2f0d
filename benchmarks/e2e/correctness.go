package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"entropipe/benchmarks/rig"
)

type correctnessCmd struct {
	Data    []string `placeholder:"DIR" help:"Folders of KITTI .bin files; default: two of the real data."`
	Frames  int64    `default:"300" help:"Frames of each folder, looped (${default})."`
	Brokers []string `default:"embedded,kafka" help:"Kinds of brokers (${default})."`
	Python  string   `default:"python3" placeholder:"PATH" help:"Interpreter of the checker (${default})."`
	Checker string   `required:"" placeholder:"PATH" help:"Program that checks OUT --frames DIR --sample N."`
	Sample  int      `default:"20" help:"Frames of each table that the checker looks at closely; 0: all (${default})."`
}

func (c *correctnessCmd) Run(e *env) error {
	dirs := c.Data
	if len(dirs) == 0 {
		for _, parts := range [][]string{{"kitti", "raw_2011_09_26_drive_0005"},
			{"kitti", "object_training", "reduced_fov"}} {
			dir, err := rig.TestData(parts...)
			if err != nil {
				return err
			}
			dirs = append(dirs, dir)
		}
	}
	outs := make([][]string, len(dirs)) // outs[i][k]: output of folder i through broker k
	base, err := c.scratch(e)
	if err != nil {
		return err
	}
	defer base.remove()
	for _, kind := range c.Brokers {
		if err := c.process(e, kind, base.dir, dirs, outs); err != nil {
			return err
		}
	}
	var errs []error
	for i, dir := range dirs {
		errs = append(errs, c.check(e, dir, outs[i]))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Printf("correctness: %d folders of %d frames through %v: checked, verified, identical\n", len(dirs),
		c.Frames, c.Brokers)
	return nil
}

// scratchDir is a folder for the outputs, which outlive their broker.
type scratchDir struct {
	dir  string
	temp bool
}

func (s scratchDir) remove() {
	if s.temp {
		os.RemoveAll(s.dir)
	}
}

func (c *correctnessCmd) scratch(e *env) (scratchDir, error) {
	if e.flags.Scratch != "" {
		dir, err := filepath.Abs(e.flags.Scratch)
		return scratchDir{dir, false}, err
	}
	dir, err := os.MkdirTemp("", "entropipe-correctness-")
	return scratchDir{dir, true}, err
}

// process sends every folder through one broker, and verifies the outputs.
func (c *correctnessCmd) process(e *env, kind, base string, dirs []string, outs [][]string) error {
	b, err := e.open("correctness", kind)
	if err != nil {
		return err
	}
	defer b.close()
	for i, dir := range dirs {
		topic, sequence := "folder-"+strconv.Itoa(i), filepath.Base(dir)
		if err := b.client.CreateTopic(b.ctx, topic, 4, maxMessage); err != nil {
			return err
		}
		if err := b.produceKITTI(topic, dir, sequence, c.Frames); err != nil {
			return err
		}
		out := filepath.Join(base, kind, sequence)
		exit, err := b.runUntilEnd(topic, out, opsDelaunay)
		if err != nil {
			return err
		}
		if n, err := countRows(out, "frames"); err != nil || n != c.Frames {
			return fmt.Errorf("%s: %d rows in frames, %d were sent: %w", out, n, c.Frames, orMismatch(err))
		}
		if _, text, err := b.program.Run(b.ctx, "verify", out); err != nil {
			return fmt.Errorf("%w\n%s", err, text)
		}
		note("%s broker, %s: %d frames in %.1f s, verified", kind, sequence, c.Frames, exit.Wall.Seconds())
		if err := b.results.add(map[string]any{"what": "process", "sequence": sequence, "frames": c.Frames,
			"seconds": exit.Wall.Seconds(), "cpu_seconds": exit.CPU.Seconds(), "max_rss": exit.MaxRSS}); err != nil {
			return err
		}
		outs[i] = append(outs[i], out)
	}
	return nil
}

// check lets the checker look at each output of a folder, and compares them.
func (c *correctnessCmd) check(e *env, dir string, outs []string) error {
	var errs []error
	for _, out := range outs {
		begin := time.Now()
		_, text, err := rig.Run(e.ctx, rig.Spec{Path: c.Python,
			Args: []string{c.Checker, out, "--frames", dir, "--sample", strconv.Itoa(c.Sample)}})
		fmt.Printf("%s (%.0f s):\n%s", out, time.Since(begin).Seconds(), text)
		errs = append(errs, err)
		if out != outs[0] {
			errs = append(errs, compareOutputs(outs[0], out, []string{"hulls", "maxima", "triangles"}))
		}
	}
	return errors.Join(errs...)
}
