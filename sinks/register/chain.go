package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"entropipe/sinks/record"
)

// chain is the manifests of one partition from some offset on, in order.
type chain struct {
	p      record.TopicPartition
	at     mark    // the commit that was read last; no uuid: none before next
	next   int64   // start of the manifest that is read next
	listed []int64 // starts at or behind next, sorted, as of the last listing
	gone   map[int64]bool
	polls  int // looks for the next manifest since the last listing
}

// relist is how often a chain is asked for its next manifest before its names are listed
// again: only a listing finds that the output was repaired.
const relist = 100

// repairedError says that commits which a table has are not in the output any more.
type repairedError struct {
	p     record.TopicPartition
	table string
	at    mark
	found string
}

func (e *repairedError) Error() string {
	return fmt.Sprintf("%s/%d: table %s has the rows before offset %d by commit %s, and the output has %s there: it "+
		"was repaired after they were registered, and files of the table are moved aside; drop the table and register "+
		"the output again", e.p.Topic, e.p.ID, e.table, e.at.end, e.at.uuid, e.found)
}

// openChain lists the manifests of a partition. marks are what tables have of it; each is
// compared with the commit that ends there, and the chain begins at next.
func openChain(ctx context.Context, s source, p record.TopicPartition, next int64,
	marks map[string]mark) (*chain, error) {
	c := &chain{p: p, next: next}
	starts, err := c.list(ctx, s)
	if err != nil {
		return nil, err
	}
	checked := map[mark]bool{}
	for table, m := range marks {
		if m.end == next {
			c.at = m
		}
		if checked[m] {
			continue
		}
		checked[m] = true
		if err := checkMark(ctx, s, p, table, m, starts); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// checkMark compares a mark with the commit that ends there. starts are those of all manifests.
func checkMark(ctx context.Context, s source, p record.TopicPartition, table string, at mark, starts []int64) error {
	i, _ := slices.BinarySearch(starts, at.end)
	if i == 0 {
		return &repairedError{p, table, at, "no commit"}
	}
	m, err := readManifest(ctx, s, p, starts[i-1])
	if err != nil {
		return err
	}
	if m.End != at.end || m.UUID != at.uuid {
		return &repairedError{p, table, at, fmt.Sprintf("commit %s of offsets %d to %d", m.UUID, m.Start, m.End-1)}
	}
	return nil
}

// list reads the names of the partition's manifests and returns all starts, sorted.
func (c *chain) list(ctx context.Context, s source) (starts []int64, err error) {
	names, err := s.names(ctx, record.ManifestFolder(c.p))
	if err != nil {
		return nil, err
	}
	c.listed, c.gone, c.polls = c.listed[:0], map[int64]bool{}, 0
	for _, name := range names {
		if start, ok := record.ManifestStart(name); ok {
			starts = append(starts, start)
			if start >= c.next {
				c.listed = append(c.listed, start)
			}
		} else if start, ok := record.RetiredStart(name); ok {
			c.gone[start] = true
		}
	}
	slices.Sort(starts)
	slices.Sort(c.listed)
	return starts, nil
}

// read returns the next manifest; nil: there is none yet. coveredBy is the output that has its
// rows if the commit was retired before the last listing.
func (c *chain) read(ctx context.Context, s source) (m *record.Manifest, coveredBy string, err error) {
	for len(c.listed) > 0 && c.listed[0] < c.next {
		c.listed = c.listed[1:]
	}
	m, err = readManifest(ctx, s, c.p, c.next)
	switch {
	case errors.Is(err, errMissing) && len(c.listed) > 0:
		return nil, "", fmt.Errorf("%s/%d: offsets %d to %d are in no manifest; entropipe verify tells more", c.p.Topic,
			c.p.ID, c.next, c.listed[0]-1)
	case errors.Is(err, errMissing):
		c.polls++
		return nil, "", nil
	case err != nil:
		return nil, "", err
	case m.Format != record.FormatVersion:
		return nil, "", &record.FormatError{Name: record.ManifestName(c.p, c.next), Format: m.Format}
	}
	if c.gone[m.Start] {
		if coveredBy, err = readRetired(ctx, s, m); err != nil {
			return nil, "", err
		}
	}
	c.at, c.next, c.polls = mark{m.End, m.UUID}, m.End, 0
	return m, coveredBy, nil
}

// back has the chain read again what is behind a commit; no uuid: all from base on.
func (c *chain) back(at mark, base int64) {
	if c.at, c.next = at, at.end; at.uuid == "" {
		c.next = base
	}
	c.listed = nil // they were dropped as they were read
}

// newest tells whether no manifest follows one that ends at end.
func newest(ctx context.Context, s source, p record.TopicPartition, end int64) (bool, error) {
	o, err := s.open(ctx, record.ManifestName(p, end))
	if errors.Is(err, errMissing) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, o.Close()
}
