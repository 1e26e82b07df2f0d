package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"

	"entropipe/ingest/filesys"
)

// archive is an Archive of folders and buckets.
type archive struct {
	search func(ctx context.Context, f func(in *Input) error) error
	open   func(in *Input) (Source, error)

	skipBad bool // inputs that cannot be opened are passed over, unless all are such
	log     *slog.Logger

	files, inputs, items atomic.Int64
}

// Counts implements Archive.
func (a *archive) Counts() Counts {
	return Counts{Files: a.files.Load(), Inputs: a.inputs.Load(), Items: a.items.Load()}
}

// Parts implements Archive.
func (a *archive) Parts(ctx context.Context, f func(*Part) error) error {
	bad, found, first := skips{allowed: a.skipBad, log: a.log}, false, error(nil)
	err := a.search(ctx, func(in *Input) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		in.Path = absolute(in.Path) // once: each relative path asks the file system where it begins
		src, err := a.source(in)
		if err != nil {
			if first == nil {
				first = err
			}
			return bad.unopened(*in, err)
		}
		p, err := a.part(ctx, in, src)
		if err != nil {
			return err
		}
		found = true
		a.inputs.Add(1)
		a.items.Add(p.Items)
		return f(p)
	})
	if err == nil && !found {
		return first
	}
	return err
}

// Open implements Archive.
func (a *archive) Open(ctx context.Context, in Input, from int64) (Source, error) {
	if from < 0 {
		return nil, fmt.Errorf("%s: position %d", in, from)
	}
	src, err := a.source(&in)
	if err != nil {
		return nil, err
	}
	at, err := advance(ctx, src, from)
	if err != nil {
		src.Close()
		return nil, err
	}
	return at, nil
}

// source opens an input.
func (a *archive) source(in *Input) (Source, error) {
	src, err := a.open(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in, err)
	}
	return withName(src, in.Sequence), nil
}

// Stat implements Archive.
func (a *archive) Stat(ctx context.Context, path string, sum bool) (File, error) {
	if err := filesys.Check(path); err != nil {
		return File{}, unreadable(path, err)
	}
	info, err := filesys.Stat(path)
	if err != nil {
		return File{}, missing(path, err)
	}
	if !info.Mode().IsRegular() {
		return File{}, &BadInputError{File: path, Detail: "not a regular file"}
	}
	f := File{Path: path, Size: info.Size(), ModTime: info.ModTime().UnixNano(), ETag: filesys.ETag(info)}
	if f.ETag != "" {
		f.ModTime = 0
	}
	if sum {
		f.SHA256, err = sumOf(ctx, path, f.Size)
	}
	return f, err
}

// sumOf reads a file of size bytes.
func sumOf(ctx context.Context, path string, size int64) (string, error) {
	f, err := filesys.Open(path)
	if err != nil {
		return "", unreadable(path, err)
	}
	defer f.Close()
	h := sha256.New()
	buffer := make([]byte, 1<<20)
	for done := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := f.Read(buffer)
		h.Write(buffer[:n])
		done += int64(n)
		switch {
		case err == io.EOF && done == size:
			return hex.EncodeToString(h.Sum(nil)), nil
		case err == io.EOF || done > size:
			return "", &BadInputError{File: path, Detail: "the file changed its length while it was read"}
		case err != nil:
			return "", unreadable(path, err)
		}
	}
}

// part describes an input, whose source it closes.
func (a *archive) part(ctx context.Context, in *Input, src Source) (*Part, error) {
	defer src.Close()
	p := &Part{Input: *in}
	p.Input.Path = absolute(in.Path)
	if s, ok := src.(sequenced); ok && in.Sequence == "" {
		p.Input.Sequence = s.sequenceName()
	}
	depend(p, in, src)
	before, err := a.statAll(ctx, p.Common)
	if err != nil {
		return nil, err
	}
	if p.Items, p.Frames, err = count(ctx, src); err != nil {
		return nil, err
	}
	after, err := a.statAll(ctx, p.Common)
	if err != nil {
		return nil, err
	}
	for i := range before {
		if before[i] != after[i] {
			return nil, &BadInputError{File: before[i].Path, Detail: "the file changed while its items were counted"}
		}
	}
	return p, nil
}

// statAll returns what files are now.
func (a *archive) statAll(ctx context.Context, paths []string) (files []File, err error) {
	for _, path := range paths {
		f, err := a.Stat(ctx, path, false)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// depend fills in the files of a part.
func depend(p *Part, in *Input, src Source) {
	s, ok := filesIn(src)
	if !ok {
		own, _ := unnamed(src)
		if c, ok := own.(container); ok {
			p.Common = existing(c.containers()...)
			return
		}
		p.Common = existing(in.paths()...)
		return
	}
	p.Common, p.Of = s.common(), s.FilesOf
}

// counted is a Source that counts without reading what the items hold.
type counted interface {
	counts(ctx context.Context) (items, frames int64, err error)
}

// count returns the number of items and frames of a source, which it reads if it must.
func count(ctx context.Context, src Source) (items, frames int64, err error) {
	src, _ = unnamed(src)
	if k, ok := src.(counted); ok {
		return k.counts(ctx)
	}
	if _, ok := src.(filed); ok {
		if k, ok := src.(interface{ Len() int64 }); ok {
			return k.Len(), k.Len(), nil
		}
	}
	if of, ok := src.(laned); ok {
		if l := of.lane(); l != nil {
			defer l.close()
			err := passOver(ctx, of, l, -1)
			return of.positions(), of.positions(), err
		}
	}
	var it Item
	for {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		err := src.Next(&it)
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, 0, err
		}
		frames += it.Frames()
		items = it.Position + 1
	}
	if of, ok := src.(interface{ positions() int64 }); ok {
		items = of.positions()
	}
	if it.Drawings == nil && it.Sequences == nil {
		frames = items
	}
	return items, frames, nil
}
