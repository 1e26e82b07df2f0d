package main

import (
	"fmt"
	"strings"
)

// erratum is an error of the paper, with the test that shows it.
type erratum struct {
	title  string
	lines  string // lines of the paper's source
	says   string // the paper's statement, in our words
	right  string // what is correct
	folder string // package of the test
	test   string
}

// harness is the package of most tests.
const harness = "benchmarks/truth"

// errata are in the order of the paper's theory; figures that contradict each other follow.
var errata = []erratum{
	{"The definition is empty", "116-121",
		"The entropy is the least over all partitions that ranges induce.",
		"One cell is such a partition, so the least is 0 for every set. What is missing: a group may stay together " +
			"only " +
			"if it needs no further work.", harness, "TestOneCellHasNoEntropy"},
	{"Uniform points are said to be hard", "220, 231",
		"Uniform points have high entropy, and gain most.",
		"Their maxima have an entropy near 0.1 nat a point: there is next to nothing to gain.",
		harness, "TestUniformPointsHaveLittleEntropy"},
	{"Triangulations have no easy inputs", "142, 216",
		"Points of low entropy make a Delaunay triangulation fast.",
		"On the paraboloid every point is extreme, so every group is a single point and H = log n for every input.",
		harness, "TestLiftedPointsAreExtreme"},
	{"The gradient of H_diff", "597-600",
		"The gradient with respect to an anchor is α Σ p_ij (p_ij - p_j)(x_i - c_j).",
		"It is (2α/n) Σ p_ij (s_i - log p_j)(x_i - c_j) with s_i = Σ_l p_il log p_l. The printed one points elsewhere.",
		harness, "TestPrintedGradientIsNotTheSlope"},
	{"The fixed point of anchors", "602-607",
		"Where the gradient is 0, anchors are centroids with weights p_ij².",
		"At such centroids the gradient is not 0: its true weights change their sign.",
		harness, "TestPrintedFixedPointIsNotStationary"},
	{"Collapse", "364, 887",
		"Uniform assignments are a collapse of the entropy, and there the regulariser fades out.",
		"They are the maximum of H_diff; its gradient is 0 there as at every maximum.",
		harness, "TestUniformAssignmentsAreTheMaximum"},
	{"Anchors that learn", "178, 597",
		"Points and anchors are trained together.",
		"Anchors alone lower H_diff to 0 while no point moves.", harness, "TestAnchorsAloneLowerTheMeasure"},
	{"The window of temperatures", "404, 1030-1032",
		"α between 5 and 20 balances sharpness and stability.",
		"In the unit square with 16 anchors H_diff at α = 10 is above 98 % of its maximum for uniform points, " +
			"clusters " +
			"and a circle alike.", harness, "TestPrintedTemperaturesTellNothing"},
	{"Annealing", "404, 925",
		"α falls from 10 to 5 to sharpen assignments; α = 1 is a low temperature.",
		"α is an inverse temperature: a smaller one makes assignments softer.", harness, "TestSmallerAlphaIsSofter"},
	{"Balls and half-planes", "859-878",
		"H_diff has balls for ranges, H_soft half-spaces.",
		"Squared distances differ by affine functions: cells of H_diff are intersections of half-spaces as well.",
		harness, "TestBallsAreHalfPlanes"},
	{"Product gates", "149-157",
		"The product of gates is normalised over the cells.",
		"Over all sign patterns the denominator is 1, and g_ij = softmax_j(½ Σ_t s_jt z_it) needs no products.",
		"algos/entropy", "TestCellEntropyIsTheProductForm"},
	{"Consistency", "191-203, 1291-1304",
		"H_soft of learned half-spaces is near the range-partition entropy.",
		"Two far clusters and a line between them have H_soft = log 2 and a printed entropy of 0, at any n.",
		harness, "TestConsistencyHasACounterexample"},
	{"The factor m", "1269",
		"Soft and hard masses differ by at most e^(-γ/4τ), whatever the number m of half-spaces.",
		"Gates multiply: 2(1 - (1-σ(-γ/τ))^m). With γ/τ = 4 it exceeds the printed bound from m = 16 on.",
		harness, "TestErrorGrowsWithTheHalfSpaces"},
	{"Continuity of the entropy", "1270-1280",
		"|H(p) - H(q)| ≤ x log(K/x) for x = ‖p - q‖₁.",
		"It fails for large x. Fannes and Audenaert's bound holds for every x.", harness, "TestPrintedContinuityFails"},
	{"Entropy and tail", "646-661",
		"R ≤ ⌈e^H/δ⌉ clusters hold the mass 1-δ.",
		"R ≤ e^(H/δ). An atom of 0.8 beside 1,000 equal ones needs 501 clusters at δ = 0.1; the printed bound is 66.",
		"algos/entropy", "TestEntropyTailOfThePaperIsFalse"},
	{"Truncation", "666-689",
		"The output errs by at most 4Bδ, if δ ≤ ½.",
		"y - ỹ = δ(ȳ_tail - ỹ) for every δ < 1, so 2Bδ bounds the error, and is reached.",
		harness, "TestTruncationIsAnIdentity"},
	{"The complexity of attention", "765-800",
		"Low entropy of the keys' partition lets few clusters serve all queries.",
		"A cluster's mass is its share of the keys: mass 1-δ is 1-δ of the keys. Balanced clusters have high entropy.",
		harness, "TestMassIsTheShareOfKeys"},
	{"Break-even", "378-391, 450-453",
		"EntropyNet is paid for after 1,500 batches, LLaMA-2 after 180,000.",
		"The paper's formula and figures give 27,273 and 542,118.", harness, "TestPrintedBreakEvens"},
	{"The time of the network", "1196",
		"The network moves 10,000 points in 0.8 ms on an i9-12900K.",
		"Its layers need 213,760 operations a point: 2.7 TFLOP/s, above the processor's 1.7.",
		harness, "TestPrintedTimeExceedsTheProcessor"},
	{"The headline", "220, 233",
		"Timings include the preprocessor: 8.7 ms become 2.1, 4.14 times as fast.",
		"2.1 ms is the hull alone; the paper's own total of 2.9 ms gives 3.00.", harness,
		"TestHeadlineLeavesTheNetworkOut"},
	{"Speed-ups of transformers", "246-275, 303-317",
		"Masks at 75 % make ViT 1.47 to 1.60 and LLaMA-2 1.60 times as fast.",
		"Attention is 4 to 14 % of the multiplications of these shapes; Amdahl's law allows 1.01 to 1.12.",
		harness, "TestPrintedSpeedupsExceedAmdahl"},
	{"Tokens of small images", "246, 303, 1093",
		"ViT-Small has patches of 16 × 16 on CIFAR's 32 × 32 pixels.",
		"That is five tokens with the class token: there is no attention to save.", harness, "TestTokensOfSmallImages"},
	{"Sparsity", "1170",
		"Sparsity is the share of weights below 0.01.",
		"Uniform dense attention over 101 keys is 100 % sparse by it.", harness, "TestUniformAttentionCountsAsSparse"},
	{"L1 on attention", "287, 311, 954",
		"L1 on attention weights is a baseline that thins them.",
		"Rows of a softmax add up to 1: their L1 is constant.", harness, "TestL1OfWeightsIsConstant"},
	{"NeuralSort", "1048",
		"NeuralSort orders 10,000 points in 4.8 ms.",
		"Its relaxation has 10⁸ weights: 83 GB/s for writing them once.", harness, "TestNeuralSortWouldNeedTheMemory"},
	{"The cap of displacements", "1066, 1082",
		"σ = 0.1 bounds perturbations so that structure is preserved.",
		"It permits 14 % of the side of the square.", harness, "TestCapOfDisplacements"},
	{"Figures that contradict each other", "63-1400",
		"One quantity has one figure.",
		"These have two: " + conflictText(), harness, "TestPrintedFiguresDisagree"},
}

// conflict is a quantity that the paper prints twice.
type conflict struct {
	what          string
	first, second float64
	lines         string
}

var conflicts = []conflict{
	{"ViT-Base's sparsity at 80.1 %, %", 80, 75, "63, 246"},
	{"GLUE score of the regulariser", 80.1, 78.4, "338, 506"},
	{"GLUE score of BigBird", 79.2, 77.8, "338, 504"},
	{"accuracy on ImageNet beside FlashAttention, %", 80.1, 80.3, "246, 347"},
	{"gain of LLaMA-2 beside FlashAttention, times", .37, .61, "242, 353-357"},
	{"speed-up of ViT-Base behind one break-even of 450,000 batches", 1.60, 1.47, "387, 451"},
}

func conflictText() string {
	texts := make([]string, len(conflicts))
	for k, c := range conflicts {
		texts[k] = fmt.Sprintf("%s: %g and %g (%s)", c.what, c.first, c.second, c.lines)
	}
	return strings.Join(texts, "; ") + "."
}

// errataPage lists the errata.
func errataPage() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Errata of the paper\n\n%d statements of the paper are wrong, empty or contradict each other. A "+
		"test "+
		"shows each. Lines are those of the paper's source.\n", len(errata))
	for k, e := range errata {
		fmt.Fprintf(&b, "\n## %d. %s\n\nLines %s. %s\n\n%s\n\nTest: `go test -run %s ./%s`\n", k+1, e.title, e.lines,
			e.says,
			e.right, e.test, e.folder)
	}
	return b.String()
}
