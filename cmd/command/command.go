// Package command holds what the commands of the program share: their environment (Env),
// exit statuses, signals, progress displays, checks of flags, flags of secure brokers,
// opening of outputs and of models' folders, and the forms of numbers in texts. It holds
// no command and no configuration file; package config reads those.
//
// A check is a function of flags that returns all their mistakes, each a mistake.Usage.
// A screen is stderr with at most one bar, its last line. An output is a folder of tables
// with their commit records.
package command

import (
	"context"
	"io"
	"log/slog"

	"github.com/alecthomas/kong"

	"entropipe/cmd/config"
	"entropipe/cmd/config/value"
)

// Env is the environment of a command.
type Env struct {
	Ctx    context.Context // ends with the first SIGTERM or Ctrl-C
	Stdout io.Writer       // receives results
	Stderr io.Writer       // receives progress displays
	Log    *slog.Logger    // writes to Stderr
	Parser *kong.Kong      // has parsed the command line; package config prints from it

	Settings *config.Settings // where values were set; nil: unknown
}

// NewLogger returns a logger of a level (debug, info, warn, error) and a format (text,
// json) that hides passwords in URLs. An unknown level panics.
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
