// Package mistake holds the errors of whoever starts the program: usage errors of the
// command line (exit status 2) and problems of the configuration (78), each with the
// place where the wrong value was set.
package mistake

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A mistake is a value that its flag's type takes and that cannot be used: out
// of range, or without another flag. Checks tell of all mistakes at once. Where
// the value was set decides what becomes of its mistake: on the command line, a
// usage error that names the flag; in a file or a variable, a problem of the
// configuration, with file, line and column.

// Flagged is a usage error about flags.
type Flagged struct {
	Flags []string // the flags to blame: the first that was set; an element of a list is topic[1]
	Text  string   // begins with --FLAG
	Alone bool     // the flag is wrong whatever others say
}

// Error is the mistake for who reads the command line.
func (m *Flagged) Error() string { return m.Text }

// About returns a Usage about flags, in which text names them.
func About(text string, flags ...string) error {
	return Usage{&Flagged{Flags: flags, Text: text}}
}

// Value returns a Usage about the value of one flag, or of an element
// of its list.
func Value(flag, format string, args ...any) error {
	name, _, _ := strings.Cut(flag, "[")
	return Usage{&Flagged{Flags: []string{flag}, Text: "--" + name + fmt.Sprintf(format, args...), Alone: true}}
}

// Of returns the mistake that err is. A Usage that begins with its
// flag is one, too.
func Of(err error) (*Flagged, bool) {
	var m *Flagged
	if errors.As(err, &m) {
		return m, true
	}
	var usage Usage
	if begin := beginsWithFlag.FindStringSubmatch(err.Error()); begin != nil && errors.As(err, &usage) {
		return &Flagged{Flags: []string{begin[1]}, Text: err.Error()}, true
	}
	return nil, false
}

var beginsWithFlag = regexp.MustCompile(`^--([a-z0-9-]+)[ :,]`)

// Leaves returns the errors that err joins, or err.
func Leaves(err error) (all []error) {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		all = append(all, Leaves(e)...)
	}
	return all
}

// SortedProblems orders problems: those of a file by their place, then the rest.
func SortedProblems(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		if inFile := func(p Problem) int { return min(len(p.File), 1) }; inFile(a) != inFile(b) {
			return inFile(b) - inFile(a)
		}
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return problems
}

// Usage is a mistake on the command line: exit status 2.
type Usage struct{ error }

// NewUsage returns err as a Usage.
func NewUsage(err error) error { return Usage{err} }

// Unwrap returns the mistake.
func (u Usage) Unwrap() error { return u.error }
