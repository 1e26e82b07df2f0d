package sinks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Store holds an output. Names are slash-separated and relative to the output. The
// methods may be called from several goroutines, and by several processes on the
// same output. Local is the store in a folder.
type Store interface {
	Records
	Stager
	Reader
}

// Records keeps commit records: small files that are created once.
type Records interface {
	// Create creates the file name with these bytes, durably, whole or not at all.
	// ErrExists: a file with this name exists durably; an earlier try of the caller
	// may have made it. ErrNotCreated: certainly nothing was created. After any other
	// error the file may exist: read it back.
	Create(ctx context.Context, name string, data []byte) error

	// Read returns the bytes of a record, or ErrNotFound. When it returns, the record
	// is durable even if its creator died before the fsync.
	Read(ctx context.Context, name string) ([]byte, error)
}

// Stager writes files where no reader looks and moves them to where readers look.
type Stager interface {
	// Stage creates a file, whose folder may not exist yet. When Close returns
	// nil, the file survives a crash.
	Stage(ctx context.Context, name string) (io.WriteCloser, error)

	// Publish moves files to their final names, durably. A file whose Move is Last is
	// visible only after the files of all moves that are not, even if the machine
	// crashes; such moves stand behind the others. It may be repeated, and several processes may run it at once: a
	// move counts as done if the destination is the expected file, as far as the store
	// can tell without reading it. *LostFileError: a file is at neither place, or another
	// file has its name. Staged files whose Move has a checksum and is not fresh are read
	// first: *DamagedFileError names one that has changed, and then no file of the call
	// is moved.
	Publish(ctx context.Context, moves []Move) error

	// Discard removes a staging folder and its files. A missing folder is no error.
	// Files that another process adds meanwhile may stay.
	Discard(ctx context.Context, folder string) error
}

// Reader lists and opens files. It changes nothing.
type Reader interface {
	// Open opens a file, or fails with ErrNotFound.
	Open(ctx context.Context, name string) (Object, error)

	// List calls f for every file below folder, by name within each folder. A missing
	// folder is empty. An error of f ends the listing and is returned.
	List(ctx context.Context, folder string, f func(Entry) error) error

	// Names returns the last elements of all names in folder, in no order. It costs
	// less than List. A missing folder is empty.
	Names(ctx context.Context, folder string) ([]string, error)
}

// Object is an open file.
type Object interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Entry is one file of a listing.
type Entry struct {
	Name string // path relative to the store
	Size int64
}

// Move is one file to be published.
type Move struct {
	From, To string
	Bytes    int64  // size of the file
	SHA256   string // checksum of the file in hex; empty: unknown
	Fresh    bool   // the caller has computed SHA256 while it staged the file, so the file is not read first
	Last     bool   // the file appears after those of all moves without Last
}

var (
	// ErrNotFound is the error for a file that does not exist.
	ErrNotFound = errors.New("no such file in the output")

	// ErrExists is the error of Records.Create for a name that is taken.
	ErrExists = errors.New("the record exists")

	// ErrNotCreated is the error of Records.Create when certainly nothing was created.
	ErrNotCreated = errors.New("the record was not created")
)

// LostFileError is the error for a file of a manifest that is neither staged nor
// published: it was removed, or another file was put in its place.
type LostFileError struct {
	Move
	Problem string
}

func (e *LostFileError) Error() string { return e.To + ": " + e.Problem }

// DamagedFileError is the error for a staged file whose bytes have changed since
// they were written: size or checksum differ from the manifest.
type DamagedFileError struct {
	Move
	Problem string
}

func (e *DamagedFileError) Error() string {
	return fmt.Sprintf("%s, staged to become %s: %s; it has changed since it was written, so nothing of its commit "+
		"is moved or removed", e.From, e.To, e.Problem)
}

const (
	// createTries bounds the tries of an exclusive creation whose outcome is unknown.
	// The waits between tries double, from createWait on.
	createTries = 6
	// hiddenTries bounds the tries where a name exists that cannot be read: a network file
	// system may hide for a minute what another machine has made. They take 82 s.
	hiddenTries = 12
	// goneTries bounds the looks for a manifest that explains why a staging folder is gone.
	// They take 10 s.
	goneTries = 9
)

var createWait = 20 * time.Millisecond // a variable: one test sets it

// createOrAdopt is the compare-and-set: it creates the record name with data. If the
// name is taken, or the outcome of the creation is unknown, it returns the bytes that
// are stored under the name; mine tells whether they are data.
//
// Only other bytes under the name prove that the race is lost: a creation whose answer
// is lost may have worked. So data must be unique to this attempt.
func createOrAdopt(ctx context.Context, s Records, name string, data []byte) (found []byte, mine bool, err error) {
	certain := true // no earlier try can have created it
	for try := range hiddenTries {
		err = s.Create(ctx, name, data)
		if err == nil {
			return data, true, nil
		}
		found, readErr := s.Read(ctx, name)
		if readErr == nil {
			return found, string(found) == string(data), nil
		}
		certain = certain && errors.Is(err, ErrNotCreated)
		if certain && errors.Is(readErr, ErrNotFound) {
			return nil, false, err
		}
		if try+1 >= createTries && !(errors.Is(err, ErrExists) && errors.Is(readErr, ErrNotFound)) {
			break
		}
		select { // the outcome is unknown or the record is not readable: try again
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-time.After(createWait << try):
		}
	}
	if certain {
		return nil, false, err
	}
	return nil, false, fmt.Errorf("%s: whether it was created is unknown: %w", name, err)
}

// CreateRecord creates the commit record name, or returns the bytes that are stored under it
// already; mine tells whether they are data. It tries again where an outcome is unknown.
func CreateRecord(ctx context.Context, s Records, name string, data []byte) (found []byte, mine bool, err error) {
	return createOrAdopt(ctx, s, name, data)
}
