package tables

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"entropipe/schemas"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/record"
)

func testConfig() Config {
	return Config{PartitionBy: []string{record.ByDataset}, RowGroupRows: 1 << 20, RowGroupBytes: 64e6,
		Tables: []string{Messages}, Version: "1.2.3", Build: "abc"}
}

// newEncoder returns an encoder that writes all tables.
func newEncoder(cfg Config) *Encoder {
	return newTables(cfg, slices.DeleteFunc(slices.Clone(allTables), (*table).ofRecords))
}

// encodeAll returns every file of a batch, by path.
func encodeAll(t *testing.T, e *Encoder, b *schemas.Batch) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, f := range e.Plan(b, 0) {
		var out bytes.Buffer
		if _, err := e.Encode(&out, f, b); err != nil {
			t.Fatalf("%s: %v", f.Path, err)
		}
		files[f.Path] = out.Bytes()
	}
	return files
}

// fileOf returns the file of a table and data set.
func fileOf(t *testing.T, files map[string][]byte, prefix string) []byte {
	t.Helper()
	for name, data := range files {
		if strings.HasPrefix(name, prefix) {
			return data
		}
	}
	t.Fatalf("no file %s", prefix)
	return nil
}

func openBytes(t *testing.T, data []byte) *parquet.File {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func rowsOf[T any](t *testing.T, data []byte) []T {
	t.Helper()
	rows, err := parquet.Read[T](bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// The same batch gives the same bytes, whatever the encoder wrote before.
func TestFilesAreDeterministic(t *testing.T) {
	spec := batches.Spec{Topic: "points", Start: 5, Records: 50, Frames: 4, Points: 30,
		Datasets: []string{"a", "b"}, Seed: 1}
	want := encodeAll(t, newEncoder(testConfig()), batches.Synthetic(spec))
	used := newEncoder(testConfig())
	for seed := range uint64(3) { // the third file of a reused writer is where parquet-go once lost the columns' names
		encodeAll(t, used, batches.Synthetic(batches.Spec{Topic: "other", Records: 300, Frames: 7,
			Points: 45, Seed: seed}))
	}
	got := encodeAll(t, used, batches.Synthetic(spec))
	if len(want) != len(got) || len(got) == 0 {
		t.Fatalf("%d files, then %d", len(want), len(got))
	}
	for name, data := range want {
		if !bytes.Equal(data, got[name]) {
			t.Errorf("%s differs: %d and %d bytes", name, len(data), len(got[name]))
		}
	}
}

// Row groups are limited in bytes too, and hold whole frames; one frame that
// is larger has a group to itself.
func TestRowGroups(t *testing.T) {
	b := batches.Synthetic(batches.Spec{Topic: "points", Records: 40, Frames: 1, Points: 300, Plain: true})
	for _, c := range []Config{{RowGroupRows: 1, RowGroupBytes: 1 << 40}, {RowGroupRows: 1000, RowGroupBytes: 1 << 40},
		{RowGroupRows: 1 << 20, RowGroupBytes: 1}, {RowGroupRows: 1 << 20, RowGroupBytes: 100_000}} {
		c.PartitionBy = []string{record.ByDataset}
		files := encodeAll(t, newEncoder(c), b)
		limit := min(c.RowGroupRows, c.RowGroupBytes/40)
		wholeFrames(t, fileOf(t, files, "triangles/"), limit)
		wholeFrames(t, fileOf(t, files, "points/"), c.RowGroupRows)
	}
}

// What readers rely on in every file: zstd, a page index, statistics (but not
// of geometry and value, where they would double the file), the footer, and no timestamp
// in nanoseconds or geometry type.
func TestStorage(t *testing.T) {
	files := encodeAll(t, newEncoder(testConfig()),
		batches.Synthetic(batches.Spec{Topic: "points", Start: 5, Records: 40, Frames: 2, Points: 9,
			Datasets: []string{"2011-09-26"}, Originals: true}))
	if len(files) != 8 {
		t.Fatalf("%d files, want one a table", len(files))
	}
	for name, data := range files {
		f := openBytes(t, data)
		for _, c := range f.Metadata().RowGroups[0].Columns {
			column := strings.Join(c.MetaData.PathInSchema, ".")
			if c.MetaData.Codec != format.Zstd || c.OffsetIndexOffset == 0 || c.ColumnIndexOffset == 0 {
				t.Errorf("%s: %s: %v, offset index at %d", name, column, c.MetaData.Codec, c.OffsetIndexOffset)
			}
			if s := c.MetaData.Statistics; (column == "geometry" || column == "value") && s.MinValue != nil ||
				column == "offset" && len(s.MinValue) != 8 {
				t.Errorf("%s: %s: minimum %x", name, column, s.MinValue)
			}
		}
		want := map[string]string{"entropipe.table": strings.Split(name, "/")[0], "entropipe.schema": "2",
			"entropipe.topic": "points", "entropipe.partition": "0", "entropipe.offsets": "5-45"}
		if !strings.HasPrefix(name, Rejects) && !strings.HasPrefix(name, Messages) {
			want["entropipe.dataset"] = "2011-09-26"
		}
		for key, value := range want {
			if got, _ := f.Lookup(key); got != value {
				t.Errorf("%s: %s is %q, want %q", name, key, got, value)
			}
		}
		if got := f.Metadata().CreatedBy; got != "entropipe version 1.2.3(build abc)" {
			t.Errorf("%s: created by %q", name, got)
		}
	}
	schema := openBytes(t, fileOf(t, files, "hulls/")).Schema().String()
	for _, want := range []string{"required int64 ts (TIMESTAMP(isAdjustedToUTC=true,unit=MICROS))",
		"optional binary geometry;", "optional group bbox"} {
		if !strings.Contains(schema, want) {
			t.Errorf("the schema of hulls has no %q:\n%s", want, schema)
		}
	}
}

// With sequence and date as folders, a file holds one of each, the column
// sequence is gone, and its value stands in the footer.
func TestPartitionBySequenceAndDate(t *testing.T) {
	cfg := testConfig()
	cfg.PartitionBy = []string{record.ByDataset, record.BySequence, record.ByDate}
	b := batches.Synthetic(batches.Spec{Topic: "points", Records: 40, Frames: 2, Points: 9, Plain: true})
	for i := range b.Results {
		b.Results[i].Sequence = []string{"00", "01"}[i/2%2]
		b.Results[i].TimeNs = int64(i/40) * 86400e9
	}
	files := encodeAll(t, newEncoder(cfg), b)
	if len(files) != 6*4 {
		t.Errorf("%d files, want 6 tables of 2 sequences and 2 days", len(files))
	}
	data := fileOf(t, files, "frames/dataset=synthetic/sequence=x-01/date=x-1970-01-02/topic=points/part-0-")
	f := openBytes(t, data)
	if _, found := f.Schema().Lookup("sequence"); found {
		t.Error("sequence is a folder and a column")
	}
	if got, _ := f.Lookup("entropipe.sequence"); got != "01" {
		t.Errorf("the footer's sequence is %q", got)
	}
	if got := columnNames(f)[:3]; !slices.Equal(got, []string{"frame_id", "sensor", "ts"}) {
		t.Errorf("columns %q", got)
	}
}

func columnNames(f *parquet.File) []string {
	var names []string
	for _, field := range f.Schema().Fields() {
		names = append(names, field.Name())
	}
	return names
}

// The columns and their order are a contract with every reader.
func TestColumns(t *testing.T) {
	const key = "sequence frame_id sensor ts ts_ns partition offset index "
	for _, c := range []struct {
		t    *table
		want string
	}{
		{framesTable, key + "n_points n_dropped status_hull2d n_hull2d hull2d_ns status_hull3d n_hull3d hull3d_ns " +
			"status_maxima2d n_maxima2d maxima2d_ns status_maxima3d n_maxima3d maxima3d_ns status_delaunay2d " +
			"n_delaunay2d delaunay2d_ns drawing_id label stage model_sha256 latency_ns pose"},
		{hullsTable, key + "n_points n_hull area perimeter geometry bbox hull_idx error_bound status"},
		{hulls3DTable, key + "n_points n_hull hull_idx faces area volume error_bound status"},
		{maximaTable, key + "directions idx error_bound"},
		{trianglesTable, "frame_id partition offset index tri_id v0 v1 v2"},
		{pointsTable, "frame_id partition offset index point_idx x y z intensity ring return laser label elongation " +
			"t_offset_ns red green blue"},
		{pointsTableWide, "frame_id partition offset index point_idx x y z intensity ring return laser label " +
			"elongation t_offset_ns red green blue"},
		{entropyTable, key + "op n_hull_or_maxima lower upper kind f n_survivors stage"},
		{tokensTable, key + "id model model_sha256 weights mask_sha256 task pooling normalized n_tokens truncated " +
			"embedding next_ids top_ids top_logprobs tokenizer_sha256 text scores"},
		{attentionStatsTable, key + "id layer head kept_mass delta bound error n_extended n_dense"},
		{rejectsTable, "partition offset index ts ts_ns stage reason message key headers value value_size " +
			"value_sha256 retriable"},
		{messagesTable, "partition offset timestamp key headers value_size value"},
	} {
		var names []string
		for _, field := range parquet.SchemaOf(c.t.row).Fields() {
			names = append(names, field.Name())
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.t.name, got, c.want)
		}
	}
}

// The columns of operators in table frames follow the order of schemas.Op.
func TestFrameColumnsFollowOps(t *testing.T) {
	columns := strings.Join(columnNames(openBytes(t, func() []byte {
		var out bytes.Buffer
		tw := newTableWriter(framesTable, new(testConfig()))
		tw.reset(&out)
		tw.finish(nil)
		return out.Bytes()
	}())), " ")
	at := -1
	for op := range schemas.NumOps {
		i := strings.Index(columns, " status_"+op.String()+" n_"+op.String()+" "+op.String()+"_ns")
		if i <= at {
			t.Errorf("the columns of %s are at %d, after %d, in %s", op, i, at, columns)
		}
		at = i
	}
}

// Encoding holds one file's row group at a time: the memory of 60 frames of
// 240,000 triangles is that of a few.
func TestTriangleMemoryIsBounded(t *testing.T) {
	if batches.Sparse > 1 {
		t.Skip("under the race detector pools keep nothing")
	}
	b := batches.Synthetic(batches.Spec{Topic: "points", Records: 12, Frames: 1, Points: 3, Plain: true})
	mesh := batches.Mesh(100_000, 1)
	for i := range b.Results {
		b.Results[i].Triangles = mesh
	}
	e := newTables(testConfig(), []*table{trianglesTable})
	plan := e.Plan(b, 0)
	allocated := func() uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := e.Encode(io.Discard, plan[0], b); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	allocated() // fills the pools
	if got := min(allocated(), allocated()); got > 16<<20 {
		t.Errorf("encoding 43 MB of triangles again allocates %d bytes", got)
	}
}

// The page that documents the tables names every column of them.
func TestTablesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../schemas/docs/tables.md")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.FieldsFunc(string(page),
		func(r rune) bool { return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '_' || r == '*') })
	for _, table := range []*table{framesTable, hullsTable, hulls3DTable, maximaTable, trianglesTable, pointsTable,
		entropyTable, tokensTable, attentionStatsTable, rejectsTable, messagesTable} {
		if !strings.Contains(string(page), "\n## "+table.name+":") {
			t.Errorf("table %s has no section", table.name)
		}
		for _, field := range parquet.SchemaOf(table.row).Fields() {
			name := field.Name()
			for op := range schemas.NumOps { // documented once for all
				name = strings.Replace(name, op.String(), "*op*", 1)
			}
			if !slices.Contains(words, name) {
				t.Errorf("column %s of table %s is not documented", field.Name(), table.name)
			}
		}
	}
}
