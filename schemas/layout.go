package schemas

import "bytes"

// layout describes the batches of a schema. It depends on nothing but the bytes of
// the schema message, and is kept with them: producers send the same schema again
// and again, and comparing the bytes is cheaper than reading the schema.
type layout struct {
	raw     []byte
	version int
	nodes   int     // field nodes of a batch
	buffers int     // buffers of a batch, variadic ones not counted
	views   int     // view columns in a batch
	top     []int32 // nodes of the top-level columns
	cols    [numColumns]column
	names   []string // first columns' names, for errors
	keep    bool     // all is filled
	all     []column // every top-level column in the order of the schema, if keep

	tokenizer stated // the tokenizer that the metadata name, if the schema has tokens or texts
}

// Bounds of a schema. A tree of fields may share its branches, so that a
// kilobyte spells a billion fields.
const (
	maxFields = 1 << 14
	maxDepth  = 64
)

// Types of the union Type in Schema.fbs.
const (
	typeNull = iota + 1
	typeInt
	typeFloat
	typeBinary
	typeUtf8
	typeBool
	typeDecimal
	typeDate
	typeTime
	typeTimestamp
	typeInterval
	typeList
	typeStruct
	typeUnion
	typeFixedSizeBinary
	typeFixedSizeList
	typeMap
	typeDuration
	typeLargeBinary
	typeLargeUtf8
	typeLargeList
	typeRunEndEncoded
	typeBinaryView
	typeUtf8View
	typeListView
	typeLargeListView
	numTypes
)

// arrowTypes holds what the columnar format says of each type: its buffers
// (validity included; for unions and views see readField), its children (-1:
// any number).
var arrowTypes = [numTypes]struct {
	name     string
	buffers  int
	children int
}{
	typeNull: {"null", 0, 0}, typeInt: {"int", 2, 0}, typeFloat: {"float", 2, 0}, typeBinary: {"binary", 3, 0},
	typeUtf8: {"utf8", 3, 0}, typeBool: {"bool", 2, 0}, typeDecimal: {"decimal", 2, 0}, typeDate: {"date", 2, 0},
	typeTime: {"time", 2, 0}, typeTimestamp: {"timestamp", 2, 0}, typeInterval: {"interval", 2, 0},
	typeList: {"list", 2, 1}, typeStruct: {"struct", 1, -1}, typeUnion: {"union", 1, -1},
	typeFixedSizeBinary: {"fixed_size_binary", 2, 0}, typeFixedSizeList: {"fixed_size_list", 1, 1},
	typeMap:      {"map", 2, 1},
	typeDuration: {"duration", 2, 0}, typeLargeBinary: {"large_binary", 3, 0}, typeLargeUtf8: {"large_utf8", 3, 0},
	typeLargeList: {"large_list", 2, 1}, typeRunEndEncoded: {"run_end_encoded", 0, 2},
	typeBinaryView: {"binary_view", 2, 0},
	typeUtf8View:   {"utf8_view", 2, 0}, typeListView: {"list_view", 3, 1},
	typeLargeListView: {"large_list_view", 3, 1},
}

// newLayout reads the schema that m holds.
func newLayout(m *ipcMessage) (*layout, *FormatError) { return readLayout(m, false) }

// readLayout is newLayout; keep makes it fill layout.all.
func readLayout(m *ipcMessage, keep bool) (*layout, *FormatError) {
	if endian := m.shortField(m.header, 0, 0); endian != 0 {
		return nil, formatErr(ReasonUnsupported, m.at,
			"the stream is big-endian; only little-endian streams can be read")
	}
	l := &layout{version: m.version, keep: keep}
	start, n := m.vector(m.header, 1, 4)
	r := layoutReader{flat: &m.flat, layout: l}
	for i := 0; i < n && r.err == nil && !m.broken; i++ {
		l.top = append(l.top, int32(l.nodes))
		r.readColumn(m.table(m.deref(start + 4*i)))
	}
	if r.err == nil && (l.cols[colTokens].name != "" || l.cols[colText].name != "") {
		r.readTokenizer(m.header)
	}
	if m.broken {
		return nil, formatErr(ReasonCorrupt, m.at, "the schema points outside its %d bytes", len(m.b))
	}
	if r.err != nil {
		r.err.At = int64(m.at)
		return nil, r.err
	}
	return l, nil
}

// layoutReader walks the fields of a schema in the order of their nodes.
type layoutReader struct {
	*flat
	*layout
	fields int
	err    *FormatError
}

// readColumn reads a top-level field, and keeps it if it is one of ours. The
// exact name is preferred to one in other letters (X, Intensity).
func (r *layoutReader) readColumn(t table) {
	c := column{node: r.nodes, buffer: r.buffers, views: r.views}
	name := r.str(t, 0)
	if len(r.names) < 20 {
		r.names = append(r.names, string(name[:min(len(name), 40)]))
	}
	r.readField(t, 0)
	if r.keep {
		every := c
		every.name = string(name)
		r.readType(&every, t)
		r.all = append(r.all, every)
	}
	for i, want := range columnNames {
		if !bytes.EqualFold(name, []byte(want)) {
			continue
		}
		old := &r.cols[i]
		switch exact := string(name) == want; {
		case old.name == "" || exact && old.name != want:
			c.name = string(name)
			r.readType(&c, t)
			r.readElement(&c, t)
			*old = c
		case exact || old.name != want:
			old.twice = true
		}
	}
}

// readField counts the nodes and buffers of a field and its children.
func (r *layoutReader) readField(t table, depth int) {
	r.fields++
	if r.fields > maxFields || depth > maxDepth {
		r.fail("the schema has more than %d fields, or more than %d levels of them", maxFields, maxDepth)
		return
	}
	r.nodes++
	start, n := r.vector(t, 5, 4)
	if r.sub(t, 4).size > 0 { // dictionary-encoded: what stands in the batch are indices
		r.buffers += 2
		return
	}
	kind := r.byteField(t, 2, 0)
	if kind == 0 || kind >= numTypes {
		r.fail("column type %d is not known; its buffers cannot be skipped", kind)
		return
	}
	ty := arrowTypes[kind]
	r.buffers += ty.buffers
	switch kind {
	case typeUnion:
		if r.shortField(r.sub(t, 3), 0, 0) == 1 {
			r.buffers++ // dense: offsets
		}
		if r.version == metadataV4 {
			r.buffers++ // validity, which later unions have not
		}
	case typeBinaryView, typeUtf8View:
		r.views++
	}
	if ty.children >= 0 && n != ty.children {
		r.fail("a %s has %d children instead of %d", ty.name, n, ty.children)
		return
	}
	for i := 0; i < n && r.err == nil && !r.broken; i++ {
		r.readField(r.table(r.deref(start+4*i)), depth+1)
	}
}

func (r *layoutReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = formatErr(ReasonUnsupported, -1, format, args...)
	}
}

// layouts remembers the layouts of the last schemas, most recent first.
type layouts struct{ recent []*layout }

const (
	maxLayouts     = 16
	maxLayoutBytes = 64 << 10 // longest schema message that is kept
)

// find returns the layout of the schema that value begins with. A schema
// message holds its own length, so that no other stream begins with its bytes.
func (c *layouts) find(value []byte) *layout {
	for i, l := range c.recent {
		if bytes.HasPrefix(value, l.raw) {
			copy(c.recent[1:i+1], c.recent[:i])
			c.recent[0] = l
			return l
		}
	}
	return nil
}

func (c *layouts) add(l *layout, raw []byte) {
	if len(raw) > maxLayoutBytes {
		return
	}
	l.raw = bytes.Clone(raw)
	if len(c.recent) < maxLayouts {
		c.recent = append(c.recent, nil)
	}
	copy(c.recent[1:], c.recent)
	c.recent[0] = l
}
