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

// Configuration: one grammar, three sources. Every flag of a command is also
// a key of its configuration file and a variable ENTROPIPE_<FLAG>; a flag
// beats the variable, the variable the file, the file the default. The grammar
// is the command's struct and nothing else: names, types, allowed values and
// defaults of keys and variables are those of the flags.
//
// Values are checked wherever they come from, also where another source
// overrides them, and every problem is reported at once. config_file.go reads
// the file.

// notKeys are flags that ask for something instead of setting something.
var notKeys = []string{"help", "help-all", "print-config", "connect", "json"}

// NewParser returns the parser of grammar, a pointer to a struct of commands.
// A positional argument named config is its command's configuration file, or,
// with the tag keys:"run", a file of the command run. The parser is for one
// goroutine.
func NewParser(grammar any, options ...kong.Option) (*kong.Kong, error) {
	return NewParserOf(grammar, &Settings{Lookup: os.LookupEnv}, options...)
}

// NewParserOf is NewParser with settings that tell afterwards where values stand.
func NewParserOf(grammar any, from *Settings, options ...kong.Option) (*kong.Kong, error) {
	k, err := kong.New(grammar, append([]kong.Option{
		kong.Name("entropipe"),
		kong.Description("Point clouds and tokens from Kafka to Parquet: exact hulls, maxima and Delaunay " +
			"triangulations, results of transformers, each record exactly once."),
		kong.ConfigureHelp(helpOptions),
		kong.Help(printHelp),
		kong.ValueFormatter(helpText),
		kong.Embed(&allFlags{}),
		variablesOf(reflect.TypeOf(grammar)),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(value.DecodeDuration)),
		kong.TypeMapper(reflect.TypeFor[value.Size](), kong.MapperFunc(value.DecodeSize)),
		kong.Resolvers(from),
	}, options...)...)
	if err != nil {
		return nil, err
	}
	return k, describe(k.Model.Node, reflect.TypeOf(grammar))
}

// Parse reads the command line and whatever configuration belongs to its
// command. The error is a *ConfigError when a variable or the file is wrong,
// and a *kong.ParseError when the command line is.
func Parse(k *kong.Kong, args []string) (*kong.Context, error) {
	ctx, err := k.Parse(args)
	var config *mistake.Config
	if errors.As(err, &config) {
		return nil, config // without the flag that kong was resolving
	}
	return ctx, err
}

// Settings supplies the flags that the command line leaves out.
type Settings struct {
	Lookup  func(string) (string, bool) // environment
	Grammar func() any                  // an unused grammar, a pointer to a struct of commands, for more

	given bool // values and places are there: nothing is read

	ctx      *kong.Context    // the one that the rest belongs to
	values   map[string]any   // by flag: string or []any of strings; those without a problem
	places   map[string]place // by flag, and of elements by flag[i]
	resolved map[string]bool  // flags that were not on the command line
	err      error
}

// Validate has nothing left to do: Resolve has checked every value.
func (s *Settings) Validate(*kong.Application) error { return nil }

// Resolve returns the value of flag from variable or file, nil without one.
// The first call for a command line reads all of them.
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

// load reads file and variables. The error is a *ConfigError.
func (s *Settings) load(ctx *kong.Context) error {
	file, command, flags := "", ctx.Selected(), map[string]*kong.Flag{}
	for _, at := range ctx.Path {
		if at.Positional != nil && at.Positional.Name == "config" {
			file = ctx.Value(at).String()
			if other := at.Positional.Tag.Get("keys"); other != "" {
				command = commandNamed(ctx.Model.Node, other)
			}
		}
		for _, f := range at.Flags {
			flags[f.Name] = f
		}
	}
	s.values, s.places = map[string]any{}, map[string]place{}
	var problems []mistake.Problem
	if file != "" {
		r := fileReader{file: ShownPath(file), command: command.FullPath(), flags: KeysOf(command), lookup: s.Lookup, places: s.places}
		var ofFile map[string]any
		ofFile, problems = r.load(file)
		maps.Copy(s.values, ofFile)
	}
	if problems = append(problems, s.variables(flags)...); len(problems) > 0 {
		return &mistake.Config{Problems: problems}
	}
	return nil
}

// variables takes what the environment sets. An empty variable is not set.
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
		maps.DeleteFunc(s.places, func(at string, _ place) bool { return strings.HasPrefix(at, name+"[") }) // the file's
		s.values[name], s.places[name] = v, place{variable: variable}
	}
	return problems
}

// variableName returns the variable of a flag: ENTROPIPE_ROLL_AGE of roll-age.
func variableName(flag string) string {
	return "ENTROPIPE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

func commandNamed(app *kong.Node, name string) *kong.Node {
	for _, n := range app.Children {
		if n.Name == name {
			return n
		}
	}
	panic("config: no command is called " + name)
}

// KeysOf returns the flags of a command, and of those it belongs to, that are
// keys of its file.
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

// ShownPath returns path as a user in the working directory would write it.
func ShownPath(path string) string {
	if wd, err := os.Getwd(); err == nil && filepath.IsAbs(path) {
		if rel, err := filepath.Rel(wd, path); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return rel
		}
	}
	return path
}
