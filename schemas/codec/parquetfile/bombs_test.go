package parquetfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// column describes a file of one row group and one column, byte by byte.
type column struct {
	element format.SchemaElement
	meta    format.ColumnMetaData // offsets and sizes are filled in
	pages   []page
	rows    int64
	footer  func(*format.FileMetaData)
}

type page struct {
	header format.PageHeader
	body   []byte
}

func leaf(kind format.Type, repetition format.FieldRepetitionType) format.SchemaElement {
	return format.SchemaElement{Name: "x", Type: thrift.New(kind), RepetitionType: thrift.New(repetition)}
}

// dataPage is a page of version 1; its sizes are right.
func dataPage(encoding format.Encoding, values int32, body []byte) page {
	return page{format.PageHeader{Type: format.DataPage, UncompressedPageSize: int32(len(body)),
		CompressedPageSize: int32(len(body)),
		DataPageHeader: thrift.New(format.DataPageHeader{NumValues: values, Encoding: encoding,
			RepetitionLevelEncoding: format.RLE, DefinitionLevelEncoding: format.RLE})}, body}
}

func (c column) file(t *testing.T) []byte {
	t.Helper()
	out := []byte(magic)
	var protocol thrift.CompactProtocol
	for _, p := range c.pages {
		header, err := thrift.Marshal(&protocol, &p.header)
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, header...), p.body...)
	}
	c.meta.DataPageOffset, c.meta.TotalCompressedSize = 4, int64(len(out)-4)
	if c.meta.TotalUncompressedSize == 0 {
		c.meta.TotalUncompressedSize = c.meta.TotalCompressedSize
	}
	c.meta.Type, c.meta.PathInSchema, c.meta.Encoding = c.element.Type.V, []string{"x"}, []format.Encoding{format.Plain}
	m := &format.FileMetaData{Version: 1, NumRows: c.rows,
		Schema:    []format.SchemaElement{{Name: "root", NumChildren: thrift.New(int32(1))}, c.element},
		RowGroups: []format.RowGroup{{NumRows: c.rows, Columns: []format.ColumnChunk{{MetaData: c.meta}}}}}
	if c.footer != nil {
		c.footer(m)
	}
	footer, err := thrift.Marshal(&protocol, m)
	if err != nil {
		t.Fatal(err)
	}
	return closeFile(append(out, footer...), len(footer))
}

func closeFile(out []byte, footer int) []byte {
	return append(binary.LittleEndian.AppendUint32(out, uint32(footer)), magic...)
}

// pack packs n zeros.
func pack(t *testing.T, codec format.CompressionCodec, n int) []byte {
	t.Helper()
	packed, err := parquet.LookupCompressionCodec(codec).Encode(nil, make([]byte, n))
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// packed is a page of bytes that unpack to more than it says.
func packed(t *testing.T, codec format.CompressionCodec, declared int32, n int) column {
	p := dataPage(format.Plain, 4, pack(t, codec, n))
	p.header.UncompressedPageSize = declared
	return column{element: leaf(format.Int32, format.Required), rows: 4, pages: []page{p},
		meta: format.ColumnMetaData{Codec: codec, NumValues: 4, TotalUncompressedSize: 1 << 40}}
}

func levels(runs ...byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(runs))), runs...)
}

// run is a run of n values of one byte.
func run(n uint64, value byte) []byte { return append(binary.AppendUvarint(nil, n<<1), value) }

// bombs are small files that claim much, by what the error says of them.
func bombs(t *testing.T) map[string]map[string][]byte {
	all := map[string]map[string][]byte{}
	add := func(want, name string, data []byte) {
		if all[want] == nil {
			all[want] = map[string][]byte{}
		}
		all[want][name] = data
	}
	for _, codec := range []format.CompressionCodec{format.Snappy, format.Gzip, format.Brotli,
		format.Zstd, format.Lz4Raw} {
		add("does not unpack", codec.String()+" becomes 64 MiB instead of 16 bytes",
			packed(t, codec, 16, 64<<20).file(t))
		add("does not unpack", codec.String()+" becomes 16 bytes instead of 200 MiB",
			packed(t, codec, 200<<20, 16).file(t))
		add("at most 268435456 are read", codec.String()+" says 1 GiB", packed(t, codec, 1<<30, 4096).file(t))
		c := packed(t, codec, 16, 16)
		c.pages[0].body = bytes.Repeat([]byte{0xf3}, 64)
		c.pages[0].header.CompressedPageSize = 64
		add("does not unpack", codec.String()+" is none", c.file(t))
		c = packed(t, codec, 4096, 4096)
		c.meta.TotalUncompressedSize = 100
		add("in a column chunk of 100", codec.String()+" page larger than its chunk", c.file(t))
	}
	required, optional := leaf(format.Int32, format.Required), leaf(format.Int32, format.Optional)
	const many = 32 << 20
	ints := func(encoding format.Encoding, element format.SchemaElement, values int32, body []byte) []byte {
		return column{element: element, rows: int64(values), meta: format.ColumnMetaData{NumValues: int64(values)},
			pages: []page{dataPage(encoding, values, body)}}.file(t)
	}
	add("its runs have more than", "levels", ints(format.Plain, optional, 8, append(levels(run(1<<31-1, 1)...), 0)))
	add("its runs have more than", "many levels",
		ints(format.Plain, optional, 8, append(levels(bytes.Repeat(run(1<<27, 0), 50)...), 0)))
	add("its runs have more than", "runs without values",
		ints(format.Plain, optional, 8, append(levels(append([]byte{0, 1}, run(1<<30, 1)...)...), 0)))
	add("its runs have more than", "indices",
		ints(format.RLEDictionary, required, 8, append([]byte{1}, run(1<<30, 1)...)))
	add("its runs have more than", "indices of no bit",
		ints(format.RLEDictionary, required, 8, append([]byte{0}, binary.AppendUvarint(nil, 1<<31|1)...)))
	add("its runs have more than", "booleans",
		ints(format.RLE, leaf(format.Boolean, format.Required), 8, levels(run(1<<31-1, 1)...)))
	add("its indices have 200 bits", "wide indices", ints(format.RLEDictionary, required, 8, []byte{200, 2, 1}))
	add("integers of at most 8", "differences",
		ints(format.DeltaBinaryPacked, required, 8, []byte{0x80, 1, 4, 0xff, 0xff, 0xff, 0xff, 7, 0}))
	add("integers of at most 8", "lengths", ints(format.DeltaLengthByteArray, leaf(format.ByteArray, format.Required),
		8, []byte{0x80, 1, 4, 0xff, 0xff, 0xff, 0xff, 7, 0}))
	add("values; at most", "more values than its chunk", func() []byte {
		c := column{element: required, rows: 4, meta: format.ColumnMetaData{NumValues: 4},
			pages: []page{dataPage(format.Plain, 1<<30, make([]byte, 16))}}
		return c.file(t)
	}())
	add("at most 33554432 are possible", "more values than the limit",
		ints(format.Plain, optional, many+1, append(levels(run(many+1, 0)...), 0)))
	prefix, _ := new(delta.BinaryPackedEncoding).EncodeInt32(nil, append([]int32{0}, bytes32(1000, 1<<20)...))
	suffix, _ := new(delta.BinaryPackedEncoding).EncodeInt32(nil, append([]int32{1 << 20}, bytes32(1000, 0)...))
	add("its texts have", "prefixes", ints(format.DeltaByteArray, leaf(format.ByteArray, format.Required), 1001,
		append(append(prefix, suffix...), make([]byte, 1<<20)...)))
	add("values in 4 bytes", "dictionary", column{element: required, rows: 4, meta: format.ColumnMetaData{NumValues: 4},
		pages: []page{{format.PageHeader{Type: format.DictionaryPage,
			UncompressedPageSize: 4, CompressedPageSize: 4,
			DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: 1 << 24})},
			make([]byte, 4)}}}.file(t))
	add("a dictionary that is not there", "no dictionary",
		ints(format.RLEDictionary, required, 8, append([]byte{1}, run(8, 0)...)))
	wide := leaf(format.FixedLenByteArray, format.Required)
	wide.TypeLength = thrift.New(int32(1 << 30))
	add("1 to 16777216 are read", "wide values", ints(format.Plain, wide, 1, make([]byte, 16)))
	wide.TypeLength.V = 1 << 20
	add("values of 1048576 bytes", "split values", ints(format.ByteStreamSplit, wide, 1<<20, make([]byte, 16)))
	return all
}

func bytes32(n int, v int32) []int32 {
	all := make([]int32, n)
	for i := range all {
		all[i] = v
	}
	return all
}

// Small files that claim much are refused for what is wrong with them, and take
// little memory.
func TestBombs(t *testing.T) {
	for want, files := range bombs(t) {
		for name, data := range files {
			checkBomb(t, name, data, want)
		}
	}
}

func checkBomb(t *testing.T, name string, data []byte, want string) {
	t.Helper()
	var err error
	reserved := allocated(func() { _, err = readAll(data) })
	var known *FormatError
	if !errors.As(err, &known) || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %T %.300v, want %q", name, err, err, want)
	}
	// What unpacks to 64 MiB has some hundred kilobytes; ratios leave it some room.
	if most := uint64(mutationLimit + 64*len(data)); reserved > most {
		t.Errorf("%s: a file of %d bytes takes %d", name, len(data), reserved)
	}
}

// A footer is refused by what it claims, before anything of that size is made.
func TestFooterBombs(t *testing.T) {
	good := column{element: leaf(format.Int32, format.Required), rows: 4, meta: format.ColumnMetaData{NumValues: 4},
		pages: []page{dataPage(format.Plain, 4, make([]byte, 16))}}
	if columns, err := readAll(good.file(t)); err != nil || len(columns) != 1 {
		t.Fatalf("the good file: %q, %v", columns, err)
	}
	with := func(change func(*format.FileMetaData)) []byte {
		c := good
		c.footer = change
		return c.file(t)
	}
	chunk := func(change func(*format.ColumnMetaData)) []byte {
		return with(func(m *format.FileMetaData) { change(&m.RowGroups[0].Columns[0].MetaData) })
	}
	raw := func(footer ...byte) []byte { return closeFile(append([]byte(magic), footer...), len(footer)) }
	list := func(field byte, n uint64, kind byte) []byte {
		return binary.AppendUvarint([]byte{field<<4 | thriftList, 0xf0 | kind}, n)
	}
	deep := func(n int) []byte { return raw(append(bytes.Repeat([]byte{0x9c}, n), make([]byte, n+1)...)...) }
	chain := with(func(m *format.FileMetaData) {
		element := m.Schema[1]
		m.Schema = nil
		for range 5000 {
			m.Schema = append(m.Schema, format.SchemaElement{Name: "g", NumChildren: thrift.New(int32(1))})
		}
		m.Schema = append(m.Schema, element)
	})
	for want, data := range map[string][]byte{
		"0 bytes":                       {},
		"a footer of 4294967295 bytes":  closeFile([]byte(magic), -1),
		"at most 67108864 are read":     closeFile(make([]byte, MaxFooterBytes+100), MaxFooterBytes+1),
		"encrypted":                     append(make([]byte, 12), "PARE"...),
		`instead of "PAR1"`:             make([]byte, 20),
		"a list of 2000000000 elements": raw(list(2, 2e9, thriftStruct)...),
		"a list of 1000000000 elements": raw(list(4, 1e9, thriftStruct)...),
		"a list of 100 elements":        raw(list(5, 100, thriftBinary)...),
		"unexpected EOF":                raw(6<<4|thriftBinary, 0xff, 0xff, 0xff, 0xff, 7),
		"its schema has 100000 elements": raw(append(list(2, 100000, thriftStruct),
			make([]byte, 100001)...)...),
		"40000 row groups": raw(append(list(4, 40000, thriftStruct),
			make([]byte, 40001)...)...),
		"more than 262144 column chunks": raw(append(append(list(4, 1, thriftStruct),
			list(1, 300000, thriftStruct)...), make([]byte, 300003)...)...),
		"more than 4194304 elements": raw(append(list(5, 5<<20, thriftByte),
			make([]byte, 5<<20+1)...)...),
		"nest too deep":        deep(1 << 20),
		"nests deeper than 64": chain,
		"claims 1000000 children": with(func(m *format.FileMetaData) {
			m.Schema[0].NumChildren.V = 1e6
		}),
		"claims -3 children": with(func(m *format.FileMetaData) {
			m.Schema[0].NumChildren.V = -3
		}),
		"more than one root": with(func(m *format.FileMetaData) {
			m.Schema = append(m.Schema, m.Schema[1])
		}),
		"its schema ends early": with(func(m *format.FileMetaData) { m.Schema = nil }),
		"claims -1 rows of 4": with(func(m *format.FileMetaData) {
			m.RowGroups[0].NumRows = -1
		}),
		"claims 4 rows of 3":                 with(func(m *format.FileMetaData) { m.NumRows = 3 }),
		"it claims 5 rows, its row groups 4": with(func(m *format.FileMetaData) { m.NumRows = 5 }),
		"it claims -2 rows":                  with(func(m *format.FileMetaData) { m.NumRows = -2 }),
		"claims -7 values":                   chunk(func(c *format.ColumnMetaData) { c.NumValues = -7 }),
		"claims the bytes 4 to -1": chunk(func(c *format.ColumnMetaData) {
			c.TotalCompressedSize = -1
		}),
		"claims the bytes 4 to 1000004": chunk(func(c *format.ColumnMetaData) {
			c.TotalCompressedSize = 1e6
		}),
		"claims the bytes -9": chunk(func(c *format.ColumnMetaData) { c.DataPageOffset = -9 }),
		"claims the bytes 9223372036854775807 to -1": chunk(func(c *format.ColumnMetaData) {
			c.DataPageOffset = 1<<63 - 1
		}),
		"overlap": with(func(m *format.FileMetaData) {
			g := m.RowGroups[0]
			g.Columns = append([]format.ColumnChunk(nil), g.Columns...)
			for range 9 {
				m.RowGroups = append(m.RowGroups, g)
			}
			m.NumRows *= 10
		}),
		"in another file": with(func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].FilePath = "other.parquet" }),
		"is encrypted": with(func(m *format.FileMetaData) {
			m.RowGroups[0].Columns[0].EncryptedColumnMetadata = []byte{1}
		}),
	} {
		checkBomb(t, fmt.Sprintf("the footer of %q", want), data, want)
	}
}

// A footer as large as the limit allows takes a bounded multiple of itself.
func TestLargestFooter(t *testing.T) {
	c := column{element: leaf(format.Int32, format.Required), rows: 4, meta: format.ColumnMetaData{NumValues: 4},
		pages: []page{dataPage(format.Plain, 4, make([]byte, 16))}}
	c.footer = func(m *format.FileMetaData) {
		m.KeyValueMetadata = []format.KeyValue{{Key: "large", Value: strings.Repeat("x", 50<<20)}}
	}
	data := c.file(t)
	reserved := allocated(func() {
		f, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		if value, ok := f.Lookup("large"); !ok || len(value) != 50<<20 {
			t.Errorf("the value has %d bytes", len(value))
		}
	})
	if reserved > 2*50<<20 {
		t.Errorf("a footer of 50 MiB takes %d bytes", reserved)
	}
}
