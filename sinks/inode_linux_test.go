package sinks_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"entropipe/sinks"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/record"
)

// inodeAt opens the output in dir, which is made, and returns its inode and name.
func inodeAt(t *testing.T, dir string) (inode, uuid string) {
	t.Helper()
	s, err := sinks.OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o := sinktest.OpenOn(t, s)
	return o.Inode(), o.UUID()
}

// An output is told by the inode number of its store.json and by nothing else: not
// by its path, nor by the number of its device, which a restart may change. A copy
// has another.
func TestInodeOfAnOutput(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	first, uuid := inodeAt(t, out)
	info, err := os.Stat(filepath.Join(out, record.StoreFile))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprint(info.Sys().(*syscall.Stat_t).Ino); first != want && first != "" {
		t.Fatalf("inode %q, want %q", first, want)
	}
	if first == "" {
		t.Skip("the temporary folder is on a file system whose inode numbers do not last")
	}
	same := func(what, dir string) {
		t.Helper()
		if got, id := inodeAt(t, dir); got != first || id != uuid {
			t.Errorf("%s: inode %s of %s, want %s of %s", what, got, id, first, uuid)
		}
	}
	same("opened again", out)
	copied := filepath.Join(dir, "copy")
	if err := os.CopyFS(copied, os.DirFS(out)); err != nil {
		t.Fatal(err)
	}
	if got, id := inodeAt(t, copied); got == first || id != uuid {
		t.Errorf("a copy has inode %s of %s, the original %s of %s", got, id, first, uuid)
	}
	moved := filepath.Join(dir, "deep", "moved")
	if err := os.Mkdir(filepath.Dir(moved), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(out, moved); err != nil {
		t.Fatal(err)
	}
	same("moved", moved)
	link := filepath.Join(dir, "link")
	if err := os.Symlink(moved, link); err != nil {
		t.Fatal(err)
	}
	same("through a link", link)
	if err := os.Remove(filepath.Join(moved, record.StoreFile)); err != nil {
		t.Fatal(err)
	}
	if _, id := inodeAt(t, moved); id == uuid {
		t.Error("without its store.json the output keeps its name")
	}
}

// A store without inodes says none.
func TestInodeOfAStoreWithout(t *testing.T) {
	o := sinktest.OpenOn(t, sinktest.MemStore(sinktest.NewMemDisk()))
	if got := o.Inode(); got != "" {
		t.Errorf("inode %q", got)
	}
}

// A container sees the same inode through its mount.
func TestInodeThroughAMount(t *testing.T) {
	dir := t.TempDir()
	out, view := filepath.Join(dir, "out"), filepath.Join(dir, "view")
	want, uuid := inodeAt(t, out)
	if err := os.Mkdir(view, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount(out, view, "", syscall.MS_BIND, ""); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	defer syscall.Unmount(view, syscall.MNT_DETACH)
	if got, id := inodeAt(t, view); got != want || id != uuid {
		t.Errorf("inode %s of %s through a mount, %s of %s without", got, id, want, uuid)
	}
}

// After a restart a file system may be another device; its files keep their
// inodes.
func TestInodeOnAnotherDevice(t *testing.T) {
	dir := t.TempDir()
	image, again := filepath.Join(dir, "image"), filepath.Join(dir, "again")
	if err := os.WriteFile(image, make([]byte, 8<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("mkfs.ext4", "-q", "-F", image).CombinedOutput(); err != nil {
		t.Skipf("no file system can be made here: %v %s", err, text)
	}
	mount := func(image string) (disk string, device uint64) {
		t.Helper()
		disk = t.TempDir()
		if text, err := exec.Command("mount", "-o", "loop", image, disk).CombinedOutput(); err != nil {
			t.Skipf("no file system can be mounted here: %v %s", err, text)
		}
		t.Cleanup(func() { syscall.Unmount(disk, syscall.MNT_DETACH) })
		info, err := os.Stat(disk)
		if err != nil {
			t.Fatal(err)
		}
		return disk, info.Sys().(*syscall.Stat_t).Dev
	}
	disk, before := mount(image)
	want, uuid := inodeAt(t, filepath.Join(disk, "out"))
	if err := syscall.Unmount(disk, 0); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(image)
	if err == nil {
		err = os.WriteFile(again, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	mount(image) // keeps the number of the first device
	disk, after := mount(again)
	if before == after {
		t.Fatalf("both devices have number %d", after)
	}
	if got, id := inodeAt(t, filepath.Join(disk, "out")); got != want || id != uuid {
		t.Errorf("inode %s of %s on device %d, %s of %s on device %d before", got, id, after, want, uuid, before)
	}
}
