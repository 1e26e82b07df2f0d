package replay

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/ingest/filesys"
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
	dir := filesys.Dir(points[0])
	if folder, ok := folderValues(dir)["dataset"]; ok && o.dataset == "" {
		o.dataset = strings.TrimPrefix(folder, "x-")
	}
	if o.dataset == "" {
		o.dataset = t.Format
	}
	given := map[string]bool{}
	for _, path := range points {
		name := filesys.Base(path)
		given[name] = true
		o.pairs = append(o.pairs, framePair{filesys.Join(frames, name), path})
	}
	if whole(dir, given) {
		for _, name := range parquetNames(frames) {
			if !given[name] {
				o.pairs = append(o.pairs, framePair{frames: filesys.Join(frames, name)})
			}
		}
	}
	slices.SortFunc(o.pairs, func(a, b framePair) int { return naturally(a.frames, b.frames) })
	return o
}

// parquetNames returns the names of the Parquet files of a folder.
func parquetNames(dir string) (names []string) {
	entries, err := filesys.ReadDir(dir)
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

// sequence implements grouping.
func (o *outputFrames) sequence() string { return "" }

// tell implements grouping.
func (o *outputFrames) tell() {
	if o.without > 0 && o.log != nil {
		o.log.Warn("frames whose points are not in table points are left out", "frames", o.without)
	}
}

func (o *outputFrames) close() { o.leave() }
