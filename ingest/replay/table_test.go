package replay

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"entropipe/schemas/codec"
)

// clouds reads a source to its end and copies all columns.
func clouds(t testing.TB, src Source) (items []Item) {
	t.Helper()
	for {
		var it Item
		err := src.Next(&it)
		if err == io.EOF {
			return items
		}
		if err != nil {
			t.Fatal(err)
		}
		it.Cloud, it.Ignored = clonePoints(it.Cloud), slices.Clone(it.Ignored)
		items = append(items, it)
	}
}

// survey are two points of a survey, as every format must give them.
type survey struct {
	Easting  float64 `parquet:"easting"`
	Northing float64 `parquet:"northing"`
	Height   float32 `parquet:"height"`
	I        uint16  `parquet:"intensity"`
	Class    int8    `parquet:"classification"`
	Name     string  `parquet:"name"`
}

var surveyed = []survey{{4500000.123456789, 5300000.25, 512.5, 65535, 2, "ground"}, {-0.1, 1e-300, -3, 0, -7, ""}}

// surveyStream is the survey as an Arrow stream.
func surveyStream(t testing.TB) []byte {
	f64, u16 := arrow.PrimitiveTypes.Float64, arrow.PrimitiveTypes.Uint16
	b := arrowBatch(t, arrowColumn{"easting", f64, "[4500000.123456789, -0.1]"},
		arrowColumn{"northing", f64, "[5300000.25, 1e-300]"},
		arrowColumn{"height", arrow.PrimitiveTypes.Float32, "[512.5, -3]"},
		arrowColumn{"intensity", u16, "[65535, 0]"}, arrowColumn{"classification", arrow.PrimitiveTypes.Int8,
			"[2, -7]"},
		arrowColumn{"name", arrow.BinaryTypes.String, `["ground", null]`})
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(b.Schema()), ipc.WithZstd())
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// parquetOf is a Parquet file of rows, two a row group where they are few.
func parquetOf[T any](t testing.TB, rows ...T) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[T](&buf, parquet.Compression(&parquet.Zstd),
		parquet.MaxRowsPerRowGroup(max(2, int64(len(rows)/8))))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

const surveyText = "easting;northing;height;intensity;classification;name\n" +
	"4500000.123456789;5300000.25;512.5;65535;2;ground\n-0.1;1e-300;-3;0;-7;\"a;b\"\n"

func TestTableOfEveryFormat(t *testing.T) {
	names := Columns{X: "easting", Y: "Northing", Z: "height"}
	for _, c := range []struct {
		format, file string
		content      []byte
	}{
		{FormatCSV, "7.csv", []byte(surveyText)},
		{FormatCSV, "7.txt.gz", zipped(t, []byte(strings.ReplaceAll(surveyText, ";\"a;b\"", ";b")))},
		{FormatParquet, "7.parquet", parquetOf(t, surveyed...)},
		{FormatArrow, "7.arrows", surveyStream(t)},
		{FormatArrow, "7.arrow.gz", zipped(t, surveyStream(t))},
	} {
		folder := filepath.Join(t.TempDir(), "site")
		path := write(t, c.content, folder, c.file)
		write(t, []byte("no table"), folder, "notes.md")
		for _, p := range []string{folder, path} {
			src := open(t, Table{Paths: []string{p}, Format: c.format, Columns: names})
			for pass := range 2 {
				items := clouds(t, src)
				if len(items) != 1 {
					t.Fatalf("%s: %d clouds", c.file, len(items))
				}
				it := &items[0]
				if it.Dataset != c.format || it.Sequence != "site" || it.Sensor != "" || it.Number != 7 ||
					it.Clock != NoClock {
					t.Errorf("%s: %s/%s/%s number %d", c.file, it.Dataset, it.Sequence, it.Sensor, it.Number)
				}
				cloud := it.Cloud
				if !cloud.Double || !slices.Equal(cloud.Cloud64.X, []float64{4500000.123456789, -0.1}) ||
					!slices.Equal(cloud.Cloud64.Y, []float64{5300000.25, 1e-300}) ||
					!slices.Equal(cloud.Cloud64.Z, []float64{512.5, -3}) ||
					!slices.Equal(cloud.Intensity, []float32{65535, 0}) || !slices.Equal(cloud.Label, []int32{2, -7}) ||
					!slices.Equal(it.Ignored, []string{"name"}) {
					t.Errorf("%s, pass %d: %+v without %q", c.file, pass, cloud, it.Ignored)
				}
				if err := src.Rewind(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// Every column of ours is filled by a column of its name, and nulls have no value.
func TestTableFillsEveryColumn(t *testing.T) {
	type row struct {
		X     *float32 `parquet:"X"`
		Y     float32  `parquet:"y"`
		Ring  *int32   `parquet:"ring"`
		Echo  uint8    `parquet:"return_number"`
		Laser int64    `parquet:"laser"`
		Label float64  `parquet:"class"`
		Long  float32  `parquet:"elongation"`
		T     float64  `parquet:"time"`
		RGB   uint32   `parquet:"rgb"`
		Day   int32    `parquet:"day,date"`
		Tags  []int64  `parquet:"tags,list"`
		Stamp deprecated.Int96
	}
	x, ring := float32(1.5), int32(31)
	rows := []row{{X: &x, Y: 2, Ring: &ring, Echo: 255, Laser: 5, Label: 3, Long: .25, T: 0.1, RGB: 0x00ff8001},
		{Y: -2, Laser: -1, Label: math.NaN(), T: math.Inf(1), RGB: 0xff000000}, {X: &x, Y: 1, T: -2e-9}}
	dir := t.TempDir()
	write(t, parquetOf(t, rows...), dir, "a.parquet")
	text := "X,y,ring,return_number,laser,class,elongation,time,rgb,day\n1.5,2,31,255,5,3,.25,0.1,16744449,\n" +
		",-2,,0,-1,,0,,4278190080,\n1.5,1,,0,0,0,0,-2e-9,0,\n"
	write(t, []byte(text), dir, "a.csv")
	for _, format := range []string{FormatParquet, FormatCSV} {
		it := clouds(t, open(t, Table{Paths: []string{dir}, Format: format}))[0]
		p := it.Cloud
		var xs, ys []float64
		for i := range p.Len() {
			if p.Double {
				xs, ys = append(xs, p.Cloud64.X[i]), append(ys, p.Cloud64.Y[i])
			} else {
				xs, ys = append(xs, float64(p.Cloud32.X[i])), append(ys, float64(p.Cloud32.Y[i]))
			}
		}
		if len(xs) != 3 || xs[0] != 1.5 || xs[1] == xs[1] || xs[2] != 1.5 || !slices.Equal(ys, []float64{2, -2, 1}) ||
			p.HasZ() || p.Double != (format == FormatCSV) {
			t.Errorf("%s: x %v, y %v, double %v", format, xs, ys, p.Double)
		}
		first := []int32{p.Ring[0], p.Return[0], p.Laser[0], p.Label[0], p.Red[0], p.Green[0], p.Blue[0]}
		second := []int32{p.Ring[1], p.Return[1], p.Laser[1], p.Label[1], p.Red[1], p.Green[1], p.Blue[1]}
		if !slices.Equal(first, []int32{31, 255, 5, 3, 0xff, 0x80, 1}) ||
			!slices.Equal(second, []int32{codec.NoInt32, 0, -1, codec.NoInt32, 0, 0, 0}) {
			t.Errorf("%s: integers %v, %v", format, first, second)
		}
		if !slices.Equal(p.TOffsetNs, []int64{1e8, codec.NoInt64, -2}) || p.Elongation[0] != .25 {
			t.Errorf("%s: times %v, elongation %v", format, p.TOffsetNs, p.Elongation)
		}
		want := []string{"day"}
		if format == FormatParquet {
			want = []string{"day", "tags", "Stamp"}
		}
		if !slices.Equal(it.Ignored, want) {
			t.Errorf("%s: %q ignored, want %q", format, it.Ignored, want)
		}
	}
}

// Times that are integers are nanoseconds, exact beyond what float64 holds.
func TestTableKeepsNanoseconds(t *testing.T) {
	dir := t.TempDir()
	write(t, []byte("x y t\n1 2 1532402927647951123\n3 4 9007199254740993\n"), dir, "a.csv")
	it := clouds(t, open(t, Table{Paths: []string{dir}, Format: FormatCSV}))[0]
	if want := []int64{1532402927647951123, 9007199254740993}; !slices.Equal(it.Cloud.TOffsetNs, want) {
		t.Errorf("%v, want %v", it.Cloud.TOffsetNs, want)
	}
}

func TestTableFaults(t *testing.T) {
	type wide struct{ X, Y int64 }
	type text struct{ X, Y string }
	for name, c := range map[string]struct {
		format  string
		content []byte
		columns Columns
		words   []string
	}{
		"text": {FormatCSV, []byte("x,y\n1,2\n3,oak\n"), Columns{},
			[]string{"a.csv:3:3:", `number for y, got "oak"`}},
		"decimal comma": {FormatCSV, []byte("x;y\n1,5;2,5\n"), Columns{}, []string{"a.csv:2:1:", `"1,5"`}},
		"fraction": {FormatCSV, []byte("x,y,ring\n1,2,3\n1,2,3.5\n"), Columns{},
			[]string{"a.csv:3:5:", "integer for ring"}},
		"colour": {FormatCSV, []byte("x,y,rgb\n1,2,-3\n"), Columns{},
			[]string{"a.csv:2:5:", "integer for rgb"}},
		"few fields":     {FormatCSV, []byte("x,y\n1,2\n3\n"), Columns{}, []string{"a.csv:3:", "1 fields"}},
		"no y":           {FormatCSV, []byte("x,z\n1,2\n"), Columns{}, []string{"a.csv:1:", "no column y", "x, z"}},
		"no such column": {FormatCSV, []byte("x,y\n1,2\n"), Columns{Z: "height"}, []string{`no column "height"`}},
		"two x":          {FormatCSV, []byte("x,X,y\n1,2,3\n"), Columns{}, []string{"columns x and X both hold x"}},
		"many points": {FormatCSV, []byte("x,y\n" + strings.Repeat("1,2\n", 100)), Columns{},
			[]string{"a.csv", "64 points", "limit of 1023"}},
		"cut gzip": {FormatCSV, zipped(t, []byte(surveyText))[:40], Columns{X: "easting", Y: "northing"},
			[]string{"a.csv"}},
		"no gzip":       {FormatCSV, []byte{0x1f, 0x8b, 9, 9}, Columns{}, []string{"not gzip"}},
		"no Parquet":    {FormatParquet, []byte(surveyText), Columns{}, []string{"not a readable Parquet file"}},
		"empty Parquet": {FormatParquet, nil, Columns{}, []string{"not a readable Parquet file"}},
		"large integers": {FormatParquet, parquetOf(t, wide{1, 2}, wide{1<<53 + 1, 3}), Columns{},
			[]string{"column X", "row 1", "9007199254740993"}},
		"texts as numbers": {FormatParquet, parquetOf(t, text{"1", "2"}), Columns{}, []string{"column X is STRING"}},
		"many rows": {FormatParquet, parquetOf(t, make([]wide, 100)...), Columns{},
			[]string{"100 points take 1600 bytes"}},
		"no Arrow":        {FormatArrow, []byte(surveyText), Columns{}, []string{"is no Arrow"}},
		"empty Arrow":     {FormatArrow, nil, Columns{}, []string{"no bytes"}},
		"cut Arrow":       {FormatArrow, arrowFileOf(t, "x", "y")[:300], Columns{}, []string{"never closed"}},
		"Arrow without x": {FormatArrow, arrowFileOf(t, "a", "y"), Columns{}, []string{"no column x", "a, y"}},
	} {
		dir := t.TempDir()
		path := write(t, c.content, dir, "a."+c.format)
		limit := int64(1023)
		if c.format == FormatArrow {
			limit = 0
		}
		src := open(t, Table{Paths: []string{path}, Format: c.format, Columns: c.columns, MaxFrameBytes: limit})
		var it Item
		err := src.Next(&it)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		mustBeBad(t, err)
		t.Run(name, func(t *testing.T) { failsWith(t, err, append(c.words, "--skip-bad")...) })
		src = open(t, Table{Paths: []string{path}, Format: c.format, Columns: c.columns, MaxFrameBytes: limit,
			SkipBad: true})
		if err := src.Next(&it); err != io.EOF || src.(interface{ Skipped() int64 }).Skipped() != 1 {
			t.Errorf("%s: %v with faults skipped", name, err)
		}
	}
}

func TestTableFolders(t *testing.T) {
	dir, empty := t.TempDir(), t.TempDir()
	for _, name := range []string{"10.csv", "9.csv", "9.parquet"} {
		write(t, []byte("1 2\n"), dir, name)
	}
	numbers := func(paths ...string) (all []int64) {
		for _, it := range clouds(t, open(t, Table{Paths: paths, Format: FormatCSV})) {
			all = append(all, it.Number)
		}
		return all
	}
	if got := numbers(dir); !slices.Equal(got, []int64{9, 10}) {
		t.Errorf("numbers of files with numbers: %v", got)
	}
	other := write(t, []byte("1 2\n"), dir, "z.csv")
	if got := numbers(dir); !slices.Equal(got, []int64{0, 1, 2}) {
		t.Errorf("numbers of files with names: %v", got)
	}
	for _, c := range []struct {
		table Table
		words []string
	}{
		{Table{Format: FormatCSV}, []string{"csv: no folder"}},
		{Table{Format: "xls", Paths: []string{dir}}, []string{`"xls"`}},
		{Table{Format: FormatArrow, Paths: []string{dir}}, []string{"no file in", ".feather"}},
		{Table{Format: FormatArrow, Paths: []string{filepath.Join(empty, "gone")}}, []string{"gone"}},
		{Table{Format: FormatCSV, Paths: []string{other, filepath.Join(dir, "9.csv"), filepath.Join(dir,
			"9.csv")}}, nil},
		{Table{Format: FormatCSV, Paths: []string{filepath.Join(dir, "9.csv"), filepath.Join(dir, "9.csv")}},
			[]string{"two files with the number 9"}},
	} {
		_, err := c.table.Open()
		if c.words == nil {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		failsWith(t, err, c.words...)
	}
}

// An empty file and a file of names alone are clouds without points.
func TestTablesWithoutPoints(t *testing.T) {
	dir := t.TempDir()
	write(t, nil, dir, "0.csv")
	write(t, []byte("x,y,z,ring,t\n"), dir, "1.csv")
	type point struct{ X, Y, Z float32 }
	write(t, parquetOf[point](t), dir, "2.parquet")
	items := append(clouds(t, open(t, Table{Paths: []string{dir}, Format: FormatCSV})),
		clouds(t, open(t, Table{Paths: []string{dir}, Format: FormatParquet}))...)
	for i, it := range items {
		if it.Cloud.Len() != 0 || !it.Cloud.HasZ() {
			t.Errorf("cloud %d: %+v", i, it.Cloud)
		}
	}
	if len(items) != 3 || items[1].Cloud.Ring == nil || items[1].Cloud.TOffsetNs == nil {
		t.Errorf("%d clouds", len(items))
	}
}

// Files cut at every byte, and with every byte changed, are read or refused, within bounds.
func TestBrokenTables(t *testing.T) {
	type row struct{ X, Y, Z float32 }
	for format, good := range map[string][]byte{FormatCSV: []byte(surveyText), FormatArrow: arrowFileOf(t, "x", "y"),
		FormatParquet: parquetOf(t, row{1, 2, 3}, row{4, 5, 6}, row{7, 8, 9})} {
		path := filepath.Join(t.TempDir(), "a."+format)
		write(t, good, path)
		src := open(t, Table{Paths: []string{path}, Format: format, MaxFrameBytes: 1 << 16,
			Columns: Columns{X: map[bool]string{true: "easting"}[format == FormatCSV],
				Y: map[bool]string{true: "northing"}[format == FormatCSV]}})
		step := 1 + len(good)/400
		for n := 0; n < len(good); n += step {
			for _, content := range [][]byte{good[:n], slices.Concat(good[:n], []byte{good[n] ^ 0x49}, good[n+1:])} {
				write(t, content, path)
				if err := src.Rewind(); err != nil {
					t.Fatal(err)
				}
				var it Item
				if err := src.Next(&it); err != nil {
					mustBeBad(t, err)
				}
			}
		}
	}
}

// FuzzTables asserts that any bytes are a cloud or a *BadInputError, within bounded memory.
func FuzzTables(f *testing.F) {
	type row struct{ X, Y, Z float32 }
	f.Add([]byte(surveyText), byte(0))
	f.Add([]byte("x y t rgb\n1 2 3 4\n"), byte(0))
	f.Add(parquetOf(f, row{1, 2, 3}, row{4, 5, 6}), byte(1))
	f.Add(arrowFileOf(f, "x", "y"), byte(2))
	f.Add(surveyStream(f), byte(2))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte, kind byte) {
		path := writeTo(t, content, dir, "a")
		s, err := Table{Paths: []string{path}, Format: []string{FormatCSV, FormatParquet, FormatArrow}[kind%3],
			MaxFrameBytes: 1 << 16}.Open()
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var it Item
		err = s.Next(&it)
		runtime.ReadMemStats(&after)
		if spent := after.TotalAlloc - before.TotalAlloc; spent > 96<<20 {
			t.Fatalf("%d bytes allocated for a file of %d (%v)", spent, len(content), err)
		}
		if err != nil {
			mustBeBad(t, err)
			return
		}
		n := it.Cloud.Len()
		for _, v := range it.Cloud.Int32s() {
			if *v != nil && len(*v) != n {
				t.Fatalf("a column of %d values of %d points", len(*v), n)
			}
		}
	})
}

func BenchmarkTables(b *testing.B) {
	type row struct {
		X, Y, Z   float32
		Intensity uint8
	}
	var rows []row
	var text strings.Builder
	text.WriteString("x,y,z,intensity\n")
	for i := range 100000 {
		r := row{float32(i) / 100, float32(i) / -77, float32(i % 100), uint8(i)}
		rows = append(rows, r)
		fmt.Fprintf(&text, "%.3f,%.3f,%.3f,%d\n", r.X, r.Y, r.Z, r.Intensity)
	}
	for format, content := range map[string][]byte{FormatCSV: []byte(text.String()), FormatParquet: parquetOf(b,
		rows...)} {
		b.Run(format, func(b *testing.B) {
			path := writeTo(b, content, b.TempDir(), "0."+format)
			readFirst(b, Table{Paths: []string{path}, Format: format}, len(content))
		})
	}
}
