package cmd

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"entropipe/cmd/config"
)

// typed is a command of a page, as a shell would hand it to the program.
type typed struct {
	page  string
	text  string
	args  []string
	whole bool // a line of its own; else a sentence may leave arguments out
}

// pagesForUsers are the Markdown files whose commands users type.
func pagesForUsers(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, pattern := range []string{"README.md", "CHANGELOG.md", "docs/*.md", "schemas/docs/*.md", "models/*.md"} {
		files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(pattern)))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no pages; %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			pages[filepath.ToSlash(file[len("..")+1:])] = string(text)
		}
	}
	return pages
}

var (
	programName = regexp.MustCompile(`^(?:\./entropipe|entropipe|go run \.) +(.*)$`)
	codeSpan    = regexp.MustCompile("`([^`\n]+)`")
	shellEnd    = regexp.MustCompile(` +(?:#|&|\||>|&&).*$|;.*$`)
	incomplete  = regexp.MustCompile(`^(?:expected |missing flags: )`)
	yamlBlock   = regexp.MustCompile("(?s)```yaml\n(.*?)```")
	flagFamily  = regexp.MustCompile(`--[a-z-]*…`)
	flagOfSpan  = regexp.MustCompile(`(?:^|[ (])--([a-z][a-z0-9-]*[a-z0-9])`)
)

// commandsOf finds the commands of a page: lines of code blocks, and code within a
// sentence that has a command's name and more.
func commandsOf(page, text string) (found []typed) {
	add := func(code string, whole bool) {
		for _, part := range strings.Split(code, "; ") {
			m := programName.FindStringSubmatch(strings.TrimSpace(part))
			if m == nil || strings.Contains(m[1], "COMMAND") {
				continue
			}
			line := strings.ReplaceAll(shellEnd.ReplaceAllString(m[1], ""), "…", "")
			found = append(found, typed{page, part, strings.Fields(line), whole})
		}
	}
	fenced := ""
	for line := range strings.Lines(text) {
		switch language, fence := strings.CutPrefix(strings.TrimSpace(line), "```"); {
		case fence && fenced == "":
			fenced = "``` " + language
		case fence:
			fenced = ""
		case fenced == "``` sh" || fenced == "" && strings.HasPrefix(line, "    "):
			add(line, true)
		case fenced == "":
			for _, span := range codeSpan.FindAllStringSubmatch(line, -1) {
				add(span[1], false)
			}
		}
	}
	return found
}

// No page names a command, a flag or a value that the grammar does not have.
func TestCommandsOfPages(t *testing.T) {
	pages := pagesForUsers(t)
	t.Chdir(t.TempDir())
	configuration := yamlBlock.FindStringSubmatch(pages["docs/operations.md"])
	if configuration == nil {
		t.Fatal("docs/operations.md has no configuration")
	}
	err := os.WriteFile("production.yaml", []byte(configuration[1]), 0o666)
	err = errors.Join(err, os.WriteFile("entropipe.yaml", []byte(configuration[1]), 0o666))
	if err := errors.Join(err, os.Mkdir("scans", 0o777)); err != nil {
		t.Fatal(err)
	}
	commands := 0
	seen := map[string]error{} // a parser takes long to make
	for page, text := range pages {
		for _, c := range commandsOf(page, text) {
			commands++
			key := strings.Join(c.args, "\x00")
			err, known := seen[key]
			if !known {
				err = parsed(t, c.args)
				seen[key] = err
			}
			if err != nil && (c.whole || !incomplete.MatchString(err.Error())) {
				t.Errorf("%s: %s: %v", c.page, c.text, err)
			}
		}
	}
	if commands < 60 {
		t.Errorf("%d commands found: the patterns miss them", commands)
	}
}

func TestWrongCommandsOfPagesAreFound(t *testing.T) {
	const page = "    entropipe rum\n    entropipe run --opps hull2d\n" +
		"```sh\nentropipe run --stage of # no mode\n./entropipe verify &\n```\n`go run . run --memory big`\n"
	found := commandsOf("page", page)
	if len(found) != 5 {
		t.Errorf("found %+v, want 5 commands", found)
	}
	for _, c := range found {
		if parsed(t, c.args) == nil {
			t.Errorf("%q is taken for a command", c.text)
		}
	}
}

// parsed returns what the grammar finds wrong with a command line. Nothing runs.
func parsed(t *testing.T, args []string) error {
	t.Helper()
	var c cli
	helped := false
	none := func(string) (string, bool) { return "", false }
	parser, err := config.NewParserOf(args, &c, &config.Settings{Lookup: none},
		kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) { helped = true }))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = config.Parse(parser, args); helped {
		return nil
	}
	return err
}

// No page names a flag within a sentence that no command has.
func TestFlagsOfPages(t *testing.T) {
	var c cli
	parser, err := config.NewParser(&c, nil)
	if err != nil {
		t.Fatal(err)
	}
	known := []string{"help"}
	kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			known = append(known, flag.Name)
		}
		return next(nil)
	})
	named := 0
	for page, text := range pagesForUsers(t) {
		if page == "docs/register.md" {
			continue // a program of its own has these flags
		}
		for _, span := range codeSpan.FindAllStringSubmatch(text, -1) {
			if !strings.HasPrefix(span[1], "--") && programName.FindString(span[1]) == "" {
				continue // another program's
			}
			for _, flag := range flagOfSpan.FindAllStringSubmatch(flagFamily.ReplaceAllString(span[1], ""), -1) {
				named++
				if !slices.Contains(known, flag[1]) {
					t.Errorf("%s names --%s, which no command has", page, flag[1])
				}
			}
		}
	}
	if named < 100 {
		t.Errorf("%d flags found: the pattern misses them", named)
	}
}
