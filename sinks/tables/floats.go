package tables

import (
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding"
)

// floats is the column buffer of one page of floats, which are split into byte planes. Many
// numbers at once are a page by themselves, and are not copied.
type floats[T float32 | float64] struct {
	buffer
	values []T // own memory
	lent   []T // the page, while it is the caller's memory
}

func (b *floats[T]) codec() compress.Codec { return &planes{b.width(), b.levels.optional} }

// Numbers that are lent are many, so that no page is small. A byte plane of the most that a
// page has is one block of zstd, with one Huffman code.
const (
	lendFrom = 8192
	mostLent = blockBytes
)

// take appends the first elements of v, no more than fit into the page, and returns their
// number; 0: the caller must flush the page. v must not change before.
func (b *floats[T]) take(v []T) int {
	if !b.levels.accepts(true, min(len(v), mostLent)) {
		return 0
	}
	if len(v) >= lendFrom {
		if b.Len() > 0 {
			return 0
		}
		v = v[:b.piece(len(v))]
		b.lent = v
	} else {
		v = v[:b.reserve(len(v))]
		b.values = append(b.values, v...)
	}
	b.levels.add(true, len(v))
	return len(v)
}

// widen is take of numbers of another width, which it copies in any case.
func widen[T float32 | float64, S float32 | float64](b *floats[T], v []S) int {
	if !b.levels.accepts(true, min(len(v), pageBytes/b.width())) {
		return 0
	}
	v = v[:b.reserve(len(v))]
	for _, x := range v {
		b.values = append(b.values, T(x))
	}
	b.levels.add(true, len(v))
	return len(v)
}

// piece returns how many of n numbers the next of their pages has: all have nearly the same
// length.
func (b *floats[T]) piece(n int) int {
	pages := (n + mostLent - 1) / mostLent
	return (n + pages - 1) / pages
}

// reserve returns how many of n numbers fit into the page, and makes room for them.
func (b *floats[T]) reserve(n int) int {
	most := pageBytes / b.width()
	if b.values == nil {
		b.values = make([]T, 0, most)
	}
	return min(n, most-len(b.values))
}

func (b *floats[T]) full() bool {
	return b.lent != nil || len(b.values)*b.width() >= pageBytes || b.levels.full()
}

func (b *floats[T]) Len() int {
	if b.levels.optional {
		return b.levels.rows
	}
	return len(b.values) + len(b.lent)
}

func (b *floats[T]) Size() int64 { return int64((len(b.values) + len(b.lent)) * b.width()) }

func (b *floats[T]) Reset() {
	b.values, b.lent = b.values[:0], nil
	b.levels.reset()
}

func (b *floats[T]) Page() parquet.Page {
	v := b.values
	if b.lent != nil {
		v = b.lent
	}
	p := floatPage[T]{values: v}
	switch v := any(v).(type) {
	case []float32:
		p.Page = b.page(len(v), encoding.FloatValues(v), run{})
	case []float64:
		p.Page = b.page(len(v), encoding.DoubleValues(v), run{})
	}
	return &p
}

// floatPage is a page whose bounds are found faster than by parquet-go.
type floatPage[T float32 | float64] struct {
	parquet.Page
	values []T
}

// Bounds returns the least and the greatest number, as parquet-go does: NaN counts only if
// there is nothing else.
func (p *floatPage[T]) Bounds() (least, greatest parquet.Value, ok bool) {
	if len(p.values) == 0 {
		return least, greatest, false
	}
	first := max(0, slices.IndexFunc(p.values, func(x T) bool { return x == x }))
	low, high := bounds(p.values[first:])
	return floatValue(low), floatValue(high), true
}

// bounds returns the bounds of v, whose first element is NaN only if all are. Nearly all
// numbers lie within the bounds of those before them: eight are looked at together.
func bounds[T float32 | float64](v []T) (low, high T) {
	low, high = v[0], v[0]
	i := 0
	for ; i+8 <= len(v); i += 8 {
		w := v[i : i+8 : i+8]
		if w[0] >= low && w[0] <= high && w[1] >= low && w[1] <= high && w[2] >= low && w[2] <= high &&
			w[3] >= low && w[3] <= high && w[4] >= low && w[4] <= high && w[5] >= low && w[5] <= high &&
			w[6] >= low && w[6] <= high && w[7] >= low && w[7] <= high {
			continue
		}
		low, high = widest(w, low, high)
	}
	return widest(v[i:], low, high)
}

// widest returns the bounds of v, low and high. NaN in v does not count.
func widest[T float32 | float64](v []T, low, high T) (T, T) {
	for _, x := range v {
		if x < low {
			low = x
		}
		if x > high {
			high = x
		}
	}
	return low, high
}

func floatValue[T float32 | float64](v T) parquet.Value {
	switch v := any(v).(type) {
	case float32:
		return parquet.FloatValue(v)
	default:
		return parquet.DoubleValue(v.(float64))
	}
}
