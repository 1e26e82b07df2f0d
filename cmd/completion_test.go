package cmd

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"entropipe/cmd/command"
	"entropipe/cmd/completion"
	"entropipe/cmd/manual"
)

// Every command, every flag and every allowed value is in the completions of each shell.
func TestCompletionsAreWhole(t *testing.T) {
	_, nodes := grammar(t)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		words := strings.FieldsFunc(completion.Script(nodes[0], shell),
			func(r rune) bool { return strings.ContainsRune(" '\"()[]{}=:*|\n", r) })
		missing := func(word string) bool {
			return !slices.Contains(words, word) && !slices.Contains(words, strings.TrimLeft(word, "-"))
		}
		for _, node := range nodes {
			if missing(node.Name) {
				t.Errorf("%s: no command %s", shell, node.Name)
			}
			for _, flag := range node.Flags {
				if missing("--" + flag.Name) {
					t.Errorf("%s: %s has no --%s", shell, node.FullPath(), flag.Name)
				}
				for _, value := range flag.EnumSlice() {
					if flag.Enum != "" && missing(value) {
						t.Errorf("%s: %s --%s has no value %s", shell, node.FullPath(), flag.Name, value)
					}
				}
			}
		}
	}
}

// The completions are words of the shells.
func TestCompletionsParse(t *testing.T) {
	_, nodes := grammar(t)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if _, err := exec.LookPath(shell); err != nil {
			t.Logf("no %s here", shell)
			continue
		}
		file := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(file, []byte(completion.Script(nodes[0], shell)), 0o666); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(shell, "-n", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
}

// The manual page has every command, flag and example of the help.
func TestManualIsWhole(t *testing.T) {
	_, nodes := grammar(t)
	source := manual.Page(nodes[0], "1.2.3", "2026-01-02")
	text := strings.NewReplacer(`\-`, "-", `\(aq`, "'", `\(ti`, "~", `\e`, `\`).Replace(source)
	text = regexp.MustCompile(`\\\[u([0-9A-F]+)\]`).ReplaceAllStringFunc(text, func(name string) string {
		code, err := strconv.ParseInt(name[len(`\[u`):len(name)-1], 16, 32)
		if err != nil {
			t.Error(err)
		}
		return string(rune(code))
	})
	shown := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\.B (?:-., )?--([\w-]+)(?:=|$)`).FindAllStringSubmatch(text, -1) {
		shown[m[1]] = true
	}
	for _, node := range nodes[1:] {
		if !strings.Contains(text, `.SS "`+strings.TrimPrefix(node.FullPath(), "entropipe ")) {
			t.Errorf("no %s", node.FullPath())
		}
		for _, flag := range node.Flags {
			if !shown[flag.Name] {
				t.Errorf("%s: no --%s", node.FullPath(), flag.Name)
			}
		}
		for line := range strings.Lines(node.Detail) {
			if example, found := strings.CutPrefix(line, "  entropipe "); found &&
				!strings.Contains(text, "\nentropipe "+example) {
				t.Errorf("%s: no example %q", node.FullPath(), example)
			}
		}
	}
	opening := regexp.MustCompile(`^['.]`)
	request := regexp.MustCompile(`^\.(\\"|TH|SH|SS|PP|TP|B|I|RI|RS|RE|nf|fi)(\s|$)`)
	for line := range strings.Lines(source) {
		if opening.MatchString(line) && !request.MatchString(line) {
			t.Errorf("a line of text that roff takes for a request: %q", line)
		}
	}
}

// The programs that show manual pages find nothing to complain about.
func TestManualIsRoff(t *testing.T) {
	_, nodes := grammar(t)
	file := filepath.Join(t.TempDir(), "entropipe.1")
	page := manual.Page(nodes[0], command.Version, "2026-01-02")
	if err := os.WriteFile(file, []byte(page), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{{"mandoc", "-T", "lint", "-W", "warning", file},
		{"man", "--warnings", "-E", "UTF-8", "-l", file}} {
		if _, err := exec.LookPath(words[0]); err != nil {
			if os.Getenv("ENTROPIPE_SHELLS") != "" {
				t.Fatal(err)
			}
			t.Logf("no %s here", words[0])
			continue
		}
		c := exec.Command(words[0], words[1:]...)
		c.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "MANPAGER=cat", "MANWIDTH=80")
		var shown, complaints bytes.Buffer
		c.Stdout, c.Stderr = &shown, &complaints
		if words[0] == "mandoc" {
			c.Stdout = &complaints
		}
		if err := c.Run(); err != nil || complaints.Len() > 0 {
			t.Errorf("%s: %v: %s", words[0], err, complaints.String())
		}
		if words[0] == "man" && !strings.Contains(shown.String(), "entropipe run --until-end") {
			t.Errorf("man shows no example of run: %.300s", shown.String())
		}
	}
}
