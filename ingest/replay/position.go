package replay

import (
	"context"
	"errors"
	"io"
)

// seeker is a Source that goes to a position without reading what lies before. It has not been
// read before.
type seeker interface {
	// seek sets the position of the next item; behind the last one, Next returns io.EOF.
	seek(ctx context.Context, position int64) error
}

// advance returns a Source of the items of src from a position on. src has not been read.
func advance(ctx context.Context, src Source, from int64) (Source, error) {
	if own, sequence := unnamed(src); sequence != "" {
		at, err := advance(ctx, own, from)
		if err != nil {
			return nil, err
		}
		return withName(at, sequence), nil
	}
	if from == 0 {
		return src, nil
	}
	if s, ok := src.(seeker); ok {
		return src, s.seek(ctx, from)
	}
	if of, ok := src.(laned); ok {
		if l := of.lane(); l != nil {
			defer l.close()
			return src, passOver(ctx, of, l, from)
		}
	}
	return readTo(ctx, src, from)
}

// passer is a lane that passes over an item by less than take and skip.
type passer interface{ pass() error }

// passOne passes over the next item. The error is io.EOF, a *BadInputError where the item cannot be
// read, or final.
func passOne(l lane) error {
	if p, ok := l.(passer); ok {
		return p.pass()
	}
	err := l.take()
	if err == io.EOF {
		return err
	}
	if skipped := l.skip(err); skipped != nil {
		return skipped
	}
	return err
}

// passOver passes over the items before a position without decoding them; -1: all of them.
func passOver(ctx context.Context, of laned, l lane, before int64) error {
	for before < 0 || of.positions() < before {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := passOne(l)
		if err == io.EOF {
			return nil
		}
		of.place()
		var bad *BadInputError
		if err != nil && !errors.As(err, &bad) {
			return err
		}
	}
	return nil
}

// lenient is a Source that can be told to pass over bad inputs for a while.
type lenient interface{ excuse() (asBefore func()) }

// excuse has bad inputs passed over without a word until asBefore is called.
func (s *skips) excuse() (asBefore func()) {
	old := *s
	s.allowed, s.quiet = true, true
	return func() { s.allowed, s.quiet = old.allowed, old.quiet }
}

// readTo reads src up to a position.
func readTo(ctx context.Context, src Source, from int64) (Source, error) {
	if s, ok := src.(lenient); ok {
		defer s.excuse()()
	}
	b := &begun{Source: src}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if b.err = src.Next(&b.item); b.err == nil && b.item.Position < from {
			continue
		}
		if b.err != nil && b.err != io.EOF {
			return nil, b.err
		}
		b.held = true
		return b, nil
	}
}

// begun is a Source of which an item was read already.
type begun struct {
	Source
	item Item
	err  error
	held bool
}

// Next implements Source.
func (b *begun) Next(it *Item) error {
	if !b.held {
		return b.Source.Next(it)
	}
	b.held = false
	*it = b.item
	b.item = Item{}
	return b.err
}

// Rewind implements Source.
func (b *begun) Rewind() error {
	b.held = false
	return b.Source.Rewind()
}

// Skipped returns the number of bad inputs that were left out so far.
func (b *begun) Skipped() int64 { return skippedBy(b.Source) }
