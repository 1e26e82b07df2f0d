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

// Moments adds Σ(x-center) to sum and Σ(x-center)² to square, for each column of x
// [n][d], over the rows in ascending order. A center near the column's mean (its
// first number, or the mean of the previous batch) prevents cancellation in the
// variance square/n-(sum/n)². The sums are float32: use separate sums for tiles of
// some hundred rows, and add them in float64 in the order of the tiles.
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

// ReLUBackward sets the numbers of d to 0 where h, the result of ReLU, is not
// positive, and then adds Σd to sum and Σd·(z-center) to dot, for each column, over
// the rows in ascending order. sum is the gradient of beta; dot, with the mean as
// center and divided by √(variance+eps), is the gradient of gamma. As for Moments,
// tiles need separate sums.
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

// NormBackward replaces d by a·d+b·(z-center)+c, with one a, b, c and center a
// column. With f = 1/√(variance+eps), a = gamma·f, b = -gamma·f³·dot/n,
// c = -gamma·f·sum/n and the sums of ReLUBackward, it is the gradient of the input
// of batch normalisation.
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

// ColumnMax raises best [d] to the largest number of each column of x [n][d], and
// where it raises best, sets at [d] to first + the row of that number. Among equal
// numbers the first row wins, so that calls for tiles in ascending order give the
// result of a single call. Start with best at -infinity. at may be nil.
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

// stripArgs holds the arguments of the generated kernels, which read them by
// offset.
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
