package read

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"entropipe/sinks"
	"entropipe/sinks/record"
)

// retired checks a commit whose rows another output has: its record names it, and files that
// are still there are counted.
func (v *verifier) retired(ctx context.Context, m manifestJob) {
	name := record.RetiredName(m.TopicPartition(), m.Start)
	v.checked(checkRecords, 1)
	r, err := sinks.ReadRetired(ctx, v.store, m.TopicPartition(), m.Start)
	switch {
	case err != nil:
		v.fault(checkRecords, name, "%v", err)
		r = &record.Retired{}
	case r.UUID != m.UUID || r.End != m.End:
		v.fault(checkRecords, name, "it retires another commit than the one at this offset")
	case m.newest:
		v.fault(checkRecords, name, "it retires the newest commit of the partition, behind which writers continue")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	i := slices.IndexFunc(v.Retired, func(s RetiredReport) bool { return s.CoveredBy == r.CoveredBy })
	if i < 0 {
		i = len(v.Retired)
		v.Retired = append(v.Retired, RetiredReport{CoveredBy: r.CoveredBy})
	}
	v.Retired[i].Commits++
	for k := range m.Files {
		if _, there := v.listed[m.Files[k].Path]; there {
			v.Retired[i].Files++
		}
		delete(v.listed, m.Files[k].Path)
	}
}

// retiredNow tells whether a commit was retired after its partition was listed: then files that
// were there may be gone.
func (v *verifier) retiredNow(ctx context.Context, m manifestJob) bool {
	if m.newest || len(m.Files) == 0 {
		return false
	}
	o, err := v.store.Open(ctx, m.Files[len(m.Files)-1].Path)
	if err == nil {
		o.Close()
		return false
	}
	return errors.Is(err, sinks.ErrNotFound) && coverOf(ctx, v.store, m.Manifest) != ""
}

// coverOf returns the uuid of the output that has the rows of a retired commit; empty: it is not
// retired.
func coverOf(ctx context.Context, store sinks.Reader, m *record.Manifest) string {
	r, err := sinks.ReadRetired(ctx, store, m.TopicPartition(), m.Start)
	if err != nil {
		return ""
	}
	return r.CoveredBy
}

// RetiredReport sums up the commits whose rows another output has.
type RetiredReport struct {
	CoveredBy string `json:"covered_by"` // uuid of that output
	Commits   int64  `json:"commits"`
	Files     int64  `json:"files_left"` // files that the next vacuum deletes
}

// String describes the commits in one line.
func (r *RetiredReport) String() string {
	text := fmt.Sprintf("retired: output %s has the rows of %d commits, whose files are deleted", r.CoveredBy,
		r.Commits)
	if r.Files > 0 {
		text += fmt.Sprintf(" except %d: the next vacuum deletes these", r.Files)
	}
	return text
}

// RetiredError is the error for rows of a commit that is retired: offsets [Start, End).
type RetiredError struct {
	Topic      string
	Partition  int32
	Start, End int64
	CoveredBy  string // uuid of the output that has the rows
}

func (e *RetiredError) Error() string {
	return fmt.Sprintf("%s/%d: offsets %d to %d are retired: output %s has their rows", e.Topic, e.Partition, e.Start,
		e.End-1, e.CoveredBy)
}

// orRetired returns a *RetiredError in place of err if a file of m is missing because m is
// retired.
func orRetired(ctx context.Context, store sinks.Reader, m *record.Manifest, err error) error {
	if !errors.Is(err, sinks.ErrNotFound) {
		return err
	}
	if cover := coverOf(ctx, store, m); cover != "" {
		return &RetiredError{m.Topic, m.Partition, m.Start, m.End, cover}
	}
	return err
}
