package read_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/read"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

var everyTable = []string{tables.Hulls, tables.Hulls3D, tables.Maxima, tables.Triangles, tables.Points}

// outputOf commits batches one after the other, and returns the store.
func outputOf(t *testing.T, cfg tables.Config, batches ...*schemas.Batch) sinks.Store {
	t.Helper()
	return commitTo(t, sinktest.NewMemDisk(), cfg, batches...)
}

func commitTo(t *testing.T, d *sinktest.MemDisk, cfg tables.Config, batches ...*schemas.Batch) sinks.Store {
	t.Helper()
	ctx, store := context.Background(), sinktest.MemStore(d)
	cfg.Tables = everyTable
	encoder, err := tables.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	o, err := sinks.Open(ctx, store, encoder, sinks.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		if err := o.Base(ctx, b.Topic, schemas.TopicID{}, map[int32]int64{b.Partition: b.Start}); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Resume(ctx, b.Topic, b.Partition); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Commit(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// asRead is what the tables keep of a result.
func asRead(r schemas.Result, wide bool) *schemas.Result {
	p := *r.Points
	if wide && p.X64 == nil {
		for i := range p.X32 {
			p.X64, p.Y64, p.Z64 = append(p.X64, float64(p.X32[i])), append(p.Y64, float64(p.Y32[i])),
				append(p.Z64, float64(p.Z32[i]))
		}
		p.X32, p.Y32, p.Z32 = nil, nil, nil
	}
	if r.Points = &p; len(p.Idx) == 0 {
		r.Points = nil
	}
	return &r
}

// What was written is read back, frame by frame, over the borders of pages, row
// groups, files, folders and commits.
func TestReadFrameIsTheInverseOfCommit(t *testing.T) {
	ctx := context.Background()
	for name, cfg := range map[string]tables.Config{
		"by data set":   {},
		"by all":        {PartitionBy: []string{record.ByDataset, record.BySequence, record.ByDate}},
		"little groups": {RowGroupRows: 7, RowGroupBytes: 3000},
	} {
		t.Run(name, func(t *testing.T) {
			a := batches.Synthetic(batches.Spec{Topic: "points", Start: 5, Records: 40, Frames: 3, Points: 30,
				Datasets: []string{"a", "2011-09-26"}, Seed: 1})
			b := batches.Synthetic(batches.Spec{Topic: "points", Start: 45, Records: 20, Frames: 2, Points: 9,
				Points64: true, Seed: 2})
			c := batches.Synthetic(batches.Spec{Topic: "other", Partition: 3, Records: 9, Frames: 1,
				Points: 5, Seed: 3})
			a.Results[6].Hull.ErrorBound, a.Results[6].Hull3.ErrorBound, a.Results[7].Maxima[1].ErrorBound = new(0.25),
				new(0.5), new(0.125)
			a.Results[5].Triangles = batches.Mesh(5000, 1) // several pages
			a.Results[8].Stage, a.Results[8].ModelSHA = "seed", "abc"
			b.Results[3].Points, b.Results[3].Points.Z64 = a.Results[5].Points, nil // a file with both widths
			store := outputOf(t, cfg, a, b, c)
			for _, batch := range []*schemas.Batch{a, b, c} {
				for i := range batch.Results {
					if (i < 5 || i > 8) && i%batches.Sparse > 0 {
						continue // opening files for each takes long, and all are read at once below
					}
					r := &batch.Results[i]
					q := read.FrameQuery{Topic: r.Topic, Partition: &r.Partition, Offset: &r.Offset, Index: &r.Index}
					got, _, err := read.ReadFrame(ctx, store, q, everyTable...)
					if err != nil {
						t.Fatalf("%s: %v", q, err)
					}
					if diff := cmp.Diff(asRead(*r, batch == b), got, cmpopts.EquateEmpty()); diff != "" {
						t.Fatalf("%s (-want +got): %s", q, diff)
					}
				}
			}
			compareAll(t, store, b, c, a, b)
		})
	}
}

// compareAll has all frames read at once, and expects those of the batches in order.
func compareAll(t *testing.T, store sinks.Reader, wide *schemas.Batch, want ...*schemas.Batch) {
	t.Helper()
	n, all := 0, []*schemas.Result{}
	for _, batch := range want {
		for i := range batch.Results {
			all = append(all, asRead(batch.Results[i], batch == wide))
		}
	}
	everything := read.FrameQuery{}
	err := read.ReadFrames(context.Background(), store, everything, func(got *schemas.Result, _ []string) error {
		if n < len(all) {
			if diff := cmp.Diff(all[n], got, cmpopts.EquateEmpty()); diff != "" {
				return fmt.Errorf("frame %d (-want +got): %s", n, diff)
			}
		}
		n++
		return nil
	}, everyTable...)
	if err != nil || n != len(all) {
		t.Fatalf("%d frames of %d, %v", n, len(all), err)
	}
}

// Frames of a query come in the order of their keys; none, an unknown table and an error
// of the receiver end the reading.
func TestReadFrames(t *testing.T) {
	a := batches.Synthetic(batches.Spec{Topic: "points", Start: 5, Records: 40, Frames: 3, Points: 4,
		Datasets: []string{"b", "a"}, Plain: true})
	b := batches.Synthetic(batches.Spec{Topic: "points", Start: 45, Records: 9, Frames: 2, Points: 5, Plain: true})
	store, ctx, stop := outputOf(t, tables.Config{RowGroupRows: 7}, a, b), context.Background(), errors.New("stop")
	for _, c := range []struct {
		q    read.FrameQuery
		want int
	}{{read.FrameQuery{}, 138}, {read.FrameQuery{Offset: new(int64(7))}, 3},
		{read.FrameQuery{Index: new(int32(2))}, 40},
		{read.FrameQuery{FrameID: new(int64(8001))}, 1}} {
		n, last := 0, [2]int64{-1, 0}
		if err := read.ReadFrames(ctx, store, c.q, func(r *schemas.Result, absent []string) error {
			if at := [2]int64{r.Offset, int64(r.Index)}; slices.Compare(last[:], at[:]) >= 0 || len(absent) > 0 ||
				r.Hull == nil {
				t.Errorf("%s: %v after %v, absent %v", c.q, at, last, absent)
			} else {
				last = at
			}
			n++
			return nil
		}, tables.Hulls); err != nil || n != c.want {
			t.Errorf("%s: %d frames, want %d; %v", c.q, n, c.want, err)
		}
		n = 0
		if err := read.ReadFrames(ctx, store, c.q, func(*schemas.Result, []string) error {
			n++
			return stop
		}); err != stop || n != 1 {
			t.Errorf("%s: %v after %d frames", c.q, err, n)
		}
	}
	never := func(*schemas.Result, []string) error { t.Error("a frame"); return nil }
	err := read.ReadFrames(ctx, store, read.FrameQuery{Topic: "absent"}, never)
	if none := (*read.NoFrameError)(nil); !errors.As(err, &none) {
		t.Error(err)
	}
	if err := read.ReadFrames(ctx, store, read.FrameQuery{}, never, "clouds"); err == nil {
		t.Error("a table that there is not")
	}
}

// Each part of a query leaves the first frame that fits it, in the order of
// topic, partition, offset and index.
func TestReadFrameQueries(t *testing.T) {
	a := batches.Synthetic(batches.Spec{Topic: "points", Start: 5, Records: 40, Frames: 3, Points: 4,
		Datasets: []string{"b", "a"}, Plain: true})
	b := batches.Synthetic(batches.Spec{Topic: "others", Partition: 3, Records: 9, Frames: 2, Points: 5, Plain: true})
	for i := range a.Results {
		a.Results[i].Sequence = fmt.Sprint("s", i)
	}
	store := outputOf(t, tables.Config{RowGroupRows: 7}, a, b)
	for _, c := range []struct {
		q    read.FrameQuery
		want string
	}{
		{read.FrameQuery{}, "others/3 0 0"},
		{read.FrameQuery{Topic: "points"}, "points/0 5 0"},
		{read.FrameQuery{Partition: new(int32(0))}, "points/0 5 0"},
		{read.FrameQuery{Dataset: "b"}, "points/0 6 0"},
		{read.FrameQuery{Offset: new(int64(20))}, "points/0 20 0"},
		{read.FrameQuery{Offset: new(int64(7)), Index: new(int32(1))}, "others/3 7 1"},
		{read.FrameQuery{Index: new(int32(2))}, "points/0 5 2"},
		{read.FrameQuery{FrameID: new(int64(30_001))}, "points/0 30 1"},
		{read.FrameQuery{Sequence: "s100"}, "points/0 38 1"},
		{read.FrameQuery{Topic: "points", FrameID: new(int64(8001)), Dataset: "b", Sequence: "s10"}, "points/0 8 1"},
	} {
		r, absent, err := read.ReadFrame(context.Background(), store, c.q)
		if err != nil || len(absent) > 0 {
			t.Errorf("%s: %v, absent %v", c.q, err, absent)
			continue
		}
		if got := fmt.Sprintf("%s/%d %d %d", r.Topic, r.Partition, r.Offset, r.Index); got != c.want {
			t.Errorf("%s: %s, want %s", c.q, got, c.want)
		}
		if r.Hull != nil || r.Points != nil || r.NPoints == 0 {
			t.Errorf("%s: %+v", c.q, r)
		}
	}
}

// Who asks for what is not there is told what is.
func TestReadFrameSaysWhatIsThere(t *testing.T) {
	b := batches.Synthetic(batches.Spec{Topic: "points", Start: 5, Records: 20, Frames: 1, Points: 4})
	store := outputOf(t, tables.Config{}, b)
	for _, c := range []struct {
		q    read.FrameQuery
		want string
	}{
		{read.FrameQuery{Offset: new(int64(99))},
			"no frame of offset 99; there are points/0: 14 frames of offsets 5 to 24"},
		{read.FrameQuery{Offset: new(int64(7))},
			"no frame of offset 7 (a commit covers that offset: table rejects may say why); there are points/0: 14 " +
				"frames of offsets 5 to 24 of dataset synthetic"},
		{read.FrameQuery{Topic: "none", Partition: new(int32(1))},
			"no frame of topic none, partition 1; there are points/0"},
		{read.FrameQuery{Sequence: "none"}, "no frame of sequence none; there are points/0: 14 frames of offsets 5 " +
			"to 24 of dataset synthetic; sequences such as seq-1"},
		{read.FrameQuery{FrameID: new(int64(-1)), Index: new(int32(4)), Dataset: "synthetic"},
			"no frame of dataset synthetic, index 4, frame_id -1; there are points/0"},
	} {
		_, _, err := read.ReadFrame(context.Background(), store, c.q)
		if missing := (*read.NoFrameError)(nil); !errors.As(err, &missing) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.q, err, c.want)
		}
	}
	empty := outputOf(t, tables.Config{})
	if _, _, err := read.ReadFrame(context.Background(), empty, read.FrameQuery{}); err == nil ||
		!strings.Contains(err.Error(), "no frame: it is empty") {
		t.Errorf("an empty output: %v", err)
	}
	texts := batches.Tokens("texts", 3, 40, 8)
	want := fmt.Sprintf("no frame; there are texts/0: %d sequences of tokens of offsets 3 to 42, and none of points",
		len(texts.Results))
	if _, _, err := read.ReadFrame(context.Background(), outputOf(t, tables.Config{}, texts),
		read.FrameQuery{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("an output of sequences: %v\nwant %s", err, want)
	}
	if _, _, err := read.ReadFrame(context.Background(), sinktest.MemStore(sinktest.NewMemDisk()),
		read.FrameQuery{}); !errors.Is(err, sinks.ErrNotFound) {
		t.Errorf("no output: %v", err)
	}
	if _, _, err := read.ReadFrame(context.Background(), store, read.FrameQuery{}, tables.Rejects); err == nil {
		t.Error("a frame was read from table rejects")
	}
}

// A table that the commit does not have is named; one that has nothing of the
// frame is not.
func TestReadFrameNamesAbsentTables(t *testing.T) {
	b := batches.Synthetic(batches.Spec{Topic: "points", Records: 20, Frames: 2, Points: 4, Plain: true})
	for i := range b.Results {
		b.Results[i].Hull3, b.Results[i].Points = nil, nil
	}
	b.Results[1].Triangles = nil
	store := outputOf(t, tables.Config{}, b)
	r, absent, err := read.ReadFrame(context.Background(), store, read.FrameQuery{Index: new(int32(1))}, everyTable...)
	if err != nil || !slices.Equal(absent, []string{tables.Hulls3D, tables.Points}) ||
		r.Triangles != nil || r.Hull == nil {
		t.Errorf("absent %v, %v; %+v", absent, err, r)
	}
}

// Damaged files are errors that name them, whatever the bytes.
func TestReadFrameOfDamagedFiles(t *testing.T) {
	b := batches.Synthetic(batches.Spec{Topic: "points", Records: 4, Frames: 1, Points: 40, Plain: true})
	d := sinktest.NewMemDisk()
	commitTo(t, d, tables.Config{}, b)
	for name, file := range d.Live.Files {
		if !strings.HasSuffix(name, record.DataSuffix) {
			continue
		}
		whole := slices.Clone(file.Data)
		for _, data := range [][]byte{nil, whole[:len(whole)/2],
			append(make([]byte, len(whole)/2), whole[len(whole)/2:]...),
			slices.Concat(whole[:len(whole)-8], []byte{255, 255, 255, 127}, whole[len(whole)-4:])} {
			file.Data = data
			if _, _, err := read.ReadFrame(context.Background(), sinktest.MemStore(d), read.FrameQuery{},
				everyTable...); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s damaged: %v", name, err)
			}
		}
		file.Data = whole
	}
}
