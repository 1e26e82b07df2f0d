package schemas

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"entropipe/algos/geom"
	"entropipe/schemas/codec"
)

// finite32s draws n finite values of any size.
func finite32s(n int) *rapid.Generator[[]float32] {
	return rapid.SliceOfN(rapid.Float32(), n, n)
}

// Law: what becomes of the survivors of a frame of any message, published and
// read from another topic, is them: coordinates, numbers in the whole frame,
// its counts, and all of its key that belongs to no topic. Pruned twice, it is
// as if it were at once.
func TestPrunedRecordRoundTrip(t *testing.T) {
	var e Encoder
	var first, second Decoder
	var s Survivors
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		c := PointCloud{
			Points: codec.Points{
				Cloud32: geom.Cloud[float32]{X: finite32s(n).Draw(t, "x"), Y: finite32s(n).Draw(t, "y")},
				Double:  rapid.Bool().Draw(t, "double"),
			},
		}
		if rapid.Bool().Draw(t, "with z") {
			c.Cloud32.Z = finite32s(n).Draw(t, "z")
		}
		if rapid.Bool().Draw(t, "with intensity") {
			c.Intensity = float32s(n).Draw(t, "intensity")
		}
		if c.Double {
			c.Cloud64.X, c.Cloud64.Y = widen(c.Cloud32.X), widen(c.Cloud32.Y)
			if c.Cloud32.Z != nil {
				c.Cloud64.Z = widen(c.Cloud32.Z)
			}
			c.Cloud32 = geom.Cloud[float32]{}
		}
		value, err := e.AppendPoints(nil, c)
		if err != nil {
			t.Fatal(err)
		}
		m := Message{Topic: "whole", Partition: 3, Offset: 17, Time: time.Unix(99, 0),
			Key: []byte("drive"), Value: value,
			Headers: []Header{{"Sensor", []byte("top")}, {"traceparent", []byte("00-1-2-00")},
				{"ce_id", []byte("of another")}}}
		whole := one(t, &first, m)
		key := whole.FrameKey

		e.Compression = rapid.SampledFrom(codecs).Draw(t, "compression")
		p := &Pruned{For: OpSet(0).With(Hull2D).With(Maxima3D), NPoints: int32(n) + 2, NDropped: 2}
		keep := kept(t, n)
		value, err = e.AppendPoints(nil, s.Of(whole, keep))
		if err != nil {
			t.Fatal(err)
		}
		m = sent(PrunedRecord(&m, key, p, value))
		survivors := one(t, &second, m)
		checkSurvivors(t, whole, survivors, keep, keep)
		want := key
		want.Topic, want.Partition, want.Offset = m.Topic, m.Partition, m.Offset
		if diff := cmp.Diff(want, survivors.FrameKey); diff != "" {
			t.Fatalf("the key (-want +have):\n%s", diff)
		}
		if g := survivors.Pruned; g.For != p.For || g.NPoints != p.NPoints || g.NDropped != p.NDropped {
			t.Fatalf("it says %+v, want %+v", g, p)
		}
		if got := headerValue(m.Headers, "traceparent"); string(got) != "00-1-2-00" {
			t.Fatalf("traceparent is %q", got)
		}
		if got := headerValue(m.Headers, HeaderPublishedFrom); string(got) != "whole/3/17" {
			t.Fatalf("%s is %q", HeaderPublishedFrom, got)
		}

		again := kept(t, len(keep))
		value, err = e.AppendPoints(nil, s.Of(survivors, again))
		if err != nil {
			t.Fatal(err)
		}
		m = sent(PrunedRecord(&m, survivors.FrameKey, survivors.Pruned, value))
		last, composed := one(t, new(Decoder), m), []int32{}
		for _, i := range again {
			composed = append(composed, keep[i])
		}
		checkSurvivors(t, whole, last, composed, composed)
		if n := count(m.Headers, HeaderPublishedFrom) + count(m.Headers, HeaderPrunedFor) + count(m.Headers, "ce_id") +
			count(m.Headers, "traceparent"); n != 4 {
			t.Fatalf("headers of a record that was published twice: %v", m.Headers)
		}
	})
}

// kept draws some of the numbers below n, at least one, ascending.
func kept(t *rapid.T, n int) []int32 {
	v := rapid.SliceOfNDistinct(rapid.Int32Range(0, int32(n)-1), 1, n, rapid.ID[int32]).Draw(t, "keep")
	slices.Sort(v)
	return v
}

// fataler is a *testing.T or a *rapid.T.
type fataler interface{ Fatalf(string, ...any) }

func one(t fataler, d *Decoder, m Message) *Frame {
	frames, err := d.Decode(m)
	if err != nil || len(frames) != 1 {
		t.Fatalf("%d frames, %v", len(frames), err)
	}
	return &frames[0]
}

// sent is r as a consumer of another topic gets it.
func sent(r *Record) Message {
	return Message{
		Topic:     "survivors",
		Partition: 1,
		Offset:    400,
		Time:      time.Unix(12345, 0),
		Key:       r.Key,
		Value:     r.Value,
		Headers:   r.Headers,
	}
}

func count(hs []Header, name string) (n int) {
	for i := range hs {
		if sameName(hs[i].Key, strings.ReplaceAll(name, "_", "-")) {
			n++
		}
	}
	return n
}

// checkSurvivors compares the points of part with those of whole at keep.
func checkSurvivors(t fataler, whole, part *Frame, keep, index []int32) {
	var s Survivors
	c := s.Of(whole, keep)
	want := Frame{
		FrameKey: part.FrameKey,
		Points:   codec.Points{Cloud32: c.Cloud32, Cloud64: c.Cloud64, Double: c.Double, Intensity: c.Intensity},
	}
	if !sameBits(part, &want) {
		t.Fatalf("have %+v\nwant %+v", part, want)
	}
	if part.Pruned == nil || !slices.Equal(part.Pruned.Index, index) {
		t.Fatalf("pruned %+v, want the index %v", part.Pruned, index)
	}
}

// A message that is not pruned goes on byte for byte, and its defaults with it.
func TestForwardedRecordMeansTheSame(t *testing.T) {
	var e Encoder
	value, err := e.AppendSketches(nil, []Sketch{{Drawing: Drawing{ID: 4, Label: "cow"}, TimeNs: 77,
		Strokes: []Stroke{{X: []float64{1}, Y: []float64{2}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range [][]byte{nil, []byte("album")} {
		m := Message{Topic: "whole", Partition: 3, Offset: 17, Time: time.Unix(99, 0), Key: key, Value: value,
			Headers: []Header{{"frame_id", []byte("9")}}}
		was := *one(t, new(Decoder), m)
		is := *one(t, new(Decoder), sent(ForwardedRecord(&m, was.FrameKey)))
		if is.Topic, is.Partition, is.Offset = was.Topic, was.Partition, was.Offset; !sameBits(&is, &was) {
			t.Errorf("have %+v\nwant %+v", is, was)
		}
		if diff := cmp.Diff(was.FrameKey, is.FrameKey); diff != "" {
			t.Errorf("the key (-want +have):\n%s", diff)
		}
	}
}

// prunedMessage is a pruned message of these columns and headers.
func prunedMessage(t testing.TB, npoints, ndropped, ops string, fields ...field) Message {
	return Message{Topic: "t", Value: write(t, []arrow.Record{record(t, fields...)}),
		Headers: []Header{{HeaderPrunedFor, []byte(ops)}, {HeaderNPoints, []byte(npoints)},
			{HeaderNDropped, []byte(ndropped)}}}
}

// Forged headers and numbers that cannot be are rejects, each with its reason.
func TestForgedPrunedMessagesAreRefused(t *testing.T) {
	x, y := field{"x", f32, "[1, 2, 3]"}, field{"y", f32, "[2, 3, 5]"}
	index := func(json string) field { return field{"index", i32, json} }
	good := index("[0, 4, 9]")
	huge := strings.Repeat("hull2d,", 1<<20)
	nan := field{"x", f32, "[1, null, 3]"}
	sketch := prunedMessage(t, "10", "0", "hull2d", x, y, good, field{"drawing_id", i64, "[1, 1, 1]"})
	bin := Message{Topic: "t", Value: kittiValue(),
		Headers: []Header{{HeaderContentType, []byte(ContentTypeKITTI)}, {HeaderPrunedFor, []byte("hull2d")}}}
	for name, c := range map[string]struct {
		m      Message
		reason string
	}{
		"good": {prunedMessage(t, "10", "7", "hull2d, maxima3d", x, y, good), ""},
		"every integer type": {prunedMessage(t, "10", "0", "hull2d", x, y,
			field{"index", arrow.PrimitiveTypes.Uint8, "[0, 4, 9]"}), ""},
		"an empty frame": {prunedMessage(t, "3", "3", "hull2d", field{"x", f32, "[]"},
			field{"y", f32, "[]"}, index("[]")), ""},
		"nothing to run": {prunedMessage(t, "3", "0", "hull3d,maxima3d", field{"x", f32, "[]"},
			field{"y", f32, "[]"}, index("[]")), ""},
		// an ordinary message
		"no operator named": {prunedMessage(t, "x", "x", "", x, y, index("[-1, 0, 1]")), ""},
		"no index":          {prunedMessage(t, "10", "0", "hull2d", x, y), ReasonMissingColumn},
		"two of them": {prunedMessage(t, "10", "0", "hull2d", x, y, good, good),
			ReasonDuplicateColumn},
		"index a float": {prunedMessage(t, "10", "0", "hull2d", x, y, field{"index", f32, "[0, 1, 2]"}),
			ReasonBadType},
		"null in index": {prunedMessage(t, "10", "0", "hull2d", x, y, index("[0, null, 2]")),
			ReasonBadValue},
		"descending": {prunedMessage(t, "10", "0", "hull2d", x, y, index("[0, 4, 3]")),
			ReasonBadValue},
		"twice": {prunedMessage(t, "10", "0", "hull2d", x, y, index("[0, 4, 4]")),
			ReasonBadValue},
		"negative": {prunedMessage(t, "10", "0", "hull2d", x, y, index("[-1, 4, 5]")),
			ReasonBadValue},
		"beyond the frame": {prunedMessage(t, "9", "0", "hull2d", x, y, good), ReasonBadValue},
		"beyond int32": {prunedMessage(t, "2147483647", "0", "hull2d", x, y,
			field{"index", i64, "[0, 1, 4294967296]"}), ReasonBadValue},
		"beyond int64": {prunedMessage(t, "2147483647", "0", "hull2d", x, y,
			field{"index", arrow.PrimitiveTypes.Uint64, "[0, 1, 18446744073709551615]"}), ReasonBadValue},
		"more survivors than points": {prunedMessage(t, "10", "8", "hull2d", x, y, good), ReasonBadValue},
		"no survivor of finite points": {prunedMessage(t, "3", "2", "hull2d", field{"x", f32, "[]"},
			field{"y", f32, "[]"}, index("[]")), ReasonBadValue},
		"a survivor that is null":  {prunedMessage(t, "10", "0", "hull2d", nan, y, good), ReasonBadValue},
		"no n-points":              {prunedMessage(t, "", "0", "hull2d", x, y, good), ReasonBadHeader},
		"n-points negative":        {prunedMessage(t, "-1", "0", "hull2d", x, y, good), ReasonBadHeader},
		"n-points beyond int32":    {prunedMessage(t, "2147483648", "0", "hull2d", x, y, good), ReasonBadHeader},
		"n-points no number":       {prunedMessage(t, "1e1", "0", "hull2d", x, y, good), ReasonBadHeader},
		"no n-dropped":             {prunedMessage(t, "10", "", "hull2d", x, y, good), ReasonBadHeader},
		"n-dropped above n-points": {prunedMessage(t, "10", "11", "hull2d", x, y, good), ReasonBadHeader},
		"for a triangulation":      {prunedMessage(t, "10", "0", "delaunay2d", x, y, good), ReasonBadHeader},
		"for what is not known":    {prunedMessage(t, "10", "0", "hull2d,hull4d", x, y, good), ReasonBadHeader},
		"a comma too many":         {prunedMessage(t, "10", "0", "hull2d,", x, y, good), ReasonBadHeader},
		"a megabyte of names":      {prunedMessage(t, "10", "0", huge, x, y, good), ReasonBadHeader},
		"drawings":                 {sketch, ReasonBadHeader},
		"a .bin":                   {bin, ReasonBadHeader},
	} {
		t.Run(name, func(t *testing.T) {
			var d Decoder
			frames, err := d.Decode(c.m)
			if got := reasonOf(t, err); got != c.reason {
				t.Fatalf("reason %q (%v), want %q", got, err, c.reason)
			}
			if err != nil && len(err.Error()) > 400 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if c.reason == "" && (frames[0].Pruned == nil) != (name == "no operator named") {
				t.Errorf("pruned: %+v", frames[0].Pruned)
			}
		})
	}
}

// FuzzPruned asserts of any value with any headers what FuzzDecode does, and
// of a pruned frame that its numbers can be used without another look.
func FuzzPruned(f *testing.F) {
	x, y := field{"x", f32, "[1, 2, 3]"}, field{"y", f32, "[2, 3, 5]"}
	for _, index := range []field{{"index", i32, "[0, 4, 9]"}, {"index", i64, "[0, 9, 4]"},
		{"Index", arrow.PrimitiveTypes.Int8, "[0, null, 9]"}} {
		m := prunedMessage(f, "10", "1", "hull2d,hull3d", x, y, index)
		f.Add(m.Value, "hull2d,hull3d", "10", "1")
		f.Add(m.Value, "maxima2d", "3", "-0")
	}
	var e Encoder
	e.Compression = "lz4"
	value, err := e.AppendPoints(
		nil,
		PointCloud{
			Index: []int32{2, 7},
			Points: codec.Points{
				Double:  true,
				Cloud64: geom.Cloud[float64]{X: []float64{1, math.Inf(1)}, Y: []float64{1, 2}},
			},
		},
	)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(value, "maxima3d", "9", "0")
	fast, slow := &Decoder{MaxBytes: 1 << 20}, &Decoder{MaxBytes: 1 << 20, throughArrow: true}
	f.Fuzz(func(t *testing.T, value []byte, ops, npoints, ndropped string) {
		m := Message{Topic: "t", Value: value, Headers: []Header{{HeaderPrunedFor, []byte(ops)},
			{HeaderNPoints, []byte(npoints)}, {HeaderNDropped, []byte(ndropped)}}}
		checkBytes(t, fast, slow, m, nil)
		frames, err := fast.Decode(m)
		if err != nil || ops == "" {
			return
		}
		fr := &frames[0]
		p := fr.Pruned
		if len(frames) != 1 || p == nil || len(p.Index) != fr.Len() || p.For == 0 || p.For&^Prunable != 0 ||
			p.NDropped < 0 || int(p.NPoints-p.NDropped) < fr.Len() {
			t.Fatalf("%d points of %+v", fr.Len(), p)
		}
		for i, v := range p.Index {
			if v < 0 || v >= p.NPoints || i > 0 && v <= p.Index[i-1] {
				t.Fatalf("index %v of %d points", p.Index, p.NPoints)
			}
		}
		if !fr.Cloud32.Finite() || !fr.Cloud64.Finite() {
			t.Fatalf("survivors %+v", fr)
		}
	})
}

func TestOpSet(t *testing.T) {
	for s := range OpSet(1 << NumOps) {
		got, err := ParseOpSet(s.String())
		if legal := s != 0 && s&^Prunable == 0; legal != (err == nil) || legal && got != s {
			t.Errorf("%q is read as %v, %v", s, got, err)
		}
	}
	if _, err := ParseOpSet(" hull2d , maxima2d "); err != nil {
		t.Error(err)
	}
}

// A record's estimate covers its bytes, which the pipeline's budget counts.
func TestRecordBytes(t *testing.T) {
	r := &Record{Key: make([]byte, 10), Value: make([]byte, 1000),
		Headers: []Header{{"a", bytes.Repeat([]byte{1}, 100)}}}
	if n := r.Bytes(); n < 1110 {
		t.Errorf("%d bytes for %s", n, fmt.Sprint(1110))
	}
}
