package foxglove

import (
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Color has components from 0 to 1.
type Color struct{ R, G, B, A float64 }

// LineType says how the points of a Line are joined.
type LineType uint32

// The line types.
const (
	LineStrip LineType = iota
	LineLoop           // the last point is joined to the first
	LineList           // two points a segment
)

// Line is a LinePrimitive. Thickness is in metres, or in pixels with ScaleInvariant. Indices
// may be nil: then the points follow one another.
type Line struct {
	Type           LineType
	Pose           Pose
	Thickness      float64
	ScaleInvariant bool
	Points         []Vector
	Color          Color
	Indices        []uint32
}

// Triangles is a TriangleListPrimitive: three points, or three indices of points, a triangle.
// Colors is nil or has a colour a point.
type Triangles struct {
	Pose    Pose
	Points  []Vector
	Color   Color
	Colors  []Color
	Indices []uint32
}

// Entity is a SceneEntity. It replaces the entity of the same topic and ID. LifetimeNs 0
// means that it stays until then.
type Entity struct {
	TimeNs      int64 // nanoseconds since 1970
	FrameID, ID string
	LifetimeNs  int64
	FrameLocked bool // the entity moves with FrameID
	Metadata    []KeyValue
	Lines       []Line
	Triangles   []Triangles
}

// KeyValue is a KeyValuePair.
type KeyValue struct{ Key, Value string }

// SceneUpdate is a message foxglove.SceneUpdate without deletions.
type SceneUpdate struct{ Entities []Entity }

// FrameTransform is a message foxglove.FrameTransform: the pose of the frame Child in Parent.
type FrameTransform struct {
	TimeNs        int64 // nanoseconds since 1970
	Parent, Child string
	Pose          Pose
}

// Append appends m in Protobuf.
func (m *PointCloud) Append(b []byte) []byte {
	b = appendTime(b, 1, m.TimeNs)
	b = appendText(b, 2, m.FrameID)
	b = appendPose(b, 3, &m.Pose)
	b = appendFixed32(b, 4, m.Stride)
	for _, f := range m.Fields {
		field := appendFixed32(appendText(nil, 1, f.Name), 2, f.Offset)
		b = appendBytes(b, 5, appendVarint(field, 3, uint64(f.Type)))
	}
	return appendBytes(b, 6, m.Data)
}

// Append appends m in Protobuf.
func (m *SceneUpdate) Append(b []byte) []byte {
	for i := range m.Entities {
		e := &m.Entities[i]
		b = appendBytes(slices.Grow(b, e.room()), 2, e.append(make([]byte, 0, e.room())))
	}
	return b
}

// room returns about how many bytes the entity takes, so that memory grows once.
func (e *Entity) room() int {
	n := 256 + 64*len(e.Metadata)
	for i := range e.Lines {
		n += e.Lines[i].room()
	}
	for i := range e.Triangles {
		n += e.Triangles[i].room()
	}
	return n
}

// roomOfPoint is the most that a point or a colour with its tag takes.
const roomOfPoint = 40

func (l *Line) room() int { return 256 + roomOfPoint*len(l.Points) + 4*len(l.Indices) }

func (t *Triangles) room() int {
	return 256 + roomOfPoint*(len(t.Points)+len(t.Colors)) + 4*len(t.Indices)
}

// Append appends m in Protobuf.
func (m *FrameTransform) Append(b []byte) []byte {
	b = appendTime(b, 1, m.TimeNs)
	b = appendText(appendText(b, 2, m.Parent), 3, m.Child)
	p := &m.Pose
	b = appendBytes(b, 4, appendDoubles(nil, p.Position.X, p.Position.Y, p.Position.Z))
	return appendBytes(b, 5, p.Orientation.append(nil))
}

func (e *Entity) append(b []byte) []byte {
	b = appendTime(b, 1, e.TimeNs)
	b = appendText(appendText(b, 2, e.FrameID), 3, e.ID)
	b = appendTime(b, 4, e.LifetimeNs)
	b = appendBool(b, 5, e.FrameLocked)
	for _, pair := range e.Metadata {
		b = appendBytes(b, 6, appendText(appendText(nil, 1, pair.Key), 2, pair.Value))
	}
	for i := range e.Lines {
		b = appendBytes(b, 11, e.Lines[i].append(make([]byte, 0, e.Lines[i].room())))
	}
	for i := range e.Triangles {
		t := &e.Triangles[i]
		b = appendBytes(b, 12, t.append(make([]byte, 0, t.room())))
	}
	return b
}

func (l *Line) append(b []byte) []byte {
	b = appendVarint(b, 1, uint64(l.Type))
	b = appendPose(b, 2, &l.Pose)
	b = appendDouble(b, 3, l.Thickness)
	b = appendBool(b, 4, l.ScaleInvariant)
	b = appendPoints(b, 5, l.Points)
	b = appendColor(b, 6, l.Color)
	return appendIndices(b, 8, l.Indices)
}

func (t *Triangles) append(b []byte) []byte {
	b = appendPose(b, 1, &t.Pose)
	b = appendPoints(b, 2, t.Points)
	b = appendColor(b, 3, t.Color)
	for _, c := range t.Colors {
		b = appendColor(b, 4, c)
	}
	return appendIndices(b, 5, t.Indices)
}

func appendPose(b []byte, number protowire.Number, p *Pose) []byte {
	pose := appendBytes(nil, 1, appendDoubles(nil, p.Position.X, p.Position.Y, p.Position.Z))
	return appendBytes(b, number, appendBytes(pose, 2, p.Orientation.append(nil)))
}

// append writes no rotation as (0, 0, 0, 1): readers take all zeros for a fault.
func (q Quaternion) append(b []byte) []byte {
	if q == (Quaternion{}) {
		q.W = 1
	}
	return appendDoubles(b, q.X, q.Y, q.Z, q.W)
}

func appendPoints(b []byte, number protowire.Number, points []Vector) []byte {
	var memory [27]byte
	for _, p := range points {
		b = appendBytes(b, number, appendDoubles(memory[:0], p.X, p.Y, p.Z))
	}
	return b
}

func appendColor(b []byte, number protowire.Number, c Color) []byte {
	return appendBytes(b, number, appendDoubles(nil, c.R, c.G, c.B, c.A))
}

// appendIndices appends a packed field of fixed32.
func appendIndices(b []byte, number protowire.Number, indices []uint32) []byte {
	if len(indices) == 0 {
		return b
	}
	b = protowire.AppendTag(b, number, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(4*len(indices)))
	for _, i := range indices {
		b = protowire.AppendFixed32(b, i)
	}
	return b
}

// appendTime appends a Timestamp or a Duration. The nanoseconds of a Timestamp are not
// negative.
func appendTime(b []byte, number protowire.Number, ns int64) []byte {
	seconds, nanos := ns/1e9, ns%1e9
	if nanos < 0 {
		seconds, nanos = seconds-1, nanos+1e9
	}
	return appendBytes(b, number, appendVarint(appendVarint(nil, 1, uint64(seconds)), 2, uint64(nanos)))
}

// appendDoubles appends the fields 1, 2, … of a message of doubles.
func appendDoubles(b []byte, values ...float64) []byte {
	for i, v := range values {
		b = appendDouble(b, protowire.Number(i+1), v)
	}
	return b
}

// The functions below leave out zeros, as Protobuf does.

func appendDouble(b []byte, number protowire.Number, v float64) []byte {
	bits := math.Float64bits(v)
	if bits == 0 {
		return b
	}
	return protowire.AppendFixed64(protowire.AppendTag(b, number, protowire.Fixed64Type), bits)
}

func appendFixed32(b []byte, number protowire.Number, v uint32) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendFixed32(protowire.AppendTag(b, number, protowire.Fixed32Type), v)
}

func appendVarint(b []byte, number protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), v)
}

func appendBool(b []byte, number protowire.Number, v bool) []byte {
	return appendVarint(b, number, map[bool]uint64{true: 1}[v])
}

func appendText(b []byte, number protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), s)
}

// appendBytes appends a message or bytes, also empty ones.
func appendBytes(b []byte, number protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), v)
}
