package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/benchmarks/rig"
)

// Pairs of real data under a distance that is learned from other pairs: of drawings, which
// are alike if they are of one kind, and of places in two scans that follow each other,
// which are alike if they are the same place. Nothing that is tested was learned from:
// kinds of drawings, and scans, are apart.

const (
	drawingPairs = "drawings of QuickDraw"
	scanPairs    = "places in KITTI scans"
)

// realPairsOf is a source of pairs: descriptors in groups, and how a seed parts them.
type realPairsOf struct {
	name   string
	folder []string
	read   func(most int) ([][][]float64, error)
	apart  func(groups [][][]float64, r *rand.Rand) (learn, test [][][]float64)
}

var realPairSources = []realPairsOf{
	{drawingPairs, []string{"sketch", "quickdraw_raw"}, drawingDescriptors, kindsApart},
	{scanPairs, []string{"kitti", "raw_2011_09_26_drive_0005"}, placeDescriptors, scansApart},
}

// realMetricCells are the cells of real pairs; a cell stands for data that are not here.
func realMetricCells(how effort, use []uint64) (cells []cell) {
	pairs, most := 2000, 60
	if how == quick {
		pairs, most = 200, 8
	}
	for _, source := range realPairSources {
		if _, err := rig.TestData(source.folder...); err != nil {
			cells = append(cells, cell{source.name + notThere, func(context.Context) ([]record, error) {
				return absentPairs(source.name), nil
			}})
			continue
		}
		key := fmt.Sprintf("%s pairs=%d shrinkage chosen seeds=%v", source.name, pairs, use)
		cells = append(cells, cell{key, func(ctx context.Context) ([]record, error) {
			groups, err := source.read(most)
			if err != nil {
				return nil, err
			}
			return realPairRun(ctx, source, groups, pairs, use)
		}})
	}
	return cells
}

// absentPairs is the record of pairs that cannot be drawn here.
func absentPairs(name string) []record {
	return []record{{Text: map[string]string{"data": name, "distance": "not there"},
		Values: map[string]float64{"absent": 1}}}
}

// kindsApart parts the kinds of drawings.
func kindsApart(groups [][][]float64, r *rand.Rand) (learn, test [][][]float64) {
	for k, i := range r.Perm(len(groups)) {
		if k < len(groups)/2 {
			learn = append(learn, groups[i])
		} else {
			test = append(test, groups[i])
		}
	}
	return learn, test
}

// scansApart parts the pairs of scans: a group is a place, whose first two descriptors are
// of the first two scans, and so on, so that pairs of scans are parted for all places.
func scansApart(groups [][][]float64, r *rand.Rand) (learn, test [][][]float64) {
	pairs := len(groups[0]) / 2 // as many for every place
	for k, i := range r.Perm(pairs) {
		for _, g := range groups {
			if pair := g[2*i : 2*i+2]; pair[0] == nil || pair[1] == nil {
				continue
			} else if k < (pairs+1)/2 {
				learn = append(learn, pair)
			} else {
				test = append(test, pair)
			}
		}
	}
	return learn, test
}

// drawPairs draws differences of descriptors, half of them of one group.
func drawPairs(n int, groups [][][]float64, r *rand.Rand) (difference [][]float64, alike []float64) {
	for k := range n {
		a := groups[r.IntN(len(groups))]
		b, same := a, 1.0
		if k < n/2 {
			for &b[0] == &a[0] {
				b = groups[r.IntN(len(groups))]
			}
			same = 0
		}
		x, y := r.IntN(len(a)), r.IntN(len(b))
		for same == 1 && y == x {
			y = r.IntN(len(b))
		}
		d := make([]float64, len(a[x]))
		for i := range d {
			d[i] = a[x][i] - b[y][i]
		}
		difference, alike = append(difference, d), append(alike, same)
	}
	return difference, alike
}

// realPairRun scores every distance on pairs that each seed draws; without two groups to
// learn from and to test with there is nothing to score.
func realPairRun(ctx context.Context, source realPairsOf, groups [][][]float64, pairs int,
	use []uint64) ([]record, error) {
	name := source.name
	names := []string{euclidean, scaled, mahalanobis}
	score, gain, miss := make([][]float64, len(names)), make([][]float64, len(names)), make([][]float64, len(names))
	blocks := 0.0
	for _, seed := range use {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		r := rand.New(rand.NewPCG(seed, 33))
		from, with := source.apart(groups, r)
		if len(from) < 2 || len(with) < 2 {
			return absentPairs(name), nil
		}
		learn, similar := drawPairs(pairs, from, r)
		test, truth := drawPairs(pairs, with, r)
		for k, distance := range names {
			w := chosenMetric(distance, learn, similar, r)
			s := scoreOf(w, test, truth)
			score[k] = append(score[k], s)
			gain[k] = append(gain[k], s-score[0][len(score[0])-1])
			if name == drawingPairs {
				h, of := groupEntropy(with, w)
				blocks = of
				miss[k] = append(miss[k], math.Abs(h-of))
			}
		}
	}
	out := make([]record, len(names))
	for k, distance := range names {
		out[k].Text = map[string]string{"data": name, "distance": distance}
		out[k].add("score", use, score[k])
		out[k].add("gain", use, gain[k])
		if name == drawingPairs {
			out[k].add("miss", use, miss[k])
			out[k].Values["blocks"] = blocks
		}
	}
	return out, nil
}

// scoreOf is 100 times the rank correlation of nearness and likeness.
func scoreOf(w, differences [][]float64, alike []float64) float64 {
	near := make([]float64, len(differences))
	for i, v := range differences {
		near[i] = -quadratic(w, v)
	}
	return 100 * spearman(near, alike)
}

// chosenMetric learns a metric; the shrinkage is the one that scores best on the second
// half of the pairs to learn from, in random order, when the first half made the metric.
func chosenMetric(name string, learn [][]float64, similar []float64, r *rand.Rand) [][]float64 {
	if name != mahalanobis {
		return metricOf(name, learn, similar, 0)
	}
	var parts [2][][]float64
	var alike [2][]float64
	for k, i := range r.Perm(len(learn)) {
		h := 2 * k / len(learn)
		parts[h], alike[h] = append(parts[h], learn[i]), append(alike[h], similar[i])
	}
	best, most := 0.0, math.Inf(-1)
	for _, shrinkage := range []float64{0, .03, .1, .3, 1, 3, 10} {
		if s := scoreOf(metricOf(name, parts[0], alike[0], shrinkage), parts[1], alike[1]); s > most {
			best, most = shrinkage, s
		}
	}
	return metricOf(name, learn, similar, best)
}

// groupEntropy is H_diff of all descriptors with the mean of each group as anchors, under
// the squared distance of a matrix, and the entropy of the groups' sizes.
func groupEntropy(groups [][][]float64, w [][]float64) (h, truth float64) {
	var points, anchors [][]float64
	var sizes []int
	for _, g := range groups {
		mean := make([]float64, len(g[0]))
		for _, x := range g {
			for i, v := range x {
				mean[i] += v / float64(len(g))
			}
		}
		points, anchors, sizes = append(points, g...), append(anchors, mean), append(sizes, len(g))
	}
	m := entropy.MetricEntropy[[]float64]{Distance: func(x, anchor []float64) float64 {
		d := make([]float64, len(x))
		for i := range d {
			d[i] = x[i] - anchor[i]
		}
		return max(0, quadratic(w, d)) // rounding may make a learned one negative
	}}
	return m.Value(points, anchors), entropy.OfSizes(sizes)
}

// drawingDescriptors are the drawings with pen positions by kind, at most so many of each.
func drawingDescriptors(most int) (groups [][][]float64, err error) {
	dir, err := rig.TestData("sketch", "quickdraw_raw")
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.ndjson"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	for _, path := range paths {
		all, err := readDrawings(path)
		if err != nil {
			return nil, err
		}
		var group [][]float64
		for _, c := range all[:min(len(all), most)] {
			if c.Len() > 3 {
				group = append(group, inkOf(c))
			}
		}
		if len(group) > 1 {
			groups = append(groups, group)
		}
	}
	return groups, nil
}

// inkSide is the number of cells of a side of a drawing's descriptor.
const inkSide = 6

// inkOf is the share of the points in each cell of the drawing's box, the square root of it
// so that few cells do not outweigh all others. A point is shared among the four nearest
// cells.
func inkOf(c geom.Cloud[float64]) []float64 {
	loX, hiX, loY, hiY := slices.Min(c.X), slices.Max(c.X), slices.Min(c.Y), slices.Max(c.Y)
	side := max(hiX-loX, hiY-loY, math.SmallestNonzeroFloat32)
	ink := make([]float64, inkSide*inkSide)
	for i := range c.X {
		x, y := (c.X[i]-loX)/side*(inkSide-1), (c.Y[i]-loY)/side*(inkSide-1)
		for _, cx := range []float64{math.Floor(x), math.Floor(x) + 1} {
			for _, cy := range []float64{math.Floor(y), math.Floor(y) + 1} {
				if share := (1 - math.Abs(x-cx)) * (1 - math.Abs(y-cy)); share > 0 {
					ink[int(cy)*inkSide+int(cx)] += share / float64(c.Len())
				}
			}
		}
	}
	for k, v := range ink {
		ink[k] = math.Sqrt(v)
	}
	return ink
}

// Places of a scan: sectors and rings around the scanner.
const (
	placeSectors, placeRings = 36, 6
	placeRing                = 6.0 // metres
	leastInPlace             = 30  // points
)

// placeDescriptors are places as groups of one descriptor a scan, nil where a scan has few
// points in a place.
func placeDescriptors(int) ([][][]float64, error) {
	frames, err := kittiDrive()
	if err != nil {
		return nil, err
	}
	groups := make([][][]float64, placeSectors*placeRings)
	for _, c := range frames[:len(frames)/2*2] {
		places := make([][]int, len(groups))
		for i := range c.X {
			x, y := float64(c.X[i]), float64(c.Y[i])
			ring := int(math.Hypot(x, y) / placeRing)
			if ring < placeRings {
				sector := int((math.Atan2(y, x)/(2*math.Pi) + .5) * placeSectors)
				k := ring*placeSectors + min(sector, placeSectors-1)
				places[k] = append(places[k], i)
			}
		}
		for k, in := range places {
			groups[k] = append(groups[k], placeOf(c, in))
		}
	}
	return groups, nil
}

// placeOf describes the points of a place by their heights and spread, not by where the
// place is.
func placeOf(c geom.Cloud[float32], in []int) []float64 {
	if len(in) < leastInPlace {
		return nil
	}
	var z []float64
	var sums, squares [3]float64
	for _, i := range in {
		z = append(z, float64(c.Z[i]))
		for d, v := range [3]float64{float64(c.X[i]), float64(c.Y[i]), float64(c.Z[i])} {
			sums[d] += v / float64(len(in))
			squares[d] += v * v / float64(len(in))
		}
	}
	deviation := func(d int) float64 { return math.Sqrt(max(0, squares[d]-sums[d]*sums[d])) }
	return []float64{quantile(z, .05), quantile(z, .25), quantile(z, .5), quantile(z, .75), quantile(z, .95),
		deviation(2), math.Hypot(deviation(0), deviation(1)), math.Log(float64(len(in)))}
}
