package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"entropipe/cmd/config/value"
	"entropipe/cmd/mistake"
	"entropipe/models/plainfile"
)

// The configuration file is one YAML mapping of flag names to scalars or lists
// of scalars. It is read strictly, from the syntax tree, because only the tree
// has the position of a value. Strings may hold ${VARIABLE} or
// ${VARIABLE:default}, replaced after parsing, so that no value of a variable
// becomes syntax; $${ stands for ${.

// The parser recurses on nested brackets and takes quadratic time on them (16 s
// for 64 KiB), so both are bounded, far above any real file.
const (
	maxConfigBytes = 64 << 10
	maxBrackets    = 1000
)

// fileReader reads one file for one command.
type fileReader struct {
	file     string // path as shown to the user
	command  string
	flags    map[string]*kong.Flag
	lookup   func(string) (string, bool) // reads a variable of the environment
	places   map[string]place            // receives the place of each value
	anchors  map[string]ast.Node
	problems []mistake.Problem
}

// load returns the values of the file at path, by flag, and all its problems in the order
// of their places. An empty file has no values.
func (r *fileReader) load(path string) (map[string]any, []mistake.Problem) {
	text, err := readConfig(path)
	if err != nil {
		return nil, []mistake.Problem{{File: r.file, What: err.Error(), Expected: "a YAML file of flags"}}
	}
	values := r.parse(text)
	slices.SortStableFunc(r.problems, func(a, b mistake.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return values, r.problems
}

func readConfig(path string) ([]byte, error) {
	text, err := plainfile.ReadText(path, maxConfigBytes)
	var long *plainfile.TooLongError
	var kind plainfile.NotRegularError
	switch {
	case err == nil:
		return text, nil
	case errors.As(err, &kind):
		return nil, kind
	case errors.As(err, &long):
		return nil, fmt.Errorf("is larger than %v", value.Size(maxConfigBytes))
	}
	var cause *fs.PathError // its text repeats the path
	if errors.As(err, &cause) {
		err = cause.Err
	}
	return nil, fmt.Errorf("cannot be read: %w", err)
}

func (r *fileReader) parse(text []byte) map[string]any {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if !r.checkBytes(text) {
		return nil
	}
	file, err := parseYAML(text)
	if err != nil {
		r.syntaxProblem(err)
		return nil
	}
	body := r.body(file)
	if body == nil {
		return nil
	}
	r.collectAnchors(body)
	entries, ok := mapping(body)
	if !ok {
		r.at(body, "", mistake.Problem{What: kindOf(body) + " at the top",
			Expected: "a mapping of flags of " + r.command + " to values"})
		return nil
	}
	return r.entries(entries)
}

// parseYAML turns a panic of the YAML parser into an error, so that a hostile file cannot
// end the program with a stack trace.
func parseYAML(text []byte) (file *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			file, err = nil, fmt.Errorf("not YAML: %v", p)
		}
	}()
	return parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
}

// checkBytes finds the faults that the YAML parser reports badly or not at all; false if
// there are any.
func (r *fileReader) checkBytes(text []byte) bool {
	brackets := 0
	for i, line := range strings.Split(string(text), "\n") {
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		tab := strings.IndexByte(line[:indent], '\t')
		switch rest := strings.TrimRight(line[indent:], " \t\r"); {
		case !utf8.ValidString(line):
			r.problem(mistake.Problem{Line: i + 1, Col: 1, What: "not UTF-8", Expected: "text in UTF-8"})
		case strings.ContainsRune(line, 0):
			r.problem(mistake.Problem{Line: i + 1, Col: strings.IndexByte(line, 0) + 1,
				What: "a NUL byte", Expected: "text"})
		case tab >= 0 && rest != "" && rest[0] != '#':
			r.problem(mistake.Problem{Line: i + 1, Col: tab + 1, What: "a tab in the indentation", Expected: "spaces"})
		}
		if brackets += strings.Count(line, "[") + strings.Count(line, "{"); brackets > maxBrackets {
			r.problem(mistake.Problem{Line: i + 1, Col: 1, What: fmt.Sprintf("more than %d brackets", maxBrackets),
				Expected: "a mapping of flags to values"})
			break
		}
	}
	return len(r.problems) == 0
}

func (r *fileReader) syntaxProblem(err error) {
	p := mistake.Problem{What: err.Error()}
	var at yaml.Error
	if errors.As(err, &at) {
		p.What = at.GetMessage()
		if t := at.GetToken(); t != nil && t.Position != nil {
			p.Line, p.Col = t.Position.Line, t.Position.Column
		}
	}
	p.What = strings.Join(strings.Fields(p.What), " ")
	r.problem(p)
}

// body returns the only document of the file; nil if the file is empty.
func (r *fileReader) body(file *ast.File) ast.Node {
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		bodies = append(bodies, doc.Body)
	}
	for _, extra := range bodies[min(1, len(bodies)):] {
		r.at(extra, "", mistake.Problem{What: "another document", Expected: "one document a file"})
	}
	if len(bodies) == 0 || bodies[0].Type() == ast.NullType {
		return nil
	}
	return bodies[0]
}

func mapping(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode: // a single entry
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

func (r *fileReader) collectAnchors(body ast.Node) {
	r.anchors = map[string]ast.Node{}
	ast.Walk(anchorVisitor(r.anchors), body)
}

type anchorVisitor map[string]ast.Node

// Visit records the node of every anchor.
func (v anchorVisitor) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok && a.Name != nil {
		v[a.Name.GetToken().Value] = a.Value
	}
	return v
}

func (r *fileReader) entries(entries []*ast.MappingValueNode) map[string]any {
	values, first := map[string]any{}, map[string]int{}
	for _, e := range entries {
		key := keyText(e.Key)
		if line, again := first[key]; again {
			r.at(e.Key, value.DiscreetKey(key), mistake.Problem{What: fmt.Sprintf("set twice, first in line %d", line)})
		} else {
			first[key] = e.Key.GetToken().Position.Line
		}
		flag := r.flags[key]
		if flag == nil {
			r.unknownKey(e.Key, key)
			continue
		}
		before := len(r.problems)
		if v := r.value(flag, e.Value); v != nil && len(r.problems) == before {
			values[key] = v
			r.stands(key, e.Value)
		}
	}
	return values
}

func keyText(key ast.MapKeyNode) string {
	switch k := key.(type) {
	case *ast.StringNode:
		return k.Value
	case ast.ScalarNode:
		return k.GetToken().Value
	case *ast.MappingKeyNode: // ? key
		if s, ok := k.Value.(*ast.StringNode); ok {
			return s.Value
		}
	}
	return strings.TrimSpace(key.String())
}

func (r *fileReader) unknownKey(at ast.Node, key string) {
	p := mistake.Problem{What: "unknown key", Expected: "a flag of " + r.command}
	// The habits of other programs (run_age, --run-age, Run-Age) are tried before spelling.
	plain := strings.ToLower(strings.ReplaceAll(strings.TrimLeft(key, "-"), "_", "-"))
	if p.Hint = plain; r.flags[plain] == nil {
		p.Hint = value.Closest(plain, sortedKeys(r.flags))
	}
	r.at(at, value.DiscreetKey(key), p)
}

// value returns the value of flag in the form that kong takes; nil if there is none or it
// has a problem.
func (r *fileReader) value(flag *kong.Flag, n ast.Node) any {
	n = r.resolve(n)
	list, isList := n.(*ast.SequenceNode)
	if isList && flag.IsSlice() {
		return r.list(flag, list)
	}
	text, ok := r.scalar(flag, n, flag.Name, value.Expected(flag))
	if !ok {
		return nil
	}
	v, p := value.CheckText(flag, text)
	if p != nil {
		r.at(n, flag.Name+p.Path, *p)
		return nil
	}
	return v
}

func (r *fileReader) list(flag *kong.Flag, n *ast.SequenceNode) any {
	var list []any
	for i, element := range n.Values {
		element = r.resolve(element)
		text, ok := r.scalar(flag, element, fmt.Sprintf("%s[%d]", flag.Name, i), value.ExpectedElement(flag))
		if list = append(list, text); !ok {
			continue
		}
		if p := value.CheckElement(flag, list, i); p != nil {
			r.at(element, flag.Name+p.Path, *p)
		}
	}
	if len(list) == 0 && flag.HasDefault {
		r.at(n, flag.Name, mistake.Problem{What: "an empty list", Expected: value.Expected(flag)})
	}
	if len(list) == 0 {
		return nil // the same as an unset flag
	}
	return list
}

// stands records the place of a value, and of each element of a list.
func (r *fileReader) stands(key string, n ast.Node) {
	if r.places == nil {
		r.places = map[string]place{}
	}
	n = r.resolve(n)
	note := func(path string, n ast.Node) {
		if t := firstToken(n); t != nil && t.Position != nil {
			r.places[path] = place{file: r.file, line: t.Position.Line, col: t.Position.Column}
		}
	}
	note(key, n)
	if list, ok := n.(*ast.SequenceNode); ok {
		for i, element := range list.Values {
			note(fmt.Sprintf("%s[%d]", key, i), r.resolve(element))
		}
	}
}

// resolve follows anchors and aliases. An alias of an unknown anchor is returned as it is.
func (r *fileReader) resolve(n ast.Node) ast.Node {
	for range 16 { // an anchor may hold an alias, even of itself
		switch v := n.(type) {
		case *ast.AnchorNode:
			n = v.Value
		case *ast.AliasNode:
			target := r.anchors[v.Value.GetToken().Value]
			if target == nil {
				return n
			}
			n = target
		default:
			return n
		}
	}
	return n
}

// scalar returns the text of n with variables replaced; false after a problem. YAML has
// given n a type: a number for a flag that takes a string has to be quoted, so that 007
// and 1e3 keep their characters.
func (r *fileReader) scalar(flag *kong.Flag, n ast.Node, path, want string) (string, bool) {
	switch v := n.(type) {
	case *ast.StringNode:
		return r.text(flag, n, v.Value, path)
	case *ast.LiteralNode:
		return r.text(flag, n, v.Value.Value, path)
	case *ast.IntegerNode:
		if takesNumbers(flag) {
			return fmt.Sprint(v.Value), true
		}
	case *ast.FloatNode:
		if takesNumbers(flag) {
			return v.Token.Value, true
		}
	case *ast.BoolNode:
		if want == "true or false" {
			return fmt.Sprint(v.Value), true
		}
	}
	p := mistake.Problem{What: kindOf(n), Expected: want}
	switch n.(type) {
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode:
		if want == "a string" {
			p.Expected = fmt.Sprintf("a string: write %q", n.GetToken().Value)
		}
		if value.ElementType(flag) == reflect.TypeFor[value.Secret]() {
			p.What, p.Expected = "not a string", "a string: write it in quotes"
		}
	}
	r.at(n, path, p)
	return "", false
}

// text replaces the variables in s. A boolean flag takes a string only if a variable made
// it: what the file writes as a string is no boolean.
func (r *fileReader) text(flag *kong.Flag, n ast.Node, s, path string) (string, bool) {
	out, problem := value.Interpolate(s, r.lookup)
	if problem != nil {
		if hidden(flag) && !wholeReference.MatchString(s) { // the text between the braces may be a part of the secret
			problem.What = "a reference to a variable that cannot be followed"
			problem.Expected = "${VARIABLE} or ${VARIABLE:default}; $${ stands for the characters ${"
		}
		r.at(n, path, *problem)
		return "", false
	}
	if out == s && value.ElementType(flag).Kind() == reflect.Bool { // in YAML 1.2 yes is a string
		r.at(n, path, mistake.Problem{What: fmt.Sprintf("the string %q", s), Expected: "true or false"})
		return "", false
	}
	return out, true
}

// hidden reports whether the value of a flag may be or contain a password.
func hidden(flag *kong.Flag) bool {
	return value.ElementType(flag) == reflect.TypeFor[value.Secret]() || flag.Name == "brokers"
}

// wholeReference matches a value that is one reference to a variable and nothing else.
var wholeReference = regexp.MustCompile(`^\$\{[A-Za-z_][A-Za-z0-9_]*\}$`)

func takesNumbers(flag *kong.Flag) bool {
	t := value.ExpectedElement(flag)
	return flag.Enum == "" && t != "a string" && t != "true or false"
}

// kindOf names the kind of a node, as the subject of a problem.
func kindOf(n ast.Node) string {
	switch n := n.(type) {
	case *ast.NullNode:
		return "no value"
	case *ast.BoolNode:
		return "the boolean " + n.Token.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "the number " + n.GetToken().Value
	case *ast.StringNode, *ast.LiteralNode:
		return "a string"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.AliasNode:
		return "an alias of an unknown anchor"
	case *ast.TagNode:
		return "a tag"
	}
	return "something else"
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_.<-]{1,64}$`)

// at adds p with the place of n and the key path. A key with unusual characters is quoted.
func (r *fileReader) at(n ast.Node, path string, p mistake.Problem) {
	if key, _, _ := strings.Cut(path, "["); path != "" && !plainKey.MatchString(key) {
		path = fmt.Sprintf("%.66q", path)
	}
	p.Path = path
	if t := firstToken(n); t != nil && t.Position != nil {
		p.Line, p.Col = t.Position.Line, t.Position.Column
	}
	r.problem(p)
}

// firstToken returns the first token of n in the file. GetToken would return the colon of
// a mapping.
func firstToken(n ast.Node) *token.Token {
	if entries, ok := mapping(n); ok && len(entries) > 0 {
		if m, isMap := n.(*ast.MappingNode); !isMap || !m.IsFlowStyle {
			return entries[0].Key.GetToken()
		}
	}
	return n.GetToken()
}

func (r *fileReader) problem(p mistake.Problem) {
	p.File = r.file
	r.problems = append(r.problems, p)
}
