package schemas

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"entropipe/algos/geom"
	"entropipe/schemas/codec"
)

var codecs = []string{"", "none", "lz4", "zstd"}

// float32s draws n values of any bits: NaN, infinities and -0 among them.
func float32s(n int) *rapid.Generator[[]float32] {
	return rapid.SliceOfN(rapid.Map(rapid.Uint32(), math.Float32frombits), n, n)
}

// Law: decode(encode(cloud)) is the cloud, bit for bit, NaN and infinities
// included, and Arrow's reader finds the same.
func TestPointsRoundTrip(t *testing.T) {
	var e Encoder
	var d Decoder
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 50).Draw(t, "n")
		draw := func(name string) []float32 { return float32s(n).Draw(t, name) }
		c := PointCloud{
			Points: codec.Points{
				Cloud32: geom.Cloud[float32]{X: draw("x"), Y: draw("y")},
				Double:  rapid.Bool().Draw(t, "double"),
			},
		}
		if rapid.Bool().Draw(t, "with z") {
			c.Cloud32.Z = draw("z")
		}
		if rapid.Bool().Draw(t, "with intensity") {
			c.Intensity = draw("intensity")
		}
		if c.Double {
			c.Cloud64 = geom.Cloud[float64]{X: widen(c.Cloud32.X), Y: widen(c.Cloud32.Y)}
			if c.Cloud32.Z != nil {
				c.Cloud64.Z = widen(c.Cloud32.Z)
			}
			c.Cloud32 = geom.Cloud[float32]{}
		}
		e.Compression = rapid.SampledFrom(codecs).Draw(t, "compression")
		value, err := e.AppendPoints([]byte("prefix"), c)
		if err != nil {
			t.Fatal(err)
		}
		value = bytes.TrimPrefix(value, []byte("prefix"))
		frames, err := d.Decode(Message{Topic: "t", Value: value})
		if err != nil {
			t.Fatal(err)
		}
		want := Frame{
			FrameKey: frames[0].FrameKey,
			Points:   codec.Points{Cloud32: c.Cloud32, Cloud64: c.Cloud64, Double: c.Double, Intensity: c.Intensity},
		}
		if !sameBits(&frames[0], &want) || (frames[0].Intensity == nil) != (c.Intensity == nil) {
			t.Fatalf("have %+v\nwant %+v", frames[0], want)
		}
		ref, err := readReference(value)
		if err != nil {
			t.Fatal(err)
		}
		if diff := ref.compare(frames); diff != "" {
			t.Fatal(diff)
		}
	})
}

// coordinates draws n values: of any float32's bits, or one in two of any
// float64's, some of which float32 would change.
func coordinates(wide bool, n int) *rapid.Generator[[]float64] {
	narrow := rapid.Map(rapid.Uint32(), func(b uint32) float64 { return float64(math.Float32frombits(b)) })
	if !wide {
		return rapid.SliceOfN(narrow, n, n)
	}
	return rapid.SliceOfN(rapid.OneOf(narrow, rapid.Map(rapid.Uint64(), math.Float64frombits)), n, n)
}

// Law: decode(encode(drawings)) are the drawings' points in order, with ids,
// labels and times. No coordinate changes; the frames are float32 where all
// coordinates of the message are.
func TestSketchesRoundTrip(t *testing.T) {
	var e Encoder
	var d Decoder
	label := rapid.OneOf(rapid.SampledFrom([]string{"", "cat", "The Eiffel Tower", "é"}), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		timed, wide := rapid.Bool().Draw(t, "timed"), rapid.Bool().Draw(t, "wide")
		sketches := make([]Sketch, rapid.IntRange(1, 20).Draw(t, "drawings"))
		for i := range sketches {
			s := &sketches[i]
			s.Drawing = Drawing{ID: int64(i)*3 + rapid.Int64Range(0, 2).Draw(t, "id"), Label: label.Draw(t, "label")}
			s.TimeNs = rapid.Int64().Draw(t, "time")
			for k := range rapid.IntRange(1, 4).Draw(t, "strokes") {
				n := rapid.IntRange(min(1, max(0, 1-k)), 6).Draw(t, "points")
				st := Stroke{X: coordinates(wide, n).Draw(t, "x"), Y: coordinates(wide, n).Draw(t, "y")}
				if timed {
					st.T = make([]int32, n)
				}
				s.Strokes = append(s.Strokes, st)
			}
		}
		e.Compression = rapid.SampledFrom(codecs).Draw(t, "compression")
		value, err := e.AppendSketches(nil, sketches)
		if err != nil {
			t.Fatal(err)
		}
		frames, err := d.Decode(Message{Topic: "t", Value: value})
		if err != nil {
			t.Fatal(err)
		}
		if len(frames) != len(sketches) {
			t.Fatalf("%d frames of %d drawings", len(frames), len(sketches))
		}
		var all []float64
		for i, f := range frames {
			s := sketches[i]
			var x, y []float64
			for _, st := range s.Strokes {
				x, y = append(x, st.X...), append(y, st.Y...)
			}
			all = append(append(all, x...), y...)
			if *f.Drawing != s.Drawing || f.Index != int32(i) || s.TimeNs != nullInt64 && f.TimeNs != s.TimeNs ||
				!sameNumbers(f.axis(0), x) || !sameNumbers(f.axis(1), y) || f.HasZ() {
				t.Fatalf("drawing %d: have %+v %+v, want %+v", i, f, *f.Drawing, s)
			}
		}
		changes := func(v float64) bool { return v == v && float64(float32(v)) != v }
		if want := slices.ContainsFunc(all, changes); frames[0].Double != want {
			t.Fatalf("the frames are double: %v, but float32 changes a coordinate: %v", frames[0].Double, want)
		}
		ref, err := readReference(value)
		if err != nil {
			t.Fatal(err)
		}
		if diff := ref.compare(frames); diff != "" {
			t.Fatal(diff)
		}
	})
}

// sameNumbers compares bit for bit, but takes one NaN for another.
func sameNumbers(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(v, w float64) bool {
		return math.Float64bits(v) == math.Float64bits(w) || math.IsNaN(v) && math.IsNaN(w)
	})
}

// What the formats cannot carry is an error, and dst stays as it was.
func TestEncoderRefuses(t *testing.T) {
	one := []float64{1}
	sketch := func(id int64, strokes ...Stroke) Sketch { return Sketch{Drawing: Drawing{ID: id}, Strokes: strokes} }
	good := Stroke{X: one, Y: one}
	timed := Stroke{X: one, Y: one, T: []int32{0}}
	for name, sketches := range map[string][]Sketch{
		"no drawing":             {},
		"drawing without points": {sketch(1, good), sketch(2), sketch(3, good)},
		"empty strokes":          {sketch(1, Stroke{}, Stroke{})},
		"equal neighbours":       {sketch(1, good), sketch(1, good)},
		"unequal lengths":        {sketch(1, Stroke{X: one, Y: []float64{1, 2}})},
		"unequal times":          {sketch(1, Stroke{X: one, Y: one, T: []int32{1, 2}})},
		"some times":             {sketch(1, good), sketch(2, timed)},
		"some times missing":     {sketch(1, timed), sketch(2, good)},
		"too many strokes":       {sketch(1, make([]Stroke, 1<<15+1)...)},
	} {
		if out, err := new(Encoder).AppendSketches([]byte("dst"), sketches); err == nil || string(out) != "dst" {
			t.Errorf("%s: %v, %q", name, err, out)
		}
	}
	cloud := PointCloud{Points: codec.Points{Cloud32: geom.Cloud[float32]{X: []float32{1}, Y: []float32{1}}}}
	if _, err := (&Encoder{Compression: "gzip"}).AppendPoints(nil, cloud); err == nil ||
		!strings.Contains(err.Error(), "gzip") {
		t.Errorf("gzip: %v", err)
	}
	cloud.Cloud32.Z = []float32{1, 2}
	if _, err := new(Encoder).AppendPoints(nil, cloud); err == nil ||
		!strings.Contains(err.Error(), "z has 2 values") {
		t.Errorf("two z for one x: %v", err)
	}
}

// The headers of a message, whole: other programs read them.
func TestHeaders(t *testing.T) {
	k := FrameKey{Dataset: "a/b", Sequence: "2011 09", Sensor: "velodyne", FrameID: 12, TimeNs: 1317042145964389445}
	var got []string
	for _, h := range Headers(k, SchemaPoints, "/produce/kitti") {
		got = append(got, h.Key+"="+string(h.Value))
	}
	want := []string{
		"ce_specversion=1.0", "ce_id=a%2Fb/2011%2009/velodyne/12", "ce_type=entropipe.points.v1",
		"ce_source=/produce/kitti",
		"ce_time=2011-09-26T13:02:25.964389445Z", "content-type=application/vnd.apache.arrow.stream", "schema=points/1",
		"dataset=a/b", "sequence=2011 09", "frame-id=12", "ts-ns=1317042145964389445", "sensor=velodyne",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Law: decode(encode) keeps the key that Headers wrote.
func TestHeadersRoundTrip(t *testing.T) {
	var d Decoder
	name := rapid.StringN(1, 20, 200)
	rapid.Check(t, func(t *rapid.T) {
		k := FrameKey{Dataset: name.Draw(t, "dataset"), Sequence: name.Draw(t, "sequence"),
			Sensor:  rapid.StringN(0, 9, 99).Draw(t, "sensor"),
			FrameID: rapid.Int64().Draw(t, "frame"), TimeNs: rapid.Int64().Draw(t, "time"), Topic: "t", Offset: 3}
		value, err := new(Encoder).AppendPoints(nil, PointCloud{})
		if err != nil {
			t.Fatal(err)
		}
		frames, err := d.Decode(Message{Topic: "t", Offset: 3, Value: value,
			Headers: Headers(k, SchemaPoints, "/test")})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(k, frames[0].FrameKey); diff != "" {
			t.Fatal(diff)
		}
	})
}
