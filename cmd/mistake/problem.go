package mistake

import (
	"fmt"
	"strings"
)

// Problem is one fault of the configuration.
type Problem struct {
	File      string // path as shown to the user; empty for a variable
	Line, Col int    // from 1; 0: the whole file
	Path      string // key, with [i] for an element of a list, or name of the variable
	What      string // the fault
	Expected  string // the object of "expected"; may be empty
	Hint      string // the probable intention; may be empty
}

// String writes p as file:line:col: path: what; expected …; did you mean "…"?
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Col)
		}
		b.WriteString(": ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.What)
	if p.Expected != "" {
		b.WriteString("; expected " + p.Expected)
	}
	if p.Hint != "" {
		fmt.Fprintf(&b, "; did you mean %q?", p.Hint)
	}
	return b.String()
}

// Config is a configuration that cannot be used. It ends the program with status 78.
type Config struct {
	Problems []Problem // at least one; problems of a file in the order of their places
}

// Error returns one line for each problem.
func (e *Config) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}
