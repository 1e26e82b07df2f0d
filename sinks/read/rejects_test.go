package read_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"entropipe/sinks/internal/batches"
	"entropipe/sinks/read"
	"entropipe/sinks/tables"
)

// Law: each refused message has the value of its own row, in whatever order values are asked
// for, and however many rows a row group has.
func TestValuesOfRefusedMessages(t *testing.T) {
	for name, cfg := range map[string]tables.Config{"a group": {}, "little groups": {RowGroupRows: 70}} {
		t.Run(name, func(t *testing.T) {
			b := batches.Synthetic(batches.Spec{Topic: "points", Start: 5, Records: 2000, Frames: 1, Points: 3,
				Seed: 1})
			want := map[int64][]byte{}
			for i := range b.Rejects {
				r := &b.Rejects[i]
				if r.Value = nil; i%7 > 0 {
					r.Value = []byte(fmt.Sprintf("value of %d", r.Offset))
				}
				want[r.Offset] = r.Value
			}
			if len(want) < 150 {
				t.Fatalf("only %d rejects", len(want))
			}
			var all []*read.RefusedMessage
			check := func(when string, m *read.RefusedMessage) {
				got, err := m.Value()
				if err != nil || !bytes.Equal(got, want[m.Offset]) || (got == nil) != (want[m.Offset] == nil) {
					t.Fatalf("%s: offset %d: %q, %v; want %q", when, m.Offset, got, err, want[m.Offset])
				}
			}
			err := read.Refused(context.Background(), outputOf(t, cfg, b), read.RefusedQuery{},
				func(m *read.RefusedMessage) error {
					all = append(all, m)
					check("while they are listed", m)
					return nil
				})
			if err != nil || len(all) != len(want) {
				t.Fatalf("%d messages of %d, %v", len(all), len(want), err)
			}
			for i := range all {
				check("later, back and forth", all[i*89%len(all)])
			}
		})
	}
}
