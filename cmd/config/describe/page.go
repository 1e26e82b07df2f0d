package describe

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// introduction opens the page of keys; it is written by hand.
//
//go:embed introduction.md
var introduction string

// Page returns the page docs/configuration.md: the introduction, and a table of every
// group of keys.
func Page(command *kong.Node) string {
	var b strings.Builder
	b.WriteString(introduction)
	for _, g := range groupsOf(command) {
		fmt.Fprintf(&b, "\n### %s\n\n| key | values | default | meaning |\n|---|---|---|---|\n", g.title)
		for _, flag := range g.keys {
			text := defaultText(flag)
			if text != "" {
				text = "`" + text + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", flag.Name, cell(typeText(flag)), cell(text), cell(flag.Help))
		}
	}
	return b.String()
}

// cell returns text as it may stand in a cell of a table.
func cell(text string) string { return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text) }
