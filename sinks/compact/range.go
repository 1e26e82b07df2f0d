package compact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"entropipe/sinks"
	"entropipe/sinks/record"
)

// chain is what the source holds of a partition behind the end of the target, as far as its
// manifests were read.
type chain struct {
	p      record.TopicPartition
	next   int64 // start of the first manifest that was not read
	tail   []*record.Manifest
	seen   time.Time // when this process read the first manifest of tail
	listed []int64   // starts of manifests that a listing has found, ascending
	polls  int       // looks without a new manifest since the last listing
}

// relist is how often a chain is asked for its next manifest before its names are listed
// again: only a listing finds that the source was repaired.
const relist = 100

// openChain finds where the target stands in the chain of the source.
func openChain(ctx context.Context, from sinks.Reader, p record.TopicPartition, next int64) (*chain, error) {
	h := &chain{p: p, next: next}
	return h, h.list(ctx, from)
}

// list reads the names of the partition's manifests. An error: the target ends within a commit of
// the source, or behind all of them.
func (h *chain) list(ctx context.Context, from sinks.Reader) error {
	names, err := from.Names(ctx, record.ManifestFolder(h.p))
	if err != nil {
		return err
	}
	h.listed, h.polls = h.listed[:0], 0
	before := int64(-1)
	for _, name := range names {
		start, ok := record.ManifestStart(name)
		switch {
		case ok && start >= h.next:
			h.listed = append(h.listed, start)
		case ok:
			before = max(before, start)
		}
	}
	slices.Sort(h.listed)
	if before < 0 || len(h.tail) > 0 {
		return nil
	}
	m, err := sinks.ReadManifest(ctx, from, record.ManifestName(h.p, before))
	if err == nil && m.End != h.next {
		err = fmt.Errorf("the compaction ends at offset %d, and the commit before has offsets %d to %d: the source "+
			"was repaired after it was compacted; compact it into a new folder", h.next, m.Start, m.End-1)
	}
	return err
}

// read reads the next manifest into tail, and tells whether there was one.
func (h *chain) read(ctx context.Context, from sinks.Reader) (bool, error) {
	for len(h.listed) > 0 && h.listed[0] < h.next {
		h.listed = h.listed[1:]
	}
	m, err := sinks.ReadManifest(ctx, from, record.ManifestName(h.p, h.next))
	switch {
	case errors.Is(err, sinks.ErrNotFound) && len(h.listed) > 0:
		return false, fmt.Errorf("offsets %d to %d are in no manifest of the source; entropipe verify tells more",
			h.next, h.listed[0]-1)
	case errors.Is(err, sinks.ErrNotFound):
		if h.polls++; h.polls >= relist {
			return false, h.list(ctx, from)
		}
		return false, nil
	case err == nil && m.Format != record.FormatVersion:
		err = &record.FormatError{Name: record.ManifestName(h.p, h.next), Format: m.Format}
	}
	if err != nil {
		return false, err
	}
	if len(h.tail) == 0 {
		h.seen = time.Now()
	}
	h.tail, h.next, h.polls = append(h.tail, m), m.End, 0
	return true, nil
}

// ready returns the next range that is to be committed; nil: there is none yet. all: a range
// is ready when the source has no more.
func (h *chain) ready(ctx context.Context, c *Compactor, all bool) (*span, error) {
	s := &span{}
	for i := 0; ; i++ {
		if i == len(h.tail) {
			more, err := h.read(ctx, c.from)
			if err != nil && (len(s.manifests) == 0 || passes(sinks.Unavailable(err))) {
				return nil, err
			}
			if err != nil { // commits before the fault come first
				return s, nil
			}
			if !more {
				break
			}
		}
		if !s.takes(h.tail[i], c.cfg.TargetBytes) {
			return s, nil
		}
		s.add(h.tail[i])
	}
	if len(s.manifests) == 0 || !all && time.Since(h.seen) < c.cfg.MaxAge {
		return nil, nil
	}
	return s, nil
}

// drop removes the manifests of a range that is committed.
func (h *chain) drop(s *span) {
	h.tail = slices.Delete(h.tail, 0, len(s.manifests))
	h.seen = time.Now()
}

// span is a range: consecutive manifests of a partition that become one.
type span struct {
	manifests []*record.Manifest
	sizes     map[string]int64 // bytes of the files by folder
}

// takes tells whether m may be added to the range: its rows have the same configuration and
// topic, it is no gap, and no file gets larger than target.
func (s *span) takes(m *record.Manifest, target int64) bool {
	if len(s.manifests) == 0 {
		return true
	}
	first := s.manifests[0]
	if m.Gap || first.Gap || m.TopicID != first.TopicID || m.ContentHash != first.ContentHash ||
		len(s.manifests) >= maxManifests {
		return false
	}
	added := map[string]int64{}
	for i := range m.Files {
		folder := path.Dir(m.Files[i].Path)
		if added[folder] += m.Files[i].Bytes; s.sizes[folder] > 0 && s.sizes[folder]+added[folder] > target {
			return false
		}
	}
	return true
}

func (s *span) add(m *record.Manifest) {
	if s.sizes == nil {
		s.sizes = map[string]int64{}
	}
	s.manifests = append(s.manifests, m)
	for i := range m.Files {
		s.sizes[path.Dir(m.Files[i].Path)] += m.Files[i].Bytes
	}
}

// manifest returns the manifest of the range, without files. Created is the time of the last
// commit of the source, since selections by time ask when records were committed.
func (s *span) manifest() *record.Manifest {
	first, last := s.manifests[0], s.manifests[len(s.manifests)-1]
	m := &record.Manifest{Topic: first.Topic, TopicID: first.TopicID, Partition: first.Partition, Start: first.Start,
		End: last.End, Gap: first.Gap, Chunks: last.Chunks, Last: last.Last, ConfigHash: first.ConfigHash,
		ContentHash: first.ContentHash}
	for _, one := range s.manifests {
		m.Counts.Messages += one.Counts.Messages
		m.Counts.Chunks += one.Counts.Chunks
		m.Counts.Frames += one.Counts.Frames
		m.Counts.Rejects += one.Counts.Rejects
		m.Counts.Holes += one.Counts.Holes
		m.Counts.Sequences += one.Counts.Sequences
		if one.Created.After(m.Created) {
			m.Created = one.Created
		}
		if one.ConfigHash != m.ConfigHash {
			m.ConfigHash = "" // several writers
		}
	}
	return m
}

// group holds the files of a range in one folder of a table, in the order of their rows.
type group struct {
	table, folder string
	files         []*record.File
}

// groups returns the files of the range by folder, sorted by folder.
func (s *span) groups() []*group {
	var all []*group
	byFolder := map[string]*group{}
	for _, m := range s.manifests {
		for i := range m.Files {
			f := &m.Files[i]
			folder := path.Dir(f.Path)
			g := byFolder[folder]
			if g == nil {
				g = &group{table: f.Table, folder: folder}
				byFolder[folder] = g
				all = append(all, g)
			}
			g.files = append(g.files, f)
		}
	}
	slices.SortFunc(all, func(a, b *group) int { return cmp.Compare(a.folder, b.folder) })
	return all
}

// path returns the path of the group's file number part.
func (g *group) path(m *record.Manifest, part int) string {
	name := fmt.Sprintf("%s/part-%d-%020d-%020d", g.folder, m.Partition, m.Start, m.End)
	if part > 0 {
		name += fmt.Sprintf("-%d", part)
	}
	return name + record.DataSuffix
}

// partWriter writes one file of a group.
type partWriter struct {
	l          *loader
	start, end int64
}

// write copies files until one does not fit behind the others.
func (w *partWriter) write(out sinks.PairWriter) (rows int64, err error) {
	p := newSplicer(out, w.start, w.end)
	for {
		s, err := w.l.peek()
		if err != nil {
			return 0, err
		}
		if s == nil || !p.fits(s) {
			return p.finish()
		}
		if err := p.add(s); err != nil {
			return 0, err
		}
		w.l.drop()
	}
}
