package compact

import (
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"entropipe/sinks"
	"entropipe/sinks/record"
)

// Stray files lie below _staging although nobody will ever move them: an attempt that lost its
// race was never resumed, or a bucket has executed a request after the writer that sent it gave
// it up, and made a staged object anew after its commit was published. A writer only discards
// what attempts on the partitions that it resumes have lost, so these files stay for ever.

// findStray lists what is staged, by folder.
func (v *vacuum) findStray(ctx context.Context) error {
	v.staged = map[string][]sinks.Entry{}
	return v.from.List(ctx, record.StagingFolder, func(e sinks.Entry) error {
		folder := path.Dir(e.Name)
		v.staged[folder] = append(v.staged[folder], e)
		return nil
	})
}

// removeStray removes the stray files of one topic.
func (v *vacuum) removeStray(ctx context.Context, topic string) error {
	for folder, files := range v.staged {
		id, ok := record.StagedPartition(topic, path.Base(folder))
		if !ok {
			continue
		}
		p := record.TopicPartition{Topic: topic, ID: id}
		start, uuid, _ := record.ParseStagingName(p, path.Base(folder))
		if newest, known := v.newest[p]; !known || start >= newest {
			continue // its writer may live, or moves its files
		}
		m, err := sinks.ReadManifest(ctx, v.from, record.ManifestName(p, start))
		if errors.Is(err, sinks.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if time.Since(m.Created) <= v.cfg.OlderThan {
			continue
		}
		if m.UUID == uuid {
			spare, err := v.spare(ctx, m, files)
			if err != nil {
				return err
			}
			if !spare {
				continue
			}
		}
		v.done.Stray += int64(len(files))
		for i := range files {
			v.done.StrayBytes += files[i].Size
		}
		if v.cfg.DryRun {
			continue
		}
		if err := v.from.Discard(ctx, folder); err != nil {
			return err
		}
	}
	return nil
}

// spare tells whether the commit m can do without these staged files of its own: they are in
// their place, or the commit is retired.
func (v *vacuum) spare(ctx context.Context, m *record.Manifest, staged []sinks.Entry) (bool, error) {
	_, err := sinks.ReadRetired(ctx, v.from, m.TopicPartition(), m.Start)
	if err == nil || !errors.Is(err, sinks.ErrNotFound) {
		return err == nil, err
	}
	for i := range m.Files {
		f := &m.Files[i]
		if !slices.ContainsFunc(staged, func(e sinks.Entry) bool { return e.Name == f.Staged }) {
			continue
		}
		o, err := v.from.Open(ctx, f.Path)
		if errors.Is(err, sinks.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		size := o.Size()
		o.Close()
		if size != f.Bytes {
			return false, nil
		}
	}
	return true, nil
}
