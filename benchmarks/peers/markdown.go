package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// markdown is the page: a table an operation, and below what differs and what
// is missing.
func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Peers, side by side\n\n%s, %d cores, %s, %s, seed %d. Nanoseconds a point, medians of runs that took turns; clouds of float64, in memory.\n",
		r.CPU, r.Cores, r.Go, r.Time.Format(time.DateOnly), r.Seed)
	b.WriteString("“×” is the time of the strongest peer over ours, whatever that peer gives; every peer has one thread, since none of them offers more for these operations. " +
		"Peers that give less than indices are named below; bare ones leave out the output.\n")
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
	"CGAL":                           ": hulls as points; -O3 -march=native -ffp-contract=off, since fused products would change signs; bare: no indices, no output",
	"SciPy (Qhull)":                  ": default options; drops slivers, and points that lie close together far from the origin",
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

// table writes the table of an operation: a line an input; ours, the ratio to
// the strongest peer, then every entry.
func (r *report) table(b *strings.Builder, op string) {
	var inputs, labels []string
	cells := map[[2]string]figure{}
	for _, f := range r.Figures {
		if f.Op != op {
			continue
		}
		if !slices.Contains(inputs, f.input()) {
			inputs = append(inputs, f.input())
		}
		if !slices.Contains(labels, f.label()) {
			labels = append(labels, f.label())
		}
		cells[[2]string{f.input(), f.label()}] = f
	}
	isOurs := func(label string) bool { return label == ours || strings.HasPrefix(label, ours+" ") }
	mine := slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return !isOurs(l) })
	theirs := slices.DeleteFunc(slices.Clone(labels), isOurs)
	fmt.Fprintf(b, "\n## %s\n\n| |", op)
	for _, l := range mine {
		fmt.Fprintf(b, " %s | × |", l)
	}
	b.WriteString(" strongest peer |")
	for _, l := range theirs {
		fmt.Fprintf(b, " %s |", l)
	}
	fmt.Fprintf(b, "\n|---|%s\n", strings.Repeat("---:|", 2*len(mine))+"---|"+strings.Repeat("---:|", len(theirs)))
	for _, in := range inputs {
		best, by := math.Inf(1), ""
		for _, l := range theirs {
			if f, ok := cells[[2]string{in, l}]; ok && f.Median < best {
				best, by = f.Median, l
			}
		}
		fmt.Fprintf(b, "| %s |", in)
		for _, l := range mine {
			f, ok := cells[[2]string{in, l}]
			fmt.Fprintf(b, " %s | %s |", cell(f, ok), ratio(best, f, ok))
		}
		fmt.Fprintf(b, " %s |", by)
		for _, l := range theirs {
			f, ok := cells[[2]string{in, l}]
			fmt.Fprintf(b, " %s |", cell(f, ok))
		}
		b.WriteString("\n")
	}
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
