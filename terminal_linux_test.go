package main

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"entropipe/cmd/terminaltest"
	"entropipe/sparse/hf/hftest"
)

// wide is the width of a test's terminal: no bar and no message is cut.
const wide = 250

// attended is an entropipe in a session of its own, whose terminal the test watches
// and types at.
type attended struct {
	t    *testing.T
	cmd  *exec.Cmd
	here *os.File
	done chan struct{} // all of its output has been read

	mu    sync.Mutex
	shown bytes.Buffer
	news  chan struct{} // replaced, and closed, with every read
}

// attend starts entropipe args in dir on a terminal. Variables are added to those
// that are there.
func attend(t *testing.T, dir string, columns uint16, variables []string, args ...string) *attended {
	t.Helper()
	here, there := terminaltest.Open(t, columns)
	p := &attended{t: t, cmd: exec.Command("entropipe", args...), here: here, done: make(chan struct{}),
		news: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = dir, there, there, there
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "ENTROPIPE_") {
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	p.cmd.Env = append(append(p.cmd.Env, "TERM=xterm"), variables...)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	there.Close()
	go p.read()
	t.Cleanup(func() {
		p.cmd.Process.Kill() // by its id; an error says that it has ended
		<-p.done
		p.cmd.Wait()
	})
	return p
}

// read ends, with EIO, when nobody has the other end open.
func (p *attended) read() {
	defer close(p.done)
	buffer := make([]byte, 4096)
	for {
		n, err := p.here.Read(buffer)
		p.mu.Lock()
		p.shown.Write(buffer[:n])
		close(p.news)
		p.news = make(chan struct{})
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *attended) output() (string, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown.String(), p.news
}

// until waits for output that matches.
func (p *attended) until(pattern string) {
	p.t.Helper()
	want, deadline := regexp.MustCompile(pattern), time.After(patience)
	for {
		text, news := p.output()
		if want.MatchString(text) {
			return
		}
		select {
		case <-news:
		case <-p.done:
			if text, _ := p.output(); !want.MatchString(text) {
				p.t.Fatalf("%v ended without %s:\n%q", p.cmd.Args, pattern, text)
			}
			return
		case <-deadline:
			p.t.Fatalf("%v: no %s after %v:\n%q", p.cmd.Args, pattern, patience, text)
		}
	}
}

// types sends what a key sends.
func (p *attended) types(key string) {
	p.t.Helper()
	if _, err := p.here.WriteString(key); err != nil {
		p.t.Fatal(err)
	}
}

// ctrlC is the key that interrupts.
const ctrlC = "\x03"

// ends waits for the end, checks the status, and returns what stands on the screen.
func (p *attended) ends(status int) []string {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.cmd.Process.Signal(syscall.SIGQUIT) // its goroutines are shown, soon
		select {
		case <-p.done:
		case <-time.After(10 * time.Second):
		}
		text, _ := p.output()
		p.t.Fatalf("%v has not ended after %v:\n%s", p.cmd.Args, patience, text)
	}
	text, _ := p.output()
	p.cmd.Wait()
	if got := p.cmd.ProcessState.ExitCode(); got != status || strings.Contains(text, "goroutine ") {
		p.t.Fatalf("%v: exit status %d, want %d:\n%s", p.cmd.Args, got, status, text)
	}
	rows, err := terminaltest.Screen(text)
	if err != nil {
		p.t.Fatalf("%v: %v:\n%q", p.cmd.Args, err, text)
	}
	return rows
}

// inOrder checks that rows match the patterns, one after the other, with any rows
// between them.
func inOrder(rows, patterns []string) error {
	at := 0
	for _, pattern := range patterns {
		want, begin := regexp.MustCompile(pattern), at
		for at < len(rows) && !want.MatchString(rows[at]) {
			at++
		}
		if at == len(rows) {
			return fmt.Errorf("from row %d on none matches %s:\n%s", begin, pattern, strings.Join(rows, "\n"))
		}
		at++
	}
	return nil
}

// sitting is a command on a terminal: how it ends, and what then stands there.
type sitting struct {
	name    string
	args    string   // without brokers; words are separated by blanks
	cue     string   // output at which Ctrl-C is typed; "": it is not
	status  int      // the exit status
	rows    []string // rows of the screen match them in this order
	prepare func(t *testing.T, dir string)
}

// On a terminal every command with a bar ends as it does elsewhere, however much of
// the total is done: after all of it, at Ctrl-C, with an error, and when there was
// less to do. The bar keeps its last state, and what comes after it is below it.
func TestBarsEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("one process at a time: nothing for the race detector")
	}
	t.Parallel()
	brokers := startBroker(t)
	for _, s := range sittings(t, brokers) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if s.prepare != nil {
				s.prepare(t, dir)
			}
			p := attend(t, dir, wide, []string{"ENTROPIPE_BROKERS=" + brokers}, strings.Fields(s.args)...)
			if s.cue != "" {
				p.until(s.cue)
				p.types(ctrlC)
			}
			if err := inOrder(p.ends(s.status), s.rows); err != nil {
				t.Error(err)
			}
		})
	}
}

// sittings are four for each command with a bar: complete, interrupted, failing, and
// short where a command may end below its total without a mistake.
func sittings(t *testing.T, brokers string) []sitting {
	must(t, t.TempDir(), spread(brokers, "frames", "a", "--frames", "30", "--rate", "max")...)
	text := writeText(t, "text.txt", strings.Repeat("ask what it was; ", 3000))
	all := produceSittings()
	all = append(all, runSittings(t, brokers)...)
	all = append(all, trainSittings(text)...)
	all = append(all, freezeSittings(t, text)...)
	return append(all, []sitting{
		{name: "bench/complete", args: "bench --ops maxima2d --sizes 50,60 --dist square --min-time 1ms",
			rows: []string{`^bench █{32} 2/2 `, `^maxima2d, `}},
		{name: "bench/interrupted", args: "bench --ops maxima2d --sizes 50 --min-time 1h",
			cue: `bench ░+ 0/4`, status: 1, rows: []string{`^bench ░+ 0/4 maxima2d square 50`,
				`^entropipe: stopped before the end$`}},
		{name: "bench/failing", args: "bench --ops maxima2d --sizes 50 --dist square --min-time 1ms --kitti scans",
			prepare: brokenScans,
			status:  1, rows: []string{`^bench █+░+ 1/2 `, `^entropipe: .*0000000002\.bin: 805 bytes`}},
		{name: "demo/complete", args: "demo --frames 3 --rate max --points 2000 --listen off",
			rows: []string{`^LiDAR frames █{32} 3/3 `, `LiDAR +sketches +tokens`,
				`^  Picture +entropipe export \./entropipe-demo --topic points`}},
		{name: "demo/interrupted", args: "demo --frames 100000 --points 2000 --listen off",
			cue:  `LiDAR frames \S+ [1-9]\d*/100000 `,
			rows: []string{`^LiDAR frames ░+ \d+/100000 `, `LiDAR +sketches +tokens`, `^Open it:`}},
		{name: "demo/late", args: "demo --frames 100000 --rate 100000hz --points 20000 --listen off",
			cue: `s behind real time`, rows: []string{`^LiDAR frames [█░]+ \d+/100000 .*behind real time$`,
				`^Behind real time by \S+: `, `^Open it:`}},
		{name: "demo/failing", args: "demo --frames 100000 --points 2000 --listen off",
			prepare: aFile("entropipe-demo/triangles/dataset=synthetic/topic=points"),
			status:  1, rows: []string{`^LiDAR frames ░+ \d+/100000 `, `^entropipe: .*triangles`}},
	}...)
}

func produceSittings() []sitting {
	pens := prepared("pens.ndjson", drawing+"\n"+drawing+"\n")
	broken := prepared("pens.ndjson", drawing+"\nno drawing\n"+drawing+"\n")
	notes := prepared("notes.txt", "one\ntwo\n")
	ids := prepared("ids.jsonl", `{"input_ids": [1, 2]}`+"\n"+`{"input_ids": [1, null]}`+"\n"+`{"input_ids": [3]}`+"\n")
	return []sitting{
		{name: "produce kitti/complete", args: "produce kitti scans --rate max --topic k1", prepare: fiveScans,
			rows: []string{`^frames █{32} 5/5 `, `^k1: 5 frames in `}},
		{name: "produce kitti/interrupted", args: "produce kitti scans --loop 1000 --topic k2", prepare: fiveScans,
			cue: `frames \S+ [1-9]\d*/5000 `, rows: []string{`^frames ░+ \d+/5000 `, `^k2: \d+ frames in `}},
		{name: "produce kitti/failing", args: "produce kitti scans --rate max --topic k3",
			prepare: brokenScans, status: 1,
			rows: []string{`^frames █+░+ 2/5 `, `^k3: 2 frames in `, `^entropipe: .*0000000002\.bin: 805 bytes`}},
		{name: "produce kitti/short", args: "produce kitti scans --rate max --topic k4 --skip-bad",
			prepare: brokenScans,
			rows:    []string{`0000000002\.bin`, `^frames █+░+ 4/5 `, `^k4: 4 frames in .*, 1 bad inputs left out$`}},
		{name: "produce quickdraw/complete", args: "produce quickdraw pens.ndjson --rate max --topic q1", prepare: pens,
			rows: []string{`^frames \S 2 `, `^q1: 2 frames in `}},
		{name: "produce quickdraw/interrupted", args: "produce quickdraw pens.ndjson --rate 10hz --loop 1000 " +
			"--limit 900 --topic q2", prepare: pens,
			cue: `frames \S+ [1-9]\d*/900 `, rows: []string{`^frames ░+ \d+/900 `, `^q2: \d+ frames in `}},
		{name: "produce quickdraw/failing", args: "produce quickdraw pens.ndjson --rate max --limit 9 --pack 1 " +
			"--topic q3", prepare: broken, status: 1,
			rows: []string{`^frames █+░+ 1/9 `, `^q3: 1 frames in `, `^entropipe: .*pens\.ndjson:2:`}},
		{name: "produce quickdraw/short", args: "produce quickdraw pens.ndjson --rate max --limit 9 --skip-bad " +
			"--topic q4", prepare: broken,
			rows: []string{`pens\.ndjson.*2`, `^frames █+░+ 2/9 `, `^q4: 2 frames in .*, 1 bad inputs left out$`}},
		{name: "produce synthetic/complete", args: "produce synthetic --frames 60 --points 200 --rate max --topic s1",
			rows: []string{`^frames █{32} 60/60 `, `^s1: 60 frames in `}},
		{name: "produce synthetic/interrupted", args: "produce synthetic --frames 100000 --points 200 --topic s2",
			cue: `frames \S+ [1-9]\d*/100000 `, rows: []string{`^frames ░+ \d+/100000 `, `^s2: \d+ frames in `}},
		{name: "produce synthetic/failing", args: "produce synthetic --frames 60 --points 20000 --rate max " +
			"--max-message-bytes 64KiB --chunk off --topic s3", status: 1,
			rows: []string{`^frames ░+ 0/60 `, `^s3: 0 frames in `, `^entropipe: frame 0 of lidar makes a message`}},
		{name: "produce tokens/complete", args: "produce tokens notes.txt --rate max --topic t1", prepare: notes,
			rows: []string{`^sequences \S+ `, `^t1: \d+ sequences in `}},
		{name: "produce tokens/interrupted", args: "produce tokens notes.txt --rate 10hz --loop 1000 --limit 900 " +
			"--topic t2", prepare: notes,
			cue: `sequences \S+ [1-9]\d*/900 `, rows: []string{`^sequences ░+ \d+/900 `, `^t2: \d+ sequences in `}},
		{name: "produce tokens/failing", args: "produce tokens ids.jsonl --rate max --limit 9 --topic t3",
			prepare: ids, status: 1,
			rows: []string{`^sequences [█░]+ \d/9 `, `^t3: \d sequences in `, `^entropipe: .*ids\.jsonl:2`}},
		{name: "produce tokens/short", args: "produce tokens ids.jsonl --rate max --limit 9 --skip-bad --topic t4",
			prepare: ids,
			rows: []string{`ids\.jsonl.*2`, `^sequences █+░+ 2/9 `,
				`^t4: 2 sequences in .*, 1 bad inputs left out$`}},
	}
}

// runSittings are those of run and of verify, whose totals are not known at first.
func runSittings(t *testing.T, brokers string) []sitting {
	output := func(t *testing.T, dir string) {
		must(t, dir, fast(brokers, "frames", "--until-end", "--log-level", "warn")...)
	}
	damaged := func(t *testing.T, dir string) {
		output(t, dir)
		files, err := filepath.Glob(filepath.Join(dir, "out", "hulls", "*", "*", "*.parquet"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		if err := os.Remove(files[0]); err != nil {
			t.Fatal(err)
		}
	}
	endless := func(t *testing.T, dir string) {
		output(t, dir)
		grow(t, filepath.Join(dir, "out"))
	}
	return []sitting{
		{name: "run/complete", args: "run --topic frames --until-end --progress",
			rows: []string{`^frames \S 30 `, `msg=done frames=30 `}},
		{name: "run/interrupted", args: "run --topic frames --progress --roll-age 200ms", cue: `frames \S 30 `,
			rows: []string{`^frames \S 30 `, `msg=done frames=30 `}},
		{name: "run/failing", args: "run --topic frames --progress --until-end --roll-records 1",
			prepare: aFile("entropipe-out/triangles/dataset=synthetic"), status: 1,
			rows: []string{`^frames \S \d+ `, `^entropipe: .*triangles`}},
		{name: "verify/complete", args: "verify out", prepare: output,
			rows: []string{`^manifests \S \d+ of `, `^output `}},
		{name: "verify/interrupted", args: "verify out", prepare: endless, cue: `manifests \S [1-9]\d* of `, status: 1,
			rows: []string{`^manifests \S \d+ of `,
				`^entropipe: verify out: context canceled$|^entropipe: stopped before the end$`}},
		{name: "verify/failing", args: "verify out", prepare: damaged, status: 1,
			rows: []string{`^manifests \S \d+ of `, `^output `, `^entropipe: verify out: \d+ faults$`}},
	}
}

// grow makes a file of an output longer than can be read in a test, in its manifest
// too. The file has no blocks, so it takes no room on the disk.
func grow(t *testing.T, out string) {
	t.Helper()
	manifests, err := filepath.Glob(filepath.Join(out, "_commits", "topics", "*", "*", "0*.json"))
	if err != nil || len(manifests) < 2 {
		t.Fatal(manifests, err)
	}
	last := manifests[len(manifests)-1] // it is checked last: others show that the bar goes on
	text, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	path := regexp.MustCompile(`"path": "([^"]+)"`).FindSubmatch(text)
	body, _, _ := bytes.Cut(text, []byte(",\n \"crc32c\""))
	size := regexp.MustCompile(`"bytes": \d+,`).FindIndex(body)
	if path == nil || size == nil {
		t.Fatalf("no file in\n%s", text)
	}
	if err := os.Truncate(filepath.Join(out, string(path[1])), 1<<40); err != nil {
		t.Skipf("no long files here: %v", err)
	}
	body = slices.Concat(body[:size[0]], []byte(`"bytes": 1099511627776,`), body[size[1]:])
	body = fmt.Appendf(body, ",\n \"crc32c\": \"%08x\"\n}\n", crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
	if err := os.WriteFile(last, body, 0o666); err != nil {
		t.Fatal(err)
	}
}

func trainSittings(text string) []sitting {
	const (
		points = "train synthetic --kind sketch --frames 5 --points 16 --batch 1 --tolerance 1 --out m.safetensors " +
			"--progress"
		vit = "train-vit shapes --images 24 --side 16 --patch 8 --layers 1 --dim 16 --heads 2 --out m --progress"
	)
	lm := "train-lm " + text + " --layers 1 --dim 32 --heads 2 --context 32 --out m --progress"
	return []sitting{
		{name: "train/complete", args: points + " --steps 30",
			rows: []string{`^steps █{32} 30/30 `, `^m\.safetensors: perturb model`}},
		{name: "train/interrupted", args: strings.Replace(points, "--points 16 --batch 1", "--points 512 --batch 8",
			1) + " --steps 10000000", cue: `steps \S+ [1-9]\d*/10000000 `,
			rows: []string{`^steps ░+ \d+/10000000 `, `^stopped after step \d+ of 10000000: --resume goes on`}},
		{name: "train/failing", args: points + " --steps 10000000", prepare: aFile("m.safetensors.checkpoint/file"),
			status: 1,
			rows:   []string{`^steps ░+ 100/10000000 `, `^entropipe: .*m\.safetensors\.checkpoint`}},
		{name: "train/short", args: points + " --steps 3000 --sigma 1e-9",
			rows: []string{`^steps █+░+ 2200/3000 `,
				`^m\.safetensors: perturb model for hull2d, step 100 of 2200 kept`}},
		{name: "train-lm/complete", args: lm + " --steps 3",
			rows: []string{`^‰ █{32} 1000/1000 step 3,`, `^m: \d+ parameters, 3 steps`}},
		{name: "train-lm/interrupted", args: lm + " --minutes 10000", cue: `‰ \S+ 0/1000 step [1-9]`,
			rows: []string{`^‰ ░+ \d+/1000 step`, `^stopped after step \d+: --resume goes on`}},
		{name: "train-lm/failing", args: lm + " --minutes 10000", prepare: aFile("m/checkpoint.safetensors/file"),
			cue: `‰ \S+ 0/1000 step [1-9]`, status: 1,
			rows: []string{`^‰ ░+ \d+/1000 step`, `^entropipe: .*checkpoint\.safetensors`}},
		{name: "train-vit/complete", args: vit + " --steps 3",
			rows: []string{`^‰ █{32} 1000/1000 step 3,`, `^m: \d+ parameters, 3 steps`}},
		{name: "train-vit/interrupted", args: vit + " --minutes 10000", cue: `‰ \S+ 0/1000 step [1-9]`,
			rows: []string{`^‰ ░+ \d+/1000 step`, `^stopped after step \d+: --resume goes on`}},
		{name: "train-vit/failing", args: vit + " --minutes 10000", prepare: aFile("m/checkpoint.safetensors/file"),
			cue: `‰ \S+ 0/1000 step [1-9]`, status: 1,
			rows: []string{`^‰ ░+ \d+/1000 step`, `^entropipe: .*checkpoint\.safetensors`}},
	}
}

func freezeSittings(t *testing.T, text string) []sitting {
	small := "freeze --lm " + hftest.Dir(t, hftest.Config(t, hftest.GPT2)) + " --calibrate " + idLines(t, 8, 96) +
		" --out mask --block 16 --sparsity 0.5 --progress"
	return []sitting{
		{name: "freeze/complete", args: small, rows: []string{`^inputs \S 2 judge 2 of 2`,
			`^mask/sparse_config\.json: `}},
		{name: "freeze/interrupted", args: "freeze --lm builtin:bytes --calibrate " + text +
			" --sequences 100000 --bucket 64 --block 16 --workers 1 --out mask --progress", cue: `inputs \S [1-9]`,
			rows: []string{`^inputs \S \d+ \w+ `, `^stopped: no mask has been written$`}},
		{name: "freeze/failing", args: small, prepare: aFile("mask"), status: 1,
			rows: []string{`^inputs \S 2 judge 2 of 2`, `^entropipe: .*mask`}},
	}
}

const drawing = `{"word":"cow","countrycode":"US","timestamp":"2017-03-01 00:00:00 UTC","recognized":true,"key_id":"7","drawing":[[[0,9,5],[0,2,7]]]}`

// prepared returns what writes a file.
func prepared(name, text string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// aFile returns what puts a file in the way.
func aFile(name string) func(*testing.T, string) { return prepared(name, "in the way") }

func fiveScans(t *testing.T, dir string) {
	t.Helper()
	for i := range 5 {
		prepared(fmt.Sprintf("scans/%010d.bin", i), string(scan(50, i)))(t, dir)
	}
}

// brokenScans are five, the third of which has lost its end.
func brokenScans(t *testing.T, dir string) {
	t.Helper()
	fiveScans(t, dir)
	prepared("scans/0000000002.bin", string(append(scan(50, 2), "split"...)))(t, dir)
}

// Where no bar can be drawn the log tells of progress, as it does for a file.
func TestTerminalsWithoutBars(t *testing.T) {
	t.Parallel()
	brokers := startBroker(t)
	for _, c := range []struct {
		term, want string
		columns    uint16
	}{
		{"TERM=dumb", `msg="frames 3/3 `, wide},
		{"TERM=", `msg="frames 3/3 `, wide},
		{"TERM=xterm", `^frames █{26} 3/3 `, 0}, // a window that does not tell its size
	} {
		p := attend(t, t.TempDir(), c.columns, []string{c.term},
			spread(brokers, "p", "a", "--frames", "3", "--rate", "max")...)
		if err := inOrder(p.ends(0), []string{c.want, `^p: 3 frames in `}); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A bar fits into its window, with what the terminal adds when Ctrl-C is typed.
func TestBarsAreCut(t *testing.T) {
	t.Parallel()
	brokers := startBroker(t)
	for _, columns := range []uint16{1, 2, 8, 20, 100} {
		topic := fmt.Sprint("p", columns)
		p := attend(t, t.TempDir(), columns, nil, spread(brokers, topic, "a", "--frames", "100000")...)
		p.until(`fra`)
		waitFor(t, "frames", func() bool { return sent(t, brokers, topic) > 0 })
		p.types(ctrlC)
		rows := p.ends(0)
		most := max(int(columns), 8) // the narrowest window that a bar is drawn for
		for _, row := range rows {
			if strings.HasPrefix(row, "fra") && len([]rune(row)) >= most {
				t.Errorf("a bar of %d columns in a window of %d: %q", len([]rune(row)), columns, row)
			}
		}
		if err := inOrder(rows, []string{`^fra`, `^` + topic + `: \d+ frames in `}); err != nil {
			t.Errorf("%d columns: %v", columns, err)
		}
	}
}
