package replay

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"entropipe/algos/geom"
	"entropipe/schemas/codec"
)

// locate finds the rows of the item's frames in table points.
func (o *outputFrames) locate() (first error) {
	o.spans = o.spans[:0]
	for i := range o.frames {
		f := &o.frames[i]
		if f.rows() == 0 {
			continue
		}
		err := o.rowsOf(f)
		if first == nil {
			first = err
		}
		if err != nil {
			continue
		}
		for _, s := range o.group.spans {
			if n := len(o.spans); n > 0 && o.spans[n-1].joins(s) {
				o.spans[n-1].n += s.n
			} else {
				o.spans = append(o.spans, s)
			}
		}
	}
	return first
}

// rowsOf sets group to the rows of a frame.
func (o *outputFrames) rowsOf(f *frameRow) error {
	behind := o.behind
	o.behind = false
	for {
		if !o.found && !o.none {
			err := io.EOF
			if len(o.files.paths) > 0 {
				err = o.scan.next(&o.group)
			}
			if o.found, o.none = err == nil, err == io.EOF; err != nil && err != io.EOF {
				return err
			}
		}
		c := 1
		if o.found {
			c = compareKeys(o.group.keys, []keyValue{{integerKey, f.partition, ""}, {integerKey, f.offset, ""},
				{integerKey, f.index, ""}})
		}
		switch {
		case c > 0:
			return fmt.Errorf("its %d points are not in table points", f.rows())
		case c == 0 && o.group.rows != f.rows():
			o.found = false
			return fmt.Errorf("table points has %d of its %d points: frames of pruned messages are not whole there",
				o.group.rows, f.rows())
		case c == 0:
			o.found = false
			return nil
		case !behind:
			o.found = false
			return fmt.Errorf("table points has rows of %s before it, which is not in table frames",
				keyNames(outputKeys, o.group.keys))
		}
		o.found = false
	}
}

// fill makes the item of its frames.
func (o *outputFrames) fill(it *Item) error {
	f := &o.frames[0]
	*it = Item{Dataset: o.dataset, Sequence: f.sequence, Sensor: f.sensor, Number: f.number,
		TimeNs: f.timeNs, Clock: UTC,
		Pose: f.pose, named: true}
	if it.Sequence == "" {
		it.Sequence = o.folder
	}
	rows := int64(0)
	for i := range o.frames {
		if rows += o.frames[i].points; rows*16 > o.config.MaxFrameBytes {
			return tooManyPoints(rows, 16, o.config.MaxFrameBytes)
		}
	}
	if f.drawing {
		it.Clock = Unordered
		return o.draw(it)
	}
	if len(o.spans) > 0 {
		if err := o.read.points(o.spans, f.points); err != nil {
			return err
		}
		it.Cloud = *o.read.cloud
		return nil
	}
	empty := codec.Points{Cloud32: geom.Cloud[float32]{X: []float32{}, Y: []float32{}}}
	if f.space {
		empty.Cloud32.Z = []float32{}
	}
	p, err := o.read.placer.place(&empty, nil, f.points, o.config.MaxFrameBytes)
	if err == nil {
		it.Cloud = *p
	}
	return err
}

// draw makes the drawings of the item.
func (o *outputFrames) draw(it *Item) error {
	total := 0
	for i := range o.frames {
		total += int(o.frames[i].points)
		if o.frames[i].points == 0 {
			return errors.New("a drawing without a point")
		}
	}
	o.x, o.y = o.x[:0], o.y[:0]
	var idx []int64
	if len(o.spans) > 0 {
		var err error
		if idx, err = o.drawn(); err != nil {
			return err
		}
	}
	x, y := slices.Grow(o.allX[:0], total), slices.Grow(o.allY[:0], total)
	o.drawings = resize(o.drawings, len(o.frames))
	row := 0
	for i := range o.frames {
		f, d := &o.frames[i], &o.drawings[i]
		n := int(f.rows())
		at := idx[row : row+n]
		from := codec.Points{Double: true, Cloud64: geom.Cloud[float64]{X: o.x[row : row+n], Y: o.y[row : row+n]}}
		p, err := o.read.placer.place(&from, at, f.points, o.config.MaxFrameBytes)
		if err != nil {
			return err
		}
		row += n
		begin := len(x)
		x, y = append(x, p.Cloud64.X...), append(y, p.Cloud64.Y...)
		*d = Drawing{ID: f.drawingID, Label: f.label, TimeNs: f.timeNs, X: x[begin:len(x):len(x)],
			Y: y[begin:len(y):len(y)], Ends: []int32{int32(f.points)}}
	}
	o.allX, o.allY = x, y
	it.Drawings = o.drawings
	return nil
}

// drawn reads the coordinates of all drawings of the item, and their point_idx.
func (o *outputFrames) drawn() (idx []int64, err error) {
	r := &o.read
	if err := r.begin(o.spans); err != nil {
		return nil, err
	}
	x, y := r.plan.columnPlan[codec.X], r.plan.columnPlan[codec.Y]
	if r.places == 0 {
		return nil, errors.New("there is no column point_idx")
	}
	if o.x, err = r.table.Float64s(x-1, o.x); err == nil {
		o.y, err = r.table.Float64s(y-1, o.y)
	}
	if err == nil {
		r.idx, err = r.table.Int64s(r.places-1, r.idx)
	}
	if err == nil && r.table.absent() {
		err = errors.New("column point_idx is null")
	}
	return r.idx, r.where(err)
}
