package replay

import (
	"fmt"
	"math"
	"sort"

	"entropipe/schemas/codec"
	"entropipe/schemas/codec/foxglove"
	"entropipe/schemas/codec/tfmessage"
)

// transformDecoder appends the transforms of a message to dst.
type transformDecoder func(dst []tfmessage.Transform, message []byte) ([]tfmessage.Transform, error)

// transformsOf returns the decoder of the transforms of a schema in an encoding; nil if the
// messages are none. It knows the names of ROS 2, of tools that shorten them, and of DDS.
func transformsOf(schema, encoding string) transformDecoder {
	switch {
	case encoding == "cdr" && (schema == tfmessage.Schema || schema == "tf2_msgs/TFMessage" ||
		schema == "tf2_msgs::msg::dds_::TFMessage_"):
		return tfmessage.Decode
	case encoding == "protobuf" && schema == foxglove.FrameTransformSchema:
		return one(foxglove.DecodeTransform)
	case encoding == "json" && schema == foxglove.FrameTransformSchema:
		return one(foxglove.DecodeTransformJSON)
	case encoding == "protobuf" && schema == foxglove.FrameTransformsSchema:
		return several(foxglove.DecodeTransforms)
	case encoding == "json" && schema == foxglove.FrameTransformsSchema:
		return several(foxglove.DecodeTransformsJSON)
	}
	return nil
}

func isTransforms(schema, encoding string) bool { return transformsOf(schema, encoding) != nil }

// one returns the decoder of messages of one transform.
func one(decode func([]byte) (foxglove.FrameTransform, error)) transformDecoder {
	return func(dst []tfmessage.Transform, message []byte) ([]tfmessage.Transform, error) {
		m, err := decode(message)
		if err != nil {
			return dst, err
		}
		return append(dst, fromFoxglove(&m)), nil
	}
}

// several returns the decoder of messages of any number of transforms.
func several(decode func([]byte) ([]foxglove.FrameTransform, error)) transformDecoder {
	return func(dst []tfmessage.Transform, message []byte) ([]tfmessage.Transform, error) {
		list, err := decode(message)
		for i := range list {
			dst = append(dst, fromFoxglove(&list[i]))
		}
		return dst, err
	}
}

// fromFoxglove returns a transform as ROS has it. A rotation of zeros is none, as in a pose.
func fromFoxglove(m *foxglove.FrameTransform) tfmessage.Transform {
	p, q := m.Pose.Position, m.Pose.Orientation
	if q == (foxglove.Quaternion{}) {
		q.W = 1
	}
	return tfmessage.Transform{Parent: m.Parent, Child: m.Child, TimeNs: m.TimeNs,
		Translation: [3]float64{p.X, p.Y, p.Z}, Rotation: [4]float64{q.X, q.Y, q.Z, q.W}}
}

// motion is a rotation, as a quaternion x, y, z, w of length 1, and a step behind it, in metres.
type motion struct {
	step [3]float64
	turn [4]float64
}

// motionOf is false for numbers that are no motion.
func motionOf(m *tfmessage.Transform) (o motion, ok bool) {
	norm := dot(&m.Rotation, &m.Rotation)
	if !(math.Abs(norm-1) < 1e-2) {
		return o, false
	}
	for _, v := range m.Translation {
		if v-v != 0 {
			return o, false
		}
	}
	return motion{m.Translation, m.Rotation}.unit(), true
}

// unit returns o with a quaternion of length 1.
func (o motion) unit() motion {
	length := math.Sqrt(dot(&o.turn, &o.turn))
	for i := range o.turn {
		o.turn[i] /= length
	}
	return o
}

func dot(a, b *[4]float64) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] + a[3]*b[3] }

// pose returns the matrix.
func (o *motion) pose() codec.Pose {
	x, y, z, w := o.turn[0], o.turn[1], o.turn[2], o.turn[3]
	return codec.Pose{
		1 - 2*(y*y+z*z), 2 * (x*y - z*w), 2 * (x*z + y*w), o.step[0],
		2 * (x*y + z*w), 1 - 2*(x*x+z*z), 2 * (y*z - x*w), o.step[1],
		2 * (x*z - y*w), 2 * (y*z + x*w), 1 - 2*(x*x+y*y), o.step[2],
	}
}

// between returns the motion at a part of the way from a to b, from 0 to 1: the step linearly,
// the turn at a constant speed along the shorter arc.
func between(a, b *motion, part float64) motion {
	var o motion
	for i := range o.step {
		o.step[i] = a.step[i] + part*(b.step[i]-a.step[i])
	}
	left, right := 1-part, part
	cosine := dot(&a.turn, &b.turn)
	sign := 1.0
	if cosine < 0 {
		cosine, sign = -cosine, -1
	}
	if cosine < 0.9995 { // beyond it, the chord is as good as the arc
		angle := math.Acos(cosine)
		sine := math.Sin(angle)
		left, right = math.Sin(left*angle)/sine, math.Sin(right*angle)/sine
	}
	for i := range o.turn {
		o.turn[i] = left*a.turn[i] + sign*right*b.turn[i]
	}
	return o.unit()
}

// at returns the motion of a link at a time.
func (l *link) at(ns int64) (*codec.Pose, error) {
	if l.fixed != nil {
		return l.fixed, nil
	}
	after := sort.Search(len(l.recent), func(i int) bool { return l.recent[i].ns > ns })
	older, newer := int64(math.MaxInt64), int64(math.MaxInt64) // distances in time
	if after > 0 {
		older = ns - l.recent[after-1].ns
	}
	if after < len(l.recent) {
		newer = l.recent[after].ns - ns
	}
	var pose codec.Pose
	switch {
	case older == 0:
		pose = l.recent[after-1].pose()
	case older <= transformGap && newer <= transformGap-older:
		o := between(&l.recent[after-1].motion, &l.recent[after].motion, float64(older)/float64(older+newer))
		pose = o.pose()
	case older <= transformAge && older <= newer:
		pose = l.recent[after-1].pose()
	case newer <= transformAge:
		pose = l.recent[after].pose()
	case older < math.MaxInt64:
		return nil, fmt.Errorf("the last transform to %s is %.0f ms older than the cloud", l.parent, float64(older)/1e6)
	default:
		return nil, fmt.Errorf("no transform to %s is as old as the cloud", l.parent)
	}
	return &pose, nil
}
