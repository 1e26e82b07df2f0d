package kernel

import "unsafe"

//go:generate go run -C gen ./finite -out ../finite_amd64.s -stubs ../finite_amd64.go -pkg kernel

// Finite reports whether all values of v are finite. Cost: one read of v.
func Finite[T float32 | float64](v []T) bool {
	if level == AVX512 && len(v) >= 16 {
		n := finiteBlocks(v)
		if n < 0 {
			return false
		}
		v = v[n:]
	}
	return finite(v)
}

// finite is the portable form of Finite. v-v is 0 for finite v and NaN otherwise, and
// NaN survives every addition, so no value needs a branch. With four sums an addition
// does not wait for the one before.
func finite[T float32 | float64](v []T) bool {
	var a, b, c, d T
	for ; len(v) >= 4; v = v[4:] {
		a += v[0] - v[0]
		b += v[1] - v[1]
		c += v[2] - v[2]
		d += v[3] - v[3]
	}
	for _, w := range v {
		a += w - w
	}
	return a+b+c+d == 0
}

// finiteBlocks examines all whole blocks of 64 bytes of v. It returns the number of
// values in them, or -1 if one of these is not finite.
func finiteBlocks[T float32 | float64](v []T) int {
	each := 64 / int(unsafe.Sizeof(v[0]))
	blocks := len(v) / each
	ok := false
	switch p := any(&v[0]).(type) {
	case *float32:
		ok = finite32AVX512(p, blocks)
	case *float64:
		ok = finite64AVX512(p, blocks)
	}
	if !ok {
		return -1
	}
	return blocks * each
}
