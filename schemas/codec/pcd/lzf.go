package pcd

const (
	maxLiteral = 32  // bytes that one literal run gives at most
	maxRun     = 264 // bytes that one reference, of three bytes, gives at most
	shortRun   = 16  // most references give fewer; they are copied in one piece
)

// unpackLZF fills dst with the content of src. It returns -1, or the position in src of a
// fault: a run that ends outside of src or dst, a reference to bytes before dst, and a src
// that does not fill dst.
func unpackLZF(dst, src []byte) int {
	from, to := 0, 0
	for from < len(src) {
		at, control := from, int(src[from])
		from++
		if control < maxLiteral {
			n := control + 1
			if n > len(src)-from || n > len(dst)-to {
				return at
			}
			if len(src)-from >= maxLiteral && len(dst)-to >= maxLiteral { // surplus bytes are overwritten
				*(*[maxLiteral]byte)(dst[to:]) = *(*[maxLiteral]byte)(src[from:])
			} else {
				copy(dst[to:to+n], src[from:])
			}
			from, to = from+n, to+n
			continue
		}
		n := control>>5 + 2
		if n == 9 {
			if from == len(src) {
				return at
			}
			n += int(src[from])
			from++
		}
		if from == len(src) {
			return at
		}
		back := (control&0x1f)<<8 + int(src[from]) + 1
		from++
		if back > to || n > len(dst)-to {
			return at
		}
		if back >= n {
			if n <= shortRun && back >= shortRun && len(dst)-to >= shortRun {
				*(*[shortRun]byte)(dst[to:]) = *(*[shortRun]byte)(dst[to-back:])
			} else {
				copy(dst[to:to+n], dst[to-back:])
			}
			to += n
			continue
		}
		for range n { // the run repeats its own bytes
			dst[to] = dst[to-back]
			to++
		}
	}
	if to != len(dst) {
		return len(src)
	}
	return -1
}
