// Package read reads outputs: Verify checks one and plans a repair, Describe and
// Identify sum it up, ReadFrame returns a frame from its tables, DescribeFile
// describes any Parquet file.
//
// It writes nothing but the moves of Repair.Apply. It may run beside writers, and
// trusts no file: lengths and claims are checked before memory is reserved.
//
// Vocabulary. A chain is the manifests of one partition in the order of their
// offsets; it is whole when each begins where the one before it ends. An orphan is
// a file of a table that no manifest names. A pending file is still staged although
// its commit has happened. To quarantine is to move a file to where no reader looks.
package read
