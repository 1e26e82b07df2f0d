package sinks

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"entropipe/sinks/record"
)

// Law: equal contents have equal hashes, different ones have not, and changes are
// exactly the keys that differ.
func TestHashOfContent(t *testing.T) {
	if got := (Content{}).Hash() + Content(nil).Hash(); got != "" {
		t.Errorf("no content has hash %s", got)
	}
	if got, want := (Content{"b": "2", "a": "1"}).Hash(),
		(Content{"a": "1", "b": "2"}).Hash(); got != want || !record.IsHash(got) {
		t.Errorf("%s is not %s", got, want)
	}
	value := rapid.SampledFrom([]string{"a", "b", "a,b", "\x00", "<&>", "\u2028", "a -> b"})
	content := rapid.MapOfN(rapid.SampledFrom([]string{"ops", "tables", "lm"}), value, 1, 3)
	rapid.Check(t, func(rt *rapid.T) {
		a, b := Content(content.Draw(rt, "a")), Content(content.Draw(rt, "b"))
		equal := maps.Equal(a, b)
		if (a.Hash() == b.Hash()) != equal || (len(a.Changes(b)) == 0) != equal ||
			len(a.Changes(b)) != len(b.Changes(a)) {
			rt.Fatalf("%v and %v: hashes %s %s, changes %q", a, b, a.Hash(), b.Hash(), a.Changes(b))
		}
	})
	got := Content{"ops": "hull2d", "lm": "gpt2"}.Changes(Content{"ops": "hull2d,maxima2d", "content-type": "kitti"})
	if want := []string{"content-type: (none) -> kitti", "lm: gpt2 -> (none)",
		"ops: hull2d -> hull2d,maxima2d"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
