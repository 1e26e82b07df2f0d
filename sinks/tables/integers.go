package tables

import (
	"encoding/binary"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// integers is the column buffer of one page of delta-encoded integers. The numbers of the
// page are one slice. While all of them increase by the same step, as a frame's keys (step
// 0) and its triangles' numbers (step 1) do, only the first number, the step and the count
// are kept, and the page is written from these: the delta encoding of such a run repeats
// the same few bytes.
type integers[T int32 | int64] struct {
	buffer
	values []T
	run    run // the numbers of the page while values is empty
}

// run is n numbers: first, first+step, …
type run struct {
	first, step int64
	n           int
}

// longRun is the length from which numbers in a run, or rows that are alike, have a page of
// their own: the page ends where they end.
const longRun = 4096

func (r *run) last() int64 { return r.first + r.step*int64(r.n-1) }

// extend appends the n numbers first, first+step, … It appends none and returns false
// if they would end a long run, or are a long run and the page is not empty: then the
// caller must flush the page and call again.
func (b *integers[T]) extend(first T, step, n int) bool {
	if !b.levels.accepts(true, n) {
		return false
	}
	if len(b.values) > 0 || !b.prolong(first, T(step), n) {
		if b.run.n >= longRun || n >= longRun && b.Len() > 0 {
			return false
		}
		b.spellOut()
		for range n {
			b.values = append(b.values, first)
			first += T(step)
		}
	}
	b.levels.add(true, n)
	return true
}

// prolong adds n numbers to the run if they continue it, and tells whether it did.
func (b *integers[T]) prolong(first, step T, n int) bool {
	r := &b.run
	if r.n == 0 {
		*r = run{int64(first), int64(step), n}
		return true
	}
	last := T(r.last())
	apart := first - last
	if (apart < 0) != (first < last) { // the difference does not fit into a T
		return false
	}
	if r.n == 1 && (n == 1 || apart == step) { // any two numbers are a run
		r.step = int64(apart)
	}
	if apart != T(r.step) || n > 1 && step != apart {
		return false
	}
	r.n += n
	return true
}

// take appends v[0], v[step], …, at most n numbers and no more than fit into the page.
// It returns the number of appended elements; 0: the caller must flush the page.
func (b *integers[T]) take(v []T, step, n int) int {
	if b.run.n >= longRun || !b.levels.accepts(true, n) {
		return 0
	}
	n = b.reserve(n)
	from := len(b.values)
	b.values = b.values[:from+n]
	to := b.values[from:]
	for i := range to {
		to[i] = v[i*step]
	}
	b.levels.add(true, n)
	return n
}

// takeSome is take for values of which some are none, which stands for null.
func (b *integers[T]) takeSome(v []T, none T) int {
	if b.run.n >= longRun || !b.levels.spellOut() {
		return 0
	}
	v = v[:b.reserve(len(v))]
	for _, x := range v {
		if x == none {
			b.levels.addOne(false)
			continue
		}
		b.levels.addOne(true)
		b.values = append(b.values, x)
	}
	return len(v)
}

// reserve returns how many of n numbers fit into the page, at least 1, and makes room for
// them.
func (b *integers[T]) reserve(n int) int {
	b.spellOut()
	from := len(b.values)
	n = min(n, max(1, pageBytes/b.width()-from))
	if cap(b.values) < from+n {
		b.values = append(make([]T, 0, max(from+n, pageBytes/b.width())), b.values...)
	}
	return n
}

// spellOut turns the run into values.
func (b *integers[T]) spellOut() {
	for v := T(b.run.first); b.run.n > 0; b.run.n-- {
		b.values = append(b.values, v)
		v += T(b.run.step)
	}
}

func (b *integers[T]) full() bool {
	return len(b.values)*b.width() >= pageBytes || b.levels.full()
}

func (b *integers[T]) Len() int {
	if b.levels.optional {
		return b.levels.rows
	}
	return len(b.values) + b.run.n
}

func (b *integers[T]) Size() int64 { return int64(len(b.values) * b.width()) }

func (b *integers[T]) Reset() {
	b.values, b.run = b.values[:0], run{}
	b.levels.reset()
}

func (b *integers[T]) Page() parquet.Page {
	v := b.values
	if b.run.n > 0 {
		v = []T{T(b.run.first), T(b.run.last())}
	}
	var data encoding.Values
	switch v := any(v).(type) {
	case []int32:
		data = encoding.Int32Values(v)
	case []int64:
		data = encoding.Int64Values(v)
	}
	return b.page(len(v), data, b.run)
}

// append appends the run as DELTA_BINARY_PACKED: a header, then for every 128 numbers
// after the first a block with the smallest difference of neighbours and four bit
// widths. All differences are equal, so the widths are 0 and no bits follow.
func (r *run) append(dst []byte) []byte {
	const block, miniBlocks = 128, 4
	dst = binary.AppendUvarint(dst, block)
	dst = binary.AppendUvarint(dst, miniBlocks)
	dst = binary.AppendUvarint(dst, uint64(r.n))
	dst = binary.AppendVarint(dst, r.first)
	one := append(binary.AppendVarint(nil, r.step), make([]byte, miniBlocks)...)
	for left := r.n - 1; left > 0; left -= block {
		dst = append(dst, one...)
	}
	return dst
}
