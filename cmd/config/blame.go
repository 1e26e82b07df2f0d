package config

import (
	"errors"
	"strings"

	"entropipe/cmd/mistake"
)

// place is where the value of a flag was set, other than on the command line.
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

// place returns where flag, which may be an element of a list, was set; false if
// on the command line or nowhere.
func (s *Settings) place(flag string) (place, bool) {
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
func (s *Settings) problem(m *mistake.Flagged) (mistake.Problem, bool) {
	for _, flag := range m.Flags {
		name, _, _ := strings.Cut(flag, "[")
		at, ok := s.place(flag)
		if !ok && s.resolved[name] {
			continue // nowhere
		}
		if !ok {
			return mistake.Problem{}, false
		}
		what := m.Text
		if rest, ok := strings.CutPrefix(what, "--"+name); ok && (strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, ":")) {
			what = strings.TrimLeft(rest, " :")
		}
		return at.at(mistake.Problem{Path: flag, What: what}), true
	}
	return mistake.Problem{}, false
}

// Blame returns err with its mistakes where they were made: a *ConfigError if any
// of them stands in a file or a variable, else err.
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

// locate adds where they were set to problems that name a flag only.
func (s *Settings) locate(config *mistake.Config) {
	for i, p := range config.Problems {
		if at, ok := s.place(p.Path); ok && p.File == "" {
			config.Problems[i] = at.at(p)
		}
	}
}

// checker is a command that checks its flags.
type checker interface{ Check() error }

// More returns the mistakes that stand in file and variables beside values of the
// wrong type: those of flags that are wrong by themselves, since what depends on
// others may be wrong only for want of a value that could not be read.
func (s *Settings) More(args []string) (problems []mistake.Problem) {
	again := &Settings{Lookup: s.Lookup, given: true, values: s.values, places: s.places}
	parser, err := NewParserOf(s.Grammar(), again)
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
