package picture

import (
	"database/sql"
	"database/sql/driver"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"modernc.org/sqlite"

	"entropipe/schemas"
	"entropipe/schemas/codec"
)

// geoPackageOfResults writes frames to a file.
func geoPackageOfResults(t *testing.T, layers []string, results ...schemas.Result) *sql.DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.gpkg")
	g, err := CreateGeoPackage(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range results {
		if err := g.Add(NewFrame(&results[i], layers)); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	return openGeoPackage(t, path)
}

// numbers returns the first column of a query.
func numbers(t *testing.T, db *sql.DB, query string) (all []int64) {
	t.Helper()
	rowsOf(t, db, query, func(v []any) { all = append(all, v[0].(int64)) })
	return all
}

// inWindow is a query for the features of a table that a window touches.
func inWindow(table string, minX, maxX, minY, maxY float64) string {
	return fmt.Sprintf("SELECT fid FROM %s WHERE fid IN (SELECT id FROM rtree_%[1]s_geom WHERE maxx >= %v AND "+
		"minx <= %v AND maxy >= %v AND miny <= %v) ORDER BY fid", table, minX, maxX, minY, maxY)
}

// soundIndex fails unless SQLite finds the index of a table whole.
func soundIndex(t *testing.T, db *sql.DB, table string) {
	t.Helper()
	whole, err := db.Begin() // otherwise SQLite locks the file for each entry
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Rollback()
	rowsOf(t, whole, "SELECT rtreecheck('rtree_"+table+"_geom')", func(v []any) {
		if v[0] != "ok" {
			t.Errorf("index of %s: %v", table, v[0])
		}
	})
}

// Through the index of a layer come the features of a window and no others, for trees of
// one node, of two and of three levels, and for several parts.
func TestGeoPackageIndexFindsTheFeatures(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: nothing for the race detector")
	}
	t.Parallel()
	for _, n := range []int{0, 1, nodeCells, nodeCells + 1, nodeCells * nodeCells, nodeCells*nodeCells + 1,
		partOfIndex - 1, partOfIndex, partOfIndex + 1} {
		random := rand.New(rand.NewPCG(7, uint64(n)))
		p := &schemas.Points{}
		for i := range n {
			x, y := random.NormFloat64()*50, random.NormFloat64()*50
			p.Idx = append(p.Idx, int32(i))
			p.X64, p.Y64 = append(p.X64, x), append(p.Y64, y) // float32 does not hold them
		}
		db := geoPackageOfResults(t, []string{LayerPoints}, schemas.Result{NPoints: int32(n), Points: p})
		if n == 0 {
			if n := numbers(t, db, "SELECT count(*) FROM gpkg_contents WHERE table_name = 'points'"); n[0] != 1 {
				t.Errorf("no points: %d tables of them", n[0])
			}
		}
		soundIndex(t, db, "points")
		windows := [][4]float64{{-1e9, 1e9, -1e9, 1e9}, {200, 1e9, 300, 1e9}}
		for range 20 {
			x, y := random.NormFloat64()*50, random.NormFloat64()*50
			windows = append(windows, [4]float64{x, x + 8, y, y + 5})
		}
		if n > 0 { // a window that is one point, whose float32 lies beside it
			windows = append(windows, [4]float64{p.X64[n/2], p.X64[n/2], p.Y64[n/2], p.Y64[n/2]})
		}
		for _, w := range windows {
			inside := map[int64]bool{}
			for _, fid := range numbers(t, db, inWindow("points", w[0], w[1], w[2], w[3])) {
				inside[fid] = true
			}
			for i := range n {
				const slack = 1e-4 // the index has float32, rounded outwards
				x, y := p.X64[i], p.Y64[i]
				if x >= w[0] && x <= w[1] && y >= w[2] && y <= w[3] && !inside[int64(i+1)] {
					t.Fatalf("%d points: window %v misses point %d at %v, %v", n, w, i, x, y)
				}
				if inside[int64(i+1)] && (x < w[0]-slack || x > w[1]+slack || y < w[2]-slack || y > w[3]+slack) {
					t.Fatalf("%d points: window %v has point %d at %v, %v", n, w, i, x, y)
				}
			}
		}
	}
}

// Each layer has an index, also of hulls without a polygon and of coordinates at the ends
// of the numbers.
func TestGeoPackageIndexesEveryLayer(t *testing.T) {
	e := hostile(t)
	db := openGeoPackage(t, geoPackageOf(t, e, []string{LayerPoints, LayerHull, LayerMaxima, LayerTriangles}))
	layers := map[string]bool{}
	rowsOf(t, db, "SELECT table_name, column_name, extension_name, scope FROM gpkg_extensions", func(v []any) {
		if fmt.Sprint(v[1:]) != "[geom gpkg_rtree_index write-only]" {
			t.Errorf("extension %v", v)
		}
		layers[fmt.Sprint(v[0])] = true
	})
	for _, layer := range []string{"hulls", "hulls_degenerate", "maxima", "triangles", "points"} {
		if !layers[layer] {
			t.Errorf("%s has no index", layer)
			continue
		}
		soundIndex(t, db, layer)
		want := numbers(t, db, "SELECT fid FROM "+layer+" WHERE geom NOTNULL ORDER BY fid")
		if got := numbers(t, db, inWindow(layer, -math.MaxFloat64, math.MaxFloat64, -math.MaxFloat64,
			math.MaxFloat64)); !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("%s: %d features by the index, %d with a geometry", layer, len(got), len(want))
		}
	}
}

// geometryFunctions gives SQLite the functions of a GIS program that the triggers call.
var geometryFunctions = sync.OnceFunc(func() {
	register := func(name string, of func(x, y float64) driver.Value) {
		sqlite.MustRegisterDeterministicScalarFunction(name, 1,
			func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
				b, ok := args[0].([]byte)
				if !ok || len(b) < 29 || b[3] != 1 {
					return nil, fmt.Errorf("%s of %v", name, args[0])
				}
				var xy [2]float64
				for i := range xy {
					for k := range 8 {
						xy[i] = math.Float64frombits(math.Float64bits(xy[i]) | uint64(b[13+8*i+k])<<(8*k))
					}
				}
				return of(xy[0], xy[1]), nil
			})
	}
	register("ST_IsEmpty", func(x, _ float64) driver.Value { return int64(0) })
	for _, name := range []string{"ST_MinX", "ST_MaxX"} {
		register(name, func(x, _ float64) driver.Value { return x })
	}
	for _, name := range []string{"ST_MinY", "ST_MaxY"} {
		register(name, func(_, y float64) driver.Value { return y })
	}
})

// The index follows when a GIS program changes features.
func TestGeoPackageIndexFollowsChanges(t *testing.T) {
	geometryFunctions()
	p := &schemas.Points{}
	for i := range 200 {
		p.Idx, p.X64, p.Y64 = append(p.Idx, int32(i)), append(p.X64, float64(i)), append(p.Y64, 0)
	}
	db := geoPackageOfResults(t, []string{LayerPoints}, schemas.Result{NPoints: 200, Points: p})
	db.SetMaxOpenConns(1)
	at := func(x, y float64) []byte { return newGeometry(wkbPoint, false, corner{x: x, y: y}).bytes }
	do := func(statement string, args ...any) {
		t.Helper()
		if _, err := db.Exec(statement, args...); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		soundIndex(t, db, "points")
	}
	do("INSERT INTO points (fid, frame, geom) VALUES (1000, 1, ?)", at(5, 500))
	do("INSERT INTO points (fid, frame) VALUES (1001, 1)")
	do("UPDATE points SET geom = ? WHERE fid = 1", at(6, 500))
	do("UPDATE points SET geom = NULL WHERE fid = 2")
	do("UPDATE points SET fid = 2000 WHERE fid = 3")
	do("UPDATE points SET fid = 2001, geom = NULL WHERE fid = 4")
	do("UPDATE points SET geom = ? WHERE fid = 1001", at(7, 500))
	do("DELETE FROM points WHERE fid BETWEEN 5 AND 9")
	if got, want := numbers(t, db, inWindow("points", 0, 10, 400, 600)), []int64{1, 1000, 1001}; !slices.Equal(got,
		want) {
		t.Errorf("features above: %v, want %v", got, want)
	}
	if got, want := numbers(t, db, inWindow("points", 0, 11, -1, 1)), []int64{10, 11, 12, 2000}; !slices.Equal(got,
		want) {
		t.Errorf("features left: %v, want %v", got, want)
	}
}

// Points have the columns that some frame has; frames without them, and values that the
// sensor did not give, are NULL.
func TestGeoPackageHasTheColumns(t *testing.T) {
	frames := drive()
	for i := range frames {
		frames[i].Points.Ring = nil
	}
	no := int32(codec.NoInt32)
	frames[1].Points.Ring, frames[1].Points.Return = []int32{5, no, 7, 8}, []int32{1, 2, 1, 1}
	frames[3].Points.Red, frames[3].Points.Green = []int32{1, 2, 3, 4}, []int32{5, 6, 7, 8}
	frames[3].Points.Blue, frames[3].Points.Label = []int32{9, 10, 11, 12}, []int32{20, 21, 22, 23}
	frames[3].Points.Laser, frames[4].Points.Ring = []int32{2, 2, 2, 2}, []int32{0, 1, 2, 3}
	frames[4].Points.Elongation = []float32{.5, float32(math.NaN()), 0, 1}
	frames[5].Points.TOffsetNs = []int64{codec.NoInt64, -1, 0, 1 << 60}
	db := geoPackageOfResults(t, []string{LayerPoints}, frames...)
	text := func(v any) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprint(v)
	}
	value := func(v []int32, k int) string {
		if v == nil || v[k] == no {
			return "-"
		}
		return fmt.Sprint(v[k])
	}
	var got, want []string
	rowsOf(t, db, `SELECT "offset", point_idx, intensity, ring, "return", laser, label, red, green, blue, elongation,
		t_offset_ns FROM points ORDER BY fid`, func(v []any) {
		row := ""
		for _, v := range v {
			row += text(v) + " "
		}
		got = append(got, row)
	})
	for i := range frames {
		p := frames[i].Points
		for k := range p.Idx {
			row := fmt.Sprint(i, p.Idx[k], p.Intensity[k], " ")
			for _, column := range p.Int32s() {
				row += value(*column, k) + " "
			}
			elongation, after := "-", "-"
			if p.Elongation != nil && p.Elongation[k] == p.Elongation[k] {
				elongation = fmt.Sprint(p.Elongation[k])
			}
			if v := p.TOffsetNs; v != nil && v[k] != codec.NoInt64 {
				after = fmt.Sprint(v[k])
			}
			want = append(want, row+elongation+" "+after+" ")
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("points are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	soundIndex(t, db, "points")
	plain := drive()[:1]
	plain[0].Points.Ring, plain[0].Points.TOffsetNs = nil, nil
	if n := len(numbers(t, geoPackageOfResults(t, []string{LayerPoints}, plain...),
		"SELECT cid FROM pragma_table_info('points')")); n != 10 {
		t.Errorf("points without extra columns have %d columns, want 10", n)
	}
}

// Each layer has a style that is well-formed XML and the default one; points are coloured
// by their height where they have one.
func TestGeoPackageHasStyles(t *testing.T) {
	flat := drive()[:1]
	flat[0].Points.Z32 = nil
	for name, c := range map[string]struct {
		frames []schemas.Result
		ranges int
	}{"with z": {drive(), len(inkHeights)}, "without z": {flat, 0}} {
		db := geoPackageOfResults(t, allLayers, c.frames...)
		styles := map[string]string{}
		const query = "SELECT f_table_name, f_table_schema, f_geometry_column, useAsDefault, styleQML FROM layer_styles"
		rowsOf(t, db, query, func(v []any) {
			if fmt.Sprint(v[1:4]) != "[ geom 1]" {
				t.Errorf("%s: style of %v: %v", name, v[0], v[1:4])
			}
			styles[v[0].(string)] = v[4].(string)
		})
		for _, layer := range []string{"hulls", "maxima", "triangles", "points"} {
			elements := map[string]int{}
			d := xml.NewDecoder(strings.NewReader(styles[layer]))
			for {
				token, err := d.Token()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatalf("%s: style of %s: %v", name, layer, err)
				}
				if start, ok := token.(xml.StartElement); ok {
					elements[start.Name.Local]++
				}
			}
			ranges := 0
			if layer == "points" {
				ranges = c.ranges
			}
			if elements["renderer-v2"] != 1 || elements["symbol"] != max(1, ranges) || elements["range"] != ranges {
				t.Errorf("%s: style of %s has %v", name, layer, elements)
			}
		}
	}
}

// A sample of any length is small, and its quantiles are near those of the whole.
func TestSampleKeepsQuantiles(t *testing.T) {
	for _, n := range []int{0, 1, 2, sampleSize - 1, sampleSize, 300001} {
		var s sample
		for i := range n {
			s.add(float64((i * 7919) % n))
		}
		low, high := s.between(.1, .9)
		if n == 0 {
			if low != 0 || high != 0 {
				t.Errorf("nothing lies between %v and %v", low, high)
			}
			continue
		}
		if len(s.values) >= sampleSize || math.Abs(low/float64(n)-.1) > .02+1/float64(n) ||
			math.Abs(high/float64(n)-.9) > .02+1/float64(n) {
			t.Errorf("%d values: %d kept, from %v to %v", n, len(s.values), low, high)
		}
	}
}
