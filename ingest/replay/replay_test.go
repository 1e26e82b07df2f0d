package replay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"entropipe/algos/geom"
	"entropipe/ops/leaktest"
)

func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // heaps are small, and collections would take a third of the time
	}
	leaktest.Main(m)
}

// all reads a source to its end, copying what it yields.
func all(t *testing.T, s Source) []Item {
	t.Helper()
	var items []Item
	var it Item
	for {
		err := s.Next(&it)
		if err == io.EOF {
			return items
		}
		if err != nil {
			t.Fatalf("item %d: %v", len(items), err)
		}
		items = append(items, clone(it))
		if len(items) > 1e6 {
			t.Fatal("the source does not end")
		}
	}
}

func clone(it Item) Item {
	it.Cloud.Cloud32 = geom.Cloud[float32]{X: slices.Clone(it.Cloud.Cloud32.X), Y: slices.Clone(it.Cloud.Cloud32.Y),
		Z: slices.Clone(it.Cloud.Cloud32.Z)}
	it.Cloud.Intensity = slices.Clone(it.Cloud.Intensity)
	it.Drawings = slices.Clone(it.Drawings)
	for i := range it.Drawings {
		d := &it.Drawings[i]
		d.X, d.Y, d.T, d.Ends = slices.Clone(d.X), slices.Clone(d.Y), slices.Clone(d.T), slices.Clone(d.Ends)
	}
	return it
}

func open(t testing.TB, o interface{ Open() (Source, error) }) Source {
	t.Helper()
	s, err := o.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// failsWith checks that err says all of the words.
func failsWith(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one that says %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

// write makes a file below dir.
func write(t *testing.T, content []byte, elem ...string) string {
	t.Helper()
	path := filepath.Join(elem...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// logBook is a logger whose lines can be read.
func logBook() (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&b, nil)), &b
}

func TestErrorNamesFileLineAndColumn(t *testing.T) {
	for want, e := range map[string]*BadInputError{
		"a.bin: short":        {File: "a.bin", Detail: "short"},
		"a.ndjson:3: short":   {File: "a.ndjson", Line: 3, Detail: "short"},
		"a.ndjson:3:9: short": {File: "a.ndjson", Line: 3, Col: 9, Detail: "short"},
	} {
		if e.Error() != want {
			t.Errorf("got %q, want %q", e, want)
		}
	}
}

func TestSkipsAreNamedUpToALimitThenCounted(t *testing.T) {
	log, book := logBook()
	s := skips{allowed: true, log: log}
	for i := range 100 {
		if err := s.pass(&BadInputError{File: fmt.Sprint(i), Detail: "bad"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(book.String(), "\n"); s.Skipped() != 100 || n != maxLogged {
		t.Errorf("%d counted, %d named", s.Skipped(), n)
	}
	strict := skips{}
	var bad *BadInputError
	err := strict.pass(&BadInputError{File: "x", Detail: "bad"})
	if failsWith(t, err, "x: bad", "--skip-bad"); !errors.As(err, &bad) {
		t.Error("not a *BadInputError")
	}
}

func timeOf(ns int64) time.Time { return time.Unix(0, ns).UTC() }
