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

func (b *floats[T]) codec() compress.Codec { return floatCompression{compression} }

// Numbers that are lent are many, so that no page is small. A page of lent numbers has at most
// mostLent: two byte planes fill a block of zstd, so that the planes of low bits and those of
// high ones have Huffman codes of their own.
const (
	lendFrom = 8192
	mostLent = 64 << 10
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
	v := p.values
	if len(v) == 0 {
		return least, greatest, false
	}
	first := max(0, slices.IndexFunc(v, func(x T) bool { return x == x }))
	low, high := v[first], v[first]
	for _, x := range v[first:] {
		if x < low {
			low = x
		}
		if x > high {
			high = x
		}
	}
	return floatValue(low), floatValue(high), true
}

func floatValue[T float32 | float64](v T) parquet.Value {
	switch v := any(v).(type) {
	case float32:
		return parquet.FloatValue(v)
	default:
		return parquet.DoubleValue(v.(float64))
	}
}
