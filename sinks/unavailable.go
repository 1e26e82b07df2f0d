package sinks

import (
	"errors"
	"syscall"

	"entropipe/schemas"
)

// passing holds the errors of a disk that may pass by themselves or when a user frees
// space. The refused call may be tried again. Errors of other stores say so themselves, by
// a method Passing.
//
// EIO is not among them: after a failed fsync the next fsync may succeed although
// bytes are lost, so only a new process that reads the disk knows its state. ENOENT is
// not: the output's folder is held open, so the folder was removed. EACCES is not:
// permissions do not change by themselves.
var passing = []syscall.Errno{
	syscall.ENOSPC, syscall.EDQUOT, // the disk, or the quota of this user, is full
	syscall.EROFS,                  // mounted read-only: kernels remount so after a fault
	syscall.EMFILE, syscall.ENFILE, // too many open files
	syscall.ETIMEDOUT, // network file system
	syscall.ESTALE,    // its server knows a file no more: every try opens files anew
}

// unavailable makes err a *schemas.UnavailableError if it may pass. That another's record
// exists and cannot be read passes, too: a network file system hides it for a while.
func unavailable(err error) error {
	var answer interface{ Passing() bool }
	passes := isOneOf(err, passing...) || errors.Is(err, ErrExists) || errors.As(err, &answer) && answer.Passing()
	if err == nil || !passes {
		return err
	}
	lost, damaged := (*LostFileError)(nil), (*DamagedFileError)(nil)
	if errors.As(err, &lost) || errors.As(err, &damaged) {
		return err
	}
	return &schemas.UnavailableError{Err: err}
}
