package compact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"entropipe/sinks"
	"entropipe/sinks/record"
)

// VacuumConfig says which commits are retired.
type VacuumConfig struct {
	OlderThan time.Duration // age of a commit, by its record
	DryRun    bool          // nothing is recorded and nothing deleted
	Version   string        // version of the program; every record has it
}

// Vacuumed counts what Vacuum has done, or would do.
type Vacuumed struct {
	Commits int64 `json:"commits"` // retired by this call
	Files   int64 `json:"files"`   // files of retired commits
	Bytes   int64 `json:"bytes"`
	Before  int64 `json:"retired_before"`
	Kept    int64 `json:"kept"` // too young, the newest of their partition, not covered, or not in place there
	// Stray counts the files below _staging that no commit needs, and StrayBytes their size.
	Stray      int64 `json:"stray"`
	StrayBytes int64 `json:"stray_bytes"`
}

// Erasable is an output whose files can be deleted.
type Erasable interface {
	sinks.Store
	sinks.Remover
}

// Vacuum retires commits of the output from whose rows its compaction into holds, and deletes
// their files. Before a commit is retired, the manifest of into that covers it is compared with
// all commits of its range: offsets, counts and rows of each table; and all its files are read
// and compared with their checksums. The record of the retirement is durable before the first
// file is deleted. A Vacuum that dies is repeated: it deletes what is left.
//
// The newest commit of a partition is never retired: writers continue behind it, and may still
// move its files. Manifests stay. Files below _staging that no commit needs are deleted, too, if
// the commit with their offsets is older than cfg.OlderThan and not the newest one. The error is a
// *sinks.ConfigError if into is no compaction of from. What was done before an error is in the
// result.
func Vacuum(ctx context.Context, from Erasable, into sinks.Reader, cfg VacuumConfig) (Vacuumed, error) {
	v := vacuum{cfg: cfg, from: from, into: into, buffer: make([]byte, 1<<20),
		newest: map[record.TopicPartition]int64{}}
	source, err := openSourceOutput(ctx, from)
	if err != nil {
		return v.done, err
	}
	data, err := sinks.ReadRecord(ctx, into, record.StoreFile)
	if err == nil {
		v.target, err = record.ParseStore(data)
	}
	if err != nil {
		return v.done, fmt.Errorf("output that covers: %w", err)
	}
	if v.target.CompactionOf != source.UUID {
		return v.done, &sinks.ConfigError{Field: "covered-by", Problem: fmt.Sprintf("output %s is no compaction of "+
			"output %s", v.target.UUID, source.UUID)}
	}
	if err := v.findStray(ctx); err != nil {
		return v.done, err
	}
	folders, err := from.Names(ctx, record.TopicsFolder)
	for _, folder := range folders {
		if err != nil {
			break
		}
		err = v.topic(ctx, record.TopicsFolder+"/"+folder)
	}
	return v.done, err
}

// vacuum is one run of Vacuum.
type vacuum struct {
	cfg    VacuumConfig
	from   Erasable
	into   sinks.Reader
	target record.Store
	done   Vacuumed
	buffer []byte
	staged map[string][]sinks.Entry        // what is below _staging, by folder
	newest map[record.TopicPartition]int64 // start of the newest commit
}

// topic retires commits of the partitions of a topic.
func (v *vacuum) topic(ctx context.Context, folder string) error {
	names, err := v.from.Names(ctx, folder)
	if err != nil {
		return err
	}
	name := folder + "/" + record.BaseFile
	data, err := sinks.ReadRecord(ctx, v.from, name)
	if errors.Is(err, sinks.ErrNotFound) {
		return nil
	}
	var base record.Base
	if err == nil {
		err = record.Parse(name, data, &base)
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		id, ok := record.PartitionID(name)
		if !ok {
			continue
		}
		p := record.TopicPartition{Topic: base.Topic, ID: id}
		if err := v.partition(ctx, p, base.Start(id)); err != nil {
			return fmt.Errorf("%s/%d: %w", base.Topic, id, err)
		}
	}
	return v.removeStray(ctx, base.Topic)
}

// partition retires commits of one partition, range by range of the compaction.
func (v *vacuum) partition(ctx context.Context, p record.TopicPartition, at int64) error {
	names, err := v.from.Names(ctx, record.ManifestFolder(p))
	if err != nil {
		return err
	}
	newest, all, retired := int64(-1), int64(0), map[int64]bool{}
	for _, name := range names {
		if start, ok := record.ManifestStart(name); ok {
			newest, all = max(newest, start), all+1
		} else if start, ok := record.RetiredStart(name); ok {
			retired[start] = true
		}
	}
	v.newest[p] = newest
	before := v.done.Commits + v.done.Before
	for {
		cover, err := sinks.ReadManifest(ctx, v.into, record.ManifestName(p, at))
		if errors.Is(err, sinks.ErrNotFound) {
			break
		}
		if err == nil {
			err = v.covered(ctx, p, cover, newest, retired)
		}
		if errors.Is(err, errNotInPlace) {
			break
		}
		if err != nil {
			return err
		}
		at = cover.End
	}
	v.done.Kept += all - (v.done.Commits + v.done.Before - before)
	return nil
}

// covered retires the commits that a manifest of the compaction covers.
func (v *vacuum) covered(ctx context.Context, p record.TopicPartition, cover *record.Manifest, newest int64,
	retired map[int64]bool) error {
	s := &span{}
	for at := cover.Start; at < cover.End; {
		m, err := sinks.ReadManifest(ctx, v.from, record.ManifestName(p, at))
		if err != nil {
			return err
		}
		s.manifests = append(s.manifests, m)
		at = m.End
	}
	if problem := differs(s.manifests, cover); problem != "" {
		return fmt.Errorf("the compaction does not hold offsets %d to %d as they were committed: %s; nothing of them "+
			"is retired", cover.Start, cover.End-1, problem)
	}
	var ready, again []*record.Manifest
	for _, m := range s.manifests {
		switch {
		case retired[m.Start]:
			again = append(again, m)
		case m.Start < newest && time.Since(m.Created) > v.cfg.OlderThan:
			ready = append(ready, m)
		}
	}
	v.done.Before += int64(len(again))
	if len(ready) > 0 {
		if err := v.intact(ctx, cover); err != nil {
			return err
		}
	}
	for _, m := range ready {
		if err := v.retire(ctx, m); err != nil {
			return err
		}
	}
	if v.cfg.DryRun {
		return nil
	}
	return v.from.Remove(ctx, pathsOf(append(again, ready...)))
}

// differs describes how a manifest differs from the commits that it covers; empty: it does not.
func differs(manifests []*record.Manifest, cover *record.Manifest) string {
	s := &span{manifests: manifests}
	sum := s.manifest()
	rows := map[string]int64{}
	for _, m := range manifests {
		for i := range m.Files {
			rows[m.Files[i].Table] += m.Files[i].Rows
		}
	}
	for i := range cover.Files {
		rows[cover.Files[i].Table] -= cover.Files[i].Rows
	}
	switch {
	case sum.Start != cover.Start || sum.End != cover.End:
		return fmt.Sprintf("the commits have offsets %d to %d", sum.Start, sum.End-1)
	case sum.Counts != cover.Counts:
		return fmt.Sprintf("the commits count %+v, it counts %+v", sum.Counts, cover.Counts)
	}
	for table, n := range rows {
		if n != 0 {
			return fmt.Sprintf("table %s has %d rows less there", table, n)
		}
	}
	return ""
}

// intact returns an error unless all files of a commit of the compaction are in their place,
// with their checksums.
func (v *vacuum) intact(ctx context.Context, cover *record.Manifest) error {
	for i := range cover.Files {
		f := &cover.Files[i]
		o, err := v.find(ctx, f)
		if err != nil {
			return fmt.Errorf("the compaction: %w", err)
		}
		sum, err := sinks.Checksum(ctx, o, v.buffer)
		o.Close()
		if err == nil && sum != f.SHA256 {
			err = fmt.Errorf("its SHA-256 is %s, its manifest says %s", sum, f.SHA256)
		}
		if err != nil {
			return fmt.Errorf("the compaction: %s: %w; nothing that it covers is retired", f.Path, err)
		}
	}
	return nil
}

// errNotInPlace is the error for a range of the compaction whose compactor moves its files now, or
// has died, so that the next one moves them.
var errNotInPlace = errors.New("its commit is recorded, and it is not in its place yet")

// find opens a file of the compaction in its place. errNotInPlace: it is still staged.
func (v *vacuum) find(ctx context.Context, f *record.File) (sinks.Object, error) {
	o, err := v.into.Open(ctx, f.Path)
	if !errors.Is(err, sinks.ErrNotFound) {
		return o, err
	}
	if o, err = v.into.Open(ctx, f.Staged); err == nil {
		o.Close()
		return nil, fmt.Errorf("%s: %w", f.Path, errNotInPlace)
	}
	return v.into.Open(ctx, f.Path) // it may have been moved in between
}

// retire records that the compaction holds the rows of m. Of two vacuums one makes the record.
func (v *vacuum) retire(ctx context.Context, m *record.Manifest) error {
	v.done.Commits++
	for i := range m.Files {
		v.done.Files++
		v.done.Bytes += m.Files[i].Bytes
	}
	if v.cfg.DryRun {
		return nil
	}
	name := record.RetiredName(m.TopicPartition(), m.Start)
	found, _, err := sinks.CreateRecord(ctx, v.from, name, record.Encode(record.Retired{Format: record.FormatVersion,
		Topic: m.Topic, Partition: m.Partition, Start: m.Start, End: m.End, UUID: m.UUID, CoveredBy: v.target.UUID,
		Created: time.Now().UTC(), Writer: v.cfg.Version}))
	if err != nil {
		return err
	}
	r, err := record.ParseRetired(name, found)
	if err == nil && r.UUID != m.UUID {
		err = fmt.Errorf("%s retires another commit of the same offset", name)
	}
	return err
}

// pathsOf returns the paths of the files of commits.
func pathsOf(manifests []*record.Manifest) (names []string) {
	for _, m := range manifests {
		for i := range m.Files {
			names = append(names, m.Files[i].Path)
		}
	}
	return slices.Clip(names)
}
