package schemas

import (
	"fmt"
	"testing"
)

// The decoder divides drawings into strokes while it is asked to, in place and through Arrow,
// and reads the same points either way.
func TestStrokes(t *testing.T) {
	line := func(n int) (s Stroke) {
		for i := range n {
			s.X, s.Y = append(s.X, float64(i)), append(s.Y, float64(n))
		}
		return s
	}
	sketches := []Sketch{
		{Drawing: Drawing{ID: 5}, Strokes: []Stroke{line(3), line(1), line(2)}},
		{Drawing: Drawing{ID: 6}, Strokes: []Stroke{line(1)}},
		{Drawing: Drawing{ID: 7}, Strokes: []Stroke{line(2), line(2)}},
	}
	for _, codec := range []string{"none", "lz4", "zstd"} {
		e := Encoder{Compression: codec}
		value, err := e.AppendSketches(nil, sketches)
		if err != nil {
			t.Fatal(err)
		}
		m := Message{Topic: "t", Value: value, Headers: Headers(FrameKey{}, SchemaSketches, "test")}
		for _, d := range []*Decoder{{Strokes: true}, {Strokes: true, throughArrow: true}, {}} {
			for range 2 { // the second message reuses the memory of the first
				frames, err := d.Decode(m)
				if err != nil {
					t.Fatal(err)
				}
				var got [][]int32
				for i := range frames {
					got = append(got, frames[i].Strokes)
				}
				want := "[[3 4 6] [1] [2 4]]"
				if !d.Strokes {
					want = "[[] [] []]"
				}
				if fmt.Sprint(got) != want || len(frames) != 3 || frames[0].Len() != 6 {
					t.Errorf("%s, through Arrow %v: %d frames, strokes %v, want %s", codec, d.throughArrow, len(frames),
						got, want)
				}
			}
		}
	}
}
