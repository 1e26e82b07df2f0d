package mcap

import (
	"encoding/binary"

	"github.com/pierrec/lz4/v4"
)

// unpackLZ4 decompresses an LZ4 frame, which may have any size of blocks, into dst, without
// its checksums, and returns the number of bytes. It returns -1 for whatever is not such a
// frame with nothing behind it, or does not fit: lz4.Reader says what is wrong there.
//
//	magic          04 22 4d 18
//	FLG            bits 7-6: version 1; 5: independent blocks; 4: checksum of each block;
//	               3: size of the content; 2: checksum of the content; 0: dictionary
//	BD             greatest size of a block
//	               8 bytes of size, where FLG says so
//	HC             checksum of the fields before
//	blocks         uint32 size, whose highest bit means not compressed; content; checksum
//	end            uint32 0; checksum of the content
func unpackLZ4(dst, frame []byte) int {
	const blockSums, contentSize, contentSum, dictionary, independent = 1 << 4, 1 << 3, 1 << 2, 1, 1 << 5
	if len(frame) < 7 || binary.LittleEndian.Uint32(frame) != 0x184d2204 || frame[4]>>6 != 1 {
		return -1
	}
	flags := frame[4]
	if flags&dictionary != 0 {
		return -1
	}
	in := cursor{b: frame[6:]}
	if flags&contentSize != 0 {
		in.take(8)
	}
	in.take(1)
	out := 0
	for {
		size := in.u32()
		if in.bad {
			return -1
		}
		if size == 0 {
			break
		}
		block := in.take(uint64(size &^ (1 << 31)))
		if flags&blockSums != 0 {
			in.take(4)
		}
		if in.bad {
			return -1
		}
		if size>>31 != 0 {
			if len(block) > len(dst)-out {
				return -1
			}
			out += copy(dst[out:], block)
			continue
		}
		var dict []byte
		if flags&independent == 0 {
			dict = dst[max(0, out-64<<10):out]
		}
		n, err := lz4.UncompressBlockWithDict(block, dst[out:], dict)
		if err != nil {
			return -1
		}
		out += n
	}
	if flags&contentSum != 0 {
		in.take(4)
	}
	if in.bad || len(in.b) > 0 {
		return -1
	}
	return out
}
