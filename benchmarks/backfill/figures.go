package main

import (
	"path/filepath"

	"entropipe/benchmarks/rig"
)

// figures are those of one turn, of any command.
type figures struct {
	What   string `json:"what"` // name of the command
	Run    string `json:"run"`  // time at which its run began
	Round  int    `json:"round"`
	Way    string `json:"way,omitempty"`
	Case   string `json:"case,omitempty"`
	Jobs   int    `json:"jobs,omitempty"`
	Frames int64  `json:"frames,omitempty"`
	Points int64  `json:"points,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"` // archive size
	Rows   int64  `json:"rows,omitempty"`

	WallS      float64 `json:"wall_s,omitempty"`
	CPUS       float64 `json:"cpu_s,omitempty"` // all processes but the broker
	RunWallS   float64 `json:"run_wall_s,omitempty"`
	RunCPUS    float64 `json:"run_cpu_s,omitempty"`
	BrokerCPUS float64 `json:"broker_cpu_s,omitempty"`
	MaxRSS     int64   `json:"max_rss,omitempty"`

	Model *model `json:"model,omitempty"`
}

// pointRate returns the bytes of decoded points a second of a core.
func (f *figures) pointRate() float64 { return pointBytes * float64(f.Points) / f.CPUS }

type measurement = rig.Record[figures]

// report collects records and writes their page.
type report struct {
	folder  string // empty: nothing is written
	journal *rig.Journal[figures]
}

func newReport(folder string) (*report, error) {
	path := ""
	if folder != "" {
		path = filepath.Join(folder, "backfill.jsonl")
	}
	journal, err := rig.ReadJournal[figures]("backfill", path)
	return &report{folder, journal}, err
}

func (r *report) add(f figures) error { return r.journal.Add(f) }

// newest returns the records of the last run of a command that has at least one of a kind.
func (r *report) newest(what string) (run []measurement) {
	for _, m := range r.journal.Records {
		if m.Figures.What != what {
			continue
		}
		if len(run) > 0 && run[0].Figures.Run != m.Figures.Run {
			run = nil
		}
		run = append(run, m)
	}
	return run
}

// newestCases returns the last record of each case of a command, in the order of their first
// appearance.
func (r *report) newestCases(what string) (all []measurement) {
	at := map[string]int{}
	for _, m := range r.journal.Records {
		if m.Figures.What != what {
			continue
		}
		if i, ok := at[m.Figures.Case]; ok {
			all[i] = m
			continue
		}
		at[m.Figures.Case] = len(all)
		all = append(all, m)
	}
	return all
}

// paired returns a quotient of two ways' figures, round by round.
func paired(run []measurement, above, below string, of func(*figures) float64) (ratios []float64) {
	found := map[int]map[string]*figures{}
	rounds := 0
	for i := range run {
		f := &run[i].Figures
		if found[f.Round] == nil {
			found[f.Round] = map[string]*figures{}
		}
		found[f.Round][f.Way] = f
		rounds = max(rounds, f.Round+1)
	}
	for round := range rounds {
		if a, b := found[round][above], found[round][below]; a != nil && b != nil {
			ratios = append(ratios, of(a)/of(b))
		}
	}
	return ratios
}
