package tables

import (
	"encoding/binary"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// parquet-go gives an optional column a buffer of its own around that of its Type. It takes
// values of 24 bytes only, keeps five bytes for each row and counts them several times: a
// column that all points lack costs as much as one that they have.
//
// So a table of numbers alone tells parquet-go's writer that all its columns are required.
// It writes data pages of version 1, whose bytes begin with the definition levels: pageType
// writes them there. At the end of the file the footer, the only place that says which
// columns are optional, is written again.
//
// The column index has no histograms of definition levels: it counts the nulls of each page.

// tail passes on what is written. From hold on it keeps it.
type tail struct {
	out  io.Writer
	hold bool
	held []byte
}

func (t *tail) Write(p []byte) (int, error) {
	if !t.hold {
		return t.out.Write(p)
	}
	t.held = append(t.held, p...)
	return len(p), nil
}

const footerEnd = 8 // bytes of a footer's length and of the magic number behind it

// close ends the file.
func (t *tableWriter) close() error {
	if len(t.optional) == 0 {
		return t.w.Close()
	}
	if err := t.w.Flush(); err != nil {
		return err
	}
	t.tail.hold = true
	if err := t.w.Close(); err != nil {
		return err
	}
	metadata := t.w.File().Metadata()
	t.correct(metadata)
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), metadata)
	if err != nil {
		return err
	}
	held := t.tail.held
	end := held[len(held)-footerEnd:]
	magic := string(end[4:])
	held = held[:len(held)-footerEnd-int(binary.LittleEndian.Uint32(end))]
	held = append(held, footer...)
	held = binary.LittleEndian.AppendUint32(held, uint32(len(footer)))
	_, err = t.tail.out.Write(append(held, magic...))
	t.tail = tail{}
	return err
}

// correct corrects the metadata of a file whose columns t.optional were written as required
// ones. And it removes bounds that are NaN, as Parquet asks for: parquet-go writes them if
// the first page has nothing but NaN, whatever the others have.
func (t *tableWriter) correct(m *format.FileMetaData) {
	for _, i := range t.optional {
		m.Schema[1+i].RepetitionType.Set(format.Optional) // the root is the first
	}
	for g := range m.RowGroups {
		for i := range m.RowGroups[g].Columns {
			c := &m.RowGroups[g].Columns[i].MetaData
			s := &c.Statistics
			if slices.Contains(t.optional, i) {
				c.Encoding = append([]format.Encoding{format.RLE}, c.Encoding...) // the encoding of levels
				slices.Sort(c.Encoding)
				c.SizeStatistics.DefinitionLevelHistogram = []int64{s.NullCount, c.NumValues - s.NullCount}
			}
			if len(s.MinValue) > 0 && isNaN(parquet.Kind(c.Type).Value(s.MinValue)) {
				s.MinValue, s.MaxValue = nil, nil
			}
		}
	}
}

func isNaN(v parquet.Value) bool {
	return v.Kind() == parquet.Float && v.Float() != v.Float() || v.Kind() == parquet.Double && v.Double() != v.Double()
}
