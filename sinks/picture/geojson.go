package picture

import (
	"bufio"
	"encoding/json"
	"strconv"
	"time"
)

// LongUnits names the units of Frame.unit.
var LongUnits = map[string]string{"m": "metres", "px": "pixels"}

// WriteGeoJSON writes a FeatureCollection, a feature a layer. Coordinates are
// the tables' own, digit by digit: each number reads back as the same float64.
//
// RFC 7946 knows longitude and latitude only, and other coordinates by
// agreement: the member coordinate_system says so to people, and crs null, as
// the format had it before, to programs.
func WriteGeoJSON(w *bufio.Writer, s *Frame) error {
	p := jsonWriter{Writer: w}
	w.WriteString(`{"type":"FeatureCollection","crs":null,"coordinate_system":`)
	p.value("local " + LongUnits[s.Unit()] +
		" in the plane of the sensor or drawing, x and y (and z): not longitude and latitude")
	w.WriteString(`,"frame":`)
	p.value(map[string]any{"topic": s.Topic, "partition": s.Partition, "offset": s.Offset, "index": s.Index,
		"dataset": s.Dataset, "sequence": s.Sequence,
		"sensor": s.Sensor, "frame_id": s.FrameID, "ts": time.Unix(0, s.TimeNs).UTC(), "n_points": s.NPoints,
		"n_dropped": s.NDropped})
	w.WriteString(`,"features":[`)
	if s.layers[LayerTriangles] && len(s.Triangles) > 0 {
		p.triangles(s)
	}
	if s.layers[LayerPoints] && len(s.Points.Idx) > 0 {
		p.begin("MultiPoint")
		p.points(s, s.Points.Idx)
		p.end(map[string]any{"layer": LayerPoints, "count": len(s.Points.Idx)})
	}
	if s.layers[LayerHull] && s.Hull != nil {
		p.hull(s)
	}
	if s.layers[LayerMaxima] {
		for _, m := range s.Maxima {
			p.begin("MultiPoint")
			p.points(s, m.Idx)
			p.end(map[string]any{"layer": LayerMaxima, "count": len(m.Idx), "directions": m.Directions, "idx": m.Idx})
		}
	}
	w.WriteString("\n]}\n")
	return w.Flush()
}

// jsonWriter writes to a buffer that remembers its first error.
type jsonWriter struct {
	*bufio.Writer
	features int
	number   []byte
}

func (p *jsonWriter) value(v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic("export: a property cannot be encoded")
	}
	p.Write(data)
}

// begin begins a feature, up to its coordinates; end completes it.
func (p *jsonWriter) begin(geometry string) {
	if p.features++; p.features > 1 {
		p.WriteByte(',')
	}
	p.WriteString("\n" + `{"type":"Feature","geometry":{"type":"` + geometry + `","coordinates":`)
}

func (p *jsonWriter) end(properties map[string]any) {
	p.WriteString(`},"properties":`)
	p.value(properties)
	p.WriteByte('}')
}

// position writes [x,y] or [x,y,z].
func (p *jsonWriter) position(v ...float64) {
	p.number = append(p.number[:0], '[')
	for i, x := range v {
		if i > 0 {
			p.number = append(p.number, ',')
		}
		p.number = strconv.AppendFloat(p.number, x, 'g', -1, 64)
	}
	p.Write(append(p.number, ']'))
}

// point writes the position of point i of the frame.
func (p *jsonWriter) point(s *Frame, i int32) {
	x, y, z := s.at(s.place(i))
	if s.hasZ() {
		p.position(x, y, z)
		return
	}
	p.position(x, y)
}

func (p *jsonWriter) points(s *Frame, idx []int32) {
	p.WriteByte('[')
	for k, i := range idx {
		if k > 0 {
			p.WriteByte(',')
		}
		p.point(s, i)
	}
	p.WriteByte(']')
}

func (p *jsonWriter) triangles(s *Frame) {
	p.begin("MultiPolygon")
	t := s.Triangles
	for i := 0; i < len(t); i += 3 {
		p.WriteByte("[,"[min(i, 1)])
		p.WriteByte('[')
		p.points(s, []int32{t[i], t[i+1], t[i+2], t[i]})
		p.WriteByte(']')
	}
	p.WriteByte(']')
	p.end(map[string]any{"layer": LayerTriangles, "count": len(t) / 3})
}

// hull writes the polygon, a line or a point if it is degenerate, or an empty
// set of points if there is none.
func (p *jsonWriter) hull(s *Frame) {
	h := s.Hull
	positions := func(n int) {
		for i := range n {
			p.WriteByte("[,"[min(i, 1)])
			p.position(h.X[i%len(h.X)], h.Y[i%len(h.X)])
		}
		p.WriteByte(']')
	}
	switch n := len(h.X); n {
	case 0:
		p.begin("MultiPoint") // no position: there is nothing to draw
		p.WriteString("[]")
	case 1:
		p.begin("Point")
		p.position(h.X[0], h.Y[0])
	case 2:
		p.begin("LineString")
		positions(2)
	default:
		p.begin("Polygon")
		p.WriteByte('[')
		positions(n + 1)
		p.WriteByte(']')
	}
	p.end(map[string]any{"layer": LayerHull, "status": h.Status, "n_points": s.NPoints, "n_hull": len(h.Idx),
		"area": finite(h.Area), "perimeter": finite(h.Perimeter), "idx": h.Idx})
}

// finite returns v, or nil where it is out of range: JSON has no infinities.
func finite(v float64) any {
	if v-v != 0 {
		return nil
	}
	return v
}
