package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"entropipe/sparse/train"
)

// A puzzle is a sequence of bytes with questions, all of whose answers it
// contains: what stands far back must be read to know them.
type puzzle struct {
	ids     []int32
	targets []int32 // answer asked after each token, or train.NoTarget
	back    []int32 // how far before that token the first one stands that the answer needs
}

func newPuzzle(n int) *puzzle {
	p := &puzzle{ids: make([]int32, n), targets: make([]int32, n), back: make([]int32, n)}
	for i := range p.targets {
		p.targets[i] = train.NoTarget
	}
	return p
}

// ask asks after token at; from is where the first token stands that the answer
// needs.
func (p *puzzle) ask(at int, answer int32, from int) {
	p.targets[at], p.back[at] = answer, int32(at-from)
}

// task is a kind of puzzles.
type task struct {
	name  string
	about string // the question, for the page
	draw  func(n int, r *rand.Rand) *puzzle

	// How it is learned, by sequences of 256: the higher rate is too much for
	// recall, and with the lower one the others need more steps.
	steps, batch int
	rate         float64
}

// tasks stand for benchmarks that cannot be had here: what GLUE asks is where
// something stands and what belongs together, and ListOps is made anyway.
var tasks = []task{
	{name: "brackets", draw: brackets, steps: 600, batch: 4, rate: 0.003,
		about: "a word of balanced brackets of three kinds, at most five deep: of which kind is each bracket that " +
			"closes"},
	{name: "listops", draw: listOps, steps: 500, batch: 4, rate: 0.003,
		about: "prefix expressions of digits with minimum, maximum, median and sum modulo 10, at most four deep: " +
			"the value of each one that closes (Nangia and Bowman 2018, Tay et al. 2021)"},
	{name: "recall", draw: recall, steps: 600, batch: 4, rate: 0.001,
		about: "one symbol of each of eight sets of four at places by lot in the first half, filler between them, " +
			"names of sets in the second half: which of its symbols was it"},
}

const (
	firstSet, sets       = 'a', 8 // sets of the task recall
	firstSymbol, symbols = 'A', 4 // symbols of each set
	filler               = '.'
	opening, closings    = "([{", ")]}"
	deepest              = 5
	operators            = "v^~+" // minimum, maximum, median, sum modulo 10
	expressions          = 6      // tokens that there are for each operator
	deepestExpression    = 4
)

// recall is a first half of filler with one symbol of each of some sets, at places
// by lot, and a second half of names of sets, each asked for its symbol. A symbol
// tells its set, so this asks to find what stands far back, not to match a key to
// a value beside it: pairs of both were not learned by this model in the steps that
// a table can spend.
func recall(n int, r *rand.Rand) *puzzle {
	p := newPuzzle(n)
	for i := range n / 2 {
		p.ids[i] = filler
	}
	places := r.Perm(n / 2)[:sets]
	for set, at := range places {
		p.ids[at] = int32(firstSymbol + set*symbols + r.IntN(symbols))
	}
	for at := n / 2; at < n; at++ {
		set := r.IntN(sets)
		p.ids[at] = int32(firstSet + set)
		p.ask(at, p.ids[places[set]], places[set])
	}
	return p
}

// brackets is a word drawn from all words of n brackets, n even, that are balanced
// and at most deepest deep, with kinds by lot. Before each bracket that closes its
// kind is asked: that of the last one that is open.
func brackets(n int, r *rand.Rand) *puzzle {
	p := newPuzzle(n)
	ends := endings(n)
	var open []int // where
	for i := range n {
		depth := len(open)
		up := ends[n-i-1][depth+1]
		if r.Float64()*(up+down(ends[n-i-1], depth)) < up {
			open = append(open, i)
			p.ids[i] = int32(opening[r.IntN(len(opening))])
			continue
		}
		from := open[depth-1]
		open = open[:depth-1]
		p.ids[i] = closer(p.ids[from])
		p.ask(i-1, p.ids[i], from)
	}
	return p
}

// endings counts, for 0 to n steps and each depth, the ways to get to depth 0 in
// so many steps without going below it or beyond deepest.
func endings(n int) [][deepest + 2]float64 {
	ends := make([][deepest + 2]float64, n+1)
	ends[0][0] = 1
	for steps := range n {
		for depth := range deepest + 1 {
			ends[steps+1][depth] = ends[steps][depth+1] + down(ends[steps], depth)
		}
	}
	return ends
}

func down(ends [deepest + 2]float64, depth int) float64 {
	if depth == 0 {
		return 0
	}
	return ends[depth-1]
}

// closer is the bracket that closes one of opening.
func closer(open int32) int32 {
	for k := range opening {
		if int32(opening[k]) == open {
			return int32(closings[k])
		}
	}
	panic("truth: no bracket that opens")
}

// listOps is an expression of n tokens, with an operator for every few of them:
// "[", the operator, its arguments, "]", each argument a digit or an expression.
// After each "]" the value of what it closes is asked.
func listOps(n int, r *rand.Rand) *puzzle {
	nodes := n / expressions
	children, depth, digits := make([][]int, nodes), make([]int, nodes), make([]int, nodes)
	for k := 1; k < nodes; k++ {
		parent := r.IntN(k)
		for depth[parent] == deepestExpression-1 {
			parent = r.IntN(k)
		}
		children[parent], depth[k] = append(children[parent], k), depth[parent]+1
	}
	left := n - 3*nodes // tokens left for digits, after brackets and operators
	for k := range nodes {
		digits[k], left = 1, left-1
	}
	for range left {
		digits[r.IntN(nodes)]++
	}
	p := newPuzzle(n)
	w := expressionWriter{p: p, children: children, digits: digits, r: r}
	w.write(0)
	return p
}

// expressionWriter writes a tree of operators as tokens.
type expressionWriter struct {
	p        *puzzle
	at       int
	children [][]int // children of each operator
	digits   []int   // arguments of each that are digits
	r        *rand.Rand
}

func (w *expressionWriter) put(token byte) {
	w.p.ids[w.at] = int32(token)
	w.at++
}

// write writes operator k with all below it, and returns the value.
func (w *expressionWriter) write(k int) int {
	from, operator := w.at, operators[w.r.IntN(len(operators))]
	w.put('[')
	w.put(operator)
	const digit = -1
	arguments := slices.Clone(w.children[k])
	for range w.digits[k] {
		arguments = append(arguments, digit)
	}
	w.r.Shuffle(len(arguments), func(i, j int) { arguments[i], arguments[j] = arguments[j], arguments[i] })
	values := make([]int, len(arguments))
	for i, argument := range arguments {
		if argument != digit {
			values[i] = w.write(argument)
			continue
		}
		values[i] = w.r.IntN(10)
		w.put(byte('0' + values[i]))
	}
	value := applied(operator, values)
	w.p.ask(w.at, int32('0'+value), from)
	w.put(']')
	return value
}

// applied is an operator's value; of an even number of arguments the median is the
// upper one of the two in the middle.
func applied(operator byte, values []int) int {
	switch operator {
	case 'v':
		return slices.Min(values)
	case '^':
		return slices.Max(values)
	case '~':
		return slices.Sorted(slices.Values(values))[len(values)/2]
	}
	sum := 0
	for _, v := range values {
		sum += v
	}
	return sum % 10
}

// puzzles draws a number of different ones, and makes a text of them, the last
// tenth held out: all is a function of the arguments.
func (t *task) puzzles(number, length int, seed uint64) (*train.Text, []*puzzle, error) {
	r := rand.New(rand.NewPCG(seed, 26))
	seen := make(map[string]bool, number)
	var all []*puzzle
	var ids, targets []int32
	for len(all) < number {
		p := t.draw(length, r)
		key := fmt.Sprint(p.ids)
		if seen[key] {
			continue
		}
		seen[key] = true
		all, ids, targets = append(all, p), append(ids, p.ids...), append(targets, p.targets...)
	}
	text, err := train.AnswerText(t.name, ids, targets, length, train.Bytes, train.ByteTokenizer())
	if err != nil {
		return nil, nil, err
	}
	return text, all[len(text.Learn)/length:], nil
}
