package command

import (
	"context"
	"io"
	"log/slog"

	"github.com/alecthomas/kong"

	"entropipe/cmd/config/value"
)

// Env is what every command gets: where to write, and what ends it early.
type Env struct {
	Ctx    context.Context // ends with the first SIGTERM or Ctrl-C
	Stdout io.Writer       // results
	Stderr io.Writer       // progress
	Log    *slog.Logger    // to stderr
	Model  *kong.Kong      // the grammar, for the configuration loader
	Args   []string        // the command line
}

func NewLogger(w io.Writer, level, format string) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		panic("main: log level " + level) // the grammar allows no other
	}
	opts := &slog.HandlerOptions{Level: l, ReplaceAttr: value.DiscreetAttr}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
