package waymo

import (
	"fmt"
	"math"
	"testing"

	"entropipe/schemas/codec"
	"entropipe/schemas/codec/waymo/waymotest"
)

const limit = 64 << 20

// golden is the image of the published check values: 4 x 8 pixels, all 10 m away, between
// -0.4 and 0.2 radians.
func golden(extrinsic Transform) *Frame {
	f := &Frame{Calibrations: &Calibrations{Front: {Extrinsic: extrinsic, Min: -0.4, Max: 0.2}}}
	values := make([]float32, 4*8*4)
	for i := 0; i < len(values); i += 4 {
		values[i] = 10
	}
	image := new(Image)
	if err := image.set([]int{4, 8, 4}, values); err != nil {
		panic(err)
	}
	f.Sweeps[Front].Returns[0] = image
	return f
}

func TestProjectorGivesPublishedPoints(t *testing.T) {
	identity := Transform{0: 1, 5: 1, 10: 1, 15: 1}
	turned := Transform{0, -1, 0, 1, 1, 0, 0, 2, 0, 0, 1, 3, 0, 0, 0, 1}
	var p Projector
	var c codec.Cloud
	for _, test := range []struct {
		extrinsic   Transform
		row, column int
		want        [3]float64
	}{
		{identity, 0, 0, [3]float64{-9.166711, 3.796976, 1.246747}},
		{identity, 0, 3, [3]float64{9.166711, 3.796976, 1.246747}},
		{identity, 0, 4, [3]float64{9.166711, -3.796976, 1.246747}},
		{identity, 3, 7, [3]float64{-8.755151, -3.626502, -3.193088}},
		{turned, 0, 0, [3]float64{-8.166711, 5.796976, 4.246747}},
		{turned, 2, 5, [3]float64{4.768385, -7.097687, 1.258919}},
	} {
		if err := p.Cloud(&c, golden(test.extrinsic), AllLasers, limit); err != nil {
			t.Fatal(err)
		}
		i := test.row*8 + test.column
		got := [3]float64{float64(c.Cloud32.X[i]), float64(c.Cloud32.Y[i]), float64(c.Cloud32.Z[i])}
		for k := range got {
			if math.Abs(got[k]-test.want[k]) > 1e-6 {
				t.Errorf("row %d, column %d, extrinsic %v: %v, want %v", test.row, test.column, test.extrinsic[:4], got,
					test.want)
				break
			}
		}
	}
}

// The rotation of a pose is the published matrix, applied to the axes.
func TestPoseRotatesAsPublished(t *testing.T) {
	want := [3][3]float64{{0.936293364, -0.275095847, 0.218350663}, {0.289629478, 0.956425086, -0.036957014},
		{-0.198669331, 0.097843395, 0.975170327}}
	m := waymotest.Pose(.1, .2, .3, [3]float64{})
	for axis := range 3 {
		// One beam that looks along the axis, and a pose image of one pixel.
		direction := [3]float64{}
		direction[axis] = 1
		b := beams{h: 1, w: 1, cos: []float64{0}, up: [][3]float64{direction}, across: make([][3]float64, 1)}
		image := &Image{H: 1, W: 1, At: []int32{0}, Range: []float32{1}}
		pose := &PoseImage{H: 1, W: 1, Values: []float32{.1, .2, .3, 0, 0, 0}}
		x, y, z := make([]float32, 1), make([]float32, 1), make([]float32, 1)
		b.moving(x, y, z, image, pose, &Transform{0: 1, 5: 1, 10: 1, 15: 1})
		for row, got := range [3]float32{x[0], y[0], z[0]} {
			if math.Abs(float64(got)-want[row][axis]) > 1e-7 || math.Abs(m[4*row+axis]-want[row][axis]) > 1e-9 {
				t.Errorf("row %d, column %d: %v, and %v in the scenes of tests; want %v", row, axis, got, m[4*row+axis],
					want[row][axis])
			}
		}
	}
}

// Sine and cosine near an angle that was computed equal those of package math.
func TestTurnEqualsSincos(t *testing.T) {
	turn := newTurn()
	worst := 0.0
	for i := range 200_000 {
		angle := 3.2*math.Sin(float64(i)/3000) + 1e-5*float64(i%13)
		sin, cos := turn.sincos(angle)
		wantSin, wantCos := math.Sincos(angle)
		worst = max(worst, math.Abs(sin-wantSin), math.Abs(cos-wantCos))
	}
	if worst > 4e-16 {
		t.Errorf("the error is %g", worst)
	}
	if sin, cos := turn.sincos(math.NaN()); sin == sin || cos == cos {
		t.Errorf("NaN gives %g and %g", sin, cos)
	}
}

// checkPoints compares a cloud with the points of the scene from which it was encoded, to
// 1e-4 m.
func checkPoints(t testing.TB, name string, c *codec.Cloud, want []waymotest.Point) {
	t.Helper()
	if c.Len() != len(want) {
		t.Errorf("%s: %d points, want %d", name, c.Len(), len(want))
		return
	}
	worst := 0.0
	for i, p := range want {
		got := [3]float64{float64(c.Cloud32.X[i]), float64(c.Cloud32.Y[i]), float64(c.Cloud32.Z[i])}
		for k := range got {
			worst = max(worst, math.Abs(got[k]-p.At[k]))
		}
		if int(c.Laser[i]) != p.Laser || int(c.Return[i]) != p.Return || c.Intensity[i] != p.Intensity ||
			c.Elongation[i] != p.Elongation || !(worst < 1e-4) {
			t.Errorf("%s: point %d: laser %d, return %d, %v, intensity %g, elongation %g; want %+v", name, i,
				c.Laser[i],
				c.Return[i], got, c.Intensity[i], c.Elongation[i], p)
			return
		}
	}
	t.Logf("%s: %d points, at most %.1e m away", name, len(want), worst)
}

// scenePoints returns the points of lasers and returns of a frame, as the decoders order
// them.
func scenePoints(s *waymotest.Scene, frame int, lasers LaserSet, returns ReturnSet) (points []waymotest.Point) {
	for i := range s.Lasers {
		if !lasers.Has(Laser(s.Lasers[i].Number)) {
			continue
		}
		for _, p := range s.Sweep(frame, &s.Lasers[i]).Points {
			if returns>>(p.Return-1)&1 != 0 {
				points = append(points, p)
			}
		}
	}
	return points
}

func TestLaserNames(t *testing.T) {
	for _, l := range AllLasers.Each() {
		if ParseLaser(l.String()) != l || ParseLaser(fmt.Sprintf("%s ", l)) != Unknown {
			t.Errorf("the name %q is read as %v", l, ParseLaser(l.String()))
		}
	}
	if l := ParseLaser("SIDE_LEFT"); l != SideLeft {
		t.Errorf("SIDE_LEFT is %v", l)
	}
	if l := ParseLaser("unknown"); l != Unknown || len(AllLasers.Each()) != 5 {
		t.Errorf("unknown is %v; all lasers are %v", l, AllLasers.Each())
	}
}
