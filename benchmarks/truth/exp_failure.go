package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/benchmarks/rig"
)

var failure = &experiment{
	name:  "failure",
	title: "Where the measures fail",
	claim: "The paper names three failures of H_diff: more than 10 dimensions, where assignments become uniform; " +
		"elongated clusters, which balls fit badly; and clusters with structure of their own. It prints no figures. " +
		"Here (a) maxima of 600 points in 2 to 16 dimensions, 24 sets of three kinds for each seed, H by a greedy " +
		"cover, and H_diff alone up to 2048 dimensions, its distances as they are and divided by the dimension; " +
		"(b) sets of " +
		"three families that are only stretched, along a slanted axis: their hulls stay, but for which part of them " +
		"is the upper one, whose entropy is measured; every seed makes a set of each family; (c) one to 64 " +
		"clusters, filled or rings. Means over sets or 5 seeds.",
	cells: failureCells,
	rows:  failureRows,
	columns: rig.Table[*record]{
		text("what", "what"), value("H, nats", "truth", "%.2f"), value("log n", "logn", "%.2f"),
		value("F", "f", "%.2f"), value("G", "g", "%.2f"), value("R² of F", "f_r2", "%.2f"),
		value("H_diff", "hdiff", "%.3f"), value("of log k", "hdiff_share", "%.3f"),
		value("largest p, mean", "sure", "%.2f"), value("H_diff, distances by dimension", "scaled", "%.3f"),
		value("largest p", "scaled_sure", "%.2f"),
		value("R² of H_diff", "hdiff_r2", "%.2f"), value("H_soft", "hsoft", "%.3f"),
	},
	verdict: failureVerdict,
}

const failureAnchors = 16

func failureCells(how effort) (cells []cell) {
	n, sets, dims, of := 600, 8, []int{2, 3, 4, 6, 8, 12, 16, 64, 256, 2048}, seeds
	if how == quick {
		n, sets, dims, of = 60, 2, []int{2, 16}, fewSeeds()
	}
	for _, d := range dims {
		key := fmt.Sprintf("dimensions=%d n=%d sets=3x%d seeds=%v", d, n, sets, of)
		cells = append(cells, cell{key, func(context.Context) ([]record, error) {
			return []record{dimensionRecord(d, n, sets, of)}, nil
		}})
	}
	for _, f := range stretchFamilies {
		for _, stretch := range stretches {
			key := fmt.Sprintf("stretch=%g family=%s n=%d seeds=%v", stretch, f.name, 2*n, of)
			cells = append(cells, cell{key, func(context.Context) ([]record, error) {
				what := fmt.Sprintf("(b) %s, stretched %g times", f.name, stretch)
				r := planeRecord("stretch", stretch, what, of,
					func(seed uint64) geom.Cloud[float64] { return stretched(f.make(2*n, seed), stretch) })
				r.Text["family"] = f.name
				return []record{r}, nil
			}})
		}
	}
	for _, shape := range []blobShape{filled, hollow} {
		for _, k := range []int{1, 4, 16, 64} {
			what := fmt.Sprintf("(c) %d clusters", k)
			if shape == hollow {
				what += ", rings"
			}
			key := fmt.Sprintf("clusters=%d rings=%v n=%d seeds=%v", k, shape == hollow, 2*n, of)
			cells = append(cells, cell{key, func(context.Context) ([]record, error) {
				r := planeRecord("clusters", float64(k), what, of, func(seed uint64) geom.Cloud[float64] {
					return blobs(2*n, k, .02, shape, rand.New(rand.NewPCG(seed, 17)))
				})
				return []record{r}, nil
			}})
		}
	}
	return cells
}

// stretches are the factors of (b), ascending from 1.
var stretches = []float64{1, 10, 100, 1000, 10000}

// stretchFamilies are the sets of (b). They are an axis of their own: a family
// that a seed chose would be the same one for seeds with a common divisor.
var stretchFamilies = []struct {
	name string
	make func(n int, seed uint64) geom.Cloud[float64]
}{{"disks", geomtest.Disk[float64]}, {"normal clouds", geomtest.Gauss[float64]},
	{"parabolas", geomtest.Parabola[float64]}}

// failureRows puts the parts in their order, whichever was measured last.
func failureRows(records []record) []record {
	kinds := []string{"dimensions", "stretch", "clusters"}
	rows := slices.Clone(records)
	slices.SortStableFunc(rows, func(a, b record) int {
		return cmp.Compare(slices.Index(kinds, a.Text["kind"]), slices.Index(kinds, b.Text["kind"]))
	})
	return rows
}

// stretched returns c stretched along (1, 0.6), in the unit square.
func stretched(c geom.Cloud[float64], by float64) geom.Cloud[float64] {
	sin, cos := math.Sincos(math.Atan(.6))
	for i := range c.X {
		along, across := cos*c.X[i]+sin*c.Y[i], cos*c.Y[i]-sin*c.X[i]
		along *= by
		c.X[i], c.Y[i] = cos*along-sin*across, sin*along+cos*across
	}
	return unitBox(c)
}

// planeRecord measures clouds in the plane: the upper hull's entropy.
func planeRecord(kind string, parameter float64, what string, seeds []uint64,
	draw func(seed uint64) geom.Cloud[float64]) record {
	r := record{Text: map[string]string{"kind": kind, "what": what}, Values: map[string]float64{"parameter": parameter}}
	all := map[string][]float64{}
	for _, seed := range seeds {
		c, p := draw(seed), entropy.UpperHull
		out := answerOf(c, p)
		g := guess(c, p, sizeOf(c, out, p), seed)
		truth := entropy.GroundTruth(c, out, p).Estimate
		for name, x := range map[string]float64{
			"truth": truth, "logn": math.Log(float64(c.Len())), "f": g["f64"], "g": g["g64"], "hdiff": g["hdiff10"],
			"hdiff_share": g["hdiff10"] / math.Log(failureAnchors), "hsoft": g["hsoftp"],
			"f_error": math.Abs(g["f64"] - truth), "g_error": math.Abs(g["g64"] - truth),
		} {
			all[name] = append(all[name], x)
		}
	}
	for name, values := range all {
		r.add(name, seeds, values)
	}
	return r
}

// coverDimensions is the largest number of dimensions whose maxima are measured.
const coverDimensions = 16

// dimensionRecord measures sets of three kinds in some dimensions: means and correlations
// over the sets of each seed.
func dimensionRecord(dims, n, sets int, seeds []uint64) record {
	r := record{Text: map[string]string{"kind": "dimensions", "what": fmt.Sprintf("(a) %d dimensions", dims)},
		Values: map[string]float64{"parameter": float64(dims), "logn": math.Log(float64(n))}}
	all := map[string][]float64{}
	for _, seed := range seeds {
		for name, v := range dimensionValues(dims, n, sets, seed) {
			all[name] = append(all[name], v)
		}
	}
	for name, values := range all {
		r.add(name, seeds, values)
	}
	return r
}

// dimensionValues measures the sets of one seed.
func dimensionValues(dims, n, sets int, seed uint64) map[string]float64 {
	v := map[string]float64{}
	var truth, f, balls []float64
	count := float64(3 * sets)
	for _, kind := range []string{"uniform", "correlated", "front"} {
		for s := range sets {
			r := rand.New(rand.NewPCG(seed, uint64(dims)<<16|uint64(s)))
			points := drawSet(kind, n, dims, r)
			anchors := spreadMeans(points, failureAnchors, r)
			h, sure := ballsIn(points, anchors, 10)
			scaled, scaledSure := ballsIn(points, anchors, 10/float64(dims))
			balls = append(balls, h)
			v["hdiff"] += h / count
			v["hdiff_share"] += h / math.Log(failureAnchors) / count
			v["sure"] += sure / count
			v["scaled"] += scaled / count
			v["scaled_sure"] += scaledSure / count
			if dims > coverDimensions {
				continue
			}
			boxes, maximal := boxesBelow(points)
			var g entropy.Cover
			truth = append(truth, g.Greedy(&boxes).Upper)
			f = append(f, softBoxes(points, &boxes, maximal, 64, 2e-4))
			v["maximal"] += float64(len(maximal)) / float64(n) / count
		}
	}
	if len(truth) > 0 {
		v["truth"], v["f"] = meanOf(truth), meanOf(f)
		v["f_r2"], _, _ = fitLine(truth, f)
		v["hdiff_r2"], _, _ = fitLine(truth, balls)
		v["f_error"] = rootMeanSquare(truth, f)
	}
	return v
}

// stretchVerdict says of each family what stretching does to its measures: means
// over the seeds of the differences of the same set.
func stretchVerdict(records []record) string {
	families, of := grouped(records, "family")
	var b strings.Builder
	fmt.Fprintf(&b, "From %g to %g times, means of differences of the same set with their 95 %% intervals over seeds:",
		stretches[0], stretches[len(stretches)-1])
	stays, off := 0, 0
	for k, name := range families {
		rows := of[name]
		least, most := &rows[0], &rows[len(rows)-1]
		truth, half := changeOf(least, most, "truth")
		if math.Abs(truth) <= half {
			stays++
		}
		if f, fHalf := changeOf(least, most, "f_error"); f > fHalf {
			off++
		}
		fmt.Fprintf(&b, "%s of %s, H (%.2f nats) %s, F %s, the hard bound G %s, H_diff %s, H_soft %s",
			[2]string{"", ";"}[min(k, 1)], name, least.Values["truth"], moves(least, most, "truth"),
			moves(least, most, "f"), moves(least, most, "g"), moves(least, most, "hdiff"), moves(least, most, "hsoft"))
	}
	fmt.Fprintf(&b, ". H keeps its value, as far as %d seeds tell, in %d of %d families. F comes to be further off "+
		"in %d: its temperature is a length.", len(seedsOf(&records[0], "truth")), stays, len(families), off)
	return b.String()
}

// seedsOf returns the names of a measure for the seeds of a record.
func seedsOf(r *record, name string) (names []string) {
	for _, key := range slices.Sorted(maps.Keys(r.Values)) {
		if seed, ok := strings.CutPrefix(key, name+"_"); ok && seed != "ci" && strings.Trim(seed, "0123456789") == "" {
			names = append(names, key)
		}
	}
	return names
}

// changeOf returns the mean over seeds of what a measure gains from one record to
// another, and half its interval.
func changeOf(from, to *record, name string) (mean, half float64) {
	var gains []float64
	for _, key := range seedsOf(from, name) {
		gains = append(gains, to.Values[key]-from.Values[key])
	}
	return interval(gains)
}

// moves words changeOf by its interval.
func moves(from, to *record, name string) string {
	mean, half := changeOf(from, to, name)
	switch {
	case mean > half:
		return fmt.Sprintf("rises by %.3f ± %.3f", mean, half)
	case mean < -half:
		return fmt.Sprintf("falls by %.3f ± %.3f", -mean, half)
	}
	return fmt.Sprintf("moves by %+.3f ± %.3f, which is not told from zero", mean, half)
}

func failureVerdict(records []record) string {
	_, of := grouped(records, "kind")
	var b strings.Builder
	var maxima []record
	for _, r := range of["dimensions"] {
		if _, ok := r.Values["f_r2"]; ok {
			maxima = append(maxima, r)
		}
	}
	first, last := maxima[0].Values, maxima[len(maxima)-1].Values
	leastF, mostBall := 1.0, 0.0
	for _, r := range maxima {
		leastF, mostBall = min(leastF, r.Values["f_r2"]), max(mostBall, r.Values["hdiff_r2"])
	}
	fmt.Fprintf(&b, "(a) It is the problem that becomes hard with dimensions, not only its measure: mean H rises "+
		"from %.2f of at most %.2f nats in %.0f dimensions to %.2f in %.0f, for the share of maximal points goes "+
		"from %.0f to %.0f %%. R² with H is at least %.2f for F, at most %.2f for H_diff.", first["truth"],
		first["logn"], first["parameter"], last["truth"], last["parameter"], 100*first["maximal"],
		100*last["maximal"], leastF, mostBall)
	low, high := of["dimensions"][0].Values, of["dimensions"][len(of["dimensions"])-1].Values
	uniform := "do not become uniform but sharper"
	if high["sure"] <= low["sure"] {
		uniform = "become more uniform"
	}
	fmt.Fprintf(&b, " As the formula stands, assignments %s with the dimension: the largest p is %.2f in %.0f "+
		"dimensions, %.2f in %.0f, as squared distances grow with it; divided by the dimension they come to %.2f, "+
		"where 1/k = %.2f is no assignment at all. H_diff meanwhile is %.3f and %.3f of log k: it has said as "+
		"little in the plane.\n\n",
		uniform, low["sure"], low["parameter"], high["sure"], high["parameter"], high["scaled_sure"], 1./failureAnchors,
		low["hdiff_share"], high["hdiff_share"])
	fmt.Fprintf(&b, "(b) %s\n\n", stretchVerdict(of["stretch"]))
	worst, worstBall := 0.0, 0.0
	var truth, ball []float64
	for _, r := range of["clusters"] {
		worst = max(worst, r.Values["f_error"])
		worstBall = max(worstBall, math.Abs(r.Values["hdiff_share"]-1))
		truth, ball = append(truth, r.Values["truth"]), append(ball, r.Values["hdiff"])
	}
	r2, _, _ := fitLine(truth, ball)
	fmt.Fprintf(&b, "(c) However many clusters, filled or not, F is off by at most %.2f nat in the mean. H_diff "+
		"stays within %.1f %% of log k, R² with H %.2f: with one cluster or 64 it says that k-means shares points "+
		"evenly.", worst, 100*worstBall, r2)
	return b.String()
}
