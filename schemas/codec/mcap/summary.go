package mcap

import (
	"encoding/binary"
	"io"
	"maps"
	"slices"
)

// Summary is what the summary section of a closed file says of its content.
type Summary struct {
	Schemas  []*Schema         // by id
	Channels []*Channel        // by id
	Counts   map[uint16]uint64 // messages of a channel; nil: not given
	Chunks   []int64           // bytes from the begin of the file to the chunks of the index, ascending
}

// maxSummary bounds the bytes of a summary that ReadSummary takes.
const maxSummary = 64 << 20

// ReadSummary reads the summary section of a file of size bytes. It returns nil, and no
// error, for a file that has none: one that was not closed, or whose summary is larger than
// 64 MiB or damaged. A summary is a convenience: the records of the data section decide.
func ReadSummary(in io.ReaderAt, size int64) (*Summary, error) {
	const footer = prefix + 8 + 8 + 4
	tail := int64(footer + len(Magic))
	if size < tail+int64(len(Magic)) {
		return nil, nil
	}
	b := make([]byte, tail)
	if _, err := in.ReadAt(b, size-tail); err != nil {
		return nil, err
	}
	if b[0] != opFooter || binary.LittleEndian.Uint64(b[1:]) != footer-prefix || string(b[footer:]) != Magic {
		return nil, nil
	}
	start := binary.LittleEndian.Uint64(b[prefix:])
	if start < uint64(len(Magic)) || start > uint64(size-tail) || uint64(size-tail)-start > maxSummary {
		return nil, nil
	}
	b = make([]byte, size-tail-int64(start))
	if _, err := in.ReadAt(b, int64(start)); err != nil {
		return nil, err
	}
	return parseSummary(b), nil
}

// parseSummary returns nil for bytes that are no summary.
func parseSummary(b []byte) *Summary {
	var named channels
	s := &Summary{}
	for len(b) > 0 {
		if len(b) < prefix || binary.LittleEndian.Uint64(b[1:]) > uint64(len(b)-prefix) {
			return nil
		}
		op, n := b[0], int(binary.LittleEndian.Uint64(b[1:]))
		content := b[prefix : prefix+n]
		b = b[prefix+n:]
		fault := ""
		switch op {
		case opSchema:
			fault = named.addSchema(content)
		case opChannel:
			fault = named.addChannel(content)
		case opChunkIndex:
			in := cursor{b: content}
			in.take(8 + 8) // times of the first and the last message
			if at := in.u64(); !in.bad && at < 1<<62 {
				s.Chunks = append(s.Chunks, int64(at))
			}
		case opStatistics:
			s.Counts = counts(content)
		}
		if fault != "" {
			return nil
		}
	}
	slices.Sort(s.Chunks)
	for _, id := range slices.Sorted(maps.Keys(named.schemas)) {
		s.Schemas = append(s.Schemas, named.schemas[id])
	}
	for _, id := range slices.Sorted(maps.Keys(named.byID)) {
		s.Channels = append(s.Channels, named.byID[id])
	}
	return s
}

// counts reads the messages of the channels; nil if the record is damaged.
func counts(content []byte) map[uint16]uint64 {
	in := cursor{b: content}
	in.take(8 + 2 + 4 + 4 + 4 + 4 + 8 + 8)
	list := cursor{b: in.take(uint64(in.u32())), bad: in.bad}
	m := map[uint16]uint64{}
	for len(list.b) > 0 {
		id := list.u16()
		m[id] = list.u64()
	}
	if list.bad || in.bad {
		return nil
	}
	return m
}
