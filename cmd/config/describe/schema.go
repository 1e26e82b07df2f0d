package describe

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"entropipe/cmd/config"
)

// schema is a JSON Schema, or a part of one.
type schema map[string]any

// interpolated matches a string that takes a variable, whose value the schema does not
// know: ${NAME} or ${NAME:default}.
const interpolated = `\$\{[A-Za-z_][A-Za-z0-9_]*(:[^}]*)?\}`

// patterns are the strings that the reader takes, by the type of the value. They are of
// the subset of regular expressions that Go and ECMAScript share.
var patterns = map[kind]string{
	kindWhole:    `^[+-]?[0-9]+$`,
	kindNumber:   `^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?$`,
	kindSize:     `^[0-9]+([.][0-9]+)?( *([kKmMgGtT][iI]?)?[bB])?$`,
	kindDuration: `^([0-9]+([.][0-9]*)?([eE][+-]?[0-9]+)?|(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`,
}

// Schema returns the JSON Schema, draft 2020-12, of the configuration file of a command.
// It refuses unknown keys, wrong types and values that a key does not allow. It takes
// strings with a variable for every key, and knows nothing of ranges, or of keys that
// depend on each other: entropipe validate does.
func Schema(command *kong.Node) []byte {
	properties := schema{}
	for name, flag := range config.KeysOf(command) {
		properties[name] = property(flag)
	}
	text, err := json.MarshalIndent(schema{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"title":                "Configuration of " + command.FullPath(),
		"type":                 "object",
		"additionalProperties": false,
		"properties":           properties,
	}, "", "  ")
	if err != nil {
		panic("describe: a schema without JSON form: " + err.Error())
	}
	return append(text, '\n')
}

// property returns the schema of a key.
func property(flag *kong.Flag) schema {
	values := element(flag)
	if flag.IsSlice() {
		list := schema{"type": "array", "items": schema{"anyOf": values}}
		if flag.HasDefault {
			list["minItems"] = 1
		}
		values = []schema{list, commaSeparated(flag), withVariable()}
	}
	p := schema{"description": flag.Help, "anyOf": values}
	if v := defaultValue(flag); v != nil {
		p["default"] = v
	}
	return p
}

// element returns the alternatives for a value, or for an element of a list.
func element(flag *kong.Flag) []schema {
	if flag.Enum != "" {
		return []schema{{"type": "string", "enum": flag.EnumSlice()}, withVariable()}
	}
	k := kindOf(flag)
	text := schema{"type": "string", "pattern": patterns[k]}
	switch k {
	case kindBool:
		return []schema{{"type": "boolean"}, withVariable()}
	case kindWhole:
		return []schema{{"type": "integer"}, text, withVariable()}
	case kindNumber:
		return []schema{{"type": "number"}, text, withVariable()}
	case kindSize:
		return []schema{{"type": "integer", "minimum": 0}, text, withVariable()}
	case kindDuration:
		return []schema{{"type": "number", "minimum": 0}, text, withVariable()}
	case kindOther:
		if own, ok := flag.Target.Interface().(interface{ Pattern() string }); ok {
			text["pattern"] = own.Pattern()
			return []schema{{"type": "number"}, text, withVariable()}
		}
		return []schema{{"type": "number"}, {"type": "string"}}
	}
	if flag.IsSlice() {
		return []schema{{"type": "string", "minLength": 1}}
	}
	return []schema{{"type": "string"}}
}

func withVariable() schema { return schema{"type": "string", "pattern": interpolated} }

// commaSeparated returns the schema of a list that is written as one string.
func commaSeparated(flag *kong.Flag) schema {
	if flag.Enum == "" {
		return schema{"type": "string", "minLength": 1}
	}
	allowed := flag.EnumSlice()
	for i := range allowed {
		allowed[i] = regexp.QuoteMeta(allowed[i])
	}
	one := " *(" + strings.Join(allowed, "|") + ") *"
	return schema{"type": "string", "pattern": "^" + one + "(," + one + ")*$"}
}

// defaultValue returns the default of a key as JSON would have it, nil without one.
func defaultValue(flag *kong.Flag) any {
	text := defaultText(flag)
	if text == "" {
		return nil
	}
	if flag.IsSlice() {
		return strings.Split(text, ",")
	}
	switch kindOf(flag) {
	case kindBool:
		return text == "true"
	case kindWhole, kindNumber:
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			return json.Number(text)
		}
	}
	return text
}
