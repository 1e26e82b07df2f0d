package rig

import (
	"io"
	"path/filepath"
)

// Turns are the turns of a benchmark's newest run, beside a journal that keeps those of all
// runs. One goroutine uses them.
type Turns[F any] struct {
	Newest []Record[F]

	bench, folder string
	journal       *Journal[F]
	key           func(F) string
}

// ReadTurns reads the turns of a benchmark from BENCH.jsonl in a folder; an empty folder has
// none, and keeps none. key names a turn within its run: a turn that the newest run has
// already begins another run.
func ReadTurns[F any](bench, folder string, key func(F) string) (*Turns[F], error) {
	path := ""
	if folder != "" {
		path = filepath.Join(folder, bench+".jsonl")
	}
	journal, err := ReadJournal[F](bench, path)
	if err != nil {
		return nil, err
	}
	t := &Turns[F]{bench: bench, folder: folder, journal: journal, key: key}
	for _, turn := range journal.Records {
		t.keep(turn)
	}
	return t, nil
}

func (t *Turns[F]) keep(turn Record[F]) {
	key := t.key(turn.Figures)
	for i := range t.Newest {
		if t.key(t.Newest[i].Figures) == key {
			t.Newest = nil
			break
		}
	}
	t.Newest = append(t.Newest, turn)
}

// Add stamps a turn, and appends it to the newest run and to the journal.
func (t *Turns[F]) Add(figures F) error {
	err := t.journal.Add(figures)
	t.keep(t.journal.Records[len(t.journal.Records)-1])
	return err
}

// WritePage shows a page, and writes it to BENCH.md in the folder if there are turns.
func (t *Turns[F]) WritePage(shown io.Writer, page string) error {
	if _, err := io.WriteString(shown, page); err != nil || t.folder == "" || len(t.Newest) == 0 {
		return err
	}
	return WritePage(filepath.Join(t.folder, t.bench+".md"), page)
}
