package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/benchmarks/rig"
)

// report is the figures of one run, or of several as a page shows them, and what
// was left out.
type report struct {
	Stamps   []rig.Stamp // one a run
	Seed     uint64
	Versions map[string]string // by peer
	Figures  []figure
	LeftOut  []leftOut
}

// figure is one entry on one input.
type figure struct {
	Op        string  `json:"op"`
	Dist      string  `json:"dist"`
	Points    int     `json:"points"`
	Size      int     `json:"size,omitempty"` // asked for; absent: a frame
	Peer      string  `json:"peer"`
	Variant   string  `json:"variant,omitempty"`
	Version   string  `json:"version"`
	Median    float64 `json:"median_ns_per_point"`
	Least     float64 `json:"min_ns_per_point"`
	Runs      int     `json:"runs"`
	Ns        []int64 `json:"ns"` // times of the first runs
	Found     int     `json:"found"`
	Agreement string  `json:"agreement,omitempty"`
}

type leftOut struct {
	Who string `json:"left_out,omitempty"` // empty: all
	On  string `json:"on,omitempty"`       // empty: everything
	Why string `json:"why"`
}

func newReport(seed uint64) *report {
	return &report{Stamps: []rig.Stamp{rig.Here("peers")}, Seed: seed, Versions: map[string]string{}}
}

func (r *report) leaveOut(who, on, why string) {
	r.LeftOut = append(r.LeftOut, leftOut{who, on, why})
	say("left out: %s", r.LeftOut[len(r.LeftOut)-1])
}

// String is "who, on: why".
func (l leftOut) String() string {
	text := l.Who
	if l.On != "" && text != "" {
		text += ", "
	}
	return text + l.On + ": " + l.Why
}

// mostNs is how many times of single runs a figure holds: the JSON of
// thousands of runs of small clouds would say no more.
const mostNs = 50

// add takes the figure of an entry, or the reason why there is none.
func (r *report) add(in input, op string, points int, e *entry) {
	if e.err != nil {
		if e.variant != asFloat32 { // most clouds are none
			r.leaveOut(e.label(), fmt.Sprintf("%s %v", op, in), e.err.Error())
		}
		return
	}
	sorted := slices.Sorted(slices.Values(e.ns))
	perPoint := func(ns float64) float64 { return ns / float64(max(1, points)) }
	r.Figures = append(r.Figures, figure{
		Op: op, Dist: in.dist, Points: points, Size: in.size, Peer: e.source.name(), Variant: e.variant,
		Version: e.source.version(),
		Median:  perPoint(float64(sorted[(len(sorted)-1)/2]+sorted[len(sorted)/2]) / 2),
		Least:   perPoint(float64(sorted[0])),
		Runs:    len(e.ns), Ns: e.ns[:min(len(e.ns), mostNs)], Found: e.count, Agreement: e.agreement,
	})
}

// differ counts the figures whose results are not ours.
func (r *report) differ() (n int) {
	for _, f := range r.Figures {
		if f.differs() {
			n++
		}
	}
	return n
}

func (f figure) differs() bool {
	return f.Agreement != "" && f.Agreement != same && f.Agreement != otherTies
}

func (f figure) label() string { return strings.TrimSpace(f.Peer + " " + f.Variant) }

// input names the cloud of f.
func (f figure) input() string {
	if f.Size == 0 {
		return f.Dist
	}
	return f.Dist + " " + short(f.Size)
}

// write prints the report and, unless folder is empty, puts it there: the
// figures appended to peers.jsonl, the page as peers.md.
func (r *report) write(folder string, w io.Writer) error {
	page := r.markdown()
	if _, err := io.WriteString(w, page); err != nil || folder == "" {
		return err
	}
	file := rig.Journal[any]{Path: filepath.Join(folder, "peers.jsonl")}
	for _, f := range r.Figures {
		if err := file.AddStamped(r.Stamps[0], struct {
			Seed uint64 `json:"seed"`
			figure
		}{r.Seed, f}); err != nil {
			return err
		}
	}
	for _, l := range r.LeftOut {
		if err := file.AddStamped(r.Stamps[0], struct {
			Seed uint64 `json:"seed"`
			leftOut
		}{r.Seed, l}); err != nil {
			return err
		}
	}
	return render(folder)
}

// render writes the page of a folder from its records.
func render(folder string) error {
	r, err := readReport(folder)
	if err != nil {
		return err
	}
	return rig.WritePage(filepath.Join(folder, "peers.md"), r.markdown())
}

// line is any record of peers.jsonl: a figure, or what was left out.
type line struct {
	Seed uint64 `json:"seed"`
	figure
	leftOut
}

// readReport returns the figures of a folder's peers.jsonl: for every operation
// and input those of the newest run that has them, and what these runs left out.
// All records of a run have the same time.
func readReport(folder string) (*report, error) {
	file, err := rig.ReadJournal[line]("peers", filepath.Join(folder, "peers.jsonl"))
	if err != nil {
		return nil, err
	}
	if len(file.Records) == 0 {
		return nil, fmt.Errorf("%s holds no records", file.Path)
	}
	// time of the run by operation and input; runs that are shown
	newest, used := map[string]string{}, map[string]bool{}
	var order []string // operations and inputs as they were first measured
	for _, l := range file.Records {
		if l.Figures.Why != "" {
			continue
		}
		name := l.Figures.name()
		if _, ok := newest[name]; !ok {
			order = append(order, name)
		}
		newest[name] = l.Time
	}
	for _, run := range newest {
		used[run] = true
	}
	r := &report{Seed: file.Records[0].Figures.Seed, Versions: map[string]string{}}
	for _, l := range file.Records {
		f, left := l.Figures.figure, l.Figures.leftOut
		if left.Why != "" {
			if run, ok := newest[left.On]; ok && run == l.Time || !ok && used[l.Time] {
				r.LeftOut = append(r.LeftOut, left)
			}
			continue
		}
		if newest[f.name()] == l.Time {
			r.Figures = append(r.Figures, f)
			if f.Version != "" {
				r.Versions[f.Peer] = f.Version
			}
			if !slices.Contains(r.Stamps, l.Stamp) {
				r.Stamps = append(r.Stamps, l.Stamp)
			}
		}
	}
	slices.SortStableFunc(r.Figures, func(f, g figure) int {
		return slices.Index(order, f.name()) - slices.Index(order, g.name())
	})
	return r, nil
}

// name returns operation and input.
func (f figure) name() string { return f.Op + " " + f.input() }
