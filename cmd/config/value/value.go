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

// Size is a number of bytes, never negative. Its text is a plain number or one
// with a unit: KiB, MiB, GiB, TiB (powers of 1024), KB, MB, GB, TB (of 1000),
// B; 1.5GiB too, where it is a whole number of bytes.
type Size int64

const expectedSize = `a size such as 256MiB, 900KB or 1048576`

// Error is a text that its type does not take.
type Error struct{ what, expected string }

// NewError returns an error about a text: what is wrong with it, and what is expected
// instead.
func NewError(what, expected string) *Error { return &Error{what: what, expected: expected} }

func (e *Error) Error() string { return e.what + "; expected " + e.expected }

var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1},
}

// UnmarshalText reads a size. Units are accepted in any case, and blanks
// before them.
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

// String returns s in the largest binary unit that holds it exactly.
func (s Size) String() string {
	for _, u := range sizeUnits[:4] {
		if s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

func Digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func DecodeSize(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("size", &text); err != nil {
		return err
	}
	return target.Addr().Interface().(*Size).UnmarshalText([]byte(text))
}

const expectedDuration = `a duration such as 90s, 1m30s or 0`

// parseDuration reads Go's form, or a plain number of seconds: what a config
// file's number means. Negative durations are refused: none of ours has a use
// for them.
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

// Interpolate replaces ${NAME} and ${NAME:default} in s; $${ stands for ${.
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
			return "", &mistake.Problem{What: "${ without }", Expected: "${VARIABLE} or ${VARIABLE:default}, or $${ for the characters"}
		case !variableForm.MatchString(name):
			return "", &mistake.Problem{What: fmt.Sprintf("%q is no name of a variable", name), Expected: "${VARIABLE} or ${VARIABLE:default}, or $${ for the characters"}
		case !set && !hasDefault:
			return "", &mistake.Problem{What: "variable " + name + " is not set", Expected: "it to be set, or a default: ${" + name + ":…}"}
		case !set:
			value = fallback
		}
		out.WriteString(value)
		s = after
	}
}
