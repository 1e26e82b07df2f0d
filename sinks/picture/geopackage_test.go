package picture

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// geoPackageOf writes frames of an output to a file.
func geoPackageOf(t *testing.T, e *exported, layers []string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a ?%#b.gpkg") // a name that a URL would change
	g, err := CreateGeoPackage(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range e.results {
		r := e.results[i]
		if err := g.Add(NewFrame(&r, layers)); err != nil {
			t.Fatalf("%s: %v", e.names[i], err)
		}
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// queryer is a database or a transaction.
type queryer interface {
	Query(query string, args ...any) (*sql.Rows, error)
}

// rowsOf calls use with every row of a query.
func rowsOf(t *testing.T, db queryer, query string, use func(v []any)) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		v, at := make([]any, len(names)), make([]any, len(names))
		for i := range v {
			at[i] = &v[i]
		}
		if err := rows.Scan(at...); err != nil {
			t.Fatal(err)
		}
		use(v)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

func openGeoPackage(t *testing.T, path string) *sql.DB {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "copy.gpkg")
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(copied, data, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", copied)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// decodeGeometry returns the type and the positions of a column geom.
func decodeGeometry(t *testing.T, blob []byte) (kind uint32, positions [][]float64) {
	t.Helper()
	le := binary.LittleEndian
	if len(blob) < 13 || string(blob[:3]) != "GP\x00" || int32(le.Uint32(blob[4:])) != -1 {
		t.Fatalf("geometry %x", blob)
	}
	flags, body := blob[3], blob[8:]
	var bounds []float64
	if flags == 3 {
		for i := range 4 {
			bounds = append(bounds, math.Float64frombits(le.Uint64(body[8*i:])))
		}
		body = body[32:]
	} else if flags != 1 {
		t.Fatalf("flags %d", flags)
	}
	kind = le.Uint32(body[1:])
	dims, n := 2, 1
	if kind > wkbInSpace {
		dims = 3
	}
	rest := body[5:]
	if kind%wkbInSpace == wkbPolygon {
		if le.Uint32(rest) != 1 {
			t.Fatalf("%d rings", le.Uint32(rest))
		}
		rest = rest[4:]
	}
	if kind%wkbInSpace != wkbPoint {
		n, rest = int(le.Uint32(rest)), rest[4:]
	}
	if len(rest) != 8*dims*n {
		t.Fatalf("%d bytes for %d positions of %d numbers", len(rest), n, dims)
	}
	got := noEnvelope()
	for i := range n {
		p := make([]float64, dims)
		for d := range p {
			p[d] = math.Float64frombits(le.Uint64(rest[8*(i*dims+d):]))
		}
		got.add(p[0], p[1])
		positions = append(positions, p)
	}
	if bounds != nil && !slices.Equal(bounds, []float64{got.minX, got.maxX, got.minY, got.maxY}) {
		t.Errorf("envelope %v of %v", bounds, positions)
	}
	return kind, positions
}

// Every feature has the coordinates of the tables, bit for bit, and stands at its frame.
func TestGeoPackageHasTheFeatures(t *testing.T) {
	e := hostile(t)
	layers := []string{LayerPoints, LayerHull, LayerMaxima, LayerTriangles}
	db := openGeoPackage(t, geoPackageOf(t, e, layers))
	got := map[string][]string{}
	for table, columns := range map[string]string{"hulls": "n_hull", "hulls_degenerate": "status",
		"maxima": "point_idx", "triangles": `tri_id || " " || v0 || " " || v1 || " " || v2`, "points": "point_idx"} {
		query := `SELECT geom, "offset", sequence, ` + columns + " FROM " + table + " ORDER BY fid"
		rowsOf(t, db, query, func(v []any) {
			geom := "NULL"
			if blob, ok := v[0].([]byte); ok {
				kind, positions := decodeGeometry(t, blob)
				geom = fmt.Sprint(kind, positions)
			}
			got[table] = append(got[table], fmt.Sprint(v[1:], " ", geom))
		})
	}
	want := map[string][]string{}
	features := 0
	for i := range e.results {
		s := e.shown(i)
		add := func(table string, more any, kind uint32, positions ...[]float64) {
			geom := "NULL"
			if len(positions) > 0 {
				if len(positions[0]) == 3 {
					kind += wkbInSpace
				}
				geom = fmt.Sprint(kind, positions)
			}
			want[table] = append(want[table], fmt.Sprint([]any{int64(i), s.Sequence, more}, " ", geom))
			features++
		}
		var hull [][]float64
		for k := range s.Hull.X {
			hull = append(hull, []float64{s.Hull.X[k], s.Hull.Y[k]})
		}
		switch n := int64(len(hull)); n {
		case 0:
			add("hulls", n, 0)
		case 1, 2:
			add("hulls", n, 0)
			add("hulls_degenerate", string(s.Hull.Status), uint32(n), hull...)
		default:
			add("hulls", n, wkbPolygon, append(hull, hull[0])...)
		}
		for _, m := range s.Maxima {
			for _, k := range m.Idx {
				add("maxima", int64(k), wkbPoint, positions(s, []int32{k})...)
			}
		}
		for k := 0; k < len(s.Triangles); k += 3 {
			v := s.Triangles[k : k+3]
			add("triangles", fmt.Sprint(k/3, v[0], v[1], v[2]), wkbPolygon,
				positions(s, []int32{v[0], v[1], v[2], v[0]})...)
		}
		for _, k := range s.Points.Idx {
			add("points", int64(k), wkbPoint, positions(s, []int32{k})...)
		}
	}
	for table := range want {
		if !slices.Equal(got[table], want[table]) {
			t.Errorf("%s: %d rows, want %d", table, len(got[table]), len(want[table]))
			for i := range min(len(got[table]), len(want[table])) {
				if got[table][i] != want[table][i] {
					t.Fatalf("%s, row %d: %s, want %s", table, i, got[table][i], want[table][i])
				}
			}
		}
	}
	if len(want) != 5 || features < 1000 {
		t.Errorf("%d features of %d tables", features, len(want))
	}
}

// The file says what it is, as the format asks, and the same frames give the same bytes.
func TestGeoPackageIsOne(t *testing.T) {
	e := hostile(t)
	layers := []string{LayerPoints, LayerHull, LayerMaxima, LayerTriangles}
	path := geoPackageOf(t, e, layers)
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(geoPackageOf(t, e, layers))
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("two files of the same frames differ, %v", err)
	}
	if string(first[:16]) != "SQLite format 3\x00" || string(first[68:72]) != "GPKG" ||
		binary.BigEndian.Uint32(first[60:]) != 10300 {
		t.Errorf("header %x", first[:100])
	}
	db := openGeoPackage(t, path)
	for query, want := range map[string]string{
		"PRAGMA integrity_check":     "[ok]",
		"PRAGMA foreign_key_check":   "",
		"SELECT count(*) FROM hulls": fmt.Sprintf("[%d]", len(e.results)),
		"SELECT srs_id, organization, definition FROM gpkg_spatial_ref_sys WHERE srs_id < 1 ORDER BY 1": "[-1 NONE " +
			"undefined][0 NONE undefined]",
		"SELECT organization, organization_coordsys_id FROM gpkg_spatial_ref_sys WHERE srs_id = 4326": "[EPSG 4326]",
		"SELECT table_name, data_type, srs_id FROM gpkg_contents ORDER BY 1": "[frames attributes <nil>]" +
			"[hulls features -1][hulls_degenerate features -1][layer_styles attributes 0][maxima features -1]" +
			"[points features -1][triangles features -1]",
		"SELECT table_name, geometry_type_name, srs_id, z, m FROM gpkg_geometry_columns ORDER BY 1": "[hulls POLYGON " +
			"-1 0 0][hulls_degenerate GEOMETRY -1 0 0][maxima POINT -1 2 0][points POINT -1 2 0]" +
			"[triangles POLYGON -1 2 0]",
		"SELECT DISTINCT last_change FROM gpkg_contents": "[1970-01-01 00:00:01 +0000 UTC]",
	} {
		text := ""
		rowsOf(t, db, query, func(v []any) { text += fmt.Sprint(v) })
		if text != want {
			t.Errorf("%s: %s, want %s", query, text, want)
		}
	}
}

// A file that is there is not written over: the caller moves a new one into place.
func TestGeoPackageIsNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateGeoPackage(path); !os.IsExist(err) {
		t.Error(err)
	}
	if _, err := CreateGeoPackage(filepath.Join(path, "below")); err == nil {
		t.Error("a file below a file")
	}
}
