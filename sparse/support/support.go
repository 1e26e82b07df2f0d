// Package support holds the data of frozen attention masks: the layouts of blocks
// that a model's heads read, and the files that store them (fsm/1).
//
// It computes no attention (package kern does) and chooses no mask (package freeze
// does).
//
// Words: a block is a run of 16 to 128 consecutive queries or keys; a layout lists
// the blocks of keys that each block of queries reads; an entry is one such pair of
// blocks; a bucket is a length of sequence for which layouts were made; a set holds
// all layouts of a model; sparsity is the share of blocks that are not read.
package support
