package chaos

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"entropipe/benchmarks/rig"
)

// Place is where a record stands in the log of a topic.
type Place struct {
	Partition int32
	Offset    int64
}

// Sent says what the broker acknowledged at a Place.
type Sent struct {
	Number int64 // frame_id of the record's first frame
	Frames int   // frames in it; 0: the record is to be refused
}

// Expected is the log that an output is judged against. Every offset of Logs
// holds a data record. Acked need not know all of them: the answer of a broker
// that was killed may be lost, and the record stand twice. Those of Further leave no trace:
// they are chunks of messages that stand elsewhere.
type Expected struct {
	Topic   string
	Logs    map[int32]rig.Range
	Acked   map[Place]Sent
	Further map[Place]bool
}

// Verdict counts what a Judge found.
type Verdict struct {
	Records, Frames, Rejects int64
	Files                    int
	Missing, Doubled         int64 // records
	Stray, Wrong, Torn       int64 // records; records; frames
	examples                 []string
}

// OK tells whether the output is what the log demands.
func (v *Verdict) OK() bool {
	return v.Missing == 0 && v.Doubled == 0 && v.Stray == 0 && v.Wrong == 0 && v.Torn == 0
}

// String returns the counts, and a few examples of every fault.
func (v *Verdict) String() string {
	s := fmt.Sprintf("records %d, frames %d, rejects %d, files %d, missing %d, doubled %d, stray %d, wrong %d, torn %d",
		v.Records, v.Frames, v.Rejects, v.Files, v.Missing, v.Doubled, v.Stray, v.Wrong, v.Torn)
	if len(v.examples) > 0 {
		s += "\n  " + strings.Join(v.examples, "\n  ")
	}
	return s
}

func (v *Verdict) fault(count *int64, format string, args ...any) {
	const shown = 5 // examples of each kind of fault
	if *count++; *count <= shown {
		v.examples = append(v.examples, fmt.Sprintf(format, args...))
	}
}

// frameColumns and keyColumns are what the judge reads of the tables.
var (
	keyColumns   = []string{"partition", "offset", "index"}
	frameColumns = append(keyColumns[:3:3], "frame_id", "status_hull2d", "status_maxima2d",
		"status_maxima3d", "n_delaunay2d")
)

// key names a frame, or with index -1 a record.
type key struct {
	Place
	index int32
}

func keyOf(row []parquet.Value) key {
	return key{Place{row[0].Int32(), row[1].Int64()}, row[2].Int32()}
}

// trace is what the tables tell of one frame, or of a record that was refused
// (index -1).
type trace struct {
	frames, rejects          int
	frameID                  int64
	hulls, maxima, triangles int // rows there are
	wantHulls, wantMaxima    int
	wantTriangles            int
}

// judge collects the traces of an output, per record and index.
type judge struct {
	want   Expected
	v      Verdict
	traces map[Place]map[int32]*trace

	last    key    // the key that was asked for last, and its trace: rows of one
	lastHit *trace // frame follow each other, in triangles by the hundred
}

// Judge reads the tables of one topic below out and compares them with the log.
// It needs memory for every frame. The error is about files that cannot be
// read; faults of the content are in the Verdict.
func Judge(out string, want Expected) (*Verdict, error) {
	j := &judge{want: want, traces: map[Place]map[int32]*trace{}}
	err := errors.Join(
		j.read(out, "frames", frameColumns, j.addFrame),
		j.read(out, "rejects", keyColumns, func(row []parquet.Value) { j.at(keyOf(row)).rejects++; j.v.Rejects++ }),
		j.read(out, "hulls", keyColumns, func(row []parquet.Value) { j.at(keyOf(row)).hulls++ }),
		j.read(out, "maxima", keyColumns, func(row []parquet.Value) { j.at(keyOf(row)).maxima++ }),
		j.read(out, "triangles", keyColumns, func(row []parquet.Value) { j.at(keyOf(row)).triangles++ }),
	)
	if err != nil {
		return nil, err
	}
	j.decide()
	return &j.v, nil
}

func (j *judge) at(k key) *trace {
	if j.lastHit != nil && k == j.last {
		return j.lastHit
	}
	if j.traces[k.Place] == nil {
		j.traces[k.Place] = map[int32]*trace{}
	}
	t := j.traces[k.Place][k.index]
	if t == nil {
		t = new(trace)
		j.traces[k.Place][k.index] = t
	}
	j.last, j.lastHit = k, t
	return t
}

func (j *judge) addFrame(row []parquet.Value) {
	j.v.Frames++
	t := j.at(keyOf(row))
	t.frames++
	t.frameID = row[3].Int64()
	if ran(row[4]) {
		t.wantHulls++
	}
	for _, status := range row[5:7] {
		if ran(status) {
			t.wantMaxima++
		}
	}
	if n := row[7]; !n.IsNull() {
		t.wantTriangles += int(n.Int32())
	}
}

// ran tells by its status whether an operator has a row of its own for a frame.
func ran(status parquet.Value) bool {
	return !status.IsNull() && string(status.ByteArray()) != "not_run"
}

// decide goes through the log, then through what is left of the traces.
func (j *judge) decide() {
	for _, p := range slices.Sorted(maps.Keys(j.want.Logs)) {
		log := j.want.Logs[p]
		for o := log.Start; o < log.End; o++ {
			place := Place{p, o}
			if j.want.Further[place] {
				continue // a trace of it is left, and stray
			}
			j.v.Records++
			j.record(place, j.traces[place])
			delete(j.traces, place)
		}
	}
	for _, place := range slices.SortedFunc(maps.Keys(j.traces), comparePlaces) {
		j.v.fault(&j.v.Stray, "stray: %d@%d is no message of the log", place.Partition, place.Offset)
	}
}

func comparePlaces(a, b Place) int {
	return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
}

// record judges the traces of one record, by index.
func (j *judge) record(at Place, traces map[int32]*trace) {
	frames, rejects, twice := 0, 0, false
	for _, i := range slices.Sorted(maps.Keys(traces)) {
		t := traces[i]
		frames, rejects = frames+min(t.frames, 1), rejects+min(t.rejects, 1)
		twice = twice || t.frames+t.rejects > 1
		if t.hulls != t.wantHulls || t.maxima != t.wantMaxima || t.triangles != t.wantTriangles {
			j.v.fault(&j.v.Torn, "torn: %d@%d frame %d has %d, %d, %d rows in hulls, maxima, triangles; frames "+
				"tells of %d, %d, %d",
				at.Partition, at.Offset, i, t.hulls, t.maxima, t.triangles, t.wantHulls, t.wantMaxima, t.wantTriangles)
		}
	}
	whole := traces[-1] != nil // a reject of the whole record
	switch {
	case frames+rejects == 0:
		j.v.fault(&j.v.Missing, "missing: %d@%d", at.Partition, at.Offset)
	case twice, whole && frames+rejects > 1:
		j.v.fault(&j.v.Doubled, "doubled: %d@%d has more than one trace", at.Partition, at.Offset)
	default:
		j.compare(at, traces, frames+rejects)
	}
}

// compare holds the trace of a record against what was sent, if that is known.
// Of another record only the shape can be judged.
func (j *judge) compare(at Place, traces map[int32]*trace, n int) {
	sent, known := j.want.Acked[at]
	if known && sent.Frames == 0 {
		if traces[-1] == nil || traces[-1].rejects == 0 {
			j.v.fault(&j.v.Wrong, "wrong: %d@%d was to be refused", at.Partition, at.Offset)
		}
		return
	}
	if traces[-1] != nil && !known {
		return
	}
	if known && n != sent.Frames {
		j.v.fault(&j.v.Wrong, "wrong: %d@%d has %d frames, %d were sent", at.Partition, at.Offset, n, sent.Frames)
		return
	}
	for i := range int32(n) {
		t := traces[i]
		if t == nil || known && t.frames > 0 && t.frameID != sent.Number+int64(i) {
			j.v.fault(&j.v.Wrong, "wrong: %d@%d frame %d is another one", at.Partition, at.Offset, i)
			return
		}
	}
}

// read calls add for every row of a table's files of the judged topic. The row
// holds the values of the columns, and is valid during the call.
func (j *judge) read(out, table string, columns []string, add func([]parquet.Value)) error {
	err := filepath.WalkDir(filepath.Join(out, table), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".parquet" ||
			!strings.Contains(path, "topic="+j.want.Topic+string(filepath.Separator)) {
			return err
		}
		j.v.Files++
		if err := readFile(path, columns, add); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no row of that table
	}
	return err
}

// readFile reads the named columns only: a reader of structs would decode all
// thirty of a table, in each of thousands of files.
func readFile(path string, columns []string, add func([]parquet.Value)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	file, err := parquet.OpenFile(f, st.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return err
	}
	values, row := make([][]parquet.Value, len(columns)), make([]parquet.Value, len(columns))
	for _, group := range file.RowGroups() {
		for i, name := range columns {
			leaf, ok := file.Schema().Lookup(name)
			if !ok {
				return fmt.Errorf("no column %s", name)
			}
			if values[i], err = readColumn(values[i][:0], group.ColumnChunks()[leaf.ColumnIndex]); err != nil {
				return fmt.Errorf("column %s: %w", name, err)
			}
			if int64(len(values[i])) != group.NumRows() {
				return fmt.Errorf("column %s has %d values in %d rows", name, len(values[i]), group.NumRows())
			}
		}
		for r := range int(group.NumRows()) {
			for i := range row {
				row[i] = values[i][r]
			}
			add(row)
		}
	}
	return nil
}

// readColumn appends the values of a chunk to dst. They own their memory.
func readColumn(dst []parquet.Value, chunk parquet.ColumnChunk) ([]parquet.Value, error) {
	pages := chunk.Pages()
	defer pages.Close()
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
		n := len(dst)
		dst = append(dst, make([]parquet.Value, page.NumValues())...)
		m, err := page.Values().ReadValues(dst[n:])
		if err != nil && !errors.Is(err, io.EOF) || n+m != len(dst) {
			return dst, fmt.Errorf("%d of %d values of a page: %v", m, len(dst)-n, err)
		}
		for i := range dst[n:] {
			dst[n+i] = dst[n+i].Clone()
		}
		parquet.Release(page)
	}
}
