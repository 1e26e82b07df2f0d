// Package plan says what the heads of a model read in a sequence of n tokens:
// the layouts of a set of frozen masks, cut to n, or everything, with a reason.
//
// A plan is a function of the model, its set, and n: never of the sequences
// beside one in a batch, nor of the load. So a row of a result does not depend
// on its neighbours.
package plan

import (
	"math"

	"entropipe/sparse/support"
)

// Plan is what every head of a model reads in sequences of one length. It is
// not changed, and may be read by several goroutines.
type Plan struct {
	Layouts [][]*support.Layout // [layer][kv head], nil entry: dense; nil where the whole plan is dense
	Dense   string              // why the whole plan is dense, else empty
	MaskSHA string              // of the set, also where the plan is dense
	lastUse [][]int32           // [layer*kv heads+head][key block], nil entry: dense
	kvHeads int
	density float64 // share of the blocks of a dense plan that are read
}

// LastUse returns the last block of queries that reads a block of keys, -1 if
// none does: afterwards a cache may free it. A dense head reads every block to
// the end: math.MaxInt.
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
