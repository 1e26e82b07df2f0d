// Package support is the data of frozen attention masks: the layouts of blocks
// that a model's heads read, and the files that keep them (fsm/1).
//
// It computes no attention and chooses no mask: package freeze does the latter,
// package kern the former.
//
// Words: a block is a run of 16 to 128 consecutive queries or keys; a layout
// says which blocks of keys each block of queries reads; a bucket is a length
// of sequence for which layouts were made; a set is all layouts of a model.
package support
