package replay

import (
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

// A file that a server or a disk does not give now is not passed over for good: the item
// would be missing although its file is whole. A file that is not there, or not readable, is.
func TestSystemsThatFailAreNotPassedOver(t *testing.T) {
	for _, c := range []struct {
		err  error
		pass bool
	}{{syscall.EIO, false}, {syscall.ESTALE, false}, {syscall.ETIMEDOUT, false}, {syscall.EMFILE, false},
		{syscall.ENOMEM, false}, {syscall.ENOENT, true}, {syscall.EACCES, true}, {syscall.EISDIR, true}} {
		path := &fs.PathError{Op: "read", Path: "a/b.pcd", Err: c.err}
		for what, bad := range map[string]error{"unreadable": unreadable("a/b.pcd", path),
			"file": badFile("a/b.pcd", path), "missing": missing("a/b.pcd", path)} {
			s := skips{allowed: true}
			if err := s.forgive(fmt.Errorf("wrapped: %w", bad)); (err == nil) != c.pass {
				t.Errorf("%s: %v: %v, want it passed over: %t", what, c.err, err, c.pass)
			}
		}
	}
}
