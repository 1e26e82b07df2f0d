package main

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testdata/format1 is an output of the last program that wrote format 1: two
// synthetic frames of points, one text of notes.

// Law: an output of format 1 is read; nothing is written to it.
func TestFormat1IsReadAndNotWritten(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "old"), os.DirFS("testdata/format1")); err != nil {
		t.Fatal(err)
	}
	before := treeOf(t, filepath.Join(dir, "old"))
	must(t, dir, "verify", "old")
	if said := must(t, dir, "info", "old"); !strings.Contains(said, "format 1,") || !strings.Contains(said, "points/3: offsets 0 to 2 in 1 commits: 2 messages, 2 frames") {
		t.Errorf("info says:\n%s", said)
	}
	must(t, dir, "export", "old", "-o", "frame.svg")
	if picture, err := os.ReadFile(filepath.Join(dir, "frame.svg")); err != nil || !bytes.Contains(picture, []byte("<path")) {
		t.Errorf("the picture of its frame: %.200s, %v", picture, err)
	}
	must(t, dir, "produce", "synthetic", "--kind", "lidar", "--frames", "3", "--points", "12", "--rate", "max", "--brokers", brokers, "--topic", "points")
	run := launch(t, dir, "run", "--until-end", "--brokers", brokers, "--topic", "points", "--out", "old")
	run.exits(78, patience)
	run.until(`its format is 1, and this program writes format 2.*name a new --out`)
	if diff := cmp.Diff(before, treeOf(t, filepath.Join(dir, "old"))); diff != "" {
		t.Errorf("the output of format 1 has changed:\n%s", diff)
	}
}

// Law: a program refuses, by name, what a later one has written.
func TestLaterFormatsAreRefused(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	smallOutput(t, dir, brokers)
	path := filepath.Join(dir, "out", "_commits", "store.json")
	store, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	later, _, _ := bytes.Cut(store, []byte(",\n \"crc32c\""))
	later = bytes.Replace(bytes.Replace(later, []byte(`"format": 2`), []byte(`"format": 3`), 1), []byte(`"schema": 2`), []byte(`"schema": 3`), 1)
	later = fmt.Appendf(later, ",\n \"crc32c\": \"%08x\"\n}\n", crc32.Checksum(later, crc32.MakeTable(crc32.Castagnoli)))
	if err := os.WriteFile(path, later, 0o666); err != nil {
		t.Fatal(err)
	}
	before := treeOf(t, filepath.Join(dir, "out"))
	for _, c := range []struct {
		status int
		args   []string
	}{
		{78, []string{"run", "--until-end", "--brokers", brokers, "--topic", "points", "--out", "out"}},
		{1, []string{"verify", "out"}},
		{1, []string{"info", "out"}},
		{1, []string{"export", "out", "-o", "frame.svg"}},
	} {
		p := launch(t, dir, c.args...)
		p.exits(c.status, patience)
		p.until(`its format is 3, this program knows formats 1 to 2: it was written by a later version`)
	}
	if diff := cmp.Diff(before, treeOf(t, filepath.Join(dir, "out"))); diff != "" {
		t.Errorf("the output of a later format has changed:\n%s", diff)
	}
}

// The last program that wrote format 1, which ENTROPIPE_FORMAT1 names, refuses
// what this one writes, and leaves it as it is.
func TestFormat1ProgramRefusesFormat2(t *testing.T) {
	old := os.Getenv("ENTROPIPE_FORMAT1")
	if old == "" {
		t.Skip("ENTROPIPE_FORMAT1 does not name the last program that wrote format 1; .ci/run formats builds it")
	}
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	smallOutput(t, dir, brokers)
	before := treeOf(t, filepath.Join(dir, "out"))
	for _, args := range [][]string{
		{"run", "--until-end", "--brokers", brokers, "--topic", "points", "--out", "out"},
		{"verify", "out"},
		{"info", "out"},
		{"export", "out", "-o", "frame.svg"},
	} {
		cmd := exec.CommandContext(t.Context(), old, args...)
		cmd.Dir = dir
		said, err := cmd.CombinedOutput()
		if err == nil || !regexp.MustCompile(`its format is 2, this program knows 1`).Match(said) {
			t.Errorf("%s %v: %v\n%s", old, args, err, said)
		}
	}
	if diff := cmp.Diff(before, treeOf(t, filepath.Join(dir, "out"))); diff != "" {
		t.Errorf("a program of format 1 has changed it:\n%s", diff)
	}
	must(t, dir, "verify", "out")
}

// smallOutput writes three frames of topic points to out.
func smallOutput(t *testing.T, dir, brokers string) {
	t.Helper()
	must(t, dir, "produce", "synthetic", "--kind", "lidar", "--frames", "3", "--points", "12", "--rate", "max", "--brokers", brokers, "--topic", "points")
	must(t, dir, "run", "--until-end", "--brokers", brokers, "--topic", "points", "--out", "out")
}

// treeOf returns the content of every file below a folder, by name.
func treeOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		tree[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}
