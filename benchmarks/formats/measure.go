package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	_ "embed"

	"entropipe/benchmarks/rig"
)

//go:embed peer.py
var peerProgram string

// Tasks.
const (
	taskRead  = "read"  // files to columns
	taskKafka = "kafka" // files to acknowledged messages
	taskLong  = "long"  // kafka, once, over a long input
	taskCheck = "check" // read, with sums
)

const (
	topic      = "frames"
	maxMessage = 64 << 20
	// mostLog bounds what a turn sends, so that the broker's log stays in the page cache.
	mostLog = 4e9
)

// bench is a running measurement.
type bench struct {
	ctx     context.Context
	flags   *measureCmd
	report  *report
	run     string // when the command began: the name of this run
	self    string // this program
	program rig.Program
	scratch string
	data    string // folder of real files; empty: none
	readers []pythonReader
	python  string // versions of its packages
	cores   []int
	brokers int
}

// pythonReader is one way to read a format in Python.
type pythonReader struct {
	Name    string   `json:"name"`
	Formats []string `json:"formats"`
	How     string   `json:"how"` // its work, and its copies
}

// entry is ours (an empty reader) or a reader in Python, with a task.
type entry struct {
	task   string
	reader pythonReader
	loops  int // passes over the input in a turn
}

func (b *bench) close() { os.RemoveAll(b.scratch) }

// core is where what is measured runs; -1: anywhere.
func (b *bench) core() int {
	if len(b.cores) == 0 {
		return -1
	}
	return b.cores[len(b.cores)-1]
}

// findPython asks Python for its readers.
func (b *bench) findPython() error {
	_, out, err := b.script("list")
	if err != nil {
		return err
	}
	var found struct {
		Readers  []pythonReader `json:"readers"`
		Versions string         `json:"versions"`
	}
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		return fmt.Errorf("peer.py list: %w: %q", err, out)
	}
	b.readers, b.python = found.Readers, found.Versions
	return nil
}

// script runs the peer on one core, with one thread in every library.
func (b *bench) script(args ...string) (rig.Exit, string, error) {
	return b.start(rig.Spec{Path: b.flags.Python, Args: append([]string{"-c", peerProgram}, args...),
		Env: []string{"OMP_NUM_THREADS=1", "ARROW_IO_THREADS=1", "POLARS_MAX_THREADS=1", "PYTHONDONTWRITEBYTECODE=1"}})
}

// start runs a process on the core of what is measured.
func (b *bench) start(spec rig.Spec) (exit rig.Exit, out string, err error) {
	var p *rig.Process
	if err := rig.OnCore(b.core(), func() (err error) { p, err = rig.Start(spec); return err }); err != nil {
		return exit, "", err
	}
	exit, err = p.Wait(b.ctx)
	return exit, p.Output(), err
}

// synthetic writes an input of the form, and measures it.
func (b *bench) synthetic(f *form) error {
	in, err := b.write(f, f.frames(int64(b.flags.Size), b.flags.Points))
	if err != nil {
		return err
	}
	defer os.RemoveAll(in.path)
	return b.measure(in)
}

// write writes frames of a form.
func (b *bench) write(f *form, frames int) (*input, error) {
	dir, err := os.MkdirTemp(b.scratch, f.name+"-")
	if err != nil {
		return nil, err
	}
	say("writing %s, %d frames", f.name, frames)
	_, _, err = rig.Run(b.ctx, rig.Spec{Path: b.self, Args: []string{"write", f.name, dir, "--frames",
		strconv.Itoa(frames), "--points", strconv.Itoa(b.flags.Points), "--seed",
		strconv.FormatUint(b.flags.Seed, 10)}})
	if err != nil {
		return nil, err
	}
	return newInput(f, dir)
}

// real measures the real files of the form, if there are any.
func (b *bench) real(f *form) error {
	if b.data == "" {
		return nil
	}
	in, err := realInput(f, b.data)
	if err != nil || in == nil {
		return err
	}
	return b.measure(in)
}

// measure checks that all readers agree, and lets them take turns.
func (b *bench) measure(in *input) error {
	found, entries, err := b.prepare(in)
	if err != nil {
		return err
	}
	for turn := range b.flags.Turns {
		for _, e := range entries {
			m, err := b.turn(in, e, found)
			if err != nil {
				return err
			}
			m.Turn = turn + 1
			if err := b.report.add(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepare runs every entry once, which fills the caches, and returns the entries with the
// passes of a turn. In Python the fastest reader alone sends to Kafka.
func (b *bench) prepare(in *input) (found reading, entries []entry, err error) {
	if found, _, err = b.read(in, entry{task: taskCheck, loops: 1}); err != nil {
		return found, nil, err
	}
	fastest, least := pythonReader{}, math.Inf(1)
	all := []entry{{task: taskRead}, {task: taskKafka}}
	for _, r := range b.readers {
		if !slices.Contains(r.Formats, in.reader) {
			continue
		}
		peer, _, err := b.read(in, entry{task: taskCheck, reader: r, loops: 1})
		if err != nil {
			say("%s: %s left out: %v", in.name, r.Name, err)
			continue
		}
		if !found.same(peer) {
			return found, nil, fmt.Errorf("%s finds %+v, ours %+v", r.Name, peer, found)
		}
		all = append(all, entry{task: taskRead, reader: r})
	}
	for _, e := range all {
		e.loops = 1
		m, err := b.turn(in, e, found)
		if err != nil {
			return found, nil, err
		}
		if e.reader.Name != "" && m.Seconds < least {
			fastest, least = e.reader, m.Seconds
		}
		entries = append(entries, b.timed(in, e, m.Seconds))
	}
	if fastest.Name != "" {
		e := entry{task: taskKafka, reader: fastest, loops: 1}
		m, err := b.turn(in, e, found)
		if err != nil {
			return found, nil, err
		}
		entries = append(entries, b.timed(in, e, m.Seconds))
	}
	return found, entries, nil
}

// timed returns the entry with the passes that take the time of a turn.
func (b *bench) timed(in *input, e entry, seconds float64) entry {
	e.loops = int(math.Ceil(b.flags.Turn.Seconds() / seconds))
	if e.task == taskKafka {
		e.loops = min(e.loops, int(mostLog/(2*in.bytes)))
	}
	e.loops = max(1, e.loops)
	return e
}

// turn runs an entry, and returns its record. found is what one pass finds.
func (b *bench) turn(in *input, e entry, found reading) (measurement, error) {
	m := b.record(in, e, found)
	r, exit, err := reading{}, rig.Exit{}, error(nil)
	if e.task == taskRead {
		r, exit, err = b.read(in, e)
	} else {
		r, exit, err = b.send(in, e)
	}
	if err != nil {
		return m, err
	}
	if want := found.Frames * int64(e.loops); r.Frames != want {
		return m, fmt.Errorf("%s, %s %s: %d frames, want %d", in.name, e.task, e.reader.Name, r.Frames, want)
	}
	m.Seconds, m.CPUSeconds, m.MaxRSS = r.Seconds, exit.CPU.Seconds(), exit.MaxRSS
	say("%s %s %s: %.0f MB/s, %.1f frames/s, %.0f MB resident", in.label(), e.task, m.reader(),
		m.bytesPerSecond()/1e6, m.framesPerSecond(), float64(m.MaxRSS)/1e6)
	return m, nil
}

// record returns the figures that do not depend on the run.
func (b *bench) record(in *input, e entry, found reading) measurement {
	return measurement{Run: b.run, Form: in.name, Title: in.title, Real: in.real, Task: e.task, Reader: e.reader.Name,
		How: e.reader.How, Python: b.python, Loops: e.loops, Goal: in.goal, Bytes: in.bytes, Frames: found.Frames,
		Points: found.Points, Bound: len(b.cores) > 1}
}

// read runs a reader, ours or one in Python, without Kafka.
func (b *bench) read(in *input, e entry) (r reading, exit rig.Exit, err error) {
	var out string
	if e.reader.Name == "" {
		args := []string{"read", "--loops", strconv.Itoa(e.loops)}
		if e.task == taskCheck {
			args = append(args, "--check")
		}
		exit, out, err = b.start(rig.Spec{Path: b.self, Args: append(append(args, "--"), in.paths()...)})
	} else {
		exit, out, err = b.peer(in, e, "")
	}
	if err == nil {
		err = json.Unmarshal([]byte(out), &r)
	}
	return r, exit, err
}

// peer runs a reader in Python.
func (b *bench) peer(in *input, e entry, broker string) (rig.Exit, string, error) {
	waymo, err := root(".ci", "readers", "waymo.py")
	if err != nil {
		return rig.Exit{}, "", err
	}
	request, err := json.Marshal(map[string]any{"task": e.task, "reader": e.reader.Name, "paths": in.files,
		"loops": e.loops, "broker": broker, "topic": topic, "waymo": waymo})
	if err != nil {
		return rig.Exit{}, "", err
	}
	return b.script(string(request))
}

// send sends the input to a new broker. Ours is timed from the start of its process to its
// end, Python from its first file to the last acknowledgement.
func (b *bench) send(in *input, e entry) (r reading, exit rig.Exit, err error) {
	b.brokers++
	dir := filepath.Join(b.scratch, "broker-"+strconv.Itoa(b.brokers))
	defer os.RemoveAll(dir)
	var broker *rig.Broker
	core := -1
	if len(b.cores) > 0 {
		core = b.cores[0]
	}
	err = rig.OnCore(core, func() (err error) { broker, err = b.program.NewBroker(b.ctx, dir); return err })
	if err != nil {
		return r, exit, err
	}
	defer broker.Kill()
	client := rig.NewClient(broker.Addr)
	defer client.Close()
	if err := client.CreateTopic(b.ctx, topic, 1, maxMessage); err != nil {
		return r, exit, err
	}
	if e.reader.Name != "" {
		var out string
		if exit, out, err = b.peer(in, e, broker.Addr); err == nil {
			err = json.Unmarshal([]byte(out), &r)
		}
	} else {
		exit, _, err = b.start(rig.Spec{Path: b.program.Path, Args: append([]string{"produce", "files", "--brokers",
			broker.Addr, "--topic", topic, "--rate", "max", "--loop", strconv.Itoa(e.loops), "--"}, in.paths()...)})
		r.Seconds = exit.Wall.Seconds()
	}
	if err != nil {
		return r, exit, err
	}
	ranges, err := client.Ranges(b.ctx, topic, 1)
	r.Frames = ranges[0].End
	return r, exit, err
}

// long sends a long input once, and records the memory that it took.
func (b *bench) long(f *form) error {
	in, err := b.write(f, f.frames(int64(b.flags.Size), b.flags.Points)*b.flags.Factor)
	if err != nil {
		return err
	}
	defer os.RemoveAll(in.path)
	found, _, err := b.read(in, entry{task: taskRead, loops: 1})
	if err != nil {
		return err
	}
	m, err := b.turn(in, entry{task: taskLong, loops: 1}, found)
	if err != nil {
		return err
	}
	return b.report.add(m)
}

// label names the input for the log.
func (in *input) label() string {
	if in.real {
		return in.name + " (real)"
	}
	return in.name
}

// sleepless is the least time that counts, so that a rate is finite.
const sleepless = float64(time.Microsecond) / float64(time.Second)
