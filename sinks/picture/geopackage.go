package picture

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	_ "modernc.org/sqlite" // driver "sqlite"
)

// GeoPackage is a file of the OGC's GeoPackage 1.3 that is being written: tables of
// features for QGIS and other GIS programs, in the undefined Cartesian reference system,
// and a table frames without geometry. A table is made when the first row comes. The
// same frames give the same bytes. A GeoPackage is not for concurrent use.
type GeoPackage struct {
	db     *sql.DB
	conn   *sql.Conn
	tables map[string]*featureTable
	frames int64
	newest int64 // latest time of a frame, nanoseconds since 1970
}

// featureTable is a table of the file, and what gpkg_contents says of it.
type featureTable struct {
	name, geometry    string // geometry is the type, empty for a table without
	columns           int
	insert            *sql.Stmt // of batch rows
	pending           []any
	bounds            envelope
	inPlane, inSpace  bool // some geometry has no z; has z
	insertOne, begins string
}

// background is the context of all statements: one that can end would cost a goroutine a
// statement. A caller that is told to stop ends between frames.
var background = context.Background()

// batch is the number of rows of one insertion: a statement costs more than a row.
const batch = 32

// The columns that tell the frame of a feature. Times are of milliseconds, as the format
// has them; table frames has the nanoseconds.
const featureKey = `frame INTEGER NOT NULL, sequence TEXT, frame_id INTEGER, ts DATETIME, "offset" INTEGER, ` +
	`"index" INTEGER`

// contentsOf are the tables: what they hold, the type of the geometry, the columns.
var contentsOf = map[string]struct{ says, geometry, columns string }{
	"frames": {"frames of the file", "", `topic TEXT, partition INTEGER, "offset" INTEGER, "index" INTEGER, ` +
		`dataset TEXT, sequence TEXT, sensor TEXT, frame_id INTEGER, ts DATETIME, ts_ns INTEGER, n_points INTEGER, ` +
		`n_dropped INTEGER`},
	"hulls": {"convex hull of a frame; NULL where it is degenerate", "POLYGON", featureKey +
		", status TEXT, n_points INTEGER, n_hull INTEGER, area DOUBLE, perimeter DOUBLE, error_bound DOUBLE"},
	"hulls_degenerate": {"hulls that are a point or a line", "GEOMETRY", featureKey +
		", status TEXT, perimeter DOUBLE"},
	"maxima": {"maximal points", "POINT", featureKey + ", directions TEXT, point_idx INTEGER"},
	"triangles": {"triangles of the Delaunay mesh", "POLYGON", featureKey +
		", tri_id INTEGER, v0 INTEGER, v1 INTEGER, v2 INTEGER"},
	"points": {"points of a frame", "POINT", featureKey + ", point_idx INTEGER, intensity DOUBLE"},
}

// CreateGeoPackage makes a file, which must not exist. After an error, and after an
// error of Add or Close, the caller removes it: nothing in it is durable before Close.
func CreateGeoPackage(path string) (*GeoPackage, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: path}).String())
	if err != nil {
		return nil, err
	}
	g := &GeoPackage{db: db, tables: map[string]*featureTable{}}
	if g.conn, err = db.Conn(background); err == nil {
		_, err = g.conn.ExecContext(background, geoPackageSchema)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return g, nil
}

// geoPackageSchema is what every GeoPackage has. The file is nobody's before it is
// whole, so it needs no journal.
const geoPackageSchema = `
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA application_id = 0x47504B47;
PRAGMA user_version = 10300;
BEGIN;
CREATE TABLE gpkg_spatial_ref_sys (
  srs_name TEXT NOT NULL, srs_id INTEGER PRIMARY KEY, organization TEXT NOT NULL,
  organization_coordsys_id INTEGER NOT NULL, definition TEXT NOT NULL, description TEXT);
INSERT INTO gpkg_spatial_ref_sys VALUES
  ('Undefined Cartesian SRS', -1, 'NONE', -1, 'undefined', 'undefined Cartesian coordinate reference system'),
  ('Undefined geographic SRS', 0, 'NONE', 0, 'undefined', 'undefined geographic coordinate reference system'),
  ('WGS 84 geodetic', 4326, 'EPSG', 4326, 'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,` +
	`298.257223563,AUTHORITY["EPSG","7030"]],AUTHORITY["EPSG","6326"]],PRIMEM["Greenwich",0,AUTHORITY["EPSG",` +
	`"8901"]],UNIT["degree",0.0174532925199433,AUTHORITY["EPSG","9122"]],AXIS["Latitude",NORTH],` +
	`AXIS["Longitude",EAST],AUTHORITY["EPSG","4326"]]', 'longitude and latitude in degrees');
CREATE TABLE gpkg_contents (
  table_name TEXT NOT NULL PRIMARY KEY, data_type TEXT NOT NULL, identifier TEXT UNIQUE, description TEXT DEFAULT '',
  last_change DATETIME NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')), min_x DOUBLE, min_y DOUBLE,
  max_x DOUBLE, max_y DOUBLE, srs_id INTEGER,
  CONSTRAINT fk_gc_r_srs_id FOREIGN KEY (srs_id) REFERENCES gpkg_spatial_ref_sys(srs_id));
CREATE TABLE gpkg_geometry_columns (
  table_name TEXT NOT NULL, column_name TEXT NOT NULL, geometry_type_name TEXT NOT NULL, srs_id INTEGER NOT NULL,
  z TINYINT NOT NULL, m TINYINT NOT NULL,
  CONSTRAINT pk_geom_cols PRIMARY KEY (table_name, column_name), CONSTRAINT uk_gc_table_name UNIQUE (table_name),
  CONSTRAINT fk_gc_tn FOREIGN KEY (table_name) REFERENCES gpkg_contents(table_name),
  CONSTRAINT fk_gc_srs FOREIGN KEY (srs_id) REFERENCES gpkg_spatial_ref_sys(srs_id));`

// Add writes the layers of a frame that are shown. Check must have passed.
func (g *GeoPackage) Add(s *Frame) error {
	g.frames++
	g.newest = max(g.newest, s.TimeNs)
	moment := isoTime(s.TimeNs)
	if err := g.row("frames", s.Topic, s.Partition, s.Offset, s.Index, s.Dataset, s.Sequence, s.Sensor, s.FrameID,
		moment, s.TimeNs, s.NPoints, s.NDropped); err != nil {
		return err
	}
	a := frameRows{GeoPackage: g, Frame: s, key: []any{g.frames, s.Sequence, s.FrameID, moment, s.Offset, s.Index}}
	for _, layer := range []struct {
		name string
		add  func() error
	}{{LayerHull, a.hull}, {LayerMaxima, a.maxima}, {LayerTriangles, a.triangles}, {LayerPoints, a.points}} {
		if s.layers[layer.name] {
			if err := layer.add(); err != nil {
				return err
			}
		}
	}
	return nil
}

// isoTime is a time as the format's DATETIME has it.
func isoTime(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000Z") }

// frameRows writes the rows of one frame.
type frameRows struct {
	*GeoPackage
	*Frame
	key []any
}

// feature writes a row: the geometry, the frame's key, and more columns.
func (a *frameRows) feature(table string, v geometry, more ...any) error {
	t, err := a.table(table)
	if err != nil {
		return err
	}
	var blob any
	if v.bytes != nil {
		blob = v.bytes
		t.bounds.join(v.envelope)
		t.inSpace, t.inPlane = t.inSpace || v.inSpace, t.inPlane || !v.inSpace
	}
	t.pending = append(append(append(t.pending, blob), a.key...), more...)
	return a.flushFull(t)
}

// row writes a row of a table without geometry.
func (g *GeoPackage) row(table string, values ...any) error {
	t, err := g.table(table)
	if err != nil {
		return err
	}
	t.pending = append(t.pending, values...)
	return g.flushFull(t)
}

func (g *GeoPackage) flushFull(t *featureTable) error {
	if len(t.pending) < batch*t.columns {
		return nil
	}
	_, err := t.insert.ExecContext(background, t.pending...)
	t.pending = t.pending[:0]
	return err
}

// table returns a table, which it makes when it is asked for first.
func (g *GeoPackage) table(name string) (*featureTable, error) {
	if t := g.tables[name]; t != nil {
		return t, nil
	}
	is := contentsOf[name]
	names := columnNames(is.columns)
	columns := "fid INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, "
	if is.geometry != "" {
		columns += "geom " + is.geometry + ", "
		names = append([]string{"geom"}, names...)
	}
	if _, err := g.conn.ExecContext(background, "CREATE TABLE "+name+" ("+columns+is.columns+")"); err != nil {
		return nil, err
	}
	t := &featureTable{name: name, geometry: is.geometry, columns: len(names), bounds: noEnvelope()}
	t.insertOne = "(" + strings.Repeat("?,", len(names)-1) + "?)"
	t.begins = "INSERT INTO " + name + " (" + strings.Join(names, ", ") + ") VALUES "
	var err error
	t.insert, err = g.conn.PrepareContext(background, t.begins+strings.Repeat(t.insertOne+",", batch-1)+t.insertOne)
	g.tables[name] = t
	return t, err
}

// columnNames returns the names of a list of columns with types.
func columnNames(columns string) []string {
	var names []string
	for column := range strings.SplitSeq(columns, ", ") {
		name, _, _ := strings.Cut(column, " ")
		names = append(names, name)
	}
	return names
}

// Close writes what is left and closes the file. It is called once.
func (g *GeoPackage) Close() error {
	err := g.finish()
	for _, t := range g.tables {
		if t.insert != nil {
			err = errors.Join(err, t.insert.Close())
		}
	}
	return errors.Join(err, g.conn.Close(), g.db.Close())
}

func (g *GeoPackage) finish() error {
	for _, name := range []string{"frames", "hulls", "hulls_degenerate", "maxima", "triangles", "points"} {
		if t := g.tables[name]; t != nil {
			if err := g.finishTable(t); err != nil {
				return fmt.Errorf("table %s: %w", name, err)
			}
		}
	}
	_, err := g.conn.ExecContext(background, "COMMIT")
	return err
}

// finishTable writes the rows that wait, and says in the format's own tables what the
// table has. Its last change is the time of the newest frame.
func (g *GeoPackage) finishTable(t *featureTable) error {
	if rows := len(t.pending) / t.columns; rows > 0 {
		text := t.begins + strings.Repeat(t.insertOne+",", rows-1) + t.insertOne
		if _, err := g.conn.ExecContext(background, text, t.pending...); err != nil {
			return err
		}
	}
	kind, srs, b := "attributes", any(nil), [4]any{}
	if t.geometry != "" {
		kind, srs = "features", -1
		if !t.bounds.isEmpty() {
			b = [4]any{t.bounds.minX, t.bounds.minY, t.bounds.maxX, t.bounds.maxY}
		}
	}
	const contents = "INSERT INTO gpkg_contents VALUES (?,?,?,?,?,?,?,?,?,?)"
	if _, err := g.conn.ExecContext(background, contents, t.name, kind, t.name, contentsOf[t.name].says,
		isoTime(g.newest), b[0], b[1], b[2], b[3], srs); err != nil || kind == "attributes" {
		return err
	}
	z := 0 // 0: no z, 1: all have z, 2: some
	switch {
	case t.inSpace && t.inPlane:
		z = 2
	case t.inSpace:
		z = 1
	}
	_, err := g.conn.ExecContext(background, "INSERT INTO gpkg_geometry_columns VALUES (?,'geom',?,-1,?,0)", t.name,
		t.geometry, z)
	return err
}
