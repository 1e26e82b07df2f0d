// Package plan decides what the heads of a model read in a sequence of n tokens:
// the layouts of a set of frozen masks, cut to n tokens, or all keys.
//
// It neither chooses masks (package freeze does) nor computes attention.
//
// Words: a plan holds the layouts of all heads for one length, or the reason for
// dense attention; a bucket and a set are those of package support; to route is to
// make the layouts of an input from its own queries and keys and the set's anchors.
//
// A plan is a function of the model, its set, and n. It does not depend on the other
// sequences of a batch or on the load, so that a row of a result does not depend on
// its neighbours.
package plan

import (
	"math"

	"entropipe/sparse/support"
)

// Plan holds the layouts of every head of a model for sequences of one length. It is
// immutable and safe for concurrent use.
type Plan struct {
	Layouts [][]*support.Layout // [layer][kv head]; a nil entry is dense; nil if the whole plan is dense or routed
	Dense   string              // reason for which the whole plan is dense; empty if it is not
	MaskSHA string              // hash of the set (support.Set.SHA256), also if the plan is dense
	lastUse [][]int32           // [layer*kv heads+head][key block]; a nil entry is dense
	kvHeads int
	density float64 // share of the blocks of a dense plan that are read
}

// LastUse returns the last block of queries that reads a block of keys, or -1 if
// none does. After that block a cache may free the keys. For a dense head it returns
// math.MaxInt.
func (p *Plan) LastUse(layer, kvHead, block int) int {
	if p.Layouts == nil {
		return math.MaxInt
	}
	table := p.lastUse[layer*p.kvHeads+kvHead]
	if table == nil || block >= len(table) {
		return math.MaxInt
	}
	return int(table[block])
}
