package replay

import "math"

// The street of the synthetic LiDAR: endless, along x, made of cells whose
// content depends on the seed and the cell's number alone. The sensor drives
// in the lane at y = 0; z counts from the sensor, so the ground is at
// groundZ. Lengths are metres, times seconds.

const (
	groundZ   = -1.73 // height of the roof of KITTI's car
	maxRange  = 120
	cellSize  = 20
	roadY     = 1.75 // middle of the road
	egoSpeed  = 10
	oncoming  = 12 // speed of the traffic in the other lane
	spacing   = 35 // distance between its cars
	cellsView = int64(maxRange/cellSize) + 1
)

// material says how a surface sends light back.
type material struct {
	reflectance uint8 // in hundredths
	loss        uint8 // part of returns lost, in 1/256
}

// solid is a box, or an upright cylinder where hy is 0, as the sensor sees it.
type solid struct {
	cx, cy float64 // centre
	ux, uy float64 // heading, a unit vector
	hx, hy float64 // half the length and width; of a cylinder: hx is the radius
	z0, z1 float64
	reach  float64 // radius of the circle around it
	material
}

// pose is where the sensor stands at one moment, and where it looks.
type pose struct {
	t, x, y  float64
	sin, cos float64 // sine and cosine of the yaw
}

// poseAt returns the pose of a frame: straight on, with a slow sway.
func poseAt(frame int64) pose {
	t := float64(frame) / 10
	sway, _ := sincos(float64(math.Mod(t, 20) * (2 * math.Pi / 20)))
	p := pose{t: t, x: float64(egoSpeed * t), y: float64(0.3 * sway)}
	p.sin, p.cos = sincos(float64(0.03 * sway))
	return p
}

// street collects the solids that can be seen from a pose.
type street struct {
	seed   uint64
	pose   pose
	solids []solid
}

// look fills s.solids with what is within range of p.
func (s *street) look(p pose) {
	s.pose, s.solids = p, s.solids[:0]
	here := int64(math.Floor(p.x / cellSize))
	for c := here - cellsView; c <= here+cellsView; c++ {
		s.cell(c)
	}
	s.traffic()
}

// place adds a solid of the world: o's centre and heading are turned into the
// sensor's frame.
func (s *street) place(o solid) {
	p := &s.pose
	dx, dy := o.cx-p.x, o.cy-p.y
	o.cx = float64(dx*p.cos) + float64(dy*p.sin)
	o.cy = float64(dy*p.cos) - float64(dx*p.sin)
	o.ux, o.uy = float64(o.ux*p.cos)+float64(o.uy*p.sin), float64(o.uy*p.cos)-float64(o.ux*p.sin)
	o.reach = math.Sqrt(float64(o.hx*o.hx) + float64(o.hy*o.hy))
	if far := maxRange + o.reach; float64(o.cx*o.cx)+float64(o.cy*o.cy) < float64(far*far) {
		s.solids = append(s.solids, o)
	}
}

// box adds an upright box that stands on the ground.
func (s *street) box(x, y, yaw float64, size [3]float64, m material) {
	sin, cos := sincos(yaw)
	s.place(solid{cx: x, cy: y, ux: cos, uy: sin, hx: size[0] / 2, hy: size[1] / 2, z0: groundZ,
		z1: groundZ + size[2], material: m})
}

// post adds a cylinder that stands on the ground.
func (s *street) post(x, y, radius, height float64, m material) {
	s.place(solid{cx: x, cy: y, ux: 1, hx: radius, z0: groundZ, z1: groundZ + height, material: m})
}

// cell adds what stands in cell c, on both sides of the road.
func (s *street) cell(c int64) {
	r := newRandom(s.seed, 1, c)
	x := float64(c) * cellSize
	for _, side := range [2]float64{-1, 1} {
		s.buildings(&r, x, side)
		s.kerb(&r, x, side)
	}
}

// buildings adds a house, perhaps with a hedge before it.
func (s *street) buildings(r *random, x, side float64) {
	if r.chance(0.8) {
		size := [3]float64{r.between(8, 18), r.between(8, 12), r.between(4, 12)}
		front := r.between(10, 14)
		wall := material{reflectance: uint8(r.between(20, 45)), loss: 6}
		s.box(x+cellSize/2, roadY+float64(side*(front+size[1]/2)), r.between(-0.02, 0.02), size, wall)
	}
	if r.chance(0.4) {
		size := [3]float64{r.between(5, 15), r.between(0.5, 1), r.between(0.8, 1.6)}
		s.box(x+cellSize/2, roadY+float64(side*8.8), 0, size, material{reflectance: 30, loss: 40})
	}
}

// kerb adds parked cars, poles, trees and people.
func (s *street) kerb(r *random, x, side float64) {
	for slot := 5.0; slot < cellSize; slot += 10 {
		if r.chance(0.5) {
			s.car(r, x+slot+r.between(-1, 1), roadY+float64(side*4.9), r.between(-0.04, 0.04))
		}
	}
	if r.chance(0.5) {
		s.post(x+r.between(0, cellSize), roadY+float64(side*6.4), r.between(0.06, 0.15), r.between(4, 9),
			material{reflectance: 60, loss: 4})
	}
	if r.chance(0.4) {
		tx, ty := x+r.between(3, 17), roadY+float64(side*7.2)
		s.post(tx, ty, r.between(0.12, 0.3), 4, material{reflectance: 25, loss: 10})
		crown := solid{cx: tx, cy: ty, ux: 1, hx: r.between(1, 2.2), z0: groundZ + r.between(2.2, 3),
			z1: groundZ + r.between(5, 8)}
		crown.material = material{reflectance: 35, loss: 110}
		s.place(crown)
	}
	if r.chance(0.3) {
		walk, _ := sincos(float64(math.Mod(s.pose.t, 30) * (2 * math.Pi / 30)))
		s.post(x+r.between(4, 16)+float64(3*walk), roadY+float64(side*5.9), 0.28, r.between(1.5, 1.9),
			material{reflectance: 28, loss: 16})
	}
}

// car adds a car as two boxes: body and cabin, whose glass loses returns.
func (s *street) car(r *random, x, y, yaw float64) {
	length, width := r.between(3.8, 4.8), r.between(1.7, 1.9)
	paint := material{reflectance: uint8(r.between(5, 90)), loss: 12}
	s.box(x, y, yaw, [3]float64{length, width, r.between(0.8, 1)}, paint)
	s.box(x, y, yaw, [3]float64{float64(length * 0.5), float64(width * 0.9), r.between(1.4, 1.6)},
		material{reflectance: 8, loss: 90})
}

// traffic adds the cars that move: one before and one behind at our own speed,
// and those that come towards us.
func (s *street) traffic() {
	p := &s.pose
	sway, _ := sincos(float64(math.Mod(p.t, 17) * (2 * math.Pi / 17)))
	r := newRandom(s.seed, 2)
	s.car(&r, p.x+20+float64(4*sway), 0, 0)
	s.car(&r, p.x-18-float64(3*sway), 0, 0)
	moved := float64(oncoming * p.t)
	first := int64(math.Floor((p.x - maxRange + moved) / spacing))
	for j := first; j <= first+2*maxRange/spacing+1; j++ {
		r := newRandom(s.seed, 3, j)
		if at := float64(float64(j)*spacing) - moved + r.between(0, 12); r.chance(0.6) {
			s.car(&r, at, 2*roadY, math.Pi)
		}
	}
}
