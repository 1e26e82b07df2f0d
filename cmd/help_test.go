package cmd

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"entropipe/cmd/config"
)

// grammar returns the nodes of the command line: the program and every command.
func grammar(t *testing.T) (*kong.Kong, []*kong.Node) {
	t.Helper()
	parser, err := config.NewParser(&cli{}, nil)
	if err != nil {
		t.Fatal(err) // also for a help line that belongs to no flag
	}
	nodes := []*kong.Node{parser.Model.Node}
	for i := 0; i < len(nodes); i++ {
		nodes = append(nodes, nodes[i].Children...)
	}
	if len(nodes) < 15 {
		t.Fatalf("only %d commands", len(nodes))
	}
	return parser, nodes
}

// described returns what the program says of a command and of what stands below it.
func described(node *kong.Node) string {
	var b strings.Builder
	line := func(v *kong.Value) {
		fmt.Fprintf(&b, "%s %q %q %q %v %v\n", v.Name, v.Help, v.Default, v.Enum, v.Required, v.Target.Type())
	}
	fmt.Fprintf(&b, "%s: %q\n", node.FullPath(), node.Help)
	for _, f := range node.Flags {
		line(f.Value)
		fmt.Fprintf(&b, "  %q %q %c %v\n", f.PlaceHolder, f.Envs, f.Short, f.Hidden)
	}
	for _, argument := range node.Positional {
		line(argument)
	}
	for _, child := range node.Children {
		b.WriteString(described(child))
	}
	return b.String()
}

// A start builds one command only, and one source of it. What it says of them is what the
// whole grammar says.
func TestCommandAloneIsAsAmongAll(t *testing.T) {
	whole, _ := grammar(t)
	alone := func(args ...string) *kong.Application {
		parser, err := config.NewParserOf(args, &cli{}, nil)
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		if root := len(parser.Model.Flags); root != len(whole.Model.Flags) {
			t.Errorf("%q: %d flags of all commands, want %d", args, root, len(whole.Model.Flags))
		}
		return parser.Model
	}
	same := func(got, want *kong.Node) {
		t.Helper()
		if got, want := described(got), described(want); got != want {
			t.Errorf("alone:\n%s\nwant\n%s", got, want)
		}
	}
	sources := 0
	for _, command := range whole.Model.Children {
		model := alone(command.Name, "--help")
		same(config.CommandNamed(model.Node, command.Name), command)
		want := 1
		switch command.Name { // they speak of others
		case "completion", "man":
			want = len(whole.Model.Children)
		case "validate":
			want = 3
			for _, of := range []string{"run", "backfill"} {
				same(config.FileOf(model.Node, of), config.FileOf(whole.Model.Node, of))
			}
		}
		if n := len(model.Children); n != want {
			t.Errorf("%s: %d commands are built, want %d", command.Name, n, want)
		}
		for _, source := range command.Children {
			sources++
			built := config.CommandNamed(alone(command.Name, source.Name, "--help").Node, command.Name)
			if len(built.Children) != 1 {
				t.Errorf("%s: %d sources are built, want 1", source.FullPath(), len(built.Children))
			}
			same(built.Children[0], source)
		}
		if command.DefaultCmd != nil {
			built := config.CommandNamed(alone(command.Name, "folder").Node, command.Name)
			if built.DefaultCmd == nil || len(built.Children) != 1 {
				t.Fatalf("%s: %d sources are built, want the default one", command.Name, len(built.Children))
			}
			same(built.DefaultCmd, command.DefaultCmd)
		}
	}
	if sources < 30 {
		t.Errorf("%d sources", sources)
	}
}

// switchVerbs are the words that lines of flags without a value begin with.
var switchVerbs = []string{"Check", "Connect", "Continue", "Cut", "Explain", "Move", "Print", "Send", "Serve",
	"Show", "Skip", "Start", "Stay", "Stop", "Take", "Write"}

// Each line says with its first word whether the flag takes a value: a flag that does
// begins with the noun of its value, a flag that does not with a verb.
func TestHelpLinesOfFlags(t *testing.T) {
	_, nodes := grammar(t)
	for _, node := range nodes {
		for _, flag := range node.Flags {
			first, _, _ := strings.Cut(flag.Help, " ")
			if verb := slices.Contains(switchVerbs, first); verb != flag.IsBool() {
				t.Errorf("%s --%s: %q begins with a verb: %v, takes no value: %v", node.FullPath(), flag.Name,
					flag.Help, verb, flag.IsBool())
			}
			checkHelpLine(t, node.FullPath()+" --"+flag.Name, flag.Help)
		}
		for _, argument := range node.Positional {
			checkHelpLine(t, node.FullPath()+" "+argument.Name, argument.Help)
		}
		if node.Parent != nil {
			checkHelpLine(t, node.FullPath(), node.Help)
		}
	}
}

// notFirst are words that open a fragment instead of naming a thing or an action.
var notFirst = regexp.MustCompile(`^(Of|That|Who|What|When|Where|How|With|Else|Those|Its?|The|An?) `)

func checkHelpLine(t *testing.T, name, line string) {
	t.Helper()
	switch {
	case line == "":
		t.Errorf("%s has no help line", name)
	case utf8.RuneCountInString(line) > 100 || strings.ContainsAny(line, "\n\t"):
		t.Errorf("%s: %q is longer than a line of 100 characters", name, line)
	case !strings.HasSuffix(line, ".") || strings.HasSuffix(line, "..") || line[0] < 'A' || line[0] > 'Z':
		t.Errorf("%s: %q is not a sentence from a capital to a full stop", name, line)
	case notFirst.MatchString(line):
		t.Errorf("%s: %q begins neither with a noun nor with a verb", name, line)
	}
}

// --help fits a page of 80 lines and columns, but for examples, which are not wrapped;
// --help-all shows every flag; and --help says how many it leaves out.
func TestHelpFitsAPage(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	_, nodes := grammar(t)
	left := 0
	for _, node := range nodes {
		words := strings.Fields(node.FullPath())[1:]
		brief, all := helpOf(t, append(words, "--help")), helpOf(t, append(words, "--help-all"))
		if n := strings.Count(brief, "\n"); n > 80 {
			t.Errorf("%s --help has %d lines", node.FullPath(), n)
		}
		for line := range strings.Lines(brief + all) {
			if utf8.RuneCountInString(line) > 81 && !strings.HasPrefix(strings.TrimSpace(line), "entropipe ") {
				t.Errorf("%s --help: %q is longer than 80 columns", node.FullPath(), line)
			}
		}
		more, inBrief, inAll := 0, flagsShown(brief), flagsShown(all)
		for _, flags := range node.AllFlags(true) {
			for _, flag := range flags {
				if !inAll[flag.Name] {
					t.Errorf("%s --help-all does not show --%s", node.FullPath(), flag.Name)
				}
				if !inBrief[flag.Name] {
					more++
				}
			}
		}
		found := regexp.MustCompile(`(?m)^(\d+) more flags?: (.*) --help-all$`).FindStringSubmatch(brief)
		switch {
		case more == 0 && found != nil, more > 0 && found == nil:
			t.Errorf("%s --help leaves out %d flags and says %q", node.FullPath(), more, found)
		case more > 0 && (found[1] != strconv.Itoa(more) || found[2] != node.FullPath()):
			t.Errorf("%s --help leaves out %d flags and says %q", node.FullPath(), more, found[0])
		}
		left += more
	}
	if left == 0 {
		t.Error("no flag has the tag more")
	}
}

// flagsShown returns the flags that have a line in a help.
func flagsShown(help string) map[string]bool {
	shown, line := map[string]bool{}, regexp.MustCompile(`(?m)^ +(?:-\w, )?--(?:\[no-\])?([\w-]+)`)
	for _, found := range line.FindAllStringSubmatch(help, -1) {
		shown[found[1]] = true
	}
	return shown
}

func helpOf(t *testing.T, args []string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if status := Main(args, &stdout, &stderr); status != 0 || stderr.Len() > 0 {
		t.Fatalf("%q: status %d, %s", args, status, stderr.String())
	}
	return stdout.String()
}

// Each example of a help is a command line that the program takes: its flags exist, go together,
// and have values of their kinds.
func TestExamplesOfHelpAreCommandLines(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"production.yaml", "archive.yaml"} {
		if err := os.WriteFile(name, []byte("ops: hull2d\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	_, nodes := grammar(t)
	examples := 0
	for _, node := range nodes {
		help := helpOf(t, append(strings.Fields(node.FullPath())[1:], "--help"))
		_, after, found := strings.Cut(help, "\nExamples:\n")
		if !found {
			continue
		}
		for _, args := range examplesIn(after) {
			examples++
			parser, err := config.NewParserOf(args, &cli{}, &config.Settings{
				Lookup: func(string) (string, bool) { return "", false }, Grammar: func() any { return &cli{} }})
			if err == nil {
				_, err = config.Parse(parser, args)
			}
			if err != nil {
				t.Errorf("%s --help: entropipe %s: %v", node.FullPath(), strings.Join(args, " "), err)
			}
		}
	}
	if examples < 150 {
		t.Errorf("only %d examples", examples)
	}
}

// examplesIn returns the arguments of the command lines of entropipe in the lines that a text
// begins with indented: what stands between the program's name and a comment, a pipe, a
// redirection or the line's end. A line that ends with a backslash goes on.
func examplesIn(text string) (all [][]string) {
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "    ") {
			break
		}
		var args []string
		within := false
		for _, word := range strings.Fields(line) {
			switch {
			case word == "entropipe":
				within = true
			case strings.ContainsAny(word[:1], "#|>&"):
				if within {
					all = append(all, args)
				}
				args, within = nil, false
			case within:
				args = append(args, strings.Trim(word, `'"`))
			}
		}
		if within {
			all = append(all, args)
		}
	}
	return all
}
