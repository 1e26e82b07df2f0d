package rig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"entropipe/models/atomicfile"
)

// Record is one measurement: its stamp, and the figures of one command. In a
// file it is one JSON object that holds the fields of both.
type Record[F any] struct {
	Stamp
	Figures F
}

// MarshalJSON writes the fields of the stamp, then those of the figures. A
// figure that is named like a field of the stamp is an error.
func (r Record[F]) MarshalJSON() ([]byte, error) {
	stamp, err := json.Marshal(r.Stamp)
	if err != nil {
		return nil, err
	}
	figures, err := json.Marshal(r.Figures)
	if err != nil {
		return nil, err
	}
	var fields, taken map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(figures, &fields), json.Unmarshal(stamp, &taken)); err != nil {
		return nil, fmt.Errorf("figures of a record: %w", err)
	}
	for name := range fields {
		if _, ok := taken[name]; ok {
			return nil, fmt.Errorf("figure %q has the name of a field of every record", name)
		}
	}
	switch {
	case len(taken) == 0:
		return figures, nil
	case len(fields) == 0:
		return stamp, nil
	}
	return append(append(stamp[:len(stamp)-1], ','), figures[1:]...), nil
}

// UnmarshalJSON reads both parts from one object.
func (r *Record[F]) UnmarshalJSON(text []byte) error {
	return errors.Join(json.Unmarshal(text, &r.Stamp), json.Unmarshal(text, &r.Figures))
}

// Journal is a file of records, one JSON object a line, and the records that
// it holds. It is used by one goroutine.
type Journal[F any] struct {
	Bench   string // goes into the stamp of new records
	Path    string // empty: records are kept in memory alone
	Records []Record[F]
}

// ReadJournal reads the records of a file without changing it. A missing file
// holds none. A last line without a line feed, as a kill leaves it, is ignored.
func ReadJournal[F any](bench, path string) (*Journal[F], error) {
	j := &Journal[F]{Bench: bench, Path: path}
	data, err := os.ReadFile(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) {
		return j, nil
	} else if err != nil {
		return nil, err
	}
	number := 0
	for line := range bytes.Lines(data[:bytes.LastIndexByte(data, '\n')+1]) {
		number++
		var r Record[F]
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s:%d: record cannot be read: %w", path, number, err)
		}
		j.Records = append(j.Records, r)
	}
	return j, nil
}

// Add stamps the figures, and appends the record to the file.
func (j *Journal[F]) Add(figures F) error { return j.AddStamped(Here(j.Bench), figures) }

// AddStamped appends a record with a stamp that the caller took, as for figures
// of one moment. A last line that a kill has cut is removed from the file first.
func (j *Journal[F]) AddStamped(stamp Stamp, figures F) error {
	r := Record[F]{stamp, figures}
	j.Records = append(j.Records, r)
	if j.Path == "" {
		return nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(j.Path), 0o777), dropCutLine(j.Path)); err != nil {
		return err
	}
	f, err := os.OpenFile(j.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// Save writes all records to the file, whole or not at all, in place of what it
// holds.
func (j *Journal[F]) Save() error {
	if j.Path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(j.Path), 0o777); err != nil {
		return err
	}
	return atomicfile.Write(j.Path, func(w io.Writer) error {
		for _, r := range j.Records {
			text, err := json.Marshal(r)
			if err != nil {
				return err
			}
			if _, err := w.Write(append(text, '\n')); err != nil {
				return err
			}
		}
		return nil
	})
}

// dropCutLine truncates a file behind its last line feed.
func dropCutLine(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return err
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, st.Size()-1); err != nil || last[0] == '\n' {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return f.Truncate(int64(bytes.LastIndexByte(data, '\n') + 1))
}

// Forget removes the records and the file.
func (j *Journal[F]) Forget() error {
	j.Records = nil
	if j.Path == "" {
		return nil
	}
	if err := os.Remove(j.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Stamps returns the stamps of all records, for Origin.
func (j *Journal[F]) Stamps() []Stamp { return StampsOf(j.Records) }

// StampsOf returns the stamps of records, for Origin.
func StampsOf[F any](records []Record[F]) []Stamp {
	stamps := make([]Stamp, len(records))
	for i := range records {
		stamps[i] = records[i].Stamp
	}
	return stamps
}

// LastRun returns the records of the newest run with several rounds: the last
// record that round accepts, and those before it down to round 1.
func LastRun[F any](records []Record[F], round func(F) (number int, ok bool)) (run []Record[F]) {
	for i := len(records) - 1; i >= 0; i-- {
		number, ok := round(records[i].Figures)
		if !ok {
			continue
		}
		run = append(run, records[i])
		if number <= 1 {
			break
		}
	}
	slices.Reverse(run)
	return run
}

// ResultsFolder returns the folder that --results names: none ("") for "-" and
// for a quick run without the flag, else benchmarks/results of the module if the
// flag is empty.
func ResultsFolder(flag string, kind RunKind) (string, error) {
	switch {
	case flag == "-", flag == "" && kind == QuickRun:
		return "", nil
	case flag != "":
		return flag, nil
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "benchmarks", "results"), nil
}

// RunKind tells runs whose figures count from those that only try a command.
type RunKind int

// The kinds of runs.
const (
	FullRun RunKind = iota
	QuickRun
)

// KindOf returns the kind of a run by the flag --quick.
func KindOf(quick bool) RunKind {
	if quick {
		return QuickRun
	}
	return FullRun
}

// WritePage writes a page of results, whole or not at all.
func WritePage(path, page string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := io.WriteString(w, page)
		return err
	})
}
