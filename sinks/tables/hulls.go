package tables

import (
	"encoding/json"
	"math"

	"github.com/paulmach/orb"

	"entropipe/schemas"
)

// Table hulls is GeoParquet 1.1 in the profile that most readers accept: WKB, a bbox
// column as covering, planar edges, and an explicit null crs, because a missing crs
// means longitude and latitude.

// geoFile gathers the properties of all geometries of a file for its metadata.
type geoFile struct {
	point, line, polygon bool
	box                  bbox
	degenerateNull       bool
}

// addHull appends the hull of one frame.
func addHull(t *tableWriter, r *schemas.Result) {
	h := r.Hull
	t.begin(1, 192+20*len(h.Idx))
	addKeys(t, &r.FrameKey)
	t.int32(r.NPoints)
	t.int32(int32(len(h.Idx)))
	t.float64(h.Area)
	t.float64(h.Perimeter)
	if g := t.geo.geometry(h); g == nil {
		t.nulls(5)
	} else {
		t.binary(t.encodeWKB(g))
		box := boxOf(h)
		t.geo.add(g, box)
		t.float64(box.XMin)
		t.float64(box.YMin)
		t.float64(box.XMax)
		t.float64(box.YMax)
	}
	t.list(h.Idx)
	t.floatOrNull(h.ErrorBound)
	t.text(string(h.Status))
	t.end(1)
}

// encodeWKB returns g as little-endian WKB, valid until flush.
func (t *tableWriter) encodeWKB(g orb.Geometry) []byte {
	from := t.wkb.Len()
	if err := t.enc.Encode(g); err != nil && t.err == nil {
		t.err = err
	}
	return t.wkb.Bytes()[from:]
}

// geometry returns hull h as a Polygon with a closed ring; as a LineString or Point if it
// has two vertices or one; nil if it has none, or is degenerate and degenerateNull is
// set.
func (f *geoFile) geometry(h *schemas.Hull) orb.Geometry {
	n := len(h.X)
	if n == 0 || n < 3 && f.degenerateNull {
		return nil
	}
	ring := make([]orb.Point, n, n+1)
	for i := range ring {
		ring[i] = orb.Point{h.X[i], h.Y[i]}
	}
	switch n {
	case 1:
		return ring[0]
	case 2:
		return orb.LineString(ring)
	}
	return orb.Polygon{append(ring, ring[0])}
}

func boxOf(h *schemas.Hull) bbox {
	b := bbox{h.X[0], h.Y[0], h.X[0], h.Y[0]}
	for i := range h.X {
		b.XMin, b.XMax = math.Min(b.XMin, h.X[i]), math.Max(b.XMax, h.X[i])
		b.YMin, b.YMax = math.Min(b.YMin, h.Y[i]), math.Max(b.YMax, h.Y[i])
	}
	return b
}

// add adds a geometry with bounding box b to the file's metadata.
func (f *geoFile) add(g orb.Geometry, b bbox) {
	if f.point || f.line || f.polygon {
		b = bbox{math.Min(b.XMin, f.box.XMin), math.Min(b.YMin, f.box.YMin), math.Max(b.XMax, f.box.XMax),
			math.Max(b.YMax, f.box.YMax)}
	}
	f.box = b
	switch g.(type) {
	case orb.Point:
		f.point = true
	case orb.LineString:
		f.line = true
	default:
		f.polygon = true
	}
}

// geoColumn is the metadata of column geometry.
type geoColumn struct {
	Encoding      string         `json:"encoding"`
	GeometryTypes []string       `json:"geometry_types"`
	CRS           *struct{}      `json:"crs"` // always null: a sensor's or a drawing's own plane
	Orientation   string         `json:"orientation"`
	Edges         string         `json:"edges"`
	BBox          []float64      `json:"bbox,omitempty"`
	Covering      map[string]any `json:"covering"`
}

// metadata returns the value of the file's key geo. geometry_types lists exactly the
// types in the file; it is empty, which means unknown, if all geometries are null.
func (f *geoFile) metadata() string {
	c := geoColumn{Encoding: "WKB", GeometryTypes: []string{}, Orientation: "counterclockwise", Edges: "planar",
		Covering: map[string]any{"bbox": map[string][2]string{"xmin": {"bbox", "xmin"}, "ymin": {"bbox", "ymin"},
			"xmax": {"bbox", "xmax"}, "ymax": {"bbox", "ymax"}}}}
	for _, t := range []struct {
		present bool
		name    string
	}{{f.polygon, "Polygon"}, {f.line, "LineString"}, {f.point, "Point"}} {
		if t.present {
			c.GeometryTypes = append(c.GeometryTypes, t.name)
			c.BBox = []float64{f.box.XMin, f.box.YMin, f.box.XMax, f.box.YMax}
		}
	}
	data, err := json.Marshal(map[string]any{"version": "1.1.0", "primary_column": "geometry",
		"columns": map[string]any{"geometry": c}})
	if err != nil {
		panic("tables: the metadata of a geometry cannot be encoded")
	}
	return string(data)
}
