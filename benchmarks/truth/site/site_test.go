package site

import (
	"strings"
	"testing"
)

// The page has a section a file, links between files as anchors, other files as text, pictures
// inside, and a list of contents whose groups open.
func TestPage(t *testing.T) {
	page, err := Page("A & B", []Section{
		{File: "README.md", Name: "Grid", Markdown: "# Top\n\n[one](row-01.md), [its end](row-01.md#end), " +
			"[here](#top), [data](../../data/a.jsonl), [far](https://example.com/x)\n\n" +
			"![A figure](f.svg)\n\n![Lost](g.svg)\n"},
		{File: "row-01.md", Name: "1 <first>", Group: "Rows", Markdown: "# One\n\n## End\n\n| a |\n|---|\n| 1 |\n"},
		{File: "row-02.md", Name: "2", Group: "Rows", Markdown: "# Two\n"},
		{File: "last.md", Name: "Last", Markdown: "| verdict | command |\n|---|---|\n| open | `x` |\n"},
	}, map[string]string{"f.svg": "<svg>f</svg>"})
	if err != nil {
		t.Fatal(err)
	}
	for about, want := range map[string]string{
		"title":          "<title>A &amp; B</title>",
		"a file":         `<a href="#row-01">one</a>`,
		"a heading":      `<a href="#row-01-end">its end</a>`,
		"this file":      `<a href="#README-top">here</a>`,
		"no section":     `data (<code>data/a.jsonl</code>)`,
		"another server": `<a href="https://example.com/x">far</a>`,
		"a picture":      `<figure><svg>f</svg></figure>`,
		"no picture":     `<img src="g.svg" alt="Lost">`,
		"target":         `<h2 id="row-01-end">End</h2>`,
		"a wide table":   `<div class="scroll" tabindex="0" role="region" aria-label="table"><table>`,
		"a verdict":      `<td class="open">open</td>`,
		"contents": "<ul>\n<li><a href=\"#README\">Grid</a></li>\n" +
			"<li><details><summary>Rows</summary><ol>\n<li><a href=\"#row-01\">1 &lt;first&gt;</a></li>\n" +
			"<li><a href=\"#row-02\">2</a></li>\n</ol></details></li>\n<li><a href=\"#last\">Last</a></li>\n</ul>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%s: no %q in\n%s", about, want, page)
		}
	}
	if strings.Contains(page, "<script") || strings.Contains(page, "<link") {
		t.Error("the page asks for something")
	}
}
