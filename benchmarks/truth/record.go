package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"entropipe/algos/vector"
	"entropipe/benchmarks/rig"
	"entropipe/models/atomicfile"
)

// record is one measured line.
type record struct {
	Cell   string             `json:"cell"`
	Text   map[string]string  `json:"text,omitempty"`
	Values map[string]float64 `json:"values"`
}

// machine is the first line of a file of records.
type machine struct {
	Experiment string `json:"experiment"`
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	Vector     string `json:"vector"`
	Go         string `json:"go"`
}

// log is the file of an experiment's records.
type log struct {
	file    *os.File
	machine machine
	records []rig.Record[record]
	done    map[string]bool
}

// figures returns the records without their stamps.
func (l *log) figures() []record {
	records := make([]record, len(l.records))
	for k := range l.records {
		records[k] = l.records[k].Figures
	}
	return records
}

// stamps returns the records' stamps. Records without one are of the machine in the first line.
func (l *log) stamps() []rig.Stamp {
	stamps := rig.StampsOf(l.records)
	for k := range stamps {
		if stamps[k].CPU == "" {
			stamps[k].CPU, stamps[k].Cores, stamps[k].Vector, stamps[k].Go = l.machine.CPU, l.machine.Cores,
				l.machine.Vector, l.machine.Go
		}
	}
	return stamps
}

// origin says where the records were measured, and by which command with which seeds.
func (l *log) origin() string {
	stamps := l.stamps()
	if len(stamps) == 0 {
		return "No cell has run yet" // a date would make the page another one every day
	}
	commands := rig.Each(stamps, func(s rig.Stamp) string { return s.Bench })
	if commands == "" {
		return rig.Origin(stamps) + ", command and seeds not recorded"
	}
	return rig.Origin(stamps) + ", recorded by `go run ./benchmarks/" + commands + "`"
}

// logUse says what a log is opened for.
type logUse int

const (
	goOn       logUse = iota // keep the cells that are done, and add the others
	startAgain               // forget all cells
	readOnly                 // read the records of any machine, and leave the file alone
)

// openLog reads what there is. A line that was cut by a kill is dropped with
// the records of its cell; so are those of cells that are no longer asked, and
// those of another machine, where that matters. The file is written anew without
// them, whole or not at all, unless use is readOnly.
func openLog(folder string, e *experiment, cells []cell, use logUse) (*log, error) {
	here := machine{e.name, rig.CPU(), runtime.NumCPU(), vector.Best().String(), runtime.Version()}
	l := &log{machine: here, done: map[string]bool{}}
	path := filepath.Join(folder, e.name+".jsonl")
	if use != startAgain {
		if err := l.read(path, e.timed && use != readOnly); err != nil {
			return nil, err
		}
	}
	if use == readOnly && slices.ContainsFunc(cells, func(c cell) bool { return strings.HasSuffix(c.key, notThere) }) {
		return l, nil // the cells of data that are not here cannot be listed: their records stay
	}
	l.keep(cells)
	if use == readOnly {
		return l, nil
	}
	if err := atomicfile.Write(path, l.write); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	l.file = f
	return l, nil
}

// write writes the machine and all records.
func (l *log) write(w io.Writer) error {
	enc := json.NewEncoder(w)
	if err := enc.Encode(l.machine); err != nil {
		return err
	}
	for _, r := range l.records {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// end marks a cell as done: the last record of each cell. Its text is the time that the cell took,
// as of [time.Duration]; older records say "yes".
const end = "end"

// took returns how many cells say what time they took, and the sum.
func (l *log) took() (cells int, sum time.Duration) {
	for k := range l.records {
		if d, err := time.ParseDuration(l.records[k].Figures.Text[end]); err == nil {
			cells++
			sum += d
		}
	}
	return cells, sum
}

// period is when a cell ran.
type period struct{ from, to time.Time }

// periods returns when the cells ran that say how long they took.
func (l *log) periods() (all []period) {
	for k := range l.records {
		took, err := time.ParseDuration(l.records[k].Figures.Text[end])
		if err != nil {
			continue
		}
		if to, err := time.Parse(time.RFC3339, l.records[k].Stamp.Time); err == nil {
			all = append(all, period{to.Add(-took), to})
		}
	}
	return all
}

// covered returns the time that periods cover: what they have in common counts once.
func covered(all []period) (sum time.Duration) {
	slices.SortFunc(all, func(a, b period) int { return a.from.Compare(b.from) })
	var reached time.Time
	for _, p := range all {
		if p.from.Before(reached) {
			p.from = reached
		}
		if p.to.After(p.from) {
			sum, reached = sum+p.to.Sub(p.from), p.to
		}
	}
	return sum
}

// read reads the records of a file; here: if they are of this machine.
func (l *log) read(path string, here bool) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	dec := json.NewDecoder(bufio.NewReader(f))
	var first machine
	if err := dec.Decode(&first); err != nil {
		return nil // nothing was written
	}
	if here && first.CPU != l.machine.CPU {
		return nil
	}
	l.machine = first
	for {
		var r rig.Record[record]
		if err := dec.Decode(&r); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				break
			}
			return fmt.Errorf("%s: %w", path, err)
		}
		l.records = append(l.records, r)
		if r.Figures.Text[end] != "" {
			l.done[r.Figures.Cell] = true
		}
	}
	return nil
}

// keep drops what is of no whole cell of these.
func (l *log) keep(cells []cell) {
	whole := map[string]bool{}
	for _, c := range cells {
		if l.done[c.key] {
			whole[c.key] = true
		}
	}
	l.records = slices.DeleteFunc(l.records, func(r rig.Record[record]) bool { return !whole[r.Figures.Cell] })
	l.done = whole
}

// append writes the records of one cell, which took some time, and syncs them.
func (l *log) append(key string, records []record, took time.Duration) error {
	if len(records) == 0 {
		return errors.New("no record")
	}
	stamp := rig.Here("truth --only " + l.machine.Experiment + " --seeds " + listed(seeds, ","))
	for k := range records {
		records[k].Cell = key
		if k == len(records)-1 {
			if records[k].Text == nil {
				records[k].Text = map[string]string{}
			}
			records[k].Text[end] = took.Round(100 * time.Millisecond).String()
		}
		r := rig.Record[record]{Stamp: stamp, Figures: records[k]}
		if err := json.NewEncoder(l.file).Encode(r); err != nil {
			return err
		}
		l.records = append(l.records, r)
	}
	l.done[key] = true
	return l.file.Sync()
}

func (l *log) close() {
	if l.file != nil {
		l.file.Close()
	}
}
