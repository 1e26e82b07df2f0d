package compact

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"entropipe/schemas/codec/parquetfile"
	"entropipe/sinks/tables"
)

// Limits of a spliced file. Readers read the whole footer before the first row.
const (
	maxChunks = 1 << 15  // column chunks: row groups times columns
	maxFooter = 16 << 20 // bytes of the footers of its sources
)

const magic = "PAR1"

// splicer writes one Parquet file from the column chunks of others. It decodes no page: it
// moves bytes, and the numbers in footers and offset indexes that say where these are.
//
//	┌────┬──────────────────────────────┬────────────────┬────────────────┬────────────────┐
//	│PAR1│ column chunks, bloom filters │ column indexes │ offset indexes │ footer         │
//	└────┴──────────────────────────────┴────────────────┴────────────────┴────────────────┘
//	       as they are, in their order    as they are      plus the shift   plus the shift
type splicer struct {
	w     io.Writer
	at    int64 // bytes written
	start int64 // range of offsets, for the footer
	end   int64

	kind    string // schema and page indexes of the sources; all of a file have the same
	meta    format.FileMetaData
	columns [][]byte // column indexes, encoded; empty: none
	offsets [][]byte // offset indexes, encoded; empty: none
	footers int64    // bytes of the sources' footers
}

// newSplicer begins a file.
func newSplicer(w io.Writer, start, end int64) *splicer {
	return &splicer{w: w, start: start, end: end}
}

// fits tells whether the file may go on with the row groups of s.
func (p *splicer) fits(s *source) bool {
	if p.kind == "" {
		return true
	}
	chunks := len(p.columns) + s.chunks()
	return p.kind == s.kind && chunks <= maxChunks && p.footers+s.footer() <= maxFooter &&
		len(p.meta.RowGroups)+len(s.meta.RowGroups) <= math.MaxInt16
}

// add copies the row groups of s.
func (p *splicer) add(s *source) (err error) {
	if p.kind == "" {
		if err := p.write([]byte(magic)); err != nil {
			return err
		}
		p.kind = s.kind
		p.meta = format.FileMetaData{Version: s.meta.Version, Schema: s.meta.Schema, CreatedBy: s.meta.CreatedBy,
			ColumnOrders: s.meta.ColumnOrders, KeyValueMetadata: s.meta.KeyValueMetadata}
	} else if p.meta.KeyValueMetadata, err = tables.MergeFooters(p.meta.KeyValueMetadata,
		s.meta.KeyValueMetadata); err != nil {
		return err
	}
	segments, err := s.segments()
	if err != nil {
		return err
	}
	sweep := sweep{p: p, segments: segments}
	if err := s.each(sweep.piece); err != nil {
		return err
	}
	if sweep.next < len(segments) {
		return fmt.Errorf("it ends at byte %d, and its footer names bytes %d to %d: %w", sweep.at,
			segments[sweep.next].from, segments[sweep.next].to, io.ErrUnexpectedEOF)
	}
	p.footers += s.footer()
	return p.adopt(s, segments)
}

func (p *splicer) write(data []byte) error {
	n, err := p.w.Write(data)
	p.at += int64(n)
	return err
}

// adopt takes over the row groups of s, whose segments are written.
func (p *splicer) adopt(s *source, segments []segment) error {
	for i := range segments {
		g := &segments[i]
		switch g.kind {
		case chunkBytes:
			moveChunk(g.chunk, g.shift)
		case filterBytes:
			g.chunk.MetaData.BloomFilterOffset += g.shift
		}
	}
	first := len(p.columns)
	p.columns = append(p.columns, make([][]byte, s.chunks())...)
	p.offsets = append(p.offsets, make([][]byte, s.chunks())...)
	for i := range segments {
		g := &segments[i]
		switch g.kind {
		case columnIndex:
			p.columns[first+g.place] = g.data
		case offsetIndex:
			moved, err := shiftOffsets(g.data, s.chunkShift(segments, g.place))
			if err != nil {
				return err
			}
			p.offsets[first+g.place] = moved
		}
	}
	for i := range s.meta.RowGroups {
		g := s.meta.RowGroups[i]
		g.Ordinal = int16(len(p.meta.RowGroups))
		if g.FileOffset > 0 && len(g.Columns) > 0 {
			g.FileOffset, _ = parquetfile.ChunkRange(&g.Columns[0].MetaData)
		}
		if len(p.meta.RowGroups) > 0 { // names of columns repeat: one copy stays in memory
			for j := range g.Columns {
				g.Columns[j].MetaData.PathInSchema = p.meta.RowGroups[0].Columns[j].MetaData.PathInSchema
			}
		}
		p.meta.RowGroups = append(p.meta.RowGroups, g)
		p.meta.NumRows += g.NumRows
	}
	return nil
}

// moveChunk adds shift to the offsets of a column chunk's pages.
func moveChunk(c *format.ColumnChunk, shift int64) {
	for _, offset := range []*int64{&c.FileOffset, &c.MetaData.DataPageOffset, &c.MetaData.DictionaryPageOffset,
		&c.MetaData.IndexPageOffset} {
		if *offset > 0 {
			*offset += shift
		}
	}
}

// shiftOffsets returns an offset index whose pages are shift bytes later.
func shiftOffsets(data []byte, shift int64) ([]byte, error) {
	index, err := parquetfile.ReadOffsetIndex(data)
	if err != nil {
		return nil, err
	}
	for i := range index.PageLocations {
		index.PageLocations[i].Offset += shift
	}
	return thrift.Marshal(new(thrift.CompactProtocol), index)
}

// finish writes the indexes and the footer, and returns the number of rows.
func (p *splicer) finish() (rows int64, err error) {
	place := 0
	eachChunk := func(indexes [][]byte, put func(c *format.ColumnChunk, at int64, length int32)) {
		place = 0
		for i := range p.meta.RowGroups {
			for j := range p.meta.RowGroups[i].Columns {
				c, data := &p.meta.RowGroups[i].Columns[j], indexes[place]
				place++
				if len(data) == 0 || err != nil {
					put(c, 0, 0)
					continue
				}
				put(c, p.at, int32(len(data)))
				err = p.write(data)
			}
		}
	}
	eachChunk(p.columns, func(c *format.ColumnChunk, at int64, length int32) {
		c.ColumnIndexOffset, c.ColumnIndexLength = at, length
	})
	eachChunk(p.offsets, func(c *format.ColumnChunk, at int64, length int32) {
		c.OffsetIndexOffset, c.OffsetIndexLength = at, length
	})
	if err != nil {
		return 0, err
	}
	p.meta.KeyValueMetadata = append(slices.DeleteFunc(slices.Clone(p.meta.KeyValueMetadata),
		func(kv format.KeyValue) bool { return kv.Key == tables.Offsets(0, 0).Key }), tables.Offsets(p.start, p.end))
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), &p.meta)
	if err != nil {
		return 0, err
	}
	if len(footer) > parquetfile.MaxFooterBytes {
		return 0, fmt.Errorf("a footer of %d bytes", len(footer))
	}
	footer = binary.LittleEndian.AppendUint32(footer, uint32(len(footer)))
	return p.meta.NumRows, p.write(append(footer, magic...))
}

// segmentKind is what the bytes of a segment are.
type segmentKind int

const (
	chunkBytes segmentKind = iota
	filterBytes
	columnIndex
	offsetIndex
)

// segment is a range of a source's bytes that its footer names.
type segment struct {
	kind     segmentKind
	from, to int64
	chunk    *format.ColumnChunk
	place    int    // number of the column chunk in its file, by row group
	shift    int64  // distance from its place in the source to that in the result
	data     []byte // bytes of an index
}

// segments returns what a source's footer names, by offset. Ranges that overlap, or that reach
// into the footer, are an error.
//
// A filter whose length the footer does not name is left out, as very old writers had it.
func (s *source) segments() ([]segment, error) {
	all := make([]segment, 0, 3*s.chunks())
	place := 0
	for i := range s.meta.RowGroups {
		for j := range s.meta.RowGroups[i].Columns {
			c := &s.meta.RowGroups[i].Columns[j]
			from, to := parquetfile.ChunkRange(&c.MetaData)
			all = append(all, segment{kind: chunkBytes, from: from, to: to, chunk: c, place: place})
			add := func(kind segmentKind, at int64, length int32) {
				if at > 0 && length > 0 {
					all = append(all, segment{kind: kind, from: at, to: at + int64(length), chunk: c, place: place})
				}
			}
			add(columnIndex, c.ColumnIndexOffset, c.ColumnIndexLength)
			add(offsetIndex, c.OffsetIndexOffset, c.OffsetIndexLength)
			if c.MetaData.BloomFilterLength <= 0 {
				c.MetaData.BloomFilterOffset = 0
			}
			add(filterBytes, c.MetaData.BloomFilterOffset, c.MetaData.BloomFilterLength)
			place++
		}
	}
	slices.SortStableFunc(all, func(a, b segment) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	end := int64(len(magic))
	for _, g := range all {
		if g.from < end || g.to < g.from || g.to > s.begin {
			return nil, fmt.Errorf("its footer names bytes %d to %d, which overlap others or the footer", g.from, g.to)
		}
		end = g.to
	}
	return all, nil
}

// chunkShift returns the shift of the pages of a column chunk.
func (s *source) chunkShift(segments []segment, place int) int64 {
	if s.shifts == nil {
		s.shifts = make([]int64, s.chunks())
		for i := range segments {
			if segments[i].kind == chunkBytes {
				s.shifts[segments[i].place] = segments[i].shift
			}
		}
	}
	return s.shifts[place]
}

// sweep passes over the bytes of a source in order: pages and filters go into the result, and
// indexes into memory.
type sweep struct {
	p        *splicer
	segments []segment
	next     int   // segment that has not ended yet
	at       int64 // bytes seen
}

// piece takes the next bytes of the source. What is contiguous there is one write.
func (w *sweep) piece(data []byte) error {
	begin := w.at
	w.at += int64(len(data))
	from, to := int64(0), int64(0) // bytes of data that are not written yet
	flush := func() error {
		if from == to {
			return nil
		}
		err := w.p.write(data[from:to])
		from = to
		return err
	}
	for ; w.next < len(w.segments); w.next++ {
		g := &w.segments[w.next]
		if g.from > w.at || g.from == w.at && g.to > g.from {
			break
		}
		a, b := max(g.from, begin)-begin, min(g.to, w.at)-begin
		if g.kind == columnIndex || g.kind == offsetIndex {
			g.data = append(g.data, data[a:b]...)
		} else {
			if a != to {
				if err := flush(); err != nil {
					return err
				}
				from, to = a, a
			}
			if g.from >= begin {
				g.shift = w.p.at + (to - from) - g.from
			}
			to = b
		}
		if g.to > w.at {
			break
		}
	}
	return flush()
}

// kindOf returns what files must have alike to be spliced: the schema, exactly, and which
// columns have page indexes, since readers take these as one block. An error: the row groups
// of the file itself differ.
func kindOf(m *format.FileMetaData) (string, error) {
	same := format.FileMetaData{Version: m.Version, Schema: m.Schema, ColumnOrders: m.ColumnOrders}
	data, err := thrift.Marshal(new(thrift.CompactProtocol), &same)
	if err != nil {
		return "", err
	}
	var first []byte
	for i := range m.RowGroups {
		var has []byte
		for j := range m.RowGroups[i].Columns {
			c := &m.RowGroups[i].Columns[j]
			flags := byte('0')
			if c.ColumnIndexLength > 0 {
				flags++
			}
			if c.OffsetIndexLength > 0 {
				flags += 2
			}
			has = append(has, flags)
		}
		if first == nil {
			first = has
		} else if !bytes.Equal(first, has) {
			return "", errors.New("its row groups differ in their columns or page indexes")
		}
	}
	return string(append(data, first...)), nil
}
