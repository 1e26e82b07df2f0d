package backfill

import "fmt"

// SourceChangedError says that an archive is not what its plan says. It stops the lane,
// and no other one.
type SourceChangedError struct {
	Plan   string
	Lane   int32
	File   string // file or folder
	Detail string
}

func (e *SourceChangedError) Error() string {
	return fmt.Sprintf("lane %d of plan %s: %s has changed since it was planned: %s", e.Lane, e.Plan, e.File, e.Detail)
}

// SourceError says that a file of an archive cannot be read. It stops the lane, and no
// other one.
type SourceError struct {
	File string // empty: Err names it
	Err  error
}

func (e *SourceError) Error() string {
	if e.File == "" {
		return e.Err.Error()
	}
	return e.File + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *SourceError) Unwrap() error { return e.Err }

// BusyError says that another process works on a lane.
type BusyError struct {
	Plan string
	Lane int32
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("another process works on lane %d of plan %s", e.Lane, e.Plan)
}
