package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"entropipe/benchmarks/rig"
	"entropipe/cmd"
	"entropipe/ingest/broker"
)

// The test binary itself plays entropipe, in processes of their own.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"entropipe": func() { os.Exit(cmd.Main(os.Args[1:], os.Stdout, os.Stderr)) }})
}

// patience is how long a test waits for what takes moments: the machine may be busy.
const patience = 4 * time.Minute

func newWays(t *testing.T) *ways {
	t.Helper()
	path, err := exec.LookPath(cmp.Or(os.Getenv("ENTROPIPE_BIN"), "entropipe"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, fmt.Errorf("no end after %v", patience))
	t.Cleanup(cancel)
	return &ways{ctx: ctx, program: rig.Program{Path: path}, core: -1}
}

// startBroker starts a broker within the test and returns its address.
func startBroker(t *testing.T) string {
	t.Helper()
	b, err := broker.Start(broker.Config{Listen: "127.0.0.1:0", Dir: t.TempDir(), Partitions: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b.Addr()
}

// equal takes an archive both ways, and compares all rows.
func equal(t *testing.T, j job, tables ...string) {
	t.Helper()
	w, dir := newWays(t), t.TempDir()
	kafka, past := filepath.Join(dir, "kafka"), filepath.Join(dir, "past")
	if through, err := w.throughBroker(startBroker(t), j, kafka); err != nil {
		t.Fatalf("%v\n%s", err, through.Said)
	}
	if without, err := w.backfill(j, past); err != nil {
		t.Fatalf("%v\n%s", err, without.Said)
	}
	rows, err := rig.SameOutputs(past, kafka, rig.Places...)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if rows[table] == 0 {
			t.Errorf("table %s has no row to compare: %v", table, rows)
		}
	}
	if err := w.verify(past); err != nil {
		t.Error(err)
	}
}

// Law: a backfill writes the rows that produce and run write through a broker.
func TestRowsAreThoseThroughABroker(t *testing.T) {
	dir := t.TempDir()
	a := rig.Archive{Dir: dir, Seed: 1}
	for _, err := range []error{a.Mixed(1), a.Drive("big/drive", 12, 400), a.Texts("a.jsonl", 60, 40, 10),
		a.Texts("b.jsonl", 30, 70, 0), a.Drawings("pens/one.ndjson", 60, 0), a.Drawings("pens/two.ndjson", 45, 11)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, source, run, tables string
	}{
		{"mixed, with files that cannot be read",
			"files DIR/clouds DIR/drawings DIR/drive-0 DIR/drive-1 DIR/drive-3 --skip-bad",
			"--tables hulls,maxima,triangles,points,messages",
			"frames hulls maxima triangles points messages"},
		{"entropy and hulls in space", "kitti DIR/big/drive", "--ops hull2d,hull3d,maxima3d --entropy-every 1 " +
			"--tables hulls,hulls3d,maxima,entropy", "frames hulls hulls3d maxima entropy"},
		{"seeded", "kitti DIR/big/drive", "--ops hull2d,hull3d --stage seed --model builtin:lidar",
			"frames hulls hulls3d"},
		{"packs of drawings", "quickdraw DIR/pens/one.ndjson DIR/pens/two.ndjson --pack 7 --skip-bad",
			"", "frames hulls"},
		{"texts", "tokens DIR/a.jsonl DIR/b.jsonl --pack 9 --skip-bad",
			"--lm builtin:bytes --truncate --tables messages", "tokens messages"},
		{"ids", "tokens DIR/b.jsonl --tokenizer builtin:bytes", "--lm builtin:bytes --task logits --truncate",
			"tokens"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			equal(t, job{fields(dir, c.source), fields(dir, c.run)}, strings.Fields(c.tables)...)
		})
	}
}

// fields returns the words of a text with the folder in place of DIR.
func fields(dir, text string) []string {
	words := strings.Fields(text)
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "DIR", dir)
	}
	return words
}

// Law: the same for published data.
func TestRowsOfRealDataAreThoseThroughABroker(t *testing.T) {
	if testing.Short() {
		t.Skip("one process at a time: nothing for the race detector")
	}
	for _, c := range []struct {
		name, format, data string
		most               int // bytes of the file that are read; 0: all
		source, run        string
		tables             string
	}{
		{"a drive", "kitti", "kitti/raw_2011_09_26_drive_0005", 0, "", "--ops hull2d,maxima3d", "frames hulls maxima"},
		{"points of scans", "kitti", "kitti/object_training/reduced_fov", 0, "",
			"--ops hull3d,delaunay2d --tables hulls3d,triangles,points", "frames hulls3d triangles points"},
		{"drawings", "quickdraw", "sketch/quickdraw_raw/The Eiffel Tower.ndjson", 0, "--pack 20", "",
			"frames hulls triangles"},
		{"drawings, simplified", "files", "sketch/quickdraw_simplified", 0, "", "--ops hull2d", "frames hulls"},
		{"texts", "tokens", "text/wikitext-2/valid.txt", 50_000, "--paragraphs",
			"--lm builtin:bytes --truncate", "tokens"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path, err := rig.TestData(strings.Split(c.data, "/")...)
			if err != nil {
				t.Skip(err)
			}
			if c.most > 0 {
				path = head(t, path, c.most)
			}
			equal(t, job{append([]string{c.format, path}, strings.Fields(c.source)...), strings.Fields(c.run)},
				strings.Fields(c.tables)...)
		})
	}
}

// head copies the first bytes of a file, up to the end of a line.
func head(t *testing.T, path string, most int) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data = data[:min(most, len(data))]
	path = filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(path, data[:bytes.LastIndexByte(data, '\n')+1], 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// Law: rows, files and manifests do not depend on how lanes are shared out.
func TestEachSplitWritesTheSameOutput(t *testing.T) {
	dir := t.TempDir()
	if err := (rig.Archive{Dir: filepath.Join(dir, "archive"), Seed: 2}).Mixed(1); err != nil {
		t.Fatal(err)
	}
	j := job{fields(dir, "files DIR/archive --skip-bad"), fields(dir, "--ops hull2d,maxima2d --roll-records 12")}
	want := filepath.Join(dir, "want")
	if alone, err := newWays(t).backfill(j, want); err != nil {
		t.Fatalf("%v\n%s", err, alone.Said)
	}
	shards := func(of int, numbers ...int) (each [][]string) {
		for _, i := range numbers {
			each = append(each, []string{"--shard", fmt.Sprintf("%d/%d", i, of)})
		}
		return each
	}
	for _, c := range []struct {
		name  string
		crews [][][]string // one after the other; the processes of a crew side by side
	}{
		{"one shard", [][][]string{shards(1, 0)}},
		{"two shards", [][][]string{shards(2, 1), shards(2, 0)}},
		{"seven shards at once", [][][]string{shards(7, 0, 1, 2, 3, 4, 5, 6)}},
		{"each shard twice at once", [][][]string{shards(2, 0, 1, 0, 1)}},
		{"processes that share", [][][]string{{nil, nil, nil}}},
		{"one lane at a time", [][][]string{{{"--jobs", "1"}}}},
		{"four lanes at a time", [][][]string{{{"--jobs", "4"}}}},
		{"again when all is done", [][][]string{{nil}, {nil}, shards(3, 1)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, out := newWays(t), filepath.Join(dir, strings.ReplaceAll(c.name, " ", "-"))
			for _, crew := range c.crews {
				if together, err := w.backfill(j, out, crew...); err != nil {
					t.Fatalf("%v\n%s", err, together.Said)
				}
			}
			if _, err := rig.SameOutputs(out, want); err != nil {
				t.Error(err)
			}
			if err := rig.SameManifests(out, want); err != nil {
				t.Error(err)
			}
			if err := w.verify(out); err != nil {
				t.Error(err)
			}
		})
	}
}
