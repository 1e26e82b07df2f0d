package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"entropipe/benchmarks/rig"
)

// sparkCmd compares processor time with Spark, by user and system time of all processes of a
// way: the virtual machine, Python's workers, the program.
type sparkCmd struct {
	Python string `required:"" env:"ENTROPIPE_PYTHON" placeholder:"PATH" help:"Python of .ci/readers/requirements.txt."`

	Rounds int `default:"5" help:"Turns of each way (${default}; --quick: 1)."`
	Drives int `default:"8" help:"Drives of the archive (${default}; --quick: 2)."`
	Scans  int `default:"100" help:"Scans of a drive (${default}; --quick: 6)."`
	Cores  int `default:"2" help:"Tasks of Spark at a time, and processors of the program (${default})."`
}

// The ways of a round. Those by a UDF compute the same with Python's libraries.
const (
	wayAlone   = "backfill"
	wayTasks   = "backfill as tasks of Spark"
	waySciPy   = udf + "SciPy, moocore"
	wayShapely = udf + "shapely, moocore"
	udf        = "UDF of Spark: "
)

var sparkWays = []string{wayAlone, wayTasks, waySciPy, wayShapely}

// startOnly is the case of a turn over one scan: what a way costs before it does any work.
const startOnly = "start"

// Run is the subcommand.
func (c *sparkCmd) Run(b *bench) error {
	if b.Quick {
		c.Rounds, c.Drives, c.Scans = min(c.Rounds, 1), min(c.Drives, 2), min(c.Scans, 6)
	}
	if err := b.prepare(); err != nil {
		return err
	}
	archive, bytes, err := b.drives("archive", c.Drives, c.Scans)
	if err != nil {
		return err
	}
	one, _, err := b.drives("one", 1, 1)
	if err != nil {
		return err
	}
	if err := c.check(b); err != nil {
		return err
	}
	for round := range c.Rounds {
		for _, i := range rand.Perm(len(sparkWays)) {
			for _, kind := range []string{startOnly, ""} {
				folder, frames := archive, int64(c.Drives*c.Scans)
				if kind == startOnly {
					folder, frames = one, 1
				}
				f, err := c.turn(b, sparkWays[i], folder)
				if err != nil {
					return fmt.Errorf("%s: %w", sparkWays[i], err)
				}
				f.What, f.Round, f.Case, f.Frames, f.Jobs = "spark", round, kind, frames, c.Cores
				if kind == "" {
					f.Bytes = bytes
				}
				fmt.Printf("%2d %-32s %4d scans %7.2f s, processor %7.2f s\n", round, f.Way, f.Frames, f.WallS, f.CPUS)
				if err := b.add(f); err != nil {
					return err
				}
			}
		}
	}
	return b.finish()
}

// turn measures one way into a fresh output.
func (c *sparkCmd) turn(b *bench, way, archive string) (figures, error) {
	out := b.path("out")
	defer os.RemoveAll(out)
	return c.way(b, way, archive, out)
}

// way takes an archive to an output.
func (c *sparkCmd) way(b *bench, way, archive, out string) (f figures, err error) {
	root, err := rig.Root()
	if err != nil {
		return f, err
	}
	job := []string{"files", archive, "--out", out, "--ops", "hull2d,maxima3d"}
	python := filepath.Join(root, "benchmarks", "backfill")
	submit := []string{filepath.Join(filepath.Dir(c.Python), "spark-submit"), "--master",
		fmt.Sprintf("local[%d,4]", c.Cores), "--conf", "spark.ui.enabled=false", "--conf", "spark.log.level=WARN",
		"--conf", "spark.python.daemon.module=spark_daemon", "--conf", "spark.executorEnv.PYTHONPATH=" + python}
	parts := strconv.Itoa(4 * c.Cores)
	var command []string
	switch way {
	case wayAlone:
		command = append([]string{b.program.Path, "backfill"}, job...)
	case wayTasks:
		script := filepath.Join(root, "deploy", "backfill", "spark.py")
		command = slices.Concat(submit, []string{script, "--shards", parts, "--program", b.program.Path, "--"}, job)
	default:
		library, _, _ := strings.Cut(strings.TrimPrefix(way, udf), ",")
		command = slices.Concat(submit, []string{filepath.Join(python, "spark_udf.py"), archive, out,
			"--partitions", parts, "--hull", strings.ToLower(library)})
	}
	used := b.path("tree.json")
	args := slices.Concat([]string{filepath.Join(python, "spark_tree.py"), used}, command)
	if _, said, err := rig.Run(b.ctx, rig.Spec{Path: c.Python, Args: args, Env: c.env()}); err != nil {
		return f, fmt.Errorf("%w\n%s", err, said)
	}
	text, err := os.ReadFile(used)
	if err != nil {
		return f, err
	}
	f.Way = way
	return f, json.Unmarshal(text, &f)
}

// env are the variables of every way: as many threads as it has tasks, and no more.
func (c *sparkCmd) env() []string {
	return []string{"PYSPARK_PYTHON=" + c.Python, "SPARK_LOCAL_IP=127.0.0.1", "OMP_NUM_THREADS=1",
		"OPENBLAS_NUM_THREADS=1", "GOMAXPROCS=" + strconv.Itoa(c.Cores)}
}

// check takes a small archive all ways: tables, vertices and maxima must be equal. It also
// brings programs and scans into memory.
func (c *sparkCmd) check(b *bench) error {
	small, _, err := b.drives("small", 2, 5)
	if err != nil {
		return err
	}
	return c.same(b, small, sparkWays...)
}

// same compares what the program alone and other ways make of an archive of drives: tables, or
// vertices and maxima.
func (c *sparkCmd) same(b *bench, archive string, ways ...string) error {
	alone := b.path("check-alone")
	defer os.RemoveAll(alone)
	if _, err := c.way(b, wayAlone, archive, alone); err != nil {
		return fmt.Errorf("%s: %w", wayAlone, err)
	}
	for i, way := range ways {
		out := b.path(fmt.Sprintf("check-%d", i))
		defer os.RemoveAll(out)
		_, err := c.way(b, way, archive, out)
		if err == nil && strings.HasPrefix(way, udf) {
			err = c.compare(b, archive, alone, out)
		} else if err == nil {
			_, err = rig.SameOutputs(out, alone)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", way, err)
		}
	}
	return nil
}

// compare compares the tables of a UDF with those of the program.
func (c *sparkCmd) compare(b *bench, archive, alone, out string) error {
	root, err := rig.Root()
	if err != nil {
		return err
	}
	script := filepath.Join(root, "benchmarks", "backfill", "spark_check.py")
	_, said, err := rig.Run(b.ctx, rig.Spec{Path: c.Python, Args: []string{script, archive, alone, out}, Env: c.env()})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, said)
	}
	var found struct{ Scans, Vertices, Maxima int }
	if err := json.Unmarshal([]byte(said), &found); err != nil {
		return fmt.Errorf("%q is no count: %w", said, err)
	}
	if found.Scans == 0 || found.Vertices == 0 || found.Maxima == 0 {
		return errors.New("nothing was compared: " + said)
	}
	return nil
}
