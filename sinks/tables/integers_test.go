package tables

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"entropipe/sinks/internal/batches"
)

type numbersRow struct {
	A int32 `parquet:"a,delta"`
	B int64 `parquet:"b,delta"`
	T int64 `parquet:"t,delta,timestamp(microsecond)"`
	N int32 `parquet:"n,optional,delta"`
}

// numbersFile writes what add adds to a table of numbersRow and returns the
// file.
func numbersFile(t *rapid.T, add func(w *tableWriter)) *parquet.File {
	var out bytes.Buffer
	w := newTableWriter(&table{name: "numbers", row: numbersRow{}}, &Config{})
	w.limit = groupSize{1 << 20, 64e6}
	w.reset(&out)
	add(w)
	if _, err := w.finish(nil); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// pieces of numbers: runs short and long, of any step, the edges of int32,
// numbers with nothing in common.
type piece struct {
	from   int32
	step   int // 0 and 1: extend; 2: take from a slice
	length int
}

func drawPieces(t *rapid.T) []piece {
	edge := rapid.SampledFrom([]int32{0, 1, -1, math.MaxInt32, math.MinInt32, math.MaxInt32 - 1, 100})
	n := rapid.IntRange(1, 12).Draw(t, "pieces")
	var out []piece
	for range n {
		length := rapid.SampledFrom([]int{1, 1, 1, 2, 3, 127, 128, 129, longRun - 1, longRun, longRun + 1,
			40_000}).Draw(t, "length")
		p := piece{step: rapid.IntRange(0, 2).Draw(t, "step"), length: length}
		if p.from = edge.Draw(t, "edge"); rapid.Bool().Draw(t, "any") {
			p.from = rapid.Int32().Draw(t, "from")
		}
		if k := len(out); k > 0 && rapid.Bool().Draw(t, "goes on") {
			p.from = out[k-1].from + int32(out[k-1].length)
		}
		if p.step == 1 {
			p.from = min(p.from, math.MaxInt32-int32(length))
		}
		out = append(out, p)
	}
	return out
}

func (p piece) numbers() []int32 {
	v := make([]int32, p.length)
	for i := range v {
		switch p.step {
		case 2:
			v[i] = p.from ^ int32(i*i*7919)
		default:
			v[i] = p.from + int32(p.step*i)
		}
	}
	return v
}

// Whatever runs they form, the numbers in the file are those that were added,
// and each page's bounds in the index are its least and greatest.
func TestNumbersComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := drawPieces(t)
		var want []int32
		for _, p := range pieces {
			want = append(want, p.numbers()...)
		}
		f := numbersFile(t, func(w *tableWriter) {
			for _, p := range pieces {
				v := p.numbers()
				w.begin(len(v), 20*len(v))
				switch {
				case p.step < 2 && p.length > 1:
					addPiece(w, p)
				default:
					w.stride32(v, 1, len(v))
					for _, x := range v {
						w.next = 1
						w.int64(wide(x))
						w.int64(^wide(x))
						w.int32(x)
					}
				}
				w.end(len(v))
			}
		})
		for i, get := range []func(v parquet.Value) int64{
			func(v parquet.Value) int64 { return int64(v.Int32()) }, parquet.Value.Int64,
			func(v parquet.Value) int64 { return ^v.Int64() },
			func(v parquet.Value) int64 { return wide(v.Int32()) }} {
			expect := func(k int) int64 {
				if i == 0 {
					return int64(want[k])
				}
				return wide(want[k])
			}
			if err := compareColumn(f, i, len(want), get, expect, i == 2); err != nil {
				t.Fatalf("column %d of %+v: %v", i, pieces, err)
			}
		}
	})
}

// wide spreads numbers over int64, so that distances overflow there, too.
func wide(v int32) int64 { return int64(v) << 32 }

// addPiece adds a run to the first column at once, to the others one by one.
func addPiece(w *tableWriter, p piece) {
	if p.step == 0 {
		w.repeat32(p.from, p.length)
		w.repeat64(wide(p.from), p.length)
		w.repeat64(^wide(p.from), p.length)
	} else {
		w.count32(p.from, p.length)
		for _, x := range p.numbers() {
			w.next = 1
			w.int64(wide(x))
			w.int64(^wide(x))
		}
	}
	for _, x := range p.numbers() {
		w.next = 3
		w.int32(x)
	}
}

func compareColumn(f *parquet.File, column, rows int, get func(parquet.Value) int64, want func(int) int64,
	negative bool) error {
	at := 0
	for _, g := range f.RowGroups() {
		chunk := g.ColumnChunks()[column]
		index, err := chunk.ColumnIndex()
		if err != nil {
			return err
		}
		pages := chunk.Pages()
		for k := 0; ; k++ {
			page, err := pages.ReadPage()
			if err != nil {
				break
			}
			values := make([]parquet.Value, page.NumValues())
			n, _ := page.Values().ReadValues(values)
			have := make([]int64, n)
			for i, v := range values[:n] {
				if have[i] = get(v); at+i >= rows || have[i] != want(at+i) {
					return fmt.Errorf("row %d is %d of %d rows", at+i, have[i], rows)
				}
			}
			low, high := get(index.MinValue(k)), get(index.MaxValue(k))
			if negative {
				low, high = high, low
			}
			if low != slices.Min(have) || high != slices.Max(have) {
				return fmt.Errorf("page %d: bounds %d and %d in the index, %d and %d in the page", k, low, high,
					slices.Min(have), slices.Max(have))
			}
			at += n
		}
		pages.Close()
	}
	if at != rows {
		return fmt.Errorf("%d rows of %d", at, rows)
	}
	return nil
}

// The keys of a large frame take no more room than their first numbers.
func TestRunsAreNotSpelledOut(t *testing.T) {
	b := &integers[int32]{buffer: buffer{typ: parquet.Int32Type}}
	for _, add := range []struct {
		first   int32
		step, n int
		taken   bool
	}{{7, 0, 100_000, true}, {7, 0, 1, true}, {8, 0, 1, false}, {7, 1, 2, false}} {
		if b.extend(add.first, add.step, add.n) != add.taken {
			t.Errorf("%+v: not so after %+v", add, b.run)
		}
	}
	if len(b.values) > 0 || b.Len() != 100_001 {
		t.Errorf("%d values, %d in all", len(b.values), b.Len())
	}
	if k := b.take([]int32{9}, 1, 1); k != 0 {
		t.Errorf("took %d numbers at the end of a long run", k)
	}
}

// After an error of the file, what is added is dropped.
func TestNumbersAfterAnErrorDoNotPileUp(t *testing.T) {
	w := newTableWriter(trianglesTable, &Config{})
	w.reset(&bytes.Buffer{})
	w.err = errors.New("disk full")
	mesh := batches.Mesh(100_000, 1)
	for range 20 {
		w.next = 5
		w.stride32(mesh, 3, 100_000)
	}
	if b := w.columns[5].n32; cap(b.values) > 2*pageBytes/4 {
		t.Errorf("%d numbers are held", cap(b.values))
	}
}
