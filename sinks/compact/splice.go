package compact

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go/format"

	"entropipe/schemas/codec/parquetfile"
	"entropipe/sinks"
	"entropipe/sinks/internal/pairhash"
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
	w     sinks.PairWriter
	sum   *pairhash.Digest // SHA-256 of the source that is added
	at    int64            // bytes written
	start int64            // range of offsets, for the footer
	end   int64

	sources []moved           // whose row groups are written; all have the same Kind
	pairs   []format.KeyValue // of the footer
	columns indexes           // column indexes
	offsets indexes           // offset indexes
	rows    int64
	groups  int
	footers int64 // bytes of the sources' footers

	// What is known of the source that is added, in memory that the next one uses again.
	segments []segment
	held     []byte      // encoded indexes, in the order of the file
	named    [2][][]byte // views of held: column indexes and offset indexes, by column chunk; empty: none
}

// indexes holds encoded indexes, one behind the other.
type indexes struct {
	data  []byte
	sizes []int32 // by column chunk; 0: none
}

// moved is the footer of a source and the place of its chunks in the file.
type moved struct {
	footer  *parquetfile.RawFooter
	shifts  []int64 // of pages, by column chunk
	filters []int64 // of filters, by column chunk; nil: there is none
	chunk   int     // number of its first chunk in the file
	group   int     // number of its first row group
}

// newSplicer begins a file.
func newSplicer(w sinks.PairWriter, start, end int64) *splicer {
	return &splicer{w: w, sum: pairhash.New(), start: start, end: end}
}

// fits tells whether the file may go on with the row groups of s.
func (p *splicer) fits(s *source) bool {
	if len(p.sources) == 0 {
		return true
	}
	chunks := len(p.columns.sizes) + len(s.footer.Chunks)
	return p.sources[0].footer.Kind == s.footer.Kind && chunks <= maxChunks && p.footers+s.footer.Size <= maxFooter &&
		p.groups+s.footer.Groups <= math.MaxInt16
}

// add copies the row groups of s, and compares s with its checksum on the way: after an error the
// file is no good. An error of s is a *SourceError.
func (p *splicer) add(s *source) (err error) {
	if len(p.sources) == 0 {
		if err := p.write([]byte(magic)); err != nil {
			return err
		}
		p.pairs = s.footer.KeyValues
	} else if p.pairs, err = tables.MergeFooters(p.pairs, s.footer.KeyValues); err != nil {
		return s.fault(err)
	}
	if p.segments, err = s.appendSegments(p.segments[:0]); err != nil {
		return s.fault(err)
	}
	p.sum.Reset()
	p.held = p.held[:0]
	sweep := sweep{p: p, segments: p.segments, summed: s.checked}
	if err := s.each(p.sum, sweep.piece); err != nil {
		return err
	}
	if sweep.next < len(p.segments) {
		g := &p.segments[sweep.next]
		err = fmt.Errorf("it ends at byte %d, and its footer names bytes %d to %d: %w", sweep.at, g.from, g.to,
			io.ErrUnexpectedEOF)
	} else {
		err = p.adopt(s)
	}
	if err != nil {
		return s.fault(err)
	}
	return nil
}

func (p *splicer) write(data []byte) error {
	n, err := p.w.Write(data)
	p.at += int64(n)
	return err
}

// adopt takes over the row groups of s, whose segments are written.
func (p *splicer) adopt(s *source) (err error) {
	n := len(s.footer.Chunks)
	m := moved{footer: s.footer, shifts: make([]int64, n), chunk: len(p.columns.sizes), group: p.groups}
	for i := range p.named {
		p.named[i] = slices.Grow(p.named[i][:0], n)[:n]
		clear(p.named[i])
	}
	for i := range p.segments {
		switch g := &p.segments[i]; g.kind {
		case chunkBytes:
			m.shifts[g.place] = g.shift
		case filterBytes:
			if m.filters == nil {
				m.filters = make([]int64, n)
			}
			m.filters[g.place] = g.shift
		case columnIndex, offsetIndex:
			p.named[g.kind-columnIndex][g.place] = p.held[g.held:][:g.to-g.from]
		}
	}
	for place := range n {
		column, offset := p.named[0][place], p.named[1][place]
		p.columns.data = append(p.columns.data, column...)
		p.columns.sizes = append(p.columns.sizes, int32(len(column)))
		before := len(p.offsets.data)
		if len(offset) > 0 {
			p.offsets.data, err = parquetfile.AppendOffsetIndex(p.offsets.data, offset, m.shifts[place])
			if err != nil {
				return err
			}
		}
		p.offsets.sizes = append(p.offsets.sizes, int32(len(p.offsets.data)-before))
	}
	p.sources = append(p.sources, m)
	p.rows += s.footer.Rows
	p.groups += s.footer.Groups
	p.footers += s.footer.Size
	return nil
}

// finish writes the indexes and the footer, and returns the number of rows.
func (p *splicer) finish() (rows int64, err error) {
	columns, err := p.indexes(&p.columns)
	if err != nil {
		return 0, err
	}
	offsets, err := p.indexes(&p.offsets)
	if err != nil {
		return 0, err
	}
	groups := make([]byte, 0, p.footers+p.footers/8)
	for i := range p.sources {
		m := &p.sources[i]
		groups = m.footer.AppendGroups(groups, func(kind parquetfile.NumberKind, owner int, n int64) int64 {
			switch kind {
			case parquetfile.ColumnIndexOffset:
				return columns[m.chunk+owner]
			case parquetfile.ColumnIndexLength:
				return int64(p.columns.sizes[m.chunk+owner])
			case parquetfile.OffsetIndexOffset:
				return offsets[m.chunk+owner]
			case parquetfile.OffsetIndexLength:
				return int64(p.offsets.sizes[m.chunk+owner])
			}
			return m.number(kind, owner, n)
		})
	}
	p.pairs = append(slices.DeleteFunc(slices.Clone(p.pairs),
		func(kv format.KeyValue) bool { return kv.Key == tables.Offsets(0, 0).Key }), tables.Offsets(p.start, p.end))
	footer := p.sources[0].footer.AppendFooter(make([]byte, 0, len(groups)+16<<10), p.rows, p.groups, groups, p.pairs)
	if len(footer) > parquetfile.MaxFooterBytes {
		return 0, fmt.Errorf("a footer of %d bytes", len(footer))
	}
	footer = binary.LittleEndian.AppendUint32(footer, uint32(len(footer)))
	return p.rows, p.write(append(footer, magic...))
}

// number returns a number of a row group or column chunk at its new place.
func (m *moved) number(kind parquetfile.NumberKind, owner int, n int64) int64 {
	switch {
	case kind == parquetfile.GroupOrdinal:
		return int64(m.group + owner)
	case n <= 0 || len(m.shifts) == 0: // there is none
		return n
	case kind == parquetfile.GroupOffset:
		return n + m.shifts[owner*(len(m.shifts)/m.footer.Groups)]
	case kind == parquetfile.FilterOffset && m.filters == nil:
		return 0 // its length is not known, and so it was left out
	case kind == parquetfile.FilterOffset:
		return n + m.filters[owner]
	}
	return n + m.shifts[owner]
}

// indexes writes indexes, and returns where each begins; 0: there is none.
func (p *splicer) indexes(all *indexes) (offsets []int64, err error) {
	offsets = make([]int64, len(all.sizes))
	at := p.at
	for i, size := range all.sizes {
		if size > 0 {
			offsets[i] = at
			at += int64(size)
		}
	}
	return offsets, p.write(all.data)
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
	place    int   // number of the column chunk in its file, by row group
	shift    int64 // distance from its place in the source to that in the result
	held     int   // where an index begins in splicer.held
}

// appendSegments appends what a source's footer names to all, which is empty, by offset. Ranges that
// overlap, or that reach into the footer, are an error.
//
// A filter whose length the footer does not name is left out, as very old writers had it.
func (s *source) appendSegments(all []segment) ([]segment, error) {
	chunks := s.footer.Chunks
	add := func(kind segmentKind, place int, r parquetfile.Range) {
		if r != (parquetfile.Range{}) {
			all = append(all, segment{kind: kind, from: r.From, to: r.To, place: place})
		}
	}
	for i := range chunks {
		all = append(all, segment{kind: chunkBytes, from: chunks[i].Pages.From, to: chunks[i].Pages.To, place: i})
		add(filterBytes, i, chunks[i].Filter)
	}
	for i := range chunks {
		add(columnIndex, i, chunks[i].ColumnIndex)
	}
	for i := range chunks {
		add(offsetIndex, i, chunks[i].OffsetIndex)
	}
	byOffset := func(a, b segment) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) }
	if !slices.IsSortedFunc(all, byOffset) {
		slices.SortStableFunc(all, byOffset)
	}
	end := int64(len(magic))
	for i := range all {
		g := &all[i]
		if g.from < end || g.to < g.from || g.to > s.footer.Begin {
			return nil, fmt.Errorf("its footer names bytes %d to %d, which overlap others or the footer", g.from, g.to)
		}
		end = g.to
	}
	return all, nil
}

// sweep passes over the bytes of a source in order: pages and filters go into the result, indexes
// into memory, and all into the sum of the source.
type sweep struct {
	p        *splicer
	segments []segment
	summed   bool  // the source needs no sum
	next     int   // segment that has not ended yet
	at       int64 // bytes seen
}

// piece takes the next bytes of the source. What is contiguous there is one write.
func (w *sweep) piece(data []byte) error {
	begin := w.at
	w.at += int64(len(data))
	from, to := int64(0), int64(0) // bytes of data that are not written yet
	sum := int64(0)                // bytes of data that are in the sum
	flush := func() error {
		if from == to {
			return nil
		}
		if w.summed {
			err := w.p.write(data[from:to])
			from = to
			return err
		}
		n, err := w.p.w.WriteBoth(data[from:to], w.p.sum, data[sum:to])
		w.p.at += int64(n)
		from, sum = to, to
		return err
	}
	for ; w.next < len(w.segments); w.next++ {
		g := &w.segments[w.next]
		if g.from > w.at || g.from == w.at && g.to > g.from {
			break
		}
		a, b := max(g.from, begin)-begin, min(g.to, w.at)-begin
		if g.kind == columnIndex || g.kind == offsetIndex {
			if g.from >= begin {
				g.held = len(w.p.held)
			}
			w.p.held = append(w.p.held, data[a:b]...)
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
	err := flush()
	if !w.summed {
		w.p.sum.Write(data[sum:])
	}
	return err
}
