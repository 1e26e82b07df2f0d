package schemas

import (
	"bytes"
	"os"
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/schemas/codec"
)

// Real frames come through every codec bit for bit, and a .bin is read as the
// Arrow message made of it is.
func TestRealFrames(t *testing.T) {
	var arrows, raws Decoder
	for i, f := range geomtest.RealFrames(t) {
		value, err := os.ReadFile(geomtest.TestData(t, "kitti", f.Name))
		if err != nil {
			t.Fatal(err)
		}
		kitti := []Header{{HeaderContentType, []byte(ContentTypeKITTI)}}
		raw, err := raws.Decode(Message{Topic: "t", Value: value, Headers: kitti})
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		cloud := raw[0].Cloud32
		if len(cloud.X) != len(value)/16 || len(f.Cloud.X) == len(cloud.X) && !sameCloud(f.Cloud, cloud) {
			t.Fatalf("%s: %d points in %d bytes, or other ones", f.Name, len(cloud.X), len(value))
		}
		e := Encoder{Compression: codecs[i%len(codecs)]}
		if value, err = e.AppendPoints(nil, PointCloud{Points: codec.Points{Cloud32: cloud,
			Intensity: raw[0].Intensity}}); err != nil {
			t.Fatal(err)
		}
		frames, err := arrows.Decode(Message{Topic: "t", Value: value})
		if err != nil {
			t.Fatalf("%s, %s: %v", f.Name, e.Compression, err)
		}
		if !sameCloud(frames[0].Cloud32, cloud) ||
			!bytes.Equal(bytesOf(frames[0].Intensity), bytesOf(raw[0].Intensity)) {
			t.Errorf("%s, %s: the cloud changed", f.Name, e.Compression)
		}
	}
}

// Real drawings, all in messages of 500, come through bit for bit.
func TestRealDrawings(t *testing.T) {
	var e Encoder
	var d Decoder
	all := geomtest.Drawings[float32](t)
	for start := 0; start < len(all); start += 500 {
		part := all[start:min(start+500, len(all))]
		var sketches []Sketch
		var of []geom.Cloud[float32]
		for i, n := range part {
			if n.Cloud.Len() > 0 {
				sketches = append(sketches, Sketch{Drawing: Drawing{ID: int64(start + i), Label: n.Name},
					Strokes: []Stroke{{X: widen(n.Cloud.X), Y: widen(n.Cloud.Y)}}})
				of = append(of, n.Cloud)
			}
		}
		value, err := e.AppendSketches(nil, sketches)
		if err != nil {
			t.Fatal(err)
		}
		frames, err := d.Decode(Message{Topic: "t", Value: value})
		if err != nil || len(frames) != len(sketches) {
			t.Fatalf("drawings %d to %d: %d frames, %v", start, start+len(part), len(frames), err)
		}
		for i, f := range frames {
			if !sameCloud(f.Cloud32, geom.Cloud[float32]{X: of[i].X, Y: of[i].Y}) ||
				*f.Drawing != sketches[i].Drawing {
				t.Errorf("%s: the drawing changed", sketches[i].Label)
			}
		}
	}
}

func sameCloud(a, b geom.Cloud[float32]) bool {
	return bytes.Equal(bytesOf(a.X), bytesOf(b.X)) && bytes.Equal(bytesOf(a.Y), bytesOf(b.Y)) &&
		bytes.Equal(bytesOf(a.Z), bytesOf(b.Z))
}
