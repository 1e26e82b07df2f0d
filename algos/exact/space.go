package exact

import "math"

// Orient3DError bounds the rounding error of the filter of Orient3D, relative
// to its permanent, wherever nothing underflows.
//
// Products of two differences are off by 3ε as in OrientError. A rounded difference
// of two such products is off by 4ε of the sum of their magnitudes. Times a third
// difference, and rounded, it is off by 6ε, and the first of the two additions adds
// ε; the second cannot change the sign. 56ε² covers all terms of second order and
// the rounding of the bound. It is Shewchuk's o3derrboundA.
const Orient3DError = (7 + 56*epsilon) * epsilon

// Orient3DLost bounds the loss of Orient3D's determinant to underflow, while the
// magnitudes of its three differences in z add up to less than Orient3DLimit: each
// product of two differences loses at most half of the least denormal, 2^-1075, two
// products make a minor, and a minor is multiplied by less than the limit.
// Orient3DError times the permanent plus Orient3DLost bounds the whole error, for
// callers with a filter of their own:
//
//	u, v, w = three of the points less the fourth
//	det  = uz·(vx·wy - wx·vy) + vz·(wx·uy - ux·wy) + wz·(ux·vy - vx·uy)
//	perm = the same sum of magnitudes
//	|uz|+|vz|+|wz| < Orient3DLimit and |det| > Orient3DError·perm + Orient3DLost:
//	    the sign of det is right
//
// An overflow makes the comparison false. Every product must be rounded,
// float64(a*b).
const (
	Orient3DLost  = 0x1p-560
	Orient3DLimit = 0x1p+500
)

// SphereError bounds the rounding error of the filter of InSphere, relative to
// its permanent, wherever nothing underflows.
//
// A volume of three points, the sum of three products as in Orient3DError with two
// additions, is off by 8ε. A square is off by 3ε; a squared length, with two
// additions, by 5ε; the product of the two by 14ε. The first of the two levels of
// additions adds ε; the second cannot change the sign. That makes 15ε; the rest
// covers all terms of second order and the rounding of the bound. It is Shewchuk's
// isperrboundA.
const SphereError = (16 + 224*epsilon) * epsilon

// SphereLost bounds the loss of InSphere's determinant to underflow, while its four
// squared lengths add up to less than SphereLimit. No difference then exceeds 2^100.
// A minor loses at most 2^-1074; a volume loses three times that times 2^100 and
// some more, less than 2^-971; a squared length loses 2^-1073. The loss of a volume
// is multiplied by squared lengths below 2^200, the loss of a squared length by
// volumes below 2^303.
const (
	SphereLost  = 0x1p-760
	SphereLimit = 0x1p+200
)

// Orient3D returns the sign of the volume (b - a) × (c - a) · (d - a): +1 when d
// lies on the side of the plane through a, b and c from which the three appear
// counter-clockwise, -1 when d lies on the other side, 0 when the four points are on
// one plane. So for a closed surface whose triangles turn counter-clockwise seen
// from outside, d sees a triangle a, b, c when the sign is +1. It is exact for all
// finite coordinates; for NaN or infinite coordinates the result means nothing.
//
// The sign changes when any two points change places. Cost: 10 ns where the
// filter decides, 30 ns for coplanar points of a grid or of like magnitudes,
// microseconds for the widest spreads.
func Orient3D(ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz float64) int {
	adx, ady, adz := ax-dx, ay-dy, az-dz
	bdx, bdy, bdz := bx-dx, by-dy, bz-dz
	cdx, cdy, cdz := cx-dx, cy-dy, cz-dz
	bc, cb := float64(bdx*cdy), float64(cdx*bdy)
	ca, ac := float64(cdx*ady), float64(adx*cdy)
	ab, ba := float64(adx*bdy), float64(bdx*ady)
	// Seen from d the three turn the other way round, hence the order.
	det := float64(adz*(cb-bc)) + float64(bdz*(ac-ca)) + float64(cdz*(ba-ab))
	al, bl, cl := math.Abs(adz), math.Abs(bdz), math.Abs(cdz)
	permanent := float64(al*(math.Abs(bc)+math.Abs(cb))) +
		float64(bl*(math.Abs(ca)+math.Abs(ac))) +
		float64(cl*(math.Abs(ab)+math.Abs(ba)))
	if al+bl+cl < Orient3DLimit {
		bound := float64(Orient3DError*permanent) + Orient3DLost
		switch {
		case det > bound:
			return 1
		case -det > bound:
			return -1
		}
	}
	return orient3DNarrow(&[12]float64{ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz})
}

// InSphere returns +1 when e lies inside the sphere through a, b, c and d, -1 when e
// lies outside, 0 when e lies on the sphere, where Orient3D of a, b, c, d is +1;
// where Orient3D is -1, it returns the opposite sign. For a, b, c, d on one plane it
// returns the sign of the determinant: 0 when e is on the plane, too, or when the
// four are on one circle or line; otherwise the sign depends on the side of the
// plane on which e lies. It is exact for all finite coordinates; for NaN or infinite
// coordinates the result means nothing.
//
// The sign changes when any two of the five points change places. Cost: 25 ns where
// the filter decides, 50 ns for cospherical points of a grid, 150 ns for cospherical
// points of like magnitudes, tens of microseconds for the widest spreads.
func InSphere(ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz, ex, ey, ez float64) int {
	aex, aey, aez := ax-ex, ay-ey, az-ez
	bex, bey, bez := bx-ex, by-ey, bz-ez
	cex, cey, cez := cx-ex, cy-ey, cz-ez
	dex, dey, dez := dx-ex, dy-ey, dz-ez
	al := float64(aex*aex) + float64(aey*aey) + float64(aez*aez)
	bl := float64(bex*bex) + float64(bey*bey) + float64(bez*bez)
	cl := float64(cex*cex) + float64(cey*cey) + float64(cez*cez)
	dl := float64(dex*dex) + float64(dey*dey) + float64(dez*dez)
	if al+bl+cl+dl < SphereLimit {
		ab, abAbs := minor(aex, aey, bex, bey)
		bc, bcAbs := minor(bex, bey, cex, cey)
		cd, cdAbs := minor(cex, cey, dex, dey)
		da, daAbs := minor(dex, dey, aex, aey)
		ac, acAbs := minor(aex, aey, cex, cey)
		bd, bdAbs := minor(bex, bey, dex, dey)
		abc := float64(aez*bc) - float64(bez*ac) + float64(cez*ab)
		bcd := float64(bez*cd) - float64(cez*bd) + float64(dez*bc)
		cda := float64(cez*da) + float64(dez*ac) + float64(aez*cd)
		dab := float64(dez*ab) + float64(aez*bd) + float64(bez*da)
		det := (float64(al*bcd) - float64(bl*cda)) + (float64(cl*dab) - float64(dl*abc))
		az, bz, cz, dz := math.Abs(aez), math.Abs(bez), math.Abs(cez), math.Abs(dez)
		permanent := float64(al*(float64(bz*cdAbs)+float64(cz*bdAbs)+float64(dz*bcAbs))) +
			float64(bl*(float64(cz*daAbs)+float64(dz*acAbs)+float64(az*cdAbs))) +
			float64(cl*(float64(dz*abAbs)+float64(az*bdAbs)+float64(bz*daAbs))) +
			float64(dl*(float64(az*bcAbs)+float64(bz*acAbs)+float64(cz*abAbs)))
		bound := float64(SphereError*permanent) + SphereLost
		switch {
		case det > bound:
			return 1
		case -det > bound:
			return -1
		}
	}
	return sphereNarrow(&[15]float64{ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz, ex, ey, ez})
}

// minor returns p × q and the sum of the magnitudes of its two products.
func minor(px, py, qx, qy float64) (cross, magnitude float64) {
	l, r := float64(px*qy), float64(qx*py)
	return l - r, math.Abs(l) + math.Abs(r)
}
