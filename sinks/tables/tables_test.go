package tables

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/paulmach/orb"
	"github.com/paulmach/orb/encoding/wkb"

	"entropipe/schemas"
	"entropipe/sinks/internal/batches"
)

// readFrames has pointers where columns are nullable, as a reader would.
type readFrames struct {
	keys
	NPoints      int32   `parquet:"n_points"`
	NDropped     int32   `parquet:"n_dropped"`
	StatusHull2D *string `parquet:"status_hull2d"`
	NHull2D      *int32  `parquet:"n_hull2d"`
	Hull2DNs     *int64  `parquet:"hull2d_ns"`
	StatusHull3D *string `parquet:"status_hull3d"`
	NHull3D      *int32  `parquet:"n_hull3d"`
	Hull3DNs     *int64  `parquet:"hull3d_ns"`
	NDelaunay2D  *int32  `parquet:"n_delaunay2d"`
	Delaunay2DNs *int64  `parquet:"delaunay2d_ns"`
	DrawingID    *int64  `parquet:"drawing_id"`
	Label        *string `parquet:"label"`
	Stage        *string `parquet:"stage"`
	ModelSHA256  *string `parquet:"model_sha256"`
	LatencyNs    int64   `parquet:"latency_ns"`
}

func keysOf(k *schemas.FrameKey) keys {
	return keys{k.Sequence, k.FrameID, k.Sensor, time.Unix(0, k.TimeNs).UnixMicro(), k.TimeNs,
		k.Partition, k.Offset, k.Index}
}

// A column that is null says that there is nothing; 0 is a number.
func TestFramesRoundTrip(t *testing.T) {
	b := batches.Synthetic(batches.Spec{Topic: "points", Start: 5, Records: 40, Frames: 3, Points: 30, Seed: 1})
	b.Results[3].Stage, b.Results[3].ModelSHA, b.Results[3].NDropped = "seed", strings.Repeat("ab", 32), 2
	b.Results[4].Sequence, b.Results[4].Drawing = "broken \xff\xfe", &schemas.Drawing{}
	rows := rowsOf[readFrames](t, fileOf(t, encodeAll(t, newEncoder(testConfig()), b), "frames/dataset=synthetic/"))
	if len(rows) != len(b.Results) {
		t.Fatalf("%d rows of %d frames", len(rows), len(b.Results))
	}
	for i, got := range rows {
		r := &b.Results[i]
		want := readFrames{keys: keysOf(&r.FrameKey), NPoints: r.NPoints, NDropped: r.NDropped, LatencyNs: r.LatencyNs,
			StatusHull2D: new(string(r.Ops[schemas.Hull2D].Status)), NHull2D: &r.Ops[schemas.Hull2D].N,
			Hull2DNs:    &r.Ops[schemas.Hull2D].Ns,
			NDelaunay2D: &r.Ops[schemas.Delaunay2D].N, Delaunay2DNs: &r.Ops[schemas.Delaunay2D].Ns}
		want.Sequence = validText(r.Sequence)
		if op := &r.Ops[schemas.Hull3D]; op.Status != "" {
			want.StatusHull3D, want.NHull3D, want.Hull3DNs = new(string(op.Status)), &op.N, &op.Ns
		}
		if r.Drawing != nil {
			want.DrawingID, want.Label = &r.Drawing.ID, &r.Drawing.Label
		}
		if r.Stage != "" {
			want.Stage, want.ModelSHA256 = &r.Stage, &r.ModelSHA
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(readFrames{}, keys{})); diff != "" {
			t.Fatalf("row %d: %s", i, diff)
		}
	}
}

type readHulls struct {
	keys
	NPoints    int32    `parquet:"n_points"`
	NHull      int32    `parquet:"n_hull"`
	Area       float64  `parquet:"area"`
	Perimeter  float64  `parquet:"perimeter"`
	Geometry   []byte   `parquet:"geometry,optional"`
	BBox       *bbox    `parquet:"bbox,optional"`
	HullIdx    []int32  `parquet:"hull_idx,list"`
	ErrorBound *float64 `parquet:"error_bound"`
	Status     string   `parquet:"status"`
}

// Geometry, bbox and indices of every hull are those of the operator; a
// degenerate hull is a lower geometry, an empty one null.
func TestHullsRoundTrip(t *testing.T) {
	for _, null := range []bool{false, true} {
		b := batches.Synthetic(batches.Spec{Topic: "points", Records: 60, Frames: 2, Points: 9, Seed: 3})
		b.Results[5].Hull.ErrorBound = new(0.0)
		cfg := testConfig()
		cfg.NullDegenerate = null
		rows := rowsOf[readHulls](t, fileOf(t, encodeAll(t, newEncoder(cfg), b), "hulls/"))
		if len(rows) != len(b.Results) {
			t.Fatalf("%d rows of %d hulls", len(rows), len(b.Results))
		}
		for i, got := range rows {
			r, h := &b.Results[i], b.Results[i].Hull
			if got.keys != keysOf(&r.FrameKey) || got.NPoints != r.NPoints || int(got.NHull) != len(h.Idx) ||
				!slices.Equal(got.HullIdx, h.Idx) ||
				got.Area != h.Area || got.Perimeter != h.Perimeter || got.Status != string(h.Status) ||
				(got.ErrorBound == nil) != (h.ErrorBound == nil) {
				t.Fatalf("row %d: %+v of %+v", i, got, h)
			}
			if len(h.Idx) == 0 || null && len(h.Idx) < 3 {
				if got.Geometry != nil || got.BBox != nil {
					t.Fatalf("row %d: geometry %x, bbox %v of %d vertices", i, got.Geometry, got.BBox, len(h.Idx))
				}
				continue
			}
			g, err := wkb.Unmarshal(got.Geometry)
			if err != nil {
				t.Fatalf("row %d: %v", i, err)
			}
			bound := g.Bound()
			if *got.BBox != (bbox{bound.Min[0], bound.Min[1], bound.Max[0], bound.Max[1]}) {
				t.Fatalf("row %d: bbox %v of %v", i, got.BBox, g)
			}
			if got, want := verticesOf(g), verticesOf((&geoFile{}).geometry(h)); !slices.Equal(got, want) {
				t.Fatalf("row %d: %v, want %v", i, got, want)
			}
		}
	}
}

func verticesOf(g orb.Geometry) []orb.Point {
	switch g := g.(type) {
	case orb.Point:
		return []orb.Point{g}
	case orb.LineString:
		return g
	case orb.Polygon:
		return g[0]
	}
	return nil
}

// The bytes of a polygon, as the standard has them.
func TestWKBOfATriangle(t *testing.T) {
	h := &schemas.Hull{Idx: []int32{0, 1, 2}, X: []float64{0, 1, 0}, Y: []float64{0, 0, 1}}
	tw := newTableWriter(hullsTable, new(testConfig()))
	got := hex.EncodeToString(tw.encodeWKB(tw.geo.geometry(h)))
	const zero, one = "0000000000000000", "000000000000f03f"
	want := "01" + "03000000" + "01000000" + "04000000" + zero + zero + one + zero + zero + one + zero + zero
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The file's geo metadata lists exactly the types that are in it, and bounds
// them exactly; it is rebuilt for every file.
func TestGeoMetadata(t *testing.T) {
	e := newEncoder(testConfig())
	for _, c := range []struct {
		points []int
		types  []string
	}{{[]int{4, 5}, []string{"Polygon"}}, {[]int{1, 1}, []string{"Point"}}, {[]int{2, 0}, []string{"LineString"}},
		{[]int{0, 0}, []string{}}, {[]int{1, 2, 3}, []string{"Polygon", "LineString", "Point"}}} {
		b := &schemas.Batch{Topic: "points", End: int64(len(c.points)), Messages: int64(len(c.points))}
		for i, n := range c.points {
			b.Results = append(b.Results, batches.SyntheticResult(batches.Spec{Points: n, Plain: true, Seed: 4,
				Datasets: []string{"a"}}, b, int64(i), 0))
		}
		text, _ := openBytes(t, fileOf(t, encodeAll(t, e, b), "hulls/")).Lookup("geo")
		var meta struct {
			Version string `json:"version"`
			Primary string `json:"primary_column"`
			Columns map[string]map[string]any
		}
		if err := json.Unmarshal([]byte(text), &meta); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		g := meta.Columns["geometry"]
		if crs, present := g["crs"]; !present || crs != nil || meta.Version != "1.1.0" || meta.Primary != "geometry" ||
			g["encoding"] != "WKB" || g["orientation"] != "counterclockwise" {
			t.Errorf("metadata %s", text)
		}
		types := []string{}
		for _, name := range g["geometry_types"].([]any) {
			types = append(types, name.(string))
		}
		if !slices.Equal(types, c.types) {
			t.Errorf("hulls of %v vertices: types %v, want %v", c.points, types, c.types)
		}
		box, bounded := g["bbox"].([]any)
		if bounded != (len(c.types) > 0) {
			t.Errorf("hulls of %v vertices: bbox %v", c.points, box)
		}
		if !bounded {
			continue
		}
		want := orb.Bound{Min: orb.Point{math.Inf(1), math.Inf(1)}, Max: orb.Point{math.Inf(-1), math.Inf(-1)}}
		for i := range b.Results {
			for j := range b.Results[i].Hull.X {
				want = want.Extend(orb.Point{b.Results[i].Hull.X[j], b.Results[i].Hull.Y[j]})
			}
		}
		if got := (orb.Bound{Min: orb.Point{box[0].(float64), box[1].(float64)},
			Max: orb.Point{box[2].(float64), box[3].(float64)}}); got != want {
			t.Errorf("hulls of %v vertices: bbox %v, want %v", c.points, got, want)
		}
	}
}

type readHulls3D struct {
	keys
	NPoints    int32    `parquet:"n_points"`
	NHull      int32    `parquet:"n_hull"`
	HullIdx    []int32  `parquet:"hull_idx,list"`
	Faces      []int32  `parquet:"faces,list"`
	Area       float64  `parquet:"area"`
	Volume     float64  `parquet:"volume"`
	ErrorBound *float64 `parquet:"error_bound"`
	Status     string   `parquet:"status"`
}

// A frame on which hull3d did not run has no row.
func TestHulls3DRoundTrip(t *testing.T) {
	b := batches.Synthetic(batches.Spec{Topic: "points", Records: 60, Frames: 2, Points: 9, Seed: 3})
	b.Results[6].Hull3.ErrorBound = new(0.5)
	rows := rowsOf[readHulls3D](t, fileOf(t, encodeAll(t, newEncoder(testConfig()), b), "hulls3d/dataset=synthetic/"))
	i := 0
	for j := range b.Results {
		r, h := &b.Results[j], b.Results[j].Hull3
		if h == nil {
			continue
		}
		if i == len(rows) {
			t.Fatalf("%d rows, and more hulls", i)
		}
		got := rows[i]
		if got.keys != keysOf(&r.FrameKey) || got.NPoints != r.NPoints || int(got.NHull) != len(h.Idx) ||
			!slices.Equal(got.HullIdx, h.Idx) || !slices.Equal(got.Faces, h.Faces) ||
			got.Area != h.Area || got.Volume != h.Volume || !reflect.DeepEqual(got.ErrorBound, h.ErrorBound) ||
			got.Status != string(h.Status) {
			t.Fatalf("row %d: %+v of %+v", i, got, h)
		}
		i++
	}
	if i != len(rows) || i == len(b.Results) {
		t.Errorf("%d rows, want %d; %d frames", len(rows), i, len(b.Results))
	}
}

type readEntropy struct {
	keys
	Op         string   `parquet:"op"`
	N          int32    `parquet:"n_hull_or_maxima"`
	Lower      float64  `parquet:"lower"`
	Upper      float64  `parquet:"upper"`
	Kind       string   `parquet:"kind"`
	F          *float64 `parquet:"f"`
	NSurvivors int32    `parquet:"n_survivors"`
	Stage      string   `parquet:"stage,optional"`
}

// A frame that was not measured has no row, one that was has one an operator.
func TestEntropyRoundTrip(t *testing.T) {
	b := batches.Synthetic(batches.Spec{Topic: "points", Records: 20, Frames: 1, Points: 5})
	b.Results[2].Entropy = []schemas.Entropy{{Op: schemas.Hull2D, N: 5, Lower: 0.25, Upper: 1.5, Kind: "size",
		F: new(0.5), Stage: "before"}, {Op: schemas.Maxima3D, N: 1, Kind: "size"}}
	b.Results[7].Entropy = []schemas.Entropy{{Op: schemas.Hull3D, N: 4, Upper: 0.125, Kind: "joint",
		F: new(0.), Stage: "after"}}
	rows := rowsOf[readEntropy](t, fileOf(t, encodeAll(t, newEncoder(testConfig()), b), "entropy/dataset=synthetic/"))
	var want []readEntropy
	for i := range b.Results {
		for _, e := range b.Results[i].Entropy {
			want = append(want, readEntropy{keysOf(&b.Results[i].FrameKey), e.Op.String(), e.N, e.Lower, e.Upper,
				e.Kind, e.F, e.N, e.Stage})
		}
	}
	if diff := cmp.Diff(want, rows, cmp.AllowUnexported(readEntropy{}, keys{})); diff != "" {
		t.Error(diff)
	}
}

type readMaxima struct {
	keys
	Directions string   `parquet:"directions"`
	Idx        []int32  `parquet:"idx,list"`
	ErrorBound *float64 `parquet:"error_bound"`
}

func TestMaximaRoundTrip(t *testing.T) {
	b := batches.Synthetic(batches.Spec{Topic: "points", Records: 60, Frames: 2, Points: 9, Seed: 3})
	b.Results[2].Maxima[1].ErrorBound = new(0.25)
	rows := rowsOf[readMaxima](t, fileOf(t, encodeAll(t, newEncoder(testConfig()), b), "maxima/"))
	i := 0
	for j := range b.Results {
		for _, m := range b.Results[j].Maxima {
			got := rows[i]
			if got.keys != keysOf(&b.Results[j].FrameKey) || got.Directions != m.Directions ||
				!slices.Equal(got.Idx, m.Idx) || !reflect.DeepEqual(got.ErrorBound, m.ErrorBound) {
				t.Fatalf("row %d: %+v, want %+v", i, got, m)
			}
			i++
		}
	}
	if i != len(rows) {
		t.Errorf("%d rows, want %d", len(rows), i)
	}
}

type readPoints[T float32 | float64] struct {
	shortKeys
	PointIdx  int32    `parquet:"point_idx"`
	X         T        `parquet:"x"`
	Y         T        `parquet:"y"`
	Z         *T       `parquet:"z"`
	Intensity *float32 `parquet:"intensity"`
}
