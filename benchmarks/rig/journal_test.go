package rig

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type speed struct {
	Case string  `json:"case"`
	Ns   []int64 `json:"ns,omitempty"`
}

// A record keeps its stamp and its figures over the file, and a line that a kill
// has cut is gone after the next one.
func TestJournalKeepsRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "a.jsonl")
	j := Journal[speed]{Bench: "rig", Path: path}
	if err := j.Add(speed{"first", []int64{1, 2}}); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"case":"cut`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	read, err := ReadJournal[speed]("rig", path)
	if err != nil || len(read.Records) != 1 {
		t.Fatalf("%d records, %v", len(read.Records), err)
	}
	if err := read.Add(speed{"second", nil}); err != nil {
		t.Fatal(err)
	}
	if read, err = ReadJournal[speed]("rig", path); err != nil || len(read.Records) != 2 {
		t.Fatalf("%d records, %v", len(read.Records), err)
	}
	first := read.Records[0]
	if first.Stamp != j.Records[0].Stamp || first.Figures.Case != "first" || len(first.Figures.Ns) != 2 ||
		read.Records[1].Figures.Case != "second" {
		t.Errorf("read %+v", read.Records)
	}
	read.Records = read.Records[1:]
	if err := read.Save(); err != nil {
		t.Fatal(err)
	}
	if read, err = ReadJournal[speed]("rig", path); err != nil || len(read.Records) != 1 ||
		read.Records[0].Figures.Case != "second" {
		t.Errorf("saved %+v, %v", read.Records, err)
	}
	if err := read.Forget(); err != nil || len(read.Records) > 0 {
		t.Error(err, read.Records)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a forgotten file is still there")
	}
}

// A damaged line is named, and a figure cannot take the place of a stamp's field.
func TestJournalRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	if err := os.WriteFile(path, []byte("{}\n{\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadJournal[speed]("rig", path); err == nil || !strings.Contains(err.Error(), "a.jsonl:2") {
		t.Errorf("error is %v", err)
	}
	_, err := json.Marshal(Record[map[string]any]{Here("rig"), map[string]any{"cpu": "another"}})
	if err == nil || !strings.Contains(err.Error(), `"cpu"`) {
		t.Errorf("error is %v", err)
	}
}

// A new stamp has every field.
func TestStampIsWhole(t *testing.T) {
	s := Here("rig")
	if s.Bench != "rig" || s.Commit == "" || s.Cores < 1 || s.Go == "" || s.Vector == "" ||
		s.CPU != cmp.Or(CPU(), unknown) {
		t.Errorf("%+v", s)
	}
	at, err := time.Parse(time.RFC3339, s.Time)
	if err != nil || at.Location() != time.UTC {
		t.Errorf("time %q is not UTC in RFC 3339: %v", s.Time, err)
	}
	if _, err := os.Stat(filepath.Join("..", "..", ".git")); err == nil && s.Commit == unknown {
		t.Error("a working tree of Git has no commit")
	}
	line := Origin([]Stamp{s, {CPU: s.CPU, Cores: s.Cores, Go: s.Go, Vector: s.Vector, Time: "2026-01-02"}})
	for _, want := range []string{s.Date(), "2026-01-02", s.Commit, "not recorded", s.Vector + " kernels"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q lacks %q", line, want)
		}
	}
}

// LastRun takes the rounds of the newest run alone.
func TestLastRun(t *testing.T) {
	var records []Record[int]
	for _, n := range []int{1, 2, 3, 1, -1, 2, -1} {
		records = append(records, Record[int]{Figures: n})
	}
	run := LastRun(records, func(n int) (int, bool) { return n, n > 0 })
	if len(run) != 2 || run[0].Figures != 1 || run[1].Figures != 2 {
		t.Errorf("%v", run)
	}
	if run := LastRun(records[:0], func(n int) (int, bool) { return n, true }); len(run) != 0 {
		t.Errorf("of nothing: %v", run)
	}
}

// unstamped counts the committed records that were measured before records had
// commits. The numbers may fall, when records are measured again; a command that
// adds records without a stamp makes them rise.
var unstamped = map[string]int{
	"attention-bf16.jsonl":     81,
	"attention-dense.jsonl":    32,
	"attention-ladder.jsonl":   4,
	"attention-sparse.jsonl":   32,
	"correctness.jsonl":        4,
	"drawings.jsonl":           15,
	"memory.jsonl":             1050,
	"network.jsonl":            10,
	"peers.jsonl":              1048,
	"register.jsonl":           2,
	"truth/baselines.jsonl":    14,
	"truth/breakdown.jsonl":    4,
	"truth/breakeven.jsonl":    5,
	"truth/correlation.jsonl":  480,
	"truth/denoise.jsonl":      24,
	"truth/failure.jsonl":      32,
	"truth/hulls.jsonl":        69,
	"truth/large.jsonl":        11,
	"truth/latency.jsonl":      275,
	"truth/lm.jsonl":           340,
	"truth/margin.jsonl":       540,
	"truth/maxima3d.jsonl":     12,
	"truth/metrics.jsonl":      9,
	"truth/minilm.jsonl":       180,
	"truth/overhead.jsonl":     4,
	"truth/pairs.jsonl":        2,
	"truth/perturb.jsonl":      18,
	"truth/picture.jsonl":      3,
	"truth/publish.jsonl":      3,
	"truth/ranges.jsonl":       64,
	"truth/realentropy.jsonl":  1222,
	"truth/robustness.jsonl":   25,
	"truth/seeding.jsonl":      5,
	"truth/significance.jsonl": 11,
	"truth/sorting.jsonl":      48,
	"truth/sweeps.jsonl":       66,
	"truth/tasks.jsonl":        900,
	"truth/theorem.jsonl":      240,
	"truth/touched.jsonl":      480,
	"truth/vit.jsonl":          250,
	"throughput.jsonl":         80,
	"tokens.jsonl":             10,
	"training.jsonl":           18,
}

// Every committed record that is not among the old ones says when, on what and
// by which commit it was measured.
func TestCommittedRecordsHaveStamps(t *testing.T) {
	base := filepath.Join("..", "results")
	err := filepath.WalkDir(base, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".jsonl" {
			return err
		}
		j, err := ReadJournal[map[string]any]("", path)
		if err != nil {
			return err
		}
		without := 0
		for _, r := range j.Records {
			if r.Figures["experiment"] == nil && (r.Commit == "" || r.CPU == "" || r.Time == "") {
				without++
			}
		}
		name, err := filepath.Rel(base, path)
		if err != nil {
			return err
		}
		if name = filepath.ToSlash(name); without > unstamped[name] {
			t.Errorf("%s: %d records have no commit, time or CPU, want at most %d", name, without, unstamped[name])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
