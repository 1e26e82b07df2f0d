package sinks

import (
	"io"

	"entropipe/schemas"
)

// Encoder turns batches into the files of tables. An Output has one for its
// whole life and knows nothing else of tables: package tables implements it.
//
// Ownership: the encoder may read a batch during a call and keeps no reference
// to it afterwards. The caller changes neither batch nor File during a call.
//
// Errors: an error of Encode, the writer's included, ends the commit; what was
// written to w is then discarded. Plan cannot fail.
//
// Concurrency: all methods may be called from several goroutines at once. Encode
// may block until another call of Encode has returned.
type Encoder interface {
	// Layout returns the properties that all files of an output share. It
	// returns the same at every call.
	Layout() Layout

	// Plan lists the files that part number part of batch b becomes, in the order
	// in which they are written. A batch that is committed at once is part 0. A
	// batch without results and rejects becomes no file. The paths of all
	// parts differ.
	Plan(b *schemas.Batch, part int) []File

	// Encode writes file f of Plan(b, part) to w and returns the number of its
	// rows. The same f and b give the same bytes.
	Encode(w io.Writer, f File, b *schemas.Batch) (rows int64, err error)
}

// Layout is what the files of an output have in common. It stands in store.json,
// and an output is never opened with another one.
type Layout struct {
	Schema      int      // version of the tables' columns
	PartitionBy []string // folder keys below a table: dataset[,sequence][,date]
}

// File is one file of a commit before it is written.
type File struct {
	Table string  // name of the table, and the first element of Path
	Path  string  // where readers find the file, relative to the output
	Rows  []int32 // indices of the batch's results that have rows in the file, ascending; of table rejects nil
}
