package tables

import (
	"encoding/binary"
	"errors"
	"sync"

	"github.com/klauspost/compress/huff0"
	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
)

// compression is shared by all writers: it holds pools.
var compression = &zstd.Codec{Level: zstd.SpeedFastest}

// planes compresses pages of floats that are split into byte planes. Its output is a frame
// of zstd (RFC 8878), as that of compression.
//
// The planes differ: those of low bits repeat nothing, those of signs and exponents do. The
// search for repetitions takes thrice as long as a Huffman code, and where zstd finds
// nothing, at its fastest level it leaves out the code, too. So the search gets only the
// high planes where a sample says that it saves much. Each of the others is a block of its
// own: literals with a Huffman code of their own, or as they are. In two thirds of the time
// KITTI's coordinates then take 2 % more room than by compression, and intensities of 100
// steps half of it.
type planes struct {
	width    int  // bytes of a float
	optional bool // the page begins with definition levels
}

const (
	blockBytes  = 128 << 10 // most that a block of zstd holds
	planesFrom  = 2048      // bytes of a plane; a shorter one is not worth the 128 bytes of a code
	sampleBytes = 4 << 10
)

func (c *planes) String() string                            { return compression.String() }
func (c *planes) CompressionCodec() format.CompressionCodec { return compression.CompressionCodec() }
func (c *planes) Decode(dst, src []byte) ([]byte, error)    { return compression.Decode(dst, src) }

// Encode writes the frame. It may be called from several goroutines.
func (c *planes) Encode(dst, src []byte) ([]byte, error) {
	levels := 0
	if c.optional {
		levels = 4 + int(binary.LittleEndian.Uint32(src))
	}
	each := (len(src) - levels) / c.width
	if each < planesFrom {
		return compression.Encode(dst, src)
	}
	f := frames.Get().(*frame)
	defer frames.Put(f)
	f.out = dst[:0]
	f.begin(len(src))
	f.stored(src[:levels])
	values := src[levels:]
	searched, even := f.judge(values, each)
	for p := range searched {
		plane := values[p*each : (p+1)*each]
		if even[p] {
			f.stored(plane)
		} else if err := f.huffman(plane); err != nil {
			return nil, err
		}
	}
	if err := f.search(values[searched*each:]); err != nil {
		return nil, err
	}
	f.end()
	dst, f.out = f.out, nil
	return dst, nil
}

var frames = sync.Pool{New: func() any {
	return &frame{huff: huff0.Scratch{Reuse: huff0.ReusePolicyNone}}
}}

// frame is a frame of zstd under way.
type frame struct {
	out    []byte
	last   int // header of the last block
	huff   huff0.Scratch
	made   []byte // a frame of compression
	sample []byte
}

const (
	magicBytes = 0xFD2FB528
	// The descriptor of a frame that is its own window, with 4 bytes of its size, and without a
	// checksum and a dictionary.
	descriptor = 2<<6 | 1<<5
	lastBlock  = 1
)

// Types of blocks.
const (
	rawBlock = iota
	repeatedBlock
	compressedBlock
)

func (f *frame) begin(size int) {
	f.out = binary.LittleEndian.AppendUint32(f.out, magicBytes)
	f.out = binary.LittleEndian.AppendUint32(append(f.out, descriptor), uint32(size))
}

// block begins a block.
func (f *frame) block(kind, size int) {
	f.last = len(f.out)
	h := kind<<1 | size<<3
	f.out = append(f.out, byte(h), byte(h>>8), byte(h>>16))
}

// end marks the last block.
func (f *frame) end() { f.out[f.last] |= lastBlock }

// stored appends blocks that are not compressed.
func (f *frame) stored(v []byte) {
	for len(v) > 0 {
		n := min(len(v), blockBytes)
		f.block(rawBlock, n)
		f.out, v = append(f.out, v[:n]...), v[n:]
	}
}

// huffman appends blocks of literals alone.
func (f *frame) huffman(v []byte) error {
	for ; len(v) > 0; v = v[min(len(v), blockBytes):] {
		part := v[:min(len(v), blockBytes)]
		coded, _, err := huff0.Compress4X(part, &f.huff)
		switch {
		case errors.Is(err, huff0.ErrUseRLE):
			f.block(repeatedBlock, len(part))
			f.out = append(f.out, part[0])
		case errors.Is(err, huff0.ErrIncompressible), err == nil && len(coded)+literalsHeader >= len(part):
			f.stored(part)
		case err != nil:
			return err
		default:
			f.block(compressedBlock, literalsHeader+len(coded)+1)
			f.literals(len(part), len(coded))
			f.out = append(append(f.out, coded...), 0) // no sequences follow
		}
	}
	return nil
}

const literalsHeader = 5

// literals appends the header of literals in four streams, with their table.
func (f *frame) literals(size, coded int) {
	const compressed, longSizes = 2, 3 // 18 bits each
	h := uint64(compressed | longSizes<<2 | size<<4 | coded<<22)
	f.out = append(f.out, byte(h), byte(h>>8), byte(h>>16), byte(h>>24), byte(h>>32))
}

// search appends the blocks that compression makes of v. No block before them may have
// sequences: these blocks repeat offsets as if they were the first.
func (f *frame) search(v []byte) (err error) {
	if len(v) == 0 {
		return nil
	}
	if f.made, err = compression.Encode(f.made, v); err != nil {
		return err
	}
	for at := headerBytes(f.made); at < len(f.made); {
		h := int(f.made[at]) | int(f.made[at+1])<<8 | int(f.made[at+2])<<16
		kind, size := h>>1&3, h>>3
		f.block(kind, size)
		if kind == repeatedBlock {
			size = 1
		}
		at += 3
		f.out = append(f.out, f.made[at:at+size]...)
		at += size
	}
	return nil
}

// headerBytes returns the size of a frame's header.
func headerBytes(frame []byte) int {
	d := frame[4]
	own := d >> 5 & 1
	n := 5 + [...]int{0, 1, 2, 4}[d&3] + [...]int{int(own), 2, 4, 8}[d>>6]
	if own == 0 {
		n++ // size of the window
	}
	return n
}

// judge tells by samples how each plane is compressed: from plane searched on by a search for
// repetitions, even planes not at all, and the others by a Huffman code.
func (f *frame) judge(v []byte, each int) (searched int, even [8]bool) {
	searched = len(v) / each
	high := true // all planes above are searched
	for p := searched - 1; p >= 0; p-- {
		sample := f.sampleOf(v[p*each:][:each])
		coded, _, err := huff0.Compress4X(sample, &f.huff)
		left := len(coded)
		if err != nil && !errors.Is(err, huff0.ErrUseRLE) {
			left = len(sample)
		}
		even[p] = left > len(sample)/16*15
		if high = high && f.pays(sample, left); high {
			searched = p
		}
	}
	return searched, even
}

// sampleOf returns a few parts of a plane.
func (f *frame) sampleOf(v []byte) []byte {
	const parts = 4
	if len(v) <= sampleBytes {
		return v
	}
	f.sample = f.sample[:0]
	for i := range parts {
		at := (len(v) - sampleBytes/parts) * i / (parts - 1)
		f.sample = append(f.sample, v[at:at+sampleBytes/parts]...)
	}
	return f.sample
}

// pays tells whether a search for repetitions saves a quarter of what the Huffman code leaves
// of a sample. It does in a plane of one byte, of which the code leaves nothing.
func (f *frame) pays(sample []byte, left int) bool {
	made, err := compression.Encode(f.made, sample)
	if err != nil {
		return false
	}
	f.made = made
	return left == 0 || len(made)-headerBytes(made) < left/4*3
}
