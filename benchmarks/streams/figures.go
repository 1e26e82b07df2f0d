package main

import (
	"path/filepath"

	"entropipe/benchmarks/rig"
)

// cost is what a tree of processes took.
type cost struct {
	WallS float64 `json:"wall_s"`
	CPUS  float64 `json:"cpu_s"` // user and system time
	PSS   int64   `json:"pss"`   // largest sum of proportional set sizes, bytes
	RSS   int64   `json:"rss"`   // largest sum of resident sets, bytes
}

// figures are those of one turn.
type figures struct {
	What   string `json:"what"` // time, kills
	Run    string `json:"run"`  // time at which its run began
	Round  int    `json:"round"`
	Work   string `json:"work"`
	Engine string `json:"engine"`
	Case   string `json:"case,omitempty"` // start: a turn over a few frames
	Seed   uint64 `json:"seed"`

	Cores  int     `json:"processors"`
	EveryS float64 `json:"every_s"`
	Frames int64   `json:"frames"`
	Points int     `json:"points"` // of a frame
	Bytes  int64   `json:"bytes"`  // of values

	cost
	BrokerCPUS float64 `json:"broker_cpu_s"`
	OthersCPUS float64 `json:"others_cpu_s"` // programs beside engine, broker and this one
	Files      int64   `json:"files"`        // committed
	FileBytes  int64   `json:"file_bytes"`
	Rows       int64   `json:"rows"`

	Kills     int     `json:"kills,omitempty"`
	Missing   int64   `json:"missing,omitempty"`
	Doubled   int64   `json:"doubled,omitempty"`
	Unguarded int64   `json:"unguarded,omitempty"` // doubled for a reader of all files
	Torn      int64   `json:"torn,omitempty"`      // files that end a reader of all files
	BehindS   float64 `json:"behind_s,omitempty"`  // from the last record to the last commit
	Command   string  `json:"command"`
}

// startOnly is the case of a turn over a few frames.
const startOnly = "start"

type measurement = rig.Record[figures]

// report collects records and writes their page.
type report struct {
	folder  string // empty: nothing is written
	journal *rig.Journal[figures]
}

func newReport(folder string) (*report, error) {
	path := ""
	if folder != "" {
		path = filepath.Join(folder, "streams.jsonl")
	}
	journal, err := rig.ReadJournal[figures]("streams", path)
	return &report{folder, journal}, err
}

// newest returns the records of the last run of a command that has a work; "" is any work.
func (r *report) newest(what, work string) (run []measurement) {
	for _, m := range r.journal.Records {
		if m.Figures.What != what || work != "" && m.Figures.Work != work {
			continue
		}
		if len(run) > 0 && run[0].Figures.Run != m.Figures.Run {
			run = nil
		}
		run = append(run, m)
	}
	return run
}
