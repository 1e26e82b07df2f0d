package command

import (
	"os"
	"testing"
)

// A model in the cache of Hugging Face's programs has its name, not a commit's.
func TestNamesOfModels(t *testing.T) {
	for path, want := range map[string]string{
		"builtin:bytes": "builtin:bytes", "/a/MiniLM": "MiniLM", "/a/MiniLM/": "MiniLM",
		"/c/hub/models--acme--MiniLM-L6/snapshots/0123abcd":  "acme/MiniLM-L6",
		"/c/hub/models--gpt2/snapshots/0123abcd/":            "gpt2",
		"/c/hub/models--acme--MiniLM-L6/blobs/0123abcd":      "0123abcd",
		"/c/hub/datasets--acme--MiniLM-L6/snapshots/0123abc": "0123abc",
	} {
		if got := NameOfModel(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// Folders, also absent ones, and builtin models are no names of hubs.
func TestFoldersAreNoNamesOfHubs(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("org/name", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, lm := range []string{"org/name", "./absent/name", "/absent/name", "builtin:bytes", "a/b/c", "MiniLM"} {
		if err := LocalFolder(lm); err != nil {
			t.Errorf("%s: %v", lm, err)
		}
	}
}
