package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"entropipe/sinks/record"
)

// drives writes folders of scans and returns the folder above them. A scan has so many
// points; the drives lie in folders a, b, …
func drives(t *testing.T, points int, scans ...int) string {
	t.Helper()
	archive := t.TempDir()
	for k, n := range scans {
		for i := range n {
			writeFiles(t, filepath.Join(archive, string(rune('a'+k))), 0o666,
				map[string]string{fmt.Sprintf("%010d.bin", i): string(scan(points, 1000*k+i))})
		}
	}
	return archive
}

// sameRows checks that two outputs have the same rows.
func sameRows(t *testing.T, got, want string) {
	t.Helper()
	times := []string{"hull2d_ns", "hull3d_ns", "maxima2d_ns", "maxima3d_ns", "delaunay2d_ns", "latency_ns"}
	for _, table := range []string{"frames", "hulls", "maxima", "triangles"} {
		a, b := rowsOf(t, got, table, times...), rowsOf(t, want, table, times...)
		if len(b) == 0 && table == "frames" {
			t.Fatal("there are no frames")
		}
		if !slices.Equal(a, b) {
			t.Fatalf("table %s: %d rows differ from the %d rows of %s", table, len(a), len(b), want)
		}
	}
}

// A command line that cannot work names its flag, exits 2 and leaves nothing behind.
func TestBackfillRefuses(t *testing.T) {
	archive, dir := drives(t, 10, 3), t.TempDir()
	for _, c := range []struct {
		args   string
		env    string
		status int
		want   string
	}{
		{"ARCHIVE --until-end", "", 2, "--until-end: a backfill reads the whole archive, and ends"},
		{"ARCHIVE --group g", "", 2, "--group: a backfill joins no consumer group"},
		{"ARCHIVE --roll-age 3s", "", 2, "--roll-age: a backfill commits by size"},
		{"ARCHIVE --from latest", "", 2, "--from: a backfill reads the whole archive"},
		{"ARCHIVE --topic points", "", 2, "--topic: a backfill reads files; --plan names"},
		{"kitti ARCHIVE --resume", "", 2, "--resume: a backfill goes on where it stopped"},
		{"ARCHIVE --chunk-age=3s", "", 2, "--chunk-age: no message of a backfill comes in chunks"},
		{"ARCHIVE --untilend", "", 2, "unknown flag --untilend"},
		{"synthetic", "", 1, "synthetic: no such file or directory"},
		{"ARCHIVE --shard 2/2", "", 2, "--shard"},
		{"ARCHIVE --shard 1", "", 2, "--shard"},
		{"ARCHIVE --shard=-1/2", "", 2, "--shard"},
		{"ARCHIVE --shard 0/2 --shards 2", "", 2, "--shard, --shards: want one of them"},
		{"ARCHIVE --shards 2", "", 2, "--shards 2 needs JOB_COMPLETION_INDEX"},
		{"ARCHIVE", "JOB_COMPLETION_INDEX=1", 2, "--shards is missing: JOB_COMPLETION_INDEX is 1"},
		{"ARCHIVE --shards 2", "JOB_COMPLETION_INDEX=2", 2, "--shards: JOB_COMPLETION_INDEX is 2 of 2"},
		{"ARCHIVE", "JOB_COMPLETION_INDEX=7 JOB_COMPLETIONS=7", 2, "--shards: JOB_COMPLETION_INDEX is 7 of 7"},
		{"ARCHIVE --plan a/b", "", 2, "--plan"},
		{"ARCHIVE --jobs -1", "", 2, "--jobs"},
		{"ARCHIVE --identity md5", "", 2, "--identity"},
		{"ARCHIVE --progress=maybe", "", 2, "--progress"},
		{"ARCHIVE --stage seed", "", 2, "--stage seed needs --model"},
		{"ARCHIVE --config none.yaml", "", 78, "none.yaml"},
		{"ARCHIVE --sequence one", "", 2, "--sequence one would give one name to"},
		{"kitti ARCHIVE", "", 1, "no .bin file in"},
		{"gone", "", 1, "gone: no such file or directory"},
		{"plan gone", "", 1, "gone: no such file or directory"},
		{"plan ARCHIVE --ops hull2d", "", 2, "unknown flag --ops"},
	} {
		for _, setting := range strings.Fields(c.env) {
			name, value, _ := strings.Cut(setting, "=")
			t.Setenv(name, value)
		}
		args := strings.Fields(strings.ReplaceAll(c.args, "ARCHIVE", archive))
		if strings.HasPrefix(c.args, "ARCHIVE --sequence") {
			args[0] = drives(t, 10, 1, 1)
		}
		p := launch(t, dir, append([]string{"backfill"}, args...)...)
		<-p.done
		if got := p.cmd.ProcessState.ExitCode(); got != c.status || !strings.Contains(p.log(), c.want) {
			t.Errorf("%s %s: status %d, want %d with %q:\n%s", c.env, c.args, got, c.status, c.want, p.log())
		}
		for _, setting := range strings.Fields(c.env) {
			name, _, _ := strings.Cut(setting, "=")
			os.Unsetenv(name)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s leaves %v, %v", c.args, left, err)
		}
	}
}

// A dry run counts, computes a sample and writes nothing.
func TestBackfillDryRunWritesNothing(t *testing.T) {
	t.Parallel()
	archive, dir := drives(t, 500, 30, 10), t.TempDir()
	out := must(t, dir, "backfill", archive, "--dry-run")
	for _, want := range []string{": 40 files, 40 items, 40 frames, ", " in 2 lanes\n", "sample: 40 items in ",
		"estimate: ", " on this machine by one process, "} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// Any division of an archive among processes gives the rows that one process gives: shards,
// two at once, and a settings file with variables.
func TestBackfillInShards(t *testing.T) {
	t.Parallel()
	archive, dir := drives(t, 300, 20, 7, 12, 1, 9), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	said := must(t, dir, "backfill", archive, "--out", "whole")
	for _, want := range []string{": 5 of 5 lanes, 49 items, 49 frames, 14 700 points, ", " rows, 0 rejects in ",
		"; nothing is left\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("the summary does not say %q: %s", want, said)
		}
	}
	holds(t, at("whole"), 49)
	if again := must(t, dir, "backfill", archive, "--out", "whole"); !strings.Contains(again,
		": 5 of 5 lanes, 0 items, 0 frames") {
		t.Errorf("a second run: %s", again)
	}

	for _, shard := range []string{"1/2", "0/2", "1/2"} {
		must(t, dir, "backfill", archive, "--out", "shards", "--shard", shard)
	}
	sameRows(t, at("shards"), at("whole"))

	var both []*process
	for range 2 {
		both = append(both, launch(t, dir, "backfill", archive, "--out", "two", "--jobs", "2", "--roll-records", "3"))
	}
	for _, p := range both {
		p.exits(0, patience)
	}
	holds(t, at("two"), 49)
	sameRows(t, at("two"), at("whole"))

	writeFiles(t, dir, 0o666, map[string]string{"backfill.yaml": "out: configured\njobs: 1\nplan: named\n"})
	must(t, dir, "backfill", archive, "--config", "backfill.yaml")
	must(t, dir, "backfill", archive, "--config", "backfill.yaml", "--plan", "named") // it searches nothing
	sameRowsOfPlans(t, at("configured"), at("whole"))
}

// sameRowsOfPlans is sameRows for plans of different names.
func sameRowsOfPlans(t *testing.T, got, want string) {
	t.Helper()
	counted := func(out string) int64 {
		rows, err := countRows(filepath.Join(out, "hulls"))
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	if a, b := counted(got), counted(want); a != b {
		t.Errorf("%d hulls, want %d", a, b)
	}
}

// Lanes that are done are not computed again, so other operators are refused, with the way
// out; also by a shard that has nothing yet.
func TestBackfillOfOtherContent(t *testing.T) {
	t.Parallel()
	archive, dir := drives(t, 30, 3, 4), t.TempDir()
	must(t, dir, "backfill", archive, "--out", "out", "--shard", "0/2", "--ops", "hull2d")
	for _, shard := range []string{"0/2", "1/2"} {
		p := launch(t, dir, "backfill", archive, "--out", "out", "--shard", shard, "--ops", "hull3d")
		p.exits(78, patience)
		p.says(`new-config: plan backfill-\w+ has rows of another configuration in out: .*ops: hull2d -> hull3d.*` +
			`another --out, or go on here with --new-config`)
	}
	must(t, dir, "backfill", archive, "--out", "out", "--shard", "1/2", "--ops", "hull3d", "--new-config")
	holds(t, filepath.Join(dir, "out"), 7)
}

// The plan that is printed is the one that is worked on.
func TestBackfillPlan(t *testing.T) {
	t.Parallel()
	archive, dir := drives(t, 10, 3, 4), t.TempDir()
	text := must(t, dir, "backfill", "plan", archive, "--out", "out", "--plan", "p")
	for _, want := range []string{"p: 2 lanes, 7 items, 7 frames, 7 files, ", "lane 0: items 0 to 2 of a (kitti), ",
		"lane 1: items 0 to 3 of b (kitti), "} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	var head record.Plan
	if err := json.Unmarshal([]byte(must(t, dir, "backfill", "plan", archive, "--out", "out", "--plan", "p",
		"--json")), &head); err != nil || head.Name != "p" || head.Items != 7 {
		t.Errorf("%+v, %v", head, err)
	}
	if said := must(t, dir, "backfill", archive, "--out", "out", "--plan", "p"); !strings.HasPrefix(said, "p: 2 of 2") {
		t.Error(said)
	}
	holds(t, filepath.Join(dir, "out"), 7)
}

// A damaged file stops its lane; the others are done, and the error names it. With
// --skip-bad it is a hole.
func TestBackfillOfDamagedFile(t *testing.T) {
	t.Parallel()
	archive, dir := drives(t, 10, 3, 4), t.TempDir()
	writeFiles(t, filepath.Join(archive, "b"), 0o666, map[string]string{"0000000002.bin": "short"})
	p := launch(t, dir, "backfill", archive, "--out", "out")
	p.exits(1, patience)
	p.says(`^entropipe: 1 of 2 lanes stopped, and the others are done: lane 1 \(.*0000000002\.bin.*run it again`)
	if !strings.Contains(p.out(), "; left: 1 lanes with 2 items") {
		t.Error(p.out())
	}
	must(t, dir, "backfill", archive, "--out", "out", "--skip-bad")
	if got := committed(verified(t, filepath.Join(dir, "out"))); got != 7 {
		t.Errorf("%d offsets are committed, want 7 with the hole", got)
	}
	if frames, err := countRows(filepath.Join(dir, "out", "frames")); frames != 6 || err != nil {
		t.Errorf("%d frames, %v", frames, err)
	}
}

// An output of run takes a backfill too: the plan is another topic.
func TestBackfillIntoOutputOfRun(t *testing.T) {
	t.Parallel()
	brokers, archive, dir := startBroker(t), drives(t, 100, 5), t.TempDir()
	must(t, dir, "produce", "kitti", filepath.Join(archive, "a"), "--rate", "max", "--brokers", brokers)
	must(t, dir, "run", "--brokers", brokers, "--out", "out", "--until-end")
	must(t, dir, "backfill", "kitti", filepath.Join(archive, "a"), "--out", "out")
	holds(t, filepath.Join(dir, "out"), 10)
	p := launch(t, dir, "backfill", "kitti", filepath.Join(archive, "a"), "--out", "out", "--plan", "points")
	p.exits(78, patience)
	p.says(`points is a topic of the output; a plan needs a name of its own`)
}

// A file of backfill is checked with its own keys, and one of run is refused by name.
func TestValidateOfBackfill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, 0o666, map[string]string{"good.yaml": "plan: p\njobs: 2\nshard: 1/3\nops: [hull3d]\n",
		"run.yaml": "topic: points\n", "bad.yaml": "shard: 3/3\n"})
	if said := must(t, dir, "validate", "good.yaml", "--of", "backfill"); !strings.Contains(said,
		"ok   configuration: good.yaml: backfill to ./entropipe-out, tables frames, rejects, hulls3d") {
		t.Error(said)
	}
	for file, want := range map[string]string{"run.yaml": "run.yaml:1:1: topic: unknown key",
		"bad.yaml": "bad.yaml:1:8"} {
		p := launch(t, dir, "validate", file, "--of", "backfill")
		p.exits(78, patience)
		p.says(want)
	}
}
