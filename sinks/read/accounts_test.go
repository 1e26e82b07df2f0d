package read

import (
	"slices"
	"testing"

	"entropipe/schemas"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/record"
)

// A sequence that is in no file is missed.
func TestVerifyMissesSequences(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*schemas.Batch)
	}{
		{"a sequence less", func(b *schemas.Batch) { b.Results = b.Results[1:] }},
		{"a sequence twice", func(b *schemas.Batch) { b.Results[1].Index = b.Results[0].Index }},
		{"a message less", func(b *schemas.Batch) { b.Results = b.Results[len(b.Results)-8:] }},
	} {
		b := batches.Tokens("tokens", 0, 20, 8)
		counts := record.Counts{Messages: b.Messages, Sequences: int64(len(b.Results)),
			Rejects: int64(len(b.Rejects)), Holes: b.Holes}
		m := manifestJob{Manifest: &record.Manifest{Topic: "tokens", End: 20, Counts: counts}, name: c.name}
		var rejects []rowKey
		for i := range b.Rejects {
			rejects = append(rejects, rowKey{b.Rejects[i].Offset, b.Rejects[i].Index})
		}
		account := func() *Report {
			v := &verifier{reporter: reporter{Report: newReport()}}
			var rows []rowKey
			for i := range b.Results {
				rows = append(rows, rowKey{b.Results[i].Offset, b.Results[i].Index})
			}
			v.accounts(m, nil, rows, slices.Clone(rejects))
			return v.sorted()
		}
		if r := account(); !r.OK {
			t.Fatalf("before: %v", r)
		}
		if c.change(b); account().OK {
			t.Errorf("%s: no fault", c.name)
		}
	}
}
