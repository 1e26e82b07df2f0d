package kern

import "entropipe/sparse/support"

// visible calls f for every key that query i of head h sees, in the order of the
// layout's columns. It defines the meaning of a layout, for the kernels too.
func (j *Job) visible(i, h int, f func(key int)) {
	l, end := j.layout(h), j.horizon(i)
	if l == nil {
		for k := range end {
			f(k)
		}
		return
	}
	row := (j.Offset + i) / l.Block
	in := (j.Offset + i) % l.Block
	masks, words := maskedBefore(l, row), l.Words()
	for e := l.RowPtr[row]; e < l.RowPtr[row+1]; e++ {
		var bits []uint64
		if l.Kind[e] == support.Masked {
			bits = l.Bits[masks*words : (masks+1)*words]
			masks++
		}
		for c := range l.Block {
			key := keyOf(l, int(l.Col[e])*l.Block+c)
			if key < 0 || key >= end {
				continue
			}
			if at := in*l.Block + c; bits != nil && bits[at/64]>>(at%64)&1 == 0 {
				continue
			}
			f(key)
		}
	}
}

// keyOf returns the key at a place of a layout's columns, or -1 if no key is
// there.
func keyOf(l *support.Layout, place int) int {
	switch {
	case l.Order == nil:
		return place
	case place < len(l.Order):
		return int(l.Order[place])
	}
	return -1
}

// maskedBefore returns the number of Masked entries before a row.
func maskedBefore(l *support.Layout, row int) int {
	n := 0
	for _, k := range l.Kind[:l.RowPtr[row]] {
		if k == support.Masked {
			n++
		}
	}
	return n
}
