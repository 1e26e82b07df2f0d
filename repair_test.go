package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"entropipe/cmd"
	"entropipe/cmd/command"
	"entropipe/sinks/read"
	"entropipe/sinks/record"
)

// everyFile returns the bytes of all files of an output by their names.
func everyFile(t *testing.T, out string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(out, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		all[strings.TrimPrefix(name, out+"/")] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sameBytes tells whether two states of an output have the same files but for
// their names.
func sameBytes(a, b map[string]string) bool {
	return slices.Equal(slices.Sorted(maps.Values(a)), slices.Sorted(maps.Values(b)))
}

const repairRecords = 70

// brokenOutput makes a topic, and an output that has it, and does something to
// the output's newest manifest.
func brokenOutput(t *testing.T, harm func(t *testing.T, out, manifest string, m *record.Manifest)) (brokers, dir,
	out string) {
	t.Helper()
	brokers, dir = startBroker(t), t.TempDir()
	out = filepath.Join(dir, "out")
	must(t, dir, spread(brokers, "points", "a", "--frames", strconv.Itoa(repairRecords), "--rate", "max")...)
	must(t, dir, fast(brokers, "points", "--until-end")...)
	if n := manifests(t, out); n < 3 {
		t.Fatalf("%d commits are too few", n)
	}
	name, m := newestManifest(t, out)
	harm(t, out, name, &m)
	return brokers, dir, out
}

func loseManifest(t *testing.T, _, manifest string, _ *record.Manifest) {
	t.Helper()
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
}

func halveManifest(t *testing.T, _, manifest string, _ *record.Manifest) {
	t.Helper()
	info, err := os.Stat(manifest)
	if err == nil {
		err = os.Truncate(manifest, info.Size()/2)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The newest commit is lost in one way or another: verify says so, verify --repair
// explains and changes nothing, --yes moves files aside and deletes none, run
// writes the records again, and each is there exactly once.
func TestRepairOfTheNewestCommit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		harm func(t *testing.T, out, manifest string, m *record.Manifest)
		says string
	}{
		"manifest lost":    {loseManifest, "which are in no manifest"},
		"manifest damaged": {halveManifest, "newest manifest is damaged"},
		"file lost": {func(t *testing.T, out, _ string, m *record.Manifest) {
			if err := os.Remove(filepath.Join(out, m.Files[0].Path)); err != nil {
				t.Fatal(err)
			}
		}, "files that are missing or damaged"},
		"staged file flipped": {func(t *testing.T, out, _ string, m *record.Manifest) {
			putBack(t, out, m)
			flip(t, filepath.Join(out, m.Files[0].Staged))
		}, "files that are missing or damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brokers, dir, out := brokenOutput(t, c.harm)
			before := everyFile(t, out)
			launch(t, dir, "verify", "out").exits(1, patience)

			dry := launch(t, dir, "verify", "out", "--repair", "--brokers", brokers)
			dry.exits(1, patience)
			for _, part := range []string{c.says, "run goes on at offset", "has no members",
				"nothing is done without --yes"} {
				if !strings.Contains(dry.out(), part) {
					t.Errorf("the plan does not say %q:\n%s", part, dry.out())
				}
			}
			if after := everyFile(t, out); !maps.Equal(before, after) {
				t.Fatalf("explaining has changed %q to %q", slices.Sorted(maps.Keys(before)),
					slices.Sorted(maps.Keys(after)))
			}

			var report read.Report
			text := must(t, dir, "verify", "out", "--repair", "--yes", "--json", "--brokers", brokers)
			if err := json.Unmarshal([]byte(text), &report); err != nil || report.Repair == nil ||
				!report.Repair.Done || report.Repair.Files() == 0 || len(report.Repair.Left) > 0 {
				t.Fatalf("%v: %s", err, text)
			}
			after := everyFile(t, out)
			if !sameBytes(before, after) {
				t.Error("files are not what they were, under other names")
			}
			for file := range after {
				if strings.HasPrefix(file, "_quarantine/") && !strings.HasSuffix(file, ".quarantined") {
					t.Errorf("readers may find %s", file)
				}
			}
			must(t, dir, "verify", "out")
			must(t, dir, "info", "out")
			must(t, dir, fast(brokers, "points", "--until-end")...)
			holds(t, out, repairRecords)
			must(t, dir, "export", "out", "-o", "frame.svg")
			if again := must(t, dir, "verify", "out", "--repair", "--yes", "--brokers",
				brokers); !strings.Contains(again, "nothing to move") {
				t.Errorf("there is something to repair:\n%s", again)
			}
		})
	}
}

// Who ran on after the loss is stuck: the new commit's names are taken. A repair
// moves what is in the way, and the commit is published.
func TestRepairOfAnOutputThatWasWrittenTo(t *testing.T) {
	t.Parallel()
	brokers, dir, out := brokenOutput(t, loseManifest)
	before := everyFile(t, out)
	stuck := launch(t, dir, fast(brokers, "points", "--until-end")...)
	stuck.exits(1, patience)
	stuck.says("another file has this name")
	launch(t, dir, "verify", "out").exits(1, patience)
	must(t, dir, "verify", "out", "--repair", "--yes", "--brokers", brokers)
	must(t, dir, fast(brokers, "points", "--until-end")...)
	holds(t, out, repairRecords)
	kept := slices.Sorted(maps.Values(everyFile(t, out)))
	for name, data := range before {
		if _, found := slices.BinarySearch(kept, data); !found {
			t.Errorf("the bytes of %s are gone", name)
		}
	}
}

// Nothing is moved while a process is in the output's group. One that was killed
// on this machine is none.
func TestRepairIsRefusedBesideAWriter(t *testing.T) {
	t.Parallel()
	brokers, dir, out := brokenOutput(t, loseManifest)
	for _, group := range []string{"", "mine"} {
		flags := []string{}
		if group != "" {
			flags = []string{"--group", group}
		}
		before := everyFile(t, out)
		repair := append([]string{"verify", "out", "--repair", "--yes", "--brokers", brokers}, flags...)
		idle := launch(t, dir, append([]string{"run", "--brokers", brokers, "--topic", "points", "--out", "out",
			"--roll-age", "0", "--roll-records", "1000000"}, flags...)...)
		idle.until(`msg=assigned .* partitions=4$`)
		refused := launch(t, dir, repair...)
		refused.exits(1, patience)
		refused.says(`has 1 members \(entropipe.*nothing was moved`)
		dry := launch(t, dir, append([]string{"verify", "out", "--repair", "--brokers", brokers}, flags...)...)
		dry.exits(1, patience)
		if !strings.Contains(dry.out(), "would be refused") {
			t.Errorf("the plan does not say that it would be refused:\n%s", dry.out())
		}
		after := everyFile(t, out)
		maps.DeleteFunc(after, func(name, _ string) bool { return strings.HasPrefix(name, "_staging/") })
		if !maps.Equal(before, after) {
			t.Fatal("files were moved")
		}
		idle.killed()
		if group == "" {
			continue // to the second group, whose repair is the one that is done
		}
		must(t, dir, repair...)
		must(t, dir, fast(brokers, "points", "--until-end")...)
		holds(t, out, repairRecords)
	}
}

// Without brokers to ask nothing is moved, unless the user says that there are
// none any more.
func TestRepairWithoutBrokers(t *testing.T) {
	t.Parallel()
	brokers, dir, out := brokenOutput(t, loseManifest)
	before := everyFile(t, out)
	alone := launch(t, dir, "verify", "out", "--repair", "--yes", "--brokers", ownAddress(t))
	alone.exits(1, patience)
	alone.says(`no Kafka broker answers.*--offline`)
	if !maps.Equal(before, everyFile(t, out)) {
		t.Fatal("files were moved")
	}
	dry := launch(t, dir, "verify", "out", "--repair", "--offline")
	dry.exits(1, patience)
	if !strings.Contains(dry.out(), "is for you to know") || !maps.Equal(before, everyFile(t, out)) {
		t.Errorf("offline:\n%s", dry.out())
	}
	must(t, dir, "verify", "out", "--repair", "--yes", "--offline")
	must(t, dir, fast(brokers, "points", "--until-end")...)
	holds(t, out, repairRecords)
}

// Records that the topic does not have any more would not be written again: their
// files stay, unless the user does not want the topic to be asked.
func TestRepairKeepsRowsWhoseRecordsAreGone(t *testing.T) {
	t.Parallel()
	_, dir, out := brokenOutput(t, loseManifest)
	before := everyFile(t, out)
	for topic, says := range map[string]string{"gone": "is gone", "another": "created again"} {
		other := startBroker(t)
		if topic == "another" {
			must(t, dir, spread(other, "points", "a", "--frames", strconv.Itoa(repairRecords), "--rate", "max")...)
		}
		kept := launch(t, dir, "verify", "out", "--repair", "--yes", "--brokers", other)
		kept.exits(1, patience)
		if !strings.Contains(kept.out(), "not repaired: points/") ||
			!strings.Contains(kept.out(), "could not write these records again") ||
			!strings.Contains(kept.out(), says) {
			t.Errorf("%s: the plan does not say why:\n%s", topic, kept.out())
		}
		if !maps.Equal(before, everyFile(t, out)) {
			t.Fatalf("%s: files were moved", topic)
		}
	}
	must(t, dir, "verify", "out", "--repair", "--yes", "--offline")
	if after := everyFile(t, out); !sameBytes(before, after) || maps.Equal(before, after) {
		t.Error("nothing was moved, or files are gone")
	}
}

// A hole in the middle is explained and left alone.
func TestRepairLeavesAHole(t *testing.T) {
	t.Parallel()
	brokers, dir, out := brokenOutput(t, func(t *testing.T, out, _ string, newest *record.Manifest) {
		names, err := filepath.Glob(filepath.Join(out, "_commits", "topics", "points",
			strconv.Itoa(int(newest.Partition)), "*.json"))
		if err != nil || len(names) < 3 {
			t.Fatalf("%q, %v", names, err)
		}
		loseManifest(t, out, names[1], nil)
	})
	before := everyFile(t, out)
	r := launch(t, dir, "verify", "out", "--repair", "--yes", "--brokers", brokers)
	r.exits(1, patience)
	if !strings.Contains(r.out(), "its chain has a hole") || !strings.Contains(r.out(), "nothing to move") {
		t.Errorf("the hole is not explained:\n%s", r.out())
	}
	if !maps.Equal(before, everyFile(t, out)) {
		t.Error("files were moved")
	}
}

// --yes and --offline mean nothing without --repair.
func TestRepairFlagsAlone(t *testing.T) {
	for _, flag := range []string{"--yes", "--offline"} {
		var stdout, stderr strings.Builder
		if status := cmd.Main([]string{"verify", t.TempDir(), flag}, &stdout, &stderr); status != command.ExitUsage ||
			!strings.Contains(stderr.String(), "needs --repair") {
			t.Errorf("%s: status %d, %s", flag, status, stderr.String())
		}
	}
}

// A repair that a signal stops has moved whole files, and can be done again.
func TestRepairStoppedBySignal(t *testing.T) {
	t.Parallel()
	brokers, dir, out := brokenOutput(t, loseManifest)
	before := everyFile(t, out)
	p := launch(t, dir, "verify", "out", "--repair", "--yes", "--brokers", brokers)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-p.done // as far as it came
	if !sameBytes(before, everyFile(t, out)) {
		t.Error("files are gone")
	}
	must(t, dir, "verify", "out", "--repair", "--yes", "--brokers", brokers)
	must(t, dir, fast(brokers, "points", "--until-end")...)
	holds(t, out, repairRecords)
}

// newestManifest reads the manifest with the highest start, of all partitions.
func newestManifest(t *testing.T, out string) (name string, m record.Manifest) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(out, "_commits", "topics", "*", "*", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	newest := int64(-1)
	for _, n := range names {
		start, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(n), ".json"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if start > newest {
			name, newest = n, start
		}
	}
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return name, m
}

// putBack makes of a published commit one that has not been published yet, as if
// its writer had died after the manifest.
func putBack(t *testing.T, out string, m *record.Manifest) {
	t.Helper()
	for _, f := range m.Files {
		if err := os.MkdirAll(filepath.Join(out, filepath.Dir(f.Staged)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(out, f.Path), filepath.Join(out, f.Staged)); err != nil {
			t.Fatal(err)
		}
	}
}

// flip changes one bit of a file.
func flip(t *testing.T, name string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// A staged file whose bytes have changed stops run with exit status 1 and its
// name. Nothing is published or removed, and with its bytes back run goes on.
func TestRunStopsAtAStagedFileThatHasChanged(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	out := filepath.Join(dir, "out")
	const n = 50
	must(t, dir, spread(brokers, "points", "a", "--frames", strconv.Itoa(n), "--rate", "max")...)
	must(t, dir, fast(brokers, "points", "--until-end")...)
	_, m := newestManifest(t, out)
	if len(m.Files) < 2 {
		t.Fatalf("the newest commit has %d files", len(m.Files))
	}
	putBack(t, out, &m)
	damaged := m.Files[1]
	flip(t, filepath.Join(out, damaged.Staged))
	for range 2 {
		r := launch(t, dir, fast(brokers, "points", "--until-end")...)
		r.exits(1, patience)
		r.says(damaged.Staged + `.* SHA-256`)
		for _, f := range m.Files {
			if _, err := os.Stat(filepath.Join(out, f.Staged)); err != nil {
				t.Errorf("a file of the commit is not in staging any more: %v", err)
			}
			if _, err := os.Stat(filepath.Join(out, f.Path)); err == nil {
				t.Errorf("%s is published", f.Path)
			}
		}
	}
	v := launch(t, dir, "verify", "out")
	v.exits(1, patience)
	if !strings.Contains(v.out(), damaged.Path) {
		t.Errorf("verify does not name %s:\n%s", damaged.Path, v.out())
	}
	flip(t, filepath.Join(out, damaged.Staged))
	must(t, dir, fast(brokers, "points", "--until-end")...)
	holds(t, out, n)
}
