package read_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/read"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// A message of drawings, one of sequences and one of both kinds of rejects make
// tables side by side: frames has no row of a sequence, tokens none of a frame,
// and verify counts each once.
func TestSequencesAreCommitted(t *testing.T) {
	ctx, d := context.Background(), sinktest.NewMemDisk()
	o, err := sinks.Open(ctx, sinktest.MemStore(d), sinktest.EncoderOf("hulls", "tokens", "attention_stats"),
		sinks.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Base(ctx, "tokens", schemas.TopicID{}, map[int32]int64{0: 0}); err != nil {
		t.Fatal(err)
	}
	want := record.Counts{}
	for start := int64(0); start < 120; start += 40 {
		if pos, err := o.Resume(ctx, "tokens", 0); err != nil || pos.Next != start {
			t.Fatalf("resumed at %+v (%v), want %d", pos, err, start)
		}
		b := batches.Tokens("tokens", start, 40, 8)
		if start == 40 {
			b = batches.Synthetic(batches.Spec{Topic: "tokens", Start: start, Records: 20, Frames: 2, Points: 5})
			more := batches.Tokens("tokens", start+20, 20, 8)
			b.End, b.Messages, b.Holes, b.Last = more.End, b.Messages+more.Messages, b.Holes+more.Holes, more.Last
			b.Results, b.Rejects = append(b.Results, more.Results...), append(b.Rejects, more.Rejects...)
		}
		done, err := o.Commit(ctx, b)
		if err != nil {
			t.Fatal(err)
		}
		c := sinktest.CountsOf(b)
		want.Messages, want.Frames, want.Sequences, want.Rejects, want.Holes = want.Messages+c.Messages,
			want.Frames+c.Frames, want.Sequences+c.Sequences, want.Rejects+c.Rejects, want.Holes+c.Holes
		for _, table := range done.Tables {
			if table.Table == tables.Tokens && table.Rows != c.Sequences ||
				table.Table == tables.Frames && (table.Rows != c.Frames || c.Frames == 0) {
				t.Errorf("commit at %d: %+v of %+v", start, table, c)
			}
		}
	}
	if want.Frames == 0 || want.Sequences == 0 {
		t.Fatalf("%+v: nothing was tested", want)
	}
	r, err := read.Verify(ctx, sinktest.MemStore(d), read.VerifyOptions{})
	if err != nil || !r.OK || len(r.Partitions) != 1 || r.Partitions[0].Counts != want {
		t.Errorf("%v\n%v\nwant %+v", err, r, want)
	}
	s, err := read.Describe(ctx, sinktest.MemStore(d))
	if err != nil || s.First == nil || !strings.Contains(s.String(),
		fmt.Sprintf("%d frames, %d sequences", want.Frames, want.Sequences)) ||
		!strings.Contains(s.String(), "frames and sequences from") {
		t.Errorf("%v\n%v", err, s)
	}
}
