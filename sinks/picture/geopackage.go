package picture

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	_ "modernc.org/sqlite" // driver "sqlite"
)

// GeoPackage is a file of the OGC's GeoPackage 1.3 that is being written: tables of
// features for QGIS and other GIS programs, in the undefined Cartesian reference system,
// each with a spatial index and a style, and a table frames without geometry. A table is
// made when the first row comes. The same frames give the same bytes. Its memory grows by
// half a byte a feature. A GeoPackage is not for concurrent use.
type GeoPackage struct {
	db     *sql.DB
	conn   *sql.Conn
	tables map[string]*featureTable
	frames int64
	newest int64 // latest time of a frame, nanoseconds since 1970
	failed bool  // a part begun by Add is not whole
}

// background is the context of all statements: one that can end would cost a goroutine a
// statement. A caller that is told to stop ends between frames.
var background = context.Background()

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
  CONSTRAINT fk_gc_srs FOREIGN KEY (srs_id) REFERENCES gpkg_spatial_ref_sys(srs_id));
CREATE TABLE gpkg_extensions (
  table_name TEXT, column_name TEXT, extension_name TEXT NOT NULL, definition TEXT NOT NULL, scope TEXT NOT NULL,
  CONSTRAINT ge_tce UNIQUE (table_name, column_name, extension_name));`

// Add writes the layers of a frame that are shown. Check must have passed.
func (g *GeoPackage) Add(s *Frame) error {
	err := g.add(s)
	g.failed = g.failed || err != nil
	return err
}

func (g *GeoPackage) add(s *Frame) error {
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
	return t.feature(v, a.key, more)
}

// row writes a row of a table without geometry.
func (g *GeoPackage) row(table string, values ...any) error {
	t, err := g.table(table)
	if err != nil {
		return err
	}
	return t.rows.add(values...)
}

// table returns a table, which it makes when it is asked for first.
func (g *GeoPackage) table(name string) (*featureTable, error) {
	if t := g.tables[name]; t != nil {
		return t, nil
	}
	t, err := newFeatureTable(g.conn, name)
	if t != nil {
		g.tables[name] = t
	}
	return t, err
}

// Close writes what is left, unless Add failed, and closes the file. It is called once.
func (g *GeoPackage) Close() error {
	var err error
	if !g.failed {
		err = g.finish()
	}
	for _, t := range g.tables {
		err = errors.Join(err, t.close())
	}
	return errors.Join(err, g.conn.Close(), g.db.Close())
}

func (g *GeoPackage) finish() error {
	styled := false
	for _, name := range []string{"frames", "hulls", "hulls_degenerate", "maxima", "triangles", "points"} {
		if t := g.tables[name]; t != nil {
			if err := g.finishTable(t); err != nil {
				return fmt.Errorf("table %s: %w", name, err)
			}
			styled = styled || t.geometry != ""
		}
	}
	if styled {
		if err := g.addStyles(); err != nil {
			return fmt.Errorf("table layer_styles: %w", err)
		}
	}
	_, err := g.conn.ExecContext(background, "COMMIT")
	return err
}

// insertContents tells the format's list of tables of one. The last change of all is the
// time of the newest frame.
func (g *GeoPackage) insertContents(name, kind, says string, srs any, bounds [4]any) error {
	_, err := g.conn.ExecContext(background, "INSERT INTO gpkg_contents VALUES (?,?,?,?,?,?,?,?,?,?)", name, kind, name,
		says, isoTime(g.newest), bounds[0], bounds[1], bounds[2], bounds[3], srs)
	return err
}

// finishTable writes the rows and the index entries that wait, and says in the format's own
// tables what the table has.
func (g *GeoPackage) finishTable(t *featureTable) error {
	if err := t.rows.flush(); err != nil {
		return err
	}
	if t.geometry == "" {
		return g.insertContents(t.name, "attributes", contentsOf[t.name].says, nil, [4]any{})
	}
	b := [4]any{}
	if !t.bounds.isEmpty() {
		b = [4]any{t.bounds.minX, t.bounds.minY, t.bounds.maxX, t.bounds.maxY}
	}
	if err := g.insertContents(t.name, "features", contentsOf[t.name].says, -1, b); err != nil {
		return err
	}
	z := 0 // 0: no z, 1: all have z, 2: some
	switch {
	case t.inSpace && t.inPlane:
		z = 2
	case t.inSpace:
		z = 1
	}
	if _, err := g.conn.ExecContext(background, "INSERT INTO gpkg_geometry_columns VALUES (?,'geom',?,-1,?,0)", t.name,
		t.geometry, z); err != nil {
		return err
	}
	return t.index.finish()
}
