package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// turns adds a run of rounds to a report: cost is the processor time and the time of a frame in
// the first round, in which starts are.
func turns(t *testing.T, r *report, work string, cost map[string]float64, slow []float64) {
	t.Helper()
	for round, slow := range slow {
		for engine, each := range cost {
			for _, f := range []figures{{Case: startOnly, Frames: 10}, {Frames: 110, Bytes: 220e6, Rows: 7}} {
				if f.Case == startOnly && round > 0 {
					continue
				}
				f.What, f.Run, f.Round, f.Work, f.Engine, f.Cores = "time", "new", round, work, engine, 2
				f.CPUS, f.WallS = 5+slow*each*float64(f.Frames), 2+slow*each*float64(f.Frames)
				f.PSS = int64(1e9 * each)
				if err := r.journal.Add(f); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// Ratios are taken round by round, further figures without the start, and each goal has its
// verdict.
func TestPageComparesEnginesOfARound(t *testing.T) {
	r, err := newReport("")
	if err != nil {
		t.Fatal(err)
	}
	cost := map[string]float64{engineOurs: .01, engineFlink: .5, engineSpark: .02}
	turns(t, r, workPoints, cost, []float64{1, 2, 4, 3, 1, 2})
	turns(t, r, workMessages, cost, []float64{1, 2, 4})
	page := r.markdown()
	for _, want := range []string{
		"110 frames of 2.00 MB, a start 10; 2 processors for an engine",
		"| entropipe | 26.2 (17.2 to 35.5) | 47.6 (23.3 to 100.0) |",
		"| processor time, further | 50.0 (50.0 to 50.0); at least 10: met | 2.0 (2.0 to 2.0); at least 10: not met |",
		"| time a further frame | 50.0 (50.0 to 50.0); at least 3: met | 2.0 (2.0 to 2.0); at least 3: not met |",
		"| memory | 50.0 (50.0 to 50.0); at least 4: met | 2.0 (2.0 to 2.0); at least 4: not met |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "Hulls and maxima\n") || strings.Contains(page, "## Kills") {
		t.Error("the page has sections of what was not measured")
	}
}

// A run that was interrupted has no ratio of its last round.
func TestPageLeavesOutHalfRounds(t *testing.T) {
	r, err := newReport("")
	if err != nil {
		t.Fatal(err)
	}
	turns(t, r, workShapes, map[string]float64{engineOurs: .01, engineSpark: .1}, []float64{1, 1, 1})
	last := len(r.journal.Records) - 1
	cut := r.journal.Records[last].Figures
	r.journal.Records = r.journal.Records[:last]
	if left := pairs(r.newest("time", workShapes), cut.Engine); len(left) != 2 {
		t.Errorf("%d rounds of %s, want 2", len(left), cut.Engine)
	}
	if !strings.Contains(r.markdown(), "| processor time, further | 10.0 (10.0 to 10.0) |") {
		t.Error(r.markdown())
	}
}

// Rows that are missing or doubled stand on the page, and what else the machine did.
func TestPageCountsRowsAfterKills(t *testing.T) {
	r, err := newReport("")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []figures{{Engine: engineOurs, Rows: 9},
		{Engine: engineSpark, Rows: 8, Missing: 1, Unguarded: 3}} {
		f.What, f.Run, f.Work, f.Frames, f.Bytes, f.Kills = "kills", "new", workShapes, 9, 18e6, 5
		f.WallS, f.OthersCPUS = 10, 9
		if err := r.journal.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	page := r.markdown()
	for _, want := range []string{"frames of 2.00 MB", "| entropipe | 5 | 9 | 9 | 0 | 0 | 0 |",
		"| Spark | 5 | 9 | 8 | 1 | 0 | 3 |", "**the machine was busy"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

// The moments of kills depend on the seed alone.
func TestMomentsOfKills(t *testing.T) {
	c := killsCmd{Kills: 20, Within: 9}
	c.Seed = 7
	seen := map[int64]bool{}
	for i, m := range c.moments() {
		if m < 0 || m >= 9 || m != c.moments()[i] {
			t.Errorf("kill %d after %d", i, m)
		}
		seen[int64(m)] = true
	}
	if len(seen) < 2 {
		t.Error("all kills come after the same time")
	}
}

// The committed page is the one that the committed records make.
func TestPageComesFromRecords(t *testing.T) {
	results := filepath.Join("..", "results")
	text, err := os.ReadFile(filepath.Join(results, "streams.md"))
	if os.IsNotExist(err) {
		t.Skip("nothing was measured yet")
	}
	r, failed := newReport(results)
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if string(text) != r.markdown() {
		t.Error("streams.md is not what `go run ./benchmarks/streams render` makes")
	}
}
