package value

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"entropipe/cmd/mistake"
	"entropipe/ingest"
)

// CheckText checks the text of a variable, or of a value of the file, against
// flag. It returns what the parser takes: the text, or a list. The Path of the
// problem is empty or the [i] of an element.
func CheckText(flag *kong.Flag, text string) (any, *mistake.Problem) {
	if ElementType(flag) == reflect.TypeFor[Secret]() { // an editor, or who mounts a secret, leaves a line end
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
		if p := CheckElement(flag, list, i); p != nil {
			return nil, p
		}
	}
	if len(list) == 0 && flag.HasDefault {
		return nil, &mistake.Problem{What: "an empty list", Expected: Expected(flag)}
	}
	if len(list) == 0 {
		return nil, nil
	}
	return list, nil
}

func CheckElement(flag *kong.Flag, list []any, i int) *mistake.Problem {
	text := list[i].(string)
	p := checkScalar(flag, text)
	if text == "" {
		p = &mistake.Problem{What: "an empty element", Expected: ExpectedElement(flag)}
	}
	if p != nil {
		p.Path = fmt.Sprintf("[%d]", i)
	}
	return p
}

// checkScalar says what is wrong with text as the value, or as an element, of
// flag; nil if nothing is.
func checkScalar(flag *kong.Flag, text string) *mistake.Problem {
	if flag.Enum != "" {
		if allowed := flag.EnumSlice(); !slices.Contains(allowed, text) {
			return &mistake.Problem{What: fmt.Sprintf("%q is not allowed", text), Expected: ExpectedElement(flag), Hint: Closest(text, allowed)}
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
	p := &mistake.Problem{What: fmt.Sprintf("%q does not fit", text), Expected: ExpectedElement(flag)}
	if p.Expected == "" {
		p.What = err.Error() // a type that knows its own grammar
	}
	var own *Error
	if errors.As(err, &own) {
		p.What = own.what
	}
	return p
}

// Expected says what a flag takes, as the object of "expected".
func Expected(flag *kong.Flag) string {
	if flag.IsSlice() {
		return "a list, or a comma-separated string, of " + plural(flag)
	}
	return ExpectedElement(flag)
}

func ExpectedElement(flag *kong.Flag) string {
	if flag.Enum != "" {
		return "one of " + strings.Join(flag.EnumSlice(), ", ")
	}
	switch t := ElementType(flag); {
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
	return strings.TrimPrefix(ExpectedElement(flag), "a ") + "s"
}

func ElementType(flag *kong.Flag) reflect.Type {
	if t := flag.Target.Type(); flag.IsSlice() {
		return t.Elem()
	}
	return flag.Target.Type()
}

// Closest returns the candidate that text is probably a slip or the beginning
// of, "" if none is near: one mistake is allowed, and one more every four
// characters. Of several as near, the one that begins most like it.
func Closest(text string, candidates []string) string {
	best, limit := "", len(text)/4+2
	if len(text) > 64 {
		return ""
	}
	for _, c := range candidates {
		d := EditDistance(text, c)
		if d < limit && d < len(c) || d == limit && best != "" && begins(text, c) > begins(text, best) {
			best, limit = c, d
		}
	}
	for _, c := range candidates {
		if best == "" && len(text) >= 3 && strings.HasPrefix(c, text) {
			best = c
		}
	}
	return best
}

// begins returns how many bytes a and b have in common at their beginnings.
func begins(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// EditDistance counts insertions, deletions, substitutions and exchanges of
// neighbours (optimal string alignment), in O(len(a) len(b)).
func EditDistance(a, b string) int {
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			substitution := above[j]
			if a[i] != b[j] {
				substitution++
			}
			row[j+1] = min(above[j+1]+1, row[j]+1, substitution)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
