package replay

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"math"
	"slices"
	"testing"
)

// digest hashes everything that a message would hold.
func digest(items []Item) string {
	h := sha256.New()
	for i := range items {
		it := &items[i]
		binary.Write(h, binary.LittleEndian, []int64{it.Number, it.TimeNs})
		for _, c := range [][]float32{it.Cloud.Cloud32.X, it.Cloud.Cloud32.Y, it.Cloud.Cloud32.Z, it.Cloud.Intensity} {
			binary.Write(h, binary.LittleEndian, c)
		}
		for k := range it.Drawings {
			d := &it.Drawings[k]
			io.WriteString(h, d.Label)
			binary.Write(h, binary.LittleEndian, d.ID)
			for _, axis := range [][]float64{d.X, d.Y} {
				for _, v := range axis {
					binary.Write(h, binary.LittleEndian, float32(v)) // whole pixels, float32 in messages
				}
			}
			binary.Write(h, binary.LittleEndian, d.Ends)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// The bytes are the same on every CPU and in every release. A change of these
// sums changes what models were trained on: say so in CHANGELOG.md.
func TestSyntheticBytesAreFixed(t *testing.T) {
	for name, c := range map[string]struct {
		open interface{ Open() (Source, error) }
		want string
	}{
		"lidar":        {LiDAR{Frames: 3, Seed: 1}, "81dab6fedcc538fe"},
		"lidar seed 2": {LiDAR{Frames: 3, Seed: 2, Points: 5000}, "c5a7bf5b44eebe41"},
		"sketch":       {Sketches{Frames: 1000, Seed: 1}, "5e3abd510bf06ae0"},
	} {
		s := open(t, c.open)
		first := all(t, s)
		if got := digest(first); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if err := s.Rewind(); err != nil {
			t.Fatal(err)
		}
		if digest(all(t, s)) != digest(first) {
			t.Errorf("%s: another second pass", name)
		}
	}
}

func TestLiDARLooksLikeASweep(t *testing.T) {
	for seed := range uint64(4) {
		s := open(t, LiDAR{Frames: 10, Seed: seed})
		rays := len(s.(*lidar).hits)
		for _, it := range all(t, s) {
			c := it.Cloud.Cloud32
			n := c.Len()
			if share := float64(n) / float64(rays); share < 0.8 || share > 0.97 {
				t.Errorf("seed %d: %d points of %d rays", seed, n, rays)
			}
			if n < 100_000 || n > 140_000 {
				t.Errorf("seed %d: %d points for 120000", seed, n)
			}
			var road, beyond, beside [4]int
			for i := range c.X {
				x, y, z, w := float64(c.X[i]), float64(c.Y[i]), float64(c.Z[i]), it.Cloud.Intensity[i]
				r := math.Sqrt(x*x + y*y + z*z)
				if !(r > 0.5 && r < maxRange+1) || z < groundZ-0.3 || z > 15 || w < 0 || w >= 1 {
					t.Fatalf("seed %d, frame %d: point %d (%v, %v, %v) %v", seed, it.Number, i, x, y, z, w)
				}
				q := 0
				if x > 0 {
					q = 1
				}
				if y > 0 {
					q += 2
				}
				beside[q]++
				if math.Abs(z-groundZ) < 0.1 {
					road[q]++
				}
				if r > 20 {
					beyond[q]++
				}
			}
			for q := range beside {
				if beside[q] < n/6 || road[q] < n/16 || beyond[q] < n/200 {
					t.Errorf("seed %d, frame %d, quadrant %d: %d points, %d on the road, %d farther than 20 m", seed,
						it.Number, q, beside[q], road[q], beyond[q])
				}
			}
		}
	}
}

// What stands still comes nearer by a metre a frame.
func TestLiDARMoves(t *testing.T) {
	items := all(t, open(t, LiDAR{Frames: 40, Seed: 3}))
	same := 0
	for i := 1; i < len(items); i++ {
		if slices.Equal(items[i].Cloud.Cloud32.X, items[i-1].Cloud.Cloud32.X) {
			same++
		}
		if items[i].Number != int64(i) || items[i].TimeNs-items[i-1].TimeNs != 1e8 {
			t.Errorf("frame %d is number %d at %d", i, items[i].Number, items[i].TimeNs)
		}
	}
	if same > 0 {
		t.Errorf("%d frames repeat the one before", same)
	}
	a, b := poseAt(0), poseAt(100)
	if d := b.x - a.x; d != 100 {
		t.Errorf("10 s make %v m", d)
	}
}

func TestLiDARTakesAnySize(t *testing.T) {
	for _, points := range []int{1, 10, 100, 1000, 30_000, 500_000} {
		items := all(t, open(t, LiDAR{Frames: 2, Points: points}))
		n := items[1].Cloud.Len()
		if n == 0 && points > 1 || math.Abs(float64(n-points)) > 0.25*float64(points)+8 {
			t.Errorf("asked for %d points, got %d", points, n)
		}
	}
	for _, l := range []LiDAR{{Points: -1}, {Points: MaxSyntheticPoints + 1}, {Frames: -1}} {
		_, err := l.Open()
		failsWith(t, err, "synthetic")
	}
}

// A ray that meets a solid ends where plain geometry says.
func TestRaysEndOnSolids(t *testing.T) {
	wall := solid{cx: 10, cy: 0, ux: 1, hx: 1, hy: 5}
	if in, out, ok := wall.box(1, 0); !ok || in != 9 || out != 11 {
		t.Errorf("straight on: %v %v %v", in, out, ok)
	}
	if in, _, ok := wall.box(0.8, 0.6); ok {
		t.Errorf("beside the wall: %v", in)
	}
	turned := solid{cx: 10, cy: 0, ux: 0, uy: 1, hx: 1, hy: 5} // its length across
	if in, out, ok := turned.box(1, 0); !ok || in != 5 || out != 15 {
		t.Errorf("turned: %v %v %v", in, out, ok)
	}
	pole := solid{hx: 0.5}
	if in, out, ok := pole.cylinder(10, 0.3); !ok || math.Abs(in-9.6) > 1e-12 || math.Abs(out-10.4) > 1e-12 {
		t.Errorf("pole: %v %v %v", in, out, ok)
	}
	if _, _, ok := pole.cylinder(10, 0.5); ok {
		t.Error("a ray that touches the pole passes")
	}
	c := crossing{in: 9, out: 11, z0: -1.73, z1: -0.23}
	for slope, want := range map[float64]float64{
		0: math.Inf(1), -0.01: math.Inf(1), -0.05: 9, -0.1: 9, // over it, against it
		-0.0230: 10, 0.3: math.Inf(1), // on its top
	} {
		if got := c.meet(slope); math.Abs(got-want) > 1e-9 && got != want {
			t.Errorf("slope %v: %v, want %v", slope, got, want)
		}
	}
}

func TestSincosAgreesWithMath(t *testing.T) {
	r := newRandom(1)
	for i := range 100_000 {
		x := r.between(-30, 30)
		if i < 100 {
			x = float64(i-50) * math.Pi / 4
		}
		s, c := sincos(x)
		if math.Abs(s-math.Sin(x)) > 1e-12 || math.Abs(c-math.Cos(x)) > 1e-12 {
			t.Fatalf("sincos(%v) = %v, %v; want %v, %v", x, s, c, math.Sin(x), math.Cos(x))
		}
	}
}

func TestSketchesAreDrawings(t *testing.T) {
	s := open(t, Sketches{Frames: 6050, Seed: 7})
	ids, degenerate, numbers := map[int64]bool{}, 0, map[string]int64{}
	points := 0
	for _, it := range all(t, s) {
		if it.Number != numbers[it.Sequence] || it.Clock != SinceEpoch {
			t.Fatalf("%s begins with %d after %d", it.Sequence, it.Number, numbers[it.Sequence])
		}
		numbers[it.Sequence] += it.Frames()
		for _, d := range it.Drawings {
			if d.Label != it.Sequence || ids[d.ID] || d.ID < 0 || len(d.X) != len(d.Y) || len(d.X) == 0 ||
				int(d.Ends[len(d.Ends)-1]) != len(d.X) {
				t.Fatalf("%+v in %s", d, it.Sequence)
			}
			ids[d.ID] = true
			points += len(d.X)
			area := false
			for i := range d.X {
				if d.X[i] != float64(uint8(d.X[i])) || d.Y[i] != float64(uint8(d.Y[i])) {
					t.Fatalf("point (%v, %v) is no pixel", d.X[i], d.Y[i])
				}
				k := len(d.X) - 1
				area = area || (d.X[i]-d.X[0])*(d.Y[k]-d.Y[0]) != (d.Y[i]-d.Y[0])*(d.X[k]-d.X[0])
			}
			if !area && d.Label != "circle" {
				degenerate++
			}
		}
	}
	if len(ids) != 6050 || len(numbers) != len(sketchKinds) || degenerate < 50 || degenerate > 200 {
		t.Errorf("%d drawings of %d kinds, %d degenerate", len(ids), len(numbers), degenerate)
	}
	if mean := float64(points) / 6050; mean < 30 || mean > 50 {
		t.Errorf("%v points a drawing, want about 40", mean)
	}
	for _, k := range []Sketches{{Frames: -1}, {Points: -1}, {Pack: 1e6}} {
		_, err := k.Open()
		failsWith(t, err, "synthetic")
	}
	for _, n := range []int{1, 2, 3, 5000} {
		items := all(t, open(t, Sketches{Frames: 60, Pack: 10, Points: n}))
		if len(items) != 6 {
			t.Errorf("%d points: %d items", n, len(items))
		}
	}
}

func BenchmarkLiDAR(b *testing.B) {
	s, err := LiDAR{Seed: 1}.Open()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var it Item
	var n int64
	for b.Loop() {
		if err := s.Next(&it); err != nil {
			b.Fatal(err)
		}
		n += it.Points()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/point")
}

func BenchmarkSketches(b *testing.B) {
	s, err := Sketches{Seed: 1}.Open()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var it Item
	var n int64
	for b.Loop() {
		if err := s.Next(&it); err != nil {
			b.Fatal(err)
		}
		n += it.Frames()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/drawing")
}
