package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var softShapes = [][2]int{{2, 2}, {2, 3}, {3, 3}, {3, 4}}

// softRandom fills a table with n ranges of a shape, and coordinates of points.
func softRandom(r *rand.Rand, shape [2]int, ranges, points int) (s *Soft, at [3][]float64) {
	s = &Soft{Dims: shape[0], Planes: shape[1], Scale: -1 / .05, Cut: .05 * 40}
	for range (ranges + SoftLanes - 1) / SoftLanes {
		for range s.Planes {
			for k := range (s.Dims + 1) * SoftLanes {
				v := r.NormFloat64()
				if k >= s.Dims*SoftLanes {
					v = -math.Abs(v) - r.Float64()
				}
				s.Table = append(s.Table, v)
			}
		}
	}
	size := (s.Dims + 1) * SoftLanes
	for b := 0; b < s.blocks()*s.Planes; b++ { // lanes of no range
		for k := ranges - b/s.Planes*SoftLanes; k < SoftLanes; k++ {
			for d := range s.Dims {
				s.Table[b*size+d*SoftLanes+k] = 0
			}
			s.Table[b*size+s.Dims*SoftLanes+k] = math.Inf(1)
		}
	}
	for d := range at {
		at[d] = make([]float64, points+1)[1:]
		for i := range at[d] {
			at[d][i] = 2 * r.NormFloat64()
		}
	}
	return s, at
}

// softRun does everything at a level.
func softRun(l Level, s *Soft, at [3][]float64, q []float64) (rows []float64, sums, a []float64, g [3][]float64) {
	defer Limit(l)()
	z := at[2]
	if s.Dims == 2 {
		z = nil
	}
	s.Fill(at[0], at[1], z)
	n := len(at[0])
	rows = make([]float64, n*s.lanes())
	for i, row := range s.rows {
		for e := int(s.bounds[row]); e < int(s.bounds[row+1]); e++ {
			copy(rows[i*s.lanes()+int(s.index[e])*SoftLanes:], s.values[e*SoftLanes:][:SoftLanes])
		}
	}
	sums, of := make([]float64, s.lanes()), make([]float64, n)
	s.Step(q, sums, of, 1e-3)
	for _, row := range s.rows {
		a = append(a, of[row])
	}
	for d := range s.Dims {
		g[d] = make([]float64, n)
	}
	s.Push(g[0], g[1], g[2], q, of, at[0], at[1], z)
	return rows, sums, a, g
}

// The vector loops agree with the portable loops up to rounding, for every number of
// points and ranges, and for hard ranges.
func TestSoftAgreesWithPortable(t *testing.T) {
	for _, l := range []Level{AVX2, AVX512} {
		t.Run(l.String(), func(t *testing.T) {
			if l > Best() {
				t.Skipf("this CPU has %v", Best())
			}
			testSoft(t, l)
		})
	}
}

func testSoft(t *testing.T, l Level) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, shape := range softShapes {
		for points := range 40 {
			for _, ranges := range []int{1, 7, 8, 9, 30, 64} {
				n := points
				if points == 39 {
					n = softChunk*2 + 3
				}
				s, at := softRandom(r, shape, ranges, n)
				if points%5 == 4 {
					s.Scale, s.Cut = math.Inf(-1), 0
				}
				q := make([]float64, s.lanes())
				for k := range ranges {
					q[k] = r.Float64()
				}
				m, sums, a, g := softRun(Portable, s, at, q)
				m2, sums2, a2, g2 := softRun(l, s, at, q)
				for _, pair := range [][2][]float64{{m, m2}, {sums, sums2}, {a, a2}, {g[0], g2[0]},
					{g[1], g2[1]}, {g[2], g2[2]}} {
					if len(pair[0]) != len(pair[1]) {
						t.Fatalf("shape %v: %d and %d numbers", shape, len(pair[0]), len(pair[1]))
					}
					for i, v := range pair[0] {
						if w := pair[1][i]; !(math.Abs(v-w) <= 1e-12*(1+math.Abs(v))) {
							t.Fatalf("shape %v, %d points, %d ranges: number %d is %v, portable %v", shape,
								n, ranges, i, w, v)
						}
					}
				}
			}
		}
	}
}

// Points share a row if and only if it is the same and no border is near; weights
// count them.
func TestSoftRowsAreShared(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, l := range []Level{Portable, AVX2, AVX512} {
		if l > Best() {
			continue
		}
		restore := Limit(l)
		for _, shape := range softShapes {
			const n = 3000
			s, at := softRandom(r, shape, 40, n)
			s.Scale, s.Cut = -1/1e-3, 1e-3*40
			z := at[2]
			if s.Dims == 2 {
				z = nil
			}
			s.Fill(at[0], at[1], z)
			rows, weights := s.Rows()
			pure, seen, total := 0, map[string]bool{}, 0.0
			for row := range rows {
				from, to := s.bounds[row], s.bounds[row+1]
				total += weights[row]
				if soft := slices.ContainsFunc(s.values[from*SoftLanes:to*SoftLanes],
					func(v float64) bool { return v != 0 && v != 1 }); soft {
					if weights[row] != 1 {
						t.Errorf("%v, shape %v: a row near a border has weight %v", l, shape, weights[row])
					}
					continue
				}
				pure++
				seen[fmt.Sprint(s.index[from:to], s.values[from*SoftLanes:to*SoftLanes])] = true
			}
			if len(seen) != pure || total != n || len(s.rows) != n || rows > 3*n/4 {
				t.Errorf("%v, shape %v: %d rows, %d of them hard, %d different; weights add up to %v", l, shape, rows,
					pure, len(seen), total)
			}
		}
		restore()
	}
}

// exp is right to a few units in the last place over all of its range.
func TestSoftExp(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		testSoftExp(t)
	})
}

func testSoftExp(t *testing.T) {
	const n = 20000
	s := &Soft{Dims: 2, Planes: 2, Table: make([]float64, 2*3*SoftLanes), Scale: -1, Cut: 60}
	for k := range SoftLanes {
		s.Table[k], s.Table[(3+1)*SoftLanes+k] = 1, 1
	}
	x, y := make([]float64, n), make([]float64, n)
	for i := range x {
		x[i] = 60 * (float64(i) + .5) / n
		y[i] = -1
	}
	s.Fill(x, y, nil)
	if len(s.weights) != n {
		t.Fatalf("%d rows", len(s.weights))
	}
	for i, v := range x {
		got, want := s.values[i*SoftLanes+i%SoftLanes], math.Exp(-v)
		if math.Abs(got-want) > 4e-16*want {
			t.Fatalf("exp(%v) is %v, want %v", -v, got, want)
		}
	}
}

func BenchmarkSoft(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 3))
	const n = 2048
	s, at := softRandom(r, softShapes[0], 64, n)
	q, a := make([]float64, s.lanes()), make([]float64, n)
	sums, gx, gy := make([]float64, s.lanes()), make([]float64, n), make([]float64, n)
	for k := range q {
		q[k] = 1. / 64
	}
	for _, l := range []Level{Portable, AVX2, AVX512} {
		for name, f := range map[string]func(){
			"fill": func() { s.Fill(at[0], at[1], nil) },
			"step": func() { s.Step(q, sums, a, 1./n) },
			"push": func() { s.Push(gx, gy, nil, q, a, at[0], at[1], nil) },
		} {
			b.Run(name+"/"+l.String(), func(b *testing.B) {
				defer Limit(l)()
				s.Fill(at[0], at[1], nil)
				for b.Loop() {
					f()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/point")
				b.ReportMetric(float64(s.Stored())/n, "blocks/point")
				b.ReportMetric(float64(len(s.weights))/n, "rows/point")
			})
		}
	}
}
