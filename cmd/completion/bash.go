package completion

import (
	_ "embed"
	"fmt"
	"strings"
)

// bashEngine reads the words of the line and offers what the tables before it say. It
// works with bash from 3.2 on, without the package bash-completion.
//
//go:embed engine.bash
var bashEngine string

// bash returns the completions for bash: a function for each command, which sets the
// variables of the engine.
func bash(program *verb) string {
	var b strings.Builder
	b.WriteString("# bash completion for entropipe, made by: entropipe completion bash\n\n")
	for _, v := range program.all() {
		fmt.Fprintf(&b, "_entropipe_at_%s() {\n", v.id())
		fmt.Fprintf(&b, "  commands=%s flags=%s\n", bashWords(v.names()), bashWords(v.flags()))
		fmt.Fprintf(&b, "  argument=%s choices=%s\n  case $1 in\n", bashKinds[v.takes], bashWords(v.choices))
		for _, o := range v.options {
			if o.takes == nothing {
				continue
			}
			pattern := "--" + o.name
			if o.short != "" {
				pattern += " | -" + o.short
			}
			takes := bashKinds[o.takes]
			if o.takes == choice && o.list {
				takes = "list"
			}
			fmt.Fprintf(&b, "  %s) takes=%s", pattern, takes)
			if o.takes == choice {
				fmt.Fprintf(&b, " values=%s", bashWords(o.choices))
			}
			b.WriteString(" ;;\n")
		}
		b.WriteString("  *) takes=nothing ;;\n  esac\n}\n\n")
	}
	return b.String() + bashEngine
}

var bashKinds = map[kind]string{nothing: "nothing", text: "text", file: "file", folder: "folder", choice: "choice"}

// bashWords quotes words, which hold no apostrophe.
func bashWords(words []string) string { return "'" + strings.Join(words, " ") + "'" }

// names returns the names of the commands below v.
func (v *verb) names() (names []string) {
	for _, child := range v.children {
		names = append(names, child.name)
	}
	return names
}

// flags returns the flags of v as they are typed.
func (v *verb) flags() (flags []string) {
	for _, o := range v.options {
		flags = append(flags, "--"+o.name)
		if o.short != "" {
			flags = append(flags, "-"+o.short)
		}
	}
	return flags
}
