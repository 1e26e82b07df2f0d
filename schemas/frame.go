package schemas

import "entropipe/algos/geom"

// Frame is one point cloud, with where it came from. A message of schema
// points/1 holds one frame, of schema sketches/1 one a drawing.
//
// The coordinates are views of the message's value or of the decoder's memory:
// valid until the next Decode of the same Decoder, and no longer than the
// message. A coordinate that was null on the wire is NaN here.
type Frame struct {
	FrameKey
	Cloud32 geom.Cloud[float32] // used unless Double
	Cloud64 geom.Cloud[float64] // used if Double
	Double  bool                // the cloud came as float64
	// Intensity is nil when the message has none; otherwise one value a point.
	Intensity []float32
	// Pruned is nil for a whole frame. Its Index is memory like the coordinates.
	Pruned *Pruned
}

// FrameKey says which frame a row belongs to. (Topic, Partition, Offset,
// Index) is unique in an output; the rest is what the producer said.
type FrameKey struct {
	Dataset   string
	Sequence  string
	Sensor    string
	FrameID   int64
	TimeNs    int64 // event time, nanoseconds since 1970 UTC
	Topic     string
	Partition int32
	Offset    int64
	Index     int32    // position of the frame within its message
	Drawing   *Drawing // nil unless the frame is a drawing
}

// Drawing names the drawing that a frame of schema sketches/1 holds.
type Drawing struct {
	ID    int64
	Label string
}

// Len returns the number of points in the message.
func (f *Frame) Len() int {
	if f.Double {
		return f.Cloud64.Len()
	}
	return f.Cloud32.Len()
}

// HasZ tells whether the cloud is three-dimensional.
func (f *Frame) HasZ() bool { return f.Cloud32.Z != nil || f.Cloud64.Z != nil }
