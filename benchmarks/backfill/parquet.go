package main

import (
	"fmt"
	"os"
	"strings"

	"entropipe/benchmarks/rig"
)

// parquetCmd computes operators from the points of an old output.
type parquetCmd struct {
	Rounds int `default:"9" help:"Turns (${default}; --quick: 1)."`
	Scans  int `default:"120" help:"KITTI scans (${default}; --quick: 3)."`
}

// goalParquet is the least rate of decoded points, in bytes a second of a core.
const goalParquet = 300e6

// pointBytes is what a point is decoded to: x, y and z as float32, and its index.
const pointBytes = 16

// parquetWays are the operators of the turns; the first ones read and compute nothing.
var parquetWays = []string{"none", "hull2d,maxima3d"}

// Run is the subcommand.
func (c *parquetCmd) Run(b *bench) error {
	if b.Quick {
		c.Rounds, c.Scans = min(c.Rounds, 1), min(c.Scans, 3)
	}
	if err := b.prepare(); err != nil {
		return err
	}
	folder, _, err := b.drives("archive", 1, c.Scans)
	if err != nil {
		return err
	}
	old := b.path("old")
	if t, err := b.backfill(job{[]string{"files", folder}, []string{"--ops", "none", "--tables", "points"}},
		old); err != nil {
		return fmt.Errorf("%w\n%s", err, t.Said)
	}
	if err := c.equal(b); err != nil {
		return err
	}
	points, err := b.pointsOf(old)
	if err != nil {
		return err
	}
	b.env = []string{"GOMAXPROCS=1"}
	for round := range c.Rounds {
		for _, way := range parquetWays {
			t, err := b.fromPoints(old, b.path("new"), "--ops", way)
			os.RemoveAll(b.path("new"))
			if err != nil {
				return fmt.Errorf("%w\n%s", err, t.Said)
			}
			f := figures{What: "parquet", Way: way, Round: round, Frames: int64(c.Scans), Points: points,
				WallS: t.Wall.Seconds(), CPUS: t.CPU.Seconds(), MaxRSS: t.MaxRSS}
			fmt.Printf("%2d %-16s %6.2f s, processor %6.2f s, %5.0f MB/s of points a core, %4.0f MB resident\n", round,
				way,
				f.WallS, f.CPUS, f.pointRate()/1e6, float64(f.MaxRSS)/1e6)
			if err := b.add(f); err != nil {
				return err
			}
		}
	}
	return b.finish()
}

// fromPoints takes the points of an output to another output.
func (w *ways) fromPoints(old, out string, run ...string) (turn, error) {
	return w.backfill(job{[]string{"parquet", old + "/points"}, run}, out)
}

// pointsOf counts the rows of table points.
func (b *bench) pointsOf(out string) (points int64, err error) {
	manifests, err := rig.Manifests(out)
	for _, m := range manifests {
		for _, f := range m.Files {
			if f.Table == "points" {
				points += f.Rows
			}
		}
	}
	if err == nil && points == 0 {
		err = fmt.Errorf("%s has no points", out)
	}
	return points, err
}

// equal computes all operators twice: from the scans, and from the points of that output.
func (c *parquetCmd) equal(b *bench) error {
	folder, _, err := b.drives("small", 2, 3)
	if err != nil {
		return err
	}
	first, again := b.path("first"), b.path("again")
	ops := []string{"--ops", "hull2d,hull3d,maxima3d,delaunay2d"}
	t, err := b.backfill(job{[]string{"files", folder},
		append(ops, "--tables", "hulls,hulls3d,maxima,triangles,points")}, first)
	if err == nil {
		t, err = b.fromPoints(first, again, append(ops, "--tables", "hulls,hulls3d,maxima,triangles")...)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, t.Said)
	}
	return sameResults(again, first)
}

// sameResults compares the rows of operators alone: tables frames and points may differ in what
// only a recording has.
func sameResults(got, want string) error {
	found, err := rig.CompareTables(got, want, strings.Fields("hulls hulls3d maxima triangles"), rig.Places...)
	if err != nil {
		return err
	}
	return found.Err()
}
