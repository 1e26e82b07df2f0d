package read

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"

	"entropipe/sinks"
	"entropipe/sinks/record"
)

// Follower keeps the totals of an output while others write to it. An update reads only
// manifests that it has not read. It is not safe for concurrent use.
type Follower struct {
	store    sinks.Reader
	identity *Summary
	chains   map[string]*chain // by the folder of the manifests
}

// chain is a partition as far as its manifests were read.
type chain struct {
	sum    PartitionSummary
	tables []TableReport
	newest string   // manifest; empty: none was read
	left   []string // manifests to read, in order of their starts
}

// Follow returns a Follower that has read nothing but the output's identity.
func Follow(ctx context.Context, store sinks.Reader) (*Follower, error) {
	s, err := Identify(ctx, store)
	if err != nil {
		return nil, err
	}
	return &Follower{store: store, identity: s, chains: map[string]*chain{}}, nil
}

// Update reads at most limit manifests and returns how many known ones are left. Cost besides: a
// few small files for each partition, and a listing of each partition that is new. A partition
// whose newest manifest is gone, because a repair moved it, is read again. On an error the totals
// stay as they were; the next call goes on.
func (f *Follower) Update(ctx context.Context, limit int) (left int, err error) {
	s, err := Identify(ctx, f.store)
	if err != nil {
		return 0, err
	}
	if s.Store != f.identity.Store { // another output has taken the place
		clear(f.chains)
	}
	f.identity = s
	folders, err := f.folders(ctx)
	if err != nil {
		return 0, err
	}
	for folder := range f.chains {
		if !slices.Contains(folders, folder) {
			delete(f.chains, folder)
		}
	}
	var problem error
	for _, folder := range folders {
		read, err := f.partition(ctx, folder, limit)
		limit -= read
		if problem = cmp.Or(problem, err); ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
	for _, c := range f.chains {
		left += len(c.left)
	}
	return left, problem
}

// folders returns the folders of manifests, sorted.
func (f *Follower) folders(ctx context.Context) ([]string, error) {
	topics, err := f.store.Names(ctx, record.TopicsFolder)
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, topic := range topics {
		names, err := f.store.Names(ctx, record.TopicsFolder+"/"+topic)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if _, err := strconv.ParseInt(name, 10, 32); err == nil {
				folders = append(folders, record.TopicsFolder+"/"+topic+"/"+name)
			}
		}
	}
	slices.Sort(folders)
	return folders, nil
}

// partition reads at most limit manifests of a partition and returns how many it read.
func (f *Follower) partition(ctx context.Context, folder string, limit int) (read int, err error) {
	c := f.chains[folder]
	if c != nil && c.newest != "" {
		if o, err := f.store.Open(ctx, c.newest); err == nil {
			o.Close()
		} else if errors.Is(err, sinks.ErrNotFound) {
			c = nil
		} else {
			return 0, err
		}
	}
	if c == nil || c.newest == "" && len(c.left) == 0 {
		if c, err = f.list(ctx, folder); err != nil {
			return 0, err
		}
		f.chains[folder] = c
	}
	for ; read < limit; read++ {
		name := ""
		if len(c.left) > 0 {
			name = c.left[0]
		} else if c.newest != "" { // the next manifest begins where this one ends
			name = fmt.Sprintf("%s/%020d.json", folder, c.sum.End)
		}
		if name == "" || ctx.Err() != nil {
			return read, ctx.Err()
		}
		m, err := sinks.ReadManifest(ctx, f.store, name)
		switch {
		case errors.Is(err, sinks.ErrNotFound) && len(c.left) == 0:
			return read, nil
		case errors.Is(err, sinks.ErrNotFound): // a repair moves it: the list is old
			delete(f.chains, folder)
			return read, nil
		case err != nil:
			return read, err
		}
		if len(c.left) > 0 {
			c.left = c.left[1:]
		}
		c.add(name, m)
	}
	return read, nil
}

// list returns a chain whose manifests are all left.
func (f *Follower) list(ctx context.Context, folder string) (*chain, error) {
	names, err := f.store.Names(ctx, folder)
	if err != nil {
		return nil, err
	}
	c := &chain{}
	for _, name := range names {
		if _, ok := record.ManifestStart(path.Base(name)); ok {
			c.left = append(c.left, folder+"/"+name)
		}
	}
	slices.Sort(c.left) // starts have leading zeros
	return c, nil
}

func (c *chain) add(name string, m *record.Manifest) {
	if c.newest == "" {
		c.sum.PartitionReport = PartitionReport{Topic: m.Topic, Partition: m.Partition, Base: m.Start}
	}
	c.newest = name
	c.sum.add(m)
	c.sum.LastCommit = m.Created
	for i := range m.Files {
		addFile(&c.tables, &m.Files[i])
	}
}

// Summary returns the totals of what was read, sorted as by Describe, without configurations and
// event times. It belongs to the caller.
func (f *Follower) Summary() *Summary {
	s := *f.identity
	s.PartitionBy = slices.Clone(s.PartitionBy)
	s.Partitions, s.Tables = []PartitionSummary{}, []TableReport{}
	for _, c := range f.chains {
		if c.newest == "" {
			continue
		}
		p := c.sum
		p.Gaps = slices.Clone(p.Gaps)
		s.Partitions = append(s.Partitions, p)
		for _, t := range c.tables {
			i := slices.IndexFunc(s.Tables, func(o TableReport) bool { return o.Table == t.Table })
			if i < 0 {
				s.Tables = append(s.Tables, t)
				continue
			}
			s.Tables[i].Files += t.Files
			s.Tables[i].Rows += t.Rows
			s.Tables[i].Bytes += t.Bytes
		}
	}
	slices.SortFunc(s.Partitions, comparePartitions)
	slices.SortFunc(s.Tables, compareTables)
	return &s
}

func comparePartitions(a, b PartitionSummary) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

func compareTables(a, b TableReport) int { return cmp.Compare(a.Table, b.Table) }
