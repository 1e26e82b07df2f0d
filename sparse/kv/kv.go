// Package kv stores the keys and values of sequences that grow token by token, in
// pages as package kern reads them, so that a new token packs and copies nothing.
// A frozen mask determines the last use of a block of keys; afterwards its page is
// free. (Pages of a cache: PagedAttention, Kwon et al. 2023.)
//
// It computes no attention and does not evict pages that are still read.
//
// Words: a head is a key head of a layer; a block is a run of positions that a
// head's mask treats as one; a page holds the keys and values of a block; the
// last use of a block is the last block of queries that reads it.
package kv

import (
	"entropipe/models/mat"
	"entropipe/sparse/kern"
)

// Pool allocates pages and reuses freed ones, for all heads and sequences of its
// caches. The zero value is ready. A Pool and its caches serve one goroutine at a
// time.
type Pool struct {
	slabs       map[int]*slab // by numbers of a page
	inUse, peak int           // numbers
}

// slab is the memory of pages of one size. It moves when it grows, so that pages are
// identified by numbers.
type slab struct {
	size int
	data []float32
	next int32 // number of the first page that was never allocated
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

// get returns a page with undefined contents.
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

// Bytes returns the bytes of pages in use, and their largest number since the last
// ResetPeak. The pool keeps memory for its peak, and up to half as much more, for
// reuse; memory that is not in use is not counted.
func (p *Pool) Bytes() (inUse, peak int) { return 4 * p.inUse, 4 * p.peak }

// ResetPeak sets the peak to the bytes in use.
func (p *Pool) ResetPeak() { p.peak = p.inUse }

// Shape describes the heads of a cache: their blocks, and the last uses of blocks.
type Shape struct {
	Layers, Heads, Dim int // Heads is the number of key heads of a layer
	// Block returns the number of positions of a head's block, a multiple of 16.
	Block func(layer, head int) int
	// LastUse returns the number of the last block of queries that reads a block of
	// keys of a head, or -1 if none does. A nil function keeps all blocks.
	LastUse func(layer, head, block int) int
}

// Cache holds the keys and values of one sequence. It serves one goroutine at a
// time, and so do all caches of a pool together. The owner must call Close.
type Cache struct {
	pool  *Pool
	shape Shape
	heads []pages // [layer*Heads+head]
	views []kern.Paged
}

// pages holds the pages of one head.
type pages struct {
	block int
	slab  *slab
	of    []int32 // [blocks] page of each block, or gone if the block has none
	freed int     // all blocks below it are gone for good
}

const gone = -1

// New returns an empty cache that allocates its pages from the pool.
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

// Put stores keys k and values v [rows][Heads*Dim] of a layer at positions first,
// first+1, …. Positions must be put in ascending order. Put does not store blocks
// that no query at position next or later reads.
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
			if p.of[b] != gone { // a block that is gone was never stored, or has had its last use
				page := p.slab.page(p.of[b])
				kern.WritePage(page, p.block, c.shape.Dim, at, k.Slice(r, end), v.Slice(r, end), h*c.shape.Dim)
			}
			r = end
		}
	}
}

// last returns LastUse of a block, or the largest int if all blocks are kept.
func (c *Cache) last(layer, head, block int) int {
	if c.shape.LastUse == nil {
		return int(^uint(0) >> 1)
	}
	return c.shape.LastUse(layer, head, block)
}

// Free frees the pages that no query at position next or later reads.
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

// Pages returns the stored keys and values of the heads of a layer, for
// kern.Job.Paged. The slice belongs to the cache and is valid until the next Pages.
// Its contents are valid until the next Put to any cache of the pool, Free or Close.
func (c *Cache) Pages(layer int) []kern.Paged {
	for h := range c.views {
		p := &c.heads[layer*c.shape.Heads+h]
		c.views[h] = kern.Paged{Pages: p.slab.data, Block: p.block, At: p.of}
	}
	return c.views
}

// Close frees all pages. Afterwards the cache is empty and may be used again.
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
