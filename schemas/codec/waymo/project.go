package waymo

import (
	"math"
	"slices"

	"entropipe/schemas/codec"
)

// Projector turns range images into points. It keeps tables for the calibrations of the
// last frame, which are the same through a segment. The zero value is ready. A Projector
// is not for concurrent use.
type Projector struct{ tables [numLasers]beams }

// beams are the directions of a laser's pixels in the vehicle frame. The direction of the
// pixel in row i and column j is cos[i] across[j] + up[i].
type beams struct {
	calibration Calibration
	h, w        int
	cos         []float64
	up          [][3]float64
	across      [][3]float64
	origin      [3]float64
}

// pointBytes is the memory of a point: three coordinates, intensity, elongation, return
// and laser.
const pointBytes = 7 * 4

// Cloud sets the points of c, in the vehicle frame, to those of the frame's sweeps of
// lasers: by laser number, return, row and column. It sets the columns intensity,
// elongation, return (1 or 2) and laser (1 to 5), time and pose. limit bounds the bytes of
// the columns. A sweep that has neither image gives no point.
//
// The errors are: a range image without calibration, as many inclinations as the image has
// not rows, a matrix that is no rigid motion, and more points than limit allows.
func (p *Projector) Cloud(c *codec.Cloud, f *Frame, lasers LaserSet, limit int64) *codec.Error {
	c.Reset()
	n := 0
	for _, laser := range lasers.Each() {
		for _, image := range f.Sweeps[laser].Returns {
			if image != nil {
				n += len(image.At)
			}
		}
	}
	if int64(n)*pointBytes > limit {
		return codec.Errorf(codec.TooLarge, -1, "%d points take %d bytes, more than the limit of %d", n,
			int64(n)*pointBytes, limit)
	}
	if f.World != nil {
		if err := f.World.rigid("pose of the frame"); err != nil {
			return err
		}
		c.Pose = f.World.Pose()
	}
	c.TimeNs, c.HasTime = f.TimeMicros*1000, true
	c.Ignored = append(c.Ignored, f.Ignored...)
	c.Cloud32.X, c.Cloud32.Y, c.Cloud32.Z = c.Float32s(codec.X, n), c.Float32s(codec.Y, n), c.Float32s(codec.Z, n)
	c.Intensity, c.Elongation = c.Float32s(codec.Intensity, n), c.Float32s(codec.Elongation, n)
	c.Return, c.Laser = c.Int32s(codec.Return, n), c.Int32s(codec.Laser, n)
	from := 0
	for _, laser := range lasers.Each() {
		sweep := &f.Sweeps[laser]
		for k, image := range sweep.Returns {
			if image == nil || len(image.At) == 0 {
				continue
			}
			if err := p.project(c, from, f, laser, image); err != nil {
				return err
			}
			for i := from; i < from+len(image.At); i++ {
				c.Return[i], c.Laser[i] = int32(k+1), int32(laser)
			}
			from += len(image.At)
		}
	}
	return nil
}

// project sets the points from on to those of the image.
func (p *Projector) project(c *codec.Cloud, from int, f *Frame, laser Laser, image *Image) *codec.Error {
	b := &p.tables[laser]
	var calibration *Calibration
	if f.Calibrations != nil {
		calibration = f.Calibrations[laser]
	}
	if calibration == nil {
		return codec.Errorf(codec.Missing, -1, "laser %s has a range image and no calibration", laser)
	}
	if err := b.prepare(laser, calibration, image.H, image.W); err != nil {
		return err
	}
	to := from + len(image.At)
	copy(c.Intensity[from:to], image.Intensity)
	copy(c.Elongation[from:to], image.Elongation)
	x, y, z := c.Cloud32.X[from:to], c.Cloud32.Y[from:to], c.Cloud32.Z[from:to]
	pose := f.Sweeps[laser].Pose
	if pose == nil || pose.H == 0 || f.World == nil {
		b.still(x, y, z, image)
		return nil
	}
	if pose.H != image.H || pose.W != image.W {
		return codec.Errorf(codec.BadLength, -1,
			"the pose image of laser %s has %d x %d pixels, its range image %d x %d",
			laser, pose.H, pose.W, image.H, image.W)
	}
	b.moving(x, y, z, image, pose, f.World)
	return nil
}

// prepare makes the tables, unless they are those of the last call.
func (b *beams) prepare(laser Laser, c *Calibration, h, w int) *codec.Error {
	if b.h == h && b.w == w && b.calibration.Extrinsic == c.Extrinsic && b.calibration.Min == c.Min &&
		b.calibration.Max == c.Max && slices.Equal(b.calibration.Inclinations, c.Inclinations) {
		return nil
	}
	if n := len(c.Inclinations); n != 0 && n != h {
		return codec.Errorf(codec.BadLength, -1, "laser %s has %d inclinations, its range image %d rows", laser, n, h)
	}
	if err := c.Extrinsic.rigid("extrinsic calibration of laser " + laser.String()); err != nil {
		return err
	}
	b.h, b.w = h, w
	values := append(b.calibration.Inclinations[:0], c.Inclinations...)
	b.calibration = *c
	b.calibration.Inclinations = values
	b.cos, b.up = slices.Grow(b.cos[:0], h)[:h], slices.Grow(b.up[:0], h)[:h]
	b.across = slices.Grow(b.across[:0], w)[:w]
	e := &c.Extrinsic
	for row := range h {
		from := h - 1 - row // stored from the lowest beam
		inclination := c.Min + (float64(from)+0.5)/float64(h)*(c.Max-c.Min)
		if len(values) > 0 {
			inclination = values[from]
		}
		sin, cos := math.Sincos(inclination)
		b.cos[row] = cos
		b.up[row] = [3]float64{sin * e[2], sin * e[6], sin * e[10]}
	}
	correction := math.Atan2(e[4], e[0])
	for column := range w {
		azimuth := ((float64(w-column)-0.5)/float64(w)*2-1)*math.Pi - correction
		sin, cos := math.Sincos(azimuth)
		b.across[column] = [3]float64{cos*e[0] + sin*e[1], cos*e[4] + sin*e[5], cos*e[8] + sin*e[9]}
	}
	b.origin = [3]float64{e[3], e[7], e[11]}
	return nil
}

// at returns the point of a pixel in the vehicle frame at the pixel's time.
func (b *beams) at(row, column int, distance float64) (x, y, z float64) {
	cos, up, across := b.cos[row], &b.up[row], &b.across[column]
	return distance*(cos*across[0]+up[0]) + b.origin[0],
		distance*(cos*across[1]+up[1]) + b.origin[1],
		distance*(cos*across[2]+up[2]) + b.origin[2]
}

// still projects without motion compensation.
func (b *beams) still(x, y, z []float32, image *Image) {
	row, begin := 0, 0 // begin: position of the row's first pixel
	for i, at := range image.At {
		for int(at)-begin >= b.w {
			row++
			begin += b.w
		}
		px, py, pz := b.at(row, int(at)-begin, float64(image.Range[i]))
		x[i], y[i], z[i] = float32(px), float32(py), float32(pz)
	}
}

// moving projects with motion compensation: by the pixel's pose into the world, and by the
// inverse of the frame's pose back.
func (b *beams) moving(x, y, z []float32, image *Image, pose *PoseImage, world *Transform) {
	roll, pitch, yaw := newTurn(), newTurn(), newTurn()
	row, begin := 0, 0
	for i, at := range image.At {
		for int(at)-begin >= b.w {
			row++
			begin += b.w
		}
		px, py, pz := b.at(row, int(at)-begin, float64(image.Range[i]))
		v := pose.Values[int(at)*poseChannels:][:poseChannels:poseChannels]
		sr, cr := roll.sincos(float64(v[0]))
		sp, cp := pitch.sincos(float64(v[1]))
		sy, cy := yaw.sincos(float64(v[2]))
		// Rz(yaw) Ry(pitch) Rx(roll), applied from the right; translations are subtracted
		// first, because both are far larger than their difference.
		qx, qy, qz := px, cr*py-sr*pz, sr*py+cr*pz
		qx, qz = cp*qx+sp*qz, cp*qz-sp*qx
		qx, qy = cy*qx-sy*qy, sy*qx+cy*qy
		qx += float64(v[3]) - world[3]
		qy += float64(v[4]) - world[7]
		qz += float64(v[5]) - world[11]
		x[i] = float32(world[0]*qx + world[4]*qy + world[8]*qz)
		y[i] = float32(world[1]*qx + world[5]*qy + world[9]*qz)
		z[i] = float32(world[2]*qx + world[6]*qy + world[10]*qz)
	}
}

// turn computes sine and cosine of angles that change little from one call to the next.
type turn struct{ angle, sin, cos float64 }

// newTurn returns a turn whose first call computes.
func newTurn() turn { return turn{angle: math.Inf(1)} }

// sincos returns sine and cosine of an angle. Below 2⁻¹⁰ from the last computed angle it
// adds the difference d by the addition theorem, where d⁷/5040 is below 2⁻⁸².
func (t *turn) sincos(angle float64) (sin, cos float64) {
	d := angle - t.angle
	if !(math.Abs(d) < 1.0/1024) {
		t.angle = angle
		t.sin, t.cos = math.Sincos(angle)
		return t.sin, t.cos
	}
	d2 := d * d
	s := d * (1 - d2/6*(1-d2/20))
	c := 1 - d2/2*(1-d2/12*(1-d2/30))
	return t.sin*c + t.cos*s, t.cos*c - t.sin*s
}
