package main

import (
	"fmt"
	"strings"

	"entropipe/benchmarks/truth/site"
)

// siteOf returns the one page that the program serves.
func siteOf(lines []line, pages map[string]string) (string, error) {
	sections := []site.Section{{File: "README.md", Name: "Grid and figures", Markdown: pages["README.md"]},
		{File: "errata.md", Name: "Errata", Markdown: pages["errata.md"]}}
	for k := range lines {
		l := &lines[k]
		sections = append(sections, site.Section{File: l.page(), Name: fmt.Sprintf("%d %s", l.number, l.title),
			Group: "Rows", Markdown: pages[l.page()]})
	}
	pictures := map[string]string{}
	for name, page := range pages {
		if strings.HasSuffix(name, ".svg") {
			pictures[name] = page
		}
	}
	return site.Page("The truth page of entropipe", sections, pictures)
}
