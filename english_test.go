package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// fragmentWords names the file with words that begin a fragment. A trailing comment that
// opens with one of them, such as "of which one is read", leaves out its noun.
const fragmentWords = ".ci/fragment-words"

// Law: fewer than 2 % of the comments behind code open with such a word.
func TestTrailingCommentsAreNoFragments(t *testing.T) {
	words, err := os.ReadFile(fragmentWords)
	if err != nil {
		t.Fatal(err)
	}
	var comments int
	var fragments []string
	eachGoFile(t, func(name string, source []byte) {
		all, found := trailingComments(t, name, source, strings.Fields(string(words)))
		comments += all
		fragments = append(fragments, found...)
	})
	share := 100 * float64(len(fragments)) / float64(comments)
	t.Logf("%d of %d trailing comments are fragments: %.1f %%", len(fragments), comments, share)
	if comments < 1000 || share >= 2 {
		t.Errorf("%d of %d trailing comments open with %s (%.1f %%, below 2 is wanted):\n%s", len(fragments), comments,
			strings.Join(strings.Fields(string(words)), ", "), share, strings.Join(fragments, "\n"))
	}
}

// Law: no line of code has more than 120 columns, where a tab counts 4. Lines that are data,
// inside a raw string or a directive, are as long as their data.
func TestLinesFitIntoAWindow(t *testing.T) {
	lines := 0
	eachGoFile(t, func(name string, source []byte) {
		lines += strings.Count(string(source), "\n")
		for _, wide := range wideLines(t, name, source) {
			t.Error(wide)
		}
	})
	if lines < 10_000 {
		t.Errorf("only %d lines were looked at", lines)
	}
}

// A check that cannot fail is a defect.
func TestFragmentsAndWideLinesAreFound(t *testing.T) {
	long := strings.Repeat("x", 120)
	for _, c := range []struct {
		source          string
		comments, found int
		wide            int
	}{
		{"package a\n\nvar b = 1 // of which one is read\n", 1, 1, 0},
		{"package a\n\nvar b = 1 // Those: not looked at\n", 1, 1, 0},
		{"package a\n\nvar b = 1 // the stride\n// of the next line\nvar c = 2\n", 1, 0, 0},
		{"package a\n\nvar b = \"// of a string\" // office\n", 1, 0, 0},
		{"package a\n\nvar " + long + " int\n", 0, 0, 1},
		{"package a\n\nvar b = `\n" + long + long + "\n`\n", 0, 0, 0},
		{"package a\n\ntype b struct {\n\tc int `help:\"" + long + "\"`\n}\n", 0, 0, 1},
		{"package a\n\n//go:generate " + long + "\n", 0, 0, 0},
		{"package a\n\nvar b = `" + long + "`\n", 0, 0, 0},
		{"package a\n\nvar b, " + long + " = `c`, 2\n", 0, 0, 1},
	} {
		comments, found := trailingComments(t, "a.go", []byte(c.source), []string{"of", "those"})
		if comments != c.comments || len(found) != c.found {
			t.Errorf("%q: %d comments, fragments %q", c.source, comments, found)
		}
		if wide := wideLines(t, "a.go", []byte(c.source)); len(wide) != c.wide {
			t.Errorf("%q: wide lines %q", c.source, wide)
		}
	}
}

// eachGoFile calls f with every Go file of the tree that is written by hand.
func eachGoFile(t *testing.T, f func(name string, source []byte)) {
	t.Helper()
	tree := os.DirFS(".")
	ignored := ignoredFolders(tree)
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" ||
			slices.Contains(ignored, name)):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		if err == nil && !strings.Contains(string(source[:min(len(source), 600)]), "Code generated") {
			f(name, source)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// trailingComments returns the number of comments that stand behind code, and those that
// open with one of words.
func trailingComments(t *testing.T, name string, source []byte, words []string) (comments int, fragments []string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(source), "\n")
	for _, group := range file.Comments {
		for _, comment := range group.List {
			at := files.Position(comment.Pos())
			text, line := strings.CutPrefix(comment.Text, "//")
			if !line || strings.TrimSpace(lines[at.Line-1][:at.Column-1]) == "" {
				continue
			}
			comments++
			first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
			if slices.Contains(words, strings.ToLower(strings.TrimRight(first, ",.:;"))) {
				fragments = append(fragments, fmt.Sprintf("%v: %s", at, comment.Text))
			}
		}
	}
	return comments, fragments
}

// wideLines returns the lines of more than 120 columns that could be broken.
func wideLines(t *testing.T, name string, source []byte) (wide []string) {
	t.Helper()
	data := rawLines(t, name, source)
	for i, line := range strings.Split(string(source), "\n") {
		columns := len([]rune(strings.ReplaceAll(line, "\t", "    ")))
		if columns > 120 && !data[i+1] && !strings.HasPrefix(line, "//go:") {
			wide = append(wide, fmt.Sprintf("%s:%d: %d columns", name, i+1, columns))
		}
	}
	return wide
}

// rawLines returns the numbers, from 1, of the lines that a raw string makes wide. The tag
// of a field is no data: it can be short.
func rawLines(t *testing.T, name string, source []byte) map[int]bool {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	lines, tags := map[int]bool{}, map[*ast.BasicLit]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if field, ok := n.(*ast.Field); ok && field.Tag != nil {
			tags[field.Tag] = true
		}
		if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && text.Value[0] == '`' && !tags[text] {
			first := files.Position(text.Pos()).Line
			for i, part := range strings.Split(text.Value, "\n") {
				lines[first+i] = lines[first+i] || len(part) > 60
			}
		}
		return true
	})
	return lines
}
