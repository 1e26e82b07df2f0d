package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	linkPattern    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	codePattern    = regexp.MustCompile("`[^`\n]*`")
	headingPattern = regexp.MustCompile(`(?m)^#{1,6} +(.*?) *#*$`)
)

// anchors returns the anchors of a page's headings, as GitHub names them.
func (m *markdown) anchors() map[string]bool {
	all, count := map[string]bool{}, map[string]int{}
	for _, heading := range headingPattern.FindAllStringSubmatch(m.prose, -1) {
		text := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(heading[1], "$1")
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, text)
		if n := count[anchor]; n > 0 {
			all[fmt.Sprintf("%s-%d", anchor, n)] = true
		} else {
			all[anchor] = true
		}
		count[anchor]++
	}
	return all
}

// brokenLinks returns what is wrong with the links of a page to files and headings of
// the repository.
func brokenLinks(m *markdown, read func(name string) *markdown) (wrong []string) {
	for _, link := range linkPattern.FindAllStringSubmatch(codePattern.ReplaceAllString(m.prose, ""), -1) {
		target, anchor, _ := strings.Cut(link[1], "#")
		if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
			continue
		}
		name := m.name
		if target != "" {
			name = path.Join(path.Dir(m.name), target)
		}
		if _, err := os.Stat(filepath.FromSlash(name)); err != nil {
			wrong = append(wrong, fmt.Sprintf("%s links %s: there is no %s", m.name, link[1], name))
			continue
		}
		if anchor != "" && !read(name).anchors()[anchor] {
			wrong = append(wrong, fmt.Sprintf("%s links %s: %s has no such heading", m.name, link[1], name))
		}
	}
	return wrong
}

func TestLinksOfAllPages(t *testing.T) {
	t.Parallel()
	read := func(name string) *markdown { return readMarkdown(t, name) }
	links := 0
	for _, name := range pages(t) {
		m := readMarkdown(t, name)
		links += len(linkPattern.FindAllString(m.prose, -1))
		for _, wrong := range brokenLinks(m, read) {
			t.Error(wrong)
		}
	}
	if links < 50 {
		t.Errorf("%d links found: the pattern misses them", links)
	}
	lost := &markdown{name: "docs/none.md",
		prose: "[a](nowhere.md) [b](README.md#nowhere) [c](../README.md) `[d](code.md)`"}
	if wrong := brokenLinks(lost, read); len(wrong) != 2 {
		t.Errorf("of two broken links these were found: %q", wrong)
	}
}

// The page of the sensors links every page beside it, in the table of the formats or below.
func TestSensorsLinkEveryPage(t *testing.T) {
	t.Parallel()
	linked := map[string]bool{}
	for _, link := range linkPattern.FindAllStringSubmatch(readMarkdown(t, "docs/sensors/README.md").prose, -1) {
		linked[link[1]] = true
	}
	files, err := filepath.Glob("docs/sensors/*.md")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d pages of sensors, %v", len(files), err)
	}
	for _, file := range files {
		if name := filepath.Base(file); name != "README.md" && !linked[name] {
			t.Errorf("docs/sensors/README.md does not link %s", name)
		}
	}
}
