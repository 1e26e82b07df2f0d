package schemas

import "hash/crc32"

// ShiftCRC returns the CRC-32C sum shifted by n bytes. With it the sum of a whole
// follows from the sums of its parts, without reading their bytes again:
//
//	crc(a+b) = ShiftCRC(crc(a), len(b)) ^ crc(b)
//
// n must not be negative. ShiftCRC takes less than a microsecond for every n.
//
// A sum is a polynomial over GF(2), modulo Castagnoli's; n bytes more multiply
// it by x^8n, which the squares of x give in log n steps. (After zlib's
// crc32_combine, by Mark Adler.)
func ShiftCRC(sum uint32, n int) uint32 {
	for k := 3; n > 0; k++ { // 8n: the bits of n, three places up
		if n&1 != 0 {
			sum = crcMultiply(crcSquares[k], sum)
		}
		n >>= 1
	}
	return sum
}

// crcSquares holds x^(2^k). The highest bit is the coefficient of x^0.
var crcSquares = func() (t [66]uint32) {
	t[0] = 1 << 30
	for k := range t[1:] {
		t[k+1] = crcMultiply(t[k], t[k])
	}
	return t
}()

// crcMultiply returns a*b modulo Castagnoli's polynomial.
func crcMultiply(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		product ^= b & -(a >> 31)
		b = b>>1 ^ crc32.Castagnoli&-(b&1)
	}
	return product
}
