package sinks

import (
	"errors"
	"syscall"

	"entropipe/schemas"
)

// passing are the disk's errors that go away by themselves, or when somebody makes
// room: what was refused may be tried again.
//
// EIO is not among them. After a failed fsync the next one may succeed although
// the first one's bytes are lost, so only a look at the disk by a new process
// tells what is there. Nor is ENOENT: the output's folder is held open, so it
// means that the folder was removed. Nor is EACCES: nobody grants rights by waiting.
var passing = []syscall.Errno{
	syscall.ENOSPC, syscall.EDQUOT, // full, for everybody or for this user
	syscall.EROFS,                  // mounted for reading only, as kernels do after a fault
	syscall.EMFILE, syscall.ENFILE, // too many open files
	syscall.ETIMEDOUT, // a disk behind a network
}

// unavailable makes err a *schemas.UnavailableError if it may pass.
func unavailable(err error) error {
	if err == nil || !isOneOf(err, passing...) {
		return err
	}
	lost, damaged := (*LostFileError)(nil), (*DamagedFileError)(nil)
	if errors.As(err, &lost) || errors.As(err, &damaged) {
		return err
	}
	return &schemas.UnavailableError{Err: err}
}
