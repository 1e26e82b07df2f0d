package schemas

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"entropipe/algos/geom"
	"entropipe/schemas/codec"
)

const sweep = 120_000 // points of a 64-beam LiDAR in one turn

// sweepCloud is like a LiDAR frame in size and entropy: coordinates in
// centimetres, so that codecs find something.
func sweepCloud() PointCloud {
	rng := rand.New(rand.NewPCG(1, 2))
	axis := func(span int) []float32 {
		v := make([]float32, sweep)
		for i := range v {
			v[i] = float32(rng.IntN(100*span)) / 100
		}
		return v
	}
	return PointCloud{
		Points: codec.Points{Cloud32: geom.Cloud[float32]{X: axis(80), Y: axis(60), Z: axis(4)}, Intensity: axis(1)},
	}
}

// sketchBatch is 500 drawings of 50 points in 4 strokes.
func sketchBatch() []Sketch {
	rng := rand.New(rand.NewPCG(3, 4))
	out := make([]Sketch, 500)
	for i := range out {
		out[i] = Sketch{
			Drawing: Drawing{ID: int64(i), Label: fmt.Sprint("category ", rng.IntN(345))},
			TimeNs:  int64(i),
		}
		for range 4 {
			var st Stroke
			for range 13 {
				st.X, st.Y = append(st.X, float64(rng.IntN(256))), append(st.Y, float64(rng.IntN(256)))
			}
			out[i].Strokes = append(out[i].Strokes, st)
		}
	}
	return out
}

func BenchmarkDecodePoints(b *testing.B) {
	for _, codec := range []string{"none", "lz4", "zstd"} {
		e := Encoder{Compression: codec}
		value, err := e.AppendPoints(nil, sweepCloud())
		if err != nil {
			b.Fatal(err)
		}
		m := Message{Topic: "t", Value: value, Headers: Headers(FrameKey{Dataset: "kitti", Sequence: "0001",
			Sensor: "velodyne"}, SchemaPoints, "/bench")}
		for name, d := range map[string]*Decoder{"inplace": {}, "arrow": {throughArrow: true}} {
			b.Run(codec+"/"+name, func(b *testing.B) {
				benchDecode(b, d, m, 1)
			})
		}
	}
}

func BenchmarkDecodeKITTI(b *testing.B) {
	m := Message{Topic: "t", Value: make([]byte, 16*sweep),
		Headers: []Header{{HeaderContentType, []byte(ContentTypeKITTI)}}}
	benchDecode(b, &Decoder{}, m, 1)
}

func BenchmarkDecodeSketches(b *testing.B) {
	for _, codec := range []string{"none", "lz4", "zstd"} {
		e := Encoder{Compression: codec}
		sketches := sketchBatch()
		value, err := e.AppendSketches(nil, sketches)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(codec, func(b *testing.B) {
			benchDecode(b, &Decoder{}, Message{Topic: "t", Value: value}, len(sketches))
			b.ReportMetric(float64(b.N*len(sketches))/b.Elapsed().Seconds(), "drawings/s")
		})
	}
}

func benchDecode(b *testing.B, d *Decoder, m Message, want int) {
	b.SetBytes(int64(len(m.Value)))
	b.ReportAllocs()
	for b.Loop() {
		frames, err := d.Decode(m)
		if err != nil || len(frames) != want {
			b.Fatalf("%d frames, %v", len(frames), err)
		}
	}
}

func BenchmarkEncodePoints(b *testing.B) {
	cloud := sweepCloud()
	for _, codec := range []string{"none", "lz4", "zstd"} {
		b.Run(codec, func(b *testing.B) {
			e := Encoder{Compression: codec}
			b.SetBytes(16 * sweep)
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				var err error
				if buf, err = e.AppendPoints(buf[:0], cloud); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(buf)), "B/frame")
		})
	}
}

func BenchmarkEncodeSketches(b *testing.B) {
	sketches := sketchBatch()
	for _, codec := range []string{"none", "lz4", "zstd"} {
		b.Run(codec, func(b *testing.B) {
			e := Encoder{Compression: codec}
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				var err error
				if buf, err = e.AppendSketches(buf[:0], sketches); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(buf)), "B/message")
			b.ReportMetric(float64(b.N*len(sketches))/b.Elapsed().Seconds(), "drawings/s")
		})
	}
}
