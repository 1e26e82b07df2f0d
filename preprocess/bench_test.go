package preprocess_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"entropipe/algos/extreme"
	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/hull"
	"entropipe/algos/vector"
	"entropipe/models"
	"entropipe/preprocess"
	"entropipe/preprocess/seedfit"
)

// sweeps are real frames: those of KITTI's drive 5 to fit and to judge, and
// others that no model was fitted to.
func sweeps(b testing.TB) (fitted []geom.Cloud[float32], judged map[string][]geom.Cloud[float32]) {
	judged = map[string][]geom.Cloud[float32]{}
	for _, f := range geomtest.RealFrames(b) {
		name := strings.TrimSuffix(f.Name, ".bin")
		switch {
		case !strings.Contains(f.Name, "drive_0005"):
			judged["kitti-front"] = append(judged["kitti-front"], f.Cloud)
		case name[len(name)-1] < '5':
			fitted = append(fitted, f.Cloud)
		default:
			judged["kitti"] = append(judged["kitti"], f.Cloud)
		}
	}
	files, err := filepath.Glob(filepath.Join(geomtest.TestData(b, "nuscenes"), "*.pcd.bin"))
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		c := geom.Cloud[float32]{Z: []float32{}}
		for ; len(data) >= 20; data = data[20:] { // x, y, z, intensity, ring
			at := func(k int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(data[4*k:])) }
			c.X, c.Y, c.Z = append(c.X, at(0)), append(c.Y, at(1)), append(c.Z, at(2))
		}
		judged["nuscenes"] = append(judged["nuscenes"], c)
	}
	for k := range uint64(3) {
		judged["synthetic"] = append(judged["synthetic"], geomtest.Lidar[float32](120_000, k))
	}
	return fitted, judged
}

// Hints of a model that was fitted to other frames, and of the one that is
// shipped, change no row of a real sweep.
func TestHintsChangeNoRealFrame(t *testing.T) {
	fitted, judged := sweeps(t)
	learned, err := seedfit.Fit(fitted, seedfit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := models.Open("builtin:lidar")
	if err != nil {
		t.Fatal(err)
	}
	var h hull.Hull3D[float32]
	used := 0
	for sensor, clouds := range judged {
		for k, c := range clouds {
			h.Seeds = nil
			v, f, dim := h.Append(nil, nil, c)
			for name, m := range map[string]*models.EntropyNet{"learned": learned, "shipped": shipped} {
				p := byModel(t, m)(c)
				h.Seeds = p.Hints.Hull3D
				w, e, d := h.Append(nil, nil, p.Cloud)
				if d != dim || !slices.Equal(v, w) || !slices.Equal(f, e) {
					t.Errorf("%s frame %d, %s model: another hull with seeds %v", sensor, k, name, h.Seeds)
				}
				if _, ok := h.Survivors(); ok {
					used++
				}
			}
		}
	}
	if used < 12 {
		t.Errorf("hints were used %d times", used)
	}
}

// BenchmarkPrune: what is published of real sweeps for the planar hull and the
// maxima in space, in points and in bytes (four coordinates a point, and its
// number).
func BenchmarkPrune(b *testing.B) {
	_, judged := sweeps(b)
	s, err := preprocess.New[float32](preprocess.Config{Mode: preprocess.Prune,
		For: []preprocess.Op{preprocess.Hull2D, preprocess.Maxima3D}})
	if err != nil {
		b.Fatal(err)
	}
	for _, sensor := range []string{"kitti", "kitti-front", "nuscenes", "synthetic"} {
		b.Run(sensor, func(b *testing.B) {
			points, left := 0, 0
			var at []int32
			for b.Loop() {
				points, left = 0, 0
				for _, c := range judged[sensor] {
					p, _ := s.Apply(c)
					at = s.Prune(at[:0], &p)
					points, left = points+c.Len(), left+len(at)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(points), "ns/point")
			b.ReportMetric(float64(left)/float64(len(judged[sensor])), "survivors/frame")
			b.ReportMetric(float64(16*points)/float64(20*left), "times-fewer-bytes")
		})
	}
}

// BenchmarkSeed compares hull3d with hints and without, the stage's time
// included in both, frame by frame in turn: the ratio of the times, with a 95 %
// interval over rounds, what survives, and the time of the stage alone.
// Learned directions are refined by descent on F in a second model. Baselines
// are directions spread evenly, in the frame's box and in metres, and the last
// frame's hull, of which nothing but the indices is known.
func BenchmarkSeed(b *testing.B) {
	fitted, judged := sweeps(b)
	learned, err := seedfit.Fit(fitted, seedfit.Options{})
	if err != nil {
		b.Fatal(err)
	}
	shipped, err := models.Open("builtin:lidar")
	if err != nil {
		b.Fatal(err)
	}
	refined, err := seedfit.Fit(fitted, seedfit.Options{Refine: 300})
	if err != nil {
		b.Fatal(err)
	}
	for _, sensor := range []string{"kitti", "kitti-front", "nuscenes", "synthetic"} {
		clouds := judged[sensor]
		for _, hints := range []struct {
			name string
			pick picker
		}{
			{"learned", byModel(b, learned)},
			{"refined", byModel(b, refined)},
			{"shipped", byModel(b, shipped)},
			{"even", byModel(b, evenModel(32))},
			{"metres", byMetres(evenModel(32))},
			{"last", byLast()},
		} {
			if hints.name == "last" && len(clouds) < 2 {
				continue // there is no last frame
			}
			b.Run(fmt.Sprintf("%s/%s", sensor, hints.name), func(b *testing.B) { compare(b, clouds, hints.pick) })
		}
	}
	for _, level := range []vector.Level{vector.Portable, vector.AVX2} {
		b.Run(fmt.Sprintf("kitti/learned/%v", level), func(b *testing.B) {
			defer vector.Limit(level)()
			compare(b, judged["kitti"], byModel(b, learned))
		})
	}
}

// picker prepares a cloud, with hints.
type picker func(c geom.Cloud[float32]) preprocess.Prepared[float32]

func byModel(b testing.TB, m *models.EntropyNet) picker {
	s, err := preprocess.New[float32](preprocess.Config{Mode: preprocess.Seed, Model: m})
	if err != nil {
		b.Fatal(err)
	}
	return func(c geom.Cloud[float32]) preprocess.Prepared[float32] {
		p, _ := s.Apply(c)
		return p
	}
}

func evenModel(k int) *models.EntropyNet {
	var u []float32
	for i := range k {
		z := 1 - (2*float64(i)+1)/float64(k)
		r, a := math.Sqrt(1-z*z), math.Pi*(1+math.Sqrt(5))*float64(i)
		u = append(u, float32(r*math.Cos(a)), float32(r*math.Sin(a)), float32(z))
	}
	return &models.EntropyNet{
		Meta:    models.Meta{Mode: models.Seed, Dims: 3, Ops: []string{"hull3d"}, Normalise: models.NormaliseBox},
		Tensors: map[string]models.Tensor{"directions3": {Shape: []int{k, 3}, Data: u}},
	}
}

// byMetres hints at what the directions find in the frame's own axes, and takes
// no second look.
func byMetres(m *models.EntropyNet) picker {
	var s preprocess.Stage[float32]
	var f extreme.Finder[float32]
	u := make([]float32, len(m.Tensors["directions3"].Data))
	var at []int32
	return func(c geom.Cloud[float32]) preprocess.Prepared[float32] {
		p, _ := s.Apply(c)
		f.Every = c.Len()/8192 | 1
		if f.Look(c) {
			size := f.Size()
			for i, v := range m.Tensors["directions3"].Data {
				u[i] = v * float32(size[i%3])
			}
			at = f.Append(at[:0], u)
			p.Hints.Hull3D = at
		}
		return p
	}
}

// byLast hints at the indices that were the last frame's vertices.
func byLast() picker {
	var s preprocess.Stage[float32]
	var h hull.Hull3D[float32]
	hulls := map[*float32][]int32{}
	var last []int32
	return func(c geom.Cloud[float32]) preprocess.Prepared[float32] {
		p, _ := s.Apply(c)
		for _, i := range last {
			if int(i) < c.Len() {
				p.Hints.Hull3D = append(p.Hints.Hull3D, i)
			}
		}
		key := &c.X[0]
		if hulls[key] == nil { // the last frame's hull, known when this frame came; not timed
			hulls[key], _, _ = h.Append(nil, nil, c)
		}
		last = hulls[key]
		return p
	}
}

// compare times both ways in turn. Other work on the machine slows single
// rounds: times are the least, and the ratio is the median over rounds, with the
// interval that order statistics give.
func compare(b *testing.B, clouds []geom.Cloud[float32], pick picker) {
	var off preprocess.Stage[float32]
	var with, without hull.Hull3D[float32]
	var v, f []int32
	var ratios []float64
	least := [3]time.Duration{math.MaxInt64, math.MaxInt64, math.MaxInt64}
	points, survived, used := 0, 0, 0
	plain := func(c geom.Cloud[float32]) (took [3]time.Duration) {
		start := time.Now()
		p, _ := off.Apply(c)
		v, f, _ = without.Append(v[:0], f[:0], p.Cloud)
		took[0] = time.Since(start)
		return took
	}
	hinted := func(c geom.Cloud[float32]) (took [3]time.Duration) {
		start := time.Now()
		p := pick(c)
		took[2] = time.Since(start)
		with.Seeds = p.Hints.Hull3D
		v, f, _ = with.Append(v[:0], f[:0], p.Cloud)
		took[1] = time.Since(start)
		n, ok := with.Survivors()
		points, survived = points+c.Len(), survived+n
		if ok {
			used++
		}
		return took
	}
	round := func() {
		var took [3]time.Duration // off, with hints, of that the stage
		points, survived, used = 0, 0, 0
		for _, c := range clouds {
			order := []func(geom.Cloud[float32]) [3]time.Duration{plain, hinted}
			if len(ratios)%2 == 1 { // the second function finds the cloud in the cache
				slices.Reverse(order)
			}
			for _, do := range order {
				for k, d := range do(c) {
					took[k] += d
				}
			}
		}
		ratios = append(ratios, took[0].Seconds()/took[1].Seconds())
		for k, d := range took {
			least[k] = min(least[k], d)
		}
	}
	round()
	ratios = ratios[:0]
	for b.Loop() {
		round()
	}
	slices.Sort(ratios)
	n := float64(len(ratios))
	at := func(rank float64) float64 { return ratios[max(0, min(len(ratios)-1, int(rank)))] }
	b.ReportMetric(at(n/2), "times")
	b.ReportMetric(at(n/2-0.98*math.Sqrt(n)), "times-low")
	b.ReportMetric(at(n/2+0.98*math.Sqrt(n)), "times-high")
	for k, unit := range []string{"ns/point-off", "ns/point-seed", "ns/point-stage"} {
		b.ReportMetric(float64(least[k].Nanoseconds())/float64(points), unit)
	}
	b.ReportMetric(100*float64(survived)/float64(points), "%survivors")
	b.ReportMetric(float64(used)/float64(len(clouds)), "used")
}
