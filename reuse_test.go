package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// drawings writes files of three drawings; every file is an input, and so a lane.
func drawings(t *testing.T, dir string, files int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for i := range files {
		var text strings.Builder
		for k := range 3 {
			x, y := []int{0, 10 + i, 200, 30 + k}, []int{5, 90, 17 + k, 250 - i}
			line, err := json.Marshal(map[string]any{"word": fmt.Sprint("word ", i), "key_id": fmt.Sprint(100*i + k),
				"countrycode": "US", "timestamp": "2017-03-01 20:28:01.12345 UTC", "recognized": true,
				"drawing": [][][]int{{x, y}}})
			if err != nil {
				t.Fatal(err)
			}
			text.Write(append(line, '\n'))
		}
		name := filepath.Join(dir, fmt.Sprintf("%03d.ndjson", i))
		if err := os.WriteFile(name, []byte(text.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// sharedFiles counts the tables' files of an output that are files of another one, and the others.
func sharedFiles(t *testing.T, out, old string) (shared, own int) {
	t.Helper()
	err := filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".parquet" {
			return err
		}
		name, _ := filepath.Rel(out, path)
		mine, err := os.Stat(path)
		if err != nil {
			return err
		}
		if theirs, err := os.Stat(filepath.Join(old, name)); err == nil && os.SameFile(mine, theirs) {
			shared++
		} else {
			own++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return shared, own
}

// Of a hundred files one is touched: one lane is computed. The files of the others are
// the same inodes; the new output is whole without the earlier one, which has not changed.
func TestOnlyWhatHasChangedIsComputed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	drawings(t, filepath.Join(dir, "archive"), 100)
	args := []string{"backfill", "archive", "--ops", "hull2d", "--listen", "off", "--out"}
	must(t, dir, append(args, "old")...)
	before := treeOf(t, filepath.Join(dir, "old"))
	when := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "archive", "042.ndjson"), when, when); err != nil {
		t.Fatal(err)
	}
	if said := must(t, dir, append(args, "new", "--changed", "--reuse", "old", "--dry-run")...); !strings.Contains(said,
		"99 lanes have not changed since") {
		t.Errorf("the dry run says:\n%s", said)
	}
	for i, computed := range []string{" 1 items", " 0 items"} { // the second run finds all done
		said := must(t, dir, append(args, "new", "--changed", "--reuse", "old")...)
		if !strings.Contains(said, "adopted 99 of 100 lanes, 1 changed") || !strings.Contains(said, computed) {
			t.Errorf("run %d says:\n%s", i, said)
		}
	}
	// a file of frames and one of hulls a lane
	if shared, own := sharedFiles(t, filepath.Join(dir, "new"), filepath.Join(dir, "old")); shared != 198 || own != 2 {
		t.Errorf("%d files are shared, %d are not", shared, own)
	}
	if after := treeOf(t, filepath.Join(dir, "old")); len(after) != len(before) {
		t.Errorf("the earlier output has %d files, not %d", len(after), len(before))
	} else {
		for name, text := range before {
			if after[name] != text {
				t.Errorf("%s has changed", name)
			}
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "old")); err != nil {
		t.Fatal(err)
	}
	if said := must(t, dir, "verify", "new"); !strings.Contains(said, "adopted: 99 commits of 99 partitions") {
		t.Errorf("verify says:\n%s", said)
	}
	if said := must(t, dir, "info", "new"); !strings.Contains(said, "adopted: 99 commits of 99 partitions") {
		t.Errorf("info says:\n%s", said)
	}
	if said := must(t, dir, append(args, "new")...); !strings.Contains(said, "nothing is left") {
		t.Errorf("without the earlier output:\n%s", said)
	}
}

// Mistakes about the earlier output are named before a folder is made.
func TestMistakesAboutTheEarlierOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	drawings(t, filepath.Join(dir, "archive"), 2)
	args := []string{"backfill", "archive", "--listen", "off", "--ops", "hull2d", "--out"}
	must(t, dir, append(args, "old")...)
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		status int
		says   string
		args   []string
	}{
		{2, "--changed needs --reuse", []string{"new", "--changed"}},
		{2, "--reuse needs --changed", []string{"new", "--reuse", "old"}},
		{2, "the same folder", []string{"old", "--changed", "--reuse", "./old/"}},
		{78, "no such file", []string{"new", "--changed", "--reuse", "missing"}},
		{78, "this is not an output", []string{"new", "--changed", "--reuse", "empty"}},
		{78, "--partition-by dataset", []string{"new", "--changed", "--reuse", "old", "--partition-by",
			"dataset,date"}},
		{78, "compares files by mtime", []string{"new", "--changed", "--reuse", "old", "--identity", "sha256"}},
		{78, "no plan with the name", []string{"new", "--changed", "--reuse", "old", "--plan", "other"}},
	} {
		p := launch(t, dir, append(args, c.args...)...)
		p.exits(c.status, patience)
		if !strings.Contains(p.log(), c.says) && !strings.Contains(p.out(), c.says) {
			t.Errorf("%q: %s, want %q", c.args, p.log(), c.says)
		}
		if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
			t.Fatalf("%q: the output was made", c.args)
		}
	}
	// other flags: all is computed, and the reason is said
	p := launch(t, dir, append(args, "other", "--changed", "--reuse", "old", "--ops", "maxima2d")...)
	p.exits(0, patience)
	p.until(`another configuration: ops: hull2d -> hull2d,maxima2d`)
	p.until(`adopted 0 of 2 lanes, 0 changed, 2 not adopted`)
}
