package mat

import (
	"math"
	"unsafe"
)

//go:generate go run -C gen ./columns -out ../columns_amd64.s -stubs ../columns_amd64.go -pkg mat

// The functions below apply one operation a column to every row: layers of batch
// normalisation (Ioffe and Szegedy 2015), forward and backward, the activations
// beside them, and the pooling of points. Cost: one read of each argument and one
// write of each result.

// Affine sets dst [n][d] to x·scale+shift, with one scale and one shift a column.
// dst may be x. With scale = gamma/√(variance+eps) and shift = beta-mean·scale it
// is batch normalisation; with a scale of ones it adds a bias. It panics if the
// shapes do not fit.
func Affine(dst, x Matrix, scale, shift []float32) {
	affine(dst, x, scale, shift, float32(math.Inf(-1)))
}

// AffineReLU sets dst to max(x·scale+shift, 0). Everything else is as for Affine.
func AffineReLU(dst, x Matrix, scale, shift []float32) {
	affine(dst, x, scale, shift, 0)
}

// affine sets dst to max(x·scale+shift, least).
func affine(dst, x Matrix, scale, shift []float32, least float32) {
	sameShape(dst, x)
	lengths(x.Cols, scale, shift)
	if x.empty() {
		return
	}
	if level > Portable {
		args := strips(dst, x)
		args.columns = [4]*float32{&scale[0], &shift[0]}
		args.extra = math.Float32bits(least)
		if level == AVX512 {
			affineAVX512(args.address())
		} else {
			affineAVX2(args.address())
		}
		return
	}
	for i := range x.Rows {
		in, out := x.Row(i), dst.Row(i)
		for j, v := range in {
			out[j] = max(float32(v*scale[j])+shift[j], least)
		}
	}
}

// Moments adds to sum and square, for each column, Σ(x-center) and
// Σ(x-center)² over the rows in ascending order. A center near the column's
// mean (its first number, or the mean of the batch before) keeps the variance
// square/n-(sum/n)² from cancelling. The sums are float32: give tiles of some
// hundred rows sums of their own, and add those in float64 in the tiles' order.
func Moments(sum, square []float32, x Matrix, center []float32) {
	x.check()
	lengths(x.Cols, sum, square, center)
	if x.empty() {
		return
	}
	if level > Portable {
		args := strips(x)
		args.columns = [4]*float32{&sum[0], &square[0], &center[0]}
		if level == AVX512 {
			momentsAVX512(args.address())
		} else {
			momentsAVX2(args.address())
		}
		return
	}
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			v -= center[j]
			sum[j] += v
			square[j] += float32(v * v)
		}
	}
}

// ReLUBackward clears the numbers of d where h, the ReLU's result, is not
// positive, and adds to sum and dot, for each column, Σd and Σd·(z-center) of
// what remains, over the rows in ascending order: the gradients of beta and,
// with the mean as center and divided by √(variance+eps), of gamma. As with
// Moments, give tiles sums of their own.
func ReLUBackward(d, h, z Matrix, sum, dot, center []float32) {
	sameShape(d, h, z)
	lengths(d.Cols, sum, dot, center)
	if d.empty() {
		return
	}
	if level > Portable {
		args := strips(d, h, z)
		args.columns = [4]*float32{&sum[0], &dot[0], &center[0]}
		if level == AVX512 {
			reluBackwardAVX512(args.address())
		} else {
			reluBackwardAVX2(args.address())
		}
		return
	}
	for i := range d.Rows {
		g, y, x := d.Row(i), h.Row(i), z.Row(i)
		for j := range g {
			if !(y[j] > 0) {
				g[j] = 0
				continue
			}
			sum[j] += g[j]
			dot[j] += float32(g[j] * (x[j] - center[j]))
		}
	}
}

// NormBackward replaces d by a·d+b·(z-center)+c, column by column. It is the
// gradient of batch normalisation's input for f = 1/√(variance+eps),
// a = gamma·f, b = -gamma·f³·dot/n and c = -gamma·f·sum/n, with the sums of
// ReLUBackward.
func NormBackward(d, z Matrix, center, a, b, c []float32) {
	sameShape(d, z)
	lengths(d.Cols, center, a, b, c)
	if d.empty() {
		return
	}
	if level > Portable {
		args := strips(d, z)
		args.columns = [4]*float32{&center[0], &a[0], &b[0], &c[0]}
		if level == AVX512 {
			normBackwardAVX512(args.address())
		} else {
			normBackwardAVX2(args.address())
		}
		return
	}
	for i := range d.Rows {
		g, x := d.Row(i), z.Row(i)
		for j := range g {
			g[j] = float32(a[j]*g[j]) + (float32(b[j]*(x[j]-center[j])) + c[j])
		}
	}
}

// ColumnMax raises best to the largest number of each column and, where it
// does, sets at to the number of its row, counted from first. Of equal ones
// the first row stands, so tiles taken in ascending order give what one call
// gives. Begin with best at -infinity. at may be nil.
func ColumnMax(best []float32, at []int32, x Matrix, first int32) {
	x.check()
	lengths(x.Cols, best)
	if at != nil && len(at) != x.Cols {
		panic(badLength)
	}
	if x.empty() {
		return
	}
	if level > Portable {
		columnMaxVector(best, at, x, first)
		return
	}
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if v > best[j] {
				best[j] = v
				if at != nil {
					at[j] = first + int32(i)
				}
			}
		}
	}
}

func columnMaxVector(best []float32, at []int32, x Matrix, first int32) {
	args := strips(x)
	args.columns[0] = &best[0]
	args.extra = uint32(first)
	if at != nil {
		args.columns[1] = (*float32)(unsafe.Pointer(&at[0]))
	}
	switch {
	case level == AVX512 && at == nil:
		columnMaxAVX512(args.address())
	case level == AVX512:
		columnMaxAtAVX512(args.address())
	case at == nil:
		columnMaxAVX2(args.address())
	default:
		columnMaxAtAVX2(args.address())
	}
}

// stripArgs is what the generated code reads; it knows the offsets.
type stripArgs struct {
	rows, cols int
	matrices   [3]struct {
		data   *float32
		stride int // bytes
	}
	columns [4]*float32 // vectors of a number for each column
	extra   uint32
}

func strips(ms ...Matrix) stripArgs {
	s := stripArgs{rows: ms[0].Rows, cols: ms[0].Cols}
	for i, m := range ms {
		s.matrices[i].data, s.matrices[i].stride = &m.Data[0], 4*m.Stride
	}
	return s
}

func (s *stripArgs) address() *byte { return (*byte)(unsafe.Pointer(s)) }
