package schemas

import (
	"os"
	"path/filepath"
	"testing"
)

// foreignRejects are the files of the folder that are no cloud, or broken. All
// others must decode, those that are not known here too.
var foreignRejects = map[string]string{
	"03_dict_x":           ReasonBadType,
	"05_decimal":          ReasonBadType,
	"06_fsl":              ReasonMissingColumn,
	"06_large_list":       ReasonBadType,
	"06_list":             ReasonBadType,
	"06_list_view":        ReasonBadType,
	"06_struct":           ReasonMissingColumn,
	"10_dup_col":          ReasonDuplicateColumn,
	"12_empty_value":      ReasonEmpty,
	"12_feather_v2":       ReasonFileFormat,
	"12_file_format":      ReasonFileFormat,
	"12_trailing_garbage": ReasonTrailingBytes,
	"12_truncated":        ReasonTruncated,
	"12_two_streams":      ReasonTrailingBytes,
	"13_corrupt_neglen":   ReasonCorrupt,
	"13_corrupt_offset":   ReasonCorrupt,
	"13_corrupt_shortbuf": ReasonBadLength,
	"21_duckdb_types":     ReasonBadType, // z is a decimal
}

// TestForeignVariants decodes every file of a folder of streams written by
// other implementations (pyarrow, Polars, DuckDB), and compares with Arrow's
// reader.
func TestForeignVariants(t *testing.T) {
	dir := os.Getenv("ENTROPIPE_IPC_VARIANTS")
	if dir == "" {
		t.Skip("ENTROPIPE_IPC_VARIANTS names no folder of Arrow streams")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	var fast, slow Decoder
	slow.throughArrow = true
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			value, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			frames, err := fast.Decode(Message{Topic: "t", Value: value})
			if got, want := reasonOf(t, err), foreignRejects[filepath.Base(file)]; got != want {
				t.Fatalf("%v, want reason %q", err, want)
			}
			if err != nil {
				return
			}
			ref, err := readReference(value)
			if err != nil {
				t.Fatal(err)
			}
			if diff := ref.compare(frames); diff != "" {
				t.Error(diff)
			}
			again, err := slow.Decode(Message{Topic: "t", Value: value})
			if err != nil {
				t.Fatal(err)
			}
			if diff := ref.compare(again); diff != "" {
				t.Errorf("through Arrow: %s", diff)
			}
		})
	}
}
