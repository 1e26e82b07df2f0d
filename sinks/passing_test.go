package sinks

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"entropipe/schemas"
)

// A file of a commit that is gone, or another's, is no matter of waiting, whatever the
// disk said.
func TestLostFilesAreNotWaitedFor(t *testing.T) {
	full := &fs.PathError{Op: "rename", Path: "a", Err: syscall.ENOSPC}
	lost := errors.Join(&LostFileError{Problem: "gone"}, full)
	isUnavailable := func(err error) bool {
		passing := (*schemas.UnavailableError)(nil)
		return errors.As(err, &passing)
	}
	if err := unavailable(lost); isUnavailable(err) || !strings.Contains(err.Error(), "gone") {
		t.Errorf("%v", err)
	}
	if err := unavailable(full); !isUnavailable(err) || err.Error() != full.Error() {
		t.Errorf("%v", err)
	}
	if err := unavailable(nil); err != nil {
		t.Errorf("%v", err)
	}
}
