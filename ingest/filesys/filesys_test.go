package filesys_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"entropipe/ingest/filesys"
	"entropipe/sinks/s3/s3test"
)

const root = "s3://" + s3test.Bucket

// server returns a server that reads are sent to, with so much memory for reads ahead.
func server(t *testing.T, memory int64) *s3test.Server {
	t.Helper()
	s := s3test.New(t)
	t.Cleanup(filesys.Use(t.Context(), s.Reach(), memory))
	return s
}

func content(n int) string {
	rng := rand.NewChaCha8([32]byte{3})
	data := make([]byte, n)
	rng.Read(data)
	return string(data)
}

// Reads in order cost a request for each piece, whatever their sizes and the memory.
func TestSequentialReads(t *testing.T) {
	const size = 9<<20 + 5
	text := content(size)
	for _, c := range []struct {
		memory   int64
		step     int
		requests int
	}{{64 << 20, 4096, 7}, {64 << 20, 1 << 20, 7}, {0, 32 << 10, size/(64<<10) + 2}, {5 << 20, 4096, 12},
		{0, size, 5}} {
		s := server(t, c.memory)
		s.Put(t, "a", text, nil)
		f, err := filesys.Open(root + "/a")
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		_, err = io.CopyBuffer(struct{ io.Writer }{&got}, struct{ io.Reader }{f}, make([]byte, c.step))
		if err != nil || got.String() != text {
			t.Errorf("%+v: %d bytes, %v", c, got.Len(), err)
		}
		if n := s.Requests(); n > c.requests {
			t.Errorf("%+v: %d requests", c, n)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Law: reads anywhere give the bytes of the object, and io.EOF where it ends.
func TestReadsAnywhere(t *testing.T) {
	const size = 9<<20 + 11
	text := content(size)
	s := server(t, 16<<20)
	s.Put(t, "a", text, nil)
	s.Put(t, "empty", "", nil)
	f, err := filesys.Open(root + "/a")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		at, n := rng.IntN(size+10), 1+rng.IntN(1<<rng.IntN(23))
		p := make([]byte, n)
		got, err := f.ReadAt(p, int64(at))
		want := text[min(at, size):min(at+n, size)]
		if string(p[:got]) != want || (err == io.EOF) != (at+n > size) || err != nil && err != io.EOF {
			t.Fatalf("%d bytes at %d: %d, %v", n, at, got, err)
		}
	}
	if at, err := f.Seek(-4, io.SeekEnd); at != size-4 || err != nil {
		t.Errorf("seek: %d, %v", at, err)
	}
	if tail, err := io.ReadAll(f); string(tail) != text[size-4:] || err != nil {
		t.Errorf("the end: %q, %v", tail, err)
	}
	e, err := filesys.Open(root + "/empty")
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(e); len(data) > 0 || err != nil {
		t.Errorf("an empty object: %q, %v", data, err)
	}
}

// An object that is replaced fails to be read: bytes of two are never mixed. One that is gone is
// not there. Then Stat says how it is now.
func TestReplacedObjects(t *testing.T) {
	s := server(t, 0)
	first, second := strings.Repeat("a", 1<<20), strings.Repeat("b", 1<<20)
	for _, c := range []string{"before", "while", "gone"} {
		name := root + "/" + c
		s.Put(t, c, first, nil)
		was, err := filesys.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := filesys.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(f, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		if c == "before" {
			f.Close()
			if f, err = filesys.Open(name); err != nil {
				t.Fatal(err)
			}
		}
		if c == "gone" {
			s.Remove(t, c)
		} else {
			s.Put(t, c, second, nil)
		}
		data, err := io.ReadAll(f)
		if err == nil || strings.Contains(string(data), "b") || errors.Is(err, fs.ErrNotExist) != (c == "gone") ||
			c != "gone" && !strings.Contains(err.Error(), "replaced") {
			t.Errorf("%s: %d bytes, %v", c, len(data), err)
		}
		f.Close()
		now, err := filesys.Stat(name)
		if c == "gone" && !errors.Is(err, fs.ErrNotExist) || c != "gone" &&
			(err != nil || filesys.ETag(now) == filesys.ETag(was)) {
			t.Errorf("%s: %v, %v", c, now, err)
		}
		if err := filesys.Check(name); err != nil {
			t.Errorf("%s: %v: nothing failed", c, err)
		}
	}
}

// Faults that pass are not seen; one that stays is returned, and told to Check.
func TestFaultsOfReads(t *testing.T) {
	s := server(t, 8<<20)
	text := content(3 << 20)
	s.Put(t, "a", text, nil)
	if _, err := filesys.Stat(root + "/a"); err != nil {
		t.Fatal(err)
	}
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusInternalServerError, 0} {
		var n atomic.Int64
		s.Ask(func(*http.Request) *s3test.Refusal {
			if n.Add(1)%3 > 0 {
				return &s3test.Refusal{Status: status, Code: "SlowDown"}
			}
			return nil
		}, nil)
		f, err := filesys.Open(root + "/a")
		if err != nil {
			t.Fatal(err)
		}
		if data, err := io.ReadAll(f); err != nil || string(data) != text {
			t.Errorf("status %d: %d bytes, %v", status, len(data), err)
		}
		f.Close()
	}
	s.Ask(func(*http.Request) *s3test.Refusal { return &s3test.Refusal{Status: 503, Code: "SlowDown"} }, nil)
	f, err := filesys.Open(root + "/a")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.ReadAll(f); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("503 for ever: %v", err)
	}
	if err := filesys.Check(root + "/a"); err == nil || !strings.Contains(err.Error(), "SlowDown") {
		t.Errorf("told: %v", err)
	}
	if err := filesys.Check(root + "/a"); err != nil {
		t.Errorf("told twice: %v", err)
	}
}

// Folders of odd names and of many pages are listed, and patterns match as in a folder.
func TestListings(t *testing.T) {
	s := server(t, 0)
	for i := range 2345 {
		s.Put(t, fmt.Sprintf("many/%d.bin", i), "x", nil)
	}
	odd := []string{"a b", "a+b", "100%", "ünïcode", "[x]", "q?", "#1", "a&b=c"}
	for _, name := range odd {
		s.Put(t, "odd/"+name+"/"+name+".txt", name, nil)
	}
	s.Put(t, "odd//nameless", "x", nil)
	entries, err := filesys.ReadDir(root + "/many")
	if err != nil || len(entries) != 2345 || s.Requests() != 3 {
		t.Errorf("%d entries, %d requests, %v", len(entries), s.Requests(), err)
	}
	folders, err := filesys.ReadDir(root + "/odd/")
	if err != nil || len(folders) != len(odd) {
		t.Errorf("%v, %v", folders, err)
	}
	for _, name := range odd {
		path := filesys.Join(root, "odd", name, name+".txt")
		f, err := filesys.Open(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if data, err := io.ReadAll(f); err != nil || string(data) != name {
			t.Errorf("%s: %q, %v", path, data, err)
		}
		f.Close()
		if info, err := filesys.Stat(filesys.Dir(path)); err != nil || !info.IsDir() || info.Name() != name {
			t.Errorf("%s: %v, %v", filesys.Dir(path), info, err)
		}
	}
	for pattern, want := range map[string]int{"/many/1?.bin": 10, "/odd/*/*.txt": len(odd), "/odd/a*/*": 3,
		"/odd/\\[x\\]/*": 1, "/none/*": 0, "/many/*.txt": 0} {
		if found, err := filesys.Glob(root + pattern); err != nil || len(found) != want {
			t.Errorf("%s: %q, %v", pattern, found, err)
		}
	}
	for _, name := range []string{"/none", "/man", "/many/1"} {
		if _, err := filesys.Stat(root + name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := filesys.ReadDir(root + "/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if info, err := filesys.Stat(root); err != nil || !info.IsDir() {
		t.Errorf("the bucket: %v, %v", info, err)
	}
	if _, err := filesys.Stat("s3://another/a"); err == nil || !strings.Contains(err.Error(), "no bucket another") {
		t.Errorf("another bucket: %v", err)
	}
}

func TestPaths(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{filesys.Join("s3://b/a", "../c", "d"), "s3://b/c/d"}, {filesys.Join("s3://b", "x"), "s3://b/x"},
		{filesys.Join("a", "b"), "a/b"}, {filesys.Dir("s3://b/a/c"), "s3://b/a"}, {filesys.Dir("s3://b/a"), "s3://b"},
		{filesys.Dir("s3://b"), "s3://b"}, {filesys.Base("s3://b/a/"), "a"}, {filesys.Base("s3://b"), "b"},
		{filesys.Clean("s3://b/a//c/"), "s3://b/a/c"}, {filesys.Dir("/a/b"), "/a"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	if rel, err := filesys.Rel("s3://b/a", "s3://b/a/c/d"); rel != "c/d" || err != nil {
		t.Errorf("%s, %v", rel, err)
	}
	if _, err := filesys.Rel("/a", "s3://b/a"); err == nil {
		t.Error("a path from a folder to a bucket")
	}
}
