// Package bench is the command bench: it times the operators on the processor at hand.
// Measurements across packages, and of other programs, are in benchmarks.
//
// A cell is an operator on one distribution and size of cloud. A floor is the time of one
// read of the operator's coordinates, so no operator can be faster. A round times every
// variant of a cell once, so that a change of the clock rate meets all of them.
package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"entropipe/algos/delaunay"
	"entropipe/algos/geom"
	"entropipe/algos/hull"
	"entropipe/algos/maxima"
	"entropipe/algos/vector"
	"entropipe/cmd/command"
	"entropipe/cmd/config/value"
	"entropipe/cmd/mistake"
)

// Command times the operators on this machine. Contenders of one cell (types,
// numbers of workers, and a plain read of the same coordinates) take turns, so
// that whatever else the machine does slows all of them.
type Command struct {
	Ops     []string      `enum:"${operators}" default:"${operators}" placeholder:"OP"`
	Sizes   []pointCount  `default:"50,1e3,1e4,1e5,1e6" placeholder:"N"`
	Dist    []string      `enum:"${distributions}" placeholder:"DIST"`
	Type    []string      `enum:"float32,float64" default:"float32"`
	Workers []int         `default:"1,0" placeholder:"N"`
	MinTime time.Duration `default:"150ms"`
	Level   string        `enum:"best,portable,avx2,avx512" default:"best"`
	KITTI   string        `name:"kitti" type:"existingdir" placeholder:"DIR"`
	Seed    uint64        `default:"1"`
	JSON    bool          `name:"json"`
}

// pointCount is a number of points: 1000000 or 1e6.
type pointCount int

// UnmarshalText reads a whole number from 1 to 1e8, in any form.
func (p *pointCount) UnmarshalText(text []byte) error {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || f != math.Trunc(f) || f < 1 || f > 1e8 {
		return value.NewError(fmt.Sprintf("%q is not a number of points", text), "1 to 1e8")
	}
	*p = pointCount(f)
	return nil
}

// String writes 1e6 for a million.
func (p pointCount) String() string {
	if e := int(math.Log10(float64(p)) + 0.5); e >= 3 && int(p) == int(math.Pow10(e)) {
		return fmt.Sprintf("1e%d", e)
	}
	return strconv.Itoa(int(p))
}

// Run checks the flags and runs the command.
func (c *Command) Run(e *command.Env) error {
	plan, err := c.plan()
	if err != nil {
		return err
	}
	level, err := c.level()
	if err != nil {
		return err
	}
	if vector.Best() != level {
		defer vector.Limit(level)()
	}
	var done atomic.Int64
	show := command.StartProgress(e.Stderr, e.Log, "bench", int64(len(plan)), func() (int64, string) {
		at := done.Load()
		return at, plan[min(int(at), len(plan)-1)].String()
	})
	report := newBenchReport(level, c.Seed)
	for _, cell := range plan {
		rows, err := c.measure(e.Ctx, cell)
		if err != nil {
			show.Stop()
			return err
		}
		report.Rows = append(report.Rows, rows...)
		done.Add(1)
	}
	show.Stop()
	return command.PrintResult(e.Stdout, c.JSON, report)
}

// cell is an operator with the clouds that its contenders are timed on.
type cell struct {
	op   benchOp
	dist distribution
	size int // 0: the scans of --kitti
}

func (c cell) String() string {
	return fmt.Sprintf("%s %s %v", c.op.name, c.dist.name, pointCount(c.size))
}

// benchOp is an operator of the table with the distributions that tell most
// about it.
type benchOp struct {
	name  string
	dims  int
	dists []string
}

var benchOps = []benchOp{
	{"hull2d", 2, []string{"square", "disk", "gauss", "parabola", "circle", "strokes"}},
	{"maxima2d", 2, []string{"square", "gauss", "front", "strokes"}},
	{"maxima3d", 3, []string{"lidar", "cube", "anti", "octant"}},
	{"hull3d", 3, []string{"lidar", "cube", "ball", "sphere"}},
	{"delaunay2d", 2, []string{"square", "gauss", "cluster", "grid", "rings"}},
}

// plan lists the cells, operator by operator.
func (c *Command) plan() ([]cell, error) {
	for _, w := range c.Workers {
		if err := command.CheckAmount("workers", w, 0, command.MaxWorkers); err != nil {
			return nil, err
		}
	}
	var cells []cell
	for _, op := range benchOps {
		if !slices.Contains(c.Ops, op.name) {
			continue
		}
		for _, d := range distributions {
			wanted := slices.Contains(op.dists, d.name)
			if len(c.Dist) > 0 {
				wanted = slices.Contains(c.Dist, d.name)
			}
			if !wanted || d.dims < op.dims {
				continue
			}
			for _, size := range c.Sizes {
				cells = append(cells, cell{op, d, int(size)})
			}
		}
		if c.KITTI != "" {
			cells = append(cells, cell{op, distribution{name: "kitti"}, 0})
		}
	}
	if len(cells) == 0 {
		return nil, mistake.NewUsage(errors.New("--dist: these distributions are flat, these operators are not"))
	}
	return cells, nil
}

// level is the one to use, as far as this machine has it.
func (c *Command) level() (vector.Level, error) {
	best := vector.Best()
	for _, l := range []vector.Level{vector.Portable, vector.AVX2, vector.AVX512} {
		if c.Level == l.String() {
			if l > best {
				return 0, mistake.NewUsage(fmt.Errorf("--level %s: this processor has %s", c.Level, best))
			}
			return l, nil
		}
	}
	return best, nil
}

// fewPoints is how many points the clouds of a cell have together at least:
// one small cloud again and again would be learnt by the branch predictor.
const fewPoints = 20_000

// clouds makes the clouds of a cell, the same for the same seed.
func (c *Command) clouds(cell cell) ([]geom.Cloud[float64], error) {
	if cell.size == 0 {
		return scans(c.KITTI, 10)
	}
	r := rand.New(rand.NewPCG(c.Seed, uint64(cell.size)))
	clouds := make([]geom.Cloud[float64], (fewPoints+cell.size-1)/cell.size)
	for i := range clouds {
		var err error
		if clouds[i], err = cell.dist.make(cell.size, r); err != nil {
			return nil, err
		}
	}
	return clouds, nil
}

// contender is what takes turns with others: run works through all clouds and
// returns how many indices came out.
type contender struct {
	kind    string // type of the coordinates
	workers int    // 0: the plain read
	run     func() int
	reps    int
	times   []float64 // nanoseconds a run, by turn
	found   int
}

// measure times the contenders of a cell.
func (c *Command) measure(ctx context.Context, cell cell) ([]benchRow, error) {
	clouds, err := c.clouds(cell)
	if err != nil {
		return nil, err
	}
	points := 0
	for _, cloud := range clouds {
		points += cloud.Len()
	}
	var all []contender
	for _, kind := range c.Type {
		if kind == "float32" {
			all = append(all, contendersOf[float32](c, cell.op, kind, clouds)...)
		} else {
			all = append(all, contendersOf[float64](c, cell.op, kind, clouds)...)
		}
	}
	if err := takeTurns(ctx, all, c.MinTime); err != nil {
		return nil, err
	}
	return benchRows(cell, all, len(clouds), points), nil
}

// manyPoints is from how many points on more than one worker is worth a row.
const manyPoints = 100_000

// contendersOf returns the plain read and the operator, once for every number
// of workers.
func contendersOf[T geom.Float](c *Command, op benchOp, kind string, wide []geom.Cloud[float64]) []contender {
	clouds, largest := make([]geom.Cloud[T], len(wide)), 0
	for i, cloud := range wide {
		clouds[i] = cloudAs[T](cloud, op.dims)
		largest = max(largest, cloud.Len())
	}
	all := []contender{{kind: kind, run: reader(clouds)}}
	var seen []int
	for _, workers := range c.Workers {
		if workers == 0 {
			workers = runtime.GOMAXPROCS(0)
		}
		if slices.Contains(seen, workers) || workers > 1 && largest < manyPoints && len(seen) > 0 {
			continue
		}
		seen = append(seen, workers)
		all = append(all, contender{kind: kind, workers: workers, run: operator(op.name, workers, clouds)})
	}
	return all
}

// reader reads every coordinate once: the least that an operator can do.
func reader[T geom.Float](clouds []geom.Cloud[T]) func() int {
	return func() (n int) {
		for _, c := range clouds {
			if c.Finite() {
				n += c.Len()
			}
		}
		return n
	}
}

// operator returns what runs op over clouds, with scratch memory of its own.
func operator[T geom.Float](op string, workers int, clouds []geom.Cloud[T]) func() int {
	var dst []int32
	each := func(f func(c geom.Cloud[T]) int) func() int {
		return func() (n int) {
			for _, c := range clouds {
				n += f(c)
			}
			return n
		}
	}
	switch op {
	case "hull2d":
		h := hull.Hull2D[T]{Workers: workers}
		return each(func(c geom.Cloud[T]) int { dst = h.Append(dst[:0], c); return len(dst) })
	case "maxima2d":
		m := maxima.Maxima[T]{Workers: workers}
		return each(func(c geom.Cloud[T]) int { dst = m.Append2D(dst[:0], c); return len(dst) })
	case "maxima3d":
		m := maxima.Maxima[T]{Workers: workers}
		return each(func(c geom.Cloud[T]) int { dst = m.Append3D(dst[:0], c); return len(dst) })
	case "hull3d":
		h := hull.Hull3D[T]{Workers: workers}
		var faces []int32
		return each(func(c geom.Cloud[T]) int {
			dst, faces, _ = h.Append(dst[:0], faces[:0], c)
			return len(dst)
		})
	case "delaunay2d":
		t := delaunay.Triangulator[T]{Workers: workers, Unsorted: true}
		return each(func(c geom.Cloud[T]) int { return len(t.Triangulate(c).Triangles) / 3 })
	}
	panic("bench: no operator is called " + op) // the grammar allows no other
}

// turns is how often every contender's turn comes, when one takes less than
// its share of the time; at least leastTurns.
const turns, leastTurns = 8, 3

// takeTurns runs the contenders one after the other, again and again, until
// each has had least of time.
func takeTurns(ctx context.Context, all []contender, least time.Duration) error {
	runtime.GC() // frees the data behind the clouds
	rounds := turns
	for i := range all {
		c := &all[i]
		c.run() // scratch memory grows
		start := time.Now()
		c.found = c.run()
		once := max(time.Since(start), time.Nanosecond)
		c.reps = int(least/turns/once) + 1
		if once > least/turns {
			rounds = min(rounds, max(leastTurns, int(least/once)+1))
		}
	}
	for range rounds {
		for i := range all {
			c := &all[i]
			start := time.Now()
			for range c.reps {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				c.run()
			}
			c.times = append(c.times, float64(time.Since(start).Nanoseconds())/float64(c.reps))
		}
	}
	return nil
}

// median of at least one number; it sorts them.
func median(v []float64) float64 {
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// benchRows makes the rows of a cell, without those of the plain reads, which
// become part of them.
func benchRows(cell cell, all []contender, clouds, points int) (rows []benchRow) {
	floor := map[string]float64{}
	for _, c := range all {
		if c.workers == 0 {
			floor[c.kind] = slices.Min(c.times) / float64(max(points, 1))
		}
	}
	for _, c := range all {
		if c.workers == 0 {
			continue
		}
		least := slices.Min(c.times) / float64(max(points, 1))
		rows = append(rows, benchRow{
			Op: cell.op.name, Distribution: cell.dist.name, Size: cell.size, Clouds: clouds, Points: points,
			Type: c.kind, Workers: c.workers,
			Median: median(c.times) / float64(max(points, 1)), Least: least, Floor: floor[c.kind],
			FloorShare: floor[c.kind] / max(least, 1e-9),
			Rounds:     len(c.times), Found: c.found,
		})
	}
	slices.SortStableFunc(rows, func(a, b benchRow) int { return cmp.Compare(a.Workers, b.Workers) })
	return rows
}
