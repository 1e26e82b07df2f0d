package read

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"entropipe/schemas/codec/parquetfile"
	"entropipe/sinks"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// FrameQuery selects frames. A field that is nil or empty matches all frames.
type FrameQuery struct {
	Topic             string
	Dataset, Sequence string
	Partition, Index  *int32
	Offset, FrameID   *int64
}

// String lists the fields that are set, as "topic a, offset 5".
func (q FrameQuery) String() string {
	var said []string
	add := func(name string, value any) { said = append(said, fmt.Sprintf("%s %v", name, value)) }
	for _, text := range []struct{ name, value string }{{"topic", q.Topic}, {"dataset", q.Dataset},
		{"sequence", q.Sequence}} {
		if text.value != "" {
			add(text.name, text.value)
		}
	}
	if q.Partition != nil {
		add("partition", *q.Partition)
	}
	if q.Offset != nil {
		add("offset", *q.Offset)
	}
	if q.Index != nil {
		add("index", *q.Index)
	}
	if q.FrameID != nil {
		add("frame_id", *q.FrameID)
	}
	return strings.Join(said, ", ")
}

// NoFrameError is the error for a query that matches no frame of an output.
type NoFrameError struct {
	Query  FrameQuery
	Within bool     // a commit covers the query's offset: its record has no such frame
	There  []string // descriptions of what the output has, one for each partition
}

func (e *NoFrameError) Error() string {
	text := "the output has no frame"
	if asked := e.Query.String(); asked != "" {
		text += " of " + asked
	}
	if e.Within {
		text += " (a commit covers that offset: table rejects may say why)"
	}
	if len(e.There) == 0 {
		return text + ": it is empty"
	}
	const most = 8
	more := ""
	if n := len(e.There) - most; n > 0 {
		more = fmt.Sprintf("; and %d more", n)
	}
	return text + "; there are " + strings.Join(e.There[:min(most, len(e.There))], "; ") + more
}

// foundFrame is the place of a frame: its commit, and the key of its row in frames.
type foundFrame struct {
	manifest *record.Manifest
	file     *record.File // file of table frames
	offset   int64
	index    int32
}

// finder searches an output for a frame and gathers the parts of a NoFrameError.
type finder struct {
	store     sinks.Reader
	query     FrameQuery
	within    bool
	there     []string
	sequences map[string]bool // up to 1000 sequences met

	// visit, unless nil, takes the frames of each commit that match, and find goes on.
	visit func(frames []foundFrame) error
}

// find returns the first frame that matches the query, by topic and partition, then
// offset and index.
func (s *finder) find(ctx context.Context) (*foundFrame, error) {
	topics, err := listTopics(ctx, s.store, func(string) {})
	if err != nil {
		return nil, err
	}
	for _, t := range topics {
		for _, p := range t.partitions {
			found, err := s.partition(ctx, p.manifests)
			if found != nil || err != nil {
				return found, err
			}
		}
	}
	if s.query.Sequence != "" && len(s.sequences) > 0 {
		names := slices.Sorted(maps.Keys(s.sequences))
		s.there = append(s.there, "sequences such as "+strings.Join(names[:min(8, len(names))], ", "))
	}
	return nil, &NoFrameError{Query: s.query, Within: s.within, There: s.there}
}

func (s *finder) partition(ctx context.Context, names []string) (*foundFrame, error) {
	var topic string
	var id int32
	var first, end, frames, sequences int64
	datasets := map[string]bool{}
	for i, name := range names {
		m, err := sinks.ReadManifest(ctx, s.store, name)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			topic, id, first = m.Topic, m.Partition, m.Start
		}
		end = m.End
		frames, sequences = frames+m.Counts.Frames, sequences+m.Counts.Sequences
		found, err := s.manifest(ctx, m, datasets)
		if found != nil || err != nil {
			return found, err
		}
	}
	switch {
	case frames == 0 && sequences > 0:
		s.there = append(s.there, fmt.Sprintf("%s/%d: %d sequences of tokens of offsets %d to %d, and none of points",
			topic, id, sequences, first, end-1))
	case frames > 0:
		text := fmt.Sprintf("%s/%d: %d frames of offsets %d to %d", topic, id, frames, first, end-1)
		if len(datasets) > 0 {
			text += " of dataset " + strings.Join(slices.Sorted(maps.Keys(datasets)), ", ")
		}
		s.there = append(s.there, text)
	}
	return nil, nil
}

// manifest searches the frames of one commit, which has a file of frames in each folder.
func (s *finder) manifest(ctx context.Context, m *record.Manifest, datasets map[string]bool) (best *foundFrame,
	err error) {
	q := &s.query
	if q.Topic != "" && m.Topic != q.Topic || q.Partition != nil && m.Partition != *q.Partition ||
		q.Offset != nil && (*q.Offset < m.Start || *q.Offset >= m.End) {
		return nil, nil
	}
	s.within = s.within || q.Offset != nil
	if s.visit != nil {
		return nil, s.visitManifest(ctx, m, datasets)
	}
	err = s.eachFile(ctx, m, datasets, func(f *record.File, file *parquetfile.File) error {
		key, ok, err := s.file(file)
		if ok && (best == nil || compareKeys(key, rowKey{best.offset, best.index}) < 0) {
			best = &foundFrame{manifest: m, file: f, offset: key.offset, index: key.index}
		}
		return err
	})
	return best, err
}

// eachFile calls use with the files of table frames of a commit that may hold frames of
// the query, and adds their data sets to datasets.
func (s *finder) eachFile(ctx context.Context, m *record.Manifest, datasets map[string]bool,
	use func(f *record.File, file *parquetfile.File) error) error {
	for i := range m.Files {
		f := &m.Files[i]
		if f.Table != tables.Frames {
			continue
		}
		err := withParquet(ctx, s.store, f, func(file *parquetfile.File) error {
			dataset := footerOf(file, "entropipe.dataset")
			datasets[dataset] = true
			if s.query.Dataset != "" && dataset != s.query.Dataset || !s.mayHold(file) {
				return nil
			}
			return use(f, file)
		})
		if away := (*RetiredError)(nil); errors.As(orRetired(ctx, s.store, m, err), &away) {
			s.leave(away)
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// leave notes a commit whose rows another output has, once for each such output.
func (s *finder) leave(away *RetiredError) {
	text := "retired commits, whose frames output " + away.CoveredBy + " has"
	if !slices.Contains(s.there, text) {
		s.there = append(s.there, text)
	}
}

// mayHold reports whether a file may have frames of the query's sequence: the file of a
// folder of one sequence names it in its footer.
func (s *finder) mayHold(file *parquetfile.File) bool {
	if _, column := file.Schema().Lookup("sequence"); column || s.query.Sequence == "" {
		return true
	}
	sequence := footerOf(file, "entropipe.sequence")
	s.saw(sequence)
	return sequence == s.query.Sequence
}

// file returns the key of the first row of a file of table frames that matches.
func (s *finder) file(file *parquetfile.File) (key rowKey, ok bool, err error) {
	for g := range file.RowGroups() {
		if s.query.Offset != nil && !groupMayHold(file, g, *s.query.Offset) {
			continue
		}
		key, ok, err = s.group(file, g)
		if ok || err != nil {
			return key, ok, err
		}
	}
	return key, false, nil
}

// group returns the key of the first row of a row group that matches.
func (s *finder) group(file *parquetfile.File, g int) (key rowKey, ok bool, err error) {
	keys, wrong, err := s.match(file, g)
	if err != nil {
		return key, false, err
	}
	if i := slices.Index(wrong, false); i >= 0 {
		return keys[i], true, nil
	}
	return key, false, nil
}

// match reads the keys of a row group, column by column, and tells which rows do not
// match.
func (s *finder) match(file *parquetfile.File, g int) (keys []rowKey, wrong []bool, err error) {
	q := &s.query
	read := func(column string, put func(i int, v parquet.Value)) {
		if err == nil {
			err = readColumn(file, g, column, put)
		}
	}
	// Both grow as values are read: the footer's number of rows is a claim.
	read("offset", func(_ int, v parquet.Value) {
		keys = append(keys, rowKey{offset: v.Int64()})
		wrong = append(wrong, q.Offset != nil && v.Int64() != *q.Offset)
	})
	read("index", func(i int, v parquet.Value) {
		keys[i].index = v.Int32()
		wrong[i] = wrong[i] || q.Index != nil && v.Int32() != *q.Index
	})
	if q.FrameID != nil {
		read("frame_id", func(i int, v parquet.Value) { wrong[i] = wrong[i] || v.Int64() != *q.FrameID })
	}
	if _, column := file.Schema().Lookup("sequence"); column && q.Sequence != "" {
		read("sequence", func(i int, v parquet.Value) {
			same := string(v.ByteArray()) == q.Sequence
			if !same && len(s.sequences) < 1000 && !s.sequences[string(v.ByteArray())] {
				s.saw(string(v.ByteArray()))
			}
			wrong[i] = wrong[i] || !same
		})
	}
	return keys, wrong, err
}

func (s *finder) saw(sequence string) {
	if s.sequences == nil {
		s.sequences = map[string]bool{}
	}
	s.sequences[sequence] = true
}

// groupMayHold tells from the footer's statistics whether a row group may have rows
// with an offset.
func groupMayHold(f *parquetfile.File, group int, offset int64) bool {
	leaf, ok := f.Schema().Lookup("offset")
	if !ok {
		return true
	}
	s := f.Metadata().RowGroups[group].Columns[leaf.ColumnIndex].MetaData.Statistics
	if len(s.MinValue) != 8 || len(s.MaxValue) != 8 {
		return true
	}
	return parquet.Int64.Value(s.MinValue).Int64() <= offset && offset <= parquet.Int64.Value(s.MaxValue).Int64()
}

// withParquet opens a file of a commit, published or staged, and calls f with it. It
// closes the file when f returns.
func withParquet(ctx context.Context, store sinks.Reader, m *record.File, f func(*parquetfile.File) error) error {
	o, err := openFile(ctx, store, m)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Path, err)
	}
	defer o.Close()
	file, err := parquetfile.Open(o, o.Size())
	if err == nil {
		err = parquetfile.Guard(func() error { return f(file) })
	}
	if err != nil {
		return fmt.Errorf("%s: %w", m.Path, err)
	}
	return nil
}

// openFile opens a file of a commit, published or staged.
func openFile(ctx context.Context, store sinks.Reader, m *record.File) (sinks.Object, error) {
	o, err := store.Open(ctx, m.Path)
	for _, other := range []string{m.Staged, m.Path} { // it may be published between the calls
		if errors.Is(err, sinks.ErrNotFound) {
			o, err = store.Open(ctx, other)
		}
	}
	return o, err
}
