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
			v.accounts(m, &accounts{sequences: rows, rejects: slices.Clone(rejects)})
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

// Table messages must have one row of each message, refused or not.
func TestVerifyMissesKeptMessages(t *testing.T) {
	b := batches.Synthetic(batches.Spec{Topic: "points", Records: 40, Frames: 2, Points: 4, Originals: true})
	counts := record.Counts{Messages: b.Messages, Frames: int64(len(b.Results)), Rejects: int64(len(b.Rejects)),
		Holes: b.Holes}
	m := manifestJob{Manifest: &record.Manifest{Topic: "points", End: b.End, Counts: counts}, name: "m"}
	for _, c := range []struct {
		name   string
		change func(rows []rowKey) []rowKey
		ok     bool
	}{
		{"all", func(rows []rowKey) []rowKey { return rows }, true},
		{"one less", func(rows []rowKey) []rowKey { return rows[1:] }, false},
		{"none", func([]rowKey) []rowKey { return nil }, false},
		{"one twice", func(rows []rowKey) []rowKey { return append(rows, rows[len(rows)-1]) }, false},
		{"a hole", func(rows []rowKey) []rowKey { rows[0].offset = 3; return rows }, false},
	} {
		found := accounts{kept: true}
		for i := range b.Results {
			found.frames = append(found.frames, rowKey{b.Results[i].Offset, b.Results[i].Index})
		}
		for i := range b.Rejects {
			found.rejects = append(found.rejects, rowKey{b.Rejects[i].Offset, b.Rejects[i].Index})
		}
		for i := range b.Originals {
			found.messages = append(found.messages, rowKey{offset: b.Originals[i].Offset})
		}
		found.messages = c.change(found.messages)
		v := &verifier{reporter: reporter{Report: newReport()}}
		v.accounts(m, &found)
		if r := v.sorted(); r.OK != c.ok {
			t.Errorf("%s: ok %t, want %t: %v", c.name, r.OK, c.ok, r)
		}
	}
}
