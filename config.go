package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"entropipe/ingest"
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
var notKeys = []string{"help", "print-config", "connect", "json"}

// Problem is one thing that is wrong with the configuration.
type Problem struct {
	File      string // as shown to the user; empty for a variable
	Line, Col int    // from 1; 0: the whole file
	Path      string // key, with [i] for an element of a list, or name of the variable
	What      string
	Expected  string
	Hint      string // what was probably meant
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

// ConfigError is a configuration that cannot be used: exit status 78.
type ConfigError struct {
	Problems []Problem // at least one; the file's in the order of their positions
}

// Error returns one line a problem.
func (e *ConfigError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// newParser returns the parser of grammar, a pointer to a struct of commands.
// A positional argument named config is its command's configuration file, or,
// with the tag keys:"run", a file of the command run. The parser is for one
// goroutine.
func newParser(grammar any, options ...kong.Option) (*kong.Kong, error) {
	return newParserOf(grammar, &settings{lookup: os.LookupEnv}, options...)
}

// newParserOf is newParser with settings that tell afterwards where values stand.
func newParserOf(grammar any, from *settings, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(grammar, append([]kong.Option{
		kong.Name("entropipe"),
		kong.Description("Point clouds and tokens from Kafka to Parquet: exact hulls, maxima and Delaunay triangulations, what transformers make of texts, each record exactly once."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(decodeDuration)),
		kong.TypeMapper(reflect.TypeFor[Size](), kong.MapperFunc(decodeSize)),
		kong.Resolvers(from),
	}, options...)...)
}

// parse reads the command line and whatever configuration belongs to its
// command. The error is a *ConfigError when a variable or the file is wrong,
// and a *kong.ParseError when the command line is.
func parse(k *kong.Kong, args []string) (*kong.Context, error) {
	ctx, err := k.Parse(args)
	var config *ConfigError
	if errors.As(err, &config) {
		return nil, config // without the flag that kong was resolving
	}
	return ctx, err
}

// settings supplies the flags that the command line leaves out.
type settings struct {
	lookup func(string) (string, bool) // environment

	given bool // values and places are there: nothing is read

	ctx      *kong.Context    // the one that the rest belongs to
	values   map[string]any   // by flag: string or []any of strings; those without a problem
	places   map[string]place // by flag, and of elements by flag[i]
	resolved map[string]bool  // flags that were not on the command line
	err      error
}

// Validate has nothing left to do: Resolve has checked every value.
func (s *settings) Validate(*kong.Application) error { return nil }

// Resolve returns the value of flag from variable or file, nil without one.
// The first call for a command line reads all of them.
func (s *settings) Resolve(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
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
func (s *settings) load(ctx *kong.Context) error {
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
	var problems []Problem
	if file != "" {
		r := fileReader{file: shownPath(file), command: command.FullPath(), flags: keysOf(command), lookup: s.lookup, places: s.places}
		var ofFile map[string]any
		ofFile, problems = r.load(file)
		maps.Copy(s.values, ofFile)
	}
	if problems = append(problems, s.variables(flags)...); len(problems) > 0 {
		return &ConfigError{Problems: problems}
	}
	return nil
}

// variables takes what the environment sets. An empty variable is not set.
func (s *settings) variables(flags map[string]*kong.Flag) (problems []Problem) {
	for _, name := range sortedKeys(flags) {
		variable := variableName(name)
		text, ok := s.lookup(variable)
		if !ok || text == "" || name == "help" {
			continue
		}
		v, p := checkText(flags[name], text)
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

// keysOf returns the flags of a command, and of those it belongs to, that are
// keys of its file.
func keysOf(command *kong.Node) map[string]*kong.Flag {
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

// shownPath returns path as a user in the working directory would write it.
func shownPath(path string) string {
	if wd, err := os.Getwd(); err == nil && filepath.IsAbs(path) {
		if rel, err := filepath.Rel(wd, path); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return rel
		}
	}
	return path
}

// checkText checks the text of a variable, or of a value of the file, against
// flag. It returns what the parser takes: the text, or a list. The Path of the
// problem is empty or the [i] of an element.
func checkText(flag *kong.Flag, text string) (any, *Problem) {
	if elementType(flag) == reflect.TypeFor[Secret]() { // an editor, or who mounts a secret, leaves a line end
		text = ingest.TrimLineEnd(text)
	}
	if !flag.IsSlice() {
		return text, checkScalar(flag, text)
	}
	var list []any
	for _, element := range kong.SplitEscaped(text, flag.Tag.Sep) {
		list = append(list, strings.TrimSpace(element))
	}
	for i := range list {
		if p := checkElement(flag, list, i); p != nil {
			return nil, p
		}
	}
	if len(list) == 0 && flag.HasDefault {
		return nil, &Problem{What: "an empty list", Expected: expected(flag)}
	}
	if len(list) == 0 {
		return nil, nil
	}
	return list, nil
}

func checkElement(flag *kong.Flag, list []any, i int) *Problem {
	text := list[i].(string)
	p := checkScalar(flag, text)
	if text == "" {
		p = &Problem{What: "an empty element", Expected: expectedElement(flag)}
	}
	if p != nil {
		p.Path = fmt.Sprintf("[%d]", i)
	}
	return p
}

// checkScalar says what is wrong with text as the value, or as an element, of
// flag; nil if nothing is.
func checkScalar(flag *kong.Flag, text string) *Problem {
	if flag.Enum != "" {
		if allowed := flag.EnumSlice(); !slices.Contains(allowed, text) {
			return &Problem{What: fmt.Sprintf("%q is not allowed", text), Expected: expectedElement(flag), Hint: closest(text, allowed)}
		}
	}
	target := reflect.New(flag.Target.Type()).Elem()
	var token any = text
	if flag.IsSlice() {
		token = []any{text}
	}
	err := flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: kong.Scan().PushTyped(token, kong.FlagValueToken)}, target)
	if err == nil {
		return nil
	}
	p := &Problem{What: fmt.Sprintf("%q does not fit", text), Expected: expectedElement(flag)}
	if p.Expected == "" {
		p.What = err.Error() // a type that knows its own grammar
	}
	var own *valueError
	if errors.As(err, &own) {
		p.What = own.what
	}
	return p
}

// expected says what a flag takes, as the object of "expected".
func expected(flag *kong.Flag) string {
	if flag.IsSlice() {
		return "a list, or a comma-separated string, of " + plural(flag)
	}
	return expectedElement(flag)
}

func expectedElement(flag *kong.Flag) string {
	if flag.Enum != "" {
		return "one of " + strings.Join(flag.EnumSlice(), ", ")
	}
	switch t := elementType(flag); {
	case t == reflect.TypeFor[Size]():
		return expectedSize
	case t == reflect.TypeFor[time.Duration]():
		return expectedDuration
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		return "a whole number"
	case t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64:
		return "a whole number, 0 or more"
	case t.Kind() == reflect.Float64, t.Kind() == reflect.Float32:
		return "a number"
	case t.Kind() == reflect.String:
		return "a string"
	}
	return ""
}

func plural(flag *kong.Flag) string {
	if flag.Enum != "" {
		return strings.Join(flag.EnumSlice(), ", ")
	}
	return strings.TrimPrefix(expectedElement(flag), "a ") + "s"
}

func elementType(flag *kong.Flag) reflect.Type {
	if t := flag.Target.Type(); flag.IsSlice() {
		return t.Elem()
	}
	return flag.Target.Type()
}
