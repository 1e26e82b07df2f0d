package transformer

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

// Lines and texts may be compressed and begin with a byte order mark; what a
// mask calls padding is no calibration.
func TestCalibrationsOfOtherWriters(t *testing.T) {
	packed := func(name, text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return textFile(t, name, b.String())
	}
	const rows, text = "\ufeff{\"input_ids\":[1,2,0],\"attention_mask\":[1,1,0]}\n{\"input_ids\":[3]}\n",
		"\ufeffone\ntwo"
	ids, lines := &calibration{sequences: [][]int32{{1, 2}, {3}}}, &calibration{paragraphs: []string{"one\n", "two"}}
	for path, want := range map[string]*calibration{textFile(t, "a.jsonl", rows): ids, packed("b.jsonl.gz", rows): ids,
		textFile(t, "c.txt", text): lines, packed("d.txt.gz", text): lines} {
		got, err := readCalibration(path, 9)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(calibration{})); diff != "" {
			t.Errorf("%s: %s", filepath.Base(path), diff)
		}
	}
}

// Calibrations are read alike from lines and from Parquet, ids of 32 or 64 bits
// and texts.
func TestCalibrationsOfParquet(t *testing.T) {
	dir := t.TempDir()
	small, wide, text := filepath.Join(dir, "32.parquet"), filepath.Join(dir, "64.parquet"),
		filepath.Join(dir, "text.parquet")
	for _, err := range []error{
		parquet.WriteFile(small, []struct {
			ID  string  `parquet:"id"`
			IDs []int32 `parquet:"input_ids,list"`
		}{{"a", []int32{1, 2}}, {"b", nil}, {"c", []int32{3}}}),
		parquet.WriteFile(wide, []struct {
			IDs []int64 `parquet:"input_ids"`
		}{{[]int64{1, 2}}, {[]int64{3}}}),
		parquet.WriteFile(text, []struct {
			Text string `parquet:"text"`
		}{{"one"}, {"two"}}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := &calibration{sequences: [][]int32{{1, 2}, {3}}}
	for path, want := range map[string]*calibration{small: want, wide: want,
		text: {paragraphs: []string{"one\n", "two\n"}}} {
		got, err := readCalibration(path, 9)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(calibration{})); diff != "" {
			t.Errorf("%s: %s", filepath.Base(path), diff)
		}
	}
	if got, err := readCalibration(small, 1); err != nil || len(got.sequences) != 1 {
		t.Errorf("one sequence was asked for: %v, %v", got, err)
	}
}

// textFile writes a file in a folder of its own and returns its path.
func textFile(t *testing.T, name, text string) string {
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
