package main

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"

	"entropipe/algos/exact"
	"entropipe/algos/geom"
)

// found is what an entry gave, in one of the forms of the protocol.
type found struct {
	form    string
	indices []int32   // vertices; corners of triangles
	points  []float64 // coordinates of vertices
}

func readFound(form, path string) (found, error) {
	f := found{form: form}
	if form == "count" {
		return f, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return f, err
	}
	switch form {
	case "vertices", "triangles":
		for ; len(b) >= 4; b = b[4:] {
			f.indices = append(f.indices, int32(binary.LittleEndian.Uint32(b)))
		}
	case "points":
		for ; len(b) >= 8; b = b[8:] {
			f.points = append(f.points, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
	default:
		return f, fmt.Errorf("form %q is not known", form)
	}
	return f, nil
}

// result is found with the indices replaced by hashes of coordinates, sorted,
// each once: libraries differ in which of equal points they name.
type result struct {
	keys  []uint64
	found found
}

func resultOf(f found, c geom.Cloud[float64], dims int) (result, error) {
	r := result{found: f}
	for _, i := range f.indices {
		if i < 0 || int(i) >= c.Len() {
			return r, fmt.Errorf("index %d of %d points", i, c.Len())
		}
	}
	at := func(i int32) uint64 {
		if dims == 3 {
			return hash(c.X[i], c.Y[i], c.Z[i])
		}
		return hash(c.X[i], c.Y[i])
	}
	switch f.form {
	case "vertices":
		for _, i := range f.indices {
			r.keys = append(r.keys, at(i))
		}
	case "points":
		for p := f.points; len(p) >= dims; p = p[dims:] {
			r.keys = append(r.keys, hash(p[:dims]...))
		}
	case "triangles":
		for t := f.indices; len(t) >= 3; t = t[3:] {
			k := [3]uint64{at(t[0]), at(t[1]), at(t[2])}
			slices.Sort(k[:]) // whichever corner is first, whichever way round
			r.keys = append(r.keys, mix(mix(k[0])+k[1])^k[2])
		}
	}
	slices.Sort(r.keys)
	r.keys = slices.Compact(r.keys)
	return r, nil
}

// hash of coordinates, in which -0 equals 0.
func hash(v ...float64) uint64 {
	h := uint64(len(v))
	for _, x := range v {
		h = mix(h ^ math.Float64bits(x+0))
	}
	return h
}

// mix is the finaliser of splitmix64 (Steele, Lea and Flood, 2014).
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// difference counts the keys that only a, and that only b has.
func difference(a, b []uint64) (onlyA, onlyB int) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] == b[0]:
			a, b = a[1:], b[1:]
		case a[0] < b[0]:
			onlyA, a = onlyA+1, a[1:]
		default:
			onlyB, b = onlyB+1, b[1:]
		}
	}
	return onlyA + len(a), onlyB + len(b)
}

// Agreements that are no difference in what was found.
const (
	same      = "same"
	otherTies = "same but for ties" // other diagonals of cocircular points
)

// agreement says how theirs differs from what we found.
func agreement(we, they result, ourCount, theirCount int, c geom.Cloud[float64]) string {
	if they.found.form == "count" {
		if ourCount != theirCount {
			return fmt.Sprintf("%d instead of %d", theirCount, ourCount)
		}
		return same
	}
	missing, extra := difference(we.keys, they.keys)
	if missing == 0 && extra == 0 {
		return same
	}
	if they.found.form == "triangles" && len(we.keys) == len(they.keys) {
		if bad := notDelaunay(they.found.indices, c); bad > 0 {
			return fmt.Sprintf("%d edges not Delaunay", bad)
		}
		return otherTies
	}
	return fmt.Sprintf("%d missing, %d too many", missing, extra)
}

// edge is a side of a triangle, its ends in ascending order, and the corner
// opposite.
type edge struct{ a, b, apex int32 }

// notDelaunay counts the edges between two triangles with the far corner of one
// inside the circle of the other, by exact signs.
func notDelaunay(triangles []int32, c geom.Cloud[float64]) (bad int) {
	edges := make([]edge, 0, len(triangles))
	for t := triangles; len(t) >= 3; t = t[3:] {
		for k := range 3 {
			a, b := t[k], t[(k+1)%3]
			edges = append(edges, edge{min(a, b), max(a, b), t[(k+2)%3]})
		}
	}
	slices.SortFunc(edges, func(e, f edge) int { return cmp.Or(cmp.Compare(e.a, f.a), cmp.Compare(e.b, f.b)) })
	for i := 1; i < len(edges); i++ {
		e, f := edges[i-1], edges[i]
		if e.a != f.a || e.b != f.b {
			continue
		}
		x, y := c.X, c.Y
		inside := exact.InCircle(x[e.a], y[e.a], x[e.b], y[e.b], x[e.apex], y[e.apex], x[f.apex], y[f.apex])
		if inside*exact.Orient2D(x[e.a], y[e.a], x[e.b], y[e.b], x[e.apex], y[e.apex]) > 0 {
			bad++
		}
	}
	return bad
}
