package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"entropipe/ingest/filesys"
	"entropipe/schemas/codec"
	"entropipe/schemas/codec/parquetfile"
)

// tableGroups makes an item of each group of rows with equal keys, or of each row group.
type tableGroups struct {
	config  *Table
	folders map[string]string
	dir     string
	own     bool // table points of an output
	rows    bool // a row group is a group
	files   pointFiles
	scan    groupScanner
	group   pointGroup
	read    pointReader
	drop    bool // the next group is the rest of one before
	known   *groupIndex
}

func newTableGroups(t *Table, by, files []string, own bool) *tableGroups {
	dir := filesys.Dir(files[0])
	g := &tableGroups{config: t, folders: folderValues(dir), dir: dir, own: own, files: pointFiles{paths: files}}
	g.rows = len(by) == 1 && by[0] == ByRowGroup
	g.scan = groupScanner{keyScanner: keyScanner{files: &g.files, folders: g.folders}, most: t.MaxFrameBytes/16 + 1}
	if !g.rows {
		g.scan.names = by
	}
	skip := map[string]bool{}
	for _, name := range g.scan.names {
		skip[name] = true
	}
	g.read = pointReader{config: t, table: groupTable{files: &g.files}, skip: skip}
	g.begin(groupMark{}, 0)
	return g
}

// begin goes to a mark. Order is checked from the first row on only.
func (g *tableGroups) begin(m groupMark, want int64) {
	g.read.table.close()
	g.scan.restart(m.file, m.group)
	g.drop, g.scan.order = m.continues, nil
	if want == 0 && !g.rows {
		g.scan.order = newGroupOrder()
	}
}

// advance finds the next group.
func (g *tableGroups) advance() error {
	if !g.rows {
		return g.scan.next(&g.group)
	}
	s := &g.scan
	for {
		if s.file == len(g.files.paths) {
			return io.EOF
		}
		if s.table == nil {
			if err := s.open(); err != nil {
				s.nextFile()
				return err
			}
		}
		if s.group < s.table.file.RowGroups() {
			break
		}
		s.nextFile()
	}
	n := s.table.file.GroupRows(s.group)
	g.group.spans = append(g.group.spans[:0], rowSpan{s.file, s.group, 0, n})
	g.group.rows = n
	s.group++
	return nil
}

// next implements grouping.
func (g *tableGroups) next(it *Item, position int64) error {
	if g.drop {
		g.drop = false
		if err := g.advance(); err != nil {
			return err
		}
	}
	if err := g.advance(); err != nil || it == nil {
		return err
	}
	at := g.group.spans[0].file
	err := g.item(it, position)
	var bad *BadInputError
	switch {
	case err == nil || errors.As(err, &bad):
		return err
	case !g.rows:
		err = fmt.Errorf("%s: %w", keyNames(g.scan.names, g.group.keys), err)
	default:
		err = fmt.Errorf("row group %d: %w", g.group.spans[0].group, err)
	}
	return g.files.bad(at, err)
}

// item reads the points of the group.
func (g *tableGroups) item(it *Item, position int64) error {
	if most := g.scan.most; g.group.rows > most {
		return tooManyPoints(g.group.rows, 16, g.config.MaxFrameBytes)
	}
	if err := g.read.points(g.group.spans, -1); err != nil {
		return err
	}
	*it = Item{Dataset: g.config.Format, Sequence: g.sequence(), Number: position, Cloud: *g.read.cloud}
	if !g.own {
		it.Ignored = g.read.plan.ignored
	}
	return g.name(it)
}

// name gives the item what columns and folders say about its group.
func (g *tableGroups) name(it *Item) error {
	names := [...]*string{&it.Dataset, &it.Sequence, &it.Sensor}
	for i, name := range [...]string{"dataset", "sequence", "sensor"} {
		k, _, err := g.about(name)
		if err != nil {
			return err
		}
		if k.kind != nullKey {
			*names[i] = k.String()
			it.named = it.named || name == "sequence"
		}
	}
	k, _, err := g.about("frame_id")
	if err != nil {
		return err
	}
	if k.kind == nullKey && len(g.scan.names) == 1 {
		k = g.group.keys[0]
	}
	if k.kind == integerKey {
		it.Number = k.number
	}
	for _, name := range [...]string{"ts_ns", "ts", "timestamp"} {
		k, unit, err := g.about(name)
		if err != nil {
			return err
		}
		if name == "ts_ns" {
			unit = 1
		}
		if k.kind != integerKey || unit == 0 {
			continue
		}
		if k.number > math.MaxInt64/unit || k.number < math.MinInt64/unit {
			return fmt.Errorf("column %s: %d lies beyond the year 2262", name, k.number)
		}
		it.TimeNs, it.Clock = k.number*unit, UTC
		break
	}
	return nil
}

// about returns the value of a column in the first row of the group, or of a folder; null if there
// is none. unit is the nanoseconds of a tick of a timestamp.
func (g *tableGroups) about(name string) (k keyValue, unit int64, err error) {
	if len(g.group.spans) == 0 || g.group.rows == 0 {
		return k, 0, nil
	}
	first := g.group.spans[0]
	o, err := g.read.table.columnsOf(first.file)
	if err != nil {
		return k, 0, err
	}
	at, ok := o.table.names[name]
	switch {
	case !ok || o.table.leaves[at].index < 0 || !isKey(o.table.leaves[at].kind):
		if value, ok := g.folders[name]; ok {
			k = keyValue{kind: textKey, text: value}
		}
		return k, 0, nil
	case slices.Contains(g.scan.names, name):
		return g.group.keys[slices.Index(g.scan.names, name)], o.table.leaves[at].unit, nil
	}
	r := &o.readers[at]
	c := keyColumn{name: name, reader: leafReader{leaf: r.leaf}}
	err = parquetfile.Guard(func() error {
		v, err := r.at(first.group, first.row)
		if err == nil {
			k = c.first(&v)
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("column %s: %w", name, err)
	}
	return k, r.leaf.unit, err
}

// seek implements grouping.
func (g *tableGroups) seek(ctx context.Context, want int64) (int64, error) {
	if want == 0 {
		g.begin(groupMark{}, 0)
		return 0, nil
	}
	index, err := g.count(ctx)
	if err != nil {
		return 0, err
	}
	at := 0
	for i, m := range index.marks {
		if m.position <= want {
			at = i
		}
	}
	if len(index.marks) == 0 || want >= index.items {
		g.begin(groupMark{file: len(g.files.paths)}, want)
		return index.items, nil
	}
	g.begin(index.marks[at], want)
	return index.marks[at].position, nil
}

// count implements grouping: it reads columns of keys alone.
func (g *tableGroups) count(ctx context.Context) (*groupIndex, error) {
	if g.known != nil {
		return g.known, nil
	}
	name := fmt.Sprint(g.rows, g.scan.names)
	if g.known = knownIndex(name, g.files.paths); g.known != nil {
		return g.known, nil
	}
	by := g.scan.names
	if g.rows {
		by = []string{ByRowGroup}
	}
	c := newTableGroups(g.config, by, g.files.paths, g.own)
	defer c.close()
	index := &groupIndex{}
	var err error
	if c.rows {
		err = c.countRowGroups(ctx, index)
	} else {
		err = c.countGroups(ctx, index)
	}
	if err != nil {
		return nil, err
	}
	index.frames = index.items
	index.files = filesOf(index, g.files.paths)
	g.known = index
	keepIndex(name, g.files.paths, index)
	return index, nil
}

// countRowGroups reads the footers.
func (g *tableGroups) countRowGroups(ctx context.Context, index *groupIndex) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		file, group := g.scan.file, g.scan.group
		err := g.advance()
		if err == io.EOF {
			return nil
		}
		var bad *BadInputError
		if err != nil && (!errors.As(err, &bad) || failing(bad.Err)) {
			return err
		}
		if err == nil {
			file, group = g.group.spans[0].file, g.group.spans[0].group
		}
		index.marks = append(index.marks, groupMark{file: file, group: group, position: index.items})
		index.items++
	}
}

// countGroups notes how many groups begin before each row group.
func (g *tableGroups) countGroups(ctx context.Context, index *groupIndex) error {
	s := &g.scan
	file, group, began := -1, -1, false
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		span, changed, err := s.keyScanner.next()
		var bad *BadInputError
		switch {
		case err == io.EOF:
			return nil
		case errors.As(err, &bad) && !failing(bad.Err):
			// The group that the file has begun is this bad item, or it is one of its own.
			if !began {
				index.marks = append(index.marks, groupMark{file: s.file, position: index.items})
				index.items++
			}
			began = false
			fresh := s.fresh
			s.nextFile()
			s.fresh = fresh
			continue
		case err != nil:
			return err
		}
		if span.file != file || span.group != group {
			file, group = span.file, span.group
			index.marks = append(index.marks, groupMark{file: file, group: group, position: index.items,
				continues: !changed})
		}
		if !changed {
			continue
		}
		s.keysInto(&g.group)
		if err := s.order.add(s.names, g.group.keys); err != nil {
			return s.outOfOrder(err)
		}
		index.items++
		began = true
	}
}

// keysInto sets the keys of g to those of the rows that were read last.
func (s *groupScanner) keysInto(g *pointGroup) { g.keys = s.keysOf(g.keys) }

// sequence implements grouping.
func (g *tableGroups) sequence() string {
	if topic := g.folders["topic"]; g.own && topic != "" {
		return strings.TrimPrefix(topic, "x-")
	}
	return filesys.Base(absolute(g.dir))
}

// tell implements grouping.
func (g *tableGroups) tell() {}

func (g *tableGroups) close() {
	g.read.table.close()
	g.scan.close()
}

// filesOf returns a function for the files of an item: those of the row groups from the one where it
// begins to the one where the next item does.
func filesOf(index *groupIndex, paths []string) func(int64) []string {
	var files []string
	return func(position int64) []string {
		files = files[:0]
		marks := index.marks
		i, _ := slices.BinarySearchFunc(marks, position, func(m groupMark, at int64) int {
			if m.position <= at {
				return -1
			}
			return 1
		})
		if position < 0 || position >= index.items || i == 0 {
			return files
		}
		for from, m := range marks[i-1:] {
			if from > 0 && (m.position > position+1 || m.position == position+1 && !m.continues) {
				break
			}
			if path := paths[m.file]; len(files) == 0 || files[len(files)-1] != path {
				files = append(files, path)
			}
		}
		return files
	}
}

// pointReader reads the points of groups.
type pointReader struct {
	config *Table
	table  groupTable
	skip   map[string]bool
	plan   tablePlan
	of     int // file that the plan is for, plus 1
	places int // column point_idx, plus 1
	own    codec.Cloud
	idx    []int64
	placer placer
	cloud  *codec.Points // the one read last
}

// points reads the points in spans. n is the number of positions of column point_idx; -1: the last
// one ends the cloud.
func (r *pointReader) points(spans []rowSpan, n int64) error {
	if err := r.begin(spans); err != nil {
		return err
	}
	limit := r.config.MaxFrameBytes
	if err := r.plan.fill(&r.own, &r.table, limit); err != nil {
		return r.where(err)
	}
	r.cloud = &r.own.Points
	if r.places == 0 || r.table.rows == 0 {
		return nil
	}
	var err error
	if r.idx, err = r.table.Int64s(r.places-1, r.idx); err != nil {
		return r.where(err)
	}
	if r.table.absent() {
		return nil
	}
	r.cloud, err = r.placer.place(&r.own.Points, r.idx, n, limit)
	return err
}

// begin goes to spans, and plans what to read where the file is another one.
func (r *pointReader) begin(spans []rowSpan) error {
	if err := r.table.set(spans, r.skip); err != nil {
		return err
	}
	several := spans[0].file != spans[len(spans)-1].file
	if r.of == spans[0].file+1 && !several {
		return nil
	}
	var err error
	if r.plan, err = planTable(slices.Clone(r.table.columns), r.config.Columns); err != nil {
		return err
	}
	r.of, r.places = spans[0].file+1, 0
	if several {
		r.of = 0
	}
	if i := findColumn(r.table.columns, "point_idx"); i >= 0 && r.table.columns[i].Integer {
		r.places = i + 1
	}
	return nil
}

// where names the file of an error of the table, if it is not that of the first rows.
func (r *pointReader) where(err error) error {
	var bad *BadInputError
	if errors.As(err, &bad) || len(r.table.spans) == 0 || r.table.failed == r.table.spans[0].file {
		return err
	}
	return r.table.files.bad(r.table.failed, err)
}
