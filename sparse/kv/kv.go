// Package kv keeps the keys and values of sequences that grow token by token, in
// pages, so that memory follows what later tokens still read: a frozen mask says
// when a block of keys is read for the last time, and its page is free from then
// on. (Pages of a cache: PagedAttention, Kwon et al. 2023.)
//
// Words: a head is a key head of a layer; a block is a run of positions that a
// head's mask treats as one; a page holds the keys and values of a block; the
// last use of a block is the last block of queries that reads it.
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
}

// Cache holds one sequence. One goroutine at a time.
type Cache struct {
	pool  *Pool
	shape Shape
	heads []pages // [layer*Heads+head]
}

// pages are those of one head: nil where a block is not yet, or no longer, held.
type pages struct {
	block int
	of    [][]float32 // keys [block][Dim], then values
	freed int         // blocks below it are not looked at again: they are gone
}

// New returns an empty cache whose pages come from the pool.
func New(pool *Pool, shape Shape) *Cache {
	c := &Cache{pool: pool, shape: shape, heads: make([]pages, shape.Layers*shape.Heads)}
	for l := range shape.Layers {
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
		p := &c.heads[i]
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

// Gather copies the keys and values of a layer that are held into k and v
// [positions][Heads*Dim], each to its position; rows of blocks that are gone
// stay as they are.
func (c *Cache) Gather(layer int, k, v mat.Matrix) {
	d := c.shape.Dim
	for h := range c.shape.Heads {
		p := &c.heads[layer*c.shape.Heads+h]
		for b := p.freed; b < len(p.of); b++ {
			page := p.of[b]
			if page == nil {
				continue
			}
			for at := range min(p.block, k.Rows-b*p.block) {
				r := b*p.block + at
				copy(k.Data[r*k.Stride+h*d:][:d], page[at*d:])
				copy(v.Data[r*v.Stride+h*d:][:d], page[(p.block+at)*d:])
			}
		}
	}
}

// Close gives back all pages. The cache is empty then and may be used again.
func (c *Cache) Close() {
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
