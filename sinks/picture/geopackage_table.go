package picture

import (
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"
)

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

// rowWriter inserts rows into a table, many with one statement.
type rowWriter struct {
	conn        *sql.Conn
	columns     int
	begins, one string
	insert      *sql.Stmt // of batch rows
	pending     []any
}

func newRowWriter(conn *sql.Conn, table string, columns []string) (*rowWriter, error) {
	w := &rowWriter{conn: conn, columns: len(columns), one: "(" + strings.Repeat("?,", len(columns)-1) + "?)",
		begins: "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES "}
	var err error
	w.insert, err = conn.PrepareContext(background, w.statement(batch))
	if err != nil {
		return nil, err
	}
	return w, nil
}

// statement returns the insertion of some rows.
func (w *rowWriter) statement(rows int) string {
	return w.begins + strings.Repeat(w.one+",", rows-1) + w.one
}

// add writes a row, or keeps it for the next statement. It keeps the values, not the slice.
func (w *rowWriter) add(values ...any) error {
	w.pending = append(w.pending, values...)
	if len(w.pending) < batch*w.columns {
		return nil
	}
	_, err := w.insert.ExecContext(background, w.pending...)
	w.pending = w.pending[:0]
	return err
}

// flush writes the rows that wait.
func (w *rowWriter) flush() error {
	rows := len(w.pending) / w.columns
	if rows == 0 {
		return nil
	}
	_, err := w.conn.ExecContext(background, w.statement(rows), w.pending...)
	w.pending = w.pending[:0]
	return err
}

func (w *rowWriter) close() error {
	if w == nil {
		return nil
	}
	return w.insert.Close()
}

// featureTable is a table of the file, and what gpkg_contents says of it.
type featureTable struct {
	name, geometry   string // geometry is the type, empty for a table without
	names            []string
	extra            []string // columns that frames added, the last ones of names
	rows             *rowWriter
	fid              int64         // of the newest row
	index            *spatialIndex // nil without geometry
	bounds           envelope
	inPlane, inSpace bool // some geometry has no z; has z
	heights          sample
}

// newFeatureTable makes a table of contentsOf.
func newFeatureTable(conn *sql.Conn, name string) (*featureTable, error) {
	is := contentsOf[name]
	t := &featureTable{name: name, geometry: is.geometry, names: columnNames(is.columns), bounds: noEnvelope()}
	columns := "fid INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, "
	if is.geometry != "" {
		columns += "geom " + is.geometry + ", "
		t.names = append([]string{"geom"}, t.names...)
	}
	if _, err := conn.ExecContext(background, "CREATE TABLE "+name+" ("+columns+is.columns+")"); err != nil {
		return nil, err
	}
	var err error
	if t.rows, err = newRowWriter(conn, name, t.names); err == nil && is.geometry != "" {
		t.index, err = newSpatialIndex(conn, name)
	}
	return t, err
}

// feature writes a row. more are the columns behind the key; the last of them may lack.
func (t *featureTable) feature(v geometry, key, more []any) error {
	t.fid++
	var blob any
	if v.bytes != nil {
		blob = v.bytes
		t.bounds.join(v.envelope)
		t.inSpace, t.inPlane = t.inSpace || v.inSpace, t.inPlane || !v.inSpace
		if err := t.index.add(t.fid, v.envelope); err != nil {
			return err
		}
	}
	t.rows.pending = append(append(t.rows.pending, blob), key...)
	return t.rows.add(more...)
}

// addColumn adds a column, which is NULL in the rows that are there.
func (t *featureTable) addColumn(name, kind string) error {
	conn := t.rows.conn
	if err := errors.Join(t.rows.flush(), t.rows.close()); err != nil {
		return err
	}
	if _, err := conn.ExecContext(background, "ALTER TABLE "+t.name+" ADD COLUMN "+name+" "+kind); err != nil {
		return err
	}
	t.names, t.extra = append(t.names, name), append(t.extra, name)
	rows, err := newRowWriter(conn, t.name, t.names)
	if err == nil {
		t.rows = rows
	}
	return err
}

func (t *featureTable) close() error { return errors.Join(t.rows.close(), t.index.close()) }

// columnNames returns the names of a list of columns with types.
func columnNames(columns string) []string {
	var names []string
	for column := range strings.SplitSeq(columns, ", ") {
		name, _, _ := strings.Cut(column, " ")
		names = append(names, name)
	}
	return names
}

// sample keeps values at equal distances of a sequence of any length. The zero value is
// empty.
type sample struct {
	values []float64
	stride int // one value in stride is kept
	seen   int
}

// sampleSize is the number of values at which a sample drops every second one.
const sampleSize = 8192

func (s *sample) add(v float64) {
	s.stride = max(s.stride, 1)
	if s.seen%s.stride == 0 {
		s.values = append(s.values, v)
	}
	s.seen++
	if len(s.values) == sampleSize {
		for k := range sampleSize / 2 {
			s.values[k] = s.values[2*k]
		}
		s.values, s.stride = s.values[:sampleSize/2], 2*s.stride
	}
}

// between returns the values below which a part low and a part high of the sample are: 0
// and 0 of an empty sample.
func (s *sample) between(low, high float64) (from, to float64) {
	if len(s.values) == 0 {
		return 0, 0
	}
	v := slices.Sorted(slices.Values(s.values))
	last := float64(len(v) - 1)
	return v[int(math.Round(low*last))], v[int(math.Round(high*last))]
}
