// Package read reads outputs: Verify checks an output and plans a repair, Identify, Follower and
// Describe summarise it, ReadFrame reads a frame from its tables, and DescribeFile
// describes any Parquet file.
//
// It does not write, apart from the moves of Repair.Apply. It may run beside writers. It
// trusts no file: lengths and other claims are checked before memory is reserved.
//
// Vocabulary. A chain is the sequence of a partition's manifests by offset; it is
// whole if each manifest begins where the one before it ends. An orphan is a file of
// a table that no manifest names. A pending file is committed but still staged. To
// quarantine a file is to move it to a folder that no reader reads.
//
//	base                                                 newest
//	 │ manifest [0, 10) │ manifest [10, 20) │ manifest [20, 30) │
//	 └─ files published ┴─ files published ─┴─ files may be pending
package read
