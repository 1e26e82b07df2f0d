package read_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/read"
)

// What is printed of a file is bounded, and says what it leaves out.
func TestFileSummariesAreBounded(t *testing.T) {
	s := &read.FileSummary{Path: "large.parquet",
		Metadata: map[string]string{"a": strings.Repeat("x", 50<<20), "b": "two\nlines\x1b"}}
	for i := range 3000 {
		s.Metadata[fmt.Sprint("key", i)] = "value"
		s.Columns = append(s.Columns, read.ColumnSummary{Name: fmt.Sprint("column", i)})
	}
	text := s.String()
	for _, want := range []string{"and 2000 more columns; --json", "and 2802 more metadata; --json",
		fmt.Sprintf("and %d more bytes; --json", 50<<20-4000), `b = "two\nlines\x1b"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	if len(text) > 1<<20 {
		t.Errorf("%d bytes", len(text))
	}
}

func TestDescribe(t *testing.T) {
	d := sinktest.NewMemDisk()
	sinktest.TakeOver(t, sinktest.MemStore(d), 0, 30, 10)
	s, err := read.Describe(context.Background(), sinktest.MemStore(d))
	if err != nil {
		t.Fatal(err)
	}
	want := sinktest.LogBatch(0, 30)
	if len(s.Partitions) != 1 || s.Partitions[0].End != 30 || s.Partitions[0].Manifests != 3 ||
		s.Partitions[0].Frames != int64(len(want.Results)) || s.Partitions[0].Rejects != int64(len(want.Rejects)) {
		t.Errorf("partitions %+v", s.Partitions)
	}
	if s.First == nil || s.First.UnixNano() != want.Results[0].TimeNs ||
		s.Last.UnixNano() != want.Results[len(want.Results)-1].TimeNs {
		t.Errorf("times %v to %v, want %d to %d", s.First, s.Last, want.Results[0].TimeNs,
			want.Results[len(want.Results)-1].TimeNs)
	}
	if text := s.String(); !strings.Contains(text, "points/0: offsets 0 to 30 in 3 commits") {
		t.Error(text)
	}
}
