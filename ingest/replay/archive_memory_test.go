package replay

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"testing"
	"time"
)

// manyFiles is how many files an archive has that is searched in bounded memory.
func manyFiles(usually int) int {
	switch {
	case os.Getenv(longTests) != "":
		return 1_000_000
	case testing.Short():
		return usually / 5
	}
	return usually
}

// linked fills folders with n files each that are links to one file.
func linked(t *testing.T, content []byte, name func(i int) string, n int, dirs ...string) {
	t.Helper()
	base := ""
	for d, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			path := filepath.Join(dir, name(d*n+i))
			if base != "" && i%10_000 > 0 && os.Link(base, path) == nil {
				continue
			}
			if err := os.WriteFile(path, content, 0o644); err != nil {
				t.Fatal(err)
			}
			base = path
		}
	}
}

// heapWhile returns by how much the heap was larger while f ran than before.
func heapWhile(f func()) int64 {
	heap := func() int64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	debug.FreeOSMemory()
	before, most := heap(), int64(0)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			most = max(most, heap()-before)
			select {
			case <-quit:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	f()
	close(quit)
	<-done
	return most
}

// The search of an archive takes at most 300 bytes of heap for a file of the largest folder: less
// than 300 MB for a million files.
func TestSearchesTakeBoundedMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // garbage does not count for long
	number := func(i int) string { return fmt.Sprintf("%010d", i) }
	for _, c := range []struct {
		name, ending string
		content      []byte
		folders      int
		files        int
		archive      func(dir string) (Archive, error)
	}{
		{"clouds in one folder", ".pcd", pcdFile(1), 1, 25_000, nil},
		{"clouds in folders", ".pcd", pcdFile(1), 100, 10_000, nil},
		{"scans in one folder", ".bin", make([]byte, 16), 1, 10_000, nil},
		{"a drive", ".bin", make([]byte, 16), 1, 10_000,
			func(dir string) (Archive, error) { return KITTI{Dir: filepath.Join(dir, "lidar0")}.Archive() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, root := manyFiles(c.files), t.TempDir()
			var dirs []string
			for i := range c.folders {
				dirs = append(dirs, filepath.Join(root, "lidar"+strconv.Itoa(i)))
			}
			linked(t, c.content, func(i int) string { return number(i) + c.ending }, n/c.folders, dirs...)
			a, err := Files{Paths: []string{root}}.Archive()
			if c.archive != nil {
				a, err = c.archive(root)
			}
			if err != nil {
				t.Fatal(err)
			}
			bound, most := int64(n)*300+2<<20, int64(0)
			for try := range 5 { // garbage counts, and on a busy machine it may wait for the collector
				var parts, items, files int64
				most = heapWhile(func() {
					err = a.Parts(t.Context(), func(p *Part) error {
						parts++
						items += p.Items
						for i := range p.Items {
							files += int64(len(p.Of(i)))
						}
						return nil
					})
				})
				if err != nil || parts != int64(c.folders) || items != int64(n) || files != items {
					t.Fatalf("%d parts, %d items, %d files, %v", parts, items, files, err)
				}
				t.Logf("try %d, %d files: %.1f MB of heap, %d bytes a file", try, n, float64(most)/1e6, most/int64(n))
				if most <= bound {
					return
				}
			}
			t.Errorf("%d bytes of heap for %d files, more than %d", most, n, bound)
		})
	}
}
