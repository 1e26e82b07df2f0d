//go:build unix

package plainfile

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What is no regular file is named, whatever it would take to open it. A pipe
// has no writer here, so that a wait would last until the test's end.
func TestOnlyRegularFiles(t *testing.T) {
	dir := t.TempDir()
	file, pipe, link := filepath.Join(dir, "file"), filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	socket := filepath.Join(dir, "s")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink(pipe, link)); err != nil {
		t.Skip("this file system has no pipes: ", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Skip("no sockets here: ", err)
	}
	defer listener.Close()
	for path, want := range map[string]string{pipe: "a pipe", link: "a pipe", socket: "a socket", dir: "a directory",
		"/dev/zero": "a device"} {
		var kind NotRegularError
		if f, err := Open(path); f != nil || !errors.As(err, &kind) || string(kind) != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
		if _, err := Read(path, 10); !errors.As(err, &kind) || string(kind) != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	fsys := FS(dir)
	var kind NotRegularError
	if _, err := fsys.Open("pipe"); !errors.As(err, &kind) {
		t.Errorf("a pipe of a folder: %v", err)
	}
	if data, err := fs.ReadFile(fsys, "file"); string(data) != "text" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := fsys.Open("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if entries, err := fs.ReadDir(fsys, "."); len(entries) != 4 || err != nil {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestReadIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := Read(path, 4); string(data) != "text" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := Read(path, 3); err == nil {
		t.Error("4 bytes are read where 3 are allowed")
	}
}

// Configurations may come through a pipe, as a shell's <(…) makes one.
func TestReadText(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("this file system has no pipes: ", err)
	}
	if _, err := ReadText(pipe, 100); err == nil || !strings.Contains(err.Error(), "nobody writes") {
		t.Errorf("a pipe without a writer: %v", err)
	}
	w, err := os.OpenFile(pipe, os.O_RDWR, 0) // which does not wait for a reader
	if err != nil {
		t.Fatal(err)
	}
	r, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0) // keeps what is written
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("topic: points\n"); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	if data, err := ReadText(pipe, 100); string(data) != "topic: points\n" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := ReadText("/dev/zero", 100); err == nil {
		t.Error("/dev/zero is read")
	}
}
