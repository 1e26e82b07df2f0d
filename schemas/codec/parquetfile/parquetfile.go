// Package parquetfile opens Parquet files from untrusted sources.
//
// It is not a Parquet reader: parquet-go decodes schema and values. It checks a file
// before parquet-go sees it, because the library trusts the file. The library's
// LZ4_RAW codec doubles its buffer at any error, so that one damaged byte takes all
// memory; its gzip and brotli readers have no limit for the unpacked size of a page;
// it reserves memory by run lengths, counts of values, lengths of prefixes and lengths
// of a footer's lists. This package reads the footer and every page first, compares
// each claim with the others and with the limits below, unpacks pages into buffers of
// their declared size, and gives the library a file of uncompressed pages. So no codec
// of the library is ever called.
//
// Vocabulary. A claim is a number in the file: a length, a count, an offset. It is
// refused if it contradicts another claim (a page is larger than its column chunk,
// holds more values than the chunk has, or unpacks to another size than its header
// has), if no encoder can produce it (the ratio exceeds the codec's), or if it exceeds
// a limit. Writers stay far below the limits: their pages have 1 MiB by default, and
// up to 100 MB in DuckDB. A stream is a column chunk as the library sees it.
//
//	file ─▶ footer: compared, decoded ─▶ footer of uncompressed pages ─▶ parquet-go
//	     └▶ page: header, lengths inside, unpacked, checked ─▶ stream ─▶ parquet-go
package parquetfile

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// Limits of a file. The error for a file that exceeds one names the limit.
const (
	MaxFooterBytes  = 64 << 20  // bytes of the footer, compact thrift
	MaxPageBytes    = 256 << 20 // bytes of a page, stored and unpacked
	MaxPageValues   = 32 << 20  // values of a page, nulls included
	MaxColumnChunks = 256 << 10 // column chunks of a file: row groups times columns
	MaxColumns      = 32 << 10  // elements of the schema, groups included
	MaxDepth        = 64        // nested groups of the schema
)

// FormatError is the error for a file that is damaged, is no Parquet file, or exceeds a
// limit of this package.
type FormatError struct{ Err error }

func (e *FormatError) Error() string { return "not a readable Parquet file: " + e.Err.Error() }

func (e *FormatError) Unwrap() error { return e.Err }

// Guard calls f and returns its error. A panic of the library, or a memory fault of its
// assembly, becomes a *FormatError. Callers use it around calls of the library on a
// File's pages.
func Guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = &FormatError{fmt.Errorf("%v", r)}
		}
	}()
	return f()
}

// File is an open Parquet file. Its methods may be called concurrently.
type File struct {
	r      io.ReaderAt
	size   int64
	footer int64 // offset at which the footer begins, and pages end
	shown  *parquet.File
	meta   format.FileMetaData // the footer as it is in the file
	leaves []*parquet.Column
}

// Open reads the footer of a file with the given size. Every error, that of r included,
// is a *FormatError. The File keeps r. Memory: at most twice MaxFooterBytes, and a few
// hundred bytes for each column chunk.
func Open(r io.ReaderAt, size int64) (*File, error) {
	f := &File{r: r, size: size}
	footer, err := f.readFooter()
	if err == nil {
		err = Guard(func() error { return f.open(footer) })
	}
	var known *FormatError
	if err != nil && !errors.As(err, &known) {
		err = &FormatError{err}
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Metadata returns the footer as it is in the file. The caller must not change it.
func (f *File) Metadata() *format.FileMetaData { return &f.meta }

// NumRows returns the number of rows that the footer claims.
func (f *File) NumRows() int64 { return f.meta.NumRows }

// Size returns the size of the file in bytes.
func (f *File) Size() int64 { return f.size }

// Root returns the root of the schema. Read pages with Pages, not through its columns,
// which have no pages.
func (f *File) Root() *parquet.Column { return f.shown.Root() }

// Schema returns the schema.
func (f *File) Schema() *parquet.Schema { return f.shown.Schema() }

// Lookup returns the value of a key of the footer's metadata.
func (f *File) Lookup(key string) (value string, ok bool) {
	for _, kv := range f.meta.KeyValueMetadata {
		if kv.Key == key {
			return kv.Value, true
		}
	}
	return "", false
}

// RowGroups returns the number of row groups.
func (f *File) RowGroups() int { return len(f.meta.RowGroups) }

// GroupRows returns the number of rows that the footer claims for a row group.
func (f *File) GroupRows(group int) int64 { return f.meta.RowGroups[group].NumRows }

// Pages returns a reader of the pages of one leaf column in one row group. The error
// for a damaged page is a *FormatError that names page and column; every later call
// returns it again. The reader is for one goroutine. Memory: two pages at a time, each as
// it is stored and unpacked.
func (f *File) Pages(group, column int) parquet.Pages {
	chunk := f.shown.RowGroups()[group].ColumnChunks()[column].(*parquet.FileColumnChunk)
	s := newStream(f, group, column)
	return &pages{Pages: chunk.PagesFrom(s), stream: s}
}

// pages returns a stream's error instead of the error that the library makes of it.
type pages struct {
	parquet.Pages
	stream *stream
}

func (p *pages) ReadPage() (page parquet.Page, err error) {
	if p.stream.failed() {
		return nil, p.stream.err
	}
	err = Guard(func() (err error) {
		page, err = p.Pages.ReadPage()
		return err
	})
	var known *FormatError
	switch {
	case err == nil:
	case p.stream.failed():
		err = p.stream.err
	case errors.Is(err, io.EOF) && p.stream.err == io.EOF:
		err = io.EOF
	case !errors.As(err, &known):
		err = p.stream.wrong(err)
	}
	if err != nil && err != io.EOF {
		p.stream.err = err
	}
	return page, err
}

func (p *pages) Close() error {
	err := p.Pages.Close()
	p.stream.release()
	return err
}
