package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"entropipe/schemas/codec/mcap"
)

// opener makes the source and the archive of some paths.
type opener interface {
	Open() (Source, error)
	Archive() (Archive, error)
}

// formatsOfPaths returns sources of files and folders whose items have no times.
func formatsOfPaths(t *testing.T) map[string]func(reverse bool) opener {
	rng := rand.New(rand.NewPCG(7, 7))
	root := t.TempDir()
	drawings, texts := drawingFiles(t, rng), tokenFiles(t, rng)
	var clouds, tables []string
	for _, name := range []string{"a/lidar", "b/lidar", "c"} {
		for i := range 4 {
			write(t, pcdFile(i), root, "pcd", name, fmt.Sprint(i, ".pcd"))
			write(t, []byte("x,y\n1,2\n"), root, "csv", name, fmt.Sprint("row", i, ".csv"))
		}
		clouds = append(clouds, filepath.Join(root, "pcd", name))
		tables = append(tables, filepath.Join(root, "csv", name))
	}
	paths := func(list []string, reverse bool) []string {
		list = slices.Clone(list)
		if reverse {
			slices.Reverse(list)
		}
		return list
	}
	return map[string]func(reverse bool) opener{
		"drawings": func(r bool) opener { return QuickDraw{Files: paths(drawings, r), Pack: 3, SkipBad: true} },
		"texts":    func(r bool) opener { return Tokens{Files: paths(texts, r), Pack: 3, SkipBad: true} },
		"clouds":   func(r bool) opener { return CloudFiles{Format: PCD, Paths: paths(clouds, r)} },
		"tables":   func(r bool) opener { return Table{Format: FormatCSV, Paths: paths(tables, r)} },
	}
}

// sentOfInputs returns the messages of each input, by sequence.
func sentOfInputs(t *testing.T, src Source) map[string][]string {
	t.Helper()
	in, ok := src.(*Inputs)
	if !ok {
		t.Fatalf("%T", src)
	}
	defer in.Close()
	sent := map[string][]string{}
	for _, i := range in.List() {
		one, err := in.OpenInput(i)
		if err != nil {
			t.Fatal(err)
		}
		_, texts := sentBy(t, &Producer{}, one)
		one.Close()
		sent[i.Path+" "+strings.Join(i.Files, " ")] = texts
	}
	return sent
}

// Law: what is sent of an input depends on no other input. No two have one name.
func TestInputsDoNotDependOnEachOther(t *testing.T) {
	for name, of := range formatsOfPaths(t) {
		var both [2]map[string][]string
		for i := range both {
			src, err := of(i == 1).Open()
			if err != nil {
				t.Fatal(err)
			}
			both[i] = sentOfInputs(t, src)
		}
		if diff := cmp.Diff(both[0], both[1]); diff != "" || len(both[0]) < 3 {
			t.Errorf("%s, %d inputs (-forwards +backwards):\n%.2000s", name, len(both[0]), diff)
		}
		seen := map[string]string{}
		for input, texts := range both[0] {
			_, headers, _ := strings.Cut(texts[0], "key ")
			for _, field := range strings.Split(headers, ", ") {
				if value, ok := strings.CutPrefix(field, "sequence="); ok {
					if seen[value] != "" {
						t.Errorf("%s: %s and %s have the sequence %s", name, seen[value], input, value)
					}
					seen[value] = input
				}
			}
			if !strings.Contains(texts[0], fmt.Sprint(DefaultEpoch.UnixNano())) && name != "drawings" {
				t.Errorf("%s: %s does not begin at the epoch: %s", name, input, texts[0])
			}
		}
		if len(seen) != len(both[0]) {
			t.Errorf("%s: sequences %q of %d inputs", name, slices.Sorted(maps.Keys(seen)), len(both[0]))
		}
	}
}

// A part of an archive is what Open lists.
func TestPartsAreWhatOpenLists(t *testing.T) {
	for name, of := range formatsOfPaths(t) {
		src, err := of(false).Open()
		if err != nil {
			t.Fatal(err)
		}
		var want, got []string
		for _, in := range src.(*Inputs).List() {
			want = append(want, in.String())
		}
		src.Close()
		a, err := of(false).Archive()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range partsOf(t, a) {
			got = append(got, p.Input.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-listed +parts):\n%s", name, diff)
		}
	}
}

func TestFilesAreIdentified(t *testing.T) {
	dir := t.TempDir()
	content := []byte("some bytes")
	path := write(t, content, dir, "a.pcd")
	at := time.Unix(1_700_000_000, 123_456_789)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	a, err := Files{Paths: []string{dir}}.Archive()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	for _, summed := range []bool{false, true} {
		want := File{Path: path, Size: int64(len(content)), ModTime: at.UnixNano()}
		if summed {
			want.SHA256 = hex.EncodeToString(sum[:])
		}
		if got, err := a.Stat(t.Context(), path, summed); got != want || err != nil {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, "gone")} {
		_, err := a.Stat(t.Context(), path, true)
		failsWith(t, err, path)
	}
}

// growing is a Source whose file grows while it is read.
type growing struct {
	Source
	path string
}

// Next implements Source.
func (g *growing) Next(it *Item) error {
	f, err := os.OpenFile(g.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := f.WriteString("more\n"); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return io.EOF
}

// A file that grows while its items are counted, and a file that cannot be read, are errors that
// name it.
func TestPartsOfBadFiles(t *testing.T) {
	dir := t.TempDir()
	path := write(t, []byte("one\ntwo\n"), dir, "a.txt")
	tokens := Tokens{Files: []string{path}}
	a := &archive{open: func(in *Input) (Source, error) {
		src, err := tokens.openInput(in)
		return &growing{src, path}, err
	}}
	a.search = a.each(tokens.inputs)
	failsWith(t, a.Parts(t.Context(), func(*Part) error { return nil }), path, "changed")
	for name, of := range map[string]interface{ Archive() (Archive, error) }{
		"bad row":   Tokens{Files: []string{write(t, []byte("{\"text\": 7}\n"), dir, "row.jsonl")}},
		"bad line":  QuickDraw{Files: []string{write(t, []byte("{\"key_id\":\n"), dir, "line.ndjson")}},
		"no file":   Tokens{Files: []string{filepath.Join(dir, "gone.txt")}},
		"bad mcap":  MCAP{Paths: []string{write(t, []byte("no magic"), dir, "magic.mcap")}},
		"no folder": KITTI{Dir: filepath.Join(dir, "gone scans")},
	} {
		a, err := of.Archive()
		if err == nil {
			err = a.Parts(t.Context(), func(*Part) error { return nil })
		}
		file, _, _ := strings.Cut(strings.Fields(name)[1], " ")
		words := map[string]string{"row": "row.jsonl", "line": "line.ndjson", "file": "gone.txt", "mcap": "magic.mcap",
			"folder": "gone scans"}
		failsWith(t, err, words[file])
	}
}

// Inputs that cannot be opened end the search, or are passed over as produce passes over them; one
// must be left.
func TestPartsPassOverInputs(t *testing.T) {
	dir := t.TempDir()
	bad := write(t, drive3(t, 1, make([]byte, 16), mcap.Options{}), dir, "a.mcap")
	write(t, pcdFile(1), dir, "b.pcd")
	for _, c := range []struct {
		path    string
		skipBad bool
		parts   int
	}{{dir, true, 1}, {dir, false, 0}, {bad, true, 0}} {
		a, err := Files{Paths: []string{c.path}, SkipBad: c.skipBad, Topics: []string{"/none"}}.Archive()
		if err != nil {
			t.Fatal(err)
		}
		parts := 0
		err = a.Parts(t.Context(), func(*Part) error { parts++; return nil })
		if parts != c.parts || (err == nil) != (parts > 0) {
			t.Errorf("%s, skip %v: %d parts, %v", c.path, c.skipBad, parts, err)
		}
	}
}
