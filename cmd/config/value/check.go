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

// CheckText checks text, from a variable or the file, against the type of flag. It
// returns the value in the form that kong takes: the text, or []any of texts. The Path of
// the problem is empty, or [i] for an element.
func CheckText(flag *kong.Flag, text string) (any, *mistake.Problem) {
	if ElementType(flag) == reflect.TypeFor[Secret]() { // editors and mounted secrets end in a line end
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

// CheckElement checks list[i], a string, against the type of flag's elements. It returns
// nil if the element fits.
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

// checkScalar checks text as the value of flag, or as an element of its list. It returns
// nil if the text fits.
func checkScalar(flag *kong.Flag, text string) *mistake.Problem {
	if flag.Enum != "" {
		if allowed := flag.EnumSlice(); !slices.Contains(allowed, text) {
			return &mistake.Problem{What: fmt.Sprintf("%q is not allowed", text), Expected: ExpectedElement(flag),
				Hint: Closest(text, allowed)}
		}
	}
	target := reflect.New(flag.Target.Type()).Elem()
	var token any = text
	if flag.IsSlice() {
		token = []any{text}
	}
	err := flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value,
		Scan: kong.Scan().PushTyped(token, kong.FlagValueToken)}, target)
	if err == nil {
		return nil
	}
	p := &mistake.Problem{What: fmt.Sprintf("%q does not fit", text), Expected: ExpectedElement(flag)}
	if p.Expected == "" {
		p.What = err.Error() // the type describes its own grammar
	}
	var own *Error
	if errors.As(err, &own) {
		p.What = own.what
	}
	return p
}

// Expected describes the values of a flag, as the object of "expected".
func Expected(flag *kong.Flag) string {
	if flag.IsSlice() {
		return "a list, or a comma-separated string, of " + plural(flag)
	}
	return ExpectedElement(flag)
}

// ExpectedElement describes an element of flag's list, or the value of a flag that is no
// list; "" for a type that describes itself in its errors.
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

// ElementType returns the type of the elements of flag's list, or of its value if it is
// no list.
func ElementType(flag *kong.Flag) reflect.Type {
	if t := flag.Target.Type(); flag.IsSlice() {
		return t.Elem()
	}
	return flag.Target.Type()
}

// Closest returns the candidate that text probably stands for; "" if none is near. A
// candidate is near if its EditDistance is at most 1 plus one for every four characters of
// text, or if text is its beginning and has three characters or more. Among candidates of
// equal distance the one with the longest common beginning wins.
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

// begins returns the length in bytes of the common prefix of a and b.
func begins(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// EditDistance returns the least number of insertions, deletions, substitutions and
// exchanges of neighbouring bytes that turn a into b (optimal string alignment), in
// O(len(a)·len(b)) time.
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
