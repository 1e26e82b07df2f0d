package pipeline

import (
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"entropipe/schemas"
)

// drawings encodes drawings of these numbers of points.
func drawings(t *rapid.T, sizes []int) schemas.Message {
	var all []schemas.Sketch
	for k, n := range sizes {
		s := schemas.Sketch{Drawing: schemas.Drawing{ID: int64(k), Label: "d"}, Strokes: make([]schemas.Stroke, 1)}
		for i := range n {
			s.Strokes[0].X = append(s.Strokes[0].X, float64((i*i*37+k*11)%211))
			s.Strokes[0].Y = append(s.Strokes[0].Y, float64((i*53+k*7)%197))
		}
		all = append(all, s)
	}
	var e schemas.Encoder
	v, err := e.AppendSketches(nil, all)
	if err != nil {
		t.Fatal(err)
	}
	m := message(v)
	m.Headers = []schemas.Header{{Key: "schema", Value: []byte(schemas.SchemaSketches)}}
	return m
}

// The results of a message share blocks of memory, but nothing in them: they
// are those of a worker that has seen nothing else, they stay so while it goes
// on, and appending to one changes no other.
func TestResultsOwnTheirMemory(t *testing.T) {
	size := rapid.SampledFrom([]int{1, 2, 3, 4, 10, 45, 45, 100})
	rapid.Check(t, func(t *rapid.T) {
		worker := NewFrames(FrameConfig{Ops: []schemas.Op{schemas.Hull2D, schemas.Maxima2D, schemas.Delaunay2D}})
		var have, want [][]schemas.Result
		for range rapid.IntRange(1, 3).Draw(t, "messages") {
			m := drawings(t, rapid.SliceOfN(size, 1, 12).Draw(t, "sizes"))
			results, rejects := worker.Process(m)
			fresh := NewFrames(worker.cfg)
			expected, _ := fresh.Process(m)
			if len(rejects) > 0 {
				t.Fatalf("rejects: %+v", rejects)
			}
			have, want = append(have, results), append(want, expected)
		}
		for _, results := range have {
			for i := range results {
				r := &results[i]
				_ = append(r.Triangles, -1)
				_ = append(r.Hull.Idx, -1)
				_ = append(r.Hull.X, -1)
				_ = append(r.Hull.Y, -1)
				_ = append(r.Maxima[0].Idx, -1)
				_ = append(r.Maxima, schemas.Maxima{Directions: "none"})
			}
		}
		withoutTimes(have)
		withoutTimes(want)
		if diff := differEach(want, have, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-fresh +shared):\n%s", diff)
		}
	})
}

// withoutTimes sets all times of results to 0.
func withoutTimes(messages [][]schemas.Result) {
	for _, results := range messages {
		for i := range results {
			results[i].LatencyNs = 0
			for k := range results[i].Ops {
				results[i].Ops[k].Ns = 0
			}
		}
	}
}

// What a message's results hold is about what they say they hold.
func TestBlocksAreNoLargerThanTheResults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m memory
		var held, used int
		for range rapid.IntRange(1, 5).Draw(t, "messages") {
			frames := rapid.IntRange(1, 50).Draw(t, "frames")
			size := rapid.SampledFrom([]int{0, 1, 20, 300, 2000, 50_000}).Draw(t, "size")
			m.begin(frames)
			held, used = 0, 0
			var block []int32
			for range frames {
				m.next()
				v := m.room()
				if cap(v) > 0 && (cap(block) == 0 || &v[:1][0] != &block[:1][0]) {
					held += cap(v)
				}
				m.keep(append(v, make([]int32, size)...))
				block, used = m.room(), used+size
			}
			m.end(frames)
		}
		if limit := 4*used + 2*maxBlock; held > limit {
			t.Fatalf("blocks of %d for %d numbers", held, used)
		}
	})
}
