package compact

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"

	"entropipe/schemas/codec/parquetfile"
	"entropipe/sinks"
	"entropipe/sinks/internal/pairhash"
	"entropipe/sinks/record"
)

// wholeFile is the size up to which a file is read at once. A larger one is read in pieces of
// pieceBytes.
const (
	wholeFile  = 4 << 20
	pieceBytes = 1 << 20
)

// source is a file of the output that is compacted.
type source struct {
	file   *record.File
	name   string // path or staged path
	footer *parquetfile.RawFooter
	size   int64

	data    []byte       // the whole of a small file
	checked bool         // data was compared with its checksum
	object  sinks.Object // a large file; nil: data is whole
	ctx     context.Context
}

// buffers holds the memory of small files.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// openSource opens a file of a commit, and reads it if it is small. kinds has the kinds of footers
// that were checked. Missing and damaged files are a *SourceError.
//
// The file is compared with its checksum by each, beside the sum of the result. Where two sums take
// longer than one, a small file is compared here, beside other files.
func openSource(ctx context.Context, store sinks.Reader, f *record.File, kinds *sync.Map) (*source, error) {
	s := &source{file: f, ctx: ctx, size: f.Bytes}
	err := s.open(store, kinds)
	if err == nil {
		return s, nil
	}
	s.close()
	if err = sinks.Unavailable(err); ctx.Err() != nil || passes(err) {
		return nil, err
	}
	return nil, &SourceError{Name: f.Path, Err: err}
}

func (s *source) open(store sinks.Reader, kinds *sync.Map) error {
	object, err := s.find(store)
	if err != nil {
		return err
	}
	s.object = object
	if object.Size() != s.size {
		return fmt.Errorf("it has %d bytes, its manifest says %d", object.Size(), s.size)
	}
	var r io.ReaderAt = object
	if s.size <= wholeFile {
		if err := s.load(); err != nil {
			return err
		}
		r = bytes.NewReader(s.data)
		if !pairhash.Paired() {
			if err := s.compareData(); err != nil {
				return err
			}
		}
	}
	return s.blame(s.readFooter(r, kinds))
}

func (s *source) readFooter(r io.ReaderAt, kinds *sync.Map) (err error) {
	if s.footer, err = parquetfile.ReadRawFooter(r, s.size); err != nil {
		return err
	}
	if s.footer.Rows != s.file.Rows {
		return fmt.Errorf("it has %d rows, its manifest says %d", s.footer.Rows, s.file.Rows)
	}
	if _, checked := kinds.Load(s.footer.Kind); !checked { // one of a kind is checked in all respects
		if _, _, err = parquetfile.ReadFooter(r, s.size); err == nil {
			kinds.Store(s.footer.Kind, true)
		}
	}
	return err
}

// find opens the file where readers find it, or in staging: the writer of the newest commit may
// have died before it moved its files, or moves them now.
func (s *source) find(store sinks.Reader) (o sinks.Object, err error) {
	for _, s.name = range []string{s.file.Path, s.file.Staged, s.file.Path} {
		if o, err = store.Open(s.ctx, s.name); !errors.Is(err, sinks.ErrNotFound) {
			return o, err
		}
	}
	s.name = s.file.Path
	return nil, fmt.Errorf("the file of a commit is missing: %w", sinks.ErrNotFound)
}

// load reads the file.
func (s *source) load() error {
	buffer := buffers.Get().(*[]byte)
	if int64(cap(*buffer)) < s.size {
		*buffer = make([]byte, s.size)
	}
	s.data = (*buffer)[:s.size]
	n, err := s.object.ReadAt(s.data, 0)
	if int64(n) < s.size {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	s.object.Close()
	s.object = nil
	return nil
}

func (s *source) compare(sum string) error {
	if sum != s.file.SHA256 {
		return fmt.Errorf("its SHA-256 is %s, its manifest says %s", sum, s.file.SHA256)
	}
	return nil
}

// blame returns err, a fault of the file, or what explains it: a small file was not compared with
// its checksum yet.
func (s *source) blame(err error) error {
	if err != nil && s.data != nil && s.object == nil && !s.checked {
		return cmp.Or(s.compareData(), err)
	}
	return err
}

// compareData compares a small file with its checksum.
func (s *source) compareData() error {
	sum := sha256.Sum256(s.data)
	err := s.compare(hex.EncodeToString(sum[:]))
	s.checked = err == nil
	return err
}

// each calls f with the bytes of the file in order. It has f add them to sum, unless the file was
// compared before, and compares the file with its checksum then: an error may come after all bytes.
// An error of the file is a *SourceError.
func (s *source) each(sum *pairhash.Digest, f func(piece []byte) error) error {
	if s.object == nil {
		if err := f(s.data); err != nil {
			return err
		}
	}
	var piece []byte
	for at := int64(0); s.object != nil && at < s.size; at += int64(len(piece)) {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		if piece == nil {
			piece = make([]byte, pieceBytes)
		}
		piece = piece[:min(int64(len(piece)), s.size-at)]
		if n, err := s.object.ReadAt(piece, at); n < len(piece) {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return s.fault(err)
		}
		if err := f(piece); err != nil {
			return err
		}
	}
	if s.checked {
		return nil
	}
	if err := s.compare(sum.Hex()); err != nil {
		return s.fault(err)
	}
	return nil
}

// fault returns err as a *SourceError, unless it may pass.
func (s *source) fault(err error) error {
	if err = sinks.Unavailable(s.blame(err)); passes(err) {
		return err
	}
	return &SourceError{Name: s.name, Err: err}
}

// close releases the memory or the file.
func (s *source) close() {
	if s.object != nil {
		s.object.Close()
		s.object = nil
	}
	if s.data != nil {
		data := s.data[:0]
		buffers.Put(&data)
		s.data = nil
	}
}

// loader opens the files of a list ahead of their use, some at a time: small files of a bucket
// take a time that does not depend on their size.
type loader struct {
	ctx    context.Context // ends with its caller's, too
	cancel context.CancelFunc
	ready  chan chan loaded
	left   int     // files that peek has not returned yet
	held   *source // taken by peek
	err    error
}

type loaded struct {
	s   *source
	err error
}

// opening is a file that is to be opened, and where its source goes.
type opening struct {
	file *record.File
	to   chan loaded
}

// load begins to open files, depth at a time. The caller ends it with close.
//
// The goroutines live as long as the loader: the stack of a new one would grow anew for each
// footer.
func load(ctx context.Context, store sinks.Reader, files []*record.File, depth int) *loader {
	ctx, cancel := context.WithCancel(ctx)
	l := &loader{ctx: ctx, cancel: cancel, ready: make(chan chan loaded, depth), left: len(files)}
	kinds := new(sync.Map)
	next := make(chan opening)
	for range min(depth, len(files)) {
		go func() {
			for o := range next {
				s, err := openSource(ctx, store, o.file, kinds)
				o.to <- loaded{s, err}
			}
		}()
	}
	go func() {
		defer close(l.ready)
		defer close(next)
		for _, f := range files {
			one := make(chan loaded, 1)
			select {
			case l.ready <- one:
				next <- opening{f, one} // close waits for what comes of it
			case <-ctx.Done():
				return
			}
		}
	}()
	return l
}

// peek returns the next file without taking it; nil: there is none. When the context has ended,
// fewer files come than there are: that is its error, not the end of the list.
func (l *loader) peek() (*source, error) {
	if l.held != nil || l.err != nil || l.left == 0 {
		return l.held, l.err
	}
	one, ok := <-l.ready
	if !ok {
		l.err = context.Cause(l.ctx)
		return nil, l.err
	}
	next := <-one
	l.held, l.err = next.s, next.err
	l.left--
	return l.held, l.err
}

// drop releases the file that peek returned.
func (l *loader) drop() {
	l.held.close()
	l.held = nil
}

// close ends the loader and releases all files. It waits for those that are being opened.
func (l *loader) close() {
	l.cancel()
	if l.held != nil {
		l.drop()
	}
	for one := range l.ready {
		if next := <-one; next.s != nil {
			next.s.close()
		}
	}
}
