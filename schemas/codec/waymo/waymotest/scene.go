// Package waymotest writes synthetic segments of the Waymo Open Dataset, versions 1 and 2,
// for tests and benchmarks.
//
// It is no simulation: ranges are smooth functions of direction and time. Its matrices are
// plain products of 4 x 4 matrices, and its encoder goes from points to pixels, so that it
// shares no formula with the decoder.
package waymotest

import (
	"math"
	"math/rand/v2"
)

// Matrix is a 4 x 4 matrix, row-major.
type Matrix [16]float64

// Times returns the product a b.
func (a Matrix) Times(b Matrix) (c Matrix) {
	for i := range 4 {
		for j := range 4 {
			for k := range 4 {
				c[4*i+j] += a[4*i+k] * b[4*k+j]
			}
		}
	}
	return c
}

// Move returns the point a p.
func (a Matrix) Move(p [3]float64) (q [3]float64) {
	for i := range q {
		q[i] = a[4*i]*p[0] + a[4*i+1]*p[1] + a[4*i+2]*p[2] + a[4*i+3]
	}
	return q
}

// Inverse returns the inverse of a rigid motion.
func (a Matrix) Inverse() (b Matrix) {
	for i := range 3 {
		for j := range 3 {
			b[4*i+j] = a[4*j+i]
			b[4*i+3] -= a[4*j+i] * a[4*j+3]
		}
	}
	b[15] = 1
	return b
}

// Pose returns the motion that turns by roll, pitch and yaw about x, y and z, in this
// order, and then moves by t.
func Pose(roll, pitch, yaw float64, t [3]float64) Matrix {
	about := func(i, j int, angle float64) Matrix {
		m := Matrix{0: 1, 5: 1, 10: 1, 15: 1}
		sin, cos := math.Sincos(angle)
		m[5*i], m[5*j], m[4*i+j], m[4*j+i] = cos, cos, -sin, sin
		return m
	}
	m := about(0, 1, yaw).Times(about(2, 0, pitch)).Times(about(1, 2, roll))
	m[3], m[7], m[11] = t[0], t[1], t[2]
	return m
}

// Laser is a device: its number in the data set, its images' size and its calibration.
type Laser struct {
	Number       int
	H, W         int
	Extrinsic    Matrix
	Min, Max     float64
	Inclinations []float64 // ascending; nil: uniform
}

// Scene makes the frames of a segment.
type Scene struct {
	Context string
	Lasers  []Laser // by number
	Start   int64   // microseconds since 1970
	// Moving scenes have a vehicle that turns and drives within a frame.
	Moving bool
	// Noisy scenes have noise in ranges and intensities, and about as many points as a
	// published frame: few in the images of the four small lasers.
	Noisy bool
}

// New returns a scene of images with 1/shrink of the rows and columns of the data set, and
// calibrations like those of a published segment.
func New(shrink int) *Scene {
	s := &Scene{Context: "10023947602400723454_1120_000_1140_000", Start: 1550083467346370, Moving: true}
	degrees := math.Pi / 180
	top := Laser{Number: 1, H: 64 / shrink, W: 2650 / shrink, Min: -17.864 * degrees, Max: 2.594 * degrees,
		Extrinsic: Pose(-0.004, 0.006, 147.932*degrees, [3]float64{1.43, 0, 2.184})}
	for i := range top.H { // denser at the horizon
		u := float64(i) / float64(top.H-1)
		top.Inclinations = append(top.Inclinations, (-17.547+20.05*math.Sqrt(u)*(2-math.Sqrt(u)))*degrees)
	}
	s.Lasers = append(s.Lasers, top)
	for i, at := range [][4]float64{{4.07, 0, 0.689, 0.3}, {3.245, 1.025, 0.979, 91}, {3.245, -1.025, 0.979, -89.5},
		{-1.155, 0, 0.464, 179.2}} {
		s.Lasers = append(s.Lasers, Laser{Number: i + 2, H: 200 / shrink, W: 600 / shrink, Min: -90 * degrees,
			Max:       30 * degrees,
			Extrinsic: Pose(0.002, -0.003, at[3]*degrees, [3]float64{at[0], at[1], at[2]})})
	}
	return s
}

// Time returns the time of a frame, microseconds since 1970.
func (s *Scene) Time(frame int) int64 { return s.Start + int64(frame)*100_000 + int64(frame%7) }

// World returns the pose of the vehicle in the middle of a frame. after is the time from
// there in frames.
func (s *Scene) World(frame int, after float64) Matrix {
	roll, pitch, yaw, t := s.world(frame, after)
	return Pose(roll, pitch, yaw, t)
}

func (s *Scene) world(frame int, after float64) (roll, pitch, yaw float64, t [3]float64) {
	if !s.Moving {
		after = 0
	}
	u := float64(frame) + after
	return 0.01 * math.Sin(u/9), 0.02 * math.Cos(u/7), 2.2 + 0.03*u, [3]float64{-13501.25 + 1.1*u, 8123.5 - 0.7*u,
		41.25 + 0.02*u}
}

// Point is a point in the vehicle frame.
type Point struct {
	Laser, Return         int
	Row, Column           int
	At                    [3]float64
	Intensity, Elongation float32
}

// Sweep holds the images of a laser in a frame.
type Sweep struct {
	Laser   *Laser
	Returns [2][]float32 // H x W x 4
	Pose    []float32    // H x W x 6; nil: none
	Points  []Point      // the scene, by return, row and column
}

// Sweep makes the images of a laser and the points from which they were encoded.
func (s *Scene) Sweep(frame int, l *Laser) *Sweep {
	sw := &Sweep{Laser: l}
	random := rand.New(rand.NewPCG(uint64(frame), uint64(l.Number)))
	var poses []Matrix // by pixel
	if l.Number == 1 {
		sw.Pose, poses = s.pixelPoses(frame, l)
	}
	vehicle := s.World(frame, 0).Inverse()
	for k := range sw.Returns {
		image := make([]float32, l.H*l.W*4)
		for i := range image {
			image[i] = []float32{-1, 0, 0, -1}[i%4]
		}
		for row := range l.H {
			for column := range l.W {
				if random.IntN(8) == 0 || k == 1 && random.IntN(16) != 0 ||
					s.Noisy && l.Number != 1 && (row/8+column/16)%12 != 0 {
					continue
				}
				noise := 0.0
				if s.Noisy {
					noise = random.NormFloat64()
				}
				p := s.point(l, row, column, float64(frame), k, noise)
				p.At = l.Extrinsic.Move(p.At)
				if poses != nil {
					pose := poses[row*l.W+column]
					world := pose.Move(p.At)
					l.encode(image, p, pose.Inverse().Move(world))
					p.At = vehicle.Move(world)
				} else {
					l.encode(image, p, p.At)
				}
				sw.Points = append(sw.Points, p)
			}
		}
		sw.Returns[k] = image
	}
	return sw
}

// point returns a point in the laser's frame, in the middle of a pixel. Its range is a
// multiple of 1/128 m, as coarse as that of the data set.
func (s *Scene) point(l *Laser, row, column int, time float64, echo int, noise float64) Point {
	from := l.H - 1 - row
	inclination := l.Min + (float64(from)+0.5)/float64(l.H)*(l.Max-l.Min)
	if l.Inclinations != nil {
		inclination = l.Inclinations[from]
	}
	// Column 0 looks to the rear of the vehicle, the others follow clockwise.
	turned := math.Pi - 2*math.Pi*(float64(column)+0.5)/float64(l.W)
	azimuth := turned - math.Atan2(l.Extrinsic[4], l.Extrinsic[0])
	distance := 30 + 12*math.Sin(5*turned+time/10) + 8*math.Cos(3*inclination)
	if inclination < -0.02 {
		distance = min(distance, -2.1/math.Sin(inclination)) // the road
	}
	distance = math.Round(128*max(1, distance+0.75*float64(echo)+0.02*noise)) / 128
	return Point{Laser: l.Number, Return: echo + 1, Row: row, Column: column,
		At: [3]float64{distance * math.Cos(inclination) * math.Cos(azimuth),
			distance * math.Cos(inclination) * math.Sin(azimuth), distance * math.Sin(inclination)},
		Intensity:  float32((row*7+column*3)%256)/64 + float32(int(8*noise))/64,
		Elongation: float32((row+column)%16) / 16}
}

// encode sets the pixel of a point in the vehicle frame, as it is when the pixel is
// measured. Range, row and column come from the coordinates alone.
func (l *Laser) encode(image []float32, p Point, at [3]float64) {
	q := l.Extrinsic.Inverse().Move(at)
	distance := math.Sqrt(q[0]*q[0] + q[1]*q[1] + q[2]*q[2])
	inclination := math.Asin(q[2] / distance)
	azimuth := math.Atan2(q[1], q[0]) + math.Atan2(l.Extrinsic[4], l.Extrinsic[0])
	for azimuth > math.Pi {
		azimuth -= 2 * math.Pi
	}
	for azimuth <= -math.Pi {
		azimuth += 2 * math.Pi
	}
	column := int(math.Floor((1 - azimuth/math.Pi) / 2 * float64(l.W)))
	best := 0
	for i := range l.H {
		if math.Abs(l.inclination(i)-inclination) < math.Abs(l.inclination(best)-inclination) {
			best = i
		}
	}
	copy(image[((l.H-1-best)*l.W+column)*4:], []float32{float32(distance), p.Intensity, p.Elongation})
}

// inclination returns that of beam i from the lowest.
func (l *Laser) inclination(i int) float64 {
	if l.Inclinations != nil {
		return l.Inclinations[i]
	}
	return l.Min + (l.Max-l.Min)*(float64(i)+0.5)/float64(l.H)
}

// pixelPoses returns the pose image and its poses. The image is float32, and the scene
// happens where the image says.
func (s *Scene) pixelPoses(frame int, l *Laser) (image []float32, poses []Matrix) {
	image, poses = make([]float32, l.H*l.W*6), make([]Matrix, l.H*l.W)
	for i := range poses {
		row, column := i/l.W, i%l.W
		roll, pitch, yaw, t := s.world(frame, (float64(column)+float64(row)/8)/float64(l.W)-0.5)
		v := image[6*i : 6*i+6]
		for k, value := range []float64{roll, pitch, yaw, t[0], t[1], t[2]} {
			v[k] = float32(value)
		}
		poses[i] = Pose(float64(v[0]), float64(v[1]), float64(v[2]), [3]float64{float64(v[3]), float64(v[4]),
			float64(v[5])})
	}
	return image, poses
}
