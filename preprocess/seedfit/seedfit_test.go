package seedfit

import (
	"math"
	"slices"
	"strings"
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/models"
)

func lidars(n int, from uint64, count int) (frames []geom.Cloud[float32]) {
	for k := range count {
		frames = append(frames, geomtest.Lidar[float32](n, from+uint64(k)))
	}
	return frames
}

// Equal frames and options give the same bits, other seeds others; the model is
// valid and says what it was calibrated on.
func TestFitIsDeterministic(t *testing.T) {
	frames := lidars(40_000, 1, 2)
	o := Options{Directions: 40, Seed: 7, Refine: 3, Dataset: "d", Sensor: "s", Command: "c"}
	a, err := Fit(frames, o)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Fit(frames, o)
	if err != nil {
		t.Fatal(err)
	}
	u := a.Tensors["directions3"].Data
	if !slices.Equal(u, b.Tensors["directions3"].Data) || a.Meta.Survivors["hull3d"] != b.Meta.Survivors["hull3d"] {
		t.Error("two fits differ")
	}
	if len(u) != 3*40 || a.Meta.Seed != 7 || a.Meta.Steps != 40-least+3 || a.Meta.Dataset != "d" ||
		a.Meta.Sensor != "s" || a.Meta.Command != "c" {
		t.Errorf("%d values, %+v", len(u), a.Meta)
	}
	if err := a.Validate(); err != nil {
		t.Error(err)
	}
	if s := a.Meta.Survivors["hull3d"]; !(s > 0 && s < 0.1) {
		t.Errorf("%v of the points survived at calibration", s)
	}
	o.Seed = 8
	if c, err := Fit(frames, o); err != nil || slices.Equal(u, c.Tensors["directions3"].Data) {
		t.Errorf("another seed gives the same directions (error %v)", err)
	}
}

// On sweeps over ground fitted directions leave fewer points than as many that
// are spread evenly; in frames that were not fitted, too.
func TestFitBeatsEvenDirections(t *testing.T) {
	m, err := Fit(lidars(60_000, 1, 3), Options{})
	if err != nil {
		t.Fatal(err)
	}
	outside := func(u []float32) (n int) {
		for _, f := range boxedFrames(lidars(60_000, 100, 3)) {
			f.heaviest(f.finder.Append(nil, u))
			n += len(f.outside)
		}
		return n
	}
	fitted, spread := outside(m.Tensors["directions3"].Data), outside(evenly(usual, 1))
	if 2*fitted > spread {
		t.Errorf("%d points are outside of what fitted directions find, %d of what even ones do", fitted, spread)
	}
}

// Every direction that is chosen enlarges a hull: fewer points are outside, or
// as many.
func TestChooseEnlargesHulls(t *testing.T) {
	frames := boxedFrames(lidars(20_000, 5, 2))
	left := func() (n int) {
		for _, f := range frames {
			n += len(f.outside)
		}
		return n
	}
	u := evenly(even, 1)
	before := left()
	for count := even + 1; count < 30; count++ {
		if u = choose(frames, u, count); len(u) != 3*count {
			t.Fatalf("%d values for %d directions", len(u), count)
		}
		now := left()
		if now > before {
			t.Fatalf("%d points are outside with %d directions, %d before", now, count, before)
		}
		before = now
		v := u[len(u)-3:]
		if size := math.Sqrt(float64(v[0]*v[0] + v[1]*v[1] + v[2]*v[2])); math.Abs(size-1) > 1e-5 {
			t.Fatalf("direction %v has length %v", v, size)
		}
	}
}

// Refinement does not raise what it lowers.
func TestRefineLowersF(t *testing.T) {
	frames := boxedFrames(lidars(5000, 1, 2))
	u := append(evenly(even, 3), ground()...)
	j := newJudge(frames)
	before := j.of(u)
	refine(frames, u, 40, 1)
	if after := j.of(u); after >= before {
		t.Errorf("F is %v, was %v", after, before)
	}
	m := models.EntropyNet{Meta: models.Meta{Mode: models.Seed, Dims: 3, Ops: []string{"hull3d"},
		Normalise: models.NormaliseBox},
		Tensors: map[string]models.Tensor{"directions3": {Shape: []int{len(u) / 3, 3}, Data: u}}}
	if err := m.Validate(); err != nil {
		t.Error(err)
	}
}

// Frames that no solid hull can be made of are left out, and are an error when
// there are no others.
func TestFitRefuses(t *testing.T) {
	nan := float32(math.NaN())
	odd := []geom.Cloud[float32]{
		{}, {X: []float32{1}, Y: []float32{2}, Z: []float32{3}},
		{X: make([]float32, 9), Y: make([]float32, 9), Z: make([]float32, 9)},
		{X: make([]float32, 9), Y: make([]float32, 9)},
		{X: []float32{0, 1, 0, 0, nan}, Y: []float32{0, 0, 1, 0, 0}, Z: []float32{0, 0, 0, 1, 0}},
	}
	if _, err := Fit(odd, Options{}); err == nil || !strings.Contains(err.Error(), "no frame") {
		t.Errorf("error %v without a frame to fit to", err)
	}
	cube := geom.Cloud[float32]{X: []float32{0, 1, 0, 0}, Y: []float32{0, 0, 1, 0}, Z: []float32{0, 0, 0, 1}}
	m, err := Fit(append(odd, cube), Options{})
	if err != nil || len(m.Tensors["directions3"].Data) != 3*usual || m.Meta.Survivors["hull3d"] != 1 {
		t.Errorf("%+v, error %v, for a tetrahedron", m, err)
	}
	if _, err := Fit(odd, Options{Directions: 3}); err == nil {
		t.Error("three directions were not refused")
	}
	if _, err := Fit(append(odd, cube), Options{Directions: least - 1}); err == nil {
		t.Error("too few directions were not refused")
	}
}
