// Command golang runs Go libraries as peers, one a process: see ../peer.go for
// the protocol. It is a module of its own, so that they are no dependency of
// the program.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/golang/geo/r3"
	"github.com/golang/geo/s2"
	"github.com/peterstace/simplefeatures/geom"
)

// library finds convex hulls. load makes what it takes from coordinate pairs,
// outside the clock; hull is what is timed; vertices gives the result as
// coordinate pairs.
type library interface {
	load(xy []float64)
	hull() int
	vertices() []float64
}

func main() {
	libraries := map[string]struct {
		name, module string
		library
	}{
		"simplefeatures": {"simplefeatures", "github.com/peterstace/simplefeatures", &simpleFeatures{}},
		"s2":             {"golang/geo (S2)", "github.com/golang/geo", &sphere{}},
	}
	l, ok := libraries[os.Args[1]]
	if !ok {
		fmt.Fprintf(os.Stderr, "no library is called %s\n", os.Args[1])
		os.Exit(2)
	}
	answer := json.NewEncoder(os.Stdout).Encode
	answer(map[string]any{"peer": l.name, "version": moduleVersion(l.module), "ops": []string{"hull2d"}})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		what, rest, _ := strings.Cut(lines.Text(), " ")
		reply, err := obey(l, what, rest)
		if err != nil {
			reply = map[string]any{"error": err.Error()}
		}
		answer(reply)
	}
}

func obey(l library, what, rest string) (map[string]any, error) {
	first, second, _ := strings.Cut(rest, " ")
	switch what {
	case "load":
		dims, err := strconv.Atoi(first)
		if err != nil {
			return nil, err
		}
		b, err := os.ReadFile(second)
		if err != nil {
			return nil, err
		}
		n := len(b) / 8 / dims
		xy := make([]float64, 0, 2*n)
		for i := range n {
			for k := range 2 {
				xy = append(xy, math.Float64frombits(binary.LittleEndian.Uint64(b[8*(i*dims+k):])))
			}
		}
		l.load(xy)
		return map[string]any{"points": n}, nil
	case "run":
		repetitions, err := strconv.Atoi(second)
		if err != nil {
			return nil, err
		}
		times, count := make([]int64, repetitions), 0
		for i := range times {
			start := time.Now()
			count = l.hull()
			times[i] = time.Since(start).Nanoseconds()
		}
		return map[string]any{"ns": times, "count": count}, nil
	case "save":
		var b []byte
		for _, v := range l.vertices() {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		return map[string]any{"form": "points"}, os.WriteFile(second, b, 0o666)
	}
	return nil, fmt.Errorf("no such request: %s", what)
}

func moduleVersion(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == module {
				return m.Version
			}
		}
	}
	return "unknown"
}

type simpleFeatures struct{ in, out geom.Geometry }

func (l *simpleFeatures) load(xy []float64) {
	l.in = geom.NewMultiPoint(pointsOf(xy)).AsGeometry()
}

func pointsOf(xy []float64) []geom.Point {
	points := make([]geom.Point, len(xy)/2)
	for i := range points {
		points[i] = geom.XY{X: xy[2*i], Y: xy[2*i+1]}.AsPoint()
	}
	return points
}

func (l *simpleFeatures) hull() int {
	l.out = l.in.ConvexHull()
	return l.out.DumpCoordinates().Length()
}

func (l *simpleFeatures) vertices() (out []float64) {
	s := l.out.DumpCoordinates()
	for i := range s.Length() {
		out = append(out, s.GetXY(i).X, s.GetXY(i).Y)
	}
	return out
}

// sphere is S2, which knows no plane. Lines of the plane z = 1 are great
// circles seen from the origin, so the hull there is the hull here, but for the
// rounding of the projection.
type sphere struct {
	xy     []float64
	points []s2.Point
	index  map[s2.Point]int
	loop   *s2.Loop
}

func (l *sphere) load(xy []float64) {
	var most float64
	for _, v := range xy {
		most = max(most, math.Abs(v))
	}
	l.xy, l.points, l.index = xy, make([]s2.Point, len(xy)/2), map[s2.Point]int{}
	for i := range l.points {
		l.points[i] = s2.Point{Vector: r3.Vector{X: xy[2*i] / most, Y: xy[2*i+1] / most, Z: 1}.Normalize()}
		l.index[l.points[i]] = i
	}
}

func (l *sphere) hull() int {
	q := s2.NewConvexHullQuery()
	for _, p := range l.points {
		q.AddPoint(p)
	}
	l.loop = q.ConvexHull()
	return l.loop.NumVertices()
}

func (l *sphere) vertices() (out []float64) {
	for _, p := range l.loop.Vertices() {
		if i, ok := l.index[p]; ok {
			out = append(out, l.xy[2*i], l.xy[2*i+1])
		}
	}
	return out
}
