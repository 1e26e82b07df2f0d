package main

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"entropipe/sinks"
)

// Law: every flag of run says whether it decides rows, so that nobody adds one
// without having thought about two processes that differ in it; and the names that
// contents use are the flags'.
func TestEveryFlagOfRunSaysWhetherItDecidesRows(t *testing.T) {
	var grammar cli
	k, err := newParser(&grammar)
	if err != nil {
		t.Fatal(err)
	}
	var tagged []string
	for name, flag := range keysOf(nodeOf(k.Model.Node, &grammar.Run)) {
		switch class := flag.Tag.Get("content"); class {
		case "yes":
			tagged = append(tagged, name)
		case "no":
		default:
			t.Errorf("--%s: its field needs the tag content:\"yes\" if another value makes other rows of the same records, content:\"no\" if not; it has %q", name, class)
		}
	}
	found := sinks.Content{}
	contentFlags(reflect.ValueOf(&grammar.Run.runFlags).Elem(), found)
	slices.Sort(tagged)
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, tagged) || len(got) < 10 {
		t.Errorf("contents have the flags\n%q, tagged are\n%q", got, tagged)
	}
	for _, name := range []string{"workers", "listen", "brokers", "memory", "roll-age", "roll-bytes", "roll-records", "out", "group"} {
		if slices.Contains(tagged, name) {
			t.Errorf("--%s decides rows", name)
		}
	}
}

// contentOf is the content of a command line of run.
func contentOf(t *testing.T, args ...string) sinks.Content {
	t.Helper()
	var grammar cli
	k, err := newParser(&grammar)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parse(k, append([]string{"run"}, args...)); err != nil {
		t.Fatal(err)
	}
	c := &grammar.Run.runFlags
	frames, tables, err := c.frames(newLogger(&strings.Builder{}, "error", "text"))
	if err != nil {
		t.Fatal(err)
	}
	return c.content(&frames, tables, "")
}

// Law: what cannot change a row leaves the content as it is: places, sizes of
// batches, defaults that are written out, orders of lists, flags that do nothing.
func TestContentIsWhatDecidesRows(t *testing.T) {
	plain := contentOf(t)
	if plain["ops"] != "delaunay2d,hull2d,maxima2d (without z),maxima3d (with z)" || plain["tables"] != "hulls,maxima,triangles" || plain["max-frame-bytes"] != "64MiB" || plain["stage"] != "off" {
		t.Errorf("%v", plain)
	}
	for _, args := range []string{
		"--workers 7 --listen 127.0.0.1:0 --brokers kafka1,kafka2 --memory 1GiB --roll-age 1s --roll-bytes 1MiB --roll-records 5 --group x --out y --topic a,b --progress --pprof",
		"--tables hulls,maxima,triangles", "--tables triangles,hulls,maxima,hulls,rejects,frames", "--max-frame-bytes 65536KiB",
		"--top-k 9 --max-new 7 --truncate --audit-every 1 --device cuda --token-budget 9", "--entropy-every 7", "--strict-config --new-config --max-rejects none", "--tls --sasl plain --sasl-user a --sasl-password b",
	} {
		if got := contentOf(t, strings.Fields(args)...); got.Hash() != plain.Hash() {
			t.Errorf("%s: %q", args, plain.Changes(got))
		}
	}
	for args, want := range map[string]string{
		"--ops hull2d":                           "ops: delaunay2d,hull2d,maxima2d (without z),maxima3d (with z) -> hull2d; tables: hulls,maxima,triangles -> hulls",
		"--ops none":                             "ops: delaunay2d,hull2d,maxima2d (without z),maxima3d (with z) -> none; tables: hulls,maxima,triangles -> (none)",
		"--tables hulls,hulls3d":                 "ops: delaunay2d,hull2d,maxima2d (without z),maxima3d (with z) -> delaunay2d,hull2d,hull3d (with z),maxima2d (without z),maxima3d (with z); tables: hulls,maxima,triangles -> hulls,hulls3d",
		"--tables hulls,maxima,triangles,points": "tables: hulls,maxima,triangles -> hulls,maxima,points,triangles",
		"--tables hulls,maxima,triangles,entropy --entropy-every 5": "entropy-every: (none) -> 5; tables: hulls,maxima,triangles -> entropy,hulls,maxima,triangles",
		"--max-frame-bytes 1MiB":                                    "max-frame-bytes: 64MiB -> 1MiB",
		"--raw velodyne":                                            "raw: (none) -> velodyne",
		"--stage prune --publish x --for hull2d":                    "stage: off -> prune",
	} {
		if got := strings.Join(plain.Changes(contentOf(t, strings.Fields(args)...)), "; "); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", args, got, want)
		}
	}
	lm := contentOf(t, "--lm", "a/b/gpt2", "--task", "logits")
	if got := contentOf(t, "--lm", "c/gpt2", "--task", "logits", "--max-new", "3", "--audit-every", "2"); got.Hash() != lm.Hash() || lm["lm"] != "gpt2" || lm["top-k"] != "5" {
		t.Errorf("%q of %v", lm.Changes(got), lm)
	}
	var c runFlags
	frames, tables, _ := c.frames(newLogger(&strings.Builder{}, "error", "text"))
	if got := c.content(&frames, tables, "model_sha256: abc\ndevice: cuda\nmask_sha256: def\n"); got["model_sha256"] != "abc" || got["mask_sha256"] != "def" {
		t.Errorf("%v has not the hashes of models", got)
	}
}

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
	strict.exits(exitConfig, patience)
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
	p := run(exitConfig, "--ops", "hull2d,hull3d", "--strict-config")
	p.says(`^strict-config: out goes on with topic points from offset \d+ of partition \d, where another configuration ended: ops: hull2d -> hull2d,hull3d; tables: hulls -> hulls,hulls3d; --new-config allows this change$`)
	if strings.Contains(p.log(), "assigned") {
		t.Error("records were read before the difference was found")
	}
	file := filepath.Join(dir, "strict.yaml")
	if err := os.WriteFile(file, []byte("topic: points\nstrict-config: true\nops: [hull2d, hull3d]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	placed := run(exitConfig, "strict.yaml")
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
