package foxglove

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/schemas/codec"
)

var transform = FrameTransform{TimeNs: 1_700_000_000_123_456_789, Parent: "map", Child: "lidar",
	Pose: Pose{Position: Vector{X: 1.5, Y: -2, Z: 3}, Orientation: Quaternion{Z: 0.6, W: 0.8}}}

const transformText = `{"timestamp":{"sec":1700000000,"nsec":123456789},"parent_frame_id":"map",` +
	`"child_frame_id":"lidar","translation":{"x":1.5,"y":-2,"z":3},"rotation":{"x":0,"y":0,"z":0.6,"w":0.8}}`

// A transform and a list of transforms are read in either encoding.
func TestDecodeTransforms(t *testing.T) {
	b := transform.Append(nil)
	list := append(append([]byte{10, byte(len(b))}, b...), append([]byte{10, byte(len(b))}, b...)...)
	for name, decode := range map[string]func() ([]FrameTransform, error){
		"protobuf": func() ([]FrameTransform, error) {
			m, err := DecodeTransform(b)
			return []FrameTransform{m, m}, err
		},
		"list in protobuf": func() ([]FrameTransform, error) { return DecodeTransforms(list) },
		"json": func() ([]FrameTransform, error) {
			m, err := DecodeTransformJSON([]byte(transformText))
			return []FrameTransform{m, m}, err
		},
		"list in json": func() ([]FrameTransform, error) {
			return DecodeTransformsJSON([]byte(`{"transforms":[` + transformText + "," + transformText + "]}"))
		},
	} {
		got, err := decode()
		if d := cmp.Diff([]FrameTransform{transform, transform}, got); err != nil || d != "" {
			t.Errorf("%s: %v %s", name, err, d)
		}
	}
}

// Messages that are cut off, no such messages or too long are faults with a reason.
func TestBadTransforms(t *testing.T) {
	b := transform.Append(nil)
	for n := range len(b) {
		m, err := DecodeTransform(b[:n])
		var fault *codec.Error
		if err != nil && !errors.As(err, &fault) || err == nil && m == transform {
			t.Errorf("%d bytes: %v, %+v", n, err, m)
		}
	}
	many := bytes.Repeat([]byte{10, 0}, maxTransforms+1)
	if list, err := DecodeTransforms(many); err == nil || len(list) != maxTransforms {
		t.Errorf("%d transforms: %v", len(list), err)
	}
	for _, text := range []string{"", "{", "[]", `{"timestamp":{"sec":1e30}}`, `{"timestamp":{"sec":99999999999}}`,
		`{"transforms":[` + transformText + `,{"timestamp":"yesterday"}]}`, `{"transforms":5}`} {
		_, one := DecodeTransformJSON([]byte(text))
		_, list := DecodeTransformsJSON([]byte(text))
		if one == nil && list == nil {
			t.Errorf("%s: nobody noticed", text)
		}
	}
}
