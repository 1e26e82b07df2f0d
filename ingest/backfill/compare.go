package backfill

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"entropipe/ingest/filesys"
	"entropipe/sinks/record"
)

// compare compares the common files, and those of the items [from, end), with the plan.
func (p *Partition) compare(ctx context.Context, from, end int64) error {
	l, root := p.lane, p.opener.Plan.Roots[p.lane.Root]
	for i := range l.Common {
		if err := p.compareOne(ctx, above(root, l.Common[i].Path), &l.Common[i], true); err != nil {
			return err
		}
	}
	last := -1
	for i := from; i < min(end, l.Items); i++ {
		for _, k := range l.FilesOf(i) {
			if k == last {
				continue // items of one file often follow each other
			}
			last = k
			path := above(root, l.Folder+"/"+l.Files[k].Path)
			if err := p.compareOne(ctx, path, &l.Files[k], l.At != nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareOne compares one file. shared: other items need it, too, so that its checksum is
// remembered as long as its size and time stay.
func (p *Partition) compareOne(ctx context.Context, path string, want *record.LaneFile, shared bool) error {
	sum := want.SHA256 != ""
	f, err := p.opener.Archive.Stat(ctx, path, sum && !shared)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, fs.ErrNotExist):
		return p.changed(path, "it is gone")
	default:
		return &SourceError{File: path, Err: err}
	}
	switch {
	case f.Size != want.Size:
		return p.changed(path, fmt.Sprintf("it had %d bytes, and has %d", want.Size, f.Size))
	case !sum && f.ETag != want.ETag:
		return p.changed(path, fmt.Sprintf("its ETag was %s, and is %s", want.ETag, f.ETag))
	case !sum && f.ModTime != want.ModTime:
		return p.changed(path, fmt.Sprintf("it was written at %s, and again at %s", clock(want.ModTime),
			clock(f.ModTime)))
	case !sum:
		return nil
	}
	state := fileState{f.Size, f.ModTime, f.ETag}
	if shared && p.opener.summed(path, state) {
		return nil
	}
	if shared {
		if f, err = p.opener.Archive.Stat(ctx, path, true); err != nil {
			return &SourceError{File: path, Err: err}
		}
	}
	if f.SHA256 != want.SHA256 {
		return p.changed(path, "its content is another one")
	}
	if shared && (fileState{f.Size, f.ModTime, f.ETag}) == state {
		p.opener.sum(path, state)
	}
	return nil
}

func clock(ns int64) string {
	return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05.999999999 MST")
}

// maxSums bounds the files whose checksum is remembered.
const maxSums = 10_000

// summed tells whether the checksum of a file in this state was compared.
func (o *Opener) summed(path string, state fileState) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, ok := o.sums[path]
	return ok && known == state
}

// sum remembers that the checksum of a file in this state was compared.
func (o *Opener) sum(path string, state fileState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sums == nil || len(o.sums) >= maxSums {
		o.sums = map[string]fileState{}
	}
	o.sums[path] = state
}

// listed compares the files that the source lists for the items of the lane with the
// plan: a file that was added to a folder or has gone moves all positions behind it.
func (p *Partition) listed(from int64) error {
	l := p.lane
	src, ok := p.source.(interface{ FilesOf(position int64) []string })
	if len(l.Files) == 0 || !ok {
		return nil
	}
	folder := above(p.opener.Plan.Roots[l.Root], l.Folder)
	for i := from; i < l.Items; i++ {
		there, planned := src.FilesOf(l.First+i), l.FilesOf(i)
		if len(there) != len(planned) {
			return p.changed(p.place(), fmt.Sprintf("item %d is in %d files, and was in %d", l.First+i, len(there),
				len(planned)))
		}
		for k, path := range there {
			if want := above(folder, l.Files[planned[k]].Path); path != want && !sameFile(path, want) {
				return p.changed(p.place(), fmt.Sprintf("item %d is in %s, and was in %s", l.First+i, path, want))
			}
		}
	}
	return nil
}

// sameFile compares paths that are spelled differently.
func sameFile(a, b string) bool {
	a, err := filesys.Abs(a)
	return err == nil && a == filesys.Clean(b)
}
