package kv_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"entropipe/models/mat"
	"entropipe/sparse/kv"
	"pgregory.net/rapid"
)

// masks are random last uses of every block, not before the block itself.
type masks struct {
	layers, heads, dim, length int
	whole                      []bool  // [layer]
	block                      []int   // [layer*heads+head]
	last                       [][]int // [layer*heads+head][block]
}

func drawMasks(t *rapid.T) *masks {
	m := &masks{
		layers: rapid.IntRange(1, 2).Draw(t, "layers"), heads: rapid.IntRange(1, 3).Draw(t, "heads"),
		dim: rapid.SampledFrom([]int{1, 3, 8}).Draw(t, "dim"), length: rapid.IntRange(1, 90).Draw(t, "length"),
	}
	for l := range m.layers {
		m.whole = append(m.whole, rapid.IntRange(0, 2).Draw(t, fmt.Sprintf("layer %d whole", l)) == 0)
	}
	for i := range m.layers * m.heads {
		size := rapid.SampledFrom([]int{4, 8, 16}).Draw(t, fmt.Sprint("block of ", i))
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
		Whole:   func(l int) bool { return m.isWhole(l) },
	}
}

func (m *masks) isWhole(layer int) bool { return m.whole != nil && m.whole[layer] }

// held returns the bytes of the pages that a cache of n positions must hold,
// when the queries from position next on are to come.
func (m *masks) held(n, next int) int {
	sum := 0
	for l := range m.layers {
		if m.isWhole(l) && n > 0 {
			capacity := 64
			for capacity < n {
				capacity *= 2
			}
			sum += 4 * 2 * capacity * m.heads * m.dim
		}
	}
	for i, size := range m.block {
		if m.isWhole(i / m.heads) {
			continue
		}
		for b := 0; b*size < n; b++ {
			if m.last[i][b] >= next/size {
				sum += 4 * 2 * size * m.dim
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

// checkRows compares what Rows brings of the blocks that are read at or after
// position n with what was put.
func (m *masks) checkRows(t *rapid.T, c *kv.Cache, n int) {
	var scratch kv.Scratch
	if n == 0 {
		return
	}
	for l := range m.layers {
		k, v := c.Rows(l, n, &scratch)
		for p := range n {
			for h := range m.heads {
				i := l*m.heads + h
				if !m.isWhole(l) && m.last[i][p/m.block[i]] < n/m.block[i] {
					continue
				}
				if got, want := k.Row(p)[h*m.dim:][:m.dim], m.row(l, p, false)[h*m.dim:][:m.dim]; !slices.Equal(got, want) {
					t.Fatalf("layer %d, head %d: key %d of %d is %v, want %v", l, h, p, n, got, want)
				}
				if got, want := v.Row(p)[h*m.dim:][:m.dim], m.row(l, p, true)[h*m.dim:][:m.dim]; !slices.Equal(got, want) {
					t.Fatalf("layer %d, head %d: value %d of %d is %v, want %v", l, h, p, n, got, want)
				}
			}
		}
	}
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
	if _, peak := pool.Bytes(); peak != 4*3*2*16*4*4 {
		t.Errorf("a window of three blocks takes %d bytes at most, want 3 pages a head", peak)
	}
	if allocations > 200 {
		t.Errorf("%v allocations in the second run", allocations)
	}
}

func TestCacheWithoutMasksKeepsEverything(t *testing.T) {
	m := &masks{layers: 1, heads: 1, dim: 2, length: 40, block: []int{16}, last: [][]int{{math.MaxInt, math.MaxInt, math.MaxInt}}}
	shape := m.shape()
	shape.LastUse = nil
	var pool kv.Pool
	c := kv.New(&pool, shape)
	c.Put(0, 0, m.rows(0, 0, 40, false), m.rows(0, 0, 40, true), 40)
	c.Free(1 << 20)
	if inUse, peak := pool.Bytes(); inUse != 4*2*16*2*3 || peak != inUse {
		t.Errorf("%d bytes of %d, want three pages", inUse, peak)
	}
	c.Close()
	pool.ResetPeak()
	pool.Trim()
	if inUse, peak := pool.Bytes(); inUse != 0 || peak != 0 {
		t.Errorf("%d bytes of %d remain", inUse, peak)
	}
}
