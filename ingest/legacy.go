package ingest

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"io"
	"time"
)

// Logs written before Kafka 0.11, or copied from such, hold message sets of
// version 0 or 1. An entry is
//
//	 0 offset     int64
//	 8 size       int32   of what follows
//	12 CRC-32     uint32  (IEEE) of what follows
//	16 magic      int8    0 or 1
//	17 attributes int8    bits 0-2 codec, 3 LogAppendTime
//	18 timestamp  int64   version 1 only
//	.. key, value int32 length and bytes each; -1 is null
//
// The value of a compressed entry is a set of entries; the outer offset is that
// of the last. Inner offsets are absolute in version 0, and relative in 1.

// legacyEntry is one entry, its key and value still in the bytes it came in.
type legacyEntry struct {
	offset, time int64
	magic        byte
	attributes   byte
	key, value   []byte
}

// legacy reads one entry of the record set, size bytes long.
func (d *decoder) legacy(size int64) error {
	head, err := d.r.Peek(magicAt + 1)
	if err != nil {
		return err
	}
	switch last := int64(binary.BigEndian.Uint64(head)); {
	case size < 26 || last < 0:
		return corrupt("an entry of %d bytes at offset %d", size, last)
	case last < d.from:
		return d.discard(size)
	case size > d.maxValue+recordSlack:
		return corrupt("an entry of %d bytes in the format of version %d", size, head[magicAt])
	}
	buf := d.arena.alloc(int(size), 0, 8)
	if _, err := io.ReadFull(d.r, buf); err != nil {
		return err
	}
	d.left -= size
	entries, err := d.legacyEntries(buf)
	if err != nil {
		return err
	}
	for i := range entries {
		if d.legacyEmit(&entries[i]); d.out.full {
			break
		}
	}
	return nil
}

// legacyEntries returns the entry in b, or those that it wraps.
func (d *decoder) legacyEntries(b []byte) ([]legacyEntry, error) {
	outer, _, err := parseLegacy(b)
	if err != nil {
		return nil, err
	}
	codec := int8(outer.attributes & 7)
	if codec == 0 {
		return []legacyEntry{outer}, nil
	}
	inflated, err := d.inflateLegacy(codec, outer.value)
	if err != nil {
		return nil, err
	}
	var inner []legacyEntry
	for len(inflated) > 0 {
		e, n, err := parseLegacy(inflated)
		if err != nil {
			return nil, err
		}
		if e.attributes&7 != 0 {
			return nil, corrupt("compressed entries within a compressed entry")
		}
		if outer.attributes&(1<<3) != 0 {
			e.time = outer.time
		}
		inner, inflated = append(inner, e), inflated[n:]
	}
	if n := len(inner); outer.magic == 1 && n > 0 {
		for shift, i := outer.offset-inner[n-1].offset, 0; i < n; i++ {
			inner[i].offset += shift
		}
	}
	return inner, nil
}

// inflateLegacy inflates a whole set: the offset of its first entry depends on
// that of its last.
func (d *decoder) inflateLegacy(codec int8, b []byte) (out []byte, err error) {
	limit := d.maxValue + recordSlack
	err = d.codecs.open(codec, b, func(r *bufio.Reader) (err error) {
		out, err = io.ReadAll(io.LimitReader(r, limit+1))
		return err
	})
	if int64(len(out)) > limit {
		return nil, corrupt("an entry in an old format that inflates to more than %d bytes", limit)
	}
	d.out.extra += int64(len(out))
	return out, err
}

func (d *decoder) legacyEmit(e *legacyEntry) {
	if e.offset >= d.limit {
		d.stop(d.limit)
		return
	}
	if e.offset < d.out.next {
		return
	}
	d.emit(&batch{}, record{time: e.time, key: e.key, value: e.value}, e.offset)
}

// parseLegacy reads the entry at the start of b and returns its length.
func parseLegacy(b []byte) (e legacyEntry, n int, err error) {
	be := binary.BigEndian
	if len(b) < 26 {
		return e, 0, corrupt("an entry of %d bytes", len(b))
	}
	size := int64(int32(be.Uint32(b[8:]))) + 12
	if size < 26 || size > int64(len(b)) {
		return e, 0, corrupt("an entry of %d bytes in %d", size, len(b))
	}
	if got, want := crc32.ChecksumIEEE(b[16:size]), be.Uint32(b[12:]); got != want {
		return e, 0, corrupt("its checksum is %08x, not %08x", got, want)
	}
	e = legacyEntry{offset: int64(be.Uint64(b)), magic: b[magicAt], attributes: b[17], time: time.Time{}.UnixMilli()}
	rest := b[18:size]
	if e.magic > 1 || e.magic == 1 && len(rest) < 8 {
		return e, 0, corrupt("an entry of version %d", e.magic)
	}
	if e.magic == 1 {
		e.time, rest = int64(be.Uint64(rest)), rest[8:]
	}
	for _, field := range []*[]byte{&e.key, &e.value} {
		if len(rest) < 4 {
			return e, 0, corrupt("an entry that ends within a length")
		}
		l := int64(int32(be.Uint32(rest)))
		if rest = rest[4:]; l < -1 || l > int64(len(rest)) {
			return e, 0, corrupt("%d bytes in an entry that has %d left", l, len(rest))
		}
		if l >= 0 {
			*field, rest = rest[:l:l], rest[l:]
		}
	}
	return e, int(size), nil
}
