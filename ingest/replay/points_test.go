package replay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/ops/pipeline"
	"entropipe/schemas"
	"entropipe/schemas/codec"
	"entropipe/sinks/tables"
)

var everyOp = []schemas.Op{schemas.Hull2D, schemas.Hull3D, schemas.Maxima2D, schemas.Maxima3D, schemas.Delaunay2D}

// listedItems is a Source of given items.
type listedItems struct {
	items []Item
	at    int
}

func (l *listedItems) Next(it *Item) error {
	if l.at == len(l.items) {
		return io.EOF
	}
	*it = l.items[l.at]
	it.Position = int64(l.at)
	l.at++
	return nil
}

func (l *listedItems) Rewind() error { l.at = 0; return nil }
func (l *listedItems) Close() error  { return nil }

// messagesOf returns what a Producer sends of src, on one partition.
func messagesOf(t testing.TB, src Source) (all []schemas.Message) {
	t.Helper()
	p := &Producer{}
	line, err := p.timeline(src, 0)
	if err != nil {
		t.Fatal(err)
	}
	enc := p.encoder()
	var it Item
	for {
		if err := line.next(&it); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		r := p.record(&it, 0)
		if r.Value, r.Headers, err = enc.append(nil, &it); err != nil {
			t.Fatal(err)
		}
		all = append(all, schemas.Message{Topic: "points", Partition: 3, Offset: int64(len(all)), Key: r.Key,
			Value: r.Value, Headers: r.Headers})
	}
}

// process runs all operators on messages. Results have no times of a run.
func process(t testing.TB, messages []schemas.Message, ops []schemas.Op) (all []schemas.Result) {
	t.Helper()
	f := pipeline.NewFrames(pipeline.FrameConfig{Ops: ops, Points: true})
	for _, m := range messages {
		results, rejects := f.Process(m)
		for _, r := range rejects {
			t.Fatalf("offset %d: %s: %s", m.Offset, r.Reason, r.Message)
		}
		for _, r := range results {
			r.LatencyNs = 0
			for op := range r.Ops {
				r.Ops[op].Ns = 0
			}
			all = append(all, r)
		}
	}
	return all
}

// output writes the tables of results in commits of some records each.
func output(t testing.TB, dir string, cfg tables.Config, results []schemas.Result, each int64) {
	t.Helper()
	cfg.Tables = []string{tables.Points}
	e, err := tables.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for len(results) > 0 {
		n := 1
		first := results[0].Offset
		for n < len(results) && results[n].Offset < first+each {
			n++
		}
		b := &schemas.Batch{Topic: results[0].Topic, Partition: results[0].Partition, Start: first,
			End: results[n-1].Offset + 1, Results: results[:n]}
		for _, f := range e.Plan(b, 0) {
			var data bytes.Buffer
			if _, err := e.Encode(&data, f, b); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, filepath.FromSlash(f.Path))
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		results = results[n:]
	}
	if err := os.MkdirAll(filepath.Join(dir, "_commits"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "_commits", "store.json"), []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
}

// sameRows compares results by their keys, and all that tables hold of them.
func sameRows(t *testing.T, want, got []schemas.Result) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%d frames, want %d", len(got), len(want))
	}
	for i := range want {
		w, g := want[i], got[i]
		g.Topic, g.Partition, g.Offset = w.Topic, w.Partition, w.Offset // another topic's
		if w.Points != nil && g.Points != nil {
			for _, p := range []*schemas.Points{w.Points, g.Points} {
				if len(p.Idx) == 0 {
					*p = schemas.Points{}
				}
			}
		}
		if reflect.DeepEqual(w, g) {
			continue
		}
		if diff := cmp.Diff(w, g, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("frame %d of %s (-first run +from points):\n%.3000s", w.FrameID, w.Sequence, diff)
		}
	}
}

// fromPoints returns the results of what is read from an output's points.
func fromPoints(t *testing.T, path string) []schemas.Result {
	t.Helper()
	return process(t, messagesOf(t, open(t, Table{Paths: []string{path}, Format: FormatParquet})), everyOp)
}

// randomClouds makes frames of two sequences, with points that are dropped, without points, without
// z, with and without further columns.
func randomClouds(n int, wide bool) (items []Item) {
	rng := rand.New(rand.NewPCG(1, 2))
	numbers := map[string]int64{}
	for k := range n {
		size := []int{0, 1, 3, 200, 3000, 17}[k%6]
		it := Item{Dataset: "set", Sequence: []string{"drive", "trip 2"}[k/4%2], Sensor: "top",
			TimeNs: int64(1e18) + int64(k)*7e7,
			Clock:  UTC}
		it.Number = numbers[it.Sequence]
		numbers[it.Sequence] += 1 + int64(k%2)
		if k%3 == 1 {
			it.Pose = &codec.Pose{1, 0, 0, float64(k), 0, 1, 0, 2, 0, 0, 1, 3}
		}
		c := geomtest.Lidar[float64](size, uint64(k))
		for i := range c.X {
			switch rng.IntN(20) {
			case 0:
				c.X[i] = math.NaN()
			case 1:
				c.Y[i] = math.Inf(1)
			}
		}
		if k%7 == 5 { // no point of the frame is left
			for i := range c.X {
				c.X[i] = math.NaN()
			}
		}
		p := &it.Cloud
		if k%5 == 3 {
			c.Z = nil
		}
		if wide {
			p.Double, p.Cloud64 = true, c
		} else {
			p.Cloud32 = geom.Cloud[float32]{X: narrow(c.X), Y: narrow(c.Y), Z: narrow(c.Z)}
		}
		if k%2 == 0 {
			p.Intensity = make([]float32, size)
			p.Ring, p.TOffsetNs = make([]int32, size), make([]int64, size)
			for i := range p.Ring {
				p.Intensity[i], p.Ring[i], p.TOffsetNs[i] = rng.Float32(), int32(i%64), int64(i)*100
				if i%9 == 4 {
					p.Ring[i] = codec.NoInt32
				}
			}
		}
		items = append(items, it)
	}
	return items
}

func narrow(v []float64) []float32 {
	if v == nil {
		return nil
	}
	to := make([]float32, len(v))
	for i := range v {
		to[i] = float32(v[i])
	}
	return to
}

func randomDrawings(n int) (items []Item) {
	src, err := Sketches{Frames: int64(n), Pack: 11, Seed: 5}.Open()
	if err != nil {
		panic(err)
	}
	for {
		var it Item
		if err := src.Next(&it); err != nil {
			return items
		}
		it.Drawings = slices.Clone(it.Drawings)
		for i := range it.Drawings {
			d := &it.Drawings[i]
			d.X, d.Y, d.Ends = slices.Clone(d.X), slices.Clone(d.Y), slices.Clone(d.Ends)
			if i%4 == 1 {
				d.X[0] = math.NaN()
			}
			if i%5 == 2 {
				d.TimeNs = 1.6e18 + int64(i)
			}
		}
		items = append(items, it)
	}
}

// Law: what is computed from the points of an output has the rows of the first run: names, numbers,
// times, poses, positions in the message, and indices of points.
func TestPointsGiveTheRowsOfTheFirstRun(t *testing.T) {
	mixed := randomClouds(24, false)
	mixed[9] = randomClouds(24, true)[9]
	for _, c := range []struct {
		name  string
		items []Item
		cfg   tables.Config
		each  int64
	}{
		{"float32", randomClouds(40, false), tables.Config{}, 7},
		{"float64", randomClouds(40, true), tables.Config{}, 1000},
		{"row groups of few rows", randomClouds(40, false), tables.Config{RowGroupRows: 100}, 1000},
		{"a commit for each frame", randomClouds(30, false), tables.Config{}, 1},
		{"folders of sequences", randomClouds(30, false), tables.Config{PartitionBy: []string{"dataset", "sequence"}},
			5},
		{"drawings", randomDrawings(300), tables.Config{}, 4},
		{"drawings in small row groups", randomDrawings(300), tables.Config{RowGroupRows: 50}, 1000},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			first := process(t, messagesOf(t, &listedItems{items: c.items}), everyOp)
			output(t, dir, c.cfg, first, c.each)
			if len(c.cfg.PartitionBy) > 1 {
				byName := func(a, b schemas.Result) int { return strings.Compare(a.Sequence, b.Sequence) }
				slices.SortStableFunc(first, byName)
			}
			for _, path := range []string{dir, filepath.Join(dir, "points")} {
				sameRows(t, first, fromPoints(t, path))
			}
		})
	}
	t.Run("float64 beside float32", func(t *testing.T) {
		// One file has one type: what was float32 comes as float64 of the same values.
		dir := t.TempDir()
		first := process(t, messagesOf(t, &listedItems{items: mixed}), everyOp)
		output(t, dir, tables.Config{}, first, 1000)
		got := fromPoints(t, dir)
		for i := range got {
			if !slices.Equal(first[i].Points.Idx, got[i].Points.Idx) {
				t.Fatalf("frame %d: points %v, want %v", i, got[i].Points.Idx, first[i].Points.Idx)
			}
			first[i].Points, got[i].Points = nil, nil
		}
		sameRows(t, first, got)
	})
}

// A reading from any position gives the messages that a reading from the begin gives.
func TestPointsFromAnyPosition(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(dir string) Table
	}{
		{"an output", func(dir string) Table {
			output(t, dir, tables.Config{RowGroupRows: 100},
				process(t, messagesOf(t, &listedItems{items: randomClouds(14,
					false)}), []schemas.Op{schemas.Hull2D}), 4)
			return Table{Paths: []string{dir}, Format: FormatParquet}
		}},
		{"drawings", func(dir string) Table {
			output(t, dir, tables.Config{}, process(t, messagesOf(t, &listedItems{items: randomDrawings(200)}),
				[]schemas.Op{schemas.Hull2D}), 4)
			return Table{Paths: []string{dir}, Format: FormatParquet}
		}},
		{"points without frames", func(dir string) Table {
			output(t, dir, tables.Config{RowGroupRows: 100},
				process(t, messagesOf(t, &listedItems{items: randomClouds(14,
					false)}), []schemas.Op{schemas.Hull2D}), 4)
			if err := os.RemoveAll(filepath.Join(dir, "frames")); err != nil {
				t.Fatal(err)
			}
			return Table{Paths: []string{filepath.Join(dir, "points")}, Format: FormatParquet}
		}},
		{"groups over files", func(dir string) Table {
			writeExport(t, dir, exportRows(500), 130)
			return Table{Paths: []string{dir}, Format: FormatParquet, GroupBy: []string{"scan"}}
		}},
		{"row groups", func(dir string) Table {
			writeExport(t, dir, exportRows(500), 130)
			return Table{Paths: []string{dir}, Format: FormatParquet, GroupBy: []string{ByRowGroup}}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := c.make(t.TempDir())
			src := open(t, table).(*pointSource)
			whole := messagesOf(t, src)
			items, frames, err := src.counts(t.Context())
			if err != nil || items != int64(len(whole)) || frames < items {
				t.Fatalf("%d items, %d frames, %v; there are %d", items, frames, err, len(whole))
			}
			for from := range items + 1 {
				src := open(t, table).(*pointSource)
				if err := src.seek(t.Context(), from); err != nil {
					t.Fatal(err)
				}
				got := messagesOf(t, src)
				for i := range got {
					got[i].Offset = from + int64(i)
				}
				if len(got) != len(whole[from:]) || len(got) > 0 && !reflect.DeepEqual(whole[from:], got) {
					diff := cmp.Diff(whole[from:], got)
					t.Fatalf("from %d (-whole +part):\n%.2000s", from, diff)
				}
				files := src.FilesOf(from)
				if (len(files) == 0) != (from == items) {
					t.Fatalf("position %d has the files %q", from, files)
				}
				src.Close()
			}
		})
	}
}

// Bad frames of an output are bad items; the others are read.
func TestOutputsThatDoNotFit(t *testing.T) {
	dir := t.TempDir()
	items := randomClouds(12, false)
	for i := range items {
		items[i].Cloud = codec.Points{Cloud32: geomtest.Lidar[float32](50, uint64(i))}
	}
	first := process(t, messagesOf(t, &listedItems{items: items}), everyOp)
	odd := slices.Clone(first)
	odd[4].NPoints += 3               // a frame that was pruned
	odd[6].Points = &schemas.Points{} // points that are missing
	output(t, dir, tables.Config{}, odd, 1000)
	_, err := readPoints(Table{Paths: []string{dir}, Format: FormatParquet})
	failsWith(t, err, "offset 4", "has 50 of its 53 points", "pruned")
	got, err := readPoints(Table{Paths: []string{dir}, Format: FormatParquet, SkipBad: true})
	if err != nil || len(got) != 10 {
		t.Fatalf("%d frames, %v", len(got), err)
	}
	for i, at := range []int64{0, 1, 2, 3, 5, 7, 8, 9, 10, 11} {
		if got[i].Position != at {
			t.Errorf("item %d has position %d, want %d", i, got[i].Position, at)
		}
	}
	// Without points in any table, an output says what it lacks.
	if err := os.RemoveAll(filepath.Join(dir, "points")); err != nil {
		t.Fatal(err)
	}
	_, err = Table{Paths: []string{dir}, Format: FormatParquet}.Open()
	failsWith(t, err, "without table points", "--tables points")
}

// readPoints reads all items of a table, and the error that ends them.
func readPoints(table Table) (items []Item, err error) {
	src, err := table.Open()
	if err != nil {
		return nil, err
	}
	defer src.Close()
	for {
		var it Item
		err := src.Next(&it)
		if err == io.EOF {
			return items, nil
		}
		if err != nil {
			return items, err
		}
		c := &it.Cloud
		for _, v := range []*[]float32{&c.Cloud32.X, &c.Cloud32.Y, &c.Cloud32.Z, &c.Intensity} {
			*v = slices.Clone(*v)
		}
		items = append(items, it)
	}
}

// A frames file beside points of other settings is left out.
func TestFramesWithoutPoints(t *testing.T) {
	dir := t.TempDir()
	items := randomClouds(20, false)
	first := process(t, messagesOf(t, &listedItems{items: items}), everyOp)
	output(t, dir, tables.Config{}, first, 5)
	part := filepath.Join(dir, "points", "dataset=set", "topic=points",
		fmt.Sprintf("part-3-%020d-%020d.parquet", 5, 10))
	if err := os.Remove(part); err != nil {
		t.Fatal(err)
	}
	got := fromPoints(t, dir)
	sameRows(t, append(slices.Clone(first[:5]), first[10:]...), got)
}

// The real scans of KITTI have the same rows.
func TestPointsOfRealScans(t *testing.T) {
	raw := geomtest.TestData(t, "kitti", "raw_2011_09_26_drive_0005")
	first := process(t, messagesOf(t, open(t, KITTI{Dir: raw})), everyOp)
	dir := t.TempDir()
	output(t, dir, tables.Config{}, first, 4)
	sameRows(t, first, fromPoints(t, filepath.Join(dir, "points")))
}

func TestGroupsMustBeTogether(t *testing.T) {
	rows := exportRows(300)
	rows = append(rows, rows[0])
	dir := t.TempDir()
	writeExport(t, dir, rows, 100)
	for _, skip := range []bool{false, true} {
		_, err := readPoints(Table{Paths: []string{dir}, Format: FormatParquet,
			GroupBy: []string{"scan"}, SkipBad: skip})
		failsWith(t, err, "scan 7", "second time", "sort the table by scan")
		var bad *BadInputError
		if errors.As(err, &bad) {
			t.Error("--skip-bad would pass over a table in disorder")
		}
	}
	src := open(t, Table{Paths: []string{dir}, Format: FormatParquet, GroupBy: []string{"scan"}})
	_, _, err := src.(*pointSource).counts(t.Context())
	failsWith(t, err, "scan 7", "second time")
}

// A plan of an output's points has exact counts and the files of each frame.
func TestArchiveOfPoints(t *testing.T) {
	dir := t.TempDir()
	items := randomClouds(9, false)
	output(t, dir, tables.Config{}, process(t, messagesOf(t, &listedItems{items: items}),
		[]schemas.Op{schemas.Hull2D}), 4)
	for name, make := range map[string]func() (Archive, error){
		"parquet": Table{Paths: []string{dir}, Format: FormatParquet}.Archive,
		"files":   Files{Paths: []string{dir}}.Archive,
	} {
		a, err := make()
		if err != nil {
			t.Fatal(err)
		}
		parts := 0
		err = a.Parts(t.Context(), func(p *Part) error {
			parts++
			if p.Items != 9 || p.Frames != 9 || p.Of == nil || len(p.Of(5)) != 2 || p.Of(9) != nil {
				t.Errorf("%s: %+v", name, p)
			}
			src, err := a.Open(t.Context(), p.Input, 5)
			if err != nil {
				return err
			}
			defer src.Close()
			var it Item
			if err := src.Next(&it); err != nil || it.Position != 5 || it.Sequence != items[5].Sequence ||
				it.Number != items[5].Number {
				t.Errorf("%s: %v, position %d, frame %d of %s", name, err, it.Position, it.Number, it.Sequence)
			}
			return nil
		})
		if err != nil || parts != 1 {
			t.Errorf("%s: %d parts, %v", name, parts, err)
		}
	}
}
