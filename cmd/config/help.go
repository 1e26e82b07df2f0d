package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// HelpLines is implemented by a struct of a grammar, on its value: it returns one line
// of help for each command, flag and argument of the struct, by its name. The lines
// stand in a file help.go beside the struct, because a struct tag cannot be wrapped.
type HelpLines interface {
	HelpLines() map[string]string
}

// Variables is implemented by a struct of a grammar, on its value: it returns texts that
// tags of the struct may use as ${name}, for lists that the code already has.
type Variables interface {
	Variables() map[string]string
}

// Uncommon is implemented by a struct of a grammar, on its value: it returns the flags
// below it that --help leaves out besides those with the tag more.
type Uncommon interface {
	Uncommon() []string
}

// moreTag marks a flag that --help leaves out and --help-all shows: more:"yes".
const moreTag = "more"

// helpOptions are the options of --help and of --help-all.
var helpOptions = kong.HelpOptions{Compact: true, NoExpandSubcommands: true, ValueFormatter: HelpText}

// allFlags adds --help-all to every command.
type allFlags struct {
	HelpAll helpAll `help:"Show help with every flag."`
}

// helpAll prints the help with all flags and exits, as kong's own flag --help does.
type helpAll bool

// IgnoreDefault keeps kong from setting the flag.
func (helpAll) IgnoreDefault() {}

// BeforeReset prints the help before any value is checked.
func (helpAll) BeforeReset(ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(helpOptions, ctx); err != nil {
		return err
	}
	ctx.Exit(0)
	return nil
}

// printHelp prints the help without the flags that have the tag more, and says how many
// it leaves out.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	var more []*kong.Flag
	uncommon := uncommonOf(ctx)
	for _, flag := range ctx.Flags() {
		if !flag.Hidden && (flag.Tag.Get(moreTag) == "yes" || slices.Contains(uncommon, flag.Name)) {
			more = append(more, flag)
			flag.Hidden = true
		}
	}
	err := kong.DefaultHelpPrinter(options, ctx)
	for _, flag := range more {
		flag.Hidden = false
	}
	if err == nil && len(more) > 0 {
		flags := "flags"
		if len(more) == 1 {
			flags = "flag"
		}
		_, err = fmt.Fprintf(ctx.Stdout, "\n%d more %s: %s --help-all\n", len(more), flags, commandLine(ctx))
	}
	return err
}

// uncommonOf returns the flags of the selected command that its structs call uncommon.
func uncommonOf(ctx *kong.Context) (names []string) {
	if ctx.Selected() == nil {
		return nil
	}
	for _, t := range structsOf(ctx.Selected().Target.Type(), false) {
		if u, ok := reflect.New(t).Elem().Interface().(Uncommon); ok {
			names = append(names, u.Uncommon()...)
		}
	}
	return names
}

// commandLine returns the words that call the selected command, or the program.
func commandLine(ctx *kong.Context) string {
	if selected := ctx.Selected(); selected != nil {
		return selected.FullPath()
	}
	return ctx.Model.Name
}

// HelpText returns the line of a flag or argument with its allowed values, or with its
// default where the left column shows a placeholder instead.
func HelpText(v *kong.Value) string {
	note := ""
	switch {
	case v.Enum != "":
		note = strings.Join(v.EnumSlice(), ", ")
	case v.Flag != nil && v.Flag.PlaceHolder != "" && v.HasDefault && v.Default != "0":
		note = "default " + v.Default
	}
	if text, ok := strings.CutSuffix(v.Help, "."); ok && note != "" {
		return fmt.Sprintf("%s (%s).", text, note)
	}
	return v.Help
}

// describe gives each command, flag and argument below node its line. The error names
// the lines that belong to none of them.
func describe(node *kong.Node, grammar reflect.Type) error {
	lines := map[string]string{}
	for _, t := range structsOf(grammar, false) {
		if h, ok := reflect.New(t).Elem().Interface().(HelpLines); ok {
			for name, line := range h.HelpLines() {
				lines[name] = line
			}
		}
	}
	take := func(name string, help *string) {
		if line, ok := lines[name]; ok {
			*help = line
			delete(lines, name)
		}
	}
	for _, flag := range node.Flags {
		take(flag.Name, &flag.Help)
	}
	for _, argument := range node.Positional {
		take(argument.Name, &argument.Help)
	}
	for _, command := range node.Children {
		take(command.Name, &command.Help)
		if err := describe(command, command.Target.Type()); err != nil {
			return err
		}
	}
	for _, command := range commandsOf(grammar) { // commands without nodes
		delete(lines, command.name)
	}
	if len(lines) > 0 {
		return fmt.Errorf("%s: help lines of no flag: %s", node.FullPath(), strings.Join(sortedKeys(lines), ", "))
	}
	return nil
}

// fill puts the variables into tags of the model. Kong itself would look for each variable in
// each text of each flag, and in each variable.
func fill(model *kong.Application, variables map[string]string) error {
	var pairs []string
	for name, text := range variables {
		pairs = append(pairs, "${"+name+"}", text)
	}
	with := strings.NewReplacer(pairs...)
	return kong.Visit(model, func(n kong.Visitable, next kong.Next) error {
		if f, ok := n.(*kong.Flag); ok {
			for _, text := range []*string{&f.Default, &f.Enum, &f.PlaceHolder} {
				*text = with.Replace(*text)
			}
		}
		return next(nil)
	})
}

// commandOf is a field of a grammar that is a command.
type commandOf struct {
	field, name string
	others      string // the commands whose grammar it needs, or yes for all
	fallback    bool   // it is meant where no word names a command
	grammar     reflect.Type
}

// commandsOf returns the commands of a grammar, or of a command, and of what is embedded there.
func commandsOf(grammar reflect.Type) (commands []commandOf) {
	for _, t := range structsOf(grammar, false) {
		for f := range t.Fields() {
			if _, ok := f.Tag.Lookup("cmd"); ok {
				commands = append(commands, commandOf{field: f.Name, others: f.Tag.Get("others"), grammar: f.Type,
					name: cmp.Or(f.Tag.Get("name"), strings.ToLower(f.Name)), fallback: f.Tag.Get("default") != ""})
			}
		}
	}
	return commands
}

// othersThan returns a pattern of the fields of grammar that are other commands than those
// that args name and need; "" where that may be all.
func othersThan(args []string, grammar reflect.Type) (pattern string) {
	if len(args) == 0 {
		return ""
	}
	commands := commandsOf(grammar)
	first := slices.IndexFunc(commands, func(c commandOf) bool { return c.name == args[0] })
	if first < 0 || commands[first].others == "yes" {
		return ""
	}
	needed := strings.Split(commands[first].others, ",")
	var fields []string
	leaveOut := func(t reflect.Type, c commandOf) { fields = append(fields, t.Name()+`\.`+c.field) }
	for i, c := range commands {
		word := ""
		switch {
		case i != first && !slices.Contains(needed, c.name):
			leaveOut(grammar, c)
			continue
		case i == first && (len(args) == 1 || strings.HasPrefix(args[1], "-")):
			continue // its help names each source
		case i == first:
			word = args[1]
		}
		sources := commandsOf(c.grammar)
		meant := meantBy(word, sources)
		for _, source := range sources {
			if meant != "" && source.name != meant {
				leaveOut(c.grammar, source)
			}
		}
	}
	return "^(" + strings.Join(fields, "|") + ")$"
}

// meantBy returns the name of the command that a word means; "" where none is the default.
func meantBy(word string, commands []commandOf) (name string) {
	for _, c := range commands {
		if c.name == word {
			return word
		}
		if c.fallback {
			name = c.name
		}
	}
	return name
}

// variablesOf returns the variables of a grammar and of all its commands.
func variablesOf(grammar reflect.Type) kong.Vars {
	vars := kong.Vars{}
	for _, t := range structsOf(grammar, true) {
		if v, ok := reflect.New(t).Elem().Interface().(Variables); ok {
			vars = vars.CloneWith(v.Variables())
		}
	}
	return vars
}

// structsOf returns t, the structs embedded in it and, if wanted, its commands'.
func structsOf(t reflect.Type, commands bool) []reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	structs := []reflect.Type{t}
	for i := range t.NumField() {
		f := t.Field(i)
		_, embedded := f.Tag.Lookup("embed")
		_, command := f.Tag.Lookup("cmd")
		if f.Type.Kind() == reflect.Struct && (f.Anonymous || embedded || command && commands) {
			structs = append(structs, structsOf(f.Type, commands)...)
		}
	}
	return structs
}
