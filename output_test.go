package main

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/cmd/command"
)

// testdata/format1 is an output of the last program that wrote format 1: two
// synthetic frames of points, one text of notes.

// Law: an output of format 1 is read; nothing is written to it.
func TestFormat1IsReadAndNotWritten(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "old"), os.DirFS("testdata/format1")); err != nil {
		t.Fatal(err)
	}
	before := treeOf(t, filepath.Join(dir, "old"))
	must(t, dir, "verify", "old")
	if said := must(t, dir, "info", "old"); !strings.Contains(said, "format 1,") ||
		!strings.Contains(said, "points/3: offsets 0 to 2 in 1 commits: 2 messages, 2 frames") {
		t.Errorf("info says:\n%s", said)
	}
	must(t, dir, "export", "old", "-o", "frame.svg")
	if picture, err := os.ReadFile(filepath.Join(dir, "frame.svg")); err != nil ||
		!bytes.Contains(picture, []byte("<path")) {
		t.Errorf("the picture of its frame: %.200s, %v", picture, err)
	}
	must(t, dir, "produce", "synthetic", "--kind", "lidar", "--frames", "3", "--points", "12", "--rate", "max",
		"--brokers", brokers, "--topic", "points")
	run := launch(t, dir, "run", "--until-end", "--brokers", brokers, "--topic", "points", "--out", "old")
	run.exits(78, patience)
	run.until(`its format is 1, and this program writes format 2.*name a new --out`)
	if diff := cmp.Diff(before, treeOf(t, filepath.Join(dir, "old"))); diff != "" {
		t.Errorf("the output of format 1 has changed:\n%s", diff)
	}
}

// Law: a program refuses, by name, what a later one has written.
func TestLaterFormatsAreRefused(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	smallOutput(t, dir, brokers)
	path := filepath.Join(dir, "out", "_commits", "store.json")
	store, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	later, _, _ := bytes.Cut(store, []byte(",\n \"crc32c\""))
	later = bytes.Replace(bytes.Replace(later, []byte(`"format": 2`), []byte(`"format": 3`), 1), []byte(`"schema": 2`),
		[]byte(`"schema": 3`), 1)
	later = fmt.Appendf(later, ",\n \"crc32c\": \"%08x\"\n}\n",
		crc32.Checksum(later, crc32.MakeTable(crc32.Castagnoli)))
	if err := os.WriteFile(path, later, 0o666); err != nil {
		t.Fatal(err)
	}
	before := treeOf(t, filepath.Join(dir, "out"))
	for _, c := range []struct {
		status int
		args   []string
	}{
		{78, []string{"run", "--until-end", "--brokers", brokers, "--topic", "points", "--out", "out"}},
		{1, []string{"verify", "out"}},
		{1, []string{"info", "out"}},
		{1, []string{"export", "out", "-o", "frame.svg"}},
	} {
		p := launch(t, dir, c.args...)
		p.exits(c.status, patience)
		p.until(`its format is 3, this program knows formats 1 to 2: it was written by a later version`)
	}
	if diff := cmp.Diff(before, treeOf(t, filepath.Join(dir, "out"))); diff != "" {
		t.Errorf("the output of a later format has changed:\n%s", diff)
	}
}

// The last program that wrote format 1, which ENTROPIPE_FORMAT1 names, refuses
// what this one writes, and leaves it as it is.
func TestFormat1ProgramRefusesFormat2(t *testing.T) {
	old := os.Getenv("ENTROPIPE_FORMAT1")
	if old == "" {
		t.Skip("ENTROPIPE_FORMAT1 does not name the last program that wrote format 1; .ci/run formats builds it")
	}
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	smallOutput(t, dir, brokers)
	before := treeOf(t, filepath.Join(dir, "out"))
	for _, args := range [][]string{
		{"run", "--until-end", "--brokers", brokers, "--topic", "points", "--out", "out"},
		{"verify", "out"},
		{"info", "out"},
		{"export", "out", "-o", "frame.svg"},
	} {
		cmd := exec.CommandContext(t.Context(), old, args...)
		cmd.Dir = dir
		said, err := cmd.CombinedOutput()
		if err == nil || !regexp.MustCompile(`its format is 2, this program knows 1`).Match(said) {
			t.Errorf("%s %v: %v\n%s", old, args, err, said)
		}
	}
	if diff := cmp.Diff(before, treeOf(t, filepath.Join(dir, "out"))); diff != "" {
		t.Errorf("a program of format 1 has changed it:\n%s", diff)
	}
	must(t, dir, "verify", "out")
}

// smallOutput writes three frames of topic points to out.
func smallOutput(t *testing.T, dir, brokers string) {
	t.Helper()
	must(t, dir, "produce", "synthetic", "--kind", "lidar", "--frames", "3", "--points", "12", "--rate", "max",
		"--brokers", brokers, "--topic", "points")
	must(t, dir, "run", "--until-end", "--brokers", brokers, "--topic", "points", "--out", "out")
}

// treeOf returns the content of every file below a folder, by name.
func treeOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		tree[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// quick is fast with other operators.
func quick(brokers, ops string, more ...string) []string {
	return append([]string{"run", "--brokers", brokers, "--out", "out", "--roll-records", "20", "--roll-age", "200ms",
		"--ops", ops}, more...)
}

// Two processes on one output, one for hulls and one for maxima: each says what the
// other does, by names and values, and counts it.
func TestTwoConfigurationsOnOneOutput(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	out := filepath.Join(dir, "out")
	feeding := feed(t, dir, brokers, "points")
	hulls := launch(t, dir, quick(brokers, "hull2d", "--listen", "127.0.0.1:0")...)
	waitFor(t, "commits", func() bool { return manifests(t, out) > 3 })
	maxima := launch(t, dir, quick(brokers, "maxima2d", "--workers", "1")...)
	maxima.until(`level=INFO msg="from offset \d+: ops: hull2d -> maxima2d; tables: hulls -> maxima"`)
	hulls.until(
		`level=WARN msg="another process writes to this output with another configuration: rows of both lie side by side" .*here_and_there="ops: hull2d -> maxima2d; tables: hulls -> maxima"`)
	maxima.until(
		`level=WARN msg="another process writes .* here_and_there="ops: maxima2d -> hull2d; tables: maxima -> hulls"`)
	url := hulls.until(`msg=listening .*metrics=(http://\S+)`)[1]
	if text, _ := get(t, url); !strings.Contains(text, `entropipe_foreign_configurations_total{topic="points"} `) ||
		strings.Contains(text, `entropipe_foreign_configurations_total{topic="points"} 0`) {
		t.Error("the metric does not count them")
	}
	// With --strict-config nobody stays beside others. A group of its own gives it
	// all partitions, since not all of them have records.
	strict := launch(t, dir, quick(brokers, "delaunay2d", "--strict-config", "--new-config", "--group", "strict")...)
	strict.exits(command.ExitConfig, patience)
	strict.says(
		`^strict-config: another process writes topic points to out with another configuration \(partition \d, offset \d+\): ops: delaunay2d -> (hull2d|maxima2d); tables: triangles -> (hulls|maxima)$`)
	n := stopFeed(t, brokers, "points", feeding)
	reaches(t, out, n)
	for _, p := range []*process{hulls, maxima} {
		p.signal(syscall.SIGTERM)
		p.exits(0, patience)
	}
	holds(t, out, n)
	text := must(t, dir, "info", "out")
	for _, want := range []string{"ops: hull2d", "maxima2d", "points/0: offsets "} {
		if !strings.Contains(text, want) {
			t.Errorf("info lacks %q:\n%s", want, text)
		}
	}
	if json := must(t, dir, "info", "out", "--json"); !strings.Contains(json, `"content_hash"`) ||
		!strings.Contains(json, `"ops": "maxima2d"`) {
		t.Errorf("info --json lacks the configurations:\n%s", json)
	}
}

// Processes with the same content say nothing, whatever else they differ in.
func TestSameContentIsNoOtherConfiguration(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	out := filepath.Join(dir, "out")
	feeding := feed(t, dir, brokers, "points")
	first := launch(t, dir, fast(brokers, "points", "--workers", "1", "--strict-config")...)
	waitFor(t, "commits", func() bool { return manifests(t, out) > 3 })
	second := launch(t, dir, fast(brokers, "points", "--workers", "2", "--listen", "127.0.0.1:0", "--memory", "100MiB",
		"--roll-age", "100ms", "--tables", "hulls", "--strict-config")...)
	second.until(`msg=assigned .* partitions=[1-3]$`)
	n := stopFeed(t, brokers, "points", feeding)
	reaches(t, out, n)
	for _, p := range []*process{first, second} {
		p.signal(syscall.SIGTERM)
		p.exits(0, patience)
		if log := p.log(); strings.Contains(log, "configuration") || strings.Contains(log, "from offset") {
			t.Errorf("another configuration was seen:\n%s", log)
		}
	}
	if configs, err := filepath.Glob(filepath.Join(out, "_commits", "configs", "*.json")); err != nil ||
		len(configs) != 1 {
		t.Errorf("%q are on record, want one configuration; %v", configs, err)
	}
	holds(t, out, n)
}

// A change along a chain is legal and logged; --strict-config refuses it at the
// start, before anything is read, until --new-config allows it.
func TestConfigurationChangesAlongAChain(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	out := filepath.Join(dir, "out")
	more := func(n string) { must(t, dir, spread(brokers, "points", "a", "--frames", n, "--rate", "max")...) }
	run := func(status int, args ...string) *process {
		t.Helper()
		p := launch(t, dir, append([]string{"run", "--brokers", brokers, "--out", "out", "--until-end"}, args...)...)
		p.exits(status, patience)
		return p
	}
	more("10")
	run(0, "--ops", "hull2d", "--strict-config") // nothing is there: nothing differs
	more("10")
	p := run(command.ExitConfig, "--ops", "hull2d,hull3d", "--strict-config")
	p.says(`^strict-config: out goes on with topic points from offset \d+ of partition \d, where another configuration ended: ops: hull2d -> hull2d,hull3d; tables: hulls -> hulls,hulls3d; --new-config allows this change$`)
	if strings.Contains(p.log(), "assigned") {
		t.Error("records were read before the difference was found")
	}
	file := filepath.Join(dir, "strict.yaml")
	if err := os.WriteFile(file, []byte("topic: points\nstrict-config: true\nops: [hull2d, hull3d]\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	placed := run(command.ExitConfig, "strict.yaml")
	placed.says(`^strict\.yaml:2:16: strict-config: out goes on `)
	run(0, "--ops", "hull2d,hull3d", "--strict-config",
		"--new-config").says(
		`level=INFO msg="from offset \d+: ops: hull2d -> hull2d,hull3d; tables: hulls -> hulls,hulls3d" topic=points`)
	more("10")
	run(0, "--ops", "hull3d,hull2d,hull2d", "--strict-config") // the newest now
	more("10")
	run(0, "--ops", "maxima2d").says(`level=INFO msg="from offset \d+: ops: hull2d,hull3d -> maxima2d; `)
	holds(t, out, 40)
	must(t, dir, "verify", "out")
	text := must(t, dir, "info", "out")
	if got := strings.Count(text, "\nconfiguration "); got != 3 {
		t.Errorf("info has %d configurations, want 3:\n%s", got, text)
	}
}

// realData returns a folder or file of published data, and skips the test
// where there is none.
func realData(t *testing.T, path ...string) string {
	t.Helper()
	root := os.Getenv("ENTROPIPE_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "shared", "data")
	}
	found, err := filepath.Abs(filepath.Join(append([]string{root}, path...)...))
	if err == nil {
		_, err = os.Stat(found)
	}
	if err != nil {
		t.Skipf("no real data: %v (ENTROPIPE_TESTDATA names their folder)", err)
	}
	return found
}

// A drive goes through whole: every point of every scan is in the tables, and
// what info says of the files is what comes out.
func TestRealDrive(t *testing.T) {
	t.Parallel()
	drive := realData(t, "kitti", "raw_2011_09_26_drive_0005")
	scans, err := filepath.Glob(filepath.Join(drive, "*.bin"))
	if err != nil || len(scans) == 0 {
		t.Skipf("no scans in %s; %v", drive, err)
	}
	const most = 4 // scans that are sent
	brokers, dir := startBroker(t), t.TempDir()
	if said := must(t, dir, "produce", "kitti", drive, "--rate", "max", "--brokers", brokers, "--limit",
		fmt.Sprint(most)); frames(t, said) != int64(min(most, len(scans))) {
		t.Fatalf("produce says: %s", said)
	}
	must(t, dir, "run", "--until-end", "--brokers", brokers, "--out", "out", "--tables",
		"hulls,maxima,triangles,points")
	out := filepath.Join(dir, "out")
	holds(t, out, int64(min(most, len(scans))))
	counts, err := countValues(filepath.Join(out, "frames"), "n_points")
	if err != nil {
		t.Fatal(err)
	}
	var points int64
	for _, scan := range scans[:min(most, len(scans))] {
		info, err := os.Stat(scan)
		if err != nil {
			t.Fatal(err)
		}
		points += info.Size() / 16
		if n := fmt.Sprint(info.Size() / 16); counts[n] == 0 {
			t.Errorf("%s has %s points, but no frame has: %v", scan, n, counts)
		}
	}
	if rows, err := countRows(filepath.Join(out, "points")); err != nil || rows != points {
		t.Errorf("%d rows of points, the scans have %d; %v", rows, points, err)
	}
	if bad, err := countValues(filepath.Join(out, "frames"), "status_delaunay2d"); err != nil ||
		bad["ok"] != min(most, len(scans)) {
		t.Errorf("triangulations: %v; %v", bad, err)
	}
}

func TestRealDrawings(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	text, err := os.ReadFile(realData(t, "sketch", "quickdraw_raw", "The Eiffel Tower.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	// A name with blanks is a name.
	if err := os.WriteFile(filepath.Join(dir, "The Eiffel Tower.ndjson"), text, 0o666); err != nil {
		t.Fatal(err)
	}
	n := int64(strings.Count(string(text), "\n"))
	if !strings.HasSuffix(string(text), "\n") {
		n++
	}
	said := must(t, dir, "produce", "quickdraw", "The Eiffel Tower.ndjson", "--rate", "max", "--brokers",
		brokers, "--topic", "pens")
	if frames(t, said) != n {
		t.Fatalf("%d lines, but: %s", n, said)
	}
	must(t, dir, "run", "--until-end", "--brokers", brokers, "--topic", "pens", "--out", "out")
	must(t, dir, "verify", "out")
	for _, table := range []string{"frames", "hulls", "maxima"} {
		if rows, err := countRows(filepath.Join(dir, "out", table)); err != nil || rows != n {
			t.Errorf("%d rows of %s, want %d; %v", rows, table, n, err)
		}
	}
	labels, err := countValues(filepath.Join(dir, "out", "frames"), "label")
	if err != nil || labels["The Eiffel Tower"] != int(n) {
		t.Errorf("labels: %v; %v", labels, err)
	}
}
