package sinks

import (
	"path"
	"strings"
	"testing"
)

// The folders that get a name when an output's is made are those of everything
// that is not there.
func TestNamedIn(t *testing.T) {
	dir := t.TempDir()
	for out, want := range map[string][]string{
		dir:                    {path.Dir(dir)},
		dir + "/a":             {dir},
		dir + "/a/b/c/":        {dir + "/a/b", dir + "/a", dir},
		"not-there":            {"."},
		"./not-there/either//": {"not-there", "."},
	} {
		if got := namedIn(out); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: %q, want %q", out, got, want)
		}
	}
}
