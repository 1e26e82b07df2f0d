// Package value reads and checks the text of a single flag, variable or key: sizes,
// durations, secrets, enumerations, lists, and references to variables in it. Where a
// text comes from, and which flags there are, is not its matter: that is package config.
//
// A secret is a text that no output shows. A problem is a text that its flag does not
// take, with what is expected and, where a candidate is near, what was probably meant.
package value

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"entropipe/cmd/mistake"
)

// Size is a number of bytes, never negative. Its text is a plain number or a number with
// a unit: KiB, MiB, GiB, TiB (powers of 1024), KB, MB, GB, TB (powers of 1000), B. A
// fraction such as 1.5GiB is allowed if the result is a whole number of bytes.
type Size int64

const expectedSize = `a size such as 256MiB, 900KB or 1048576`

// Error says that a type does not take a text.
type Error struct{ what, expected string }

// NewError returns an Error: what is wrong with the text, and what is expected instead.
func NewError(what, expected string) *Error { return &Error{what: what, expected: expected} }

// Error returns both parts: WHAT; expected EXPECTED.
func (e *Error) Error() string { return e.what + "; expected " + e.expected }

var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1},
}

// UnmarshalText reads a size. Units may be in any case, with blanks before them. The error
// is an *Error.
func (s *Size) UnmarshalText(text []byte) error {
	number, unit := string(text), int64(1)
	for _, u := range sizeUnits {
		if n := len(number) - len(u.name); n >= 0 && strings.EqualFold(number[n:], u.name) {
			number, unit = strings.TrimRight(number[:n], " "), u.bytes
			break
		}
	}
	if strings.HasPrefix(number, "-") {
		return &Error{fmt.Sprintf("%q is negative", text), expectedSize}
	}
	// Longer numbers would only cost time; exponents and fractions like 1/3 are not sizes.
	whole, fraction, point := strings.Cut(number, ".")
	if !Digits(whole) || point && !Digits(fraction) || len(number) > 40 {
		return &Error{fmt.Sprintf("%q is not a size", text), expectedSize}
	}
	v, _ := new(big.Rat).SetString(number)
	v.Mul(v, new(big.Rat).SetInt64(unit))
	switch {
	case !v.IsInt():
		return &Error{fmt.Sprintf("%q is not a whole number of bytes", text), expectedSize}
	case !v.Num().IsInt64():
		return &Error{fmt.Sprintf("%q is too large", text), "at most 8388607TiB"}
	}
	*s = Size(v.Num().Int64())
	return nil
}

// String returns s in the largest binary unit of which s is a multiple.
func (s Size) String() string {
	for _, u := range sizeUnits[:4] {
		if s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// Digits reports whether s is one or more decimal digits.
func Digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// DecodeSize reads a flag's Size. It is a kong.MapperFunc.
func DecodeSize(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("size", &text); err != nil {
		return err
	}
	return target.Addr().Interface().(*Size).UnmarshalText([]byte(text))
}

// DecodeOutput reads the address of an output, or those of archives: a path, which becomes absolute, or a URL, which
// stays. It is a kong.MapperFunc.
func DecodeOutput(ctx *kong.DecodeContext, target reflect.Value) error {
	if target.Kind() == reflect.Slice { // arguments of a command
		for _, token := range ctx.Scan.PopUntil(func(t kong.Token) bool { return !t.IsValue() }) {
			target.Set(reflect.Append(target, reflect.ValueOf(address(token.String()))))
		}
		return nil
	}
	var text string
	if err := ctx.Scan.PopValueInto("output", &text); err != nil {
		return err
	}
	target.SetString(address(text))
	return nil
}

func address(text string) string {
	if text != "" && !strings.Contains(text, "://") {
		return kong.ExpandPath(text)
	}
	return text
}

const expectedDuration = `a duration such as 90s, 1m30s or 0`

// parseDuration reads a duration in Go's form, or a plain number of seconds, which is how
// a file writes one. Negative durations are refused: no flag has a use for them.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		seconds, notNumber := strconv.ParseFloat(text, 64)
		if notNumber != nil || math.IsNaN(seconds) || strings.ContainsAny(text, "xXpP_iI") {
			return 0, &Error{fmt.Sprintf("%q is not a duration", text), expectedDuration}
		}
		if seconds > 9.2e9 {
			return 0, &Error{fmt.Sprintf("%q is too long", text), "at most 292 years"}
		}
		d = time.Duration(math.Round(max(seconds, -1) * 1e9))
	}
	if d < 0 {
		return 0, &Error{fmt.Sprintf("%q is negative", text), expectedDuration}
	}
	return d, nil
}

// DecodeDuration reads a flag's duration, as parseDuration does. It is a kong.MapperFunc.
func DecodeDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := parseDuration(text)
	target.SetInt(int64(d))
	return err
}

var variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Interpolate replaces ${NAME} and ${NAME:default} in s by variables from lookup; $${
// stands for ${. A reference that cannot be followed is a Problem.
func Interpolate(s string, lookup func(string) (string, bool)) (string, *mistake.Problem) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(s, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		if strings.HasSuffix(before, "$") { // the first $ of $${ is written already
			out.WriteString("{")
			s = rest
			continue
		}
		reference, after, closed := strings.Cut(rest, "}")
		name, fallback, hasDefault := strings.Cut(reference, ":")
		value, set := lookup(name)
		switch {
		case !closed:
			return "", &mistake.Problem{What: "${ without }",
				Expected: "${VARIABLE} or ${VARIABLE:default}, or $${ for the characters"}
		case !variableForm.MatchString(name):
			return "", &mistake.Problem{What: fmt.Sprintf("%q is no name of a variable", name),
				Expected: "${VARIABLE} or ${VARIABLE:default}, or $${ for the characters"}
		case !set && !hasDefault:
			return "", &mistake.Problem{What: "variable " + name + " is not set",
				Expected: "it to be set, or a default: ${" + name + ":…}"}
		case !set:
			value = fallback
		}
		out.WriteString(value)
		s = after
	}
}
