package schemas

import "entropipe/schemas/codec"

// Frame is one point cloud with its origin. A points/1 message holds one frame, a
// sketches/1 message one frame for each drawing.
//
// The coordinates are views of the message's value or of the decoder's memory:
// valid until the next Decode of the same Decoder, and no longer than the
// message. A coordinate that is null in the message is NaN here.
type Frame struct {
	FrameKey
	codec.Points
	// Pruned is nil for a whole frame. Pruned.Index is valid as long as the
	// coordinates.
	Pruned *Pruned
	// Strokes are the positions behind the last point of each stroke of a drawing, valid as
	// long as the coordinates. Nil: the Decoder's Strokes is not set, or the message has no
	// usable column stroke_idx. Operators do not read them.
	Strokes []int32
}

// FrameKey identifies the frame or sequence of a row. (Topic, Partition, Offset,
// Index) is unique in an output; the producer chose the other fields.
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
	// Pose is the motion from the sensor to the world at the frame's time; nil: unknown.
	Pose *codec.Pose
}

// Drawing names the drawing that a frame of schema sketches/1 holds.
type Drawing struct {
	ID    int64
	Label string
}
