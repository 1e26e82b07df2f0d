package filesys

import (
	"errors"
	"io"
	"io/fs"
	"sync"

	"entropipe/ingest/bucket"
)

// Sizes of reads. A reader begins with small ones; one that reads on in order gets longer ones,
// and then pieces that are read ahead of it, side by side.
const (
	smallRead = 64 << 10
	pieceRead = 4 << 20
	ahead     = 3 // pieces behind the one that is read
	kept      = 4 // pieces for reads in no order, such as those of footers and indexes
)

// object is an open object, of one ETag.
type object struct {
	b    *buckets
	c    *bucket.Client
	name string
	key  string
	is   entry

	mu     sync.Mutex
	at     int64    // of Read
	pieces []*piece // the one that was asked for last is the last one
	end    int64    // behind the last bytes that were read
	window int64    // size of the next read
	closed bool
}

// piece is a part of an object that was read or is being read.
type piece struct {
	at   int64
	data []byte
	held int64 // bytes to be given back
	done chan struct{}
	err  error // once done is closed
}

// openObject opens an object as this process has seen it first. It sends a request if it has not
// seen it.
func openObject(name string) (*object, error) {
	info, err := statObject(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("is a directory")}
	}
	b, c, key, err := at(name)
	if err != nil {
		return nil, err
	}
	return &object{b: b, c: c, name: Clean(name), key: key, is: info.(entry), window: smallRead}, nil
}

// Name implements File.
func (o *object) Name() string { return o.name }

// Stat implements File.
func (o *object) Stat() (fs.FileInfo, error) { return o.is, nil }

// Close implements File. It waits for what is being read.
func (o *object) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.drop(0)
	return nil
}

// drop gives up pieces, the oldest first, until so many are left.
func (o *object) drop(most int) {
	for len(o.pieces) > most {
		<-o.pieces[0].done
		o.b.release(o.pieces[0].held)
		o.pieces = o.pieces[1:]
	}
}

// Seek implements File.
func (o *object) Seek(offset int64, whence int) (int64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		offset += o.at
	case io.SeekEnd:
		offset += o.is.size
	}
	if offset < 0 {
		return 0, &fs.PathError{Op: "seek", Path: o.name, Err: fs.ErrInvalid}
	}
	o.at = offset
	return offset, nil
}

// Read implements File.
func (o *object) Read(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.read(p, o.at)
	o.at += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

// ReadAt implements File.
func (o *object) ReadAt(p []byte, at int64) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.read(p, at)
}

func (o *object) read(p []byte, at int64) (n int, err error) {
	switch {
	case o.closed:
		return 0, &fs.PathError{Op: "read", Path: o.name, Err: fs.ErrClosed}
	case at < 0:
		return 0, &fs.PathError{Op: "read", Path: o.name, Err: fs.ErrInvalid}
	case len(p) == 0:
		return 0, nil
	case at >= o.is.size:
		return 0, io.EOF
	}
	if rest := o.is.size - at; int64(len(p)) > rest {
		p, err = p[:rest], io.EOF
	}
	for n < len(p) {
		k, failed := o.some(p[n:], at+int64(n))
		if n += k; failed != nil {
			o.drop(0)
			o.b.failed(o.name, failed)
			if isMissing(failed) {
				failed = notThere("read", o.name)
			}
			return n, failed
		}
	}
	o.end = at + int64(n)
	return n, err
}

// some reads bytes from at on, which is inside the object.
func (o *object) some(p []byte, at int64) (int, error) {
	held := o.piece(at)
	if held == nil && (int64(len(p)) >= pieceRead || at == 0 && int64(len(p)) == o.is.size) {
		return o.whole(p, at)
	}
	if held == nil {
		held = o.fetch(at, int64(len(p)))
	}
	<-held.done
	if held.err != nil {
		return 0, held.err
	}
	if o.window == pieceRead {
		o.further(held)
	}
	return copy(p, held.data[at-held.at:]), nil
}

// piece returns the piece that at is in, and makes it the last one; nil: there is none.
func (o *object) piece(at int64) *piece {
	for i, p := range o.pieces {
		if at >= p.at && at < p.at+int64(len(p.data)) {
			o.pieces = append(append(o.pieces[:i:i], o.pieces[i+1:]...), p)
			return p
		}
	}
	return nil
}

// fetch begins to read from at on, and more than is wanted where that is cheap: a read near the
// end begins before it, since readers of footers go backwards there.
func (o *object) fetch(at, want int64) *piece {
	if at == o.end && at > 0 {
		o.window = min(4*o.window, pieceRead)
	} else {
		o.window = smallRead
	}
	o.drop(kept - 1)
	size, held := o.b.take(min(max(want, o.window), o.is.size))
	if rest := o.is.size - at; rest < size && at != o.end {
		at = o.is.size - size
	}
	return o.begin(at, min(size, o.is.size-at), held)
}

// begin begins to read a piece, and makes it the last one.
func (o *object) begin(at, size, held int64) *piece {
	p := &piece{at: at, data: make([]byte, size), held: held, done: make(chan struct{})}
	o.pieces = append(o.pieces, p)
	go func() {
		defer close(p.done)
		p.err = o.c.Range(o.b.ctx, o.key, o.is.etag, p.at, p.data)
	}()
	return p
}

// further reads pieces ahead of one, as many as memory allows.
func (o *object) further(of *piece) {
	next := of.at + int64(len(of.data))
	for range ahead {
		if next >= o.is.size {
			return
		}
		if there := o.piece(next); there != nil {
			next = there.at + int64(len(there.data))
			continue
		}
		for i := 0; len(o.pieces) > ahead && i < len(o.pieces); i++ { // what lies before is read
			if old := o.pieces[i]; old.at+int64(len(old.data)) <= of.at {
				<-old.done
				o.b.release(old.held)
				o.pieces = append(o.pieces[:i:i], o.pieces[i+1:]...)
				i--
			}
		}
		size, held := o.b.take(min(pieceRead, o.is.size-next))
		if held == 0 || len(o.pieces) > ahead {
			o.b.release(held)
			return
		}
		o.begin(next, size, held)
		next += size
	}
}

// whole reads all of p without memory of its own, in parts side by side.
func (o *object) whole(p []byte, at int64) (int, error) {
	parts := (len(p)-1)/pieceRead + 1
	errs := make([]error, parts)
	turns := make(chan struct{}, ahead+1)
	var all sync.WaitGroup
	for i := range parts {
		from := i * pieceRead
		part := p[from:min(from+pieceRead, len(p))]
		turns <- struct{}{}
		all.Go(func() {
			errs[i] = o.c.Range(o.b.ctx, o.key, o.is.etag, at+int64(from), part)
			<-turns
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			return min(i*pieceRead, len(p)), err
		}
	}
	return len(p), nil
}
