package schemas

import (
	"math"
	"sort"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
)

// words is the dictionary of a column of text: what its batches brought, in
// parts, because each delta goes on where the last one ended.
type words []wordPart

type wordPart struct {
	first int // number of the part's first word
	array arrow.Array
}

// readWords reads a dictionary batch of column c: a new dictionary, or a
// delta to the one there is. Batches that came before keep theirs.
func (d *Decoder) readWords(dict *words, m *ipcMessage, c *column, limit int64) (declared int64, err *FormatError) {
	l := layout{version: m.version, nodes: 1, buffers: 3, top: []int32{0}}
	if c.dt.ID() == arrow.STRING_VIEW {
		l.buffers, l.views = 2, 1
	}
	data := m.sub(m.header, 1)
	delta := m.byteField(m.header, 2, 0) != 0
	if m.broken || data.size == 0 {
		return 0, formatErr(ReasonCorrupt, m.at, "the metadata of the dictionary points outside its %d bytes", len(m.b))
	}
	b, declared, err := newBatch(m, data, &l, limit)
	if err != nil {
		return 0, err
	}
	a, err := d.array(&b, &column{name: c.name + " (dictionary)"}, c.dt)
	if err != nil {
		return 0, err
	}
	part := wordPart{array: a}
	if delta && len(*dict) > 0 {
		last := (*dict)[len(*dict)-1]
		part.first = last.first + last.array.Len()
		*dict = append(*dict, part)
	} else {
		*dict = words{part}
	}
	return declared, nil
}

// labels reads a column of text in one batch.
type labels struct {
	name  string      // name of the column
	array arrow.Array // the strings, or the indices of them
	words words       // the dictionary, if dict
	dict  bool
}

// label returns the label of a row of the batch; "" for null.
func (d *Decoder) label(l *labels, row int) (string, *FormatError) {
	s, _, err := l.text(row)
	if err != nil {
		return "", err
	}
	if !utf8.ValidString(s) {
		return "", formatErr(ReasonCorrupt, -1, "column %s: value %d is not UTF-8", l.name, row)
	}
	if len(s) > maxName {
		return "", formatErr(ReasonBadLength, -1, "column %s has a label of %d bytes; %d is the most",
			l.name, len(s), maxName)
	}
	s = d.names.get(s)
	if d.names.grown > d.limit() { // views may overlap: many long labels in few bytes
		return "", formatErr(ReasonTooLarge, -1, "the labels take more than %d bytes (--max-frame-bytes)", d.limit())
	}
	return s, nil
}

// text returns a view of the bytes at a row of the batch, and whether there
// are any: not for null. They need not be UTF-8.
func (l *labels) text(row int) (s string, ok bool, err *FormatError) {
	a := l.array
	if a.IsNull(row) {
		return "", false, nil
	}
	if l.dict {
		i, ok := intAt(a, row)
		if a, row = l.words.find(i); !ok || a == nil {
			return "", false, formatErr(ReasonCorrupt, -1, "column %s refers to word %d, which its dictionary has not",
				l.name, i)
		}
		if a.IsNull(row) {
			return "", false, nil
		}
	}
	if s, ok = textAt(a, row); !ok {
		return "", false, formatErr(ReasonCorrupt, -1, "column %s: the text of value %d lies outside its buffer",
			l.name, row)
	}
	return s, true, nil
}

// find returns the array that holds word i, and its place there; nil if there
// is no such word.
func (w words) find(i int64) (arrow.Array, int) {
	k := sort.Search(len(w), func(k int) bool { return int64(w[k].first) > i }) - 1
	if k < 0 || i-int64(w[k].first) >= int64(w[k].array.Len()) {
		return nil, 0
	}
	return w[k].array, int(i) - w[k].first
}

// intAt returns the index at a row; false if it is no index.
func intAt(a arrow.Array, row int) (int64, bool) {
	switch a := a.(type) {
	case *array.Int8:
		return int64(a.Value(row)), true
	case *array.Int16:
		return int64(a.Value(row)), true
	case *array.Int32:
		return int64(a.Value(row)), true
	case *array.Int64:
		return a.Value(row), true
	case *array.Uint8:
		return int64(a.Value(row)), true
	case *array.Uint16:
		return int64(a.Value(row)), true
	case *array.Uint32:
		return int64(a.Value(row)), true
	case *array.Uint64:
		return int64(a.Value(row)), a.Value(row) <= math.MaxInt64
	}
	return 0, false
}

// textAt returns a view of the string at a row. Arrow does not check where the
// offsets point before it slices; it panics then.
func textAt(a arrow.Array, row int) (s string, ok bool) {
	defer func() {
		if recover() != nil {
			s, ok = "", false
		}
	}()
	switch a := a.(type) {
	case *array.String:
		return a.Value(row), true
	case *array.LargeString:
		return a.Value(row), true
	case *array.StringView:
		return a.Value(row), true
	}
	return "", false
}

// sketches makes a frame of each drawing of a sketches/1 message: a run of
// rows of one drawing_id, also across batches.
func (d *Decoder) sketches(l *layout, key FrameKey) *FormatError {
	if d.rows == 0 {
		return formatErr(ReasonEmpty, -1, "the message has no drawing: its Arrow stream has no rows")
	}
	var whole Frame
	if err := d.coordinates(&whole, l, true); err != nil {
		return err
	}
	if err := d.checkSize(16); err != nil {
		return err
	}
	ids, err := values(d, &l.cols[colDrawing], &d.i64[0], fillIDs)
	if err != nil {
		return err
	}
	var times []int64
	if c := &l.cols[colTime]; c.name != "" {
		if times, err = values(d, c, &d.i64[1], fillInts); err != nil {
			return err
		}
	}
	n := 1
	for i := 1; i < len(ids); i++ {
		if ids[i] != ids[i-1] {
			n++
		}
	}
	if key.FrameID > math.MaxInt64-int64(n) {
		return formatErr(ReasonBadHeader, -1, "frame-id %d leaves no room for %d drawings", key.FrameID, n)
	}
	if _, err := d.newFrames(n, &key); err != nil {
		return err
	}
	d.cut(&whole, ids, times)
	if d.Strokes {
		d.strokes(&l.cols[colStroke])
	}
	return d.nameDrawings(&l.cols[colLabel])
}

// cut divides the points of the message among its drawings.
func (d *Decoder) cut(whole *Frame, ids, times []int64) {
	drawings := make([]Drawing, len(d.frames)) // results keep pointers to them
	start := 0
	for k := range d.frames {
		end := start + 1
		for end < len(ids) && ids[end] == ids[start] {
			end++
		}
		f := &d.frames[k]
		f.FrameID += int64(k)
		f.Double = whole.Double
		if f.Double {
			f.Cloud64 = whole.Cloud64.Slice(start, end)
		} else {
			f.Cloud32 = whole.Cloud32.Slice(start, end)
		}
		if times != nil && times[start] != nullInt64 {
			f.TimeNs = times[start]
		}
		drawings[k].ID = ids[start]
		f.Drawing = &drawings[k]
		start = end
	}
}

// strokes divides the points of each drawing among its strokes: runs of rows of one number. A
// column that cannot be read is no fault of the message, since results do not depend on it.
func (d *Decoder) strokes(c *column) {
	if c.name == "" || c.twice || !c.isInteger() {
		return
	}
	numbers, err := values(d, c, &d.i64[2], fillIDs)
	if err != nil {
		return
	}
	d.ends = resize(d.ends, len(numbers))[:0] // so that appending moves nothing
	start := 0
	for k := range d.frames {
		f, from := &d.frames[k], len(d.ends)
		own := numbers[start : start+f.Len()]
		for i := range own {
			if i == len(own)-1 || own[i] != own[i+1] {
				d.ends = append(d.ends, int32(i+1))
			}
		}
		f.Strokes = d.ends[from:len(d.ends):len(d.ends)]
		start += f.Len()
	}
}

// nameDrawings gives each drawing the label of its first row.
func (d *Decoder) nameDrawings(c *column) (err *FormatError) {
	if c.name == "" {
		return nil
	}
	var in labels
	row, first, next := 0, 0, 0 // the drawing's first row; that of its batch; the batch after
	for k := range d.frames {
		f := &d.frames[k]
		for ; next == 0 || row >= first+d.batches[next-1].rows; next++ {
			if next > 0 {
				first += d.batches[next-1].rows
			}
			in = labels{}
		}
		if in.array == nil {
			if in, err = d.labelsOf(&d.batches[next-1], c, 0); err != nil {
				return err
			}
		}
		if f.Drawing.Label, err = d.label(&in, row-first); err != nil {
			return err
		}
		row += f.Len()
	}
	return nil
}

// labelsOf opens a column of text in a batch; its dictionary, if it has one, is
// number k of the batch.
func (d *Decoder) labelsOf(b *batch, c *column, k int) (l labels, err *FormatError) {
	l = labels{name: c.name, words: b.words[k], dict: c.dict}
	dt := c.dt
	if l.dict {
		dt = c.index
	}
	l.array, err = d.array(b, c, dt)
	return l, err
}
