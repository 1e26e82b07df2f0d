package config

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"entropipe/cmd/config/value"
)

// Effective returns the configuration of command after parsing, as the text of a file
// that sets every flag, keys sorted. command is a pointer to a command's struct within
// the grammar of k; another pointer panics. Read again, the text gives the same values. It
// depends on the values only, so it can be hashed. A secret is a reference to its
// variable.
func Effective(k *kong.Kong, command any) string {
	node := NodeOf(k.Model.Node, command)
	if node == nil {
		panic("config: not a command of the grammar")
	}
	flags := KeysOf(node)
	var b strings.Builder
	for _, name := range sortedKeys(flags) {
		fmt.Fprintf(&b, "%s: %s\n", name, ValueText(flags[name]))
	}
	return b.String()
}

// Line is one key of a configuration in effect. Source is "default", "flag", the name of a
// variable, or FILE:LINE; where that is unknown "set".
type Line struct{ Key, Value, Source string }

// Lines returns the lines of Effective with their sources, which from knows; nil: it is
// unknown what was set where.
func Lines(k *kong.Kong, command any, from *Settings) []Line {
	flags := KeysOf(NodeOf(k.Model.Node, command))
	lines := make([]Line, 0, len(flags))
	for _, name := range sortedKeys(flags) {
		f := flags[name]
		l := Line{name, ValueText(f), from.source(name)}
		if l.Source != "set" {
			lines = append(lines, l)
			continue
		}
		usual := cmp.Or(f.Default, fmt.Sprint(reflect.Zero(f.Target.Type()).Interface()))
		if f.Target.Kind() == reflect.Slice {
			usual = "[" + strings.Join(strings.FieldsFunc(f.Default, func(r rune) bool { return r == ',' }), ", ") + "]"
		}
		if l.Value == usual || strings.Trim(l.Value, `"`) == usual {
			l.Source = "default"
		}
		lines = append(lines, l)
	}
	return lines
}

// ValueText returns the value of a flag as YAML, with a variable in place of a secret.
func ValueText(flag *kong.Flag) string {
	if s, ok := flag.Target.Interface().(value.Secret); ok && s != "" {
		return `"${` + variableName(flag.Name) + `}"`
	}
	return yamlValue(flag.Target)
}

// Differs returns a function that reports whether a flag of command has another value
// than its default. The flag's type must be a number, a string or a bool.
func Differs(k *kong.Kong, command any) func(flag string) bool {
	flags := KeysOf(NodeOf(k.Model.Node, command))
	return func(flag string) bool {
		f := flags[flag]
		return fmt.Sprint(f.Target.Interface()) != cmp.Or(f.Default,
			fmt.Sprint(reflect.Zero(f.Target.Type()).Interface()))
	}
}

// NodeOf returns the node at or below n whose struct command points to; nil if there is
// none.
func NodeOf(n *kong.Node, command any) *kong.Node {
	if n.Target.CanAddr() && n.Target.Addr().Interface() == command {
		return n
	}
	for _, child := range n.Children {
		if found := NodeOf(child, command); found != nil {
			return found
		}
	}
	return nil
}

func yamlValue(v reflect.Value) string {
	if v.Kind() == reflect.Slice {
		elements := make([]string, v.Len())
		for i := range elements {
			elements[i] = yamlValue(v.Index(i))
		}
		return "[" + strings.Join(elements, ", ") + "]"
	}
	if t, ok := v.Interface().(encoding.TextMarshaler); ok {
		if text, err := t.MarshalText(); err == nil {
			return yamlString(string(text))
		}
	}
	switch v.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64, reflect.Float64:
		if _, named := v.Interface().(fmt.Stringer); !named {
			return fmt.Sprint(v.Interface())
		}
	}
	text := fmt.Sprint(v.Interface())
	if v.CanInt() && value.Digits(text) {
		return text // a Size without a unit
	}
	return yamlString(text)
}

// plainString matches text that every YAML reader takes as a string without quotes,
// notPlain aside.
var plainString = regexp.MustCompile(`^[A-Za-z./][A-Za-z0-9_./-]*$|^[0-9]+[A-Za-z][A-Za-z0-9.]*$`)

// notPlain matches text that is no string without quotes, in YAML 1.1 or 1.2: constants,
// and numbers with exponents or in other bases.
var notPlain = regexp.MustCompile(`^(?i:true|false|yes|no|on|off|y|n|null|[.]+[0-9einfa+-]*|[0-9]+e[0-9.]+|0[xob].*)$`)

// yamlString returns s, in quotes where YAML needs them. JSON's quotes are YAML too.
func yamlString(s string) string {
	s = strings.ReplaceAll(s, "${", "$${")
	if plainString.MatchString(s) && !notPlain.MatchString(s) {
		return s
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("config: a string without JSON form: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// sortedKeys returns the keys of m in order.
func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
