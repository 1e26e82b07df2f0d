package disk

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// places returns folders on file systems that answer differently: the one of temporary files, and one in memory.
func places(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"temporary files": t.TempDir()}
	if dir, err := os.MkdirTemp("/dev/shm", "entropipe-"); err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		all["memory"] = dir
	}
	return all
}

// large makes a file, and returns it as Large does.
func large(t rapid.TB, dir string) *largeFile {
	t.Helper()
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	f, err := d.Create("file")
	if err != nil {
		t.Fatal(err)
	}
	l, ok := Large(f).(*largeFile)
	if !ok {
		f.Close()
		t.Skip("files of this file system are written as usual")
	}
	return l
}

// isDirect tells whether a file is open with O_DIRECT.
func isDirect(t testing.TB, f *os.File) bool {
	t.Helper()
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		t.Fatal(err)
	}
	return flags&unix.O_DIRECT != 0
}

// Law: whatever pieces are written, the file has their bytes once it is synced.
func TestLargeFilesHaveTheirBytes(t *testing.T) {
	room := make([]byte, 4*largeBuffer)
	rand.NewChaCha8([32]byte{2}).Read(room)
	for name, dir := range places(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				l := large(t, dir)
				name := filepath.Join(dir, "file")
				defer os.Remove(name)
				var want []byte
				size := rapid.OneOf(rapid.IntRange(0, 5000), rapid.IntRange(0, len(room)),
					rapid.SampledFrom([]int{largeBuffer, largeBuffer - 1, largeBuffer + 1, 2 * largeBuffer, aligned}))
				for range rapid.IntRange(0, 6).Draw(t, "pieces") {
					n := size.Draw(t, "bytes")
					piece := room[len(room)-n:]
					if got, err := l.Write(piece); got != n || err != nil {
						t.Fatalf("%d bytes of %d: %v", got, n, err)
					}
					want = append(want, piece...)
				}
				if err := errors.Join(l.Sync(), l.Close()); err != nil {
					t.Fatal(err)
				}
				if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
					t.Fatalf("%d bytes, %v, want %d", len(got), err, len(want))
				}
			})
		})
	}
}

// A file passes by the page cache from its first full buffer on, and its end does not, where the
// file system allows that. One whose memory or disk does not fit the calls is written as usual.
func TestLargeFilesPassByTheCache(t *testing.T) {
	dir := t.TempDir()
	probe, err := os.OpenFile(filepath.Join(dir, "probe"), os.O_WRONLY|os.O_CREATE|unix.O_DIRECT, 0o666)
	if err != nil {
		t.Skip("the file system has no O_DIRECT")
	}
	probe.Close()
	for _, misplaced := range []int{0, 1, 512} {
		l := large(t, dir)
		room := make([]byte, largeBuffer+aligned)
		if misplaced > 0 {
			l.buffer = (*[largeBuffer]byte)(room[misplaced:])
		}
		if isDirect(t, l.file) {
			t.Error("an empty file is direct")
		}
		data := bytes.Repeat([]byte("0123456789abcdef"), 3*largeBuffer/16)
		data = append(data, "end"...)
		if _, err := l.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := l.wait(); err != nil {
			t.Fatal(err)
		}
		if direct := isDirect(t, l.file); direct != l.direct || misplaced == 0 && !direct {
			t.Errorf("misplaced by %d: direct %t, and the file says %t", misplaced, direct, l.direct)
		}
		if err := l.Sync(); err != nil {
			t.Fatal(err)
		}
		if isDirect(t, l.file) {
			t.Error("the end of a file is written directly")
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, "file")
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, data) {
			t.Errorf("misplaced by %d: %d bytes, %v, want %d", misplaced, len(got), err, len(data))
		}
		os.Remove(name)
	}
}

// Law: a write that fails is an error of Sync at the latest, and nothing of a closed file is used
// again.
func TestLargeFilesReportFaults(t *testing.T) {
	for _, n := range []int{1, largeBuffer, largeBuffer + 1, 3 * largeBuffer} {
		f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip(err)
		}
		l := Large(f)
		_, writeErr := l.Write(make([]byte, n))
		if n >= 3*largeBuffer && !errors.Is(writeErr, syscall.ENOSPC) {
			t.Errorf("%d bytes: %v while the file is written", n, writeErr)
		}
		if err := l.Sync(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%d bytes: %v of Sync", n, err)
		}
		if err := l.Sync(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%d bytes: %v of the second Sync", n, err)
		}
		l.Close()
		if err := l.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%d bytes: %v of the second Close", n, err)
		}
	}
}
