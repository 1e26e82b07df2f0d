package read

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go"

	"entropipe/schemas"
	"entropipe/schemas/codec/parquetfile"
	"entropipe/sinks"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// ReadFrames calls use with every frame that matches query q: by topic and partition,
// commit by commit, then by offset and index. It reads the tables that ReadFrame reads,
// and says the same of absent ones. The result is use's to keep. An error of use ends it,
// and is returned. *NoFrameError: there is no such frame.
//
// Cost: every table file of a commit with such a frame is opened once, and its row groups
// that may have the frames are read. Memory: one frame, the keys of one row group of each
// table, and those of all frames of one commit.
func ReadFrames(ctx context.Context, store sinks.Reader, q FrameQuery,
	use func(r *schemas.Result, absent []string) error, others ...string) error {
	if _, err := Identify(ctx, store); err != nil {
		return err
	}
	any := false
	s := &finder{store: store, query: q}
	s.visit = func(frames []foundFrame) error {
		open := openTables{ctx: ctx, store: store}
		defer open.close()
		for i := range frames {
			any = true
			if err := ctx.Err(); err != nil {
				return err
			}
			r, absent, err := open.frame(&frames[i], others)
			if err != nil {
				return err
			}
			if err := use(r, absent); err != nil {
				return err
			}
		}
		return nil
	}
	_, err := s.find(ctx)
	if none := (*NoFrameError)(nil); any && errors.As(err, &none) {
		return nil // find goes on after each frame, and so finds none in the end
	}
	return err
}

// visitManifest calls visit with the frames of one commit that match, in the order of
// their keys.
func (s *finder) visitManifest(ctx context.Context, m *record.Manifest, datasets map[string]bool) error {
	var found []foundFrame
	err := s.eachFile(ctx, m, datasets, func(f *record.File, file *parquetfile.File) error {
		for g := range file.RowGroups() {
			if s.query.Offset != nil && !groupMayHold(file, g, *s.query.Offset) {
				continue
			}
			keys, wrong, err := s.match(file, g)
			if err != nil {
				return err
			}
			for i, key := range keys {
				if !wrong[i] {
					found = append(found, foundFrame{manifest: m, file: f, offset: key.offset, index: key.index})
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b foundFrame) int {
		return compareKeys(rowKey{a.offset, a.index}, rowKey{b.offset, b.index})
	})
	return s.visit(found)
}

// openTables are the files of one commit, which stay open between frames.
type openTables struct {
	ctx   context.Context
	store sinks.Reader
	files map[string]*openTable
}

// openTable is a file with the keys of one of its row groups.
type openTable struct {
	object sinks.Object
	file   *parquetfile.File
	group  int
	keys   []rowKey
	next   int // row behind the frame that was read last
}

func (o *openTables) close() {
	for _, t := range o.files {
		t.object.Close()
	}
}

// frame reads a frame.
func (o *openTables) frame(found *foundFrame, others []string) (r *schemas.Result, absent []string, err error) {
	r = &schemas.Result{FrameKey: schemas.FrameKey{Topic: found.manifest.Topic, Partition: found.manifest.Partition,
		Offset: found.offset, Index: found.index}}
	for _, name := range append([]string{tables.Frames}, others...) {
		fill := tableReaders[name]
		if fill == nil {
			return nil, nil, fmt.Errorf("frames cannot be read from a table %q", name)
		}
		f := found.fileOf(name)
		if f == nil {
			absent = append(absent, name)
			continue
		}
		t, err := o.open(f)
		if err == nil {
			err = parquetfile.Guard(func() error { return t.read(r, fill) })
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	return r, absent, nil
}

func (o *openTables) open(f *record.File) (*openTable, error) {
	if t := o.files[f.Path]; t != nil {
		return t, nil
	}
	object, err := openFile(o.ctx, o.store, f)
	if err != nil {
		return nil, err
	}
	file, err := parquetfile.Open(object, object.Size())
	if err != nil {
		return nil, errors.Join(err, object.Close())
	}
	if o.files == nil {
		o.files = map[string]*openTable{}
	}
	t := &openTable{object: object, file: file, group: -1}
	o.files[f.Path] = t
	return t, nil
}

// read calls fill with the rows of r's frame, if there are any. The rows of a frame are
// adjacent and in one row group; frames follow one another, so the search begins behind
// the last one.
func (t *openTable) read(r *schemas.Result, fill func(*frameRows, *schemas.Result)) error {
	key := rowKey{r.Offset, r.Index}
	groups := t.file.RowGroups()
	first := max(t.group, 0)
	for i := range groups {
		g := (first + i) % groups
		if !groupMayHold(t.file, g, key.offset) {
			continue
		}
		if err := t.load(g); err != nil {
			return err
		}
		from := slices.Index(t.keys[t.next:], key) + t.next
		if from < t.next {
			from = slices.Index(t.keys[:t.next], key)
		}
		if from < 0 {
			continue
		}
		to := from
		for to < len(t.keys) && t.keys[to] == key {
			to++
		}
		t.next = to
		rows := frameRows{file: t.file, group: g, from: int64(from), to: int64(to)}
		fill(&rows, r)
		return rows.err
	}
	return nil
}

// load reads the keys of a row group.
func (t *openTable) load(g int) error {
	if t.group == g {
		return nil
	}
	t.group, t.keys, t.next = -1, t.keys[:0], 0
	if err := readColumn(t.file, g, "offset", func(_ int, v parquet.Value) {
		t.keys = append(t.keys, rowKey{offset: v.Int64()})
	}); err != nil {
		return err
	}
	if err := readColumn(t.file, g, "index", func(i int, v parquet.Value) {
		if i < len(t.keys) {
			t.keys[i].index = v.Int32()
		}
	}); err != nil {
		return err
	}
	t.group = g
	return nil
}
