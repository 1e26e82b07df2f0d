//go:build !amd64

package kernel

// No level but Portable is ever detected here.

func softFill22AVX512(x, y, z, table *float64, n, blocks int, values *float64, index, ends *int32, hashes *uint64, stored int, scale, cut float64) int {
	panic("kernel: no vector unit")
}

func softFill23AVX512(x, y, z, table *float64, n, blocks int, values *float64, index, ends *int32, hashes *uint64, stored int, scale, cut float64) int {
	panic("kernel: no vector unit")
}

func softFill33AVX512(x, y, z, table *float64, n, blocks int, values *float64, index, ends *int32, hashes *uint64, stored int, scale, cut float64) int {
	panic("kernel: no vector unit")
}

func softFill34AVX512(x, y, z, table *float64, n, blocks int, values *float64, index, ends *int32, hashes *uint64, stored int, scale, cut float64) int {
	panic("kernel: no vector unit")
}

func softPush22AVX512(x, y, z, table *float64, n int, values *float64, index, bounds, rows *int32, q, a, gx, gy, gz *float64) {
	panic("kernel: no vector unit")
}

func softPush23AVX512(x, y, z, table *float64, n int, values *float64, index, bounds, rows *int32, q, a, gx, gy, gz *float64) {
	panic("kernel: no vector unit")
}

func softPush33AVX512(x, y, z, table *float64, n int, values *float64, index, bounds, rows *int32, q, a, gx, gy, gz *float64) {
	panic("kernel: no vector unit")
}

func softPush34AVX512(x, y, z, table *float64, n int, values *float64, index, bounds, rows *int32, q, a, gx, gy, gz *float64) {
	panic("kernel: no vector unit")
}

func softStepAVX512(values *float64, index, bounds *int32, weights *float64, n int, q, sums, a *float64, floor float64) {
	panic("kernel: no vector unit")
}
