package sinks

import (
	"context"
	"errors"
	"sync"

	"entropipe/sinks/record"
)

// Foreign looks for other processes that write to the same output with another
// content. It is for one goroutine, beside the Output's writers.
//
// No clock decides what is newer: clocks of machines differ. A manifest that
// appears between two looks was committed after the first of them; if this process
// had committed before that look, then the manifest is newer than its own, and the
// two write side by side. A process that was draining when this one started does
// not count.
type Foreign struct {
	o       *Output
	topics  []string
	next    map[record.TopicPartition]int64 // end of the newest manifest that was seen
	looked  bool
	settled bool // this process had committed before the last look
}

// Foreign begins to look at topics, from what is there at the first call of Look.
func (o *Output) Foreign(topics []string) *Foreign {
	o.own.mu.Lock()
	o.own.uuids = map[string]bool{}
	o.own.mu.Unlock()
	return &Foreign{o: o, topics: topics, next: map[record.TopicPartition]int64{}}
}

// ownCommits are manifests of this process that no look has met.
type ownCommits struct {
	mu        sync.Mutex
	uuids     map[string]bool // nil: nobody looks
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

// end tells whether a manifest that was begun exists.
func (c *ownCommits) end(uuid string, created bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.committed = c.committed || created; !created {
		delete(c.uuids, uuid)
	}
}

// meet tells whether a manifest is of this process.
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

// Look returns the manifests of others that are newer than one of this process
// and have another content than it writes now; Was is its own content, Is theirs.
// The first call lists the names of all manifests of the topics, later ones open
// one name a partition, and what is new.
func (f *Foreign) Look(ctx context.Context) ([]ContentChange, error) {
	committed := f.o.own.any() // before the look
	var found []ContentChange
	for _, topic := range f.topics {
		ids, err := f.o.partitionsOf(ctx, topic)
		if err != nil {
			return found, err
		}
		for _, id := range ids {
			changes, err := f.partition(ctx, record.TopicPartition{Topic: topic, ID: id})
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

// partition returns the contents of new manifests of p that differ.
func (f *Foreign) partition(ctx context.Context, p record.TopicPartition) (found []ContentChange, err error) {
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

// begin returns the offset at which the first manifest of p that counts starts, -1
// for a partition without any: what is there at the first look does not count.
func (f *Foreign) begin(ctx context.Context, p record.TopicPartition) (int64, error) {
	first, last, err := f.ends(ctx, p)
	if err != nil || last < 0 || f.looked {
		return first, err
	}
	m, err := ReadManifest(ctx, f.o.store, record.ManifestName(p, last))
	if err != nil {
		return -1, err
	}
	f.o.own.meet(m.UUID)
	return m.End, nil
}

// ends returns the least and the largest start of p's manifests, -1 for none.
func (f *Foreign) ends(ctx context.Context, p record.TopicPartition) (first, last int64, err error) {
	names, err := f.o.store.Names(ctx, record.ManifestFolder(p))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return 0, 0, err
	}
	first, last = -1, -1
	for _, name := range names {
		if s, ok := record.ManifestStart(name); ok {
			if last = max(last, s); first < 0 || s < first {
				first = s
			}
		}
	}
	return first, last, nil
}

// differs returns the change that m stands for, if it is another's.
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
