package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"entropipe/sinks/record"
)

// newestManifest reads the manifest with the highest start, of all partitions.
func newestManifest(t *testing.T, out string) (name string, m record.Manifest) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(out, "_commits", "topics", "*", "*", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	newest := int64(-1)
	for _, n := range names {
		start, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(n), ".json"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if start > newest {
			name, newest = n, start
		}
	}
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return name, m
}

// putBack makes of a published commit one that has not been published yet, as if
// its writer had died after the manifest.
func putBack(t *testing.T, out string, m *record.Manifest) {
	t.Helper()
	for _, f := range m.Files {
		if err := os.MkdirAll(filepath.Join(out, filepath.Dir(f.Staged)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(out, f.Path), filepath.Join(out, f.Staged)); err != nil {
			t.Fatal(err)
		}
	}
}

// flip changes one bit of a file.
func flip(t *testing.T, name string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// A staged file whose bytes have changed stops run with exit status 1 and its
// name. Nothing is published or removed, and with its bytes back run goes on.
func TestRunStopsAtAStagedFileThatHasChanged(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	out := filepath.Join(dir, "out")
	const n = 50
	must(t, dir, spread(brokers, "points", "a", "--frames", strconv.Itoa(n), "--rate", "max")...)
	must(t, dir, fast(brokers, "points", "--until-end")...)
	_, m := newestManifest(t, out)
	if len(m.Files) < 2 {
		t.Fatalf("the newest commit has %d files", len(m.Files))
	}
	putBack(t, out, &m)
	damaged := m.Files[1]
	flip(t, filepath.Join(out, damaged.Staged))
	for range 2 {
		r := launch(t, dir, fast(brokers, "points", "--until-end")...)
		r.exits(1, patience)
		r.says(damaged.Staged + `.* SHA-256`)
		for _, f := range m.Files {
			if _, err := os.Stat(filepath.Join(out, f.Staged)); err != nil {
				t.Errorf("a file of the commit is not in staging any more: %v", err)
			}
			if _, err := os.Stat(filepath.Join(out, f.Path)); err == nil {
				t.Errorf("%s is published", f.Path)
			}
		}
	}
	v := launch(t, dir, "verify", "out")
	v.exits(1, patience)
	if !strings.Contains(v.out(), damaged.Path) {
		t.Errorf("verify does not name %s:\n%s", damaged.Path, v.out())
	}
	flip(t, filepath.Join(out, damaged.Staged))
	must(t, dir, fast(brokers, "points", "--until-end")...)
	holds(t, out, n)
}
