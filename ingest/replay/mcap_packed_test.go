package replay

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"entropipe/schemas/codec/mcap"
)

// Files in gzip and Zstandard give the clouds and the names of the plain file, whether the path
// names the file or its folder, and up to the last whole message where they are cut off.
func TestPackedMCAP(t *testing.T) {
	plain := drive3(t, 4, golden(t), mcap.Options{ChunkSize: 900, Compression: mcap.LZ4})
	want := namesOf(all(t, open(t, MCAP{Paths: []string{write(t, plain, t.TempDir(), "drive.mcap")}})))
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	w.Write(plain)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for ending, packed := range map[string][]byte{".gz": zipped.Bytes(), ".zst": z.EncodeAll(plain, nil),
		".zstd": z.EncodeAll(plain, nil)} {
		dir := t.TempDir()
		path := write(t, packed, dir, "drive.mcap"+ending)
		for _, named := range []string{path, dir} {
			if d := cmp.Diff(want, namesOf(all(t, open(t, MCAP{Paths: []string{named}})))); d != "" {
				t.Errorf("%s: %s", named, d)
			}
			found, err := Files{Paths: []string{named}}.Open()
			if err != nil {
				t.Fatalf("%s: %v", named, err)
			}
			if d := cmp.Diff(want, namesOf(all(t, found))); d != "" {
				t.Errorf("%s, found: %s", named, d)
			}
			found.Close()
		}
		write(t, plain, dir, "drive.mcap") // unpacked copies are read once
		if d := cmp.Diff(want, namesOf(all(t, open(t, MCAP{Paths: []string{dir}})))); d != "" {
			t.Errorf("%s beside the plain file: %s", ending, d)
		}
		if err := os.Remove(filepath.Join(dir, "drive.mcap")); err != nil {
			t.Fatal(err)
		}
	}
	cut := write(t, zipped.Bytes()[:zipped.Len()-12], t.TempDir(), "cut.mcap.gz")
	if n := len(all(t, open(t, MCAP{Paths: []string{cut}}))); n == 0 {
		t.Error("a file that is cut off gives no cloud")
	}
}
