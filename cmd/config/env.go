package config

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"entropipe/cmd/config/value"
)

// WarnOfSlips logs each variable of environ that no flag reads and that differs from the
// variable of one of the command's flags by its underscores or by one character. It is no
// error, because other programs set variables that begin with ENTROPIPE_ too: Kubernetes
// does for a service of that name.
func WarnOfSlips(log *slog.Logger, ctx *kong.Context, environ []string) {
	known, own := map[string]bool{}, []string(nil)
	_ = kong.Visit(ctx.Model, func(n kong.Visitable, next kong.Next) error {
		if f, ok := n.(*kong.Flag); ok {
			known[variableName(f.Name)] = true
		}
		return next(nil)
	})
	for _, at := range ctx.Path {
		for _, f := range at.Flags {
			own = append(own, variableName(f.Name))
		}
	}
	slices.Sort(environ)
	for _, v := range environ {
		name, text, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, variableName("")) || known[name] || text == "" {
			continue
		}
		if meant := slipOf(name, own); meant != "" {
			log.Warn("this variable is not read", "variable", name, "did_you_mean", meant)
		}
	}
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
