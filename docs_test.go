package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
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
	line     int // of the fence, from 1
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

// pages returns the names of all Markdown files of the repository.
func pages(t *testing.T) (names []string) {
	t.Helper()
	ignored := ignoredFolders(os.DirFS("."))
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || slices.Contains(ignored, name)):
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

// No page names a metric that the program does not export.
func TestMetricsOfPages(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	files, err := filepath.Glob(filepath.Join("ops", "metrics", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(data)
	}
	named := 0
	for _, name := range pages(t) {
		for _, metric := range regexp.MustCompile(`\bentropipe_[a-z_]+`).FindAllString(readMarkdown(t, name).text, -1) {
			named++
			short := strings.TrimPrefix(metric, "entropipe_")
			if !strings.Contains(source.String(), `"`+short+`"`) && !strings.Contains(source.String(), `"`+metric+`"`) {
				t.Errorf("%s names the metric %s, which package ops/metrics does not have", name, metric)
			}
		}
	}
	if named == 0 {
		t.Error("no page names a metric: the pattern misses them")
	}
}
