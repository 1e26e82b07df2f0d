package ingest

import (
	"testing"

	"pgregory.net/rapid"
)

// The name of a member says which process it is, whatever the plain name is;
// other names say nothing.
func TestMembersNameTheirProcess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"entropipe", "a-b", "-", ""}).Draw(t, "name")
		p := process{rapid.StringMatching("[0-9a-f]{16}").Draw(t, "place"), rapid.IntRange(1, 1<<22).Draw(t, "pid"),
			rapid.Uint64().Draw(t, "start")}
		if got, ok := processOf(name, p.clientID(name)); !ok || got != p {
			t.Fatalf("%q, %+v: %q is %+v, %v", name, p, p.clientID(name), got, ok)
		}
		junk := rapid.OneOf(rapid.String(),
			rapid.StringMatching("entropipe-?[0-9a-f]{0,3}-?-?[0-9]{0,3}-?[0-9]{0,20}-?")).Draw(t, "junk")
		if got, ok := processOf("entropipe", junk); ok && (got.place == "" || got.pid <= 0) {
			t.Fatalf("%q is %+v", junk, got)
		}
	})
	for _, id := range []string{"entropipe", "entropipe-", "entropipe-a-1", "entropipe--1-2", "entropipe-a-0-2",
		"entropipe-a--1-2", "entropipe-a-1-2-3", "other-a-1-2", "entropipe-a-9999999999-1"} {
		if p, ok := processOf("entropipe", id); ok {
			t.Errorf("%q is %+v", id, p)
		}
	}
	if id := (process{}).clientID("entropipe"); id != "entropipe" {
		t.Errorf("where nothing is known the name is %q", id)
	}
}
