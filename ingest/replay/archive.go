package replay

import "context"

// Archive is where a backfill reads: what lies at the paths of one source. It is in
// local folders today. Paths that it gives are absolute. Any goroutine may call its methods.
type Archive interface {
	// Parts calls f with each input, in order. A Part is valid until f returns, and an
	// error of f ends Parts. Memory is bounded by the largest folder.
	Parts(ctx context.Context, f func(*Part) error) error

	// Open opens an input so that the first item has position from. An Input may come
	// from a plan that another process made; it is not searched for again. Where
	// Part.Of is not nil, the Source has FilesOf, which returns the files of a position as
	// the Source would read them; none beyond the end. Items before from are passed over
	// without a word, also those that cannot be read; behind the last one Next returns io.EOF.
	Open(ctx context.Context, in Input, from int64) (Source, error)

	// Stat identifies a file, with the checksum of its content if sum is set.
	Stat(ctx context.Context, path string, sum bool) (File, error)

	// Counts returns the progress of Parts.
	Counts() Counts
}

// Counts is the progress of a search.
type Counts struct {
	Files  int64 // files that belong to inputs
	Inputs int64
	Items  int64
}

// File identifies a file as it is now.
type File struct {
	Path    string
	Size    int64
	ModTime int64  // nanoseconds since 1970; 0: ETag tells more
	ETag    string // of an object in a bucket
	SHA256  string // in hex; empty: not asked for
}

// Part is what a plan needs to know about an input.
type Part struct {
	Input  Input
	Items  int64 // items, with those that cannot be read
	Frames int64 // frames of all items; Items for clouds
	// Common are the files that every item depends on: times, poses, calibration, or the
	// files that hold all items.
	Common []string
	// Of returns the files of an item, for formats whose items are not all in the same
	// files; nil: items are in Common. The slice is valid until the next call.
	Of func(position int64) []string
}
