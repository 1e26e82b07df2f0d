package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"entropipe/algos/geomtest"
	"entropipe/benchmarks/rig"
)

// counting is an experiment that counts how often each cell ran.
func counting(runs map[string]int, fail string) *experiment {
	return &experiment{
		name: "counting", title: "Counting", claim: "Cells run once.",
		cells: func(effort) (cells []cell) {
			for _, key := range []string{"a", "b", "c"} {
				cells = append(cells, cell{key, func(context.Context) ([]record, error) {
					if key == fail {
						return nil, errors.New("failed")
					}
					runs[key]++
					return []record{{Values: map[string]float64{"v": 1}},
						{Values: map[string]float64{"v": float64(runs[key])}}}, nil
				}})
			}
			return cells
		},
		columns: rig.Table[*record]{value("v", "v", "%.1f")},
		verdict: func(r []record) string { return fmt.Sprintf("There are %d records.", len(r)) },
	}
}

// An interrupted sweep goes on where it was: what is done is not done again,
// what a kill cut off is.
func TestSweepGoesOn(t *testing.T) {
	dir, runs := t.TempDir(), map[string]int{}
	c := &cli{Shown: t.Output()}
	soon := time.Now().Add(time.Hour)
	if err := counting(runs, "c").repeat(t.Context(), dir, c, soon); err == nil ||
		!strings.Contains(err.Error(), "c: failed") {
		t.Fatalf("error %v, want that of cell c", err)
	}
	path := filepath.Join(dir, "counting.jsonl")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b[:len(b)-20], 0o666); err != nil { // in the middle of b's last line
		t.Fatal(err)
	}
	if err := counting(runs, "").repeat(t.Context(), dir, c, soon); err != nil {
		t.Fatal(err)
	}
	if runs["a"] != 1 || runs["b"] != 2 || runs["c"] != 1 {
		t.Errorf("runs %v, want a and c once, b again", runs)
	}
	page, err := os.ReadFile(filepath.Join(dir, "counting.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "There are 6 records.") || strings.Contains(string(page), "cells are done") {
		t.Errorf("page:\n%s", page)
	}
	if err := counting(runs, "").repeat(t.Context(), dir, &cli{Again: true, Shown: t.Output()}, soon); err != nil ||
		runs["a"] != 2 {
		t.Errorf("--again: error %v, runs %v", err, runs)
	}
}

// An experiment that an interrupt or --timeout does not let begin keeps its records, also with
// --again.
func TestNothingIsForgottenForNothing(t *testing.T) {
	dir, runs := t.TempDir(), map[string]int{}
	if err := counting(runs, "").repeat(t.Context(), dir, &cli{Shown: t.Output()},
		time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, "counting.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	interrupted, stop := context.WithCancel(t.Context())
	stop()
	for about, c := range map[string]struct {
		ctx      context.Context
		deadline time.Time
	}{"interrupted": {interrupted, time.Now().Add(time.Hour)}, "out of time": {t.Context(), time.Now().Add(-1)}} {
		err := counting(runs, "").repeat(c.ctx, dir, &cli{Again: true, Shown: t.Output()}, c.deadline)
		if now, failed := os.ReadFile(filepath.Join(dir, "counting.jsonl")); err != nil || failed != nil ||
			string(now) != string(before) {
			t.Errorf("%s: %v, %v; records are now:\n%s", about, err, failed, now)
		}
	}
}

// A machine without an experiment's data takes none of its records away: those of a cell that
// finds no data, and those of cells that one stands for. Data that are there again are measured.
func TestRecordsOfAbsentDataStay(t *testing.T) {
	runs := map[string]int{}
	with := func(data bool) *experiment {
		e := counting(runs, "")
		e.cells = func(effort) []cell {
			one := func(key string, r record) cell {
				return cell{key, func(context.Context) ([]record, error) {
					runs[key]++
					return []record{r}, nil
				}}
			}
			measured := record{Values: map[string]float64{"v": 7}}
			if data {
				return []cell{one("same", measured), one("scans 1", measured), one("scans 2", measured)}
			}
			return []cell{{"same", func(context.Context) ([]record, error) {
				return absent("scans", errors.New("no folder")), nil
			}}, {"scans" + notThere, func(context.Context) ([]record, error) { return absentPairs("scans"), nil }}}
		}
		return e
	}
	dir, soon := t.TempDir(), time.Now().Add(time.Hour)
	measure := func(data bool, c *cli) (records, page string) {
		t.Helper()
		c.Shown = t.Output()
		if err := with(data).repeat(t.Context(), dir, c, soon); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, "counting.jsonl"))
		p, errPage := os.ReadFile(filepath.Join(dir, "counting.md"))
		if err := errors.Join(err, errPage); err != nil {
			t.Fatal(err)
		}
		return string(b), string(p)
	}
	if records, _ := measure(false, &cli{}); strings.Count(records, `"absent":1`) != 2 {
		t.Errorf("without data there are these records:\n%s", records)
	}
	whole, page := measure(true, &cli{})
	if strings.Contains(whole, "absent") || strings.Count(whole, `"v":7`) != 3 {
		t.Errorf("with data there are these records:\n%s", whole)
	}
	for about, c := range map[string]*cli{"once more": {}, "--again": {Again: true}} {
		if records, now := measure(false, c); records != whole || now != page || c.missing != 0 {
			t.Errorf("%s without data: %d cells are missing, %s\n%s", about, c.missing, records, now)
		}
	}
	if records, _ := measure(true, &cli{}); records != whole || runs["same"] != 1 || runs["scans 1"] != 1 {
		t.Errorf("cells that were done ran again: %v\n%s", runs, records)
	}
}

// Two processes that measure one experiment into one folder lose nothing: the second to write
// ends with an error.
func TestOneProcessAtATime(t *testing.T) {
	dir, runs, soon := t.TempDir(), map[string]int{}, time.Now().Add(time.Hour)
	path := filepath.Join(dir, "counting.jsonl")
	for _, when := range []string{"a", "b"} { // before the other has written, and afterwards
		var other string
		e := counting(runs, "")
		cells := e.cells(whole)
		e.cells = func(effort) []cell {
			mine := slices.Clone(cells)
			mine[when[0]-'a'].run = func(ctx context.Context) ([]record, error) {
				if err := counting(runs, "").repeat(ctx, dir, &cli{Again: true, Shown: t.Output()}, soon); err != nil {
					t.Fatal(err)
				}
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				other = string(b)
				return []record{{Values: map[string]float64{"v": -1}}}, nil
			}
			return mine
		}
		err := e.repeat(t.Context(), dir, &cli{Again: true, Shown: t.Output()}, soon)
		if err == nil || !strings.Contains(err.Error(), "another process has changed the file") {
			t.Errorf("other process in cell %s: error %v", when, err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != other {
			t.Errorf("other process in cell %s: it left\n%s\nnow (%v):\n%s", when, other, err, b)
		}
	}
}

// A file of records that is damaged is no sweep to go on with; the error names the line, and
// --again measures everything anew.
func TestDamagedRecords(t *testing.T) {
	dir, runs, soon := t.TempDir(), map[string]int{}, time.Now().Add(time.Hour)
	path := filepath.Join(dir, "counting.jsonl")
	if err := counting(runs, "").repeat(t.Context(), dir, &cli{Shown: t.Output()}, soon); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(b), "\n")
	for _, k := range []int{0, 3} {
		damaged := slices.Clone(lines)
		damaged[k] = "{]" + lines[k][2:]
		if err := os.WriteFile(path, []byte(strings.Join(damaged, "")), 0o666); err != nil {
			t.Fatal(err)
		}
		err := counting(runs, "").repeat(t.Context(), dir, &cli{Shown: t.Output()}, soon)
		if want := fmt.Sprintf("%s, line %d: ", path, k+1); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("line %d is damaged: error %v, want %s", k+1, err, want)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != strings.Join(damaged, "") {
			t.Errorf("line %d is damaged: the file has changed (%v)", k+1, err)
		}
		if err := counting(runs, "").repeat(t.Context(), dir, &cli{Again: true, Shown: t.Output()}, soon); err != nil {
			t.Errorf("line %d is damaged, --again: %v", k+1, err)
		}
	}
}

// A page of a sweep that is not whole says so.
func TestPageOfAnUnfinishedSweep(t *testing.T) {
	dir, runs := t.TempDir(), map[string]int{}
	if err := counting(runs, "").repeat(t.Context(), dir, &cli{Shown: t.Output()},
		time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "counting.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "0 of 3 cells are done") {
		t.Errorf("page:\n%s", page)
	}
}

// Times of another machine are no part of a sweep here, but rendering shows them
// and leaves the file alone.
func TestRecordsOfAnotherMachine(t *testing.T) {
	dir, runs := t.TempDir(), map[string]int{}
	timed := counting(runs, "")
	timed.timed = true
	soon := time.Now().Add(time.Hour)
	if err := timed.repeat(t.Context(), dir, &cli{Shown: t.Output()}, soon); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "counting.jsonl")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(b), "\n")
	var m machine
	if err := json.Unmarshal([]byte(first), &m); err != nil {
		t.Fatal(err)
	}
	here := m.CPU
	m.CPU = "another"
	line, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	other := string(line) + "\n" + strings.ReplaceAll(rest, `"cpu":"`+here, `"cpu":"another`)
	if err := os.WriteFile(path, []byte(other), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := timed.repeat(t.Context(), dir, &cli{Render: true, Shown: t.Output()}, soon); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "counting.md"))
	if err != nil || !strings.Contains(string(page), "There are 6 records.") ||
		!strings.Contains(string(page), "CPU another") {
		t.Errorf("rendered (%v):\n%s", err, page)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != other {
		t.Errorf("rendering changed the records (%v):\n%s", err, now)
	}
	if err := timed.repeat(t.Context(), dir, &cli{Shown: t.Output()}, soon); err != nil ||
		runs["a"] != 2 || runs["c"] != 2 {
		t.Errorf("error %v, runs %v, want every cell again", err, runs)
	}
}

// standIn puts a drive of synthetic scans where real data would be, if there are
// none: experiments that need scans run on a machine without data, too.
func standIn(t *testing.T) {
	t.Helper()
	_, err := scanFolder()
	if err == nil {
		return
	}
	t.Logf("synthetic scans stand in for real ones: %v", err)
	root := t.TempDir()
	t.Setenv("ENTROPIPE_TESTDATA", root)
	drive := filepath.Join(root, "kitti", "raw_2011_09_26_drive_0005")
	if err := os.MkdirAll(drive, 0o777); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(3) {
		c := geomtest.Lidar[float32](2000, seed)
		var b []byte
		for i := range c.X {
			for _, v := range []float32{c.X[i], c.Y[i], c.Z[i], .5} {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
			}
		}
		if err := os.WriteFile(filepath.Join(drive, fmt.Sprintf("%010d.bin", seed)), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// The committed pages are those that the committed records make.
func TestPagesComeFromRecords(t *testing.T) {
	const results = "../results/truth"
	for _, e := range experiments {
		cells := e.list(whole)
		log, err := openLog(results, e, cells, readOnly)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := e.render(dir, log, cells); err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(dir, e.name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(results, e.name+".md")); err != nil || string(got) != string(want) {
			t.Errorf("%s.md is not what `go run ./benchmarks/truth --render` makes (%v)", e.name, err)
		}
	}
}

// The page of the run with fresh seeds is what its records make beside those of the paper's.
func TestFreshSeedsPageComesFromRecords(t *testing.T) {
	folder := "../results/truth-" + listed(freshSeeds, "-")
	old, err := runOf("../results/truth")
	if err != nil {
		t.Fatal(err)
	}
	defer func(before []uint64) { seeds = before }(seeds)
	seeds = freshSeeds
	fresh, err := runOf(folder)
	if err != nil {
		t.Fatal(err)
	}
	want := againstPage(freshSeeds, "truth", fresh, old)
	if got, err := os.ReadFile(filepath.Join(folder, "against.md")); err != nil || string(got) != want {
		t.Errorf("against.md (%v) is not what `go run ./benchmarks/truth --seeds %s --render` makes:\n%s", err,
			listed(freshSeeds, ","), want)
	}
}

// The grid, the pages of its rows, the figures and the site are those that the committed
// records make. The two lists of files are equal.
func TestGridComesFromRecords(t *testing.T) {
	dir, committed := t.TempDir(), "../../docs/truth"
	r, err := runOf("../results/truth")
	if err != nil {
		t.Fatal(err)
	}
	again, err := runOf("../results/truth-" + listed(freshSeeds, "-"))
	if err != nil {
		t.Fatal(err)
	}
	if err := writeTruth(r, again, dir, "../../benchmarks/results/truth"); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]bool{"truth.go": true}
	for _, f := range want {
		made[f.Name()] = true
		a, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(committed, f.Name())); err != nil || string(a) != string(b) {
			t.Errorf("docs/truth/%s is not what `go run ./benchmarks/truth --render` makes (%v)", f.Name(), err)
		}
	}
	there, err := os.ReadDir(committed)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range there {
		if !made[f.Name()] {
			t.Errorf("docs/truth/%s is made by nothing", f.Name())
		}
	}
}

// Records of every experiment pass through log.append, so new records say when, where, and by
// which commit, command and seeds they were measured; the experiment's page says it, too.
func TestRecordsHaveStamps(t *testing.T) {
	dir, runs := t.TempDir(), map[string]int{}
	if err := counting(runs, "").repeat(t.Context(), dir, &cli{Shown: t.Output()},
		time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	log, err := openLog(dir, counting(runs, ""), counting(runs, "").cells(whole), readOnly)
	if err != nil || len(log.records) != 6 {
		t.Fatalf("%d records, %v", len(log.records), err)
	}
	for _, r := range log.records {
		if r.Bench != "truth --only counting --seeds 42,123,456,789,999" || r.Commit == "" ||
			r.Time == "" || r.Cores == 0 ||
			r.Go == "" || r.CPU == "" {
			t.Errorf("stamp %+v", r.Stamp)
		}
	}
	if timed, _ := log.took(); timed != len(log.done) {
		t.Errorf("%d of %d cells say what time they took", timed, len(log.done))
	}
	page, err := os.ReadFile(filepath.Join(dir, "counting.md"))
	if err != nil {
		t.Fatal(err)
	}
	stamp := log.records[0].Stamp
	for _, want := range []string{"cells took 0s.", "commit " + stamp.Commit, "date " + stamp.Date(),
		"CPU " + stamp.CPU,
		"recorded by `go run ./benchmarks/truth --only counting --seeds 42,123,456,789,999`"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

// The committed records say of each figure when it was measured, where, and by which commit.
func TestCommittedRecordsHaveStamps(t *testing.T) {
	for _, folder := range []string{"../results/truth", "../results/truth-" + listed(freshSeeds, "-")} {
		r, err := runOf(folder)
		if err != nil || len(r) != len(experiments) {
			t.Fatalf("%s: records of %d experiments of %d, %v", folder, len(r), len(experiments), err)
		}
		for name, l := range r {
			for k := range l.records {
				s := &l.records[k].Stamp
				if s.Bench == "" || s.Time == "" || s.CPU == "" || s.Commit == "" ||
					strings.HasSuffix(s.Commit, "-dirty") {
					t.Errorf("%s/%s.jsonl, line %d: stamp %+v", folder, name, k+2, *s)
					break
				}
			}
		}
	}
}

// A page whose records have no stamp says so.
func TestPagesOfOldRecords(t *testing.T) {
	l := &log{machine: machine{Experiment: "counting", CPU: "old"}, records: make([]rig.Record[record], 1)}
	const want = "date not recorded, commit not recorded, command and seeds not recorded"
	if got := l.origin(); !strings.Contains(got, want) ||
		!strings.HasPrefix(got, "CPU old") {
		t.Errorf("origin %q", got)
	}
}

// Every experiment runs, fills each of its columns somewhere, and concludes.
func TestEveryExperimentRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds each")
	}
	standIn(t)
	names := map[string]bool{}
	for _, e := range experiments {
		t.Run(e.name, func(t *testing.T) {
			if names[e.name] {
				t.Fatal("two experiments of one name")
			}
			names[e.name] = true
			dir := t.TempDir()
			if err := e.repeat(t.Context(), dir, &cli{Quick: true, Shown: t.Output()},
				time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			log, err := openLog(dir, e, e.list(quick), readOnly)
			if err != nil {
				t.Fatal(err)
			}
			defer log.close()
			lines := e.lines(log.figures())
			for _, c := range e.columns {
				filled := false
				for k := range lines {
					filled = filled || c.Text(&lines[k]) != ""
				}
				if !filled {
					t.Errorf("column %q is empty", c.Head)
				}
			}
			if e.title == "" || e.claim == "" || e.verdict(log.figures()) == "" {
				t.Error("no title, claim or verdict")
			}
			networkInside(t, log.figures())
		})
	}
}
