package config

import (
	"errors"
	"fmt"
	"strings"

	"entropipe/cmd/mistake"
)

// place is the position in a file, or the variable, where the value of a flag was set.
type place struct {
	file      string
	line, col int
	variable  string
}

// at returns p as a problem at this place.
func (at place) at(p mistake.Problem) mistake.Problem {
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

// place returns where flag, which may be an element of a list, was set; false if it was
// set on the command line or not at all.
func (s *Settings) place(flag string) (place, bool) {
	name, _, _ := strings.Cut(flag, "[")
	if !s.resolved[name] { // the command line sets it and overrides the rest
		return place{}, false
	}
	if p, ok := s.places[flag]; ok {
		return p, true
	}
	p, ok := s.places[name]
	return p, ok
}

// source says in a few words where flag was set; "set" if s is nil or has seen no command line.
func (s *Settings) source(flag string) string {
	if s == nil || s.ctx == nil {
		return "set"
	}
	at, found := s.place(flag)
	switch {
	case !s.resolved[flag]:
		return "flag"
	case !found:
		return "default"
	case at.variable != "":
		return at.variable
	case at.line == 0:
		return at.file
	}
	return fmt.Sprintf("%s:%d", at.file, at.line)
}

// problem returns m as a problem of the configuration; false if the first of its flags
// that was set stands on the command line.
func (s *Settings) problem(m *mistake.Flagged) (mistake.Problem, bool) {
	for _, flag := range m.Flags {
		name, _, _ := strings.Cut(flag, "[")
		at, ok := s.place(flag)
		if !ok && s.resolved[name] {
			continue // it was not set
		}
		if !ok {
			return mistake.Problem{}, false
		}
		what := m.Text
		if rest, ok := strings.CutPrefix(what, "--"+name); ok &&
			(strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, ":")) {
			what = strings.TrimLeft(rest, " :")
		}
		return at.at(mistake.Problem{Path: flag, What: what}), true
	}
	return mistake.Problem{}, false
}

// Blame adds to the mistakes in err the places where their values were set. It returns a
// *mistake.Config if at least one value stands in a file or a variable, else err.
func (s *Settings) Blame(err error) error {
	if config := (*mistake.Config)(nil); errors.As(err, &config) {
		s.locate(config)
		return err
	}
	var problems []mistake.Problem
	set := false
	for _, e := range mistake.Leaves(err) {
		var p mistake.Problem
		m, ok := mistake.Of(e)
		if ok {
			p, ok = s.problem(m)
		}
		if !ok {
			p = mistake.Problem{What: e.Error()}
		}
		set = set || ok
		problems = append(problems, p)
	}
	if !set {
		return err
	}
	return &mistake.Config{Problems: mistake.SortedProblems(problems)}
}

// locate adds places to the problems that name a flag only.
func (s *Settings) locate(config *mistake.Config) {
	for i, p := range config.Problems {
		if at, ok := s.place(p.Path); ok && p.File == "" {
			config.Problems[i] = at.at(p)
		}
	}
}

// checker is a command that checks its flags.
type checker interface{ Check() error }

// More returns the further mistakes of file and variables after some values had the wrong
// type, so that the user sees all of them in one run. Only flags that are wrong by
// themselves count: a mistake that involves other flags may be due to a value that could
// not be read.
func (s *Settings) More(args []string) (problems []mistake.Problem) {
	again := &Settings{Lookup: s.Lookup, given: true, values: s.values, places: s.places}
	parser, err := NewParserOf(args, s.Grammar(), again)
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
	for _, e := range mistake.Leaves(command.Check()) {
		m, ok := mistake.Of(e)
		if !ok || !m.Alone {
			continue
		}
		if p, ok := again.problem(m); ok {
			problems = append(problems, p)
		}
	}
	return problems
}
