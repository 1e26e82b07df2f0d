package sinks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Store is what an output lives on: a local folder today, an object store
// later. Names are slash-separated and relative to the output. The methods may
// be called from several goroutines and, beside other processes, on the same
// output.
type Store interface {
	Records
	Stager
	Reader
}

// Records keeps commit records: small files that are created once.
type Records interface {
	// Create creates the file name with these bytes, whole or not at all, and
	// durably. ErrExists: the name is taken, durably, by this call or another.
	// ErrNotCreated: certainly nothing was created. Any other error leaves it
	// open whether the file is there: read it back.
	Create(ctx context.Context, name string, data []byte) error

	// Read returns the bytes of a record, or ErrNotFound. What it returns is
	// durable even if its creator died between making and fsyncing it.
	Read(ctx context.Context, name string) ([]byte, error)
}

// Stager writes files where no reader looks, and moves them to where readers
// do.
type Stager interface {
	// Stage creates a file, whose folder may not exist yet. When Close returns
	// nil, the file survives a crash.
	Stage(ctx context.Context, name string) (io.WriteCloser, error)

	// Publish moves files to their final names, durably and in the order of moves:
	// no file is seen there, after a crash either, before those of other folders
	// that come earlier. It may be repeated,
	// and run by several processes at once: a move that has been made counts
	// as done if the destination has the expected size. *LostFileError: a file
	// is at neither place. Files whose Move names a checksum are read first if
	// they are still staged: *DamagedFileError says that one has changed, and
	// then no file of the call is moved.
	Publish(ctx context.Context, moves []Move) error

	// Discard removes a staging folder and what is in it. That it is not there
	// is no error, and what is added to it meanwhile may stay.
	Discard(ctx context.Context, folder string) error
}

// Reader looks at what is there. It never changes anything.
type Reader interface {
	// Open opens a file, or fails with ErrNotFound.
	Open(ctx context.Context, name string) (Object, error)

	// List calls f for every file below folder, in order of name within a
	// folder. A folder that is not there is empty. An error of f ends it.
	List(ctx context.Context, folder string, f func(Entry) error) error

	// Names returns the last elements of all names in folder, in no order: what
	// List says of one folder, for less. A folder that is not there is empty.
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
	Name string // from the store's root
	Size int64
}

// Move is one file to be published.
type Move struct {
	From, To string
	Bytes    int64  // size of the file
	SHA256   string // of the file, in hex: compared before the move; empty: not compared
}

var (
	// ErrNotFound says that a file is not there.
	ErrNotFound = errors.New("no such file in the output")

	// ErrExists says that a record's name is taken.
	ErrExists = errors.New("the record exists")

	// ErrNotCreated says that a record was certainly not created.
	ErrNotCreated = errors.New("the record was not created")
)

// LostFileError says that a file that a manifest names is neither staged nor
// published: somebody removed it, or put another file in its place.
type LostFileError struct {
	Move
	Problem string
}

func (e *LostFileError) Error() string { return e.To + ": " + e.Problem }

// DamagedFileError says that a staged file is not the file that its manifest
// describes: its bytes have changed since they were written.
type DamagedFileError struct {
	Move
	Problem string
}

func (e *DamagedFileError) Error() string {
	return fmt.Sprintf("%s, staged to become %s: %s; it has changed since it was written, so nothing of its commit is moved or removed", e.From, e.To, e.Problem)
}

// createTries is how often an exclusive creation with an unknown outcome is
// tried before giving up; the waits between double, from createWait.
const createTries = 6

var createWait = 20 * time.Millisecond // a variable for a test that cannot wait

// createOrAdopt is the compare-and-set: it creates the record name, and when
// another made it first, or nobody knows, returns what is there. mine tells
// whether that is data.
//
// Only reading another's bytes tells that the race is lost. An answer that
// never came may belong to a creation that worked, so data must be unique to
// this attempt.
func createOrAdopt(ctx context.Context, s Records, name string, data []byte) (found []byte, mine bool, err error) {
	certain := true // that no earlier try can have created it
	for try := range createTries {
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
		select { // unknown, or not readable: the same again
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
