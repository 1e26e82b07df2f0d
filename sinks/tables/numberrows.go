package tables

// Methods of tableWriter that append many rows to a column of numbers, which must have a
// buffer of numbers.go.

// column returns the next column.
func (t *tableWriter) column() *column {
	t.next++
	return &t.columns[t.next-1]
}

// repeat32, repeat64, count32 and stride32 append n values of the next column:
// v, v, …; from, from+1, …; v[0], v[step], …

func (t *tableWriter) repeat32(v int32, n int)   { extend(t, t.columns[t.next].n32, v, 0, n) }
func (t *tableWriter) repeat64(v int64, n int)   { extend(t, t.columns[t.next].n64, v, 0, n) }
func (t *tableWriter) count32(from int32, n int) { extend(t, t.columns[t.next].n32, from, 1, n) }

func (t *tableWriter) stride32(v []int32, step, n int) {
	c := t.column()
	t.pages(c, n, func(from int) int { return c.n32.take(v[from*step:], step, n-from) })
}

// floats32 and floats64 append v to the next column. v must not change before the end of the
// file's next page of this column.
func (t *tableWriter) floats32(v []float32) {
	c := t.column()
	t.pages(c, len(v), func(from int) int { return c.f32.take(v[from:]) })
}

// floatsOrNone appends v to the next column, or n nulls if v is nil.
func (t *tableWriter) floatsOrNone(v []float32, n int) {
	if v == nil {
		t.absent(1, n)
	} else {
		t.floats32(v)
	}
}

func (t *tableWriter) floats64(v []float64) {
	c := t.column()
	t.pages(c, len(v), func(from int) int { return c.f64.take(v[from:]) })
}

// widened appends v to the next column, of float64.
func (t *tableWriter) widened(v []float32) {
	c := t.column()
	t.pages(c, len(v), func(from int) int { return widen(c.f64, v[from:]) })
}

// some32 and some64 append v to the next column, which is optional; none stands for null.
func (t *tableWriter) some32(v []int32, none int32) { some(t, t.columns[t.next].n32, v, none) }
func (t *tableWriter) some64(v []int64, none int64) { some(t, t.columns[t.next].n64, v, none) }

func some[T int32 | int64](t *tableWriter, b *integers[T], v []T, none T) {
	lacks := 0
	for _, x := range v {
		if x == none {
			lacks++
		}
	}
	switch c := t.column(); lacks {
	case 0:
		t.pages(c, len(v), func(from int) int { return b.take(v[from:], 1, len(v)-from) })
	case len(v):
		t.next--
		t.absent(1, len(v))
	default:
		t.pages(c, len(v), func(from int) int { return b.takeSome(v[from:], none) })
	}
}

// absent appends n nulls to each of the next columns, which are optional.
func (t *tableWriter) absent(columns, n int) {
	for range columns {
		c := t.column()
		t.pages(c, n, func(int) int {
			if !c.numbers.absent(n) {
				return 0
			}
			return n
		})
	}
}

// extend appends n numbers, first, first+step, …, to the next column.
func extend[T int32 | int64](t *tableWriter, b *integers[T], first T, step, n int) {
	t.pages(t.column(), n, func(int) int {
		if !b.extend(first, step, n) {
			return 0
		}
		return n
	})
}

// pages appends n rows to column c. take appends those from number from on, as many as fit
// into the page; 0: the page must be flushed first.
func (t *tableWriter) pages(c *column, n int, take func(from int) int) {
	for from := 0; from < n; {
		taken := take(from)
		from += taken
		if taken == 0 || c.numbers.full() {
			t.flushPage(c)
		}
	}
}

// flushPage ends the page that a column with a buffer of this package is filling.
func (t *tableWriter) flushPage(c *column) {
	if t.err == nil {
		t.err = c.out.Flush()
	}
	switch { // values that are dropped after an error must not accumulate
	case t.err == nil:
	case c.blobs != nil:
		c.blobs.Reset()
	default:
		c.numbers.Reset()
	}
}
