package train

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math"
	"math/rand/v2"

	"entropipe/algos/geom"
	"entropipe/preprocess/net"
)

// Frame is a cloud to learn from: points sampled evenly from a frame, in the frame's
// own units.
type Frame struct {
	Cloud  geom.Cloud[float32]
	Lo, Hi [3]float64 // bounding box of all finite points of the frame
}

// Data holds the frames of one stream. Training does not change it.
type Data struct {
	Dims   int
	Learn  []Frame // frames that steps draw from
	Judge  []Frame // held-out frames: every fifth; the last one of Learn if there are fewer than five
	Points int64   // points of the frames as received
	SHA256 string  // hash of the kept points, in order

	Dataset, Sensor string
}

// Collector collects Data frame by frame. Dims must be set; Points has a default. It
// is not safe for concurrent use.
type Collector struct {
	Dims   int
	Points int // largest number of points kept of a frame, evenly spaced; 0: 16384

	frames  []Frame
	points  int64
	sum     hash.Hash
	skipped int
}

const (
	framePoints = 16384
	leastPoints = 4 // fewest points of a frame to learn from
	judgeEvery  = 5
)

// Add adds a copy of a frame's points with finite coordinates. Add skips a frame with
// fewer than four such points. Add fails if Dims is 3 and the cloud has points
// without z.
func (c *Collector) Add(cloud geom.Cloud[float32]) error {
	if c.Dims == 3 && cloud.Z == nil && cloud.Len() > 0 {
		return errors.New("a frame has no z, and the model needs 3 dimensions")
	}
	if c.sum == nil {
		c.sum = sha256.New()
	}
	axes := [][]float32{cloud.X, cloud.Y, cloud.Z}[:c.Dims]
	var finite []int
	for i := range cloud.X {
		ok := true
		for _, a := range axes {
			ok = ok && a[i]-a[i] == 0
		}
		if ok {
			finite = append(finite, i)
		}
	}
	if len(finite) < leastPoints {
		c.skipped++
		return nil
	}
	most := c.Points
	if most == 0 {
		most = framePoints
	}
	f := Frame{}
	kept := min(len(finite), most)
	for d, a := range axes {
		out := make([]float32, kept)
		for k := range out {
			out[k] = a[finite[k*len(finite)/kept]]
		}
		*[]*[]float32{&f.Cloud.X, &f.Cloud.Y, &f.Cloud.Z}[d] = out
		f.Lo[d], f.Hi[d] = math.Inf(1), math.Inf(-1)
		for _, i := range finite {
			f.Lo[d], f.Hi[d] = min(f.Lo[d], float64(a[i])), max(f.Hi[d], float64(a[i]))
		}
		if err := binary.Write(c.sum, binary.LittleEndian, out); err != nil {
			return err // a hash never fails
		}
	}
	c.frames = append(c.frames, f)
	c.points += int64(cloud.Len())
	return nil
}

// Skipped returns the number of frames that had too few points.
func (c *Collector) Skipped() int { return c.skipped }

// Data returns the collected frames, parted into Learn and Judge. Data fails if every
// frame was skipped.
func (c *Collector) Data() (*Data, error) {
	if len(c.frames) == 0 {
		return nil, fmt.Errorf("there is no frame to learn from: %d frames have fewer than %d points",
			c.skipped, leastPoints)
	}
	d := &Data{Dims: c.Dims, Points: c.points, SHA256: hex.EncodeToString(c.sum.Sum(nil))}
	for i, f := range c.frames {
		if i%judgeEvery == judgeEvery-1 {
			d.Judge = append(d.Judge, f)
		} else {
			d.Learn = append(d.Learn, f)
		}
	}
	if len(d.Judge) == 0 {
		d.Judge = d.Learn[len(d.Learn)-1:]
	}
	return d, nil
}

// Extent returns the mean over the frames to learn from of their boxes' longest sides.
func (d *Data) Extent() float64 {
	sum := 0.0
	for _, f := range d.Learn {
		longest := 0.0
		for k := range d.Dims {
			longest = max(longest, f.Hi[k]-f.Lo[k])
		}
		sum += longest
	}
	return sum / float64(len(d.Learn))
}

// sample sets dst to at most most points of the frame: it parts the points into as
// many equal shares, in order, and draws one point from each share.
func (f *Frame) sample(dst *geom.Cloud[float32], most int, r *rand.Rand) {
	n := f.Cloud.Len()
	m := min(n, most)
	dst.X, dst.Y = grown(dst.X, m), grown(dst.Y, m)
	if dst.Z = dst.Z[:0]; f.Cloud.Z != nil {
		dst.Z = grown(dst.Z, m)
	}
	for k := range m {
		lo, hi := k*n/m, (k+1)*n/m
		i := lo + r.IntN(hi-lo)
		dst.X[k], dst.Y[k] = f.Cloud.X[i], f.Cloud.Y[i]
		if f.Cloud.Z != nil {
			dst.Z[k] = f.Cloud.Z[i]
		}
	}
	if f.Cloud.Z == nil {
		dst.Z = nil
	}
}

// Noise is the noise model of mode denoise: a normal error on every coordinate, and
// for outliers a uniform error of at most Reach deviations instead.
type Noise struct {
	Sigma    float64 // standard deviation, in the units of the frames
	Outliers float64 // fraction of the points
	Reach    float64 // largest error of an outlier, in standard deviations
}

// Add sets dst to a noisy copy of c.
func (n Noise) Add(dst *geom.Cloud[float32], c geom.Cloud[float32], r *rand.Rand) {
	z := dst.Z
	dst.X, dst.Y, dst.Z = grown(dst.X, c.Len()), grown(dst.Y, c.Len()), nil
	if c.Z != nil {
		dst.Z = grown(z, c.Len())
	}
	for i := range c.X {
		out := r.Float64() < n.Outliers
		for d, to := range [...][]float32{dst.X, dst.Y, dst.Z} {
			if to == nil {
				continue
			}
			e := n.Sigma * r.NormFloat64()
			if out {
				e = n.Sigma * n.Reach * (2*r.Float64() - 1)
			}
			to[i] = float32(float64([...][]float32{c.X, c.Y, c.Z}[d][i]) + e)
		}
	}
}

// normalised sets dst to (c − lo)/(hi − lo) on each axis and returns the widths
// hi − lo. Coordinates on an axis without width become 0.
func normalised(dst *geom.Cloud[float32], c geom.Cloud[float32], lo, hi [3]float64) (width [3]float64) {
	z := dst.Z
	dst.X, dst.Y, dst.Z = grown(dst.X, c.Len()), grown(dst.Y, c.Len()), nil
	if c.Z != nil {
		dst.Z = grown(z, c.Len())
	}
	for d, from := range [...][]float32{c.X, c.Y, c.Z} {
		if from == nil {
			continue
		}
		width[d] = hi[d] - lo[d]
		to := [...][]float32{dst.X, dst.Y, dst.Z}[d]
		for i, v := range from {
			if to[i] = 0; width[d] > 0 {
				to[i] = float32((float64(v) - lo[d]) / width[d])
			}
		}
	}
	return width
}

// boxOf returns the bounding box of a cloud.
func boxOf(c geom.Cloud[float32]) (lo, hi [3]float64) {
	for d, axis := range [...][]float32{c.X, c.Y, c.Z} {
		if axis != nil {
			lo[d], hi[d] = net.Extent(axis)
		}
	}
	return lo, hi
}
