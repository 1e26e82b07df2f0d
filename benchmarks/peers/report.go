package main

import (
	"bytes"
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

	"entropipe/benchmarks/rig"
)

// report collects figures and what is to be said beside them.
type report struct {
	Time     time.Time
	CPU      string
	Cores    int
	Go       string
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
	Ns        []int64 `json:"ns"` // of each run, the first ones
	Found     int     `json:"found"`
	Agreement string  `json:"agreement,omitempty"`
}

type leftOut struct {
	Who string `json:"left_out,omitempty"` // empty: all
	On  string `json:"on,omitempty"`       // empty: everything
	Why string `json:"why"`
}

func newReport(seed uint64) *report {
	return &report{Time: time.Now().UTC(), CPU: rig.CPU(), Cores: runtime.NumCPU(), Go: runtime.Version(), Seed: seed, Versions: map[string]string{}}
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
		Op: op, Dist: in.dist, Points: points, Size: in.size, Peer: e.source.name(), Variant: e.variant, Version: e.source.version(),
		Median: perPoint(float64(sorted[(len(sorted)-1)/2]+sorted[len(sorted)/2]) / 2), Least: perPoint(float64(sorted[0])),
		Runs: len(e.ns), Ns: e.ns[:min(len(e.ns), mostNs)], Found: e.count, Agreement: e.agreement,
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
	lines, err := r.lines()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(folder, "peers.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(lines)
	return errors.Join(err, f.Close(), os.WriteFile(filepath.Join(folder, "peers.md"), []byte(page), 0o666))
}

// lines is the raw form: one JSON object a figure, and one a thing left out,
// each with what it takes to read it later.
func (r *report) lines() ([]byte, error) {
	type common struct {
		Bench string `json:"bench"`
		Time  string `json:"time"`
		CPU   string `json:"cpu"`
		Cores int    `json:"cores"`
		Go    string `json:"go"`
		Seed  uint64 `json:"seed"`
	}
	head := common{"peers", r.Time.Format(time.RFC3339), r.CPU, r.Cores, r.Go, r.Seed}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, f := range r.Figures {
		if err := enc.Encode(struct {
			common
			figure
		}{head, f}); err != nil {
			return nil, err
		}
	}
	for _, l := range r.LeftOut {
		if err := enc.Encode(struct {
			common
			leftOut
		}{head, l}); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
