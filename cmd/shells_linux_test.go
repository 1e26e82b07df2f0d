package cmd

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"entropipe/cmd/completion"
	"entropipe/cmd/terminaltest"
)

// inShells are lines that a person types up to the Tab key, in a folder with the files
// "my config.yaml", "notes.txt" and the folders "my output" and "models". want is the
// line afterwards; "" where several words fit, which are among offered. Words of never
// are not offered.
var inShells = []struct {
	typed, want    string
	offered, never []string
}{
	{typed: "entropipe ver", offered: []string{"verify", "version"}, never: []string{"run", "notes.txt"}},
	{typed: "entropipe verif", want: "entropipe verify "},
	{typed: "entropipe --log-level d", want: "entropipe --log-level debug "},
	{typed: "entropipe --log-level debug expor", want: "entropipe --log-level debug export "},
	{typed: "entropipe train-", offered: []string{"train-lm", "train-vit"}, never: []string{"freeze"}},
	{typed: "entropipe produce kit", want: "entropipe produce kitti "},
	{typed: "entropipe produce kitti --epo", want: "entropipe produce kitti --epoch"},
	{typed: "entropipe produce not", want: "entropipe produce notes.txt "},
	{typed: "entropipe run --tab", want: "entropipe run --tables"},
	{typed: "entropipe run --roll", offered: []string{"--roll-age", "--roll-bytes", "--roll-records"},
		never: []string{"--tables"}},
	{typed: "entropipe run --tables ", offered: []string{"frames", "hulls3d", "triangles", "entropy"},
		never: []string{"notes.txt", "verify"}},
	{typed: "entropipe run --tables tri", want: "entropipe run --tables triangles"},
	{typed: "entropipe run --tables=tri", want: "entropipe run --tables=triangles"},
	{typed: "entropipe run --tables maxima,tri", want: "entropipe run --tables maxima,triangles"},
	{typed: "entropipe run --tables nothing", want: "entropipe run --tables nothing"},
	{typed: "entropipe run --stage pert", want: "entropipe run --stage perturb "},
	{typed: "entropipe run --until-end --from lat", want: "entropipe run --until-end --from latest "},
	{typed: "entropipe run not", want: "entropipe run notes.txt "},
	{typed: "entropipe run my\\ con", want: "entropipe run my\\ config.yaml "},
	{typed: "entropipe run --out my\\ ou", want: "entropipe run --out my\\ output/"},
	{typed: "entropipe run --out not", want: "entropipe run --out not"},
	{typed: "entropipe run --tls-ca=not", want: "entropipe run --tls-ca=notes.txt "},
	{typed: "entropipe export --as ", offered: []string{"svg", "mcap", "onnx", "flashinfer"},
		never: []string{"notes.txt"}},
	{typed: "entropipe export --as fle", want: "entropipe export --as flex "},
	{typed: "entropipe export models --as png -", offered: []string{"--frame-id", "--layers"}},
	{typed: "entropipe export models -o not", want: "entropipe export models -o notes.txt "},
	{typed: "entropipe completion f", want: "entropipe completion fish "},
}

func TestCompletionsInShells(t *testing.T) {
	_, nodes := grammar(t)
	for name, start := range map[string]func(*testing.T, string) tab{"bash": bash, "zsh": zsh, "fish": fish} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(name); err != nil {
				if os.Getenv("ENTROPIPE_SHELLS") != "" {
					t.Fatal(err)
				}
				t.Skipf("no %s here", name)
			}
			dir := t.TempDir()
			for _, folder := range []string{"my output", "models", "functions"} {
				if err := os.Mkdir(filepath.Join(dir, folder), 0o777); err != nil {
					t.Fatal(err)
				}
			}
			script := completion.Script(nodes[0], name)
			for file, text := range map[string]string{"my config.yaml": "", "notes.txt": "",
				"functions/_entropipe": script} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			press := start(t, dir)
			for _, c := range inShells {
				line, shown := press(c.typed)
				if c.want != "" && strings.TrimRight(line, " ,=") != strings.TrimRight(c.want, " ") {
					t.Errorf("%s: %q becomes %q, want %q; shown: %q", name, c.typed, line, c.want, shown)
				}
				for _, word := range c.offered {
					if !holdsWord(shown, word) {
						t.Errorf("%s: %q does not offer %s: %q", name, c.typed, word, shown)
					}
				}
				for _, word := range c.never {
					if holdsWord(shown, word) {
						t.Errorf("%s: %q offers %s: %q", name, c.typed, word, shown)
					}
				}
			}
		})
	}
}

func holdsWord(text, word string) bool {
	return regexp.MustCompile(`(^|[\s,])` + regexp.QuoteMeta(word) + `(/|=|\s|$)`).MatchString(text)
}

// tab types a line and the Tab key, and returns the line afterwards and what the shell
// showed.
type tab func(typed string) (line, shown string)

func bash(t *testing.T, dir string) tab {
	return onTerminal(t, dir, `
set +o history
bind 'set bell-style none'
bind 'set page-completions off'
bind 'set completion-query-items 0'
bind 'set show-all-if-ambiguous on'
bind 'set enable-bracketed-paste off'
marked() { printf '\nLINE<%s>END\n' "$READLINE_LINE"; READLINE_LINE='' READLINE_POINT=0; }
bind -x '"\C-g": marked'
source functions/_entropipe
PS1='' PS2=''
printf 'REA''DY\n'
`, "bash", "--norc", "--noprofile", "-i")
}

func zsh(t *testing.T, dir string) tab {
	return onTerminal(t, dir, `
unsetopt beep prompt_cr prompt_sp auto_menu list_ambiguous
unset zle_bracketed_paste
fpath=($PWD/functions $fpath)
autoload -Uz compinit; compinit -u -D
zstyle ':completion:*' list-prompt ''
LISTMAX=1000000
marked() { print; print -r -- "LINE<$BUFFER>END"; BUFFER='' }
zle -N marked; bindkey '^G' marked
PS1='' PS2=''
print -r -- REA''DY
`, "zsh", "-f", "-i")
}

// fish is asked for the candidates without a terminal. A single candidate becomes the
// line's last word.
func fish(t *testing.T, dir string) tab {
	return func(typed string) (line, shown string) {
		c := exec.CommandContext(t.Context(), "fish", "--no-config", "-c",
			"source functions/_entropipe; complete -C $argv[1]", typed)
		c.Dir = dir
		c.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir, "LANG=C.UTF-8")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v: %s", typed, err, out)
		}
		var words []string
		for candidate := range strings.Lines(string(out)) {
			word, _, _ := strings.Cut(strings.TrimRight(candidate, "\n"), "\t")
			words = append(words, word)
		}
		line = typed
		if len(words) == 1 {
			at := strings.LastIndex(strings.ReplaceAll(typed, `\ `, "__"), " ") + 1
			line = typed[:at] + strings.ReplaceAll(words[0], " ", `\ `)
		}
		return line, strings.Join(words, " ")
	}
}

// onTerminal starts a shell on a terminal, which ends with the test. The setup binds ^G to
// a command that prints the line between marks and empties it.
func onTerminal(t *testing.T, dir, setup string, shell ...string) tab {
	t.Helper()
	here, there := terminaltest.Open(t, 200)
	c := exec.Command(shell[0], shell[1:]...)
	c.Dir, c.Stdin, c.Stdout, c.Stderr = dir, there, there, there
	c.Env = append(os.Environ(), "HOME="+dir, "ZDOTDIR="+dir, "TERM=dumb", "LANG=C.UTF-8", "LC_ALL=C.UTF-8",
		"INPUTRC=/dev/null")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		c.Wait()
	})
	send := func(text string) {
		if _, err := here.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "setup"), []byte(setup), 0o666); err != nil {
		t.Fatal(err)
	}
	send(". ./setup\n")
	until(t, here, "READY")
	return func(typed string) (line, shown string) {
		send(typed + "\t\a")
		shown, line, _ = strings.Cut(until(t, here, ">END"), "LINE<")
		line, _, _ = strings.Cut(line, ">END")
		if at := strings.LastIndex(shown, typed+"\t"); at >= 0 { // the terminal's echo of what was typed ahead
			shown = shown[at+len(typed):]
		}
		return line, shown
	}
}

// until reads until the text ends with mark or has it on a line.
func until(t *testing.T, from *os.File, mark string) string {
	t.Helper()
	var text bytes.Buffer
	buffer := make([]byte, 4096)
	timer := time.AfterFunc(time.Minute, func() { from.Close() })
	defer timer.Stop()
	for !bytes.Contains(text.Bytes(), []byte(mark)) {
		n, err := from.Read(buffer)
		text.Write(buffer[:n])
		if err != nil && !errors.Is(err, syscall.EINTR) {
			t.Fatalf("no %q: %v: %q", mark, err, text.String())
		}
	}
	return text.String()
}
