package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"entropipe/sparse/hf"
)

// The README's commands are run as they are typed there, by a shell, in the order of the
// page, in a folder that has what the page takes for given: a drive, a text and a model.
// "go run ." and "./entropipe" are the program under test; of its environment only
// ports differ, and demo is asked for a small scene.
//
// The text block that follows a block of commands is what these print, but for what
// varies: a number stands for any number, a unit of bytes for any, blanks for any
// blanks, and a line with … alone for any lines.

// goStub plays the Go command: go run . is the program, go build . has been done, and a
// test does not run all tests again.
const goStub = `#!/bin/sh
case "$1 $2" in
"run .") shift 2; exec ./entropipe "$@" ;;
"build .") test -x ./entropipe ;;
"test ./...") echo "go test ./..." >>typed ;;
*) echo "the README types: go $*" >&2; exit 1 ;;
esac
`

// programStub plays ./entropipe. A broker takes a free port; the commands that need one
// wait until its address is known.
const programStub = `#!/bin/sh
echo "$*" >>typed
case "$1" in
broker)
	echo $$ >broker.pid
	exec entropipe "$@" --listen 127.0.0.1:0 >address ;;
demo)
	export ENTROPIPE_LISTEN=off ENTROPIPE_RATE=max ENTROPIPE_FRAMES=8 ENTROPIPE_POINTS=3000
	exec entropipe "$@" ;;
produce | run)
	for _ in $(seq 6000); do [ -s address ] && break; sleep 0.01; done
	ENTROPIPE_BROKERS=$(cat address)
	export ENTROPIPE_BROKERS ;;
esac
exec entropipe "$@"
`

func TestREADMERuns(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skipf("no shell: %v", err)
	}
	page, dir := readMarkdown(t, "README.md"), t.TempDir()
	stubs := filepath.Join(dir, ".stubs")
	writeFiles(t, stubs, 0o777, map[string]string{"go": goStub})
	writeFiles(t, dir, 0o777, map[string]string{"entropipe": programStub})
	writeFiles(t, dir, 0o666, map[string]string{"notes.txt": "a first note\na second note\n"})
	for i := range 3 {
		drive := filepath.Join(dir, "2011_09_26", "2011_09_26_drive_0005_sync")
		writeFiles(t, drive, 0o666, map[string]string{fmt.Sprintf("%010d.bin", i): string(scan(500, i))})
	}
	if err := os.Rename(writeLM(t, dir, hf.BERT), filepath.Join(dir, "MiniLM")); err != nil {
		t.Fatal(err)
	}
	var commands, printed []codeBlock // printed has what a block prints, or nothing
	for _, block := range page.blocks {
		switch {
		case block.language == "sh":
			commands, printed = append(commands, block), append(printed, codeBlock{})
		case block.language == "text" && len(commands) > 0:
			printed[len(printed)-1] = block
		}
	}
	cmd := exec.Command(shell, "-c", sessionOf(commands))
	cmd.Dir = dir
	path := stubs + string(os.PathListSeparator) + os.Getenv("PATH")
	cmd.Env = []string{"PATH=" + path, "HOME=" + dir, "TMPDIR=" + os.TempDir()}
	cmd.WaitDelay = patience // the broker holds the pipe
	stop := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer stop.Stop()
	t.Cleanup(func() { endBroker(t, dir) })
	var log bytes.Buffer
	cmd.Stderr = &log
	err = cmd.Start()
	if err == nil {
		_, err = cmd.Process.Wait()
	}
	if err != nil || !isThere(filepath.Join(dir, "done")) {
		t.Fatalf("the session ended early: %v\n%s", err, readAll(t, dir, "typed")+readAll(t, dir, "err"))
	}
	for i, block := range printed {
		if block.text != "" {
			if err := comparePrinted(block.text, readAll(t, dir, "out."+strconv.Itoa(i))); err != nil {
				t.Errorf("README.md:%d: %v", block.line, err)
			}
		}
	}
	for _, picture := range []string{"sweep.png", "frame.svg"} {
		if !isThere(filepath.Join(dir, picture)) {
			t.Errorf("the README's commands leave no %s", picture)
		}
	}
	for _, want := range []string{"demo\n", "verify ./clouds\n", "--lm ./MiniLM", "go test ./...\n"} {
		if typed := readAll(t, dir, "typed"); !strings.Contains(typed, want) {
			t.Errorf("nothing like %q was typed:\n%s", want, typed)
		}
	}
	for table, rows := range map[string]int64{"clouds/frames": 3, "vectors/tokens": 2} {
		if n, err := countRows(filepath.Join(dir, table)); n != rows || err != nil {
			t.Errorf("%s has %d rows, want %d: %v", table, n, rows, err)
		}
	}
}

// sessionOf returns a script that runs the blocks one after the other and keeps what
// each prints. It ends at the first command that fails.
func sessionOf(blocks []codeBlock) string {
	var script strings.Builder
	script.WriteString("set -e\nexec 2>err\n")
	for i, block := range blocks {
		fmt.Fprintf(&script, "exec >out.%d\n%s\n", i, block.text)
	}
	script.WriteString(": >done\n")
	return script.String()
}

// endBroker ends the broker that the session started.
func endBroker(t *testing.T, dir string) {
	pid, err := strconv.Atoi(strings.TrimSpace(readAll(t, dir, "broker.pid")))
	if err != nil {
		t.Errorf("the README starts no broker: %v", err)
		return
	}
	broker, err := os.FindProcess(pid)
	if err != nil {
		return // it has ended
	}
	broker.Kill()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) && broker.Signal(syscall.Signal(0)) == nil; {
		time.Sleep(10 * time.Millisecond) // its folder is removed next
	}
}

var (
	anyNumber = regexp.MustCompile(`\d+(?: \d{3})*(?:\.\d+)?`)
	anyUnit   = regexp.MustCompile(`\b(?:[KMGT]iB|B|bytes)\b`)
)

// loosely returns a line without what varies.
func loosely(line string) string {
	line = anyUnit.ReplaceAllString(anyNumber.ReplaceAllString(line, "0"), "B")
	return strings.Join(strings.Fields(line), " ")
}

// comparePrinted returns where what was printed differs from a page's block.
func comparePrinted(block, printed string) error {
	var lines []string
	for line := range strings.Lines(printed) {
		lines = append(lines, loosely(line))
	}
	at, any := 0, false
	for line := range strings.Lines(block) {
		want := loosely(line)
		if want == "…" {
			any = true
			continue
		}
		for any && at < len(lines) && lines[at] != want {
			at++
		}
		if at == len(lines) || lines[at] != want {
			return fmt.Errorf("%q is not printed there; printed is:\n%s", strings.TrimRight(line, "\n"), printed)
		}
		at, any = at+1, false
	}
	if !any && at < len(lines) {
		return fmt.Errorf("more is printed than the page says: %q", lines[at])
	}
	return nil
}

func TestPrintedIsComparedLoosely(t *testing.T) {
	t.Parallel()
	const printed = "   points  24 122 875   1.5 MiB\n rejects 0\n\nOpen it:\n one\n two\n"
	for block, good := range map[string]bool{
		"points 1 234 7 KiB\nrejects 9\n\nOpen it:\none\ntwo\n": true,
		"points 1 1 B\n…\nOpen it:\n…\n":                        true,
		"…\ntwo\n":                                              true,
		"points 1 1 B\n":                                        false, // more follows
		"…\nthree\n…\n":                                         false,
		"points 1\n…\n":                                         false,
		"…\ntwo\none\n":                                         false, // another order
	} {
		if err := comparePrinted(block, printed); (err == nil) != good {
			t.Errorf("%q: %v", block, err)
		}
	}
}

// The picture of the README is what the program draws of the synthetic scene, bit by bit.
func TestPictureOfTheREADME(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	must(t, dir, "produce", "synthetic", "--brokers", brokers, "--partitions", "1", "--rate", "max",
		"--seed", "2", "--points", "9000", "--frames", "151")
	must(t, dir, "run", "--brokers", brokers, "--until-end", "--out", "out",
		"--tables", "hulls,maxima,triangles,points")
	must(t, dir, "export", "out", "--frame-id", "150", "--width", "1000", "-o", "sweep.svg")
	drawn := readAll(t, dir, "sweep.svg")
	if kept := readAll(t, "docs", "sweep.svg"); drawn != kept {
		at := 0
		for at < min(len(drawn), len(kept)) && drawn[at] == kept[at] {
			at++
		}
		t.Errorf("docs/sweep.svg has %d bytes, this program draws %d bytes, which differ from byte %d on",
			len(kept), len(drawn), at)
	}
}

// A program outside of this module builds against it as docs/library.md says, and prints
// what the page says.
func TestLibraryConsumer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the compiler has nothing for the race detector")
	}
	goCommand, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("no Go command: %v", err)
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	var want string
	for _, block := range readMarkdown(t, "docs/library.md").blocks {
		switch {
		case strings.HasPrefix(block.text, "module "):
			files["go.mod"] = strings.Replace(block.text, "=> ../entropipe", "=> "+strconv.Quote(root), 1)
		case block.language == "go":
			files["main.go"] = block.text
		case block.language == "text":
			want = block.text
		}
	}
	if len(files) != 2 || want == "" || !strings.Contains(files["go.mod"], root) {
		t.Fatalf("docs/library.md lacks a module, a program or what it prints: %q", files)
	}
	for _, name := range []string{"hull", "delaunay", "maxima", "exact"} {
		if !strings.Contains(files["main.go"], `"entropipe/algos/`+name+`"`) {
			t.Errorf("the program of docs/library.md does not use package %s", name)
		}
	}
	dir := t.TempDir()
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	files["go.sum"] = string(sums)
	writeFiles(t, dir, 0o666, files)
	run := exec.CommandContext(t.Context(), goCommand, "run", ".")
	run.Dir = dir
	// The caller's flags stay: with them, such as -trimpath, the standard library is built.
	flags := strings.TrimSpace(os.Getenv("GOFLAGS") + " -mod=mod")
	run.Env = append(os.Environ(), "GOFLAGS="+flags, "GOPROXY=off", "GOSUMDB=off", "GOWORK=off", "PWD="+dir)
	var complaints bytes.Buffer
	run.Stderr = &complaints
	printed, err := run.Output()
	if err != nil {
		t.Fatalf("go run: %v\n%s", err, complaints.String())
	}
	if string(printed) != want {
		t.Errorf("it prints\n%s\ndocs/library.md says\n%s", printed, want)
	}
}

// writeFiles writes files into a folder, which is made.
func writeFiles(t *testing.T, dir string, mode os.FileMode, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
}

// readAll returns a file's text; nothing if there is no such file.
func readAll(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(data)
}

func isThere(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
