package read

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"entropipe/sinks/record"
)

// Report is the result of Verify, for printing or as JSON.
type Report struct {
	Store      string            `json:"store"` // uuid of the output
	Format     int               `json:"format"`
	Schema     int               `json:"schema"`
	Compacts   string            `json:"compaction_of,omitempty"` // uuid of the output that it is a compaction of
	OK         bool              `json:"ok"`
	Checks     []Check           `json:"checks"`
	Partitions []PartitionReport `json:"partitions"`
	Plans      []PlanReport      `json:"plans,omitempty"`
	Tables     []TableReport     `json:"tables"`
	Adopted    []AdoptedReport   `json:"adopted,omitempty"`
	Retired    []RetiredReport   `json:"retired,omitempty"`
	Faults     []Fault           `json:"faults"`      // the first maxFaults faults
	FaultCount int64             `json:"fault_count"` // number of all faults
	Notes      []string          `json:"notes"`       // observations that are no faults
	Repair     *Repair           `json:"repair,omitempty"`
}

// Check counts how often one property was checked.
type Check struct {
	Name   string `json:"name"`
	What   string `json:"what"`
	Done   int64  `json:"done"`
	Faults int64  `json:"faults"`
}

// Fault is one violation of a check.
type Fault struct {
	Check   string `json:"check"`
	Where   string `json:"where"`
	Problem string `json:"problem"`
}

// PartitionReport sums up the manifests of a partition.
type PartitionReport struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Base      int64  `json:"base"` // offset at which the output begins
	End       int64  `json:"end"`  // end of the newest manifest
	Manifests int64  `json:"manifests"`
	record.Counts
	Gaps []Gap `json:"gaps,omitempty"`
}

// countsText returns the counts for people.
func countsText(c *record.Counts) string {
	rows := fmt.Sprintf("%d frames", c.Frames)
	switch {
	case c.Sequences > 0 && c.Frames > 0:
		rows += fmt.Sprintf(", %d sequences", c.Sequences)
	case c.Sequences > 0:
		rows = fmt.Sprintf("%d sequences", c.Sequences)
	}
	if c.Chunks > 0 {
		rows = fmt.Sprintf("%d further chunks, %s", c.Chunks, rows)
	}
	return fmt.Sprintf("%d messages, %s, %d rejects, %d holes", c.Messages, rows, c.Rejects, c.Holes)
}

// Gap is a range of offsets that were deleted before they could be read.
type Gap struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
}

// TableReport sums up the files of a table.
type TableReport struct {
	Table   string `json:"table"`
	Files   int64  `json:"files"`
	Rows    int64  `json:"rows"`
	Bytes   int64  `json:"bytes"`
	Pending int64  `json:"pending,omitempty"` // files that are committed and still staged
}

// add adds the counts of a manifest.
func (p *PartitionReport) add(m *record.Manifest) {
	p.Manifests++
	p.End = max(p.End, m.End)
	p.Messages += m.Counts.Messages
	p.Frames += m.Counts.Frames
	p.Sequences += m.Counts.Sequences
	p.Rejects += m.Counts.Rejects
	p.Holes += m.Counts.Holes
	p.Chunks += m.Counts.Chunks
	if m.Gap {
		p.Gaps = append(p.Gaps, Gap{m.Start, m.End})
	}
}

// addFile adds a file to the report of its table, and returns that report.
func addFile(tables *[]TableReport, f *record.File) *TableReport {
	i := slices.IndexFunc(*tables, func(t TableReport) bool { return t.Table == f.Table })
	if i < 0 {
		i = len(*tables)
		*tables = append(*tables, TableReport{Table: f.Table})
	}
	t := &(*tables)[i]
	t.Files++
	t.Rows += f.Rows
	t.Bytes += f.Bytes
	return t
}

// AdoptedReport sums up the commits whose files another output has written.
type AdoptedReport struct {
	From       string `json:"from"` // uuid of that output
	Commits    int64  `json:"commits"`
	Partitions int64  `json:"partitions"` // partitions with such commits

	last record.TopicPartition
}

// addAdopted counts a manifest if it is adopted. The manifests of a partition come one
// after the other.
func addAdopted(list *[]AdoptedReport, m *record.Manifest) {
	if m.AdoptedFrom == "" {
		return
	}
	i := slices.IndexFunc(*list, func(a AdoptedReport) bool { return a.From == m.AdoptedFrom })
	if i < 0 {
		i = len(*list)
		*list = append(*list, AdoptedReport{From: m.AdoptedFrom})
	}
	a := &(*list)[i]
	if p := m.TopicPartition(); a.Commits == 0 || p != a.last {
		a.Partitions, a.last = a.Partitions+1, p
	}
	a.Commits++
}

// writeAdopted writes a line for each output whose commits were adopted.
func writeAdopted(b *strings.Builder, list []AdoptedReport) {
	for _, a := range list {
		fmt.Fprintf(b, "adopted: %d commits of %d partitions have files of output %s\n", a.Commits, a.Partitions,
			a.From)
	}
}

// writeCompaction writes a line for a compaction.
func writeCompaction(b *strings.Builder, of string) {
	if of != "" {
		fmt.Fprintf(b, "compaction of output %s\n", of)
	}
}

// Names of the checks.
const (
	checkRecords  = "records"
	checkChain    = "chain"
	checkFiles    = "files"
	checkSums     = "checksums"
	checkRows     = "rows"
	checkAccounts = "accounts"
	checkOrphans  = "orphans"
)

// maxFaults bounds the faults and the notes of a report.
const maxFaults = 1000

func newReport() *Report {
	return &Report{Faults: []Fault{}, Notes: []string{}, Partitions: []PartitionReport{},
		Tables: []TableReport{}, Checks: []Check{
			{Name: checkRecords,
				What: "store, base and manifests can be read, agree with their names, and have one format"},
			{Name: checkChain, What: "manifests follow each other from the base on, without hole or overlap"},
			{Name: checkFiles, What: "every file of a manifest is there, in its size"},
			{Name: checkSums, What: "files have the SHA-256 of their manifest"},
			{Name: checkRows, What: "files have the rows of their manifest, only of its offsets, and the schema of " +
				"the " +
				"output"},
			{Name: checkAccounts, What: "every record is a row, a reject or a counted hole, and none twice"},
			{Name: checkOrphans, What: "every file of a table belongs to a manifest"},
		}}
}

// reporter fills a Report. Several goroutines may call its methods at once.
type reporter struct {
	mu    sync.Mutex
	limit int // largest number of faults, and of notes, that are kept; 0: maxFaults
	*Report
}

// room tells whether a list of length n may grow.
func (r *reporter) room(n int) bool { return n < cmp.Or(r.limit, maxFaults) }

// checked adds n to the number of times that check was made.
func (r *reporter) checked(check string, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.check(check).Done += n
}

func (r *reporter) check(name string) *Check {
	i := slices.IndexFunc(r.Checks, func(c Check) bool { return c.Name == name })
	return &r.Checks[i]
}

func (r *reporter) fault(check, where, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.check(check).Faults++
	r.FaultCount++
	if r.room(len(r.Faults)) {
		r.Faults = append(r.Faults, Fault{check, where, fmt.Sprintf(format, args...)})
	}
}

func (r *reporter) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.room(len(r.Notes)) {
		r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
	}
}

// file counts a file that exists.
func (r *reporter) file(f *record.File, pending bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := addFile(&r.Tables, f); pending {
		t.Pending++
	}
}

// sorted completes the report. Equal outputs have equal reports.
func (r *reporter) sorted() *Report {
	r.OK = r.FaultCount == 0
	slices.SortFunc(r.Faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Where, b.Where), cmp.Compare(a.Check, b.Check), cmp.Compare(a.Problem, b.Problem))
	})
	slices.SortFunc(r.Partitions, func(a, b PartitionReport) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	slices.SortFunc(r.Plans, func(a, b PlanReport) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(r.Tables, func(a, b TableReport) int { return cmp.Compare(a.Table, b.Table) })
	slices.Sort(r.Notes)
	return r.Report
}

// String returns the text that WriteTo writes.
func (r *Report) String() string {
	var b strings.Builder
	r.WriteTo(&b)
	return b.String()
}

// WriteTo writes the report as text.
func (r *Report) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "output %s\n", r.Store)
	writeCompaction(&b, r.Compacts)
	for _, p := range r.Partitions {
		if hidden(r.Plans, p.Topic) {
			continue
		}
		fmt.Fprintf(&b, "%s/%d: offsets %d to %d in %d manifests: %s\n", p.Topic, p.Partition, p.Base, p.End,
			p.Manifests, countsText(&p.Counts))
		for _, g := range p.Gaps {
			fmt.Fprintf(&b, "%s/%d: gap: offsets %d to %d were deleted before they could be read\n", p.Topic,
				p.Partition, g.Start, g.End)
		}
	}
	writePlans(&b, r.Plans)
	for _, t := range r.Tables {
		fmt.Fprintf(&b, "%-10s %d files, %d rows, %d bytes", t.Table, t.Files, t.Rows, t.Bytes)
		if t.Pending > 0 {
			fmt.Fprintf(&b, " (%d files of the newest commits are not in their place yet)", t.Pending)
		}
		b.WriteByte('\n')
	}
	writeAdopted(&b, r.Adopted)
	for i := range r.Retired {
		fmt.Fprintln(&b, &r.Retired[i])
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	for _, c := range r.Checks {
		mark := "ok  "
		if c.Faults > 0 {
			mark = "FAIL"
		}
		fmt.Fprintf(&b, "%s %-9s %d checked, %d faults: %s\n", mark, c.Name, c.Done, c.Faults, c.What)
	}
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "fault: %s: %s: %s\n", f.Check, f.Where, f.Problem)
	}
	if more := r.FaultCount - int64(len(r.Faults)); more > 0 {
		fmt.Fprintf(&b, "and %d faults more\n", more)
	}
	if r.Repair != nil {
		r.Repair.text(&b)
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}
