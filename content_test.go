package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"entropipe/cmd/command"
)

// quick is fast with other operators.
func quick(brokers, ops string, more ...string) []string {
	return append([]string{"run", "--brokers", brokers, "--out", "out", "--roll-records", "20", "--roll-age", "200ms", "--ops", ops}, more...)
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
	hulls.until(`level=WARN msg="another process writes to this output with another configuration: rows of both lie side by side" .*here_and_there="ops: hull2d -> maxima2d; tables: hulls -> maxima"`)
	maxima.until(`level=WARN msg="another process writes .* here_and_there="ops: maxima2d -> hull2d; tables: maxima -> hulls"`)
	url := hulls.until(`msg=listening metrics=(http://\S+)`)[1]
	if text, _ := get(t, url); !strings.Contains(text, `entropipe_foreign_configurations_total{topic="points"} `) || strings.Contains(text, `entropipe_foreign_configurations_total{topic="points"} 0`) {
		t.Error("the metric does not count them")
	}
	// With --strict-config nobody stays beside others. A group of its own gives it
	// all partitions, since not all of them have records.
	strict := launch(t, dir, quick(brokers, "delaunay2d", "--strict-config", "--new-config", "--group", "strict")...)
	strict.exits(command.ExitConfig, patience)
	strict.says(`^strict-config: another process writes topic points to out with another configuration \(partition \d, offset \d+\): ops: delaunay2d -> (hull2d|maxima2d); tables: triangles -> (hulls|maxima)$`)
	n := stopFeed(t, brokers, "points", feeding)
	waitFor(t, "the rest", func() bool { return reached(t, out) >= n })
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
	if json := must(t, dir, "info", "out", "--json"); !strings.Contains(json, `"content_hash"`) || !strings.Contains(json, `"ops": "maxima2d"`) {
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
	second := launch(t, dir, fast(brokers, "points", "--workers", "2", "--listen", "127.0.0.1:0", "--memory", "100MiB", "--roll-age", "100ms", "--tables", "hulls", "--strict-config")...)
	second.until(`msg=assigned .* partitions=[1-3]$`)
	n := stopFeed(t, brokers, "points", feeding)
	waitFor(t, "the rest", func() bool { return reached(t, out) >= n })
	for _, p := range []*process{first, second} {
		p.signal(syscall.SIGTERM)
		p.exits(0, patience)
		if log := p.log(); strings.Contains(log, "configuration") || strings.Contains(log, "from offset") {
			t.Errorf("another configuration was seen:\n%s", log)
		}
	}
	if configs, err := filepath.Glob(filepath.Join(out, "_commits", "configs", "*.json")); err != nil || len(configs) != 1 {
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
	if err := os.WriteFile(file, []byte("topic: points\nstrict-config: true\nops: [hull2d, hull3d]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	placed := run(command.ExitConfig, "strict.yaml")
	placed.says(`^strict\.yaml:2:16: strict-config: out goes on `)
	run(0, "--ops", "hull2d,hull3d", "--strict-config", "--new-config").says(`level=INFO msg="from offset \d+: ops: hull2d -> hull2d,hull3d; tables: hulls -> hulls,hulls3d" topic=points`)
	more("10")
	run(0, "--ops", "hull3d,hull2d,hull2d", "--strict-config") // what is newest now
	more("10")
	run(0, "--ops", "maxima2d").says(`level=INFO msg="from offset \d+: ops: hull2d,hull3d -> maxima2d; `)
	holds(t, out, 40)
	must(t, dir, "verify", "out")
	text := must(t, dir, "info", "out")
	if got := strings.Count(text, "\nconfiguration "); got != 3 {
		t.Errorf("info has %d configurations, want 3:\n%s", got, text)
	}
}
