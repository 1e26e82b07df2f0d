package geomtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// CheckUse fails the test unless the first code block of the package comment in
// file stands, line by line, in the body of func Example of example_test.go.
// The example compiles and its output is checked, so the code block is right.
func CheckUse(t testing.TB, file string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	block := codeBlock(parsed.Doc.Text())
	if len(block) < 3 {
		t.Fatalf("%s: the package comment opens with %d lines of code, want at least 3", file, len(block))
	}
	body := exampleBody(t)
	for _, line := range block {
		_, rest, found := strings.Cut(body, line)
		if !found {
			t.Fatalf("%s: example_test.go: func Example lacks, or has out of order, the line\n%s", file, line)
		}
		body = rest
	}
}

// codeBlock returns the lines of the first indented block of a comment, with
// single blanks between words.
func codeBlock(comment string) (lines []string) {
	for line := range strings.Lines(comment) {
		if strings.HasPrefix(line, "\t") {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		} else if len(lines) > 0 {
			break
		}
	}
	return lines
}

// exampleBody returns the text of func Example, with single blanks between words.
func exampleBody(t testing.TB) string {
	const file = "example_test.go"
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "Example" {
			body := source[set.Position(f.Body.Pos()).Offset:set.Position(f.Body.End()).Offset]
			return strings.Join(strings.Fields(string(body)), " ")
		}
	}
	t.Fatalf("%s has no func Example", file)
	return ""
}
