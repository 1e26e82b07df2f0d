// Package kv keeps the keys and values of sequences that grow token by token, in
// pages, so that memory follows what later tokens still read: a frozen mask says
// when a block of keys is read for the last time, and its page is free from then
// on. (Pages of a cache: PagedAttention, Kwon et al. 2023.)
//
// Where all heads of a layer read everything to the end, pages would only have to
// be put together again for every token: such a layer is one piece of memory,
// which doubles when it is full, and is read in place.
//
// Words: a head is a key head of a layer; a block is a run of positions that a
// head's mask treats as one; a page holds the keys and values of a block; the
// last use of a block is the last block of queries that reads it; a layer is
// whole when nothing of it is ever freed.
package kv

import "entropipe/models/mat"

// Pool hands out pages and takes them back. Pages of a size are used again.
// The zero value is ready; one goroutine at a time.
type Pool struct {
	free        map[int][][]float32
	inUse, peak int
}

// get returns a page of n numbers; what it holds is of no meaning.
func (p *Pool) get(n int) []float32 {
	p.inUse += n
	p.peak = max(p.peak, p.inUse)
	if pages := p.free[n]; len(pages) > 0 {
		page := pages[len(pages)-1]
		p.free[n] = pages[:len(pages)-1]
		return page
	}
	return make([]float32, n)
}

func (p *Pool) put(page []float32) {
	if p.free == nil {
		p.free = map[int][][]float32{}
	}
	p.inUse -= len(page)
	p.free[len(page)] = append(p.free[len(page)], page)
}

// Bytes returns what pages in use take, and the most that they took since the
// last ResetPeak. Pages that wait to be used again are not counted, and stay
// until Trim.
func (p *Pool) Bytes() (inUse, peak int) { return 4 * p.inUse, 4 * p.peak }

// ResetPeak makes the peak what is in use.
func (p *Pool) ResetPeak() { p.peak = p.inUse }

// Trim gives up the pages that are not in use.
func (p *Pool) Trim() { p.free = nil }

// Shape says how the heads of a cache cut positions into blocks, and for how
// long they need them.
type Shape struct {
	Layers, Heads, Dim int // Heads: of keys, in each layer
	// Block returns the positions of a block, above 0.
	Block func(layer, head int) int
	// LastUse returns the last block of queries that reads a block of keys, in
	// blocks of that head; -1: none does. It is nil where all blocks stay.
	LastUse func(layer, head, block int) int
	// Whole says that no block of a layer is freed before the end; then neither
	// Block nor LastUse is asked about it. nil: no layer is whole.
	Whole func(layer int) bool
}

// Cache holds one sequence. One goroutine at a time.
type Cache struct {
	pool   *Pool
	shape  Shape
	layers []whole
	heads  []pages // [layer*Heads+head], of layers that are not whole
}

// whole is a layer in one piece: keys [capacity][Heads*Dim], then values.
type whole struct {
	is       bool
	capacity int // positions
	rows     []float32
}

// pages are those of one head: nil where a block is not yet, or no longer, held.
type pages struct {
	block int
	of    [][]float32 // keys [block][Dim], then values
	freed int         // blocks below it are not looked at again: they are gone
}

// New returns an empty cache whose pages come from the pool.
func New(pool *Pool, shape Shape) *Cache {
	c := &Cache{pool: pool, shape: shape, layers: make([]whole, shape.Layers), heads: make([]pages, shape.Layers*shape.Heads)}
	for l := range shape.Layers {
		if c.layers[l].is = shape.Whole != nil && shape.Whole(l); c.layers[l].is {
			continue
		}
		for h := range shape.Heads {
			c.heads[l*shape.Heads+h].block = shape.Block(l, h)
		}
	}
	return c
}

// Put stores the keys and values [rows][Heads*Dim] of a layer at positions
// first onwards. Blocks that no query at or after position next will read are
// not kept.
func (c *Cache) Put(layer, first int, k, v mat.Matrix, next int) {
	if c.layers[layer].is {
		c.putWhole(&c.layers[layer], first, k, v)
		return
	}
	for h := range c.shape.Heads {
		p := &c.heads[layer*c.shape.Heads+h]
		for r := range k.Rows {
			b, at := (first+r)/p.block, (first+r)%p.block
			for b >= len(p.of) {
				p.of = append(p.of, nil)
			}
			if p.of[b] == nil {
				if at != 0 || c.last(layer, h, b) < next/p.block {
					continue // not kept from its beginning, or needed no more
				}
				p.of[b] = c.pool.get(2 * p.block * c.shape.Dim)
			}
			c.store(p.of[b], at, p.block, k.Row(r), v.Row(r), h)
		}
	}
}

// smallest is the positions that a whole layer begins with.
const smallest = 64

// putWhole stores rows in a layer of one piece.
func (c *Cache) putWhole(w *whole, first int, k, v mat.Matrix) {
	if n := first + k.Rows; n > w.capacity {
		old, capacity := *w, max(w.capacity, smallest)
		for capacity < n {
			capacity *= 2
		}
		wide := c.shape.Heads * c.shape.Dim
		w.capacity, w.rows = capacity, c.pool.get(2*capacity*wide)
		if old.rows != nil {
			copy(w.rows, old.rows[:first*wide])
			copy(w.rows[capacity*wide:], old.rows[old.capacity*wide:][:first*wide])
			c.pool.put(old.rows)
		}
	}
	keys, values := c.wholeRows(w, first+k.Rows)
	for r := range k.Rows {
		copy(keys.Row(first+r), k.Row(r))
		copy(values.Row(first+r), v.Row(r))
	}
}

// wholeRows are the first n positions of a layer of one piece.
func (c *Cache) wholeRows(w *whole, n int) (k, v mat.Matrix) {
	wide := c.shape.Heads * c.shape.Dim
	return mat.Of(n, wide, w.rows), mat.Of(n, wide, w.rows[w.capacity*wide:])
}

func (c *Cache) store(page []float32, at, block int, k, v []float32, head int) {
	d := c.shape.Dim
	copy(page[at*d:(at+1)*d], k[head*d:])
	copy(page[(block+at)*d:(block+at+1)*d], v[head*d:])
}

// last is LastUse, or the end of all times.
func (c *Cache) last(layer, head, block int) int {
	if c.shape.LastUse == nil {
		return int(^uint(0) >> 1)
	}
	return c.shape.LastUse(layer, head, block)
}

// Free gives back the pages that no query at or after position next will read.
func (c *Cache) Free(next int) {
	if c.shape.LastUse == nil {
		return
	}
	for i := range c.heads {
		p := &c.heads[i] // of a whole layer: without pages
		for b := p.freed; b < len(p.of); b++ {
			if p.of[b] != nil && c.last(i/c.shape.Heads, i%c.shape.Heads, b) < next/p.block {
				c.pool.put(p.of[b])
				p.of[b] = nil
			}
			if p.of[b] == nil && p.freed == b {
				p.freed = b + 1
			}
		}
	}
}

// Rows returns the keys and values [n][Heads*Dim] of a layer at the positions
// below n, as many as have been put, until the next Put, Free or Close. Those of
// a whole layer are views; of others what is held is copied to scratch, each row
// to its position, and rows of blocks that are gone have no meaning. Calls with
// scratch of their own may run at the same time.
func (c *Cache) Rows(layer, n int, scratch *Scratch) (k, v mat.Matrix) {
	if w := &c.layers[layer]; w.is {
		return c.wholeRows(w, n)
	}
	wide := c.shape.Heads * c.shape.Dim
	k, v = mat.Of(n, wide, extend(&scratch.k, n*wide)), mat.Of(n, wide, extend(&scratch.v, n*wide))
	for h := range c.shape.Heads {
		c.gather(layer, h, k, v)
	}
	return k, v
}

// Scratch is memory that Rows uses again. The zero value is ready.
type Scratch struct{ k, v []float32 }

// extend makes v hold n numbers, with room to grow step by step.
func extend(v *[]float32, n int) []float32 {
	if cap(*v) < n {
		*v = make([]float32, n, 2*n)
	}
	*v = (*v)[:n]
	return *v
}

func (c *Cache) gather(layer, head int, k, v mat.Matrix) {
	d := c.shape.Dim
	p := &c.heads[layer*c.shape.Heads+head]
	for b := p.freed; b < len(p.of); b++ {
		page := p.of[b]
		if page == nil {
			continue
		}
		for at := range min(p.block, k.Rows-b*p.block) {
			r := b*p.block + at
			copy(k.Data[r*k.Stride+head*d:][:d], page[at*d:])
			copy(v.Data[r*v.Stride+head*d:][:d], page[(p.block+at)*d:])
		}
	}
}

// Close gives back all pages. The cache is empty then and may be used again.
func (c *Cache) Close() {
	for i := range c.layers {
		if w := &c.layers[i]; w.rows != nil {
			c.pool.put(w.rows)
			w.capacity, w.rows = 0, nil
		}
	}
	for i := range c.heads {
		p := &c.heads[i]
		for _, page := range p.of {
			if page != nil {
				c.pool.put(page)
			}
		}
		p.of, p.freed = p.of[:0], 0
	}
}
