package config

import (
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/alecthomas/kong"

	"entropipe/cmd/config/value"
)

// WarnOfSlips logs each variable of environ that no flag reads and that differs from the
// variable of one of the command's flags by its underscores or by one character. It is no
// error, because other programs set variables that begin with ENTROPIPE_ too: Kubernetes
// does for a service of that name.
func (s *Settings) WarnOfSlips(log *slog.Logger, ctx *kong.Context, environ []string) {
	known := sync.OnceValue(s.variablesOfAll)
	var own []string
	for _, at := range ctx.Path {
		for _, f := range at.Flags {
			own = append(own, variableName(f.Name))
		}
	}
	slices.Sort(environ)
	for _, v := range environ {
		name, text, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, variableName("")) || slices.Contains(own, name) || text == "" {
			continue
		}
		if meant := slipOf(name, own); meant != "" && !known()[name] {
			log.Warn("this variable is not read", "variable", name, "did_you_mean", meant)
		}
	}
}

// variablesOfAll returns the variables of the flags of all commands.
func (s *Settings) variablesOfAll() map[string]bool {
	variables := map[string]bool{}
	k, err := NewParser(s.Grammar(), &Settings{Lookup: s.Lookup})
	if err != nil {
		return variables
	}
	_ = kong.Visit(k.Model, func(n kong.Visitable, next kong.Next) error {
		if f, ok := n.(*kong.Flag); ok {
			variables[variableName(f.Name)] = true
		}
		return next(nil)
	})
	return variables
}

// slipOf returns the element of known that differs from name by underscores or by one
// character only; "" if there is none.
func slipOf(name string, known []string) string {
	bare := func(s string) string { return strings.ReplaceAll(s, "_", "") }
	for _, k := range known {
		if bare(name) == bare(k) || value.EditDistance(name, k) == 1 {
			return k
		}
	}
	return ""
}
