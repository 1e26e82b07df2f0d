package disk

import (
	"errors"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	largeBuffer = 1 << 20 // bytes of a write
	// aligned divides the place of a write past the page cache, in memory and in the file. A disk
	// with larger blocks refuses such writes.
	aligned = 4096
)

// largeBuffers holds memory for largeFile.
var largeBuffers = sync.Pool{New: func() any {
	room := make([]byte, largeBuffer+aligned)
	room = room[-uintptr(unsafe.Pointer(&room[0]))&(aligned-1):]
	return (*[largeBuffer]byte)(room)
}}

// Large returns f for writing a large file that is synced before it is closed. Its bytes bypass the
// page cache (O_DIRECT): the cache would copy them once more, and would drop other files for them.
// Two buffers of 1 MiB are its memory: one is written while the caller fills the other.
//
// The bytes behind the last full buffer are written through the cache. So are all bytes where the
// file system refuses O_DIRECT, or is on another machine, which would answer each write alone.
func Large(f File) File {
	if o, ok := f.(*os.File); ok && !remote(o) {
		room := func() *[largeBuffer]byte { return largeBuffers.Get().(*[largeBuffer]byte) }
		return &largeFile{file: o, buffer: room(), other: room()}
	}
	return f
}

// largeFile is the File of Large. One goroutine may use it.
type largeFile struct {
	file    *os.File
	buffer  *[largeBuffer]byte
	n       int                // bytes in buffer
	other   *[largeBuffer]byte // under way while written is not nil
	written chan error
	err     error // the first error of a write
	begun   bool  // the first buffer was full
	direct  bool  // the file has O_DIRECT
}

// Write implements File. The error may be that of an earlier write.
func (l *largeFile) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		k := copy(l.buffer[l.n:], p[n:])
		l.n += k
		n += k
		if l.n == largeBuffer {
			err = l.flush()
		}
	}
	return n, err
}

// flush begins to write the buffer.
func (l *largeFile) flush() error {
	if err := l.wait(); err != nil {
		return err
	}
	if !l.begun {
		l.begun, l.direct = true, l.set(unix.O_DIRECT) == nil
	}
	full, written := l.buffer, make(chan error, 1)
	l.buffer, l.other, l.n, l.written = l.other, full, 0, written
	go func() { written <- l.write(full[:]) }()
	return nil
}

// wait waits for the write that is under way.
func (l *largeFile) wait() error {
	if l.written != nil {
		l.err = <-l.written
		l.written = nil
	}
	return l.err
}

// write writes p. What the file system refuses to write past the cache is written as usual.
func (l *largeFile) write(p []byte) error {
	n, err := l.file.Write(p)
	if !l.direct || !errors.Is(err, unix.EINVAL) {
		return err
	}
	if err := l.cached(); err != nil {
		return err
	}
	_, err = l.file.Write(p[n:])
	return err
}

// cached makes further writes go to the page cache.
func (l *largeFile) cached() error {
	if !l.direct {
		return nil
	}
	l.direct = false
	return l.set(0)
}

// set sets the flag O_DIRECT of the file, or removes it if it is 0.
func (l *largeFile) set(direct int) error {
	flags, err := unix.FcntlInt(l.file.Fd(), unix.F_GETFL, 0)
	if err == nil {
		_, err = unix.FcntlInt(l.file.Fd(), unix.F_SETFL, flags&^unix.O_DIRECT|direct)
	}
	if err != nil {
		return &os.PathError{Op: "fcntl", Path: l.file.Name(), Err: err}
	}
	return nil
}

// Sync implements File. It writes what is in the buffer first.
func (l *largeFile) Sync() error {
	if err := l.wait(); err != nil {
		return err
	}
	if l.n > 0 {
		if l.err = l.cached(); l.err == nil {
			_, l.err = l.file.Write(l.buffer[:l.n])
		}
		if l.n = 0; l.err != nil {
			return l.err
		}
	}
	return l.file.Sync()
}

// Close implements File. What was not synced may be lost.
func (l *largeFile) Close() error {
	if l.buffer == nil {
		return os.ErrClosed
	}
	err := l.wait()
	largeBuffers.Put(l.buffer)
	largeBuffers.Put(l.other)
	l.buffer, l.other = nil, nil
	if closeErr := l.file.Close(); err == nil {
		err = closeErr
	}
	return err
}
