package sinks

import (
	"context"
	"errors"
	"sync"

	"entropipe/sinks/record"
)

// Foreign finds other processes that write to the same output with another content.
// One goroutine may use it, beside the Output's writers.
//
// Clocks of machines differ, so no clock decides which manifest is newer. A manifest
// that appears between two looks was committed after the first look. If this process
// had committed before that look, the manifest is newer than its own, and both
// processes write at the same time. A process that was draining when this one started
// is not reported.
type Foreign struct {
	o       *Output
	topics  []string
	next    map[partition]int64 // end of the newest manifest seen
	looked  bool
	settled bool // this process had committed before the last look
}

// Foreign returns a Foreign of these topics. Manifests that exist at its first Look do
// not count.
func (o *Output) Foreign(topics []string) *Foreign {
	o.own.mu.Lock()
	o.own.uuids = map[string]bool{}
	o.own.mu.Unlock()
	return &Foreign{o: o, topics: topics, next: map[partition]int64{}}
}

// ownCommits holds the uuids of this process's manifests that no look has met.
type ownCommits struct {
	mu        sync.Mutex
	uuids     map[string]bool // nil: there is no Foreign
	committed bool
}

// begin is called before a manifest is created, since a look may meet it at once.
func (c *ownCommits) begin(uuid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.uuids != nil {
		c.uuids[uuid] = true
	}
}

// end records whether a manifest that was begun was created.
func (c *ownCommits) end(uuid string, created bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.committed = c.committed || created; !created {
		delete(c.uuids, uuid)
	}
}

// meet tells whether this process has created the manifest, and forgets its uuid.
func (c *ownCommits) meet(uuid string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := c.uuids[uuid]
	delete(c.uuids, uuid)
	return own
}

func (c *ownCommits) any() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.committed
}

// Look returns a change for each manifest of another process that is newer than one
// of this process and has another content than the current one: Was is the content of
// this process, Is that of the other. Cost: the first call lists the names of all
// manifests of the topics; later calls try one name for each partition and open the
// new manifests.
func (f *Foreign) Look(ctx context.Context) ([]ContentChange, error) {
	committed := f.o.own.any() // before the look
	var found []ContentChange
	for _, topic := range f.topics {
		ids, err := f.o.partitionsOf(ctx, topic)
		if err != nil {
			return found, err
		}
		for _, id := range ids {
			changes, err := f.partition(ctx, partition{Topic: topic, ID: id})
			found = append(found, changes...)
			if err != nil {
				return found, err
			}
		}
	}
	if !f.settled {
		found = nil
	}
	f.looked, f.settled = true, committed
	return found, nil
}

// partition returns the changes that new manifests of p stand for.
func (f *Foreign) partition(ctx context.Context, p partition) (found []ContentChange, err error) {
	next, known := f.next[p]
	if !known {
		if next, err = f.begin(ctx, p); err != nil || next < 0 {
			return nil, err
		}
	}
	for {
		m, err := ReadManifest(ctx, f.o.store, record.ManifestName(p, next))
		if errors.Is(err, ErrNotFound) {
			f.next[p] = next
			return found, nil
		}
		if err != nil {
			return found, err
		}
		found = append(found, f.differs(ctx, m)...)
		next = m.End
		f.next[p] = next
	}
}

// begin returns the offset at which the first manifest of p that counts starts; -1: p
// has no manifest. Manifests that exist at the first look do not count.
func (f *Foreign) begin(ctx context.Context, p partition) (int64, error) {
	if f.looked {
		return f.first(ctx, p)
	}
	m, err := f.o.newest(ctx, p)
	if err != nil || m == nil {
		return -1, err
	}
	f.o.own.meet(m.UUID)
	return m.End, nil
}

// first returns the least start of p's manifests; -1: it has none.
func (f *Foreign) first(ctx context.Context, p partition) (int64, error) {
	names, err := f.o.store.Names(ctx, record.ManifestFolder(p))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return 0, err
	}
	first := int64(-1)
	for _, name := range names {
		if s, ok := record.ManifestStart(name); ok && (first < 0 || s < first) {
			first = s
		}
	}
	return first, nil
}

// differs returns the change that m stands for, if another process has created m.
func (f *Foreign) differs(ctx context.Context, m *record.Manifest) []ContentChange {
	if f.o.own.meet(m.UUID) {
		return nil
	}
	c := f.o.change(ctx, m)
	if c == nil {
		return nil
	}
	c.Was, c.Is, c.Offset = c.Is, c.Was, m.Start
	if theirs := f.o.content(ctx, c.Is); theirs != nil {
		c.Changes = f.o.content(ctx, c.Was).Changes(theirs)
	}
	return []ContentChange{*c}
}
