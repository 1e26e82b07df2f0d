package main

import (
	"fmt"
	"strings"
)

// The lines around what docs/scale.md has from the records.
const (
	beginMarker = "<!-- model:begin -->"
	endMarker   = "<!-- model:end -->"
)

// replaceBlock returns the text with another block between the markers. It reports false where
// there are no markers.
func replaceBlock(text, block string) (string, bool) {
	before, rest, found := strings.Cut(text, beginMarker+"\n")
	_, after, ends := strings.Cut(rest, endMarker)
	if !found || !ends {
		return text, false
	}
	return before + beginMarker + "\n" + block + endMarker + after, true
}

// archives are those of the table of scale.
var archives = []struct {
	name       string
	frames     float64
	frameBytes float64 // 0: that of the model
	processes  float64
}{
	{"10^6 KITTI frames, 10 processes", 1e6, 0, 10},
	{"10^9 KITTI frames, 1,000 processes", 1e9, 0, 1000},
	{"10^9 frames of 20 kB, 1,000 processes", 1e9, 20e3, 1000},
}

// totals are the costs of an archive.
type totals struct {
	size
	model      *model
	frameBytes float64
	processes  float64
}

// of returns a cost of a phase.
func (t totals) of(phase, cost string) float64 { return t.model.Constants[phase][cost].at(t.size) }

// fitted returns a number that depends on what is in a frame; "-" for frames of another size.
func (t totals) fitted(v float64) string {
	if t.frameBytes != t.model.FrameBytes {
		return "-"
	}
	return number(v)
}

// calls returns how often all processes call the system: one makes the plan, all together do
// the lanes, and each looks for what is done.
func (t totals) calls(name string) float64 {
	work := t.model.Constants[phaseWork][name]
	return t.of(phasePlan, name) + work.at(t.size) + t.processes*(work[0]+t.of(phaseStart, name))
}

// scaleLines are the lines of the table of scale.
var scaleLines = []struct {
	name string
	of   func(t totals) string
}{
	{"archive, bytes", func(t totals) string { return number(t.Frames * t.frameBytes) }},
	{"lanes", func(t totals) string { return number(t.Lanes) }},
	{"manifests", func(t totals) string { return number(t.Commits) }},
	{"files of tables", func(t totals) string { return number(t.of(phaseWork, costFiles)) }},
	{"bytes of tables", func(t totals) string { return t.fitted(t.of(phaseWork, costTables)) }},
	{"bytes of manifests", func(t totals) string { return number(t.of(phaseWork, costRecords)) }},
	{"bytes of the plan", func(t totals) string { return number(t.of(phasePlan, costPlan)) }},
	{"core-hours of the work", func(t totals) string { return t.fitted(t.of(phaseWork, costCPU) / 3600) }},
	{"core-hours of the plan, in one process",
		func(t totals) string { return number(t.of(phasePlan, costCPU) / 3600) }},
	{"core-seconds until a process finds that all is done",
		func(t totals) string { return number(t.of(phaseStart, costCPU)) }},
	{"opens", func(t totals) string { return number(t.calls("open")) }},
	{"stats", func(t totals) string { return number(t.calls("stat")) }},
	{"reads of folders", func(t totals) string { return number(t.calls("list")) }},
	{"fsyncs", func(t totals) string { return number(t.calls("sync")) }},
	{"renames and links", func(t totals) string { return number(t.calls("rename") + t.calls("link")) }},
	{"new and removed names", func(t totals) string { return number(t.calls("mkdir") + t.calls("remove")) }},
}

// scale returns what docs/scale.md has from the records.
func (r *report) scale() string {
	m, record := r.newestModel()
	if m == nil {
		return "The model has not been fitted yet: `go run ./benchmarks/backfill model`.\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Fitted on %s, commit %s, to %.0f KITTI frames with hull2d and maxima3d.\n\n", record.Machine(),
		record.Revision(), m.One.Frames)
	b.WriteString("| process | cost | of a process | of a frame | of a lane | of a commit " +
		"|\n|---|---|---:|---:|---:|---:|\n")
	for _, phase := range phases {
		for _, name := range costNames {
			c, ok := m.Constants[phase][name]
			if !ok || c == (constants{}) {
				continue
			}
			fmt.Fprintf(&b, "| %s | %s |", phase, name)
			for _, v := range c {
				fmt.Fprintf(&b, " %s |", number(v))
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n| |")
	var all []totals
	for _, a := range archives {
		if a.frameBytes == 0 {
			a.frameBytes = m.FrameBytes
		}
		all = append(all, totals{m.archiveOf(a.frames, a.frameBytes), m, a.frameBytes, a.processes})
		fmt.Fprintf(&b, " %s |", a.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(all)) + "\n")
	for _, line := range scaleLines {
		fmt.Fprintf(&b, "| %s |", line.name)
		for _, t := range all {
			fmt.Fprintf(&b, " %s |", line.of(t))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n" + all[largest].breaks(archives[largest].name))
	return b.String()
}

// largest is the archive whose limits the page has.
const largest = 1

// costNames are the costs in the order of the page.
var costNames = []string{costCPU, "open", "stat", "list", "sync", "rename", "link", "mkdir", "remove", costFiles,
	costManifests, costTables, costRecords, costPlan}
