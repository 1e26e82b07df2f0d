package replay

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

// The encodings of lists in Parquet, as parquet-go spells them.
type (
	modernRow struct {
		ID   *string `parquet:"id"`
		IDs  []int32 `parquet:"input_ids,optional,list"`
		Mask []bool  `parquet:"attention_mask,optional,list"`
	}
	bareRow struct {
		ID  int64    `parquet:"id"`
		IDs []uint32 `parquet:"input_ids"`
	}
	wideRow struct {
		Other []string `parquet:"other,list"`
		IDs   []int64  `parquet:"Input_IDs,list"`
		Mask  []int16  `parquet:"attention_mask,list"`
	}
	elementRow struct {
		IDs []*int32 `parquet:"input_ids,list"`
	}
	textRow struct {
		Text *string `parquet:"text,dict"`
		ID   string  `parquet:"id,dict"`
	}
)

// writeParquet writes rows in row groups of groupRows and small pages.
func writeParquet[T any](t testing.TB, rows []T, groupRows int64) string {
	t.Helper()
	var out bytes.Buffer
	w := parquet.NewGenericWriter[T](&out, parquet.PageBufferSize(64), parquet.MaxRowsPerRowGroup(groupRows),
		parquet.Compression(&parquet.Snappy))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "rows.parquet", out.Bytes())
}

// Lists in any encoding are read row by row, over the borders of pages and row
// groups; a row that cannot be used does not harm the next.
func TestParquetRows(t *testing.T) {
	long := make([]int32, 100)
	for i := range long {
		long[i] = int32(i)
	}
	a, b := "a", ""
	var many []bareRow
	var manyNames []string
	for i := range 300 {
		many = append(many, bareRow{int64(i), []uint32{uint32(i), 7}[:1+i%2]})
		manyNames = append(manyNames, fmt.Sprintf("%d%v", i, many[i].IDs))
	}
	for _, c := range []struct {
		name  string
		file  string
		skips int64
		want  []string
	}{
		{"modern", writeParquet(t, []modernRow{{&a, []int32{1, 2, 3}, []bool{true, true, false}}, {&b, nil, nil},
			{nil, []int32{4}, nil}, {nil, []int32{}, nil}, {nil, long, nil}, {nil, []int32{1, 2}, []bool{true}}}, 2), 3,
			[]string{"a[1 2]", "rows.parquet:3[4]", "rows.parquet:5" + fmt.Sprint(long)}},
		{"bare", writeParquet(t, many, 100), 0, manyNames},
		{"unsigned", writeParquet(t, []bareRow{{1, []uint32{1 << 31}}, {2, nil}, {3, []uint32{5}}}, 9),
			2, []string{"3[5]"}},
		{"wide", writeParquet(t, []wideRow{{[]string{"x"}, []int64{1, 2}, []int16{1, 0}},
			{nil, []int64{1 << 40}, []int16{1}}, {nil, []int64{3}, []int16{2}}, {nil, []int64{4}, []int16{1}}}, 1), 2,
			[]string{"rows.parquet:1[1]", "rows.parquet:4[4]"}},
		{"null elements", writeParquet(t, []elementRow{{[]*int32{&long[1], nil}}, {[]*int32{&long[2]}}}, 9), 1,
			[]string{"rows.parquet:2[2]"}},
		{"texts", writeParquet(t, []textRow{{&a, "x"}, {nil, "y"}, {&b, ""}, {&a, "z"}}, 3), 1,
			[]string{"x=a", "rows.parquet:3=", "z=a"}},
	} {
		src := openTokens(t, Tokens{Files: []string{c.file}, SkipBad: true})
		all, _, err := readAll(src)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, names(all)); diff != "" || src.(*tokens).Skipped() != c.skips {
			t.Errorf("%s: %d skipped, want %d: %s", c.name, src.(*tokens).Skipped(), c.skips, diff)
		}
	}
}

// A file whose columns are none of ours says which there are.
func TestParquetOfOtherColumns(t *testing.T) {
	type other struct {
		X float32 `parquet:"x"`
	}
	type nested struct {
		IDs [][]int32 `parquet:"input_ids,list"`
	}
	type floats struct {
		IDs []float32 `parquet:"input_ids,list"`
	}
	type group struct {
		IDs struct {
			A int32 `parquet:"a"`
			B int32 `parquet:"b"`
		} `parquet:"input_ids"`
	}
	type scalar struct {
		IDs int32 `parquet:"input_ids"`
	}
	type number struct {
		Text int32 `parquet:"text"`
	}
	type float struct {
		ID   float64 `parquet:"id"`
		Text string  `parquet:"text"`
	}
	for want, file := range map[string]string{
		`["x"]`:                         writeParquet(t, []other{{1}}, 9),
		"not a group":                   writeParquet(t, []group{{}}, 9),
		"it must be a list of integers": writeParquet(t, []scalar{{1}}, 9),
		"input_ids is LIST of FLOAT":    writeParquet(t, []floats{{[]float32{1}}}, 9),
		"id is DOUBLE; it must be text or integers": writeParquet(t, []float{{}}, 9),
		"column text is": writeParquet(t, []number{{1}}, 9),
		"not of lists":   writeParquet(t, []nested{{}}, 9),
	} {
		_, _, err := readAll(openTokens(t, Tokens{Files: []string{file}, SkipBad: true}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A damaged file ends with an error that names it, whatever byte is wrong.
func TestDamagedParquet(t *testing.T) {
	rows := []modernRow{{nil, []int32{1, 2, 3}, []bool{true, true, false}}, {nil, []int32{4}, nil}, {nil, nil, nil}}
	good, err := os.ReadFile(writeParquet(t, rows, 2))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "damaged.parquet")
	try := func(data []byte) error {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		src := openTokens(t, Tokens{Files: []string{path}, SkipBad: true})
		_, _, err := readAll(src)
		src.Close()
		if err != nil && !strings.Contains(err.Error(), "damaged.parquet") {
			t.Fatalf("%v does not name the file", err)
		}
		return err
	}
	step := 3
	if testing.Short() {
		step = 13
	}
	broken := 0
	for at := 0; at < len(good); at += step {
		data := bytes.Clone(good)
		data[at] ^= 0xff
		if try(data) != nil {
			broken++
		}
		if at%2 == 0 && try(good[:at]) == nil {
			t.Errorf("the first %d of %d bytes are read", at, len(good))
		}
	}
	if broken == 0 || try(good) != nil {
		t.Errorf("%d bytes matter", broken)
	}
}
