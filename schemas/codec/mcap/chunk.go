package mcap

import (
	"bytes"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"entropipe/schemas/codec"
)

// chunkHead are the fields of a chunk before its records.
type chunkHead struct {
	size        uint64 // bytes of the records
	crc         uint32 // the records'; 0: not given
	compression string
	packed      []byte // compressed records
	length      uint64 // declared length of packed
}

// readChunk reads the content of a chunk. ok is false if the fields are not all there.
func readChunk(content []byte) (h chunkHead, ok bool) {
	in := cursor{b: content}
	in.take(16) // times of the first and the last message
	h = chunkHead{size: in.u64(), crc: in.u32(), compression: in.text(), length: in.u64()}
	h.packed = in.b
	return h, !in.bad
}

// chunk makes the records of a whole chunk the next ones.
func (r *Reader) chunk() error {
	h, ok := readChunk(r.content)
	if !ok || h.length != uint64(len(h.packed)) {
		return r.fault(codec.Corrupt, "the chunk's fields do not fit into its %d bytes", len(r.content))
	}
	if limit := orDefault(r.MaxChunk, DefaultMaxChunk); h.size > uint64(limit) {
		return r.fault(codec.TooLarge, "the chunk's records take %d bytes, more than the limit of %d", h.size, limit)
	}
	records, err := r.unpack(&h)
	if err == errUnknown {
		return r.fault(codec.Unsupported, "the chunk's compression is %.40q; zstd, lz4 and none are known",
			h.compression)
	}
	if err != nil {
		return r.fault(codec.Corrupt, "the chunk cannot be decompressed (%s): %v", h.compression, err)
	}
	if uint64(len(records)) != h.size {
		return r.fault(codec.Corrupt, "the chunk's records take %d bytes instead of %d", len(records), h.size)
	}
	if crc := crc32.ChecksumIEEE(records); h.crc != 0 && crc != h.crc {
		return r.fault(codec.Corrupt, "the checksum of the chunk is %08x instead of %08x", crc, h.crc)
	}
	r.plain, r.inner = records, records
	return nil
}

// partChunk makes the records of a chunk the next ones as far as the file holds them. Their
// checksum cannot be checked.
func (r *Reader) partChunk() {
	h, ok := readChunk(r.content)
	if !ok || h.size > uint64(orDefault(r.MaxChunk, DefaultMaxChunk)) {
		return
	}
	records, _ := r.unpack(&h)
	if uint64(len(records)) > h.size {
		return
	}
	r.plain, r.inner = records, records
	r.done, r.partial = len(records) == 0, len(records) > 0
}

// unpack returns the decompressed records. With an error they are those before the fault.
func (r *Reader) unpack(h *chunkHead) ([]byte, error) {
	switch h.compression {
	case None:
		return h.packed, nil
	case LZ4:
		if h.crc != 0 && h.length == uint64(len(h.packed)) && h.size <= 256*h.length {
			r.unpacked = grow(r.unpacked[:0], int(h.size))
			if n := unpackLZ4(r.unpacked[:h.size], h.packed); n == int(h.size) {
				return r.unpacked[:n], nil
			}
		}
		if r.lz4 == nil {
			r.lz4 = lz4.NewReader(nil)
		}
		r.lz4.Reset(bytes.NewReader(h.packed))
		return r.drain(r.lz4, h)
	case Zstd:
		if r.zstd == nil || h.crc == 0 && r.unsummed {
			var err error
			r.unsummed = h.crc != 0 // the sum of the chunk is that of the records, too
			r.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxMemory(uint64(max(orDefault(r.MaxChunk, DefaultMaxChunk), 1<<20))),
				zstd.WithDecodeAllCapLimit(true), zstd.IgnoreChecksum(r.unsummed))
			if err != nil {
				return nil, err
			}
		}
		if h.size <= 64*h.length+1<<20 && h.length == uint64(len(h.packed)) {
			r.unpacked = grow(r.unpacked[:0], int(h.size))
			return r.zstd.DecodeAll(h.packed, r.unpacked[:0:h.size])
		}
		if err := r.zstd.Reset(bytes.NewReader(h.packed)); err != nil {
			return nil, err
		}
		return r.drain(r.zstd, h)
	}
	return nil, errUnknown
}

// drain reads in to its end, in memory that grows with the bytes that come.
func (r *Reader) drain(in io.Reader, h *chunkHead) ([]byte, error) {
	r.unpacked = r.unpacked[:0]
	if h.size <= 64*h.length+1<<20 {
		r.unpacked = grow(r.unpacked, int(min(h.size, 64*uint64(len(h.packed))+1<<20)))
	}
	for {
		if uint64(len(r.unpacked)) > h.size {
			return r.unpacked, errMore
		}
		room := min(max(64<<10, uint64(len(r.unpacked))), h.size+1-uint64(len(r.unpacked)))
		r.unpacked = grow(r.unpacked, int(room))
		free := r.unpacked[len(r.unpacked):cap(r.unpacked)]
		n, err := in.Read(free[:min(uint64(len(free)), h.size+1-uint64(len(r.unpacked)))])
		r.unpacked = r.unpacked[:len(r.unpacked)+n]
		if err == io.EOF {
			return r.unpacked, nil
		}
		if err != nil {
			return r.unpacked, err
		}
	}
}
