package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/hull"
	"entropipe/algos/optimal"
	"entropipe/benchmarks/rig"
	"entropipe/preprocess/net"
)

var hulls = &experiment{
	name:  "hulls",
	title: "Planar hulls: every method, everything counted",
	claim: "The paper's table of 10,000 points prints 8.7 ms for the hull of uniform points, 5.2 ms with a heuristic " +
		"sort before it, 2.1 ms (4.14 times as fast, error 0.11 %) with EntropyNet; 4.2, 3.9 and 1.8 ms (2.33 times, " +
		"0.09 %) for the noisy parabola; for drawings, 3.4 ms become 2.1. Here every line's total is all that a " +
		"frame costs, in one goroutine: filters, sorting, and the network, whose time stands in a column of its own. " +
		"A family is a stream of three frames, each point moving by a thousandth from one to the next; the noise of " +
		"the parabola is read both as a deviation and as a variance of 0.01. Methods in plain Go: the monotone " +
		"chain, quickhull, Akl and Toussaint's octagon, Chan's algorithm of 1996, Kirkpatrick and Seidel's as " +
		"Afshani, Barbay and Chan improved it, and row filters from 32 even directions or from the last frame's " +
		"hull. The network is trained by the paper's protocol, H_diff with σ = 0.1 and λ = 0.1, on frames of the " +
		"family that no line is measured on, a network for each seed. Means over the seeds with 95 % intervals; " +
		"times are the least of several turns.",
	timed: true,
	cells: hullsCells,
	columns: rig.Table[*record]{
		text("frames", "family"), text("method", "method"), value("points", "points", "%.0f"),
		overSeeds("network, ms", "network_ms", "%.4f", 1), overSeeds("total, ms", "total_ms", "%.4f", 1),
		overSeeds("ns a point", "ns", "%.2f", 1), overSeeds("times as fast as the chain", "speedup", "%.3f", 1),
		overSeeds("error, %", "error", "%.4f", 100),
	},
	verdict: hullsVerdict,
}

const (
	oursMethod  = "hull.Hull2D"
	chainMethod = "monotone chain"
)

// streamOf is a family of streams: frames by seed.
type streamOf struct {
	name   string
	frames func(seed uint64) ([]geom.Cloud[float32], error)
	still  bool // frames are not of one scene: there is no last one

	// learn returns frames to train on, apart from those of every seed.
	learn func(count int, first uint64) ([]geom.Cloud[float32], error)
}

type hullsSize struct {
	points, drawings, repeats int
	lesson                    lessonSize
}

// laterDrawings returns drawings behind the first ones, which are for tests.
func laterDrawings(first int) func(count int, _ uint64) ([]geom.Cloud[float32], error) {
	return func(count int, _ uint64) ([]geom.Cloud[float32], error) {
		all, err := drawings(first + count)
		if err != nil || len(all) < first+5 {
			return nil, cmp.Or(err, os.ErrNotExist)
		}
		return boxed(all[first:]), nil
	}
}

func hullsCells(how effort) (cells []cell) {
	size := hullsSize{10000, 60, 7, lessonOf(how)}
	if how == quick {
		size = hullsSize{300, 4, 1, lessonOf(how)}
	}
	families := append(slices.Clone(planarFamilies), planar{"parabola, variance 0.01", wideParabola})
	var streams []streamOf
	for _, f := range families {
		streams = append(streams, streamOf{name: f.name, learn: f.lessonFrames(size.points),
			frames: func(seed uint64) ([]geom.Cloud[float32], error) {
				return drift(boxed([]geom.Cloud[float32]{f.make(size.points, seed)})[0], 3, seed), nil
			}})
	}
	streams = append(streams, streamOf{name: "QuickDraw drawings", still: true,
		learn: laterDrawings(size.drawings * len(seeds)),
		frames: func(seed uint64) ([]geom.Cloud[float32], error) {
			all, err := drawings(size.drawings * len(seeds))
			if err != nil || len(all) < len(seeds) {
				return nil, err
			}
			k := slices.Index(seeds, seed)
			return boxed(all[k*len(all)/len(seeds) : (k+1)*len(all)/len(seeds)]), nil
		}})
	if how == quick {
		streams = streams[len(streams)-2:]
	}
	for _, s := range streams {
		key := fmt.Sprintf("%s points=%d repeats=%d %s seeds=%v", s.name, size.points, size.repeats, size.lesson.key(),
			seeds)
		cells = append(cells, cell{key, func(ctx context.Context) ([]record, error) { return hullsRun(ctx, s, size) }})
	}
	return cells
}

// method is a way to a hull, and the network before it.
type method struct {
	name string
	find hullOf
	net  bool
}

func hullMethods() []method {
	ours := &hull.Hull2D[float32]{}
	return []method{
		{name: chainMethod, find: (&chain{}).find},
		{name: "quickhull", find: (&quickhull{}).find},
		{name: "Akl and Toussaint, chain", find: (&octagon{}).find},
		{name: "Chan 1996", find: (&chan96{}).find},
		{name: "Kirkpatrick and Seidel, optimal", find: (&optimal.Hull2D[float32]{}).Append},
		{name: "32 even directions, rows, chain", find: (&rowFilter{}).uniform},
		{name: "last frame's hull, rows, chain", find: (&rowFilter{}).lastFrame()},
		{name: oursMethod, find: ours.Append},
		{name: netMethod + ", Chan 1996", find: (&chan96{}).find, net: true},
		{name: netMethod + ", " + oursMethod, find: ours.Append, net: true},
	}
}

func hullsRun(ctx context.Context, s streamOf, size hullsSize) ([]record, error) {
	if _, err := s.frames(seeds[0]); err != nil {
		return absent(s.name, err), nil
	}
	methods := hullMethods()
	if s.still {
		methods = slices.DeleteFunc(methods, func(m method) bool { return strings.HasPrefix(m.name, "last frame") })
	}
	out := make([]record, len(methods))
	values := make([]map[string][]float64, len(methods))
	for k, m := range methods {
		out[k] = record{Text: map[string]string{"family": s.name, "method": m.name}}
		values[k] = map[string][]float64{}
	}
	for _, seed := range seeds {
		n, err := streamNet(ctx, s, seed, size.lesson)
		if err != nil {
			return nil, err
		}
		frames, err := s.frames(seed)
		if err != nil {
			return nil, err
		}
		if err := hullsSeed(values, methods, frames, n, size.repeats); err != nil {
			return nil, fmt.Errorf("seed %d: %w", seed, err)
		}
	}
	for k := range out {
		for name, v := range values[k] {
			out[k].add(name, seeds, v)
		}
	}
	return out, nil
}

// streamNet trains a network on a stream with the printed settings.
func streamNet(ctx context.Context, s streamOf, seed uint64, size lessonSize) (*net.Net, error) {
	l := asPrinted(planar{name: s.name}, 0, seed, size)
	l.frames = s.learn
	n, _, err := l.run(ctx)
	return n, err
}

// hullsSeed times every method on one seed's frames, in turn, and adds a value
// of each measure to its lists: means over the frames.
func hullsSeed(values []map[string][]float64, methods []method, frames []geom.Cloud[float32], n *net.Net,
	repeats int) error {
	mover := net.Mover[float32]{Net: n}
	points, share := 0, 1/float64(len(frames))
	sums := make([]map[string]float64, len(methods))
	for k := range sums {
		sums[k] = map[string]float64{}
	}
	for _, c := range frames {
		points += c.Len()
		var moved geom.Cloud[float32]
		answers := make([][]int32, len(methods))
		turns := []func(){func() { moved = mover.Move(c) }}
		for k, m := range methods {
			turns = append(turns, func() {
				in := c
				if m.net {
					in = moved
				}
				answers[k] = m.find(answers[k][:0], in)
			})
		}
		ms := leastTimes(repeats, turns...)
		want := answers[slices.IndexFunc(methods, func(m method) bool { return m.name == oursMethod })]
		for k, m := range methods {
			if !m.net {
				if !samePolygon(c, answers[k], want) {
					return fmt.Errorf("%s finds %d corners, not the %d there are", m.name, len(answers[k]), len(want))
				}
				sums[k]["total_ms"] += share * ms[k+1]
				continue
			}
			sums[k]["network_ms"] += share * ms[0]
			sums[k]["total_ms"] += share * (ms[0] + ms[k+1])
			sums[k]["error"] += share * hullError(c, answers[k])
		}
	}
	for k := range sums {
		sums[k]["points"] = float64(points) / float64(len(frames))
		sums[k]["ns"] = 1e6 * sums[k]["total_ms"] / sums[k]["points"]
		sums[k]["speedup"] = sums[0]["total_ms"] / sums[k]["total_ms"]
		if !methods[k].net {
			sums[k]["error"] = 0
		}
		for name, v := range sums[k] {
			values[k][name] = append(values[k][name], v)
		}
	}
	return nil
}

func hullsVerdict(records []record) string {
	var b strings.Builder
	slower, families := 0, 0
	least := math.Inf(1)
	for _, group := range byText(here(records), "family") {
		families++
		var best, ours, network *record
		for k := range group {
			r := &group[k]
			switch {
			case strings.HasPrefix(r.Text["method"], netMethod):
				if network == nil || r.Values["total_ms"] < network.Values["total_ms"] {
					network = r
				}
			case r.Text["method"] == oursMethod:
				ours = r
			case best == nil || r.Values["total_ms"] < best.Values["total_ms"]:
				best = r
			}
		}
		v := network.Values["total_ms"] / ours.Values["total_ms"]
		if v > 1 {
			slower++
		}
		least = min(least, v)
		fmt.Fprintf(&b, "* %s: of the others the fastest is %s, %.4f ms; %s takes %.4f ms (%.2f times as fast); "+
			"with the network, at best, %.3f ms, of which the network's own are %.3f, for an error of %.3f %%.\n",
			group[0].Text["family"], best.Text["method"], best.Values["total_ms"], oursMethod, ours.Values["total_ms"],
			best.Values["total_ms"]/ours.Values["total_ms"],
			network.Values["total_ms"], network.Values["network_ms"], 100*network.Values["error"])
	}
	if families == 0 {
		return "No data are there."
	}
	fmt.Fprintf(&b, "\nWith the network a frame takes longer than %s in %d of %d families, at the least %.1f times "+
		"as long.\n\n", oursMethod, slower, families, least)
	slowest, where := 0.0, ""
	for _, r := range here(records) {
		if r.Text["method"] == chainMethod && r.Values["total_ms"] > slowest {
			slowest, where = r.Values["total_ms"], r.Text["family"]
		}
	}
	fmt.Fprintf(&b, "Why they differ: the paper's 4.14 is 8.7 / 2.1 and leaves its network's 0.8 ms out; with it "+
		"the factor is 3.00 by its own figures. Its 8.7 ms are Qhull's through Python, where the textbook's "+
		"monotone chain takes at most %.2f ms here (%s), and it compares Qhull without the network with Chan's "+
		"algorithm behind it, so the change of algorithm is counted as the network's gain. The network needs some "+
		"150,000 operations a point, a planar hull some nanoseconds, and filters find easy points without having "+
		"learned anything.", slowest, where)
	return b.String()
}

// byText divides records by one of their texts, in order of appearance.
func byText(records []record, name string) (groups [][]record) {
	where := map[string]int{}
	for _, r := range records {
		k, ok := where[r.Text[name]]
		if !ok {
			k = len(groups)
			where[r.Text[name]] = k
			groups = append(groups, nil)
		}
		groups[k] = append(groups[k], r)
	}
	return groups
}

// twoFamilies are those of the paper's table.
var twoFamilies = []planar{{"square", geomtest.Square[float32]}, {"parabola", geomtest.Parabola[float32]}}
