package train

import (
	"math"
	"slices"
)

// blockMatrices calls do for every matrix of the blocks: the values of data from lo
// to hi. All of them lie one after the other.
func (f *form) blockMatrices(do func(lo, hi int)) {
	lo := f.matrices() - f.layers*12*f.dim*f.dim
	for range f.layers {
		for _, size := range []int{3, 1, 4, 4} { // qkv, proj, up, down
			hi := lo + size*f.dim*f.dim
			do(lo, hi)
			lo = hi
		}
	}
}

// allKept returns the numbers of Trainer.kept before anything is pruned.
func (t *Trainer) allKept() []float32 {
	kept := make([]float32, t.net.form.layers*12*t.net.form.dim*t.net.form.dim)
	for i := range kept {
		kept[i] = 1
	}
	return kept
}

// prune marks the smallest weights of every matrix of the blocks as pruned, the share
// Config.Pruned rounded down, and sets them to 0. Among equal magnitudes the first go
// first. It does nothing if weights are marked already.
func (t *Trainer) prune() {
	if slices.Contains(t.kept, 0) {
		return
	}
	first := t.net.form.matrices() - len(t.kept)
	t.net.form.blockMatrices(func(lo, hi int) {
		w, order := t.net.params[lo:hi], make([]int, hi-lo)
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(i, j int) int {
			a, b := math.Abs(float64(w[i])), math.Abs(float64(w[j]))
			switch {
			case a < b:
				return -1
			case a > b:
				return 1
			}
			return 0
		})
		for _, i := range order[:int(t.cfg.Pruned*float64(len(w)))] {
			t.kept[lo-first+i] = 0
		}
	})
	t.dropPruned()
}

// dropPruned sets pruned weights to 0.
func (t *Trainer) dropPruned() {
	if t.kept == nil {
		return
	}
	first := t.net.form.matrices() - len(t.kept)
	for i, k := range t.kept {
		t.net.params[first+i] *= k
	}
}
