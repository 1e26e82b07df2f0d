// Package site makes one HTML page of Markdown pages: a page a section, links between the
// pages as anchors, pictures inside, tables that scroll. The page asks for nothing from
// anywhere: no script, no font, no style sheet.
package site

import (
	"bytes"
	_ "embed"
	"fmt"
	"html"
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
)

//go:embed style.css
var style string

// Section is a page: its file's name, its name in the list of contents, and its Markdown. A
// section of a group stands in a list under the group's name, which opens.
type Section struct{ File, Name, Group, Markdown string }

var (
	link    = regexp.MustCompile(`<a href="([^"]*)">(.*?)</a>`)
	image   = regexp.MustCompile(`<p><img src="([^"]*)" alt="([^"]*)"></p>`)
	heading = regexp.MustCompile(`<h([1-6]) id="([^"]*)">`)
	verdict = regexp.MustCompile(`<td>([a-z]+)</td>\n<td><code>`)
)

// Page returns the page of the sections. pictures has the SVG of each file that an image
// names. A link to a file that is no section becomes its text in code: the page is served
// without the files of the repository.
func Page(title string, sections []Section, pictures map[string]string) (string, error) {
	ids := map[string]string{}
	for _, s := range sections {
		ids[s.File] = id(s.File)
	}
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	var b strings.Builder
	fmt.Fprintf(&b, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"+
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"+
		"<meta name=\"color-scheme\" content=\"light "+
		"dark\">\n<title>%s</title>\n<style>\n%s</style>\n</head>\n<body>\n"+
		"<a class=\"skip\" href=\"#%s\">To the grid</a>\n%s<main>\n", html.EscapeString(title), style,
		id(sections[0].File), contents(sections))
	for _, s := range sections {
		var text bytes.Buffer
		if err := markdown.Convert([]byte(s.Markdown), &text); err != nil {
			return "", fmt.Errorf("%s: %w", s.File, err)
		}
		fmt.Fprintf(&b, "<section id=\"%s\">\n%s</section>\n", ids[s.File], finished(text.String(), ids[s.File], ids,
			pictures))
	}
	b.WriteString("</main>\n</body>\n</html>\n")
	return b.String(), nil
}

// contents is the list of the sections. A group begins where its first section stands.
func contents(sections []Section) string {
	var b strings.Builder
	b.WriteString("<nav aria-label=\"Pages\">\n<ul>\n")
	group := ""
	for _, s := range sections {
		if s.Group != group && group != "" {
			b.WriteString("</ol></details></li>\n")
		}
		if s.Group != group && s.Group != "" {
			fmt.Fprintf(&b, "<li><details><summary>%s</summary><ol>\n", html.EscapeString(s.Group))
		}
		group = s.Group
		fmt.Fprintf(&b, "<li><a href=\"#%s\">%s</a></li>\n", id(s.File), html.EscapeString(s.Name))
	}
	if group != "" {
		b.WriteString("</ol></details></li>\n")
	}
	b.WriteString("</ul>\n</nav>\n")
	return b.String()
}

// id is the anchor of a page.
func id(file string) string { return strings.TrimSuffix(path.Base(file), ".md") }

// finished turns the HTML of one page into that of a section.
func finished(text, section string, ids map[string]string, pictures map[string]string) string {
	text = heading.ReplaceAllString(text, `<h$1 id="`+section+`-$2">`)
	text = image.ReplaceAllStringFunc(text, func(tag string) string {
		parts := image.FindStringSubmatch(tag)
		svg, ok := pictures[parts[1]]
		if !ok {
			return tag
		}
		return "<figure>" + svg + "</figure>"
	})
	text = link.ReplaceAllStringFunc(text, func(tag string) string {
		parts := link.FindStringSubmatch(tag)
		file, anchor, _ := strings.Cut(parts[1], "#")
		target, ok := ids[file]
		switch {
		case file == "":
			return fmt.Sprintf(`<a href="#%s-%s">%s</a>`, section, anchor, parts[2])
		case ok && anchor != "":
			return fmt.Sprintf(`<a href="#%s-%s">%s</a>`, target, anchor, parts[2])
		case ok:
			return fmt.Sprintf(`<a href="#%s">%s</a>`, target, parts[2])
		case strings.Contains(file, "://"):
			return tag
		}
		return fmt.Sprintf("%s (<code>%s</code>)", parts[2], strings.TrimLeft(file, "./"))
	})
	text = strings.ReplaceAll(text, "<table>",
		`<div class="scroll" tabindex="0" role="region" aria-label="table"><table>`)
	text = strings.ReplaceAll(text, "</table>", "</table></div>")
	return verdict.ReplaceAllString(text, `<td class="$1">$1</td>`+"\n<td><code>")
}
