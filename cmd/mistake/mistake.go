// Package mistake holds the errors that the user of the command line makes: usage errors
// of flags (exit status 2) and problems of the configuration (78), each with the place
// where the wrong value was set. Errors at run time are not mistakes.
//
// A mistake is a value that its flag's type takes and that cannot be used: out of range,
// or set without another flag. A check returns all mistakes joined (errors.Join). The
// place of the value decides what becomes of its mistake: on the command line it is a
// Usage that names the flag; in a file or a variable it is a Problem with file, line and
// column.
package mistake

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Flagged is a usage error about flags.
type Flagged struct {
	Flags []string // candidates, the first one that was set is blamed; topic[1] is an element of a list
	Text  string   // begins with --FLAG
	Alone bool     // the flag is wrong whatever the values of other flags are
}

// Error returns the text, which begins with the flag.
func (m *Flagged) Error() string { return m.Text }

// About returns a Usage about flags that are wrong together; text names them.
func About(text string, flags ...string) error {
	return Usage{&Flagged{Flags: flags, Text: text}}
}

// Value returns a Usage about a flag that is wrong by itself, or about an element of its
// list, such as topic[1]. The formatted text follows the flag's name.
func Value(flag, format string, args ...any) error {
	name, _, _ := strings.Cut(flag, "[")
	return Usage{&Flagged{Flags: []string{flag}, Text: "--" + name + fmt.Sprintf(format, args...), Alone: true}}
}

// Of returns err as a Flagged, false if it names no flag. A Usage whose text begins with
// its flag is one, too.
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

// Leaves returns the errors that err joins, in order, or err alone; none for nil.
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

// SortedProblems sorts problems in place and returns them: those of a file first, by line
// and column, then those without a file.
func SortedProblems(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		if inFile := func(p Problem) int { return min(len(p.File), 1) }; inFile(a) != inFile(b) {
			return inFile(b) - inFile(a)
		}
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return problems
}

// Usage is a mistake on the command line. It ends the program with status 2.
type Usage struct{ error }

// NewUsage wraps err as a Usage.
func NewUsage(err error) error { return Usage{err} }

// Unwrap returns the wrapped error.
func (u Usage) Unwrap() error { return u.error }
