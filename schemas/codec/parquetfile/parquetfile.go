// Package parquetfile opens Parquet files that nobody vouches for.
//
// parquet-go trusts what a file says of itself. Its LZ4_RAW codec doubles its
// buffer at any error, so that one damaged byte takes all memory; its readers
// of gzip and brotli follow a page to whatever size it unpacks; a run length, a
// count of values or the length of a prefix reserves what it names; a footer's
// lists are made as long as they say. This package stands between the library
// and the file. It reads the footer and every page first, compares each claim
// with the others and with the limits below, unpacks pages into buffers of
// their declared size, and shows the library a file of uncompressed pages. So
// no codec of the library is ever called.
//
// A claim is refused when it contradicts another claim (a page is larger than
// its column chunk, holds more values than the chunk has, unpacks to another
// size than its header says), when no encoder could have made it (a ratio
// beyond the codec's), or when it exceeds a limit. Limits are far beyond what
// writers make: pages are 1 MiB by default, and up to 100 MB in DuckDB.
package parquetfile

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// Limits of a file. One that exceeds them is refused by name.
const (
	MaxFooterBytes  = 64 << 20  // of the footer, compact thrift
	MaxPageBytes    = 256 << 20 // of a page, uncompressed, and of a page as it is stored
	MaxPageValues   = 32 << 20  // of a page, nulls included
	MaxColumnChunks = 256 << 10 // of a file: row groups times columns
	MaxColumns      = 32 << 10  // elements of the schema, groups included
	MaxDepth        = 64        // of the schema
)

// FormatError says that a file is damaged, is no Parquet file, or exceeds a
// limit of this package.
type FormatError struct{ Err error }

func (e *FormatError) Error() string { return "not a readable Parquet file: " + e.Err.Error() }

func (e *FormatError) Unwrap() error { return e.Err }

// Guard calls f. A panic of the library, and a fault of its assembly, become a
// *FormatError; an error of f is returned as it is.
func Guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = &FormatError{fmt.Errorf("%v", r)}
		}
	}()
	return f()
}

// File is an open file. Its methods may be called concurrently.
type File struct {
	r      io.ReaderAt
	size   int64
	footer int64 // offset at which the footer begins, and pages end
	shown  *parquet.File
	meta   format.FileMetaData // as the file has it
	leaves []*parquet.Column
}

// Open reads the footer of a file of the given size: at most twice
// MaxFooterBytes, and what its structures take, a few hundred bytes a column
// chunk. What is wrong with the file is a *FormatError.
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

// Metadata returns the footer as the file has it. It must not be changed.
func (f *File) Metadata() *format.FileMetaData { return &f.meta }

// NumRows returns the number of rows that the footer claims.
func (f *File) NumRows() int64 { return f.meta.NumRows }

// Size returns the size of the file in bytes.
func (f *File) Size() int64 { return f.size }

// Root returns the root of the schema. Pages must be read with Pages, not
// through its columns.
func (f *File) Root() *parquet.Column { return f.shown.Root() }

// Schema returns the schema.
func (f *File) Schema() *parquet.Schema { return f.shown.Schema() }

// Lookup returns a value of the key-value metadata.
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

// Pages returns a reader of the pages of one leaf column in one row group. It
// holds two pages at a time. What is wrong with a page is a *FormatError that
// names page and column; every later call returns it again.
func (f *File) Pages(group, column int) parquet.Pages {
	chunk := f.shown.RowGroups()[group].ColumnChunks()[column].(*parquet.FileColumnChunk)
	s := newStream(f, group, column)
	return &pages{Pages: chunk.PagesFrom(s), stream: s}
}

// pages replaces what the library says of a stream's error by the error.
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
