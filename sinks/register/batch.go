package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"entropipe/sinks/record"
)

// batch is manifests that are registered together.
type batch struct {
	manifests []*record.Manifest
	before    map[record.TopicPartition]mark // where the chains stood
	seen      []string                       // tables of which the output has files, as far as it was read
	files     int
}

func (b *batch) empty() bool { return len(b.manifests) == 0 }

// collect reads manifests of all partitions, until there are no more or they have enough files.
func (r *registrar) collect(ctx context.Context) (*batch, error) {
	b := &batch{before: map[record.TopicPartition]mark{}}
	for p, c := range r.chains {
		b.before[p] = c.at
		for b.files < r.cfg.Batch && len(b.manifests) < settle {
			m, coveredBy, err := c.read(ctx, r.source)
			if err != nil {
				return nil, err
			}
			if m == nil {
				break
			}
			r.step.Add(1)
			if coveredBy != "" {
				r.retired(m, coveredBy)
				m.Files = nil
			}
			if err := r.checkAdopted(m); err != nil {
				return nil, err
			}
			b.manifests = append(b.manifests, m)
			b.files += len(m.Files)
		}
	}
	return b, ctx.Err()
}

// checkAdopted returns a configuration error if a table has the rows of the output that a
// commit was adopted from.
func (r *registrar) checkAdopted(m *record.Manifest) error {
	for name, s := range r.tables {
		if m.AdoptedFrom != "" && s.fence.others[m.AdoptedFrom] && r.selected(name) {
			return configError("namespace", "table %s has the rows of output %s, from which this output has adopted "+
				"them; name another --namespace", r.shown(name), m.AdoptedFrom)
		}
	}
	return nil
}

func (r *registrar) retired(m *record.Manifest, coveredBy string) {
	r.counted(func(d *done) { d.Retired++ })
	r.log.Warn("a retired commit is passed over: its rows are in its compaction alone; register that one in its place",
		"topic", m.Topic, "partition", m.Partition, "start", m.Start, "end", m.End, "covered-by", coveredBy)
}

// entry is a file of a manifest.
type entry struct {
	m      *record.Manifest
	footer *footer
}

// footers reads the footers of the files that some table needs, several at a time. A file that no
// table needs has none. Commits that are not published yet are taken out of b.
func (r *registrar) footers(ctx context.Context, b *batch) ([][]*footer, error) {
	all := make([][]*footer, len(b.manifests))
	type job struct{ manifest, file int }
	jobs := make(chan job)
	errs := make([]error, len(b.manifests))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range max(4, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for j := range jobs {
				file := &b.manifests[j.manifest].Files[j.file]
				f, err := readFooter(ctx, r.source, file, folderKeys(&r.store, file.Table))
				mu.Lock()
				all[j.manifest][j.file] = f
				if errs[j.manifest] == nil {
					errs[j.manifest] = err
				}
				mu.Unlock()
			}
		})
	}
	for i, m := range b.manifests {
		mu.Lock()
		all[i] = make([]*footer, len(m.Files))
		mu.Unlock()
		for k := range m.Files {
			if r.needs(m, &m.Files[k]) {
				jobs <- job{i, k}
			}
		}
	}
	close(jobs)
	wg.Wait()
	return r.published(ctx, b, all, errs)
}

// needs tells whether a file is to be added to its table.
func (r *registrar) needs(m *record.Manifest, f *record.File) bool {
	if !r.selected(f.Table) {
		return false
	}
	s := r.tables[f.Table]
	return s == nil || s.fence.end(m.TopicPartition(), m.Start) <= m.Start
}

// published explains files that are not there. A commit that was retired is left without files;
// the newest commit of a partition, whose writer has not moved its files yet, and what is behind
// it is left out of b.
func (r *registrar) published(ctx context.Context, b *batch, all [][]*footer, errs []error) ([][]*footer, error) {
	var kept []*record.Manifest
	var footers [][]*footer
	waits := map[record.TopicPartition]bool{}
	for i, m := range b.manifests {
		if errs[i] != nil && !errors.Is(errs[i], errMissing) {
			return nil, errs[i]
		}
		if errs[i] != nil {
			coveredBy, err := readRetired(ctx, r.source, m)
			if err != nil {
				return nil, err
			}
			last := false
			if coveredBy == "" {
				if last, err = newest(ctx, r.source, m.TopicPartition(), m.End); err != nil {
					return nil, err
				}
			}
			switch {
			case coveredBy != "":
				r.retired(m, coveredBy)
				m.Files, all[i] = nil, nil
			case last:
				waits[m.TopicPartition()] = true
			default:
				return nil, fmt.Errorf("%w: its manifest names it, and a later commit shows that it was there; "+
					"entropipe verify tells more", errs[i])
			}
		}
		p := m.TopicPartition()
		if waits[p] {
			continue
		}
		kept, footers = append(kept, m), append(footers, all[i])
		b.before[p] = mark{m.End, m.UUID}
	}
	for p := range waits {
		r.chains[p].back(b.before[p], r.bases[p])
	}
	b.manifests = kept
	r.counted(func(d *done) { d.Unpublished = int64(len(waits)) })
	return footers, nil
}
