package exact

// The wide stage in space. For coordinates of w bits, a difference has w+1 bits, a
// volume 3w+6 and the sum of InSphere 5w+12; with their signs 3w+7 and 5w+13:
// wideBits is enough here, too.

const (
	// orient3DRoom and sphereRoom are the numbers of limbs of scratch for k = 1.
	orient3DRoom = 1 + 9*1 + 2*2 + 2*3
	sphereRoom   = 1 + 12*1 + 2*2 + 2*3 + 2 + 2*5
)

// orient3DWide is Orient3D for any finite coordinates.
func orient3DWide(v *[12]float64) int {
	unit, width := span(v[:])
	switch k := (width + wideBits + 63) / 64; {
	case k <= 2:
		var room [2 * orient3DRoom]uint64
		return orient3DLimbs(v, unit, k, room[:])
	default:
		var room [maxLimbs * orient3DRoom]uint64
		return orient3DLimbs(v, unit, k, room[:])
	}
}

// sphereWide is InSphere for any finite coordinates.
func sphereWide(v *[15]float64) int {
	unit, width := span(v[:])
	switch k := (width + wideBits + 63) / 64; {
	case k <= 2:
		var room [2 * sphereRoom]uint64
		return sphereLimbs(v, unit, k, room[:])
	default:
		var room [maxLimbs * sphereRoom]uint64
		return sphereLimbs(v, unit, k, room[:])
	}
}

// point is a difference of two points.
type point [3]magnitude

// orient3DLimbs returns the sign of Orient3D's determinant, in k limbs a coordinate.
func orient3DLimbs(v *[12]float64, unit, k int, room []uint64) int {
	s := scratch{room}
	t := s.take(k)
	var p [3]point
	for i := range 9 {
		p[i/3][i%3] = s.diff(v[i], v[9+i%3], unit, t)
	}
	w := takeVolumes(&s, k)
	return -sign(w.volume(&p[0], &p[1], &p[2]))
}

// sphereLimbs returns the sign of InSphere's determinant, in k limbs a coordinate.
func sphereLimbs(v *[15]float64, unit, k int, room []uint64) int {
	s := scratch{room}
	t := s.take(k)
	var p [4]point
	for i := range 12 {
		p[i/3][i%3] = s.diff(v[i], v[12+i%3], unit, t)
	}
	w := takeVolumes(&s, k)
	lift, product, sum := s.take(2*k), s.take(5*k), s.take(5*k)
	for i, three := range [4][3]int{{1, 2, 3}, {2, 0, 3}, {3, 0, 1}, {1, 0, 2}} {
		clear(lift)
		for _, c := range p[i] {
			addProduct(lift, w.product2, c, c, plus)
		}
		volume := w.volume(&p[three[0]], &p[three[1]], &p[three[2]])
		negative := sign(volume) < 0
		if negative {
			negate(volume)
		}
		addProduct(sum, product, magnitude{lift, false}, magnitude{volume, negative}, plus)
	}
	return sign(sum)
}

// volumes is the scratch of volumes of points with k limbs a coordinate.
type volumes struct{ product2, minor, product3, sum []uint64 }

func takeVolumes(s *scratch, k int) volumes {
	return volumes{s.take(2 * k), s.take(2 * k), s.take(3 * k), s.take(3 * k)}
}

// volume returns the determinant of rows p, q, r, in memory of w that the next call
// overwrites.
func (w *volumes) volume(p, q, r *point) []uint64 {
	clear(w.sum)
	w.addTerm(p, q, r)
	w.addTerm(q, r, p)
	w.addTerm(r, p, q)
	return w.sum
}

// addTerm adds p's z times the cross product of q and r in x and y.
func (w *volumes) addTerm(p, q, r *point) {
	clear(w.minor)
	addProduct(w.minor, w.product2, q[0], r[1], plus)
	addProduct(w.minor, w.product2, r[0], q[1], minus)
	negative := sign(w.minor) < 0
	if negative {
		negate(w.minor)
	}
	addProduct(w.sum, w.product3, p[2], magnitude{w.minor, negative}, plus)
}
