package mat

import (
	"math"
	"sync"
	"unsafe"
)

//go:generate go run -C gen ./product -pairs -out ../pairs_amd64.s -stubs ../pairs_amd64.go -pkg mat

// bf16 is the upper half of a float32: its range, with 8 bits of precision
// instead of 24.

// HasBF16 reports whether products of rounded weights (Weights.Round) use the
// CPU's instruction for pairs of bf16, at the level in use. They then take half of
// the time of float32. Without the instruction, products of many rows take as long
// as with float32, and products of a single row, which wait for memory, less.
func HasBF16() bool { return level == AVX512 && hasBF16 }

var hasBF16 = detectBF16()

// Round rounds the weights to bf16: each to the nearest number with 8 significant
// bits, and to the even one of two equally near. The weights then take half of the
// memory, and Mul rounds the numbers of a in the same way when it reads them;
// products and sums stay float32. Weights stay rounded until the next Pack or
// PackT; a second Round changes nothing. Numbers above 3.39e38 become infinite.
// Cost: about that of Pack.
//
// A rounded product differs from the product of the numbers before rounding by
// at most (2⁻⁷+2⁻¹⁶+k·2⁻²³)·Σ|a||w|+k·2⁻¹²⁵ to first order, where k is the number
// of w's rows. If rounding errors are random, the difference is closer to
// 2⁻⁹·√Σ(aw)².
//
// Portable Go defines the meaning: sums of the products of rounded numbers, in
// the parts and the order of Mul. AVX2 and AVX512 compute the same with one
// rounding a product. The instruction (HasBF16) adds the two products of a pair in
// its own order and takes numbers below 2⁻¹²⁶ as zero, so that the last bits of a
// float32 differ; the bound above holds for all. Batch invariance holds for each:
// the bits of a row depend on that row, on the weights, and on the instructions of
// the CPU.
func (w *Weights) Round() {
	if w.rounded {
		return
	}
	deep := pairsOf(w.k)
	w.pairs = make([]uint32, deep*((w.n+panel-1)/panel*panel))
	for j := 0; j < w.n; j += band {
		from, wide := w.bandAt(j)
		to := w.pairs[j*deep : (j+wide)*deep]
		for i := range w.k {
			shift := 16 * (i & 1)
			for q, x := range from[i*wide : (i+1)*wide] {
				to[i/2*wide+q] |= upper(x) >> 16 << shift
			}
		}
	}
	w.bands, w.rounded = nil, true
}

// pairsOf returns the number of pairs of k numbers, ⌈k/2⌉.
func pairsOf(k int) int { return (k + 1) / 2 }

// upper returns x rounded to bf16, as the bits of a float32. The NaNs that
// arithmetic gives (0x7fc00000, 0xffc00000) stay NaN. Files of weights hold no
// NaN, so upper has no branch for NaNs with other bits.
func upper(x float32) uint32 {
	b := math.Float32bits(x)
	return (b + 0x7fff + b>>16&1) &^ 0xffff
}

// pairsAt is bandAt for rounded weights. For each two rows a band holds the pairs
// of its columns, with the first row in the lower half. AVX512_BF16 multiplies this
// form, and AMX could load its tiles from it (16 columns of 16 rows of pairs, a
// band's width apart). This package does not use AMX.
func (w *Weights) pairsAt(j int) (b []uint32, wide int) {
	deep := pairsOf(w.k)
	wide = min(band, (w.n-j+panel-1)/panel*panel)
	return w.pairs[j*deep : (j+wide)*deep], wide
}

// roundedRows holds rows of a as the kernels read them: as pairs of bf16 for the
// CPU's instruction, and as bits of float32 for the other kernels.
type roundedRows struct {
	data   []uint32
	stride int
	each   int // elements of data for a pair of columns: 1 or 2
}

// roundings is memory of roundedRows, for any number of goroutines.
var roundings = sync.Pool{New: func() any { return new(roundedRows) }}

// roundRows rounds a. free returns the memory to the pool.
func roundRows(a Matrix) *roundedRows {
	r := roundings.Get().(*roundedRows)
	r.each = 2
	if HasBF16() {
		r.each = 1
	}
	const line = 16
	r.stride = (r.each*pairsOf(a.Cols) + line - 1) / line * line
	if size := a.Rows * r.stride; cap(r.data) < size {
		r.data = make([]uint32, size)
	} else {
		r.data = r.data[:size]
	}
	if a.Cols == 0 {
		return r
	}
	for i := range a.Rows {
		r.round(r.data[i*r.stride:(i+1)*r.stride], a.Row(i))
	}
	return r
}

// round rounds one row.
func (r *roundedRows) round(dst []uint32, src []float32) {
	if r.each == 1 {
		roundPairs(&dst[0], &src[0], len(src))
		return
	}
	if len(src)%2 != 0 {
		dst[len(src)] = 0
	}
	switch level {
	case AVX512:
		roundAVX512(&dst[0], &src[0], len(src))
	case AVX2:
		roundAVX2(&dst[0], &src[0], len(src))
	default:
		for i, x := range src {
			dst[i] = upper(x)
		}
	}
}

func (r *roundedRows) free() { roundings.Put(r) }

// mulPairs is mulVector for rounded weights; part.deep counts pairs.
func (w *Weights) mulPairs(dst Matrix, a *roundedRows, part part) {
	if level == Portable {
		w.mulPairsPortable(dst, a, part)
		return
	}
	deep, wide := part.deep, part.wide
	b, step := w.pairsAt(wide[0])
	b = b[deep[0]*step:]
	args := part.args(dst)
	args.a, args.aStride, args.bStride = startOfPairs(a.data, a.each*deep[0]), 4*a.stride, 4*step
	if dst.Rows >= fetchRows {
		next := wide[0]*pairsOf(w.k) + deep[1]*step
		args.ahead = fetching(w.pairs, next, next+depth*step)
	}
	for j := wide[0]; j < wide[1]; {
		n := min(mulPanels(), (wide[1]-j+panel-1)/panel)
		args.b = startOfPairs(b, j-wide[0])
		part.at(&args, dst, j, min(n*panel, wide[1]-j))
		mulPairPanelsOf(n, &args)
		j += n * panel
	}
}

// startOfPairs is start for numbers that the kernels read as pairs.
func startOfPairs(v []uint32, i int) *float32 {
	if i >= len(v) {
		return nil
	}
	return (*float32)(unsafe.Pointer(&v[i]))
}

func mulPairPanelsOf(n int, args *productArgs) {
	p := (*byte)(unsafe.Pointer(args))
	if HasBF16() {
		switch n {
		case 1:
			mul1BF16(p)
		case 2:
			mul2BF16(p)
		case 3:
			mul3BF16(p)
		default:
			mul4BF16(p)
		}
		return
	}
	switch {
	case level == AVX2 && args.whole:
		mulWholeSplitAVX2(p)
	case level == AVX2:
		mulPartSplitAVX2(p)
	case n == 1:
		mul1SplitAVX512(p)
	case n == 2:
		mul2SplitAVX512(p)
	case n == 3:
		mul3SplitAVX512(p)
	default:
		mul4SplitAVX512(p)
	}
}

func (w *Weights) mulPairsPortable(dst Matrix, a *roundedRows, part part) {
	deep, wide := part.deep, part.wide
	b, step := w.pairsAt(wide[0])
	for i := range dst.Rows {
		x := a.data[i*a.stride+2*deep[0] : i*a.stride+2*deep[1]]
		for j := wide[0]; j < wide[1]; j += panel {
			out := dst.Data[i*dst.Stride+j : i*dst.Stride+min(j+panel, wide[1])]
			var sum [panel]float32
			for p := range deep[1] - deep[0] {
				even, odd := math.Float32frombits(x[2*p]), math.Float32frombits(x[2*p+1])
				r := (*[panel]uint32)(b[(deep[0]+p)*step+j-wide[0]:])
				for q, pair := range r {
					sum[q] += float32(even * math.Float32frombits(pair<<16))
					sum[q] += float32(odd * math.Float32frombits(pair&^0xffff))
				}
			}
			for q := range out {
				out[q] = part.number(sum[q], out[q], i, j+q)
			}
		}
	}
}
