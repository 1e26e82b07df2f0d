package completion

import (
	"fmt"
	"strings"
)

// fishEngine finds the command of a line. Only flags of the whole program stand before a
// command, and a command of produce follows it at once.
const fishEngine = `# fish completion for entropipe, made by: entropipe completion fish

# __entropipe_words: the words before the cursor that call a command, such as "produce kitti".
function __entropipe_words
    set -l found
    set -l skip
    for word in (commandline -opc)[2..-1]
        if test -n "$skip"
            set skip
            continue
        end
        switch $word
            case %s
                set skip yes
            case '-*'
            case '*'
                set -l named (string join ' ' -- $found $word)
                if contains -- "$named" $__entropipe_commands
                    set found $found $word
                else
                    break
                end
        end
    end
    string join ' ' -- $found
end

# __entropipe_at WORDS: whether the line calls this command. Without words: none yet.
function __entropipe_at
    set -l words (__entropipe_words)
    test "$words" = "$argv"
end

# __entropipe_list CHOICE...: lists that begin as the token does, each choice once.
function __entropipe_list
    set -l token (string replace -r -- '^--[^=]*=' '' (commandline -ct))
    set -l before (string match -r -- '^.*,' "$token")
    for choice in $argv
        if not contains -- $choice (string split -- , "$before")
            echo "$before$choice"
        end
    end
end

complete -c entropipe -f
`

// fish returns the completions for fish.
func fish(program *verb) string {
	var b strings.Builder
	var valued []string
	for _, o := range program.options {
		if o.takes != nothing {
			valued = append(valued, "--"+o.name)
		}
	}
	fmt.Fprintf(&b, fishEngine, strings.Join(valued, " "))
	b.WriteString("set -g __entropipe_commands")
	for _, v := range program.all()[1:] {
		b.WriteString(" " + fishQuoted(strings.Join(v.words, " ")))
	}
	b.WriteString("\n")
	for _, v := range program.all() {
		at := fishQuoted(strings.TrimSpace("__entropipe_at " + strings.Join(v.words, " ")))
		b.WriteString("\n")
		for _, child := range v.children {
			fmt.Fprintf(&b, "complete -c entropipe -n %s -a %s -d %s\n", at, child.name, fishQuoted(child.help))
		}
		if value := fishValue(v.takes, v.choices, false); value != "" && value != " -x" {
			fmt.Fprintf(&b, "complete -c entropipe -n %s%s\n", at, strings.Replace(
				strings.Replace(value, " -r -F", " -F", 1), " -x -a", " -a", 1))
		}
		for _, o := range v.options {
			short := ""
			if o.short != "" {
				short = " -s " + o.short
			}
			fmt.Fprintf(&b, "complete -c entropipe -n %s%s -l %s%s -d %s\n", at, short, o.name,
				fishValue(o.takes, o.choices, o.list), fishQuoted(o.help))
		}
	}
	return b.String()
}

// fishValue returns the options of complete for a value.
func fishValue(takes kind, choices []string, list bool) string {
	switch {
	case takes == text:
		return " -x"
	case takes == file:
		return " -r -F"
	case takes == folder:
		return " -x -a '(__fish_complete_directories (commandline -ct | string replace -r -- \"^--[^=]*=\" \"\"))'"
	case takes == choice && list:
		return " -x -a " + fishQuoted("(__entropipe_list "+strings.Join(choices, " ")+")")
	case takes == choice:
		return " -x -a " + fishQuoted(strings.Join(choices, " "))
	}
	return ""
}

// fishQuoted quotes a word.
func fishQuoted(word string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(word) + "'"
}
