package read_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"entropipe/schemas"
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

// Further chunks of messages count beside messages, in text and in JSON, of info and of verify.
func TestChunksAreDescribed(t *testing.T) {
	d := sinktest.NewMemDisk()
	b := sinktest.LogBatch(0, 10)
	b.End, b.Chunks = b.End+3, 3
	b.Last = &schemas.RecordID{Offset: b.End - 1, Timestamp: b.Last.Timestamp}
	b.Chunked = &schemas.Chunked{Closed: []string{"00000000000000aa"}}
	if _, err := sinktest.OpenResumed(t, d).Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	s, err := read.Describe(t.Context(), sinktest.MemStore(d))
	if err != nil {
		t.Fatal(err)
	}
	r, err := read.Verify(t.Context(), sinktest.MemStore(d), read.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK {
		t.Error(r)
	}
	for _, found := range []fmt.Stringer{s, r} {
		if text := found.String(); !strings.Contains(text, " messages, 3 further chunks, ") {
			t.Error(text)
		}
		if data, err := json.Marshal(found); err != nil || !strings.Contains(string(data), `"chunks":3`) {
			t.Errorf("%s, %v", data, err)
		}
	}
}
