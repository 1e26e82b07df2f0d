package backfill

import (
	"context"
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"entropipe/ingest/filesys"
	"entropipe/ingest/replay"
	"entropipe/sinks/record"
)

// inlineFiles is the most names of an input's files that each of its lanes repeats.
const inlineFiles = 64

// statBatch is how many files are looked at together.
const statBatch = 4096

// part cuts an input into lanes.
func (b *builder) part(p *replay.Part) error {
	if p.Items <= 0 {
		return nil
	}
	path, err := filesys.Abs(p.Input.Path)
	if err != nil {
		return err
	}
	c := &cutter{builder: b, part: p, path: path, root: b.rootOf(path)}
	at := b.opt.Roots[c.root]
	if c.rel, err = below(at, path); err != nil {
		return err
	}
	common, err := b.stat(p.Common)
	if err != nil {
		return err
	}
	for i := range common {
		if common[i].Path, err = below(at, common[i].Path); err != nil {
			return err
		}
		c.commonBytes += common[i].Size
	}
	c.common = common
	if p.Of == nil {
		return c.evenly()
	}
	return c.byFiles()
}

// stat identifies files, many at a time, in their order.
func (b *builder) stat(paths []string) ([]record.LaneFile, error) {
	sum := b.opt.Identity == record.BySHA256
	workers := 16 // they wait for a file system, which may be far away
	if sum {
		workers = runtime.GOMAXPROCS(0)
	}
	files := make([]record.LaneFile, len(paths))
	errs := make([]error, len(paths))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, len(paths)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(paths) && b.ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				files[i], errs[i] = statOne(b.ctx, b.archive, paths[i], sum)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return files, b.ctx.Err()
}

// statOne returns what a plan says about a file.
func statOne(ctx context.Context, archive replay.Archive, path string, sum bool) (record.LaneFile, error) {
	f, err := archive.Stat(ctx, path, sum)
	if err != nil {
		return record.LaneFile{}, &SourceError{File: path, Err: err}
	}
	if sum {
		return record.LaneFile{Path: path, Size: f.Size, SHA256: f.SHA256}, nil
	}
	return record.LaneFile{Path: path, Size: f.Size, ModTime: f.ModTime, ETag: f.ETag}, nil
}

// cutter cuts one input.
type cutter struct {
	*builder
	part        *replay.Part
	path        string // of the input, absolute
	root        int    // that path lies below
	rel         string // path below the root
	common      []record.LaneFile
	commonBytes int64
	list        string // hash of the names of the input's files; empty: not stored yet

	lane  record.Lane    // open lane
	files []string       // absolute paths of lane.Files
	index map[string]int // place of a file in files; nil: each item has a file of its own
}

// evenly cuts an input whose items are all in the same files into as few lanes as the
// bounds allow, of as many items each.
func (c *cutter) evenly() error {
	items, total := c.part.Items, c.commonBytes
	most := c.opt.items
	if total > c.opt.bytes {
		most = min(most, max(1, share(items, c.opt.bytes, total)))
	}
	n := (items-1)/most + 1
	for k := range n {
		first, end := share(items, k, n), share(items, k+1, n)
		l := &c.lane
		*l = record.Lane{First: first, Items: end - first,
			Bytes: share(total, end, items) - share(total, first, items)}
		if err := c.flush(); err != nil {
			return err
		}
	}
	return nil
}

// share returns total * k / n, rounded down, for 0 <= k <= n. The product may exceed an
// int64.
func share(total, k, n int64) int64 {
	high, low := bits.Mul64(uint64(total), uint64(k))
	q, _ := bits.Div64(high, low, uint64(n))
	return int64(q)
}

// byFiles cuts an input whose items have files of their own, or groups of them.
func (c *cutter) byFiles() error {
	uses := c.sharing()
	if uses != nil {
		c.index = map[string]int{}
	}
	for from := int64(0); from < c.part.Items; {
		end, paths := c.ahead(from)
		files, err := c.stat(paths)
		if err != nil {
			return err
		}
		at := 0
		for i := from; i < end; i++ {
			n := len(c.part.Of(i))
			if err := c.item(i, files[at:at+n], uses); err != nil {
				return err
			}
			at += n
		}
		from = end
	}
	return c.flush()
}

// sharing returns how many items are in each file; nil: each item has one file, and no
// two the same.
func (c *cutter) sharing() map[string]int64 {
	before := ""
	plain := true
	for i := int64(0); i < c.part.Items && plain; i++ {
		files := c.part.Of(i)
		plain = len(files) == 1 && files[0] != before
		if plain {
			before = files[0]
		}
	}
	if plain {
		return nil
	}
	uses := map[string]int64{}
	for i := range c.part.Items {
		for _, file := range c.part.Of(i) {
			uses[file]++
		}
	}
	return uses
}

// ahead returns the files of the items from one on up to another. A file is named again
// where further items need it, so that all have their files at hand.
func (c *cutter) ahead(from int64) (end int64, paths []string) {
	for end = from; end < c.part.Items && len(paths) < statBatch; end++ {
		paths = append(paths, c.part.Of(end)...)
	}
	return end, paths
}

// item adds the item at position i, with its files, to a lane.
func (c *cutter) item(i int64, files []record.LaneFile, uses map[string]int64) error {
	l, cost := &c.lane, int64(0)
	for k := range files {
		n := int64(1)
		if uses != nil {
			n = uses[files[k].Path]
		}
		cost += files[k].Size / n
	}
	if l.Items > 0 && (l.Items == c.opt.items || l.Bytes+cost > c.opt.bytes) {
		if err := c.flush(); err != nil {
			return err
		}
	}
	if l.Items == 0 {
		l.First = i
	}
	l.Items++
	l.Bytes += cost
	at := make([]int, 0, 1)
	for k := range files {
		path, err := filesys.Abs(files[k].Path)
		if err != nil {
			return err
		}
		place, there := c.index[path]
		if !there {
			place = len(c.files)
			c.files = append(c.files, path)
			l.Files = append(l.Files, files[k])
			if c.index != nil {
				c.index[path] = place
			}
		}
		at = append(at, place)
	}
	if c.index != nil {
		l.At = append(l.At, at)
	}
	return nil
}

// flush completes the open lane and adds it to the plan.
func (c *cutter) flush() error {
	l, p := &c.lane, c.part
	if l.Items == 0 {
		return nil
	}
	l.Root, l.Common = c.root, c.common
	l.Frames = share(p.Frames, l.First+l.Items, p.Items) - share(p.Frames, l.First, p.Items)
	if len(c.files) > 0 {
		folder := commonFolder(c.files)
		var err error
		if l.Folder, err = below(c.opt.Roots[c.root], folder); err != nil {
			return err
		}
		for i := range l.Files {
			if l.Files[i].Path, err = below(folder, c.files[i]); err != nil {
				return err
			}
		}
	}
	var err error
	if l.Input, err = c.input(); err != nil {
		return err
	}
	if err := c.add(l); err != nil {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	c.lane = record.Lane{}
	c.files = c.files[:0]
	clear(c.index)
	return nil
}

// input says how the input of the open lane is opened.
func (c *cutter) input() (record.LaneInput, error) {
	in := c.part.Input
	r := record.LaneInput{Format: in.Format, Path: c.rel, Sequence: in.Sequence}
	switch {
	case len(in.Files) == 0:
	case c.ownsFiles():
		r.Own = true
	case len(in.Files) <= inlineFiles:
		r.Files = slices.Clone(in.Files)
	default:
		if c.list == "" {
			var err error
			if c.list, err = c.builder.list(in.Files); err != nil {
				return r, err
			}
		}
		r.List = c.list
	}
	return r, nil
}

// ownsFiles tells whether the open lane's files are those of the whole input, in their
// order.
func (c *cutter) ownsFiles() bool {
	in := &c.part.Input
	if c.index != nil || c.lane.Items != c.part.Items || len(c.files) != len(in.Files) {
		return false
	}
	for i, name := range in.Files {
		if filesys.Join(c.path, name) != c.files[i] {
			return false
		}
	}
	return true
}
