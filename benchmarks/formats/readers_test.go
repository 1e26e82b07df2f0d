//go:build readers

package main

import (
	"os"
	"slices"
	"testing"

	"entropipe/benchmarks/rig"
)

// Every reader in Python finds what ours finds, in small inputs of its forms.
func TestReadersInPythonAgree(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	python := os.Getenv("ENTROPIPE_PYTHON")
	if python == "" {
		t.Fatal("ENTROPIPE_PYTHON names no Python with .ci/readers/requirements.txt")
	}
	t.Setenv(childVariable, "1")
	b := &bench{ctx: t.Context(), self: self, scratch: t.TempDir(), cores: rig.Cores(),
		flags: &measureCmd{Points: 400, Python: python, Seed: 1}}
	if err := b.findPython(); err != nil {
		t.Fatal(err)
	}
	for _, f := range forms {
		in, err := b.write(f, 3)
		if err != nil {
			t.Fatal(f.name, err)
		}
		found, _, err := b.read(in, entry{task: taskCheck, loops: 1})
		if err != nil {
			t.Fatal(f.name, err)
		}
		agree := 0
		for _, r := range b.readers {
			if !slices.Contains(r.Formats, f.reader) || f.name == "pcd-packed" && r.Name == "pcd_numpy" {
				continue
			}
			peer, _, err := b.read(in, entry{task: taskCheck, reader: r, loops: 1})
			if err != nil || !found.same(peer) {
				t.Errorf("%s: %s finds %+v, ours %+v (%v)", f.name, r.Name, peer, found, err)
			}
			agree++
		}
		if agree == 0 {
			t.Errorf("%s: no reader in Python", f.name)
		}
	}
}
