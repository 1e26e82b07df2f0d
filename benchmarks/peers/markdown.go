package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"entropipe/benchmarks/rig"
)

// markdown is the page: a table an operation, and below what differs and what
// is missing.
func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Peers, side by side\n\n`go run ./benchmarks/peers`, %s, seed %d. Nanoseconds a point, medians "+
		"of runs that took turns; clouds of float64, in memory.\n",
		rig.Origin(r.Stamps), r.Seed)
	b.WriteString("“×” is the time of the strongest peer over ours, whatever that peer gives; every peer has one " +
		"thread, since none of them offers more for these operations. " +
		"Peers that give less than indices are named below; bare ones leave out the output. A line is of the newest " +
		"run that has its input.\n")
	for _, op := range r.ops() {
		r.table(&b, op)
	}
	r.differences(&b)
	r.left(&b)
	b.WriteString("\n## Versions\n\n")
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		fmt.Fprintf(&b, "* %s %s%s\n", name, r.Versions[name], gives[name])
	}
	b.WriteString("\n" + notHad)
	return b.String()
}

// gives says where a peer gives less than indices, or is helped.
var gives = map[string]string{
	"CGAL": ": hulls as points; -O3 -march=native -ffp-contract=off, since fused products " +
		"would change signs; bare: no indices, no output",
	"SciPy (Qhull)": ": default options; drops slivers, and points that lie close together far " +
		"from the origin",
	"shapely (GEOS)":                 ": coordinates, not indices",
	"Manifold (akuukka's quickhull)": ": coordinates, not indices; a solid, ready for further operations",
	"spade":                          ": bulk_load; its triangles are turned into indices outside the clock",
	"delaunator-rs":                  ": with neighbours; gives up on slivers",
	"geo (Rust)":                     ": quick_hull on a copy that is made outside the clock; coordinates, not indices",
	"parry3d-f64":                    ": coordinates, not indices",
	"quickhull (Rust, float32)":      ": float32 only, so that the number of vertices is all that is compared",
	"chull":                          ": coordinates, not indices",
	"simplefeatures":                 ": coordinates, not indices",
	"golang/geo (S2)":                ": on the sphere; the plane is projected onto it outside the clock",
}

// notHad names what the registries do not have or what is too heavy.
const notHad = `Not here: PBBS and ParlayLib, and akuukka's quickhull itself, are in no package registry (Manifold contains a version of the latter);
github.com/fogleman/delaunay and github.com/markus-wa/quickhull-go are refused by the Go module proxy; Open3D is half a gigabyte around Qhull.
`

func (r *report) ops() (ops []string) {
	for _, f := range r.Figures {
		if !slices.Contains(ops, f.Op) {
			ops = append(ops, f.Op)
		}
	}
	slices.SortFunc(ops, func(a, b string) int { return slices.Index(opOrder, a) - slices.Index(opOrder, b) })
	return ops
}

var opOrder = []string{"hull2d", "maxima2d", "maxima3d", "hull3d", "delaunay2d"}

// comparison is the figures of an operation on one input, by label.
type comparison struct {
	input   string
	figures map[string]figure
}

// comparisons returns one comparison an input, in the order of the figures, and
// the labels of our entries and of the peers' entries.
func (r *report) comparisons(op string) (all []comparison, mine, theirs []string) {
	for _, f := range r.Figures {
		if f.Op != op {
			continue
		}
		k := slices.IndexFunc(all, func(c comparison) bool { return c.input == f.input() })
		if k < 0 {
			k, all = len(all), append(all, comparison{f.input(), map[string]figure{}})
		}
		all[k].figures[f.label()] = f
		side := &theirs
		if f.Peer == ours {
			side = &mine
		}
		if !slices.Contains(*side, f.label()) {
			*side = append(*side, f.label())
		}
	}
	return all, mine, theirs
}

// strongest returns the peer's entry with the least median, and that median: +Inf
// without any.
func (c comparison) strongest(theirs []string) (label string, ns float64) {
	ns = math.Inf(1)
	for _, l := range theirs {
		if f, ok := c.figures[l]; ok && f.Median < ns {
			label, ns = l, f.Median
		}
	}
	return label, ns
}

// table writes the table of an operation: a line an input; ours, the ratio to
// the strongest peer, then every entry.
func (r *report) table(b *strings.Builder, op string) {
	inputs, mine, theirs := r.comparisons(op)
	table := rig.Table[comparison]{{Head: "input", Text: func(c comparison) string { return c.input }}}
	entry := func(label string) rig.Column[comparison] {
		return rig.Column[comparison]{Head: label, Align: rig.Right, Text: func(c comparison) string {
			f, ok := c.figures[label]
			return cell(f, ok)
		}}
	}
	for _, label := range mine {
		table = append(table, entry(label), rig.Column[comparison]{Head: "×", Align: rig.Right,
			Text: func(c comparison) string {
				_, best := c.strongest(theirs)
				f, ok := c.figures[label]
				return ratio(best, f, ok)
			}})
	}
	table = append(table, rig.Column[comparison]{Head: "strongest peer", Text: func(c comparison) string {
		label, _ := c.strongest(theirs)
		return label
	}})
	for _, label := range theirs {
		table = append(table, entry(label))
	}
	fmt.Fprintf(b, "\n## %s\n\n%s", op, table.Markdown(inputs))
}

func cell(f figure, ok bool) string {
	switch {
	case !ok:
		return ""
	case f.differs():
		return digits(f.Median) + "†"
	}
	return digits(f.Median)
}

func ratio(best float64, f figure, ok bool) string {
	if !ok || math.IsInf(best, 1) || f.Median == 0 {
		return ""
	}
	return digits(best / f.Median)
}

// digits writes v with three digits, never as a power.
func digits(v float64) string {
	switch {
	case v < 1:
		return fmt.Sprintf("%.3f", v)
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func (r *report) differences(b *strings.Builder) {
	if r.differ() == 0 {
		b.WriteString("\nEvery peer found what we found")
		if slices.ContainsFunc(r.Figures, func(f figure) bool { return f.Agreement == otherTies }) {
			b.WriteString(", where points are cocircular but for the choice of diagonals")
		}
		b.WriteString(".\n")
		return
	}
	b.WriteString("\n## † Results that differ from ours\n\n")
	for _, f := range r.Figures {
		if f.differs() {
			fmt.Fprintf(b, "* %s, %s %s: %s\n", f.label(), f.Op, f.input(), f.Agreement)
		}
	}
}

func (r *report) left(b *strings.Builder) {
	if len(r.LeftOut) == 0 {
		return
	}
	b.WriteString("\n## Left out\n\n")
	for _, l := range r.LeftOut {
		fmt.Fprintf(b, "* %s\n", l)
	}
}
