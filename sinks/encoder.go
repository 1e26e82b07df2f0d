package sinks

import (
	"io"

	"entropipe/schemas"
)

// Encoder turns batches into the files of tables. An Output has one encoder for its
// whole life; package tables implements it.
//
// Ownership: the encoder reads a batch during a call and keeps no reference to it
// afterwards. The caller changes neither the batch nor a File during a call.
//
// Errors: Plan cannot fail. An error of Encode, the writer's included, ends the
// commit, and the caller discards the bytes that were written to w.
//
// Concurrency: all methods may be called from several goroutines at once. Encode
// may block until other calls of Encode have returned.
type Encoder interface {
	// Layout returns the properties that all files of an output share. All calls
	// return the same.
	Layout() Layout

	// Plan returns the files for part number part of batch b, in the order in
	// which they are written; none for a batch without results and rejects. A batch
	// that is committed at once is part 0. No two parts of a batch share a path.
	Plan(b *schemas.Batch, part int) []File

	// Encode writes file f of Plan(b, part) to w and returns the number of its
	// rows. The same f and b give the same bytes.
	Encode(w io.Writer, f File, b *schemas.Batch) (rows int64, err error)
}

// Layout is recorded in store.json. An output is never opened with another one.
type Layout struct {
	Schema      int      // version of the tables' columns
	PartitionBy []string // folder keys below a table: dataset[,sequence][,date]
}

// File is one file of a commit before it is written.
type File struct {
	Table string  // name of the table, and the first element of Path
	Path  string  // where readers find the file, relative to the output
	Rows  []int32 // ascending indices of the batch's results with rows in the file; nil for tables rejects and messages
}
