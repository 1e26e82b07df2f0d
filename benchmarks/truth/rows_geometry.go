package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"entropipe/benchmarks/truth/estimate"
)

// correlates returns R² of a measure with the entropy of upper hulls over all families.
func correlates(measure string) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate {
		return s.ofFamilies("correlation", []string{"problem=upperhull"}, familyOf, figure("truth"), figure(measure),
			rSquared)
	}
}

func familyOf(r *record) string { return r.Text["family"] }

// ranked returns Spearman's correlation of a measure with the entropy of upper hulls.
func ranked(measure string) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate {
		return s.ofFamilies("correlation", []string{"problem=upperhull"}, familyOf, figure("truth"), figure(measure),
			spearman)
	}
}

// trainedWith returns a figure, times scale, of the networks that were trained with a
// regulariser and the paper's sigma: families averaged, a unit a seed.
func trainedWith(method, figure string, scale float64) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate { return ofNetworks(s, method, figure).scaled(scale).bySeed().mean() }
}

func ofNetworks(s sheet, method, figure string) units {
	return s.unitsOf("tradeoff", figure, "method="+method, "sigma=0.1").balanced()
}

// lengthOfTrainings says where trainings of other lengths are.
const lengthOfTrainings = " The trainings have at most 200 epochs, of 8 steps; for " +
	"H_diff on the square [another page](../../benchmarks/results/truth/lessons.md) has half and twice the steps."

// balanced leaves out the families of which fewer seeds are there than of another, so that
// every seed has the same families.
func (u units) balanced() units {
	count, most := map[string]int{}, 0
	family := func(unit string) string { return unit[:strings.LastIndex(unit, "seed ")] }
	for unit := range u {
		count[family(unit)]++
		most = max(most, count[family(unit)])
	}
	out := units{}
	for unit, v := range u {
		if count[family(unit)] == most {
			out[unit] = v
		}
	}
	return out
}

// geometryRows are rows 1 to 9: networks, surrogates, and their speed before a hull.
var geometryRows = []row{
	{
		number: 1, title: "EntropyNet", lines: "1057-1084, 1196",
		claim:   "The network moves 10,000 points in 0.8 ms.",
		printed: "0.8 ms", figure: "time of the network for 10,000 points, ms", format: "%.3g", limit: atMost(.8),
		experiments: []string{"hulls"},
		asPrinted: func(s sheet) estimate.Estimate {
			return s.unitsOf("hulls", "network_ms", "family=square", "method=EntropyNet, Chan 1996").mean()
		},
		peer: func(s sheet) estimate.Estimate {
			return times(s, "hulls", "square", "hull.Hull2D").mean()
		},
		peerName: "whole exact hull, hull.Hull2D",
		here:     "Forward pass of the paper's layers on this machine's cores, single precision.",
		change:   "A forward pass of these layers below 0.8 ms on a processor that the record names.",
	},
	{
		number: 2, title: "H_diff", lines: "124-139, 610",
		claim:   "Lowering H_diff lowers the range-partition entropy: over a training both fall together.",
		printed: "R² 0.96", figure: "R² with the entropy over a training", format: "%.2f", limit: atLeast(.96),
		experiments: []string{"tradeoff"},
		asPrinted:   trainedWith("H_diff", "r2", 1), corrected: trainedWith("F", "r2", 1),
		here: "EntropyNet by the paper's protocol, sigma 0.1, a unit a seed: held-out H_diff against the entropy G " +
			"of held-out frames over the evaluations of a training." + lengthOfTrainings,
		form:   "F",
		change: "A training of H_diff, train and test frames apart, whose R² reaches 0.96 on each of five seeds.",
	},
	{
		number: 3, title: "H_soft", lines: "142-165, 189-203",
		claim:   "H_soft approximates the range-partition entropy, so it rises with it.",
		printed: "rises with H", figure: "Spearman's correlation with the entropy of upper hulls", format: "%+.2f",
		limit:       atLeast(0),
		experiments: []string{"correlation"},
		asPrinted:   ranked("hsoft"), corrected: ranked("f64"), peer: ranked("logh"),
		peerName: "logarithm of the number of vertices",
		here:     "Eight random lines; the pages of the experiment have the principal ones, too.",
		form:     "F",
		change:   "A choice of lines, fixed before the sets are drawn, whose correlation is above 0 over the families.",
	},
	{
		number: 4, title: "F and G", lines: "none: ours",
		claim:   "The entropy of witnessed ranges, F, tells the entropy of upper hulls: R² at least 0.97.",
		printed: "none", figure: "R² with the entropy of upper hulls", format: "%.3f", limit: atLeast(.97),
		judgesCorrected: true,
		experiments:     []string{"correlation"},
		corrected:       correlates("f64"), peer: correlates("logh"), peerName: "logarithm of the number of vertices",
		here:   "F with 64 witnesses at temperature 2e-4. G, its hard companion, is on the experiment's page.",
		form:   "F",
		change: "A family of sets on which F and the entropy part, drawn by somebody else.",
	},
	{
		number: 5, title: "Hulls in the plane", lines: "222-240",
		claim:   "EntropyNet before Chan's algorithm makes the hull of 10,000 uniform points 4.14 times as fast.",
		printed: "4.14×", figure: "times as fast as quickhull, network counted", format: "%.3g", limit: atLeast(4.14),
		experiments: []string{"hulls"},
		asPrinted:   faster("hulls", "square", "quickhull", "EntropyNet, Chan 1996"),
		corrected:   faster("hulls", "square", "quickhull", "hull.Hull2D"),
		peer:        faster("hulls", "square", "quickhull", "Akl and Toussaint, chain"),
		peerName:    "Akl and Toussaint, chain",
		form:        "exact hull, hull.Hull2D",
		change: "One machine and one record in which the network, counted, and the hull are faster than quickhull " +
			"alone.",
	},
	{
		number: 6, title: "A heuristic order before the hull", lines: "232, 236",
		claim:   "A heuristic sort makes the hull 1.67 times as fast.",
		printed: "1.67×", figure: "times as fast as without the sort", format: "%.3g", limit: atLeast(1.67),
		experiments: []string{"sorting"},
		asPrinted: func(s sheet) estimate.Estimate {
			return s.unitsOf("sorting", "speedup", "family=square", "method=by x", "operator=hull.Hull2D").ratio()
		},
		peer: func(s sheet) estimate.Estimate {
			return s.unitsOf("sorting", "speedup", "family=square", "method=Hilbert", "operator=hull.Hull2D").ratio()
		},
		peerName: "Hilbert's order",
		corrected: func(s sheet) estimate.Estimate {
			return s.unitsOf("sorting", "speedup", "family=square", "method=by x", "operator=monotone chain").ratio()
		},
		here: "The time of the sort is counted. The corrected form is the case that favours the claim most: the " +
			"chain, which has to sort anyway.",
		form:   "before the monotone chain",
		change: "An operator that gains more from sorted points than the sort costs.",
	},
	{
		number: 7, title: "QuickDraw drawings", lines: "1144, 1197",
		claim:   "Behind EntropyNet drawings take 2.1 ms instead of 3.4: 1.62 times as fast.",
		printed: "1.62×", figure: "times as fast as quickhull, network counted", format: "%.3g", limit: atLeast(1.62),
		experiments: []string{"hulls"},
		asPrinted:   faster("hulls", "QuickDraw drawings", "quickhull", "EntropyNet, Chan 1996"),
		corrected:   faster("hulls", "QuickDraw drawings", "quickhull", "hull.Hull2D"),
		peer:        faster("hulls", "QuickDraw drawings", "quickhull", "Akl and Toussaint, chain"),
		peerName:    "Akl and Toussaint, chain",
		form:        "exact hull, hull.Hull2D",
		change:      "A drawing whose hull takes longer than a forward pass.",
	},
	{
		number: 8, title: "Where a frame's time goes", lines: "1186-1200",
		claim:   "The network saves 5.8 ms of every frame of 10,000 points.",
		printed: "5.8 ms", figure: "time saved against quickhull, ms", format: "%+.3g", limit: atLeast(5.8),
		experiments: []string{"hulls", "breakdown"},
		asPrinted:   saved("EntropyNet, Chan 1996"), corrected: saved("hull.Hull2D"),
		peer: saved("Akl and Toussaint, chain"), peerName: "Akl and Toussaint, chain",
		form:   "exact hull, hull.Hull2D",
		change: "A frame on which the time saved behind the network exceeds the time in it.",
	},
	{
		number: 9, title: "A million points", lines: "1202-1219",
		claim:   "The hull of a million points is 1.41 times as fast behind EntropyNet.",
		printed: "1.41×", figure: "times as fast as quickhull, network counted", format: "%.3g", limit: atLeast(1.41),
		experiments: []string{"large"},
		asPrinted:   faster("large", "hull", "quickhull", "EntropyNet, hull.Hull2D"),
		corrected:   faster("large", "hull", "quickhull", "hull.Hull2D"),
		peer:        faster("large", "hull", "quickhull", "32 even directions, rows, chain"),
		peerName:    "filter of 32 even directions",
		form:        "exact hull, hull.Hull2D",
		change:      "A network whose forward pass of a million points takes less than the exact hull.",
	},
}

// saved returns the milliseconds that a method saves a frame of the square against quickhull.
func saved(method string) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate {
		return times(s, "hulls", "square", "quickhull").less(times(s, "hulls", "square", method)).mean()
	}
}

// entropyRows are rows 10 to 15: what a surrogate does to the entropy.
var entropyRows = []row{
	{
		number: 10, title: "Families of ranges", lines: "859-878",
		claim: "A loss that knows half-planes serves the hull better than one of balls: 4.82 times as fast, not " +
			"4.14.",
		printed: "4.82× and 4.14×", figure: "entropy that H_soft takes away beyond H_diff, percentage points",
		format: "%+.2f", limit: atLeast(0),
		experiments: []string{"tradeoff", "ranges"},
		asPrinted:   beyondBalls("H_soft", "fall"), corrected: beyondBalls("F", "fall"),
		peer: beyondBalls("H_diff", "kernel_fall"), peerName: kernelPeer,
		here: "Networks trained by the paper's protocol, sigma 0.1, a unit a seed. What points that move freely do " +
			"is on the page of the second experiment." + lengthOfTrainings,
		form:   "F",
		change: "A family on which H_soft leaves less entropy than H_diff at an equal error of the hull.",
	},
	{
		number: 11, title: "Anchors, temperature, weight", lines: "885-936, 1049",
		claim:   "With 16 anchors, alpha 10 and lambda 0.1 the entropy falls by 68 %.",
		printed: "68 %", figure: "fall of the entropy, %", format: "%.1f", limit: atLeast(68),
		experiments: []string{"tradeoff", "netsweeps", "lessons", "sweeps"},
		asPrinted:   trainedWith("H_diff", "fall", 100), corrected: trainedWith("F", "fall", 100),
		peer: trainedWith("H_diff", "kernel_fall", 100), peerName: kernelPeer,
		here: "Networks trained by the paper's protocol, sigma 0.1, whatever the error of the hull; a unit a seed. " +
			"The map of K and alpha, the curve of lambda and free points have pages of their own." + lengthOfTrainings,
		form:   "F",
		change: "A setting of H_diff that takes away 68 % of the entropy at less than 0.2 % error of the hull.",
	},
	{
		number: 12, title: "Which measure follows the entropy", lines: "609-617",
		claim:   "H_diff explains 96 % of the variance of the range-partition entropy.",
		printed: "R² 0.96", figure: "R² with the entropy of upper hulls", format: "%.3f", limit: atLeast(.96),
		experiments: []string{"correlation", "touched", "realentropy"},
		asPrinted:   correlates("hdiff10"), corrected: correlates("f64"), peer: correlates("logh"),
		peerName: "logarithm of the number of vertices",
		here:     "240 sets of 12 families; the interval draws whole families.",
		form:     "F",
		change:   "Families of sets, drawn by somebody else, over which the R² of H_diff is near 0.96.",
	},
	{
		number: 13, title: "Margins and the error of soft cells", lines: "182-187",
		claim:   "As the margin grows, the error of H_soft against the true entropy falls.",
		printed: "falls", figure: "Spearman's correlation of margin and error", format: "%+.2f", limit: atMost(0),
		experiments: []string{"margin"},
		asPrinted: margins(func(r *record) float64 { return r.Values["gamma5"] },
			func(r *record) float64 { return math.Abs(r.Values["truth"] - r.Values["soft"]) }),
		corrected: margins(func(r *record) float64 { return r.Values["gamma5"] / r.Values["tau"] },
			func(r *record) float64 { return math.Abs(r.Values["hard"] - r.Values["soft"]) }),
		here: "The corrected form sets the margin, in temperatures, against the entropy of the same cells made hard. " +
			"The margin is the 5 % quantile; its least value is 0.",
		form:   "margin in temperatures, cells made hard",
		change: "Cells for which the error against the true entropy, not that of the cells, falls with the margin.",
	},
	{
		number: 14, title: "Where the measures fail", lines: "364, 938-940",
		claim:   "H_diff fails above ten dimensions, not below.",
		printed: "R² 0.96 below", figure: "R² with the entropy of maxima, two to eight dimensions", format: "%.2f",
		limit:       atLeast(.96),
		experiments: []string{"failure"},
		asPrinted:   inDimensions("hdiff_r2"), corrected: inDimensions("f_r2"),
		here: "A unit is a seed: 24 sets of three families in each of 2, 3, 4, 6 and 8 dimensions. The " +
			"experiment's page " +
			"goes on to 16 dimensions with the entropy, to 2,048 without, and has elongated and multi-modal sets.",
		form:   "F",
		change: "A number of dimensions, two to ten, in which H_diff follows the entropy.",
	},
	{
		number: 15, title: "NeuralSort and k-means", lines: "1037-1052",
		claim:   "EntropyNet makes the hull 4.14 times as fast, NeuralSort 1.81 times.",
		printed: "4.14×", figure: "times as fast as the exact hull, everything counted", format: "%.2g",
		limit:       atLeast(4.14),
		experiments: []string{"baselines"},
		asPrinted:   speedOf(netMethod + ", " + hdiffAsPrinted), corrected: speedOf(exactMethod),
		peer: speedOf("k-means, 16 clusters, order by cluster"), peerName: "k-means, order by cluster",
		here: "10,000 uniform points, a unit a seed. NeuralSort's matrix of 10⁸ weights is never stored: it is " +
			"computed row by row, forward only; to learn through it, it would take 400 megabytes and as much for " +
			"its gradient.",
		form:   "exact hull alone",
		change: "A preprocessor that costs less than the hull behind it.",
	},
}

// kernelPeer needs no network.
const kernelPeer = "ε-kernel of no larger error, the rest pulled inwards"

// beyondBalls returns how many points of a hundred of the entropy something takes away
// beyond the network of H_diff.
func beyondBalls(method, figure string) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate {
		return ofNetworks(s, method, figure).less(ofNetworks(s, "H_diff", "fall")).scaled(100).bySeed().mean()
	}
}

// tolerableFall returns the largest fall of a regulariser over the bounds of displacements
// among those whose error, bad, is at most the printed 0.2 %, 0 where none is, in percent:
// families averaged, a unit a seed.
func tolerableFall(method, figure, bad string) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate {
		most := units{}
		for _, sigma := range []string{"0.01", "0.03", "0.1"} {
			where := []string{"method=" + method, "sigma=" + sigma}
			errs := s.unitsOf("tradeoff", bad, where...)
			for unit, fall := range s.unitsOf("tradeoff", figure, where...) {
				if errs[unit] > printedError {
					fall = 0
				}
				most[unit] = max(most[unit], fall)
			}
		}
		return most.balanced().scaled(100).bySeed().mean()
	}
}

// margins returns the rank correlation of a margin and an error over the sets, lines and
// temperatures of a seed: a unit a seed.
func margins(x, y func(*record) float64) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate {
		xs, ys := map[float64][]float64{}, map[float64][]float64{}
		for k := range s["margin"] {
			r := &s["margin"][k]
			of := r.Values["seed"]
			xs[of], ys[of] = append(xs[of], x(r)), append(ys[of], y(r))
		}
		var values []float64
		for _, of := range slices.Sorted(maps.Keys(xs)) {
			values = append(values, spearman(xs[of], ys[of]))
		}
		return estimate.Of(values)
	}
}

// inDimensions returns a figure over two to eight dimensions, a unit a seed.
func inDimensions(name string) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate {
		all := units{}
		for _, dims := range []int{2, 3, 4, 6, 8} {
			maps.Copy(all, s.unitsOf("failure", name, "kind=dimensions", fmt.Sprintf("parameter=%d", dims)))
		}
		return all.bySeed().mean()
	}
}

// speedOf returns how many times as fast as the exact hull a preprocessor and the hull are.
func speedOf(method string) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate {
		return s.unitsOf("baselines", "speedup", "family=square", "method="+method).ratio()
	}
}
