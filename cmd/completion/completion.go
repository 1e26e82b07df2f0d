// Package completion is the command completion: it prints the completions of the command
// line for bash, zsh and fish. The scripts hold everything that they offer, so that a
// shell does not start the program for a key.
//
// A verb is the program, a command or a command of produce, with its options (flags) and
// the kind of its arguments. Choices are the values that a flag or an argument allows; a
// list takes several of them, separated by commas. Flags that allow no fixed set of
// values, but have common ones, name them with the tag values:"a,b".
package completion

import (
	"cmp"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"entropipe/cmd/command"
)

// Command is the command completion.
type Command struct {
	Shell string `arg:"" enum:"bash,zsh,fish"`
}

// Run prints the script of the shell.
func (c *Command) Run(e *command.Env) error {
	_, err := io.WriteString(e.Stdout, Script(e.Parser.Model.Node, c.Shell))
	return err
}

// Script returns the completions of a grammar for a shell: bash, zsh or fish. Another
// shell panics.
func Script(program *kong.Node, shell string) string {
	v := verbOf(program)
	switch shell {
	case "bash":
		return bash(v)
	case "zsh":
		return zsh(v)
	case "fish":
		return fish(v)
	}
	panic("completion: no shell is called " + shell)
}

// kind says what the value of a flag or an argument is.
type kind int

const (
	nothing kind = iota // a flag without a value; a command without arguments
	text
	file
	folder
	choice
)

// option is a flag.
type option struct {
	name    string // without --
	short   string // without -; "" for none
	help    string
	takes   kind
	choices []string
	list    bool
}

// verb is the program or a command.
type verb struct {
	name     string
	words    []string // the words that call it, without the program's
	help     string
	options  []option
	takes    kind // its arguments'
	choices  []string
	children []*verb
}

// id returns the words of the verb as a part of a function's name.
func (v *verb) id() string { return strings.ReplaceAll(strings.Join(v.words, "_"), "-", "_") }

// all returns the verb and those below it.
func (v *verb) all() []*verb {
	found := []*verb{v}
	for _, child := range v.children {
		found = append(found, child.all()...)
	}
	return found
}

// verbOf describes a command and all below it. A command that another one stands for when
// none is named, such as produce, has that one's options and arguments.
func verbOf(node *kong.Node) *verb {
	v := &verb{name: node.Name, words: strings.Fields(node.FullPath())[1:], help: node.Help}
	from := node
	if node.DefaultCmd != nil {
		from = node.DefaultCmd
	}
	for at := from; at != nil; at = at.Parent {
		for _, flag := range at.Flags {
			if !flag.Hidden {
				v.options = append(v.options, optionOf(flag))
			}
		}
	}
	slices.SortFunc(v.options, func(a, b option) int { return cmp.Compare(a.name, b.name) })
	for _, argument := range from.Positional {
		v.takes, v.choices = kindOf(argument)
	}
	for _, child := range node.Children {
		if !child.Hidden {
			v.children = append(v.children, verbOf(child))
		}
	}
	return v
}

func optionOf(flag *kong.Flag) option {
	o := option{name: flag.Name, help: flag.Help, list: flag.IsSlice()}
	if flag.Short != 0 {
		o.short = string(flag.Short)
	}
	if !flag.IsBool() {
		o.takes, o.choices = kindOf(flag.Value)
	}
	return o
}

// kindOf returns what a value is, with its choices. Arguments without a set of values are
// files, of flags those whose placeholder or type says so.
func kindOf(value *kong.Value) (kind, []string) {
	if value.Enum != "" {
		return choice, value.EnumSlice()
	}
	if common := value.Tag.Get("values"); common != "" {
		return choice, strings.Split(common, ",")
	}
	placeholder, of := value.Tag.PlaceHolder, value.Target.Type()
	if of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	switch {
	case of.Kind() != reflect.String:
		return text, nil
	case placeholder == "DIR", value.Tag.Type == "existingdir":
		return folder, nil
	case strings.Contains(placeholder, "FILE"), value.Tag.Type == "path", value.Tag.Type == "output", value.Flag == nil:
		return file, nil
	}
	return text, nil
}
