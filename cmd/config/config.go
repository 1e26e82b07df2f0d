// Package config reads the configuration of a command from three sources: the command
// line, variables ENTROPIPE_<FLAG>, and a YAML file. A flag on the command line beats the
// variable, the variable beats the file, the file beats the default. The grammar (the
// command's struct) is the only declaration: names, types, allowed values and defaults of
// keys and variables are those of its flags. The package knows no command.
//
// A key is a flag as it stands in a file. A place is the file, line and column, or the
// variable, where a value was set. Values are checked in every source, also where another
// source overrides them, and all problems are reported together. file.go reads the file,
// blame.go adds places to mistakes, print.go writes a configuration.
package config

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"entropipe/cmd/config/value"
	"entropipe/cmd/mistake"
)

// notKeys are the flags that ask for an action and set no value.
var notKeys = []string{"help", "help-all", "print-config", "commented", "connect", "json", "schema", configFlag}

// ofFlag is the flag that names the command whose file is read, in place of the tag keys.
const ofFlag = "of"

// configFlag is the flag that names the file of a command whose arguments are other paths.
const configFlag = "config"

// NewParser returns the parser of grammar, a pointer to a struct of commands. Afterwards
// from knows where values were set; nil takes variables from the environment. A
// positional argument or flag named config is its command's configuration file, or, with the
// tag keys:"run", a file of the command run. The parser is not safe for concurrent use.
func NewParser(grammar any, from *Settings, options ...kong.Option) (*kong.Kong, error) {
	return NewParserOf(nil, grammar, from, options...)
}

// NewParserOf returns the parser that NewParser returns, or one that knows no other command
// than the first word of args, and of its sources the one that the second word names or
// leaves out: most of the time of a start is the building of commands. It knows all where the
// first word is no command, or one with the tag others:"yes", and besides that command those
// of a tag like others:"run,backfill", with their default source.
func NewParserOf(args []string, grammar any, from *Settings, options ...kong.Option) (*kong.Kong, error) {
	if from == nil {
		from = &Settings{Lookup: os.LookupEnv}
	}
	if others := othersThan(args, reflect.TypeOf(grammar).Elem()); others != "" {
		options = append(options, kong.IgnoreFields(others))
	}
	k, err := kong.New(grammar, append([]kong.Option{
		kong.Name("entropipe"),
		kong.Description("Point clouds and tokens from Kafka to Parquet: exact hulls, maxima and Delaunay " +
			"triangulations, results of transformers, each record exactly once."),
		kong.ConfigureHelp(helpOptions),
		kong.Help(printHelp),
		kong.ValueFormatter(HelpText),
		kong.Embed(&allFlags{}),
		kong.PostBuild(func(k *kong.Kong) error { return fill(k.Model, variablesOf(reflect.TypeOf(grammar))) }),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(value.DecodeDuration)),
		kong.TypeMapper(reflect.TypeFor[value.Size](), kong.MapperFunc(value.DecodeSize)),
		kong.NamedMapper("output", kong.MapperFunc(value.DecodeOutput)),
		kong.Resolvers(from),
	}, options...)...)
	if err != nil {
		return nil, err
	}
	return k, describe(k.Model.Node, reflect.TypeOf(grammar))
}

// Parse reads the command line, and the variables and the file that belong to its
// command. The error is a *mistake.Config if a variable or the file is wrong, and a
// *kong.ParseError if the command line is.
func Parse(k *kong.Kong, args []string) (*kong.Context, error) {
	ctx, err := k.Parse(args)
	var config *mistake.Config
	if errors.As(err, &config) {
		return nil, config // without kong's prefix, the flag that it was resolving
	}
	return ctx, explained(err)
}

// Lacking is a command that says why it has no flag of that name, which other commands have.
type Lacking interface{ Lacking() map[string]string }

// explained returns err with the reason for which the command lacks a flag, if it has one.
func explained(err error) error {
	var parsing *kong.ParseError
	if !errors.As(err, &parsing) || parsing.Context == nil {
		return err
	}
	name, unknown := strings.CutPrefix(parsing.Error(), "unknown flag --")
	if !unknown {
		return err
	}
	name = name[:len(name)-len(strings.TrimLeft(name, "abcdefghijklmnopqrstuvwxyz-"))]
	for _, at := range parsing.Context.Path {
		if at.Command == nil || !at.Command.Target.CanAddr() {
			continue
		}
		if c, ok := at.Command.Target.Addr().Interface().(Lacking); ok && c.Lacking()[name] != "" {
			return mistake.About("--"+name+": "+c.Lacking()[name], name)
		}
	}
	return err
}

// Settings supplies the values of flags that the command line leaves out. It is a
// kong.Resolver.
type Settings struct {
	Lookup  func(string) (string, bool) // reads a variable of the environment
	Grammar func() any                  // makes an unused grammar, a pointer to a struct of commands; More needs it

	given bool // values and places are set already: Resolve reads nothing

	ctx      *kong.Context    // the parse that the fields below belong to
	values   map[string]any   // valid values by flag: a string, or []any of strings
	places   map[string]place // where values were set, by flag, and by flag[i] for elements
	resolved map[string]bool  // flags that were not on the command line
	err      error
}

// Validate does nothing: Resolve checks every value.
func (s *Settings) Validate(*kong.Application) error { return nil }

// Resolve returns the value of flag from its variable or the file; nil if neither sets
// it. The first call for a command line reads variables and file.
func (s *Settings) Resolve(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if s.ctx != ctx {
		s.ctx, s.resolved = ctx, map[string]bool{}
		if !s.given {
			s.err = s.load(ctx)
		}
	}
	if s.err != nil {
		return nil, s.err
	}
	s.resolved[flag.Name] = true
	return s.values[flag.Name], nil
}

// load reads file and variables. The error is a *mistake.Config.
func (s *Settings) load(ctx *kong.Context) error {
	of := ""
	file, command, flags := "", ctx.Selected(), map[string]*kong.Flag{}
	for _, at := range ctx.Path {
		if at.Positional != nil && at.Positional.Name == "config" {
			file = ctx.Value(at).String()
			if other := at.Positional.Tag.Get("keys"); other != "" {
				command = CommandNamed(ctx.Model.Node, other)
			}
		}
		if at.Flag != nil && at.Flag.Name == ofFlag {
			of = ctx.Value(at).String()
		}
		if at.Flag != nil && at.Flag.Name == configFlag {
			file = ctx.Value(at).String()
		}
		for _, f := range at.Flags {
			flags[f.Name] = f
		}
	}
	if of != "" && file != "" {
		command = FileOf(ctx.Model.Node, of)
	}
	if flags[configFlag] != nil && file == "" {
		file, _ = s.Lookup(variableName(configFlag))
	}
	delete(flags, configFlag)
	s.values, s.places = map[string]any{}, map[string]place{}
	var problems []mistake.Problem
	if file != "" {
		r := fileReader{file: ShownPath(file), command: command.FullPath(), flags: KeysOf(command),
			lookup: s.Lookup, places: s.places}
		var ofFile map[string]any
		ofFile, problems = r.load(file)
		maps.Copy(s.values, ofFile)
	}
	if problems = append(problems, s.variables(flags)...); len(problems) > 0 {
		return &mistake.Config{Problems: problems}
	}
	return nil
}

// variables adds the values of variables. An empty variable counts as unset.
func (s *Settings) variables(flags map[string]*kong.Flag) (problems []mistake.Problem) {
	for _, name := range sortedKeys(flags) {
		variable := variableName(name)
		text, ok := s.Lookup(variable)
		if !ok || text == "" || name == "help" || name == "help-all" {
			continue
		}
		v, p := value.CheckText(flags[name], text)
		if p != nil {
			p.Path = variable + p.Path
			problems = append(problems, *p)
			delete(s.values, name)
			continue
		}
		// places in the file
		maps.DeleteFunc(s.places, func(at string, _ place) bool { return strings.HasPrefix(at, name+"[") })
		s.values[name], s.places[name] = v, place{variable: variable}
	}
	return problems
}

// variableName returns the variable of a flag: ENTROPIPE_ROLL_AGE for roll-age.
func variableName(flag string) string {
	return "ENTROPIPE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// CommandNamed returns a command of the program; it panics if there is none.
func CommandNamed(app *kong.Node, name string) *kong.Node {
	for _, n := range app.Children {
		if n.Name == name {
			return n
		}
	}
	panic("config: no command is called " + name)
}

// FileOf returns the command whose flags are the keys of a file of the command name: that
// command, or its default where each source has flags of its own.
func FileOf(app *kong.Node, name string) *kong.Node {
	n := CommandNamed(app, name)
	if n.DefaultCmd != nil {
		return n.DefaultCmd
	}
	return n
}

// KeysOf returns the flags, by name, that are keys of a command's file: its own and those
// of the commands above it.
func KeysOf(command *kong.Node) map[string]*kong.Flag {
	flags := map[string]*kong.Flag{}
	for n := command; n != nil; n = n.Parent {
		for _, f := range n.Flags {
			if !slices.Contains(notKeys, f.Name) {
				flags[f.Name] = f
			}
		}
	}
	return flags
}

// ShownPath returns path relative to the working directory if it lies in it, else path.
func ShownPath(path string) string {
	if wd, err := os.Getwd(); err == nil && filepath.IsAbs(path) {
		if rel, err := filepath.Rel(wd, path); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return rel
		}
	}
	return path
}
