package replay

import (
	"fmt"
	"io"
	"math"

	"entropipe/algos/geom"
	"entropipe/schemas/codec"
)

// LiDAR is a synthetic sensor with 64 beams that drives along a street and
// turns ten times a second. Points come beam by beam, the highest first, each
// beam counter-clockwise from behind, in whole millimetres with reflectance in
// hundredths: what KITTI's files look like. Directions without a return, and
// returns that are lost, leave no point. The same seed gives the same bytes on
// every CPU. A frame costs some 25 ns a point.
type LiDAR struct {
	Frames int64 // number of frames; 0: endless
	// Points is about how many points a frame has; 0: 120,000.
	Points int
	Seed   uint64
}

// MaxSyntheticPoints is the most points that a synthetic frame may have: 64 MB
// of them are the most that a message holds by default.
const MaxSyntheticPoints = 4_000_000

// returnsPerRay is the mean part of rays that return, over many seeds.
const returnsPerRay = 0.905

// lidar casts the rays of a frame in two passes: where each ray ends, azimuth
// by azimuth, because all beams of an azimuth meet the same solids; then the
// points with their noise, beam by beam.
type lidar struct {
	frames int64
	seed   uint64
	next   int64

	street street
	beams  []beam
	sin    []float64 // sine and cosine of each azimuth
	cos    []float64
	hits   []hit // [beam][azimuth]
	near   []crossing

	column [4][]float32
}

// beam is an elevation: slope is its tangent, stretch the reciprocal of its
// cosine.
type beam struct{ slope, stretch float64 }

// hit is where a ray ends, t metres from the sensor's axis; 0: nowhere.
type hit struct {
	t float32
	material
}

// crossing is the part of a vertical half-plane that a solid covers.
type crossing struct {
	in, out, z0, z1 float64
	material
}

// Open makes the source.
func (l LiDAR) Open() (Source, error) {
	if l.Points == 0 {
		l.Points = 120_000
	}
	if l.Points < 1 || l.Points > MaxSyntheticPoints {
		return nil, fmt.Errorf("synthetic: a frame has %d points; want 1 to %d", l.Points, MaxSyntheticPoints)
	}
	if l.Frames < 0 {
		return nil, fmt.Errorf("synthetic: the scene has %d frames; want at least 0", l.Frames)
	}
	s := &lidar{frames: l.Frames, seed: l.Seed, street: street{seed: l.Seed}}
	// Fewer beams for very few points, so that the sweep still goes round.
	n := min(64, max(1, l.Points/32))
	for i := range n {
		s.beams = append(s.beams, newBeam((2*i+1)*64/(2*n)))
	}
	steps := max(1, int(math.Round(float64(l.Points)/(float64(n)*returnsPerRay))))
	s.sin, s.cos = make([]float64, steps), make([]float64, steps)
	for i := range steps {
		s.sin[i], s.cos[i] = sincos(float64((float64(i)+0.5)/float64(steps)*(2*math.Pi)) - math.Pi)
	}
	s.hits = make([]hit, n*steps)
	for k := range s.column {
		s.column[k] = make([]float32, n*steps)
	}
	return s, nil
}

// newBeam returns beam i of the HDL-64E: 32 from 2 degrees downwards, a third
// of a degree apart, then 32 half a degree apart.
func newBeam(i int) beam {
	degrees := 2 - float64(i)/3
	if i >= 32 {
		degrees = -8.83 - float64(i-32)/2
	}
	sin, cos := sincos(float64(degrees * (math.Pi / 180)))
	return beam{slope: sin / cos, stretch: 1 / cos}
}

// Next implements Source.
func (s *lidar) Next(it *Item) error {
	if s.frames > 0 && s.next == s.frames {
		return io.EOF
	}
	frame := s.next
	s.next++
	s.street.look(poseAt(frame))
	for i := range s.sin {
		s.cast(i)
	}
	n := s.emit(newRandom(s.seed, 4, frame))
	*it = Item{
		Dataset: "synthetic", Sequence: "lidar", Sensor: "lidar64",
		Number: frame, Position: frame, TimeNs: frame * gapWithoutClock, Clock: SinceEpoch,
		Cloud: codec.Points{Intensity: s.column[3][:n],
			Cloud32: geom.Cloud[float32]{X: s.column[0][:n], Y: s.column[1][:n], Z: s.column[2][:n]}},
	}
	return nil
}

// cast finds where the rays of azimuth i end.
func (s *lidar) cast(i int) {
	s.cross(s.cos[i], s.sin[i])
	for k, b := range s.beams {
		h := hit{material: material{reflectance: 27, loss: 5}} // the road
		best := math.Inf(1)
		if b.slope < 0 {
			best = groundZ / b.slope
		}
		for j := range s.near {
			c := &s.near[j]
			if t := c.meet(b.slope); t < best {
				best, h.material = t, c.material
			}
		}
		if float64(best*b.stretch) < maxRange {
			h.t = float32(best)
		}
		s.hits[k*len(s.sin)+i] = h
	}
}

// meet returns where a ray of that slope ends on the solid: at its near side,
// else on its top or, from below, its bottom; infinity: it passes.
func (c *crossing) meet(slope float64) float64 {
	switch z, end := float64(slope*c.in), float64(slope*c.out); {
	case z > c.z1:
		if end <= c.z1 {
			return c.z1 / slope
		}
	case z < c.z0:
		if end >= c.z0 {
			return c.z0 / slope
		}
	default:
		return c.in
	}
	return math.Inf(1)
}

// cross collects the solids that the half-plane in direction (dx, dy) meets.
func (s *lidar) cross(dx, dy float64) {
	s.near = s.near[:0]
	for i := range s.street.solids {
		o := &s.street.solids[i]
		along := float64(o.cx*dx) + float64(o.cy*dy)
		aside := float64(o.cx*dy) - float64(o.cy*dx)
		if along < 0 || aside > o.reach || aside < -o.reach {
			continue
		}
		var c crossing
		var ok bool
		if o.hy == 0 {
			c.in, c.out, ok = o.cylinder(along, aside)
		} else {
			c.in, c.out, ok = o.box(dx, dy)
		}
		if ok && c.in > 0 {
			c.z0, c.z1, c.material = o.z0, o.z1, o.material
			s.near = append(s.near, c)
		}
	}
}

// cylinder returns where a ray passes through; its centre lies that far along
// the ray and aside of it.
func (o *solid) cylinder(along, aside float64) (in, out float64, ok bool) {
	half := float64(o.hx*o.hx) - float64(aside*aside)
	if half <= 0 {
		return 0, 0, false
	}
	half = math.Sqrt(half)
	return along - half, along + half, true
}

// box returns where a ray from the sensor in direction (dx, dy) passes
// through: the slab method, in the frame of the box.
func (o *solid) box(dx, dy float64) (in, out float64, ok bool) {
	px := -float64(o.cx*o.ux) - float64(o.cy*o.uy)
	py := float64(o.cx*o.uy) - float64(o.cy*o.ux)
	qx := float64(dx*o.ux) + float64(dy*o.uy)
	qy := float64(dy*o.ux) - float64(dx*o.uy)
	// A direction along a slab divides by zero: the infinities are right.
	x0, x1 := (-o.hx-px)/qx, (o.hx-px)/qx
	y0, y1 := (-o.hy-py)/qy, (o.hy-py)/qy
	if x0 > x1 {
		x0, x1 = x1, x0
	}
	if y0 > y1 {
		y0, y1 = y1, y0
	}
	if y0 > x0 {
		x0 = y0
	}
	if y1 < x1 {
		x1 = y1
	}
	return x0, x1, x0 < x1
}

const (
	rangeSigma = 0.02    // metres
	quarter    = 1 << 16 // a 64-bit number makes four small ones
)

// emit writes the returns as points and returns how many there are.
func (s *lidar) emit(r random) int {
	x, y, z, w := s.column[0], s.column[1], s.column[2], s.column[3]
	n, steps := 0, len(s.sin)
	for k, b := range s.beams {
		row := s.hits[k*steps:][:steps]
		for i := range row {
			h := &row[i]
			if h.t == 0 {
				continue
			}
			bits := r.next()
			t := float64(h.t)
			if int(bits%quarter) < lost(h, t) {
				continue
			}
			// Three uniform numbers add up to nearly a Gaussian one; its
			// standard deviation is half a quarter.
			sum := int(bits>>16%quarter) + int(bits>>32%quarter) + int(bits>>48) - 3*quarter/2
			t += float64(float64(sum) * (rangeSigma / (quarter / 2)) / b.stretch)
			x[n] = millimetres(float64(t * s.cos[i]))
			y[n] = millimetres(float64(t * s.sin[i]))
			z[n] = millimetres(float64(t * b.slope))
			w[n] = hundredths[min(99, max(0, int(h.reflectance)+sum>>13))]
			n++
		}
	}
	return n
}

// lost returns how many of 65536 returns are lost: some of every surface, and
// more the farther it is.
func lost(h *hit, t float64) int {
	return int(h.loss)*256 + int(t*t*(0.3*quarter/(maxRange*maxRange)))
}

func millimetres(v float64) float32 { return float32(math.RoundToEven(v*1000) / 1000) }

// hundredths are the reflectances that there are.
var hundredths = func() (t [100]float32) {
	for i := range t {
		t[i] = float32(i) / 100
	}
	return t
}()

// Len returns the number of frames, 0 for an endless source.
func (s *lidar) Len() int64 { return s.frames }

// Rewind implements Source.
func (s *lidar) Rewind() error {
	s.next = 0
	return nil
}

// Close implements Source.
func (s *lidar) Close() error { return nil }
