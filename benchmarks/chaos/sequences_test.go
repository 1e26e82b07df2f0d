package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// tokenRow is as much of table tokens as the judge needs to know.
type tokenRow struct {
	Partition int32     `parquet:"partition"`
	Offset    int64     `parquet:"offset"`
	Index     int32     `parquet:"index"`
	ID        string    `parquet:"id"`
	Embedding []float32 `parquet:"embedding,list"`
}

func writeTokens(t *testing.T, out, file string, rows ...tokenRow) {
	t.Helper()
	dir := filepath.Join(out, "tokens", "dataset=d", "topic=t")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := parquet.WriteFile(filepath.Join(dir, file), rows); err != nil {
		t.Fatal(err)
	}
}

// The judge of sequences finds each kind of fault, and nothing where there is
// none.
func TestTokenJudge(t *testing.T) {
	row := func(offset int64, index int32, v ...float32) tokenRow {
		return tokenRow{Offset: offset, Index: index, ID: fmt.Sprintf("s%d", 2*offset+int64(index)), Embedding: v}
	}
	good := []tokenRow{row(0, 0, 1, 2), row(0, 1, 3), row(1, 0), row(1, 1, 5)}
	other := row(0, 1, 4)
	shorter := row(0, 0, 1)
	for _, c := range []struct {
		name string
		rows []tokenRow
		want string
	}{
		{"good", good, "sequences 4, missing 0, doubled 0, stray 0, different 0"},
		{"missing", good[1:], "missing 1, doubled 0, stray 0, different 0"},
		{"doubled", append(good[:4:4], good[2]), "missing 0, doubled 1, stray 0, different 0"},
		{"stray", append(good[:4:4], row(2, 0, 1)), "missing 0, doubled 0, stray 1, different 1"},
		{"different", []tokenRow{good[0], other, good[2], good[3]}, "missing 0, doubled 0, stray 0, different 1"},
		{"shorter", []tokenRow{shorter, good[1], good[2], good[3]}, "missing 0, doubled 0, stray 0, different 1"},
	} {
		whole, disturbed := t.TempDir(), t.TempDir()
		writeTokens(t, whole, "a.parquet", good...)
		writeTokens(t, disturbed, "a.parquet", c.rows[:2]...)
		writeTokens(t, disturbed, "b.parquet", c.rows[2:]...)
		want, _, err := ReadTokens(whole, "t")
		if err != nil {
			t.Fatal(err)
		}
		got, files, err := ReadTokens(disturbed, "t")
		if err != nil || files != 2 {
			t.Fatalf("%d files, %v", files, err)
		}
		v := JudgeTokens(got, want, 4, func(i int64) string { return fmt.Sprintf("s%d", i) })
		if !strings.Contains(v.String(), c.want) || v.OK() != (c.name == "good") {
			t.Errorf("%s: %v, want %s", c.name, v, c.want)
		}
	}
}

func TestTokenJudgeOfNoTable(t *testing.T) {
	rows, files, err := ReadTokens(t.TempDir(), "t")
	if err != nil || files != 0 || len(rows) != 0 {
		t.Errorf("%d rows, %d files, %v", len(rows), files, err)
	}
}
