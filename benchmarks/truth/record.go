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

// log is the file of an experiment's records. The file stays as it is until a cell has been
// measured: a run without its data, or one that ends before, takes nothing away.
type log struct {
	path    string
	file    *os.File // nil until then
	machine machine
	records []rig.Record[record]
	done    map[string]bool

	before  []rig.Record[record] // what the file held
	was     machine              // its machine
	version os.FileInfo          // the file then, nil if there was none
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
	startAgain               // keep no cell that can be measured
	readOnly                 // read the records of any machine, and leave the file alone
)

// openLog reads what there is. A line that was cut by a kill is dropped with the records of its
// cell; so are those of cells that are no longer asked, and those of another machine, where that
// matters.
func openLog(folder string, e *experiment, cells []cell, use logUse) (*log, error) {
	l := &log{path: filepath.Join(folder, e.name+".jsonl")}
	if err := l.read(); err != nil && (use != startAgain || l.version == nil) {
		return nil, err // a damaged file is no obstacle to a new start, an unreadable one is
	}
	here := machine{e.name, rig.CPU(), runtime.NumCPU(), vector.Best().String(), runtime.Version()}
	switch {
	case use == readOnly:
		l.asItWas(cells)
		if l.was == (machine{}) {
			l.machine = here
		}
	case use == startAgain, l.was == machine{}, e.timed && l.was.CPU != here.CPU:
		l.machine, l.done = here, map[string]bool{}
	default:
		l.machine = l.was
		l.keep(cells, false)
	}
	return l, nil
}

// asItWas takes what the file holds, where nothing has been measured.
func (l *log) asItWas(cells []cell) {
	if slices.ContainsFunc(cells, func(c cell) bool { return strings.HasSuffix(c.key, notThere) }) {
		l.whole() // cells of data that are not here cannot be listed: all stay
		return
	}
	l.machine = l.was
	l.keep(cells, true)
}

// whole takes all whole cells that the file holds.
func (l *log) whole() {
	l.machine, l.done = l.was, doneIn(l.before)
	l.records = slices.DeleteFunc(slices.Clone(l.before), func(r rig.Record[record]) bool {
		return !l.done[r.Figures.Cell]
	})
}

// begin writes the file anew, whole or not at all, without what has been dropped.
func (l *log) begin() error {
	version, err := os.Stat(l.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	same := (version == nil) == (l.version == nil)
	if same && version != nil {
		same = os.SameFile(version, l.version) && version.Size() == l.version.Size() &&
			version.ModTime().Equal(l.version.ModTime())
	}
	if !same {
		return l.changed()
	}
	if err := atomicfile.Write(l.path, l.write); err != nil {
		return err
	}
	l.file, err = os.OpenFile(l.path, os.O_APPEND|os.O_WRONLY, 0)
	return err
}

// changed is the error of a file that another process has written.
func (l *log) changed() error {
	return fmt.Errorf("%s: another process has changed the file since this one read it; "+
		"one process at a time measures an experiment into a folder", l.path)
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

// read reads the records of the file, if there is one.
func (l *log) read() error {
	f, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if l.version, err = f.Stat(); err != nil {
		return err
	}
	dec := json.NewDecoder(bufio.NewReader(f))
	if err := dec.Decode(&l.was); err != nil {
		return l.cut(err, 1)
	}
	for {
		var r rig.Record[record]
		if err := dec.Decode(&r); err != nil {
			return l.cut(err, len(l.before)+2)
		}
		l.before = append(l.before, r)
	}
}

// cut returns the error of a file whose end is not that of a file, whole or cut by a kill.
func (l *log) cut(err error, line int) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return fmt.Errorf("%s, line %d: %w", l.path, line, err)
}

// doneIn returns the cells whose records are whole.
func doneIn(records []rig.Record[record]) map[string]bool {
	done := map[string]bool{}
	for k := range records {
		if records[k].Figures.Text[end] != "" {
			done[records[k].Figures.Cell] = true
		}
	}
	return done
}

// keep takes the whole cells of these that the file holds, those whose data were not there if
// they are asked for.
func (l *log) keep(cells []cell, absent bool) {
	all := doneIn(l.before)
	for k := range l.before {
		if !absent && isAbsent(&l.before[k].Figures) {
			delete(all, l.before[k].Figures.Cell)
		}
	}
	l.done = map[string]bool{}
	for _, c := range cells {
		if all[c.key] {
			l.done[c.key] = true
		}
	}
	l.records = slices.DeleteFunc(slices.Clone(l.before), func(r rig.Record[record]) bool {
		return !l.done[r.Figures.Cell]
	})
}

// standsFor reports whether a cell stands for data which are not here, and the other one is a cell
// of these data.
func standsFor(key, other string) bool {
	data, stands := strings.CutSuffix(key, notThere)
	return stands && strings.HasPrefix(other, data+" ")
}

// left returns how many of the cells are not done. A cell that stands for data is done where there
// are cells of these data.
func (l *log) left(cells []cell) (count int) {
	for _, c := range cells {
		done := l.done[c.key]
		for key := range l.done {
			done = done || standsFor(c.key, key)
		}
		if !done {
			count++
		}
	}
	return count
}

// putBack takes what the file held of a cell whose data are not here now, and returns how many
// records these are. A cell that stands for such data takes all cells of these data.
func (l *log) putBack(key string) (count int, err error) {
	whole := doneIn(l.before)
	var back []rig.Record[record]
	for _, r := range l.before {
		if of := r.Figures.Cell; whole[of] && (of == key || standsFor(key, of)) {
			back = append(back, r)
		}
	}
	if len(back) == 0 {
		return 0, nil
	}
	if l.file != nil {
		if err := l.extend(back); err != nil {
			return 0, err
		}
	}
	l.records = append(l.records, back...)
	l.done[key] = true
	return len(back), nil
}

// extend appends records to the file, and syncs it.
func (l *log) extend(records []rig.Record[record]) error {
	opened, errOpened := l.file.Stat()
	named, errNamed := os.Stat(l.path)
	if err := errors.Join(errOpened, errNamed); err != nil {
		return err
	}
	if !os.SameFile(opened, named) {
		return l.changed()
	}
	enc := json.NewEncoder(l.file)
	for k := range records {
		if err := enc.Encode(records[k]); err != nil {
			return err
		}
	}
	return l.file.Sync()
}

// append writes the records of one cell, which took some time, and syncs them.
func (l *log) append(key string, records []record, took time.Duration) error {
	if len(records) == 0 {
		return errors.New("no record")
	}
	if l.file == nil {
		if err := l.begin(); err != nil {
			return err
		}
	}
	stamp := rig.Here("truth --only " + l.machine.Experiment + " --seeds " + listed(seeds, ","))
	stamped := make([]rig.Record[record], len(records))
	for k := range records {
		records[k].Cell = key
		if k == len(records)-1 {
			if records[k].Text == nil {
				records[k].Text = map[string]string{}
			}
			records[k].Text[end] = took.Round(100 * time.Millisecond).String()
		}
		stamped[k] = rig.Record[record]{Stamp: stamp, Figures: records[k]}
	}
	if err := l.extend(stamped); err != nil {
		return err
	}
	l.records = append(l.records, stamped...)
	l.done[key] = true
	return nil
}

func (l *log) close() {
	if l.file != nil {
		l.file.Close()
	}
}
