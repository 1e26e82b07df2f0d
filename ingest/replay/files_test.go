package replay

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"entropipe/schemas/codec"
)

// writeTo is write for benchmarks and fuzz tests, too.
func writeTo(t testing.TB, content []byte, elem ...string) string {
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

func readFileOf(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func removeAll(t testing.TB, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// zipped returns content in gzip.
func zipped(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// clonePoints returns a copy of all columns.
func clonePoints(p codec.Points) codec.Points {
	c := p
	for _, v := range []*[]float32{&c.Cloud32.X, &c.Cloud32.Y, &c.Cloud32.Z, &c.Intensity, &c.Elongation} {
		*v = slices.Clone(*v)
	}
	for _, v := range []*[]float64{&c.Cloud64.X, &c.Cloud64.Y, &c.Cloud64.Z} {
		*v = slices.Clone(*v)
	}
	for _, v := range c.Int32s() {
		*v = slices.Clone(*v)
	}
	c.TOffsetNs = slices.Clone(c.TOffsetNs)
	return c
}
