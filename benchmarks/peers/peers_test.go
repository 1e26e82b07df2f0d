package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"entropipe/algos/vector"
	"entropipe/benchmarks/rig"
)

// The test binary plays our own program, and peers with one fault each.
func TestMain(m *testing.M) {
	switch kind := os.Getenv("PEERS_TEST_PROGRAM"); kind {
	case "":
		os.Exit(m.Run())
	case ours:
		if err := (&oursCmd{Threads: []int{1, 2}}).Run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		fake(kind)
	}
}

// fake answers as kind says: wrong indices, an error, garbage, nothing, an end.
func fake(kind string) {
	fmt.Printf(`{"peer":"fake","version":"1","ops":["hull2d","hull2d:bare","delaunay2d"]}` + "\n")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		_, path, _ := strings.Cut(rest, " ") // or the number of runs
		switch word {
		case "load":
			b, _ := os.ReadFile(path)
			fmt.Printf(`{"points":%d}`+"\n", len(b)/16)
		case "save":
			os.WriteFile(path, []byte{0, 0, 0, 0, 1, 0, 0, 0}, 0o666)
			fmt.Println(`{"form":"vertices"}`)
		case "run":
			switch kind {
			case "refuses":
				fmt.Println(`{"error":"no such thing"}`)
			case "garbage":
				fmt.Println(`Traceback (most recent call last)`)
			case "hangs":
				time.Sleep(time.Minute)
			case "ends":
				os.Exit(3)
			default:
				times, _ := strconv.Atoi(path)
				fmt.Printf(`{"ns":[1000%s],"count":2}`+"\n", strings.Repeat(",1000", times-1))
			}
		}
	}
}

func start(t *testing.T, kind string, limit time.Duration) *process {
	t.Helper()
	t.Setenv("PEERS_TEST_PROGRAM", kind)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{command: []string{self}, limit: limit}
	if err := p.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p
}

// Every way to use our operators must find the same, through the protocol.
func TestOursAgreesWithItself(t *testing.T) {
	p := start(t, ours, time.Minute)
	c := &timeCmd{Quick: true, Ops: opOrder, Sizes: []string{"300"}, Seed: 5, Limit: time.Hour, Timeout: time.Hour,
		Dist: []string{"square", "strokes", "grid", "front", "lidar", "cube", "sphere", "octant"}}
	inputs, err := c.inputs()
	if err != nil {
		t.Fatal(err)
	}
	r := newReport(c.Seed)
	r.Versions[p.name()] = p.version()
	if err := c.measureAll(t.Context(), r, []*process{p}, inputs, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if len(r.LeftOut) > 0 || r.differ() > 0 {
		t.Errorf("seed %d: left out %v, %d differ:\n%s", c.Seed, r.LeftOut, r.differ(), r.markdown())
	}
	variants := map[string]int{}
	for _, f := range r.Figures {
		variants[f.Variant]++
		if f.Median <= 0 || f.Least > f.Median || f.Runs == 0 || f.Found == 0 {
			t.Errorf("implausible: %+v", f)
		}
		if f.Variant != "" && f.Agreement != same {
			t.Errorf("%s %s: %q, want %q", f.label(), f.input(), f.Agreement, same)
		}
	}
	want := map[string]int{"": 12, asFloat32: 3, sortedRows: 2} // strokes, grid and front are whole numbers
	if vector.Best() > vector.Portable {
		want[withPortable] = 12
	}
	if diff := cmp.Diff(want, variants); diff != "" {
		t.Errorf("figures by variant (-want +got):\n%s", diff)
	}
}

func TestPeerThatFailsIsLeftOut(t *testing.T) {
	for kind, want := range map[string]string{
		"refuses": "no such thing",
		"garbage": "is no answer",
		"hangs":   "took too long",
		"ends":    "exit status 3",
	} {
		p := start(t, kind, time.Minute)
		if kind == "hangs" {
			p.limit = 200 * time.Millisecond // the others are to be given up for what they answer
		}
		r := measureFake(t, p)
		if len(r.Figures) > 0 || len(r.LeftOut) != 2 || !strings.Contains(r.LeftOut[0].Why, want) {
			t.Errorf("%s: figures %v, left out %v, want %q", kind, r.Figures, r.LeftOut, want)
		}
		// The next input finds it again.
		p.limit = time.Minute
		t.Setenv("PEERS_TEST_PROGRAM", "works")
		if r := measureFake(t, p); len(r.Figures) == 0 && kind != "refuses" && kind != "garbage" {
			t.Errorf("%s: not started again: %v", kind, r.LeftOut)
		}
	}
}

func measureFake(t *testing.T, sources ...*process) *report {
	t.Helper()
	c := &timeCmd{Quick: true, Ops: []string{"hull2d"}, Sizes: []string{"100"}, Dist: []string{"square"}, Seed: 1,
		Limit: time.Second, Timeout: time.Minute}
	inputs, err := c.inputs()
	if err != nil {
		t.Fatal(err)
	}
	r := newReport(1)
	if err := c.measureAll(t.Context(), r, sources, inputs, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	return r
}

// A comparison that cannot fail is a defect.
func TestPeerThatFindsSomethingElseIsNamed(t *testing.T) {
	we := start(t, ours, time.Minute)
	they := start(t, "wrong", time.Minute)
	r := measureFake(t, we, they)
	if r.differ() != 2 || !strings.Contains(r.markdown(), "fake, hull2d square 100: ") {
		t.Errorf("%d differ:\n%s", r.differ(), r.markdown())
	}
}

func TestInterruptedRunEnds(t *testing.T) {
	p := start(t, "hangs", time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	c := &timeCmd{Quick: true, Ops: []string{"hull2d"}, Sizes: []string{"100"}, Dist: []string{"square"},
		Limit: time.Second, Timeout: time.Minute}
	inputs, err := c.inputs()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.measureAll(ctx, newReport(1), []*process{p}, inputs, t.TempDir()); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestForecastLeavesOutWhatGrowsTooLong(t *testing.T) {
	p := &process{hello: hello{Peer: "slow"}, limit: 40 * time.Second}
	f := forecast{}
	f.learn(&entry{source: p, begun: true, last: time.Second, ns: []int64{1e9}}, "hull2d", "square", 1000)
	if got := f.of("slow", "hull2d", "square", 10_000); got < 10*time.Second || got > 20*time.Second {
		t.Errorf("ten times the points: %v", got)
	}
	if got := f.of("slow", "hull2d", "disk", 10_000); got != 0 {
		t.Errorf("another distribution: %v", got)
	}
	f.learn(&entry{source: p, err: fmt.Errorf("%w: more than 40s", errTooLong)}, "hull2d", "disk", 1000)
	if got := f.of("slow", "hull2d", "disk", 10_000); got < 40*time.Second {
		t.Errorf("after a request that was given up: %v", got)
	}
}

func TestInputsRefuseWhatIsNotThere(t *testing.T) {
	for _, c := range []struct {
		cmd  timeCmd
		want string
	}{
		{timeCmd{Ops: opOrder, Sizes: []string{"many"}}, "--sizes many"},
		{timeCmd{Ops: opOrder, Sizes: []string{"1e9"}}, "--sizes 1e9"},
		{timeCmd{Ops: opOrder, Dist: []string{"squares"}}, "no distribution is called squares"},
		{timeCmd{Ops: []string{"hull3d"}, Dist: []string{"square"}}, "no distribution of --dist belongs to --ops"},
	} {
		if _, err := c.cmd.inputs(); !errors.Is(err, rig.ErrUsage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.cmd, err, c.want)
		}
	}
	if _, err := (&timeCmd{Only: []string{"cgla"}}).wanted(); !errors.Is(err, rig.ErrUsage) {
		t.Errorf("unknown peer: %v", err)
	}
	if some, err := (&timeCmd{Only: []string{"none"}}).wanted(); err != nil || len(some) > 0 {
		t.Errorf("none: %v, %v", some, err)
	}
}

func TestInputsComeSmallFirstAndHugeOnesAreFew(t *testing.T) {
	all, err := (&timeCmd{Ops: []string{"hull2d"}, Dist: []string{"square", "disk"}}).inputs()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, in := range all {
		got = append(got, in.String())
	}
	want := []string{"square 1e3", "disk 1e3", "square 1e4", "disk 1e4", "square 1e5", "disk 1e5", "square 1e6",
		"disk 1e6", "square 1e7"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("inputs (-want +got):\n%s", diff)
	}
}

// Every peer of the list has a folder that pins its version.
func TestEveryPeerHasAFolderWithPinnedVersions(t *testing.T) {
	pins := map[string]string{"cgal": "peer.cpp", "python": "requirements.txt", "rust": "Cargo.lock",
		"golang": "go.sum"}
	for _, p := range peers {
		if _, err := os.Stat(filepath.Join(p.kit, pins[p.kit])); err != nil || kits[p.kit].build == nil {
			t.Errorf("%s: %v", p.name, err)
		}
	}
}

func TestReportIsWritten(t *testing.T) {
	f := func(op, peer, variant string, ns float64, agreement string) figure {
		version := map[string]string{ours: "avx2", "CGAL": "5.5.1"}[peer]
		return figure{Op: op, Dist: "square", Size: 1000, Points: 1000, Peer: peer, Version: version, Variant: variant,
			Median: ns, Least: ns / 2, Runs: 3, Ns: []int64{1, 2, 3}, Found: 9, Agreement: agreement}
	}
	r := &report{Stamps: []rig.Stamp{{Bench: "peers", Time: "2026-01-02T03:04:05Z", Commit: "0123456789ab",
		CPU: "Abacus", Cores: 2, Go: "go1"}}, Seed: 7, Versions: map[string]string{ours: "avx2", "CGAL": "5.5.1"},
		Figures: []figure{f("hull2d", ours, "", 2, ""), f("hull2d", "CGAL", "", 30, same),
			f("hull2d", "CGAL", "bare", 20, same), f("hull2d", "X", "", 100, "1 missing, 0 too many"),
			f("delaunay2d", ours, "", 300, ""), f("delaunay2d", "CGAL", "", 450, otherTies)},
		LeftOut: []leftOut{{"Y", "", "could not be built"}, {"", "disk 1e6", "no time left"},
			{"Z", "hull2d disk 1e6", "slow"}}}
	dir := t.TempDir()
	var printed bytes.Buffer
	if err := r.write(dir, &printed); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "peers.md"))
	if err != nil || string(page) != printed.String() {
		t.Fatalf("the page differs from what is printed: %v", err)
	}
	for _, want := range []string{
		"CPU Abacus, 2 cores, go1, date 2026-01-02, commit 0123456789ab, seed 7.",
		"| input | entropipe | × | strongest peer | CGAL | CGAL bare | X |\n",
		"| square 1e3 | 2.00 | 10.0 | CGAL bare | 30.0 | 20.0 | 100† |\n",
		"| square 1e3 | 300 | 1.50 | CGAL | 450 |\n",
		"* X, hull2d square 1e3: 1 missing, 0 too many\n",
		"* Y: could not be built\n", "* disk 1e6: no time left\n", "* Z, hull2d disk 1e6: slow\n",
		"* CGAL 5.5.1: ", "* entropipe avx2\n",
	} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("no %q in\n%s", want, printed.String())
		}
	}
	checkLines(t, filepath.Join(dir, "peers.jsonl"), len(r.Figures)+len(r.LeftOut))
	if again, err := readReport(dir); err != nil || len(again.Figures) != len(r.Figures) ||
		again.differ() != r.differ() || again.LeftOut[0] != r.LeftOut[0] {
		t.Errorf("read again: %+v, %v", again, err)
	}
	if err := r.write(dir, &printed); err != nil {
		t.Fatal(err)
	}
	checkLines(t, filepath.Join(dir, "peers.jsonl"), 2*(len(r.Figures)+len(r.LeftOut))) // appended
}

func checkLines(t *testing.T, path string, want int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range bytes.Lines(b) {
		var v map[string]any
		if err := json.Unmarshal(line, &v); err != nil || v["cpu"] != "Abacus" || v["seed"] != 7.0 ||
			v["why"] == nil && v["median_ns_per_point"] == nil {
			t.Errorf("line %d: %v: %s", n+1, err, line)
		}
		n++
	}
	if n != want {
		t.Errorf("%d lines, want %d", n, want)
	}
}

// A later run replaces the lines of its own inputs alone, with what was left out there.
func TestPageShowsTheNewestRunOfEachInput(t *testing.T) {
	dir := t.TempDir()
	run := func(time string, ns float64, left []leftOut, sizes ...int) {
		r := &report{Stamps: []rig.Stamp{{Time: time}}, LeftOut: left}
		for _, size := range sizes {
			r.Figures = append(r.Figures, figure{Op: "hull2d", Dist: "square", Size: size, Peer: ours, Median: ns})
		}
		if err := r.write(dir, t.Output()); err != nil {
			t.Fatal(err)
		}
	}
	run("2026-01-01T00:00:00Z", 1, []leftOut{{"X", "hull2d square 1e3", "old"}, {"X", "hull2d square 1e4", "stays"},
		{"", "disk 1e7", "late"}}, 1000, 10000)
	run("2026-01-02T00:00:00Z", 2, []leftOut{{"X", "hull2d square 1e3", "new"}}, 1000)
	r, err := readReport(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range r.Figures {
		got = append(got, fmt.Sprint(f.input(), " ", f.Median))
	}
	for _, l := range r.LeftOut {
		got = append(got, l.String())
	}
	want := []string{"square 1e3 2", "square 1e4 1", "X, hull2d square 1e4: stays", "disk 1e7: late",
		"X, hull2d square 1e3: new"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// The committed page is the one that the committed records make.
func TestPageComesFromRecords(t *testing.T) {
	const folder = "../results"
	r, err := readReport(folder)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "peers.md")
	if text, err := os.ReadFile(path); err != nil || string(text) != r.markdown() {
		t.Errorf("%s is not what `go run ./benchmarks/peers render` makes (%v)", path, err)
	}
}
