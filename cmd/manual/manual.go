// Package manual is the command man: it prints the manual page of the program, made from
// the grammar of the command line, in the man macros of roff.
package manual

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"entropipe/cmd/command"
	"entropipe/cmd/config"
)

// Command is the command man.
type Command struct{}

// Run prints the page.
func (Command) Run(e *command.Env) error {
	_, err := io.WriteString(e.Stdout, Page(e.Parser.Model.Node, command.Version, command.Built().Date()))
	return err
}

// sharedGroup is the group of flags that many commands have; the page lists them once.
const sharedGroup = "Brokers"

// Page returns the manual page of a grammar. date is the day of the release, "" if it is
// unknown.
func Page(program *kong.Node, version, date string) string {
	p := &page{}
	p.line(`.\" Made by: entropipe man`)
	p.line(".TH ENTROPIPE 1 " + `"` + date + `" ` + quoted("entropipe "+version) + ` "User Commands"`)
	p.section("NAME")
	name, what, _ := strings.Cut(program.Help, ": ")
	p.line("entropipe \\- " + escaped(firstLower(name)))
	p.section("SYNOPSIS")
	p.line(".B entropipe\n.I command\n.RI [ flags ]\n.RI [ arguments ]")
	p.section("DESCRIPTION")
	p.prose(name + ": " + what)
	p.paragraph()
	p.prose("Every flag is also a variable of the environment, ENTROPIPE_ and its name in capitals with _ for -. " +
		"Flags of run are also keys of its configuration file. A flag beats the variable, the variable the file, " +
		"the file the default.")
	p.section("COMMANDS")
	for _, node := range program.Children {
		if !node.Hidden {
			p.command(node, nil)
		}
	}
	p.section("FLAGS OF ALL COMMANDS")
	p.flags(program.Flags)
	p.section("FLAGS OF BROKERS")
	shared, users := sharedFlags(program)
	p.prose("These commands have them: " + strings.Join(users, ", ") + ".")
	p.flags(shared)
	p.statuses()
	p.section("SEE ALSO")
	p.prose("entropipe COMMAND --help-all; the folder docs of the sources.")
	return p.text.String()
}

// page is a page that grows.
type page struct{ text strings.Builder }

func (p *page) line(text string)     { p.text.WriteString(text + "\n") }
func (p *page) prose(text string)    { p.line(wrapped(escaped(text))) }
func (p *page) section(title string) { p.line(".SH " + quoted(title)) }
func (p *page) paragraph()           { p.line(".PP") }

// command describes a command and those below it. known are flags that the page has
// already.
func (p *page) command(node *kong.Node, known []string) {
	p.line(".SS " + quoted(strings.TrimPrefix(node.Summary(), "entropipe ")))
	p.prose(node.Help)
	p.detail(node.Detail)
	for _, argument := range node.Positional {
		p.line(".TP\n.I " + escaped(argument.Summary()))
		p.prose(config.HelpText(argument))
	}
	if common := commonFlags(node); len(common) > 0 {
		p.paragraph()
		p.line("Flags of all sources:")
		p.flags(common)
		for _, flag := range common {
			known = append(known, signature(flag))
		}
	}
	var own []*kong.Flag
	for _, flag := range node.Flags {
		if !slices.Contains(known, signature(flag)) && !isShared(flag) {
			own = append(own, flag)
		}
	}
	p.flags(own)
	for _, child := range node.Children {
		if !child.Hidden {
			p.command(child, known)
		}
	}
}

// detail writes the longer help of a command: paragraphs, and lines that are indented, as
// examples are, as they stand.
func (p *page) detail(text string) {
	literal := false
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		indented := strings.HasPrefix(line, "  ")
		switch {
		case indented && !literal:
			p.line(".PP\n.RS 4\n.nf")
		case !indented && literal:
			p.line(".fi\n.RE")
			p.paragraph()
		case i == 0 && text != "", line == "" && i > 0 && !strings.HasPrefix(lines[i-1], "  "):
			p.paragraph()
		}
		literal = indented
		if indented {
			p.line(hyphens(line[2:]))
		} else if line != "" {
			p.prose(line)
		}
	}
	if literal {
		p.line(".fi\n.RE")
	}
}

// flags lists flags with their help.
func (p *page) flags(flags []*kong.Flag) {
	for _, flag := range flags {
		if flag.Hidden {
			continue
		}
		text := "--" + flag.Name
		if flag.Short != 0 {
			text = "-" + string(flag.Short) + ", " + text
		}
		if !flag.IsBool() {
			text += "=" + flag.FormatPlaceHolder()
		}
		p.line(".TP\n.B " + hyphens(text))
		p.prose(config.HelpText(flag.Value))
	}
}

// statuses lists the exit statuses.
func (p *page) statuses() {
	p.section("EXIT STATUS")
	for _, s := range command.ExitStatuses {
		p.line(fmt.Sprintf(".TP\n.B %d", s.Status))
		p.prose(s.When)
	}
}

// commonFlags returns the flags that all commands below node have, but the shared ones.
func commonFlags(node *kong.Node) (common []*kong.Flag) {
	if len(node.Children) == 0 {
		return nil
	}
	for _, flag := range node.Children[0].Flags {
		everywhere := !isShared(flag)
		for _, child := range node.Children[1:] {
			everywhere = everywhere && slices.ContainsFunc(child.Flags, func(other *kong.Flag) bool {
				return signature(other) == signature(flag)
			})
		}
		if everywhere {
			common = append(common, flag)
		}
	}
	return common
}

// signature is equal for flags that a page describes with the same words. Defaults do not
// matter: those of --topic differ between sources.
func signature(flag *kong.Flag) string { return flag.Name + "\n" + flag.Help + "\n" + flag.Enum }

func isShared(flag *kong.Flag) bool { return flag.Group != nil && flag.Group.Title == sharedGroup }

// sharedFlags returns the flags of the shared group, and the commands that have them.
func sharedFlags(program *kong.Node) (shared []*kong.Flag, users []string) {
	for _, node := range program.Children {
		of := node
		if node.DefaultCmd != nil {
			of = node.DefaultCmd
		}
		var found []*kong.Flag
		for _, flag := range of.Flags {
			if isShared(flag) {
				found = append(found, flag)
			}
		}
		if len(found) > 0 {
			shared, users = found, append(users, node.Name)
		}
	}
	return shared, users
}
