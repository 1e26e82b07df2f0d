package tables

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/parquet-go/parquet-go"

	"entropipe/schemas"
	"entropipe/schemas/codec/parquetfile"
	"entropipe/sinks/internal/batches"
)

// Triangles keep their order and number, over the borders of chunks, pages and
// row groups.
func TestTrianglesRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	b := batches.Synthetic(batches.Spec{Topic: "points", Records: 40, Frames: 1, Points: 3, Plain: true})
	for i := range b.Results {
		b.Results[i].Triangles = batches.Mesh([]int{0, 1, 2, 1023, 1024, 1025, 3000, rng.IntN(200)}[i%8], uint64(i))
	}
	cfg := testConfig()
	cfg.RowGroupRows = 4000
	data := fileOf(t, encodeAll(t, newEncoder(cfg), b), "triangles/")
	rows := rowsOf[trianglesRow](t, data)
	for i := range b.Results {
		r := &b.Results[i]
		for k := 0; k < len(r.Triangles); k += 3 {
			want := trianglesRow{shortKeys{r.FrameID, r.Partition, r.Offset, r.Index}, int32(k / 3), r.Triangles[k],
				r.Triangles[k+1], r.Triangles[k+2]}
			if len(rows) == 0 || rows[0] != want {
				t.Fatalf("frame %d, triangle %d: %+v, want %+v", i, k/3, rows[:min(1, len(rows))], want)
			}
			rows = rows[1:]
		}
	}
	if len(rows) > 0 {
		t.Errorf("%d rows too many", len(rows))
	}
	wholeFrames(t, data, 4000)
}

// offsetsOf returns the values of column offset in a row group.
func offsetsOf(t *testing.T, f *parquetfile.File, group int) (offsets []int64) {
	t.Helper()
	leaf, _ := f.Schema().Lookup("offset")
	pages := f.Pages(group, leaf.ColumnIndex)
	defer pages.Close()
	for int64(len(offsets)) < f.GroupRows(group) {
		page, err := pages.ReadPage()
		if err != nil {
			t.Fatal(err)
		}
		values := make([]parquet.Value, page.NumValues())
		if n, err := page.Values().ReadValues(values); n < len(values) {
			t.Fatalf("%d values of %d: %v", n, len(values), err)
		}
		for _, v := range values {
			offsets = append(offsets, v.Int64())
		}
		parquet.Release(page)
	}
	return offsets
}

// wholeFrames fails the test if a frame is split over row groups, or a row
// group of several frames exceeds the limit.
func wholeFrames(t *testing.T, data []byte, limit int64) {
	t.Helper()
	f, err := parquetfile.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	last := int64(-1)
	for i := range f.RowGroups() {
		offsets := offsetsOf(t, f, i)
		if offsets[0] == last {
			t.Errorf("the frame of offset %d is split before row group %d", last, i)
		}
		if last = offsets[len(offsets)-1]; f.GroupRows(i) > limit && offsets[0] != last {
			t.Errorf("row group %d has %d rows of several frames, the limit is %d", i, f.GroupRows(i), limit)
		}
	}
	if f.RowGroups() < 2 {
		t.Error("one row group: nothing was tested")
	}
}

// Coordinates keep their width; a file with frames of both has the wider one.
func TestPointsRoundTrip(t *testing.T) {
	narrow := batches.Synthetic(batches.Spec{Topic: "points", Records: 5, Frames: 2, Points: 5, Plain: true})
	wide := batches.Synthetic(batches.Spec{Topic: "points", Records: 5, Frames: 2, Points: 5,
		Plain: true, Points64: true})
	mixed := batches.Synthetic(batches.Spec{Topic: "points", Records: 5, Frames: 2, Points: 5, Plain: true})
	mixed.Results[3] = wide.Results[3]
	e := newEncoder(testConfig())
	i := 0
	rows32 := rowsOf[readPoints[float32]](t, fileOf(t, encodeAll(t, e, narrow), "points/"))
	for _, r := range narrow.Results {
		for j, x := range r.Points.X32 {
			got := rows32[i]
			if got.X != x || got.Y != r.Points.Y32[j] || *got.Z != 1 || *got.Intensity != 1 ||
				got.PointIdx != r.Points.Idx[j] || got.Offset != r.Offset || got.Index != r.Index ||
				got.FrameID != r.FrameID {
				t.Fatalf("row %d: %+v", i, got)
			}
			i++
		}
	}
	for _, b := range []*schemas.Batch{wide, mixed} {
		rows := rowsOf[readPoints[float64]](t, fileOf(t, encodeAll(t, e, b), "points/"))
		i = 0
		for _, r := range b.Results {
			for j := range r.Points.Idx {
				x := r.Points.X64
				want := float64(0)
				if x != nil {
					want = x[j]
				} else {
					want = float64(r.Points.X32[j])
				}
				if got := rows[i]; got.X != want || (got.Z == nil) != (x != nil) ||
					(got.Intensity == nil) != (x != nil) {
					t.Fatalf("row %d: %+v", i, got)
				}
				i++
			}
		}
	}
}
