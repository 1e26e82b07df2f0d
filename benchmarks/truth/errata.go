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
	right  string // the correct statement
	folder string // package of the test
	test   string
}

// errata are in the order of the paper's theory.
var errata = []erratum{
	{"The entropy's gradient", "598-600",
		"The gradient of H_diff with respect to an anchor is α Σ p_ij (p_ij - p_j)(x_i - c_j).",
		"It is (2α/n) Σ p_ij (s_i - log p_j)(x_i - c_j) with s_i = Σ_l p_il log p_l: logarithms, 1/n and a factor " +
			"of 2 are missing.",
		"algos/entropy", "TestPaperGradientsAreSlopes"},
	{"Product gates", "149-157",
		"The product of gates is normalised over the cells.",
		"With all sign patterns the denominator is 1, and g_ij = softmax_j(½ Σ_t s_jt z_it) needs no products.",
		"algos/entropy", "TestCellEntropyIsTheProductForm"},
	{"Entropy and tail", "646-661",
		"R ≤ ⌈e^H/δ⌉ clusters hold the mass 1-δ.",
		"R ≤ e^(H/δ). An atom of 0.8 beside 1,000 equal ones needs 501 at δ = 0.1; the printed bound is 66.",
		"algos/entropy", "TestEntropyTailOfThePaperIsFalse"},
	{"Break-even", "378-391, 450-453",
		"Training of EntropyNet is paid for after 1,500 batches.",
		"The paper's own formula and figures give 27,273, and 31,035 with the network counted.",
		"benchmarks/truth", "TestBreakEven"},
}

// errataPage lists the errata.
func errataPage() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Errata of the paper\n\n%d statements of the paper are wrong, empty or contradict each other. A "+
		"test "+
		"shows each: `go test -run NAME ./PACKAGE`. Lines are those of the paper's source.\n", len(errata))
	for k, e := range errata {
		fmt.Fprintf(&b, "\n## %d. %s\n\nLines %s. %s\n\n%s\n\nTest: `go test -run %s ./%s`\n", k+1, e.title, e.lines,
			e.says,
			e.right, e.test, e.folder)
	}
	return b.String()
}
