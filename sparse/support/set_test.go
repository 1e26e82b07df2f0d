package support

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A pattern reads its first blocks, those nearest to the row, and every so-many-th
// from it, and nothing else; in a causal model the rows of a shorter sequence are
// the first of a longer one.
func TestPatternsReadWhatTheySay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Shift{Sink: rapid.IntRange(0, 4).Draw(t, "sink"), Local: rapid.IntRange(1, 9).Draw(t, "local"),
			Stride: rapid.IntRange(0, 5).Draw(t, "stride")}
		blocks := rapid.IntRange(1, 30).Draw(t, "blocks")
		r := rapid.IntRange(0, blocks-1).Draw(t, "row")
		causal := rapid.Bool().Draw(t, "causal")
		got := p.Row(r, blocks, causal)
		if !slices.IsSorted(got) || !slices.Contains(got, int32(r)) {
			t.Fatalf("%+v, row %d of %d: %v", p, r, blocks, got)
		}
		if causal && !slices.Equal(got, p.Row(r, blocks+7, true)) {
			t.Fatalf("%+v, row %d: %v, and of a longer sequence %v", p, r, got, p.Row(r, blocks+7, true))
		}
		near := 0 // the blocks that only Local can explain, or Local too
		for c := range blocks {
			read := slices.Contains(got, int32(c))
			otherwise := c < p.Sink || p.Stride > 0 && (r-c)%p.Stride == 0
			inWindow := c <= r && c > r-p.Local
			if !causal { // as many as there are, about the row
				lo := min(max(r-p.Local/2, 0), max(blocks-p.Local, 0))
				inWindow = c >= lo && c < lo+p.Local
			}
			if want := (otherwise || inWindow) && (!causal || c <= r); read != want {
				t.Fatalf("%+v, causal %v, row %d of %d: %v, and block %d: %v", p, causal, r, blocks, got, c, want)
			}
			if inWindow {
				near++
			}
		}
		if want := min(p.Local, blocks); !causal && near != want {
			t.Fatalf("%+v, row %d of %d: %d near blocks, want %d", p, r, blocks, near, want)
		}
	})
}

func TestSetsThatAreNotSoundAreRefused(t *testing.T) {
	if err := example().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		edits func(s *Set)
		want  string
	}{
		{"no layers", func(s *Set) { s.Layers = 0 }, "0 layers"},
		{"too many layers", func(s *Set) { s.Layers = maxLayers + 1 }, "1025 layers"},
		{"key heads", func(s *Set) { s.KVHeads = 3 }, "3 key heads"},
		{"no buckets", func(s *Set) { s.Buckets = nil }, "0 buckets"},
		{"buckets", func(s *Set) { s.Causal, s.Buckets = false, slices.Repeat(s.Buckets, maxBuckets+1) }, "65 buckets"},
		{"order of buckets", func(s *Set) { s.Causal, s.Buckets = false, slices.Repeat(s.Buckets, 2) },
			"length is 48 but must be above 48"},
		{"two causal buckets", func(s *Set) { s.Buckets = slices.Repeat(s.Buckets, 2) }, "a causal set has 2 buckets"},
		{"heads", func(s *Set) { s.Buckets[0].Of = s.Buckets[0].Of[1:] }, "layouts are given for 3 heads"},
		{"layout beyond the last", func(s *Set) { s.Buckets[0].Of[1] = 1 },
			"layer 0, head 1: layout 1 does not exist: there are 1"},
		{"layout below none", func(s *Set) { s.Buckets[0].Of[2] = -2 }, "layer 1, head 0: layout -2"},
		{"more layouts than heads", func(s *Set) { s.Buckets[0].Layouts = slices.Repeat(s.Buckets[0].Layouts, 5) },
			"5 layouts for 4 heads"},
		{"no layout", func(s *Set) { s.Buckets[0].Layouts[0] = nil }, "layout 0 does not have"},
		{"size of a layout", func(s *Set) { s.Buckets[0].Length = 64 }, "layout 0 does not have 4 x 4 blocks of 16"},
		{"blocks of a layout", func(s *Set) { s.Buckets[0].Layouts[0].Block = 32 }, "layout 0 does not have"},
		{"order", func(s *Set) { s.Causal, s.Buckets[0].Layouts[0].Order = false, make([]int32, 47) },
			"an order of 47 keys"},
		{"certificates", func(s *Set) { s.Certs = make([]Cert, 3) }, "3 certificates for 4 heads"},
		{"certificate", func(s *Set) { s.Certs = make([]Cert, 4); s.Certs[3].Bound = -1 }, "layer 1, head 1: -1"},
		{"pattern", func(s *Set) { s.Beyond = &Shift{Sink: 1} }, "local 0"},
		{"large pattern", func(s *Set) { s.Beyond = &Shift{Local: 1, Sink: MaxBlocks + 1} }, "sink 65537"},
		{"far pattern", func(s *Set) { s.Beyond = &Shift{Local: 1, Stride: MaxBlocks + 1} }, "stride 65537"},
		{"calibration", func(s *Set) { s.Source.Tokens = -1 }, "negative"},
		{"anchors of a static set", func(s *Set) { s.Anchors = &Anchors{K: 1, Data: make([]float32, 16)} },
			"do not fit"},
	} {
		s := example()
		c.edits(s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	atMost := example()
	atMost.Beyond = &Shift{Sink: MaxBlocks, Local: MaxBlocks, Stride: MaxBlocks}
	if err := atMost.Validate(); err != nil {
		t.Errorf("the largest pattern: %v", err)
	}
}
