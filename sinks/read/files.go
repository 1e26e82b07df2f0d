package read

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"entropipe/sinks"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// FileList names the files that hold the rows of an output, each row once: the files of its
// compaction, and those of the output behind the end of the compaction.
type FileList struct {
	Tables     []TableFileList     `json:"tables"` // with files, in the order of tables.Names
	Partitions []PartitionFileList `json:"partitions"`
}

// TableFileList names the files of one table, relative to their output, by topic, partition and
// offset.
type TableFileList struct {
	Table     string   `json:"table"`
	Rows      int64    `json:"rows"`
	Bytes     int64    `json:"bytes"`
	Compacted []string `json:"compacted"` // in the compaction
	Files     []string `json:"files"`     // in the output itself
}

// PartitionFileList says which offsets the files of a partition have: [Base, Compacted) those of
// the compaction, [Compacted, End) those of the output.
type PartitionFileList struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Base      int64  `json:"base"`
	Compacted int64  `json:"compacted"`
	End       int64  `json:"end"`
	// Left is the end of a newest commit whose files are not all in their place, and so are not
	// in the list: its writer moves them now, or has died and the next one does. 0: there is none.
	Left int64 `json:"left,omitempty"`
}

// ListFiles lists the files of the output out, of whose rows with, its compaction, has a part.
// with may be nil. It is called beside writers, compactors and vacuums; what they commit after it
// has begun may be missing. A *RetiredError: a commit of out is retired, and with does not have
// its rows. A *sinks.ConfigError: with is no compaction of out. Cost: all manifests of with, and
// those of out behind its end.
func ListFiles(ctx context.Context, out, with sinks.Reader) (*FileList, error) {
	if err := checkCompaction(ctx, out, with); err != nil {
		return nil, err
	}
	folders, err := out.Names(ctx, record.TopicsFolder)
	if err != nil {
		return nil, err
	}
	slices.Sort(folders)
	l := &lister{out: out, with: with, tables: map[string]*TableFileList{}}
	for _, folder := range folders {
		if err := l.topic(ctx, record.TopicsFolder+"/"+folder); err != nil {
			return nil, err
		}
	}
	return l.list(), nil
}

// checkCompaction returns a *sinks.ConfigError unless with is nil or a compaction of out.
func checkCompaction(ctx context.Context, out, with sinks.Reader) error {
	mine, err := Identify(ctx, out)
	if err != nil || with == nil {
		return err
	}
	theirs, err := Identify(ctx, with)
	switch {
	case err != nil:
		return fmt.Errorf("the compaction: %w", err)
	case theirs.Compacts == mine.Store:
		return nil
	case mine.Compacts == theirs.Store:
		return &sinks.ConfigError{Field: "with", Problem: fmt.Sprintf("it is the other way round: output %s is a "+
			"compaction of output %s; name the compaction here", mine.Store, theirs.Store)}
	}
	return &sinks.ConfigError{Field: "with",
		Problem: fmt.Sprintf("output %s is no compaction of output %s", theirs.Store,
			mine.Store)}
}

// lister is one call of ListFiles.
type lister struct {
	out, with  sinks.Reader
	tables     map[string]*TableFileList
	partitions []PartitionFileList
}

// topic lists the files of the partitions of a topic, whose records are in folder.
func (l *lister) topic(ctx context.Context, folder string) error {
	names, err := l.out.Names(ctx, folder)
	if err != nil {
		return err
	}
	name := folder + "/" + record.BaseFile
	data, err := sinks.ReadRecord(ctx, l.out, name)
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
	var ids []int32
	for _, name := range names {
		if id, ok := record.PartitionID(name); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		if err := l.partition(ctx, record.TopicPartition{Topic: base.Topic, ID: id}, base.Start(id)); err != nil {
			return fmt.Errorf("%s/%d: %w", base.Topic, id, err)
		}
	}
	return nil
}

// vacuums bounds how often the lists of a partition are read again because a vacuum has retired
// commits in between.
const vacuums = 10

// partition lists the files of one partition, from base on. The compaction is read first: it
// grows meanwhile, and a commit that is retired behind the end that was read makes the lists be
// read again.
func (l *lister) partition(ctx context.Context, p record.TopicPartition, base int64) error {
	for try := 0; ; try++ {
		found := PartitionFileList{Topic: p.Topic, Partition: p.ID, Base: base, Compacted: base, End: base}
		var compacted, tail []*record.Manifest
		var err error
		if l.with != nil {
			if compacted, _, err = published(ctx, l.with, p, base); err != nil {
				return fmt.Errorf("the compaction: %w", err)
			}
			if n := len(compacted); n > 0 {
				found.Compacted = compacted[n-1].End
			}
		}
		tail, found.Left, err = published(ctx, l.out, p, found.Compacted)
		found.End = found.Compacted
		if n := len(tail); n > 0 {
			found.End = tail[n-1].End
		}
		if retired := (*RetiredError)(nil); errors.As(err, &retired) && l.with != nil && try < vacuums {
			continue
		}
		if err != nil {
			return err
		}
		l.partitions = append(l.partitions, found)
		l.add(compacted, true)
		l.add(tail, false)
		return nil
	}
}

// published reads the manifests of a partition from offset at on, without a newest one whose
// files are not all in their place; left is the end of that one, or 0.
func published(ctx context.Context, store sinks.Reader, p record.TopicPartition, at int64) (all []*record.Manifest,
	left int64, err error) {
	names, err := store.Names(ctx, record.ManifestFolder(p))
	if err != nil {
		return nil, 0, err
	}
	starts, retired := startsFrom(names, at)
	if len(retired) > 0 {
		return nil, 0, retiredAt(ctx, store, p, slices.Min(retired))
	}
	if len(starts) == 0 {
		return nil, 0, nil
	}
	read, err := manifestsAt(ctx, store, p, starts)
	if err != nil {
		return nil, 0, err
	}
	for at <= starts[len(starts)-1] {
		m := read[at]
		if m == nil { // a listing beside writers may lack a name
			m, err = sinks.ReadManifest(ctx, store, record.ManifestName(p, at))
		}
		if errors.Is(err, sinks.ErrNotFound) {
			return nil, 0, fmt.Errorf("no commit begins at offset %d, and one begins behind it: entropipe verify "+
				"tells "+
				"more", at)
		}
		if err != nil {
			return nil, 0, err
		}
		all, at = append(all, m), m.End
	}
	newest := all[len(all)-1]
	there, err := inPlace(ctx, store, newest)
	if err != nil || there {
		return all, 0, err
	}
	// Its writer has not moved them yet, or it is the newest no longer and a vacuum removes them.
	if err := retiredAt(ctx, store, p, newest.Start); !errors.Is(err, sinks.ErrNotFound) {
		return nil, 0, err
	}
	return all[:len(all)-1], newest.End, nil
}

// retiredAt returns the *RetiredError of a commit, or why its record cannot be read.
func retiredAt(ctx context.Context, store sinks.Reader, p record.TopicPartition, start int64) error {
	r, err := sinks.ReadRetired(ctx, store, p, start)
	if err != nil {
		return err
	}
	return &RetiredError{Topic: p.Topic, Partition: p.ID, Start: r.Start, End: r.End, CoveredBy: r.CoveredBy}
}

// startsFrom returns the starts of manifests among the names of a folder, from offset at on, and
// those of retired commits.
func startsFrom(names []string, at int64) (starts, retired []int64) {
	for _, name := range names {
		if start, ok := record.ManifestStart(name); ok && start >= at {
			starts = append(starts, start)
		} else if start, ok := record.RetiredStart(name); ok && start >= at {
			retired = append(retired, start)
		}
	}
	slices.Sort(starts)
	return starts, retired
}

// atOnce bounds the manifests that are read at a time: in a bucket each is a request.
const atOnce = 16

// manifestsAt reads manifests side by side. One that is gone, as a repair moves it, is left out.
func manifestsAt(ctx context.Context, store sinks.Reader, p record.TopicPartition, starts []int64) (
	map[int64]*record.Manifest, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	read := make(map[int64]*record.Manifest, len(starts))
	var mu sync.Mutex
	var all sync.WaitGroup
	for lane := range min(atOnce, len(starts)) {
		all.Go(func() {
			for i := lane; i < len(starts) && ctx.Err() == nil; i += atOnce {
				m, err := sinks.ReadManifest(ctx, store, record.ManifestName(p, starts[i]))
				if errors.Is(err, sinks.ErrNotFound) {
					continue
				}
				if err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				read[starts[i]] = m
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return read, context.Cause(ctx)
}

// inPlace tells whether readers find all files of a commit.
func inPlace(ctx context.Context, store sinks.Reader, m *record.Manifest) (bool, error) {
	for i := range m.Files {
		o, err := store.Open(ctx, m.Files[i].Path)
		if errors.Is(err, sinks.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		o.Close()
	}
	return true, nil
}

// add adds the files of commits to the lists of their tables.
func (l *lister) add(manifests []*record.Manifest, compacted bool) {
	for _, m := range manifests {
		for i := range m.Files {
			f := &m.Files[i]
			t := l.tables[f.Table]
			if t == nil {
				t = &TableFileList{Table: f.Table, Compacted: []string{}, Files: []string{}}
				l.tables[f.Table] = t
			}
			t.Rows += f.Rows
			t.Bytes += f.Bytes
			if compacted {
				t.Compacted = append(t.Compacted, f.Path)
			} else {
				t.Files = append(t.Files, f.Path)
			}
		}
	}
}

func (l *lister) list() *FileList {
	found := &FileList{Tables: []TableFileList{}, Partitions: append([]PartitionFileList{}, l.partitions...)}
	for _, name := range tables.Names() {
		if t := l.tables[name]; t != nil {
			found.Tables = append(found.Tables, *t)
		}
	}
	return found
}
