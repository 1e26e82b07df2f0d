package rig

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Align is the alignment of a column.
type Align int

// The alignments. Default leaves it to the reader of the Markdown.
const (
	Default Align = iota
	Right
)

// Column is one column of a table.
type Column[R any] struct {
	Head  string
	Align Align
	Text  func(R) string // the cell of a record, empty if the record has no such figure
}

// Table is the one writer of tables in result pages: columns, each of which
// makes its cell from a record.
type Table[R any] []Column[R]

// Markdown returns the table of the records, one line each.
func (t Table[R]) Markdown(records []R) string {
	var b strings.Builder
	b.WriteString(t.Head())
	for _, r := range records {
		b.WriteString(t.Row(r))
	}
	return b.String()
}

// Head returns the two lines above the records.
func (t Table[R]) Head() string {
	heads, rules := make([]string, len(t)), make([]string, len(t))
	for i, c := range t {
		heads[i], rules[i] = c.Head, [...]string{Default: "---", Right: "---:"}[c.Align]
	}
	return line(heads) + "|" + strings.Join(rules, "|") + "|\n"
}

// Row returns the line of one record.
func (t Table[R]) Row(r R) string {
	cells := make([]string, len(t))
	for i, c := range t {
		cells[i] = c.Text(r)
	}
	return line(cells)
}

func line(cells []string) string {
	escaped := make([]string, len(cells))
	for i, cell := range cells {
		escaped[i] = strings.ReplaceAll(cell, "|", `\|`)
	}
	return "| " + strings.Join(escaped, " | ") + " |\n"
}

// Number returns a column of a figure in a format of package fmt. The cell is
// empty where get reports false.
func Number[R any](head, format string, align Align, get func(R) (float64, bool)) Column[R] {
	return Column[R]{head, align, func(r R) string {
		v, ok := get(r)
		if !ok {
			return ""
		}
		return fmt.Sprintf(format, v)
	}}
}

// Interval is an estimate and the ends of its 95 % interval.
type Interval struct{ Mid, Low, High float64 }

// Text returns "mid (low to high)", each in the format.
func (i Interval) Text(format string) string {
	return fmt.Sprintf(format+" ("+format+" to "+format+")", i.Mid, i.Low, i.High)
}

// Span returns "low to high".
func (i Interval) Span(format string) string { return fmt.Sprintf(format+" to "+format, i.Low, i.High) }

// Side is the side of a limit on which an interval lies.
type Side int

// The sides. Undecided is an interval that holds the limit.
const (
	Below Side = iota - 1
	Undecided
	Above
)

// Side compares the interval with a limit. An end that equals the limit counts
// as Above at the lower end, so that a goal reached exactly is reached.
func (i Interval) Side(limit float64) Side {
	switch {
	case i.Low >= limit:
		return Above
	case i.High < limit:
		return Below
	}
	return Undecided
}

// Word returns the verdict of a ratio of times, theirs over ours: "faster",
// "slower", or "not told apart" where the interval holds 1.
func (i Interval) Word() string {
	switch {
	case i.Low > 1:
		return "faster"
	case i.High < 1:
		return "slower"
	}
	return "not told apart"
}

// Verdict returns whether a value of at least so much is "met", "not met", or "undecided"
// where the interval holds the limit.
func (i Interval) Verdict(least float64) string {
	return map[Side]string{Above: "met", Below: "not met", Undecided: "undecided"}[i.Side(least)]
}

// MedianOf revalues the median and its interval without assumptions on the distribution:
// between these two values of the sorted values the median lies with 95 %. Fewer than six
// values reach from the least to the most, and less.
func MedianOf(values []float64) Interval {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	if n == 0 {
		return Interval{}
	}
	outside, tail := 0, 0.0 // values that may be left out on each side
	for chance := math.Exp2(float64(-n)); 2*(tail+chance) <= 0.05; outside++ {
		tail += chance
		chance *= float64(n-outside) / float64(outside+1)
	}
	cut := max(outside-1, 0)
	return Interval{Mid: Median(values), Low: s[cut], High: s[n-1-cut]}
}

// Times are the nanoseconds of all runs, by entry.
type Times map[string][]int64

// Least returns the shortest run in milliseconds, 0 without any.
func (t Times) Least(entry string) float64 {
	if len(t[entry]) == 0 {
		return 0
	}
	return float64(slices.Min(t[entry])) / 1e6
}

// Median returns the median run in milliseconds, of an even number the upper
// one of the two in the middle, and 0 without any.
func (t Times) Median(entry string) float64 {
	if len(t[entry]) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(t[entry]))
	return float64(s[len(s)/2]) / 1e6
}

// Text returns "least (median)" in the format, empty without runs.
func (t Times) Text(entry, format string) string {
	if len(t[entry]) == 0 {
		return ""
	}
	return fmt.Sprintf(format+" ("+format+")", t.Least(entry), t.Median(entry))
}

// Ratio returns the quotient of two entries' times: of the shortest runs, and of
// the medians in brackets; empty without runs of both.
func (t Times) Ratio(above, below string) string {
	if len(t[above]) == 0 || len(t[below]) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f)", t.Least(above)/t.Least(below), t.Median(above)/t.Median(below))
}

// TimesOf returns a column of an entry's times, and RatioOf one of a quotient.
func TimesOf[R any](head, entry, format string, get func(R) Times) Column[R] {
	return Column[R]{head, Default, func(r R) string { return get(r).Text(entry, format) }}
}

// RatioOf returns a column of the quotient of two entries' times.
func RatioOf[R any](head, above, below string, get func(R) Times) Column[R] {
	return Column[R]{head, Default, func(r R) string { return get(r).Ratio(above, below) }}
}

// Spread is the geometric mean of ratios, with the least and the largest.
type Spread struct {
	Mean, Least, Most float64
	Count, Above      int // number of ratios, and of those above 1
}

// SpreadOf returns the spread of positive ratios, the zero value without any.
func SpreadOf(ratios []float64) (r Spread) {
	if len(ratios) == 0 {
		return r
	}
	r = Spread{Least: slices.Min(ratios), Most: slices.Max(ratios), Count: len(ratios)}
	sum := 0.0
	for _, x := range ratios {
		sum += math.Log(x)
		if x > 1 {
			r.Above++
		}
	}
	r.Mean = math.Exp(sum / float64(len(ratios)))
	return r
}

// Word returns the verdict of ratios of times, theirs over ours: in how many of
// the inputs ours is faster. inputs is their plural noun.
func (s Spread) Word(inputs string) string {
	switch s.Above {
	case s.Count:
		return fmt.Sprintf("faster on all %d %s", s.Count, inputs)
	case 0:
		return fmt.Sprintf("slower on all %d %s", s.Count, inputs)
	}
	return fmt.Sprintf("faster on %d of %d %s", s.Above, s.Count, inputs)
}

// Median returns the middle value, of an even number the lower one of the two,
// and the zero value of none.
func Median[T cmp.Ordered](values []T) (m T) {
	if len(values) == 0 {
		return m
	}
	s := slices.Sorted(slices.Values(values))
	return s[(len(s)-1)/2]
}
