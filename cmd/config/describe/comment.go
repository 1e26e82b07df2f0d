package describe

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"entropipe/cmd/config"
)

// SchemaFile is the name under which a configuration expects its schema beside it.
const SchemaFile = "entropipe.schema.json"

// Modeline is the comment by which editors with yaml-language-server find the schema.
const Modeline = "# yaml-language-server: $schema=" + SchemaFile

// Commented returns the configuration in effect, as config.Effective does, with the
// help of every key above it and the keys in the groups of the help. Read again, it
// gives the same values.
func Commented(k *kong.Kong, command any) string {
	node := config.NodeOf(k.Model.Node, command)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n# The schema is printed by: entropipe validate --schema > %s\n", Modeline, SchemaFile)
	for _, g := range groupsOf(node) {
		fmt.Fprintf(&b, "\n## %s\n", g.title)
		for _, flag := range g.keys {
			fmt.Fprintf(&b, "\n# %s\n# Values: %s.", flag.Help, typeText(flag))
			if text := defaultText(flag); text != "" {
				fmt.Fprintf(&b, " Default: %s.", text)
			}
			fmt.Fprintf(&b, "\n%s: %s\n", flag.Name, config.ValueText(flag))
		}
	}
	return b.String()
}
