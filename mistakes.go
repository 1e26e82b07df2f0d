package main

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

// mistake is a usage error about flags.
type mistake struct {
	flags []string // the flags to blame: the first that was set; an element of a list is topic[1]
	text  string   // begins with --FLAG
	alone bool     // the flag is wrong whatever others say
}

// Error is the mistake for who reads the command line.
func (m *mistake) Error() string { return m.text }

// mistaken returns a usageError about flags, in which text names them.
func mistaken(text string, flags ...string) error {
	return usageError{&mistake{flags: flags, text: text}}
}

// wrongValue returns a usageError about the value of one flag, or of an element
// of its list.
func wrongValue(flag, format string, args ...any) error {
	name, _, _ := strings.Cut(flag, "[")
	return usageError{&mistake{flags: []string{flag}, text: "--" + name + fmt.Sprintf(format, args...), alone: true}}
}

// place is where the value of a flag was set, other than on the command line.
type place struct {
	file      string
	line, col int
	variable  string
}

// at returns p as a problem at this place.
func (at place) at(p Problem) Problem {
	p.File, p.Line, p.Col = at.file, at.line, at.col
	if at.variable != "" {
		_, element, _ := strings.Cut(p.Path, "[")
		p.Path = at.variable
		if element != "" {
			p.Path += "[" + element
		}
	}
	return p
}

// place returns where flag, which may be an element of a list, was set; false if
// on the command line or nowhere.
func (s *settings) place(flag string) (place, bool) {
	name, _, _ := strings.Cut(flag, "[")
	if !s.resolved[name] { // the command line has it, and hides what others say
		return place{}, false
	}
	if p, ok := s.places[flag]; ok {
		return p, true
	}
	p, ok := s.places[name]
	return p, ok
}

// problem returns m as a problem of the configuration, if that is where the first
// of its flags was set.
func (s *settings) problem(m *mistake) (Problem, bool) {
	for _, flag := range m.flags {
		name, _, _ := strings.Cut(flag, "[")
		at, ok := s.place(flag)
		if !ok && s.resolved[name] {
			continue // nowhere
		}
		if !ok {
			return Problem{}, false
		}
		what := m.text
		if rest, ok := strings.CutPrefix(what, "--"+name); ok && (strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, ":")) {
			what = strings.TrimLeft(rest, " :")
		}
		return at.at(Problem{Path: flag, What: what}), true
	}
	return Problem{}, false
}

// blame returns err with its mistakes where they were made: a *ConfigError if any
// of them stands in a file or a variable, else err.
func (s *settings) blame(err error) error {
	if config := (*ConfigError)(nil); errors.As(err, &config) {
		s.locate(config)
		return err
	}
	var problems []Problem
	set := false
	for _, e := range leaves(err) {
		var p Problem
		m, ok := mistakeOf(e)
		if ok {
			p, ok = s.problem(m)
		}
		if !ok {
			p = Problem{What: e.Error()}
		}
		set = set || ok
		problems = append(problems, p)
	}
	if !set {
		return err
	}
	return &ConfigError{Problems: sortedProblems(problems)}
}

// mistakeOf returns the mistake that err is. A usageError that begins with its
// flag is one, too.
func mistakeOf(err error) (*mistake, bool) {
	var m *mistake
	if errors.As(err, &m) {
		return m, true
	}
	var usage usageError
	if begin := beginsWithFlag.FindStringSubmatch(err.Error()); begin != nil && errors.As(err, &usage) {
		return &mistake{flags: []string{begin[1]}, text: err.Error()}, true
	}
	return nil, false
}

var beginsWithFlag = regexp.MustCompile(`^--([a-z0-9-]+)[ :,]`)

// locate adds where they were set to problems that name a flag only.
func (s *settings) locate(config *ConfigError) {
	for i, p := range config.Problems {
		if at, ok := s.place(p.Path); ok && p.File == "" {
			config.Problems[i] = at.at(p)
		}
	}
}

// leaves returns the errors that err joins, or err.
func leaves(err error) (all []error) {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		all = append(all, leaves(e)...)
	}
	return all
}

// sortedProblems orders problems: those of a file by their place, then the rest.
func sortedProblems(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		if inFile := func(p Problem) int { return min(len(p.File), 1) }; inFile(a) != inFile(b) {
			return inFile(b) - inFile(a)
		}
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return problems
}

// checker is a command that checks its flags.
type checker interface{ check() error }

// more returns the mistakes that stand in file and variables beside values of the
// wrong type: those of flags that are wrong by themselves, since what depends on
// others may be wrong only for want of a value that could not be read.
func (s *settings) more(args []string) (problems []Problem) {
	var c cli
	again := &settings{lookup: s.lookup, given: true, values: s.values, places: s.places}
	parser, err := newParserOf(&c, again)
	if err != nil {
		return nil
	}
	ctx, err := parser.Parse(args)
	if err != nil || ctx.Selected() == nil {
		return nil
	}
	command, ok := ctx.Selected().Target.Addr().Interface().(checker)
	if !ok {
		return nil
	}
	for _, e := range leaves(command.check()) {
		m, ok := mistakeOf(e)
		if !ok || !m.alone {
			continue
		}
		if p, ok := again.problem(m); ok {
			problems = append(problems, p)
		}
	}
	return problems
}
