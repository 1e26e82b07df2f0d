// Package kv keeps the keys and values of sequences that grow token by token, in
// pages as sparse/kern reads them, so that a new token packs and copies nothing,
// and memory follows what later tokens still read: a frozen mask says when a
// block of keys is read for the last time, and its page is free from then on.
// (Pages of a cache: PagedAttention, Kwon et al. 2023.)
//
// Words: a head is a key head of a layer; a block is a run of positions that a
// head's mask treats as one; a page holds the keys and values of a block; the
// last use of a block is the last block of queries that reads it.
package kv

import (
	"entropipe/models/mat"
	"entropipe/sparse/kern"
)

// Pool hands out pages and takes them back; they are used again, by whichever
// head and sequence needs one. The zero value is ready; one goroutine at a time.
type Pool struct {
	slabs       map[int]*slab // by numbers of a page
	inUse, peak int           // numbers
}

// slab is the memory of pages of one size. It grows by half, so pages are known
// by their number.
type slab struct {
	size int
	data []float32
	next int32 // no page from here on was ever handed out
	free []int32
}

func (p *Pool) slab(size int) *slab {
	if p.slabs == nil {
		p.slabs = map[int]*slab{}
	}
	if p.slabs[size] == nil {
		p.slabs[size] = &slab{size: size}
	}
	return p.slabs[size]
}

// get returns a page; what it holds is of no meaning.
func (p *Pool) get(s *slab) int32 {
	p.inUse += s.size
	p.peak = max(p.peak, p.inUse)
	if n := len(s.free); n > 0 {
		page := s.free[n-1]
		s.free = s.free[:n-1]
		return page
	}
	if end := (int(s.next) + 1) * s.size; end > len(s.data) {
		data := make([]float32, max(end, len(s.data)/s.size*3/2*s.size))
		copy(data, s.data)
		s.data = data
	}
	s.next++
	return s.next - 1
}

func (p *Pool) put(s *slab, page int32) {
	p.inUse -= s.size
	s.free = append(s.free, page)
}

func (s *slab) page(i int32) []float32 { return s.data[int(i)*s.size:][:s.size] }

// Bytes returns what pages in use take, and the most that they took since the
// last ResetPeak. The pool keeps the memory of its fullest moment and up to half
// as much more, to use again; what of it is not in use is not counted.
func (p *Pool) Bytes() (inUse, peak int) { return 4 * p.inUse, 4 * p.peak }

// ResetPeak makes the peak what is in use.
func (p *Pool) ResetPeak() { p.peak = p.inUse }

// Shape says how the heads of a cache cut positions into blocks, and for how
// long they need them.
type Shape struct {
	Layers, Heads, Dim int // Heads: of keys, in each layer
	// Block returns the positions of a block, a multiple of 16.
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
	views []kern.Paged
}

// pages are those of one head.
type pages struct {
	block int
	slab  *slab
	of    []int32 // by block; gone: not yet, or no longer, held
	freed int     // blocks below it are not looked at again: they are gone
}

const gone = -1

// New returns an empty cache whose pages come from the pool.
func New(pool *Pool, shape Shape) *Cache {
	c := &Cache{pool: pool, shape: shape, views: make([]kern.Paged, shape.Heads)}
	for l := range shape.Layers {
		for h := range shape.Heads {
			block := shape.Block(l, h)
			c.heads = append(c.heads, pages{block: block, slab: pool.slab(kern.PageSize(block, shape.Dim))})
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
		for r := 0; r < k.Rows; {
			b, at := (first+r)/p.block, (first+r)%p.block
			end := min(k.Rows, r+p.block-at)
			for b >= len(p.of) {
				p.of = append(p.of, gone)
			}
			if p.of[b] == gone && at == 0 && c.last(layer, h, b) >= next/p.block {
				p.of[b] = c.pool.get(p.slab)
			}
			if p.of[b] != gone { // else not kept from its beginning, or needed no more
				kern.WritePage(p.slab.page(p.of[b]), p.block, c.shape.Dim, at, k.Slice(r, end), v.Slice(r, end), h*c.shape.Dim)
			}
			r = end
		}
	}
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
			if p.of[b] != gone && c.last(i/c.shape.Heads, i%c.shape.Heads, b) < next/p.block {
				c.pool.put(p.slab, p.of[b])
				p.of[b] = gone
			}
			if p.of[b] == gone && p.freed == b {
				p.freed = b + 1
			}
		}
	}
}

// Pages returns where the heads of a layer have what has been put and not been
// freed, for kern.Job.Paged. The slice is the cache's, until the next Pages; what
// it names is true until the next Put to any cache of the pool, Free or Close.
func (c *Cache) Pages(layer int) []kern.Paged {
	for h := range c.views {
		p := &c.heads[layer*c.shape.Heads+h]
		c.views[h] = kern.Paged{Pages: p.slab.data, Block: p.block, At: p.of}
	}
	return c.views
}

// Close gives back all pages. The cache is empty then and may be used again.
func (c *Cache) Close() {
	for i := range c.heads {
		p := &c.heads[i]
		for _, page := range p.of {
			if page != gone {
				c.pool.put(p.slab, page)
			}
		}
		p.of, p.freed = p.of[:0], 0
	}
}
