package completion

import (
	"fmt"
	"strings"
)

// zsh returns the completions for zsh: a function for each command, by _arguments.
func zsh(program *verb) string {
	var b strings.Builder
	b.WriteString("#compdef entropipe\n# zsh completion for entropipe, made by: entropipe completion zsh\n\n")
	for _, v := range program.all() {
		fmt.Fprintf(&b, "_entropipe_at_%s() {\n", v.id())
		b.WriteString("  local curcontext=\"$curcontext\" context state state_descr line ret=1\n" +
			"  typeset -A opt_args\n")
		if len(v.children) > 0 {
			b.WriteString("  local -a commands=(\n")
			for _, child := range v.children {
				fmt.Fprintf(&b, "    %s\n", zshQuoted(strings.ReplaceAll(child.name, ":", `\:`)+":"+child.help))
			}
			b.WriteString("  )\n")
		}
		b.WriteString("  _arguments -C -S")
		for _, o := range v.options {
			fmt.Fprintf(&b, " \\\n    %s", zshOption(o))
		}
		switch {
		case len(v.children) > 0:
			b.WriteString(" \\\n    '1:command:->command' \\\n    '*:: :->rest' && ret=0\n")
			b.WriteString("  case $state in\n  command)\n    _describe -t commands command commands && ret=0\n")
			if v.takes != nothing { // of the command that stands for none
				fmt.Fprintf(&b, "    %s && ret=0\n", zshAction(v.takes, v.choices, false))
			}
			b.WriteString("    ;;\n  rest)\n    case $line[1] in\n")
			for _, child := range v.children {
				fmt.Fprintf(&b, "    %s) _entropipe_at_%s && ret=0 ;;\n", child.name, child.id())
			}
			if v.takes != nothing {
				fmt.Fprintf(&b, "    *) %s && ret=0 ;;\n", zshAction(v.takes, v.choices, false))
			}
			b.WriteString("    esac\n    ;;\n  esac\n")
		case v.takes != nothing:
			fmt.Fprintf(&b, " \\\n    %s && ret=0\n", zshQuoted("*:argument:"+zshAction(v.takes, v.choices, false)))
		default:
			b.WriteString(" && ret=0\n")
		}
		b.WriteString("  return ret\n}\n\n")
	}
	// Loaded by compinit from a file of fpath, the body runs at the first completion; sourced,
	// it registers the function.
	b.WriteString("_entropipe() { _entropipe_at_ \"$@\" }\n\n" +
		"if [ \"$funcstack[1]\" = _entropipe ]; then\n  _entropipe \"$@\"\nelse\n  compdef _entropipe entropipe\nfi\n")
	return b.String()
}

// zshOption returns an option as an argument of _arguments.
func zshOption(o option) string {
	help := "[" + strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`).Replace(o.help) + "]"
	value := ""
	if o.takes != nothing {
		value = ":" + o.name + ":" + zshAction(o.takes, o.choices, o.list)
	}
	switch {
	case o.takes == nothing && o.short == "":
		return zshQuoted("--" + o.name + help)
	case o.takes == nothing:
		return zshQuoted("(-"+o.short+" --"+o.name+")") + "{-" + o.short + ",--" + o.name + "}" + zshQuoted(help)
	case o.short == "":
		return zshQuoted("*--" + o.name + "=" + help + value)
	}
	return zshQuoted("*") + "{-" + o.short + "+,--" + o.name + "=}" + zshQuoted(help+value)
}

// zshAction returns what completes a value.
func zshAction(takes kind, choices []string, list bool) string {
	switch {
	case takes == file:
		return "_files"
	case takes == folder:
		return "_path_files -/"
	case takes == choice && list:
		return "_values -s , value " + strings.Join(choices, " ")
	case takes == choice:
		return "(" + strings.Join(choices, " ") + ")"
	}
	return " " // a text that nothing completes
}

// zshQuoted quotes a word.
func zshQuoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
