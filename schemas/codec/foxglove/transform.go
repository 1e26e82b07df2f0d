package foxglove

import (
	"encoding/json"

	"google.golang.org/protobuf/encoding/protowire"

	"entropipe/schemas/codec"
)

// FrameTransformsSchema is the name of a list of FrameTransform.
const FrameTransformsSchema = "foxglove.FrameTransforms"

// maxTransforms bounds the transforms of a message.
const maxTransforms = 1 << 12

// DecodeTransform reads a FrameTransform in Protobuf. A message without a rotation has the
// Quaternion of zeros. Numbers are as received, finite or not. A fault is an *codec.Error.
func DecodeTransform(value []byte) (FrameTransform, error) {
	var m FrameTransform
	if fault := m.parse(value); fault != nil {
		return m, fault
	}
	return m, nil
}

// DecodeTransforms is DecodeTransform for a FrameTransforms. With a fault the transforms before
// it are returned.
func DecodeTransforms(value []byte) (list []FrameTransform, err error) {
	fault := each(value, func(number protowire.Number, kind protowire.Type, v []byte, _ uint64) *codec.Error {
		if number != 1 || kind != protowire.BytesType {
			return nil
		}
		if len(list) == maxTransforms {
			return codec.Errorf(codec.Corrupt, -1, "the message has more than %d transforms", maxTransforms)
		}
		var m FrameTransform
		fault := m.parse(v)
		if fault == nil {
			list = append(list, m)
		}
		return fault
	})
	if fault != nil {
		return list, fault
	}
	return list, nil
}

func (m *FrameTransform) parse(b []byte) *codec.Error {
	return each(b, func(number protowire.Number, kind protowire.Type, v []byte, _ uint64) *codec.Error {
		if kind != protowire.BytesType {
			return nil
		}
		switch number {
		case 1:
			seconds, nanos, fault := parseTime(v)
			if fault != nil {
				return fault
			}
			m.TimeNs, fault = timeOf(seconds, nanos)
			return fault
		case 2:
			m.Parent = string(v)
		case 3:
			m.Child = string(v)
		case 4:
			t := &m.Pose.Position
			return doubles(v, &t.X, &t.Y, &t.Z)
		case 5:
			q := &m.Pose.Orientation
			return doubles(v, &q.X, &q.Y, &q.Z, &q.W)
		}
		return nil
	})
}

type transformJSON struct {
	Timestamp   timeJSON   `json:"timestamp"`
	Parent      string     `json:"parent_frame_id"`
	Child       string     `json:"child_frame_id"`
	Translation Vector     `json:"translation"`
	Rotation    Quaternion `json:"rotation"`
}

// DecodeTransformJSON is DecodeTransform for JSON, with timestamps as in DecodeJSON.
func DecodeTransformJSON(value []byte) (FrameTransform, error) {
	var in transformJSON
	if err := json.Unmarshal(value, &in); err != nil {
		return FrameTransform{}, faultJSON(err)
	}
	return in.transform()
}

// DecodeTransformsJSON is DecodeTransforms for JSON.
func DecodeTransformsJSON(value []byte) (list []FrameTransform, err error) {
	var in struct {
		Transforms []transformJSON `json:"transforms"`
	}
	if err := json.Unmarshal(value, &in); err != nil {
		return nil, faultJSON(err)
	}
	if len(in.Transforms) > maxTransforms {
		return nil, codec.Errorf(codec.Corrupt, -1, "the message has more than %d transforms", maxTransforms)
	}
	for i := range in.Transforms {
		m, err := in.Transforms[i].transform()
		if err != nil {
			return list, err
		}
		list = append(list, m)
	}
	return list, nil
}

func (t *transformJSON) transform() (FrameTransform, error) {
	ns, fault := timeOf(t.Timestamp.sec, t.Timestamp.nsec)
	if fault != nil {
		return FrameTransform{}, fault
	}
	return FrameTransform{TimeNs: ns, Parent: t.Parent, Child: t.Child,
		Pose: Pose{Position: t.Translation, Orientation: t.Rotation}}, nil
}
