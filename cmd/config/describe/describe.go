// Package describe says what a configuration file may hold, for people and for editors:
// as a file with comments, as a JSON Schema and as a page. All three are made from the
// grammar of a command, so they cannot differ from what the reader of the file accepts.
package describe

import (
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"entropipe/cmd/config"
	"entropipe/cmd/config/value"
)

// group is the keys under one title of the help.
type group struct {
	title string
	keys  []*kong.Flag
}

// groupsOf returns the keys of a command as its help orders them: its own groups first,
// then those of the program.
func groupsOf(command *kong.Node) []group {
	keys := config.KeysOf(command)
	var groups []group
	for node := command; node != nil; node = node.Parent {
		for _, flag := range node.Flags {
			if keys[flag.Name] != flag {
				continue
			}
			title := "General"
			if flag.Group != nil {
				title = flag.Group.Title
			}
			i := 0
			for i < len(groups) && groups[i].title != title {
				i++
			}
			if i == len(groups) {
				groups = append(groups, group{title: title})
			}
			groups[i].keys = append(groups[i].keys, flag)
		}
	}
	return groups
}

// kind is the type of a value, or of an element of a list.
type kind int

const (
	kindText kind = iota
	kindBool
	kindWhole
	kindNumber
	kindSize
	kindDuration
	kindSecret
	kindOther // a type with a grammar of its own, which its help tells
)

func kindOf(flag *kong.Flag) kind {
	switch t := value.ElementType(flag); {
	case t == reflect.TypeFor[value.Size]():
		return kindSize
	case t == reflect.TypeFor[time.Duration]():
		return kindDuration
	case t == reflect.TypeFor[value.Secret]():
		return kindSecret
	case t.Kind() == reflect.Bool:
		return kindBool
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64:
		return kindWhole
	case t.Kind() == reflect.Float32, t.Kind() == reflect.Float64:
		return kindNumber
	case t.Kind() == reflect.String:
		return kindText
	}
	return kindOther
}

// typeText names the values of a key, with their unit.
func typeText(flag *kong.Flag) string {
	text := map[kind]string{
		kindText:     "string",
		kindBool:     "true or false",
		kindWhole:    "whole number",
		kindNumber:   "number",
		kindSize:     "size in bytes (KiB, MiB, GiB, KB, MB, GB)",
		kindDuration: "duration (500ms, 90s, 1m30s; a number is in seconds)",
		kindSecret:   "secret string",
		kindOther:    "number or string",
	}[kindOf(flag)]
	if flag.Enum != "" {
		text = strings.Join(flag.EnumSlice(), ", ")
	}
	if flag.IsSlice() {
		return "list of: " + text
	}
	return text
}

// defaultText returns the default of a key as the file would have it, "" without one.
func defaultText(flag *kong.Flag) string {
	switch {
	case flag.HasDefault:
		return flag.Default
	case kindOf(flag) == kindBool:
		return "false"
	}
	return ""
}
