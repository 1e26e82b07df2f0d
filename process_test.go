package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"entropipe/cmd"
	"entropipe/ingest"
	"entropipe/ingest/broker"
	"entropipe/sinks"
	"entropipe/sinks/read"
)

// patience is how long a test waits for what takes moments, before it says that
// it will never come: the machine may be slow and busy.
const patience = 3 * time.Minute

// process is an entropipe of its own, killed when the test ends.
type process struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	done chan struct{}

	mu             sync.Mutex
	stdout, stderr bytes.Buffer
	news           chan struct{} // replaced, and closed, with every line
}

// launch starts entropipe args in dir.
func launch(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	return launchWith(t, dir, nil, args...)
}

// launchWith starts entropipe args in dir with further variables.
func launchWith(t *testing.T, dir string, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: args[0], cmd: exec.Command("entropipe", args...), done: make(chan struct{}),
		news: make(chan struct{})}
	p.cmd.Dir = dir
	for _, v := range os.Environ() { // the variables of who runs the tests are not the tests'
		if !strings.HasPrefix(v, "ENTROPIPE_") {
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	p.cmd.Env = append(p.cmd.Env, env...)
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	readers.Go(func() { p.read(stdout, &p.stdout) })
	readers.Go(func() { p.read(stderr, &p.stderr) })
	go func() {
		readers.Wait()
		p.cmd.Wait() // its error says no more than ProcessState
		close(p.done)
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("%v:\n%s%s", p.cmd.Args, p.out(), p.log())
		}
	})
	return p
}

func (p *process) read(r io.Reader, to *bytes.Buffer) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		p.mu.Lock()
		to.WriteString(line)
		close(p.news)
		p.news = make(chan struct{})
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *process) out() string { p.mu.Lock(); defer p.mu.Unlock(); return p.stdout.String() }

func (p *process) log() string { p.mu.Lock(); defer p.mu.Unlock(); return p.stderr.String() }

// until waits for a line, of stdout or stderr, that matches, and returns its
// submatches.
func (p *process) until(pattern string) []string {
	p.t.Helper()
	want, deadline := regexp.MustCompile("(?m)"+pattern), time.After(patience)
	for {
		p.mu.Lock()
		news, text := p.news, p.stdout.String()+p.stderr.String()
		p.mu.Unlock()
		if m := want.FindStringSubmatch(text); m != nil {
			return m
		}
		select {
		case <-news:
		case <-p.done:
			if m := want.FindStringSubmatch(p.out() + p.log()); m != nil {
				return m
			}
			p.t.Fatalf("%s ended without a line that matches %s", p.name, pattern)
		case <-deadline:
			p.t.Fatalf("%s: no line matches %s after %v", p.name, pattern, patience)
		}
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

// exits waits for the end within a time and checks the status.
func (p *process) exits(status int, within time.Duration) {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(within):
		p.cmd.Process.Signal(syscall.SIGQUIT) // its goroutines are in the log, soon
		select {
		case <-p.done:
		case <-time.After(10 * time.Second):
		}
		p.t.Fatalf("%s has not ended after %v", p.name, within)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != status {
		p.t.Fatalf("%s: exit status %d, want %d", p.name, got, status)
	}
	if strings.Contains(p.log(), "goroutine ") {
		p.t.Fatalf("%s: a panic", p.name)
	}
}

// says checks that the log has a line that matches.
func (p *process) says(pattern string) {
	p.t.Helper()
	if log := p.log(); !regexp.MustCompile("(?m)" + pattern).MatchString(log) {
		p.t.Fatalf("%s: no line of stderr matches %s", p.name, pattern)
	}
}

// killed ends it without a word, and waits until it is gone.
func (p *process) killed() {
	p.cmd.Process.Kill() // an error says that it has ended
	<-p.done
}

// must runs a command to its end, which must be good, and returns its stdout.
func must(t *testing.T, dir string, args ...string) string {
	t.Helper()
	p := launch(t, dir, args...)
	p.exits(0, patience)
	return p.out()
}

// startBroker starts a broker within the test and returns its address.
func startBroker(t *testing.T) string {
	t.Helper()
	b, err := broker.Start(broker.Config{Listen: "127.0.0.1:0", Dir: t.TempDir(), Partitions: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b.Addr()
}

// sent returns how many records a topic has.
func sent(t *testing.T, brokers, topic string) (records int64) {
	t.Helper()
	found, err := ingest.Describe(t.Context(), []string{brokers}, ingest.Security{}, topic)
	if errors.Is(err, ingest.ErrNoTopic) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found.Partitions {
		records += p.End
	}
	return records
}

// verified checks an output, which may be in use, and returns the report.
func verified(t *testing.T, out string) *read.Report {
	t.Helper()
	store, err := sinks.OpenExisting(out)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	r, err := read.Verify(context.Background(), store, read.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK {
		t.Fatalf("the output has faults:\n%s", r)
	}
	return r
}

// committed returns how many records of all partitions an output holds.
func committed(r *read.Report) (records int64) {
	for _, p := range r.Partitions {
		records += p.End - p.Base
	}
	return records
}

// holds checks that an output holds records whole, each once.
func holds(t *testing.T, out string, records int64) {
	t.Helper()
	r := verified(t, out)
	if got := committed(r); got != records {
		t.Fatalf("%d records are committed, want %d:\n%s", got, records, r)
	}
	rows, err := countRows(out + "/frames")
	if err != nil || rows != records {
		t.Fatalf("%d frames in the table, want %d; %v", rows, records, err)
	}
}

// waitFor polls until done is true.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// manifests counts the commits of an output, by its folders alone: cheap
// enough to poll.
func manifests(t *testing.T, out string) int {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(out, "_commits", "topics", "*", "*", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// reached adds up the ends of the newest manifests: how many records are
// committed of topics that began at 0.
func reached(t *testing.T, out string) (records int64) {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(out, "_commits", "topics", "*", "*", ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range folders {
		// Not all files of the folder: a manifest that is being written is there too,
		// under another name.
		manifests, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		if len(manifests) == 0 {
			continue // the base, or a partition without commits
		}
		text, err := os.ReadFile(manifests[len(manifests)-1])
		if err != nil {
			t.Fatal(err)
		}
		var newest struct{ End int64 }
		if err := json.Unmarshal(text, &newest); err != nil {
			t.Fatal(err)
		}
		records += newest.End
	}
	return records
}

// reaches waits until an output has n records of topics that began at 0. A machine may take
// as long as it needs, but not without a commit.
func reaches(t *testing.T, out string, n int64) {
	t.Helper()
	last, end := int64(-1), time.Now()
	for ; ; time.Sleep(20 * time.Millisecond) {
		switch now := reached(t, out); {
		case now >= n:
			return
		case now != last:
			last, end = now, time.Now().Add(patience)
		case time.Now().After(end):
			t.Fatalf("%d of %d records are committed, and no more in %v", now, n, patience)
		}
	}
}

// published tells whether records are committed and in their tables: the files
// of a commit are moved there after it has happened.
func published(t *testing.T, out string, records int64) bool {
	t.Helper()
	if reached(t, out) < records {
		return false
	}
	staged, err := os.ReadDir(filepath.Join(out, "_staging"))
	if err != nil {
		t.Fatal(err)
	}
	return len(staged) == 0
}

// spread returns a producer's arguments: n small frames, whose sequence, and so
// partition, is name.
func spread(brokers, topic, name string, more ...string) []string {
	return append([]string{"produce", "synthetic", "--points", "200", "--brokers", brokers, "--topic", topic,
		"--sequence", name}, more...)
}

// runCommand runs a command line and returns its status and what it printed.
func runCommand(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = cmd.Main(args, &out, &errs)
	return status, out.String(), errs.String()
}

func writeText(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// brokerProcess starts a broker in a process of its own, whose log is in dir, and
// returns when it listens on address.
func brokerProcess(t *testing.T, dir, address string) *process {
	t.Helper()
	b := launch(t, dir, "broker", "--listen", address, "--data", "log")
	b.until("^" + regexp.QuoteMeta(address) + "$")
	return b
}

// get returns the body of a page and its status.
func get(t *testing.T, url string) (string, int) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body), r.StatusCode
}

// metric adds up a metric's values with a label, such as direction="in".
func metric(t *testing.T, url, name, label string) (sum float64) {
	t.Helper()
	body, _ := get(t, url)
	for _, m := range regexp.MustCompile(`(?m)^`+name+`\{[^}]*`+label+`[^}]*\} (\S+)$`).FindAllStringSubmatch(body,
		-1) {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatalf("%s: %v", m[0], err)
		}
		sum += v
	}
	return sum
}

// becomesReady waits for a service to be ready: it is not while its last request to the
// brokers has failed, which is one of many.
func becomesReady(t *testing.T, base string) {
	t.Helper()
	waitFor(t, "readiness", func() bool { _, status := get(t, base+"/readyz"); return status == http.StatusOK })
}
