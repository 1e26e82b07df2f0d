package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The words of the page follow from the records: ratios are taken round by round, the newest
// run of a command counts, and of memory the newest record of each archive.
func TestPageComparesRounds(t *testing.T) {
	dir := t.TempDir()
	r, err := newReport(dir)
	if err != nil {
		t.Fatal(err)
	}
	add := func(f figures) {
		t.Helper()
		if err := r.add(f); err != nil {
			t.Fatal(err)
		}
	}
	add(figures{What: "speed", Run: "old", Way: wayOne, WallS: 1, CPUS: 1, Frames: 1})
	for round, slow := range []float64{1, 2, 4, 3, 1, 2} {
		for way, share := range map[string]float64{wayBroker: 1.5, wayOne: 1, wayLong: 1, wayTwo: .6, wayApart: .5} {
			add(figures{What: "speed", Run: "new", Round: round, Way: way, WallS: slow * share, CPUS: slow,
				RunWallS: slow / 2, BrokerCPUS: slow, Frames: 8, Bytes: 16e6})
		}
		for i, way := range parquetWays {
			add(figures{What: "parquet", Run: "new", Round: round, Way: way, Points: 1e9, CPUS: float64(20 + 20*i),
				Frames: 3})
		}
	}
	add(figures{What: "memory", Run: "1", Case: "files", MaxRSS: 500e6, Rows: 7})
	add(figures{What: "memory", Run: "1", Case: "texts", MaxRSS: 401e6, Rows: 7, Jobs: 4})
	add(figures{What: "memory", Run: "2", Case: "files", MaxRSS: 390e6, Rows: 9, Jobs: 4})
	again, err := newReport(dir)
	if err != nil {
		t.Fatal(err)
	}
	page := again.page()
	for _, want := range []string{"8 KITTI frames of 2.0 MB", "of 6 rounds",
		"| wall time: produce, then run, over backfill | 1.50 (1.50 to 1.50) | at least 1.0: met |",
		"| processor time: produce, run and broker over backfill | 2.00 (2.00 to 2.00) |  |",
		"| wall time: run alone, its topic filled before, over backfill | 0.50 (0.50 to 0.50) |  |",
		"| wall time, of the long archive: one process over two | 1.67 (1.67 to 1.67) | at least 1.8: not met |",
		"what the machine allows | 2.00 (2.00 to 2.00) |  |",
		"with two outputs | 1.20 (1.20 to 1.20) |  |",
		"| 100,000 scans of 20 points in 5 drives | 9 | 390 | at most 400 MB: met |",
		"| 20,000 texts in 4 files, builtin:bytes | 7 | 401 | at most 400 MB: not met |",
		"| none | 800 (800 to 800) | at least 300: met |",
		"| hull2d,maxima3d | 400 (400 to 400) | at least 300: met |"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

// The committed pages are those that the committed records make.
func TestPagesComeFromRecords(t *testing.T) {
	const results = "../results"
	r, err := newReport(results)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(results, "backfill.md"))
	if err != nil || string(text) != r.page() {
		t.Errorf("backfill.md is not what `go run ./benchmarks/backfill render` makes; %v", err)
	}
	text, err = os.ReadFile("../../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	if page, ok := replaceBlock(string(text), r.scale()); !ok || page != string(text) {
		t.Error("docs/scale.md is not what `go run ./benchmarks/backfill render` makes")
	}
}

// Constants that made the costs are found again, and predict any size.
func TestModelFindsConstants(t *testing.T) {
	one := size{240, 8, 16}
	want := constants{7, .5, 3, 2}
	var measured []costs
	for _, s := range fitPoints(one) {
		measured = append(measured, costs{"sync": want.at(s), "noise": 9 - s.Lanes})
	}
	found, err := fit(fitPoints(one), measured)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if math.Abs(found["sync"][i]-want[i]) > 1e-9 {
			t.Errorf("constants %v, want %v", found["sync"], want)
		}
	}
	if c := found["noise"]; c[2] != 0 {
		t.Errorf("a constant below 0 stays: %v", c)
	}
	if _, err := fit([]size{{1, 1, 1}, {2, 2, 2}, {3, 3, 3}, {4, 4, 4}}, measured); err == nil {
		t.Error("sizes that differ in one way only are no error")
	}
	m := &model{One: one, Constants: map[string]map[string]constants{phaseWork: found},
		Four: map[string]costs{phaseWork: {"sync": 1.1 * want.at(one.times(4)), costCPU: .01}}}
	if worst, off := m.worst(); worst.Cost != "sync" || math.Abs(off-(1-1/1.1)) > 1e-9 {
		t.Errorf("the worst is %+v, %v off", worst, off)
	}
	for _, c := range []struct{ frames, bytes, lanes, commits float64 }{
		{1e9, 20e3, 50_000, 100_000}, {1e9, 2 << 20, 1_953_125, 7_812_500}, {10, 2e9, 10, 10},
	} {
		if s := m.archiveOf(c.frames, c.bytes); s.Lanes != c.lanes || s.Commits != c.commits {
			t.Errorf("%v frames of %v bytes: %+v, want %v lanes, %v commits", c.frames, c.bytes, s, c.lanes, c.commits)
		}
	}
}

// Calls of one kind are added up, with and without errors.
func TestCallsOfStrace(t *testing.T) {
	found, err := parseCalls(`% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 71.69    0.029234         247       118        18 openat
  0.71    0.000291          29         2           open
  0.62    0.000251           4        57           fsync
------ ----------- ----------- --------- --------- ----------------
100.00    0.040778           9      4150       133 total
`)
	if err != nil || found["open"] != 120 || found["sync"] != 57 || found["rename"] != 0 {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := parseCalls("strace: attach: Operation not permitted"); err == nil {
		t.Error("no table is no error")
	}
}
