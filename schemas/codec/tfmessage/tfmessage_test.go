package tfmessage

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/schemas/codec"
)

// cdr writes a message as a ROS 2 node does.
func cdr(big bool, transforms ...Transform) []byte {
	var order binary.AppendByteOrder = binary.LittleEndian
	b := []byte{0, 1, 0, 0}
	if big {
		order, b[1] = binary.BigEndian, 0
	}
	pad := func(n int) {
		for (len(b)-4)%n != 0 {
			b = append(b, 0)
		}
	}
	u32 := func(v uint32) { pad(4); b = order.AppendUint32(b, v) }
	text := func(s string) { u32(uint32(len(s) + 1)); b = append(append(b, s...), 0) }
	u32(uint32(len(transforms)))
	for _, t := range transforms {
		u32(uint32(t.TimeNs / 1e9))
		u32(uint32(t.TimeNs % 1e9))
		text(t.Parent)
		text(t.Child)
		for _, v := range append(t.Translation[:], t.Rotation[:]...) {
			pad(8)
			b = order.AppendUint64(b, math.Float64bits(v))
		}
	}
	return b
}

var examples = []Transform{
	{Parent: "map", Child: "odom", TimeNs: 1_700_000_000_123_456_789, Translation: [3]float64{1, -2, 0.5},
		Rotation: [4]float64{0, 0, 0.6, 0.8}},
	{Parent: "base_link", Child: "os_sensor/lidar", Translation: [3]float64{math.MaxFloat64, 0, math.Inf(1)},
		Rotation: [4]float64{0, 0, 0, 1}},
	{TimeNs: 5},
}

func TestDecode(t *testing.T) {
	for _, big := range []bool{false, true} {
		for n := range len(examples) + 1 {
			got, err := Decode(nil, cdr(big, examples[:n]...))
			if err != nil || !cmp.Equal(examples[:n:n], append([]Transform{}, got...)) {
				t.Errorf("big-endian %t: %d transforms: %+v, %v", big, n, got, err)
			}
		}
	}
	kept, err := Decode(examples[:1:1], cdr(false, examples[1]))
	if err != nil || len(kept) != 2 || kept[0] != examples[0] || kept[1] != examples[1] {
		t.Errorf("appended: %+v, %v", kept, err)
	}
}

// Every message that is cut, and every one that lies of its numbers, is a fault.
func TestDecodeRefuses(t *testing.T) {
	for _, big := range []bool{false, true} {
		whole := cdr(big, examples...)
		for n := range whole {
			_, err := Decode(nil, whole[:n])
			if fault := (*codec.Error)(nil); !errors.As(err, &fault) || fault.Reason != codec.Truncated {
				t.Errorf("big-endian %t: %d bytes of %d: %v", big, n, len(whole), err)
			}
		}
	}
	lying := cdr(false, examples...)
	binary.LittleEndian.PutUint32(lying[4:], math.MaxUint32)
	long := cdr(false, examples...)
	binary.LittleEndian.PutUint32(long[16:], math.MaxUint32)
	for name, c := range map[string]struct {
		value  []byte
		reason string
	}{"count": {lying, codec.Truncated}, "length of a name": {long, codec.Truncated},
		"parameter list": {[]byte{0, 3, 0, 0, 0, 0, 0, 0}, codec.Unsupported},
		"text":           {[]byte("#ROSBAG V2.0"), codec.Unsupported}} {
		_, err := Decode(nil, c.value)
		if fault := (*codec.Error)(nil); !errors.As(err, &fault) || fault.Reason != c.reason {
			t.Errorf("%s: %v, want %s", name, err, c.reason)
		}
	}
}

func FuzzTFMessage(f *testing.F) {
	f.Add(cdr(false, examples...))
	f.Add(cdr(true, examples...))
	f.Add(cdr(false))
	f.Fuzz(func(t *testing.T, value []byte) {
		got, err := Decode(nil, value)
		if len(got)*least > len(value) {
			t.Errorf("%d transforms of %d bytes", len(got), len(value))
		}
		if err != nil {
			return
		}
		again, err := Decode(nil, cdr(false, got...))
		if err != nil || len(again) != len(got) {
			t.Errorf("%d transforms, then %d; %v", len(got), len(again), err)
		}
	})
}
