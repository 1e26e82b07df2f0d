package schemas

import (
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"entropipe/algos/geom"
	"entropipe/schemas/codec"
)

// everyColumn is a cloud with every column, and with points that have no value in some.
func everyColumn() codec.Points {
	return codec.Points{
		Cloud32:   geom.Cloud[float32]{X: []float32{1, 2, 3}, Y: []float32{4, 5, 6}, Z: []float32{7, 8, 9}},
		Intensity: []float32{.1, .2, .3},
		Extra: codec.Extra{Ring: []int32{0, 31, 63}, Return: []int32{1, 2, 1}, Laser: []int32{1, 5, 4},
			Label: []int32{
				40,
				-1,
				math.MaxInt32,
			}, Elongation: []float32{0, 1.5, -2}, TOffsetNs: []int64{-1, 0, 1 << 40},
			Red: []int32{0, 255, 65535}, Green: []int32{1, 2, 3}, Blue: []int32{3, 2, 1}},
	}
}

// What a producer sends of a cloud, a consumer finds, whatever the compression.
func TestEveryColumnSurvivesTheWire(t *testing.T) {
	want := everyColumn()
	pose := codec.Pose{1, 0, 0, 1e5 + 1.0/3, 0, 1, 0, -2.5, 0, 0, 1, 1e-300}
	key := FrameKey{Dataset: "d", Sequence: "s", Sensor: "top", FrameID: 7, TimeNs: 5, Pose: &pose}
	var d Decoder
	for _, compression := range []string{"none", "lz4", "zstd"} {
		e := Encoder{Compression: compression}
		value, err := e.AppendPoints(nil, PointCloud{Points: want})
		if err != nil {
			t.Fatal(err)
		}
		frames, err := d.Decode(Message{Value: value, Headers: Headers(key, SchemaPoints, "/test")})
		if err != nil {
			t.Fatalf("%s: %v", compression, err)
		}
		if diff := cmp.Diff(want, frames[0].Points); diff != "" {
			t.Errorf("%s: columns differ (-sent +decoded):\n%s", compression, diff)
		}
		if frames[0].Pose == nil || *frames[0].Pose != pose {
			t.Errorf("%s: pose is %v, want %v", compression, frames[0].Pose, pose)
		}
	}
}

// The survivors of a pruned frame keep their columns.
func TestSurvivorsKeepEveryColumn(t *testing.T) {
	var s Survivors
	got := s.Of(&Frame{Points: everyColumn()}, []int32{0, 2})
	want := codec.Points{
		Cloud32:   geom.Cloud[float32]{X: []float32{1, 3}, Y: []float32{4, 6}, Z: []float32{7, 9}},
		Intensity: []float32{.1, .3},
		Extra: codec.Extra{Ring: []int32{0, 63}, Return: []int32{1, 1}, Laser: []int32{1, 4},
			Label: []int32{40, math.MaxInt32}, Elongation: []float32{0, -2}, TOffsetNs: []int64{-1, 1 << 40},
			Red: []int32{0, 65535}, Green: []int32{1, 3}, Blue: []int32{3, 1}},
	}
	if diff := cmp.Diff(want, got.Points); diff != "" {
		t.Errorf("columns differ (-want +got):\n%s", diff)
	}
}

// Columns of other integer types are converted, nulls are marked, a value that is no int32
// is refused, and a column that holds no integers is no column of ours.
func TestColumnsOfOtherTypes(t *testing.T) {
	decode := func(name string, column arrow.Array) (*Frame, error) {
		x := array.NewFloat32Builder(memory.DefaultAllocator)
		x.AppendValues([]float32{1, 2}, nil)
		xs := x.NewArray()
		schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: xs.DataType()}, {Name: "y", Type: xs.DataType()},
			{Name: name, Type: column.DataType(), Nullable: true}}, nil)
		e := Encoder{}
		value, err := e.append(nil, &columns{rows: 2, fields: schema.Fields(), arrays: []arrow.Array{xs, xs, column}},
			arrow.Metadata{})
		if err != nil {
			t.Fatal(err)
		}
		var d Decoder
		frames, err := d.Decode(Message{Value: value})
		if err != nil {
			return nil, err
		}
		return &frames[0], nil
	}
	bytes := array.NewUint8Builder(memory.DefaultAllocator)
	bytes.AppendValues([]byte{200, 0}, []bool{true, false})
	f, err := decode("ring", bytes.NewArray())
	if err != nil || !cmp.Equal(f.Ring, []int32{200, codec.NoInt32}) {
		t.Errorf("uint8 with a null: %v, %v", f, err)
	}
	wide := array.NewInt64Builder(memory.DefaultAllocator)
	wide.AppendValues([]int64{1, 1 << 40}, nil)
	if _, err := decode("laser", wide.NewArray()); err == nil || !strings.Contains(err.Error(), ReasonBadValue) {
		t.Errorf("2^40 as laser: %v, want %s", err, ReasonBadValue)
	}
	words := array.NewStringBuilder(memory.DefaultAllocator)
	words.AppendValues([]string{"car", "tree"}, nil)
	if f, err := decode("label", words.NewArray()); err != nil || f.Label != nil {
		t.Errorf("labels of text: %v, %v; want no column", f, err)
	}
}

// A header pose that is not twelve finite numbers is a reject.
func TestPoseHeader(t *testing.T) {
	for text, fine := range map[string]bool{
		"1,0,0,5,0,1,0,6,0,0,1,7": true, " 1, 0,0,5,0,1,0,6,0,0,1,7e3 ": true,
		"1,0,0,5,0,1,0,6,0,0,1": false, "1,0,0,5,0,1,0,6,0,0,1,7,8": false, "1,0,0,5,0,1,0,6,0,0,1,NaN": false,
		"1,0,0,5,0,1,0,6,0,0,1,x": false, strings.Repeat("1,", 2000): false,
	} {
		var e Encoder
		value, _ := e.AppendPoints(nil, PointCloud{Points: everyColumn()})
		var d Decoder
		frames, err := d.Decode(Message{Value: value, Headers: []Header{{HeaderPose, []byte(text)}}})
		if fine != (err == nil) || fine && frames[0].Pose == nil {
			t.Errorf("pose %.40q: %v; want it accepted: %v", text, err, fine)
		}
	}
}
