package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"entropipe/algos/delaunay"
	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/algos/hull"
	"entropipe/benchmarks/rig"
	"entropipe/models"
	"entropipe/preprocess/net"
	"entropipe/preprocess/train"
)

var perturb = &experiment{
	eachSeed: true,
	name:     "perturb",
	title:    "Moving points before the hull: time and error, frame by frame",
	claim: "The paper prints that hulls of 10,000 uniform points take 2.1 ms instead of 8.7 ms (4.14 times) behind " +
		"EntropyNet, at a hull error of 0.11 %, and 1.8 instead of 4.2 ms (2.33 times) at 0.09 % for the parabola; " +
		"and it triangulates moved points. Here the total of every line holds all that a frame costs, the network's " +
		"time included. The error is the Hausdorff distance to the exact hull, in diagonals of the frame, computed " +
		"for every frame; the checked column, in the plane, is by how much that differs from the largest distance " +
		"of any point, found by brute force. The strongest peer is no network at all: an ε-kernel by strips " +
		"(Bentley, Faust and Preparata 1982) with the fewest strips whose error on no frame is above the network's; " +
		"in space, the points farthest out in the fewest directions, up to 4096. Each network has an ε-kernel of its " +
		"own beside it. Networks of F have 200 steps of four clouds of 1,024 points; those of H_diff follow the " +
		"paper's protocol.",
	timed: true,
	cells: perturbCells,
	columns: rig.Table[*record]{
		text("frames", "family"), text("method", "method"), value("network, ms", "network_ms", "%.3f"),
		value("hull, ms", "hull_ms", "%.4f"),
		value("total, ms", "total_ms", "%.4f"), value("times as fast as exact", "speedup", "%.2g"),
		value("error, mean %", "error", "%.4f"), value("worst %", "worst", "%.4f"),
		value("checked, %", "checked", "%.1e"),
		value("strips or directions", "strips", "%.0f"),
		value("entropy, nats a point", "entropy", "%.3f"), value("Delaunay edges kept, %", "edges", "%.2f"),
	},
	verdict: perturbVerdict,
}

// Methods whose name begins with netMethod run the network for every frame.
const (
	exactMethod  = "exact"
	kernelMethod = "ε-kernel"
	netMethod    = "EntropyNet"
)

type perturbSize struct {
	points, steps, tests, repeats int
	lesson                        lessonSize // of the paper's protocol
}

func perturbCells(how effort) (cells []cell) {
	size, families := perturbSize{10000, 200, 3, 15, lessonOf(how)}, planarFamilies
	if how == quick {
		size, families = perturbSize{200, 5, 2, 2, lessonOf(how)}, families[:1]
	}
	for _, f := range families {
		key := fmt.Sprintf("%s n=%d steps=%d %s repeats=%d seed=%d", f.name, size.points, size.steps,
			size.lesson.key(), size.repeats, seeds[0])
		cells = append(cells, cell{key, func(ctx context.Context) ([]record, error) {
			return perturbRun(ctx, f, size)
		}})
	}
	key := fmt.Sprintf("scanner hull3d n=%d steps=%d repeats=%d seed=%d", size.points, size.steps,
		size.repeats, seeds[0])
	return append(cells, cell{key, func(ctx context.Context) ([]record, error) { return perturbSpace(ctx, size) }})
}

// trial is a network of one regulariser, and what stands beside it.
type trial struct {
	name   string
	mover  net.Mover[float32]
	strips int       // the fewest with which a kernel's error is no larger
	errs   []float64 // one for each test frame

	kernel, network []int32 // answers
	moved           geom.Cloud[float32]
}

// trialsOf trains the networks of a family: with F, and with the printed settings.
func trialsOf(ctx context.Context, f planar, size perturbSize) ([]*trial, error) {
	cfg := train.Config{Mode: models.Perturb, Ops: []entropy.Problem{entropy.Hull2D}, Steps: size.steps, Seed: seeds[0],
		Batch: 4, Points: 1024,
		Every: max(size.steps/10, 1), Patience: size.steps, Tolerance: 0.8 * tolerated, Workers: 2}
	tight, _, err := trainOn(ctx, cfg, 2, boxed(f.frames(15, size.points, learnSeeds())))
	if err != nil {
		return nil, err
	}
	l := asPrinted(f, size.points, seeds[0], size.lesson)
	printed, _, err := l.run(ctx)
	if err != nil {
		return nil, err
	}
	return []*trial{{name: "F", mover: net.Mover[float32]{Net: tight}},
		{name: hdiffAsPrinted, mover: net.Mover[float32]{Net: printed}}}, nil
}

// hdiffAsPrinted names networks of the paper's protocol.
const hdiffAsPrinted = "H_diff as printed"

func perturbRun(ctx context.Context, f planar, size perturbSize) ([]record, error) {
	trials, err := trialsOf(ctx, f, size)
	if err != nil {
		return nil, err
	}
	tests := boxed(f.frames(size.tests, size.points, testSeeds()))
	out := []record{{Text: map[string]string{"method": exactMethod}}}
	for _, t := range trials {
		for _, c := range tests {
			t.errs = append(t.errs, hullError(c, outputOf(t.mover.Move(c), entropy.Hull2D)))
		}
		t.strips = stripsFor(tests, t.errs)
		out = append(out, record{Text: map[string]string{"method": kernelMethod + " beside " + t.name}},
			record{Text: map[string]string{"method": movedMethod(t.name)}})
	}
	for k := range out {
		out[k].Text["family"] = f.name
		out[k].Values = map[string]float64{"entropy": 0}
	}
	for k, t := range trials {
		out[2*k+1].Values["strips"] = float64(t.strips)
		out[2*k+2].Values["network_ms"] = 0
	}
	for k, c := range tests {
		perturbFrame(out, trials, c, k, size)
	}
	for k := range out {
		out[k].Values["speedup"] = out[0].Values["total_ms"] / out[k].Values["total_ms"]
		out[k].Values["points"] = float64(size.points)
	}
	return out, nil
}

// movedMethod names the line of a network and the hull behind it.
func movedMethod(regulariser string) string {
	return netMethod + ", " + regulariser + ", and the hull of the moved points"
}

// perturbFrame adds the share of test frame number k to the records.
func perturbFrame(out []record, trials []*trial, c geom.Cloud[float32], k int, size perturbSize) {
	share := 1 / float64(size.tests)
	var h hull.Hull2D[float32]
	var s stripKernel
	var exact []int32
	turns := []func(){func() { exact = h.Append(exact[:0], c) }}
	for _, t := range trials {
		turns = append(turns,
			func() { t.kernel = s.hull(t.kernel[:0], c, t.strips) },
			func() { t.moved = t.mover.Move(c) },
			func() { t.network = h.Append(t.network[:0], t.moved) })
	}
	ms := leastTimes(size.repeats, turns...)
	before := truthOf(c, entropy.Hull2D)
	add := func(r *record, network, own, nats, e float64) {
		r.Values["hull_ms"] += share * own
		r.Values["total_ms"] += share * (network + own)
		r.Values["entropy"] += share * nats
		r.Values["error"] += share * 100 * e
		r.Values["worst"] = max(r.Values["worst"], 100*e)
	}
	check := func(r *record, answer []int32, e float64) { // the exact hull has every point
		corners := outputOf(chosen(c, answer), entropy.Hull2D) // moved points may be corners where these are not
		for k, i := range corners {
			corners[k] = answer[i]
		}
		r.Values["checked"] = max(r.Values["checked"], 100*math.Abs(e-farthestPoint(c, corners)/diagonalOf(c)))
	}
	add(&out[0], 0, ms[0], before, hullError(c, exact))
	for i, t := range trials {
		kernel, network, ms := &out[2*i+1], &out[2*i+2], ms[3*i+1:]
		e := hullError(c, t.kernel)
		add(kernel, 0, ms[0], before, e)
		check(kernel, t.kernel, e)
		network.Values["network_ms"] += share * ms[1]
		add(network, ms[1], ms[2], truthOf(t.moved, entropy.Hull2D), t.errs[k])
		check(network, t.network, t.errs[k])
		network.Values["edges"] += share * 100 * edgesKept(c, t.moved)
	}
}

// stripKernel finds a hull near the exact one in two passes: the least and the
// greatest point of every strip, and their hull.
type stripKernel struct {
	low, high []int32
	part      geom.Cloud[float32]
	number    []int32
	inner     []int32
	op        hull.Hull2D[float32]
}

func (s *stripKernel) hull(dst []int32, c geom.Cloud[float32], strips int) []int32 {
	s.low, s.high = s.low[:0], s.high[:0]
	for range strips {
		s.low, s.high = append(s.low, -1), append(s.high, -1)
	}
	left, right := 0, 0
	for i, v := range c.X {
		if v < c.X[left] {
			left = i
		}
		if v > c.X[right] {
			right = i
		}
	}
	from, scale := c.X[left], float32(strips)/max(c.X[right]-c.X[left], math.SmallestNonzeroFloat32)
	y := c.Y[:len(c.X)]
	for i, v := range c.X {
		k := min(int((v-from)*scale), strips-1)
		if a := s.low[k]; a < 0 || y[i] < y[a] {
			s.low[k] = int32(i)
		}
		if a := s.high[k]; a < 0 || y[i] > y[a] {
			s.high[k] = int32(i)
		}
	}
	s.number = append(s.number[:0], int32(left), int32(right))
	for k, a := range s.low {
		if a >= 0 {
			s.number = append(s.number, a, s.high[k])
		}
	}
	s.part.X, s.part.Y = s.part.X[:0], s.part.Y[:0]
	for _, i := range s.number {
		s.part.X, s.part.Y = append(s.part.X, c.X[i]), append(s.part.Y, c.Y[i])
	}
	s.inner = s.op.Append(s.inner[:0], s.part)
	for _, i := range s.inner {
		dst = append(dst, s.number[i])
	}
	return dst
}

// stripsFor is the least power of two of strips with which no frame's error is
// above that given; at most as many as there are points.
func stripsFor(frames []geom.Cloud[float32], errs []float64) int {
	var s stripKernel
	for strips := 4; ; strips *= 2 {
		fits := true
		for k, c := range frames {
			fits = fits && hullError(c, s.hull(nil, c, strips)) <= errs[k]
		}
		if fits || strips > frames[0].Len() {
			return strips
		}
	}
}

// farthestPoint is the largest distance of a point of c to the polygon of idx,
// its hull: every point against every edge.
func farthestPoint(c geom.Cloud[float32], idx []int32) (most float64) {
	at := func(i int32) (x, y float64) { return float64(c.X[i]), float64(c.Y[i]) }
	for p := range int32(c.Len()) {
		px, py := at(p)
		inside, least := len(idx) > 2, math.Inf(1)
		for k, i := range idx {
			ax, ay := at(i)
			bx, by := at(idx[(k+1)%len(idx)])
			ux, uy, vx, vy := bx-ax, by-ay, px-ax, py-ay
			inside = inside && ux*vy-uy*vx >= 0
			t := 0.0
			if square := ux*ux + uy*uy; square > 0 {
				t = max(0, min(1, (ux*vx+uy*vy)/square))
			}
			dx, dy := vx-t*ux, vy-t*uy
			least = min(least, dx*dx+dy*dy)
		}
		if !inside {
			most = max(most, math.Sqrt(least))
		}
	}
	return most
}

// edgesKept is the part of the Delaunay edges of c that the triangulation of the
// moved points has, too (Jaccard's measure).
func edgesKept(c, moved geom.Cloud[float32]) float64 {
	edges := func(c geom.Cloud[float32]) [][2]int32 {
		mesh := (&delaunay.Triangulator[float32]{}).Triangulate(c)
		var all [][2]int32
		for k := 0; k < len(mesh.Triangles); k += 3 {
			for e := range 3 {
				a, b := mesh.Triangles[k+e], mesh.Triangles[k+(e+1)%3]
				all = append(all, [2]int32{min(a, b), max(a, b)})
			}
		}
		slices.SortFunc(all, func(a, b [2]int32) int {
			return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
		})
		return slices.Compact(all)
	}
	was, is := edges(c), map[[2]int32]bool{}
	for _, e := range edges(moved) {
		is[e] = true
	}
	both := 0
	for _, e := range was {
		if is[e] {
			both++
		}
	}
	if len(was)+len(is) == 0 {
		return 1
	}
	return float64(both) / float64(len(was)+len(is)-both)
}

// regulariserOf returns the regulariser that movedMethod was given.
func regulariserOf(method string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(method, netMethod+", "), ",")
	return name
}

func perturbVerdict(records []record) string {
	var b strings.Builder
	slower, least, dearer, checked, edges := 0, math.Inf(1), math.Inf(1), 0.0, math.Inf(1)
	lines, gains, coarse := 0, 0, 0
	var exact, kernel *record
	for k := range records {
		r := &records[k]
		v := r.Values
		checked = max(checked, v["checked"])
		switch method := r.Text["method"]; {
		case method == exactMethod:
			exact = r
		case strings.HasPrefix(method, kernelMethod):
			kernel = r
		default:
			lines++
			if v["speedup"] < 1 {
				slower++
			}
			if exact != nil && v["entropy"] < exact.Values["entropy"] {
				gains++
			}
			if kernel.Values["worst"] > v["worst"] {
				coarse++
			}
			least = min(least, 1/v["speedup"])
			dearer = min(dearer, v["network_ms"]/kernel.Values["total_ms"])
			if kept, ok := v["edges"]; ok {
				edges = min(edges, kept)
			}
			fmt.Fprintf(&b, "* %s, %s: %.3f ms with the network (%.3f of them the network), %.4f ms exact, %.4f ms "+
				"for the ε-kernel with worst error %.4f %% against %.4f %%.\n",
				r.Text["family"], regulariserOf(method), v["total_ms"], v["network_ms"], exact.Values["total_ms"],
				kernel.Values["total_ms"], kernel.Values["worst"], v["worst"])
		}
	}
	b.WriteString("\n")
	if coarse > 0 {
		fmt.Fprintf(&b, "In %d of %d lines no ε-kernel that was tried comes as near as the network; the line has "+
			"the largest. ", coarse, lines)
	}
	fmt.Fprintf(&b, "With a network a frame takes longer than the exact hull in %d of %d lines, at least %.0f "+
		"times as long where it is nearest to it; the network alone takes at least %.0f times what an ε-kernel "+
		"takes. It lowers the entropy in %d. The stated error differs from brute force by at most %.1e %% of the "+
		"diagonal. Of the Delaunay edges at least %.1f %% are kept, and no bound holds for the rest.\n\n", slower,
		lines, least, dearer, gains, checked, edges)
	b.WriteString("Why they differ: a network of 148 thousand operations a point stands before a problem of a few " +
		"nanoseconds a point; whatever entropy it saves, it saves at most those. The paper's 8.7 ms for the hull of " +
		"10,000 points compare with about 1 ms that the same SciPy and Qhull took in a measurement of ours, and its " +
		"2.1 ms leave the network's own 0.8 ms out, which in turn would be more operations in a second than its " +
		"processor can do. An approximate hull needs no network: the width of strips, or the number of directions, " +
		"bounds the error beforehand.")
	return b.String()
}
