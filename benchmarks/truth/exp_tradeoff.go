package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/benchmarks/rig"
	"entropipe/preprocess/net"
	"entropipe/preprocess/train"
)

// printedError is the paper's bound for its own results: 0.2 %, here of the diagonal.
const printedError = .002

var tradeoff = &experiment{
	eachSeed: true,
	name:     "tradeoff",
	title:    "Trained networks: error of the hull against fall of the entropy",
	claim: "The paper trains EntropyNet with H_diff, or its half-space form H_soft, and prints that the entropy of " +
		"10,000 points falls by 68 % at a hull error of 0.11 % (uniform) or 0.09 % (parabola), below 0.2 % " +
		"everywhere, and that H_diff follows the true entropy with R² = 0.96. Here each regulariser trains the same " +
		"network by the paper's protocol: points in the unit box, batches of 32 clouds, AdamW at 1e-3 with decay " +
		"1e-4, clipped at 1, λ = 0.1 from epoch 20 on, at most 200 epochs, the model of the least held-out loss " +
		"kept, bounds σ of a displacement from 0.01 to the paper's 0.1. A training ends on a plateau: three " +
		"evaluations in a row, ten epochs apart, none of which lowers the held-out loss by more than 1 %, counted " +
		"from epoch 80 on. The paper does not say how many clouds it learns from; here they are 256, so that an " +
		"epoch has eight steps, and 64 more evaluate. Each step sees 64 points of each cloud, drawn anew. Frames to " +
		"learn from, to evaluate by and to test with have seeds of their own, and every seed of the run draws all " +
		"three anew, and the network. Tests are on whole frames of 10,000 points, with the true entropy and the " +
		"exact Hausdorff distance between the hull and that of the original points found on the moved ones, in " +
		"diagonals. Controls need no network: jitter moves every point at random; the ε-kernel keeps K extreme " +
		"points and pulls all others towards the centre of their polygon, by at most σ, as a network might have " +
		"learned to. Beside a network stand, on the same frames, jitter of the same error and the smallest kernel of " +
		"no larger error, with the network's σ.",
	cells: tradeoffCells,
	columns: rig.Table[*record]{
		text("frames", "family"), text("what moves the points", "method"), value("σ", "sigma", "%g"),
		value("H before, nats", "before", "%.3f"), overSeeds("fall, %", "fall", "%.1f", 100),
		overSeeds("hull error, %", "error", "%.3f", 100), overSeeds("times the printed 0.2 %", "times", "%.2f", 1),
		overSeeds("error of as few points as in training, %", "small_error", "%.3f", 100),
		overSeeds("fall by jitter of the same error, %", "jitter_fall", "%.1f", 100),
		overSeeds("fall by a kernel of no larger error, %", "kernel_fall", "%.1f", 100),
		overSeeds("R² with the entropy over the training", "r2", "%.2f", 1),
		value("epochs", "epochs", "%.0f"),
		value("steps", "steps", "%.0f"), value("kept of epoch", "kept_epoch", "%.0f"),
		value("share of the loss gained in the last 30 epochs", "gain30", "%.3f"),
		value("share that a plateau ended", "plateau", "%.2f"),
	},
	verdict: tradeoffVerdict,
}

const (
	shakenMethod  = "random jitter"
	extremeMethod = "ε-kernel"
)

// regulariserNames are what tables call them.
var regulariserNames = map[train.Regulariser]string{train.HDiff: "H_diff", train.HSoft: "H_soft", train.F: "F"}

// tradeoffFamilies are square, parabola and ring.
func tradeoffFamilies() []planar {
	return slices.DeleteFunc(slices.Clone(planarFamilies), func(p planar) bool {
		return p.name == "Gauss" || p.name == "circle"
	})
}

type tradeoffSize struct {
	points, tests int
	lesson        lessonSize
}

func tradeoffCells(how effort) (cells []cell) {
	size, sigmas, families := tradeoffSize{10000, 2, lessonOf(how)}, []float64{.1, .01, .03}, tradeoffFamilies()
	if how == quick {
		size.points, sigmas, families = 200, sigmas[:1], families[:1]
	}
	add := func(f planar, name string, run func(context.Context) ([]record, error)) {
		key := fmt.Sprintf("%s %s n=%d tests=%d %s seed=%d", f.name, name, size.points, size.tests, size.lesson.key(),
			seeds[0])
		cells = append(cells, cell{key, run})
	}
	for _, f := range families {
		add(f, "controls", func(context.Context) ([]record, error) { return tradeoffControls(f, size), nil })
	}
	for _, sigma := range sigmas {
		for _, f := range families {
			for _, r := range []train.Regulariser{train.HDiff, train.HSoft, train.F} {
				add(f, fmt.Sprintf("%s σ=%g λ=0.1", r, sigma), func(ctx context.Context) ([]record, error) {
					l := asPrinted(f, size.points, seeds[0], size.lesson)
					l.regulariser, l.sigma = r, sigma
					return tradeoffNet(ctx, f, l, size)
				})
			}
		}
	}
	return cells
}

// tested is what a way of moving points did to the test frames, in the mean.
type tested struct{ before, after, err float64 }

func (t tested) fall() float64 { return 1 - t.after/t.before }

// testOf moves the frames.
func testOf(frames []geom.Cloud[float32], before float64, move func(k int, c geom.Cloud[float32]) geom.Cloud[float32],
) tested {
	t := tested{before: before}
	for k, c := range frames {
		m := move(k, c)
		t.after += truthOf(m, entropy.Hull2D) / float64(len(frames))
		t.err += hullError(c, outputOf(m, entropy.Hull2D)) / float64(len(frames))
	}
	return t
}

// testFrames returns frames that no training has seen, and their mean entropy.
func testFrames(f planar, size tradeoffSize) (frames []geom.Cloud[float32], before float64) {
	frames = boxed(f.frames(size.tests, size.points, testSeeds()))
	for _, c := range frames {
		before += truthOf(c, entropy.Hull2D) / float64(len(frames))
	}
	return frames, before
}

// spreadPart keeps so many points of each frame, evenly spaced: what a training sees of one.
func spreadPart(frames []geom.Cloud[float32], points int) (out []geom.Cloud[float32]) {
	for _, c := range frames {
		var part geom.Cloud[float32]
		for k := range min(points, c.Len()) {
			i := k * c.Len() / min(points, c.Len())
			part.X, part.Y = append(part.X, c.X[i]), append(part.Y, c.Y[i])
		}
		out = append(out, part)
	}
	return out
}

// putTest adds what a test found.
func (r *record) putTest(t tested) {
	r.put("before", t.before)
	r.put("after", t.after)
	r.put("fall", t.fall())
	r.put("error", t.err)
	r.put("times", t.err/printedError)
}

func tradeoffNet(ctx context.Context, f planar, l lesson, size tradeoffSize) ([]record, error) {
	n, t, err := l.run(ctx)
	if err != nil {
		return nil, err
	}
	frames, before := testFrames(f, size)
	mover := net.Mover[float32]{Net: n}
	got := testOf(frames, before, func(_ int, c geom.Cloud[float32]) geom.Cloud[float32] { return mover.Move(c) })
	r := record{Text: map[string]string{"family": f.name, "method": regulariserNames[l.regulariser]},
		Values: map[string]float64{"sigma": l.sigma}}
	r.putTest(got)
	small := testOf(spreadPart(frames, l.size.kept), 0, func(_ int, c geom.Cloud[float32]) geom.Cloud[float32] {
		return mover.Move(c)
	})
	r.put("small_error", small.err)
	l.put(&r, t)
	reach := jitterOf(frames, got.err)
	jitter := testOf(frames, before, func(k int, c geom.Cloud[float32]) geom.Cloud[float32] {
		return shaken(c, reach, uint64(k))
	})
	r.put("jitter_fall", jitter.fall())
	r.put("jitter_error", jitter.err)
	r.put("beyond_jitter", got.fall()-jitter.fall())
	corners := kernelOf(frames, got.err)
	kernel := testOf(frames, before, func(_ int, c geom.Cloud[float32]) geom.Cloud[float32] {
		return pulledIn(c, corners, l.sigma)
	})
	r.put("kernel_fall", kernel.fall())
	r.put("kernel_error", kernel.err)
	r.put("kernel_corners", float64(corners))
	r.put("beyond_kernel", got.fall()-kernel.fall())
	return []record{r}, nil
}

// tradeoffControls are the curves that need no network.
func tradeoffControls(f planar, size tradeoffSize) (out []record) {
	frames, before := testFrames(f, size)
	for _, reach := range []float64{.0003, .001, .003, .01, .03, .1} {
		r := record{Text: map[string]string{"family": f.name, "method": shakenMethod},
			Values: map[string]float64{"sigma": reach}}
		r.putTest(testOf(frames, before, func(k int, c geom.Cloud[float32]) geom.Cloud[float32] {
			return shaken(c, reach, uint64(k))
		}))
		out = append(out, r)
	}
	for _, corners := range []int{4, 8, 16, 32, 64, 128} {
		name := fmt.Sprintf("%s, K = %d", extremeMethod, corners)
		r := record{Text: map[string]string{"family": f.name, "method": name},
			Values: map[string]float64{"corners": float64(corners), "sigma": .1}}
		r.putTest(testOf(frames, before, func(_ int, c geom.Cloud[float32]) geom.Cloud[float32] {
			return pulledIn(c, corners, .1)
		}))
		out = append(out, r)
	}
	return out
}

// shaken moves every point by up to reach on each axis.
func shaken(c geom.Cloud[float32], reach float64, seed uint64) geom.Cloud[float32] {
	r := rand.New(rand.NewPCG(seed, 77))
	out := geom.Cloud[float32]{X: slices.Clone(c.X), Y: slices.Clone(c.Y)}
	for i := range out.X {
		out.X[i] += float32(reach * (2*r.Float64() - 1))
		out.Y[i] += float32(reach * (2*r.Float64() - 1))
	}
	return out
}

// jitterOf is the largest jitter whose mean error on the frames is at most this, by
// halving.
func jitterOf(frames []geom.Cloud[float32], most float64) float64 {
	lo, hi := 0.0, 1.0
	for range 16 {
		mid, e := (lo+hi)/2, 0.0
		for k, c := range frames {
			e += hullError(c, outputOf(shaken(c, mid, uint64(k)), entropy.Hull2D)) / float64(len(frames))
		}
		if e <= most {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// kernelOf is the least power of two, from 4 to 1024, of directions whose extreme points
// have a mean error of at most this on the frames, or 1024.
func kernelOf(frames []geom.Cloud[float32], most float64) int {
	for corners := 4; ; corners *= 2 {
		e := 0.0
		for _, c := range frames {
			e += hullError(c, extremePoints(c, corners)) / float64(len(frames))
		}
		if e <= most || corners == 1024 {
			return corners
		}
	}
}

// extremePoints are those farthest out in even directions, each once.
func extremePoints(c geom.Cloud[float32], count int) (found []int32) {
	vertices := outputOf(c, entropy.Hull2D)
	for k := range count {
		sin, cos := math.Sincos(2 * math.Pi * float64(k) / float64(count))
		far := math.Inf(-1)
		var at int32
		for _, i := range vertices {
			if v := cos*float64(c.X[i]) + sin*float64(c.Y[i]); v > far {
				far, at = v, i
			}
		}
		if !slices.Contains(found, at) {
			found = append(found, at)
		}
	}
	return found
}

// pulledIn moves all points but the extreme ones straight towards the centre of their
// polygon, on each axis by at most reach, and those that are beyond the polygon then until
// they are inside by a hundred-thousandth of the way. The hull of the result is the polygon.
func pulledIn(c geom.Cloud[float32], count int, reach float64) geom.Cloud[float32] {
	corners := extremePoints(c, count)
	part := chosen(c, corners)
	polygon := outputOf(part, entropy.Hull2D)
	var cx, cy, far float64
	isCorner := map[int32]bool{}
	for _, i := range polygon {
		cx += float64(part.X[i]) / float64(len(polygon))
		cy += float64(part.Y[i]) / float64(len(polygon))
		isCorner[corners[i]] = true
	}
	for i := range c.X {
		far = max(far, math.Abs(float64(c.X[i])-cx), math.Abs(float64(c.Y[i])-cy))
	}
	out := geom.Cloud[float32]{X: slices.Clone(c.X), Y: slices.Clone(c.Y)}
	for i := range c.X {
		if isCorner[int32(i)] {
			continue
		}
		dx, dy := float64(c.X[i])-cx, float64(c.Y[i])-cy
		t := min(1-reach/far, (1-1e-5)/outside(part, polygon, cx, cy, dx, dy))
		out.X[i], out.Y[i] = float32(cx+t*dx), float32(cy+t*dy)
	}
	return out
}

// outside returns how far out of the polygon around x, y the place at dx, dy from there is:
// 1 on its border.
func outside(c geom.Cloud[float32], polygon []int32, x, y, dx, dy float64) (beyond float64) {
	for k, a := range polygon {
		b := polygon[(k+1)%len(polygon)]
		nx, ny := float64(c.Y[b]-c.Y[a]), float64(c.X[a]-c.X[b]) // outwards, as corners go round to the left
		if far := nx*(float64(c.X[a])-x) + ny*(float64(c.Y[a])-y); far > 0 {
			beyond = max(beyond, (nx*dx+ny*dy)/far)
		}
	}
	return beyond
}
