package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/algos/geom"
	"entropipe/schemas/codec"
)

// outputFrames makes the items that an output was made of from its tables frames and points: an item
// is a record, with the names, times and poses of its frames, and every point at its position. Frames
// without points are there, too.
type outputFrames struct {
	config  *Table
	dataset string
	folder  string // sequence, where table frames has no such column
	pairs   []framePair
	log     *slog.Logger

	at     int // the pair that is read
	table  *frameTable
	ahead  *frameRow // read, and of the next item
	scan   groupScanner
	files  pointFiles
	group  pointGroup
	found  bool // group was read, and not used
	none   bool // there is no further group
	behind bool // groups before the next item are not read
	read   pointReader

	frames   []frameRow // an item's
	spans    []rowSpan
	drawings []Drawing
	x, y     []float64 // as the table has them
	allX     []float64 // with points that were dropped
	allY     []float64
	without  int64 // frames whose points are in no table
	known    *groupIndex
}

// framePair are the files of one commit in tables frames and points.
type framePair struct {
	frames string
	points string // empty: there is none
}

// mostFrames bounds the frames of an item: records have some hundreds.
const mostFrames = 1 << 20

// newOutputFrames returns the items of the files of table points, which lie in one folder. If these
// are all that are there, files of frames alone count, too.
func newOutputFrames(t *Table, names map[string]string, frames string, points []string) *outputFrames {
	o := &outputFrames{config: t, dataset: names["dataset"], folder: names["sequence"], log: t.Log}
	dir := filepath.Dir(points[0])
	if folder, ok := folderValues(dir)["dataset"]; ok && o.dataset == "" {
		o.dataset = strings.TrimPrefix(folder, "x-")
	}
	if o.dataset == "" {
		o.dataset = t.Format
	}
	given := map[string]bool{}
	for _, path := range points {
		name := filepath.Base(path)
		given[name] = true
		o.pairs = append(o.pairs, framePair{filepath.Join(frames, name), path})
	}
	if whole(dir, given) {
		for _, name := range parquetNames(frames) {
			if !given[name] {
				o.pairs = append(o.pairs, framePair{frames: filepath.Join(frames, name)})
			}
		}
	}
	slices.SortFunc(o.pairs, func(a, b framePair) int { return naturally(a.frames, b.frames) })
	return o
}

// parquetNames returns the names of the Parquet files of a folder.
func parquetNames(dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if name := e.Name(); !e.IsDir() && !strings.HasPrefix(name, ".") &&
			strings.EqualFold(filepath.Ext(name), ".parquet") {
			names = append(names, name)
		}
	}
	return names
}

// whole reports whether names are all of a folder.
func whole(dir string, names map[string]bool) bool {
	for _, name := range parquetNames(dir) {
		if !names[name] {
			return false
		}
	}
	return true
}

// open opens a pair. false: none of its frames has its points in a table.
func (o *outputFrames) open() (ok bool, err error) {
	p := o.pairs[o.at]
	if p.points == "" {
		n, err := countPoints(p.frames)
		if err != nil || n > 0 {
			o.without += n
			return false, err
		}
	}
	if o.table, err = openFrames(p.frames); err != nil {
		return false, err
	}
	o.files = pointFiles{}
	if p.points != "" {
		o.files.paths = []string{p.points}
	}
	o.scan = groupScanner{keyScanner: keyScanner{files: &o.files, names: outputKeys},
		most: o.config.MaxFrameBytes/16 + 1}
	o.scan.restart(0, 0)
	o.read.close()
	o.read = pointReader{config: o.config, table: groupTable{files: &o.files}, own: o.read.own, idx: o.read.idx,
		placer: o.read.placer}
	o.found, o.none = false, false
	return true, nil
}

func (r *pointReader) close() { r.table.close() }

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

// leave ends the reading of a pair.
func (o *outputFrames) leave() {
	o.read.close()
	o.scan.close()
	if o.table != nil {
		o.table.close()
	}
	o.table, o.ahead = nil, nil
}

// record reads the frames of the next item.
func (o *outputFrames) record() error {
	o.frames = o.frames[:0]
	for {
		if o.at == len(o.pairs) {
			return io.EOF
		}
		if o.table == nil {
			ok, err := o.open()
			if err != nil || !ok {
				o.leave()
				o.at++
			}
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
		}
		if o.ahead != nil {
			o.frames, o.ahead = append(o.frames, *o.ahead), nil
		}
		for {
			var f frameRow
			ok, err := o.table.next(&f)
			if err != nil {
				o.leave()
				o.at++
				return err
			}
			if !ok {
				break
			}
			if n := len(o.frames); n > 0 && !follows(&o.frames[n-1], &f) || n == mostFrames {
				o.ahead = &f
				return nil
			}
			o.frames = append(o.frames, f)
		}
		if len(o.frames) > 0 {
			return nil // the pair is left when nothing is ahead
		}
		o.leave()
		o.at++
	}
}

// follows reports whether b stands behind a in the same message. Only drawings share a message, and
// neighbours of equal id would be one drawing.
func follows(a, b *frameRow) bool {
	return a.drawing && b.drawing && a.partition == b.partition && a.offset == b.offset && b.index == a.index+1 &&
		b.number == a.number+1 && a.sequence == b.sequence && a.sensor == b.sensor && a.drawingID != b.drawingID
}

// next implements grouping.
func (o *outputFrames) next(it *Item, _ int64) error {
	if err := o.record(); err != nil {
		return err
	}
	if it == nil {
		o.behind = true
		return nil
	}
	path := o.pairs[o.at].points
	if path == "" {
		path = o.pairs[o.at].frames
	}
	err := o.locate()
	if err == nil {
		err = o.fill(it)
	}
	var bad *BadInputError
	if err == nil || errors.As(err, &bad) {
		return err
	}
	f := &o.frames[0]
	return &BadInputError{File: path, Err: err, Detail: fmt.Sprintf("frame %d (partition %d, offset %d): %v", f.number,
		f.partition, f.offset, err)}
}

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

// sequence implements grouping.
func (o *outputFrames) sequence() string { return "" }

// tell implements grouping.
func (o *outputFrames) tell() {
	if o.without > 0 && o.log != nil {
		o.log.Warn("frames whose points are not in table points are left out", "frames", o.without)
	}
}

func (o *outputFrames) close() { o.leave() }
