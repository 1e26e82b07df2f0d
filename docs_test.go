package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"entropipe/ops/metrics"
)

// markdown is a page, taken apart.
type markdown struct {
	name   string // path in the repository, with slashes
	text   string
	prose  string // the text without fenced and indented code
	blocks []codeBlock
}

// codeBlock is a fenced block of a page.
type codeBlock struct {
	language string // the word behind the fence
	text     string
	line     int // line of the opening fence, from 1
}

// readMarkdown takes a page apart.
func readMarkdown(t *testing.T, name string) *markdown {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	m := &markdown{name: name, text: string(data)}
	var prose strings.Builder
	var open *codeBlock
	for i, line := range strings.SplitAfter(m.text, "\n") {
		fence, found := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "```")
		switch {
		case found && open == nil:
			open = &codeBlock{language: strings.TrimSpace(fence), line: i + 1}
		case found:
			m.blocks = append(m.blocks, *open)
			open = nil
		case open != nil:
			open.text += line
			continue
		case !strings.HasPrefix(line, "    "):
			prose.WriteString(line)
			continue
		}
		prose.WriteString("\n")
	}
	if open != nil {
		t.Fatalf("%s:%d: the block has no end", name, open.line)
	}
	m.prose = prose.String()
	return m
}

// words returns the number of words of a page, as wc -w counts them.
func (m *markdown) words() int { return len(strings.Fields(m.text)) }

// pages returns the names of all Markdown files of the repository, but those in cmd.
func pages(t *testing.T) (names []string) {
	t.Helper()
	ignored := ignoredFolders(os.DirFS("."))
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || slices.Contains(ignored, name)):
			return fs.SkipDir
		case name == "cmd": // its texts are parts of docs/configuration.md
			return fs.SkipDir
		case path.Ext(name) == ".md":
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// The two pages that everybody reads first stay short.
func TestLengthOfPages(t *testing.T) {
	t.Parallel()
	for name, most := range map[string]int{"README.md": 900, "ARCHITECTURE.md": 1800} {
		if words := readMarkdown(t, name).words(); words > most {
			t.Errorf("%s has %d words, at most %d are wanted", name, words, most)
		}
	}
}

// No page names a metric that the program does not export.
func TestMetricsOfPages(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, d := range metrics.Definitions() {
		known[metrics.Prefix+d.Name] = true
		if d.Kind == metrics.Histogram {
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				known[metrics.Prefix+d.Name+part] = true
			}
		}
	}

	named := 0
	for _, name := range pages(t) {
		text := readMarkdown(t, name).text
		for _, at := range regexp.MustCompile(`\bentropipe_[a-z_]+`).FindAllStringIndex(text, -1) {
			if at[0] > 0 && text[at[0]-1] == ':' { // a recorded series
				continue
			}
			named++
			if metric := text[at[0]:at[1]]; !known[metric] {
				t.Errorf("%s names the metric %s, which package ops/metrics does not have", name, metric)
			}
		}
	}
	if named == 0 {
		t.Error("no page names a metric: the pattern misses them")
	}
}

var (
	stepPattern = regexp.MustCompile("`([a-z0-9_/]+\\.go):([A-Za-z0-9_.]+)`")
	pathPattern = regexp.MustCompile("`(\\.?[a-z0-9_]+(?:[/.][a-z0-9_.]+)*)`")
)

// Every step of a record's life is a function or method that exists, and every path of
// the page for developers is a file or folder.
func TestStepsOfArchitecture(t *testing.T) {
	t.Parallel()
	page := readMarkdown(t, "ARCHITECTURE.md")
	functions := map[string][]string{} // by file
	steps := stepPattern.FindAllStringSubmatch(page.prose, -1)
	for _, step := range steps {
		file, name := step[1], step[2]
		if functions[file] == nil {
			functions[file] = functionsOf(t, file)
		}
		if !slices.Contains(functions[file], name) {
			t.Errorf("ARCHITECTURE.md: %s has no function %s", file, name)
		}
	}
	if len(steps) < 25 {
		t.Errorf("%d steps found: the pattern misses them", len(steps))
	}
	for _, of := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "docs/library.md"} {
		for _, span := range pathPattern.FindAllStringSubmatch(readMarkdown(t, of).prose, -1) {
			name := strings.TrimSuffix(span[1], "/")
			folder, _, nested := strings.Cut(name, "/")
			if nested && slices.Contains(topFolders, folder) || path.Ext(name) == ".go" {
				if _, err := os.Stat(filepath.FromSlash(name)); err != nil {
					t.Errorf("%s names %s: %v", of, name, err)
				}
			}
		}
	}
	found := functionsOf(t, "docs_test.go")
	if !slices.Contains(found, "markdown.words") || slices.Contains(found, "words") {
		t.Errorf("the functions of this file are not %q", found)
	}
}

// functionsOf returns the names of a file's functions, of methods with their type.
func functionsOf(t *testing.T, file string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.FromSlash(file), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Errorf("ARCHITECTURE.md: %v", err)
		return []string{}
	}
	for _, declared := range parsed.Decls {
		f, ok := declared.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := f.Name.Name
		if f.Recv != nil {
			of := f.Recv.List[0].Type
			if pointer, ok := of.(*ast.StarExpr); ok {
				of = pointer.X
			}
			if generic, ok := of.(*ast.IndexExpr); ok {
				of = generic.X
			}
			name = of.(*ast.Ident).Name + "." + name
		}
		names = append(names, name)
	}
	return names
}
