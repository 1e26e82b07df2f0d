package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/rest"
	"github.com/apache/iceberg-go/table"

	"entropipe/ingest/bucket"
	"entropipe/sinks/record"
)

// usageError is a mistake on the command line: status 2.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usage(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// settingError is a setting that does not fit the output or the catalog: status 78.
type settingError struct{ setting, problem string }

func (e *settingError) Error() string { return e.setting + ": " + e.problem }

func configError(setting, format string, args ...any) error {
	return &settingError{setting, fmt.Sprintf(format, args...)}
}

// interruptedError says that a signal came before all was registered: status 75.
type interruptedError struct{}

func (interruptedError) Error() string {
	return "interrupted before the end of the output; run it again to go on from there"
}

// isMistake tells whether an error is that of a setting, or of the output itself.
func isMistake(err error) bool {
	var (
		use      *usageError
		setting  *settingError
		repaired *repairedError
		damage   *damagedError
		record1  *record.DamagedError
		format   *record.FormatError
	)
	return errors.As(err, &use) || errors.As(err, &setting) || errors.As(err, &repaired) || errors.As(err, &damage) ||
		errors.As(err, &record1) || errors.As(err, &format)
}

// isPassing tells whether the same step may succeed later although nobody changes a setting:
// somebody else was ahead, or a server is away, overloaded or broken.
func isPassing(err error) bool {
	if isMistake(err) || errors.Is(err, errMissing) || errors.Is(err, context.Canceled) {
		return false
	}
	if fault := (*bucket.Fault)(nil); errors.As(err, &fault) {
		return fault.Passing()
	}
	for _, passing := range []error{table.ErrCommitFailed, rest.ErrCommitStateUnknown, rest.ErrServerError,
		rest.ErrServiceUnavailable, rest.ErrAuthorizationExpired, catalog.ErrNoSuchTable, io.ErrUnexpectedEOF, io.EOF,
		context.DeadlineExceeded} {
		if errors.Is(err, passing) {
			return true
		}
	}
	if away := net.Error(nil); errors.As(err, &away) { // no answer, of the catalog or of a bucket
		return true
	}
	var answer interface{ HTTPStatusCode() int } // answer of a bucket, from the SDK
	if errors.As(err, &answer) {
		status := answer.HTTPStatusCode()
		return status == 0 || status >= 500 || status == http.StatusTooManyRequests ||
			status == http.StatusRequestTimeout
	}
	return false
}
