package replay

import (
	"context"
	"errors"
	"io"
	"slices"
)

// countPoints returns the number of frames of a file that have points.
func countPoints(path string) (n int64, err error) {
	t, err := openFrames(path)
	if err != nil {
		return 0, err
	}
	defer t.close()
	for {
		var f frameRow
		if ok, err := t.next(&f); err != nil || !ok {
			return n, err
		}
		if f.rows() > 0 {
			n++
		}
	}
}

// seek implements grouping.
func (o *outputFrames) seek(ctx context.Context, want int64) (int64, error) {
	o.leave()
	o.at, o.behind = 0, false
	if want == 0 {
		return 0, nil
	}
	index, err := o.count(ctx)
	if err != nil {
		return 0, err
	}
	if want >= index.items {
		o.at = len(o.pairs)
		return index.items, nil
	}
	position := int64(0)
	for _, m := range index.marks {
		if m.position <= want {
			o.at, position = m.file, m.position
		}
	}
	return position, nil
}

// count implements grouping: it reads table frames alone.
func (o *outputFrames) count(ctx context.Context) (*groupIndex, error) {
	if o.known != nil {
		return o.known, nil
	}
	var paths []string
	for _, p := range o.pairs {
		paths = append(paths, p.frames)
	}
	if o.known = knownIndex("frames", paths); o.known != nil {
		o.known.files = o.filesOf(o.known)
		return o.known, nil
	}
	c := outputFrames{config: o.config, pairs: o.pairs}
	defer c.leave()
	index := &groupIndex{}
	for last := -1; ; index.items++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		before := c.at
		err := c.record()
		if err == io.EOF {
			break
		}
		var bad *BadInputError
		at := c.at
		if errors.As(err, &bad) && !failing(bad.Err) {
			at = c.at - 1 // the damaged pair was left
		} else if err != nil {
			return nil, err
		} else {
			index.frames += int64(len(c.frames))
		}
		if at = max(at, before); at != last {
			index.marks = append(index.marks, groupMark{file: at, position: index.items})
			last = at
		}
	}
	index.files = o.filesOf(index)
	o.known = index
	keepIndex("frames", paths, index)
	return index, nil
}

// filesOf returns a function for the files of an item.
func (o *outputFrames) filesOf(index *groupIndex) func(position int64) []string {
	var files [2]string
	pairs := o.pairs
	return func(position int64) []string {
		if position < 0 || position >= index.items {
			return nil
		}
		i, _ := slices.BinarySearchFunc(index.marks, position, func(m groupMark, at int64) int {
			if m.position <= at {
				return -1
			}
			return 1
		})
		p := pairs[index.marks[i-1].file]
		if p.points == "" {
			return append(files[:0], p.frames)
		}
		return append(files[:0], p.points, p.frames)
	}
}
