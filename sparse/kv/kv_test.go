package kv_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"entropipe/models/mat"
	"entropipe/sparse/kern"
	"entropipe/sparse/kv"
	"pgregory.net/rapid"
)

// masks are random last uses of every block, not before the block itself.
type masks struct {
	layers, heads, dim, length int
	block                      []int   // [layer*heads+head]
	last                       [][]int // [layer*heads+head][block]
}

func drawMasks(t *rapid.T) *masks {
	m := &masks{
		layers: rapid.IntRange(1, 2).Draw(t, "layers"), heads: rapid.IntRange(1, 3).Draw(t, "heads"),
		dim: rapid.SampledFrom([]int{1, 3, 8, 16, 20}).Draw(t, "dim"), length: rapid.IntRange(1, 150).Draw(t, "length"),
	}
	for i := range m.layers * m.heads {
		size := rapid.SampledFrom([]int{16, 32, 48}).Draw(t, fmt.Sprint("block of ", i))
		blocks := (m.length + size - 1) / size
		last := make([]int, blocks)
		for b := range last {
			last[b] = rapid.IntRange(b, blocks).Draw(t, fmt.Sprintf("last use of block %d of %d", b, i))
			if last[b] == blocks {
				last[b] = math.MaxInt
			}
		}
		m.block, m.last = append(m.block, size), append(m.last, last)
	}
	return m
}

func (m *masks) shape() kv.Shape {
	return kv.Shape{
		Layers: m.layers, Heads: m.heads, Dim: m.dim,
		Block:   func(l, h int) int { return m.block[l*m.heads+h] },
		LastUse: func(l, h, b int) int { return m.last[l*m.heads+h][b] },
	}
}

// held returns the bytes of the pages that a cache of n positions must hold,
// when the queries from position next on are to come.
func (m *masks) held(n, next int) int {
	sum := 0
	for i, size := range m.block {
		for b := 0; b*size < n; b++ {
			if m.last[i][b] >= next/size {
				sum += 4 * kern.PageSize(size, m.dim)
			}
		}
	}
	return sum
}

// row is what stands at a position of a layer.
func (m *masks) row(layer, position int, values bool) []float32 {
	row := make([]float32, m.heads*m.dim)
	for i := range row {
		row[i] = float32(layer*1e6 + position*1e3 + i + 1)
		if values {
			row[i] = -row[i]
		}
	}
	return row
}

func (m *masks) rows(layer, lo, hi int, values bool) mat.Matrix {
	var all []float32
	for p := lo; p < hi; p++ {
		all = append(all, m.row(layer, p, values)...)
	}
	return mat.Of(hi-lo, m.heads*m.dim, all)
}

// A cache gives back what later queries read, each row at its place, and holds
// no page longer than the masks say.
func TestCacheHoldsWhatIsStillRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMasks(t)
		var pool kv.Pool
		prompt := rapid.IntRange(0, m.length).Draw(t, "prompt")
		c := kv.New(&pool, m.shape())
		most := 0
		check := func(n int) {
			inUse, peak := pool.Bytes()
			if want := m.held(n, n); inUse != want {
				t.Fatalf("%d positions: %d bytes are in use, want %d", n, inUse, want)
			}
			most = max(most, inUse)
			if peak < most {
				t.Fatalf("a peak of %d, but %d were in use", peak, most)
			}
			m.checkRows(t, c, n)
		}
		for l := range m.layers {
			c.Put(l, 0, m.rows(l, 0, prompt, false), m.rows(l, 0, prompt, true), prompt)
		}
		check(prompt)
		for n := prompt; n < m.length; n++ {
			for l := range m.layers {
				c.Put(l, n, m.rows(l, n, n+1, false), m.rows(l, n, n+1, true), n)
			}
			c.Free(n + 1)
			check(n + 1)
		}
		c.Close()
		if inUse, _ := pool.Bytes(); inUse != 0 {
			t.Fatalf("%d bytes are in use after Close", inUse)
		}
	})
}

// checkRows compares what Pages names of the blocks that are read at or after
// position n with what was put.
func (m *masks) checkRows(t *rapid.T, c *kv.Cache, n int) {
	for l := range m.layers {
		for h, of := range c.Pages(l) {
			i := l*m.heads + h
			for p := range n {
				if m.last[i][p/m.block[i]] < n/m.block[i] {
					continue
				}
				key, value := entry(of, m.dim, p)
				if want := m.row(l, p, false)[h*m.dim:][:m.dim]; !slices.Equal(key, want) {
					t.Fatalf("layer %d, head %d: key %d of %d is %v, want %v", l, h, p, n, key, want)
				}
				if want := m.row(l, p, true)[h*m.dim:][:m.dim]; !slices.Equal(value, want) {
					t.Fatalf("layer %d, head %d: value %d of %d is %v, want %v", l, h, p, n, value, want)
				}
			}
		}
	}
}

// entry returns the key and value at a position, by what kern.Paged says.
func entry(of kern.Paged, dim, position int) (key, value []float32) {
	wide := (dim + 15) / 16 * 16
	page := of.Pages[int(of.At[position/of.Block])*2*of.Block*wide:][:2*of.Block*wide]
	at := position % of.Block
	for c := range dim {
		key = append(key, page[at/16*16*wide+c*16+at%16])
	}
	return key, page[(of.Block+at)*wide:][:dim]
}

// Sliding windows keep a window, however long the sequence becomes; the pages
// that are given back are used again.
func TestWindowsTakeNoMoreMemoryForLongerSequences(t *testing.T) {
	m := &masks{layers: 2, heads: 2, dim: 4, length: 4096, block: []int{16, 16, 16, 16}}
	for range m.block {
		last := make([]int, m.length/16)
		for b := range last {
			last[b] = b + 2
		}
		m.last = append(m.last, last)
	}
	var pool kv.Pool
	c := kv.New(&pool, m.shape())
	k, v := m.rows(0, 0, 1, false), m.rows(0, 0, 1, true)
	allocations := testing.AllocsPerRun(1, func() {
		for n := range m.length {
			for l := range m.layers {
				c.Put(l, n, k, v, n)
			}
			c.Free(n + 1)
		}
		c.Close()
	})
	if _, peak := pool.Bytes(); peak != 4*3*4*kern.PageSize(16, 4) {
		t.Errorf("a window of three blocks takes %d bytes at most, want 3 pages a head", peak)
	}
	if allocations > 200 {
		t.Errorf("%v allocations in the second run", allocations)
	}
}

func TestCacheWithoutMasksKeepsEverything(t *testing.T) {
	m := &masks{layers: 1, heads: 1, dim: 2, length: 40, block: []int{16},
		last: [][]int{{math.MaxInt, math.MaxInt, math.MaxInt}}}
	shape := m.shape()
	shape.LastUse = nil
	var pool kv.Pool
	c := kv.New(&pool, shape)
	c.Put(0, 0, m.rows(0, 0, 40, false), m.rows(0, 0, 40, true), 40)
	c.Free(1 << 20)
	if inUse, peak := pool.Bytes(); inUse != 3*4*kern.PageSize(16, 2) || peak != inUse {
		t.Errorf("%d bytes of %d, want three pages", inUse, peak)
	}
	c.Close()
	pool.ResetPeak()
	if inUse, peak := pool.Bytes(); inUse != 0 || peak != 0 {
		t.Errorf("%d bytes of %d remain", inUse, peak)
	}
}
