package web

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"entropipe/ops/live"
	"entropipe/schemas"
)

// decoded is a scene as a page reads it.
type decoded struct {
	header map[string]any
	data   []byte
	t      *testing.T
}

func decode(t *testing.T, data []byte) decoded {
	t.Helper()
	if len(data) < 8 || binary.LittleEndian.Uint32(data) != magic {
		t.Fatalf("%d bytes are no scene", len(data))
	}
	n := int(binary.LittleEndian.Uint32(data[4:]))
	if (8+n)%8 != 0 || 8+n > len(data) {
		t.Fatalf("a header of %d bytes in %d", n, len(data))
	}
	d := decoded{data: data, t: t}
	if err := json.Unmarshal(data[8:8+n], &d.header); err != nil {
		t.Fatalf("%v: %s", err, data[8:8+n])
	}
	end := 8 + n
	for name, s := range d.header["sections"].(map[string]any) {
		at := int(s.(map[string]any)["at"].(float64))
		if at%4 != 0 || at < end || at > len(data) {
			t.Errorf("section %s at %d of %d bytes, header to %d", name, at, len(data), end)
		}
	}
	return d
}

// numbers returns a section as numbers; nil if there is none.
func (d decoded) numbers(name string) []float64 {
	d.t.Helper()
	s, ok := d.header["sections"].(map[string]any)[name].(map[string]any)
	if !ok {
		return nil
	}
	at, n := int(s["at"].(float64)), int(s["n"].(float64))
	out := make([]float64, n)
	for i := range out {
		switch kind := s["type"]; kind {
		case "u8":
			out[i] = float64(d.data[at+i])
		case "i16":
			out[i] = float64(int16(binary.LittleEndian.Uint16(d.data[at+2*i:])))
		case "u16":
			out[i] = float64(binary.LittleEndian.Uint16(d.data[at+2*i:]))
		case "u32":
			out[i] = float64(binary.LittleEndian.Uint32(d.data[at+4*i:]))
		case "f32":
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(d.data[at+4*i:])))
		default:
			d.t.Fatalf("section %s of type %v", name, kind)
		}
	}
	return out
}

func (d decoded) triple(name string) (v [3]float64) {
	for i, x := range d.header[name].([]any) {
		v[i] = x.(float64)
	}
	return v
}

// points returns the coordinates in section xyz, offsets from the origin.
func (d decoded) points() [][3]float64 {
	low, high := d.triple("min"), d.triple("max")
	q := d.numbers("xyz")
	exact := d.header["kind"] == "exact"
	out := make([][3]float64, len(q)/3)
	for i := range out {
		for axis := range 3 {
			v := q[3*i+axis]
			if !exact {
				v = low[axis] + (v+32768)/65535*(high[axis]-low[axis])
			}
			out[i][axis] = v
		}
	}
	return out
}

// sceneOf returns a scene of n points with everything that a frame can have.
func sceneOf(n int, space bool) *live.Scene {
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	s := &live.Scene{FrameKey: schemas.FrameKey{Topic: "points", Sequence: "drive", Dataset: "d", FrameID: 1<<60 + 7,
		TimeNs: 1<<60 + 9, Partition: 3, Offset: 1<<55 + 1}, NPoints: int32(n), Origin: [3]float64{4e6, 0, -5},
		CapturedNs: 5, SentNs: 4}
	if space {
		s.Z = []float32{}
	}
	for i := range n {
		s.X, s.Y = append(s.X, float32(rng.NormFloat64()*30)), append(s.Y, float32(rng.NormFloat64()*30))
		if space {
			s.Z = append(s.Z, float32(rng.NormFloat64()))
		}
		s.Intensity = append(s.Intensity, float32(i%100)/100)
		s.Return = append(s.Return, int32(1+i%3))
	}
	if n >= 4 {
		s.Hull = &schemas.Hull{Idx: []int32{0, 1, int32(n - 1)}, Area: 12.5}
		s.Hull3 = &schemas.Hull3{Idx: []int32{0, 1, 2, 3}, Faces: []int32{0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2},
			Volume: 2}
		s.Maxima = []schemas.Maxima{{Idx: []int32{1, 3}}}
		s.Meshed = int32(n)
		for i := range int32(n) {
			s.Triangles = append(s.Triangles, i, (i+1)%int32(n), (i+2)%int32(n))
		}
	}
	s.Ops[schemas.Hull2D] = schemas.OpResult{Status: schemas.StatusOK, N: 3, Ns: 400_000}
	return s
}

// A page finds the points within half a step of the box, hulls and meshes exactly.
func TestEncode(t *testing.T) {
	for _, c := range []struct {
		n     int
		space bool
		exact bool
	}{{0, true, false}, {1, false, false}, {4, true, false}, {1000, true, false}, {1000, false, true},
		{20_000, true, false}, {20_001, true, false}, {120_000, true, false}, {120_000, true, true}} {
		name := fmt.Sprintf("%d points, space %v, exact %v", c.n, c.space, c.exact)
		s := sceneOf(c.n, c.space)
		data := encode(s, c.exact)
		d := decode(t, data)
		held := c.n
		if !c.exact {
			held = min(c.n, live.SamplePoints)
		}
		got := d.points()
		if len(got) != held || int(d.header["held"].(float64)) != held || int(d.header["points"].(float64)) != c.n {
			t.Errorf("%s: %d points of %d, header %v", name, len(got), c.n, d.header["held"])
		}
		if d.header["offset"] != "36028797018963969" || d.header["frame"] != "1152921504606846983" {
			t.Errorf("%s: offset %v, frame %v", name, d.header["offset"], d.header["frame"])
		}
		if d.header["sampled"] != (held < c.n) || d.header["space"] != c.space {
			t.Errorf("%s: sampled %v, space %v", name, d.header["sampled"], d.header["space"])
		}
		low, high := d.triple("min"), d.triple("max")
		for k, i := range live.Strata(c.n, held) {
			want := [3]float64{float64(s.X[i]), float64(s.Y[i])}
			if c.space {
				want[2] = float64(s.Z[i])
			}
			for axis := range 3 {
				step := (high[axis] - low[axis]) / 65535
				if math.Abs(got[k][axis]-want[axis]) > .501*step+1e-6*math.Abs(want[axis]) {
					t.Fatalf("%s: point %d has %v, want %v, step %g", name, i, got[k], want, step)
				}
			}
		}
		for section, numbers := range map[string][]int32{"hull": idx(s.Hull), "maxima": maxima(s)} {
			v := d.numbers(section)
			if len(v) != 3*len(numbers) {
				t.Errorf("%s: %s has %d numbers, want %d", name, section, len(v), 3*len(numbers))
				continue
			}
			for k, i := range numbers {
				if v[3*k] != float64(s.X[i]) || v[3*k+1] != float64(s.Y[i]) {
					t.Errorf("%s: %s vertex %d is %v", name, section, k, v[3*k:3*k+3])
				}
			}
		}
		mesh, corners := d.numbers("mesh"), d.numbers("meshxyz")
		if want := c.n >= 4 && (c.exact || c.n <= maxMesh); (mesh != nil) != want {
			t.Errorf("%s: mesh of %d, want one: %v", name, len(mesh), want)
		}
		for k, at := range mesh {
			x := got[int(at)][0]
			if corners != nil {
				x = corners[3*int(at)]
			}
			if want := float64(s.X[s.Triangles[k]]); math.Abs(x-want) > .501*(high[0]-low[0])/65535 {
				t.Fatalf("%s: corner %d of the mesh has x %g, want %g", name, k, x, want)
			}
		}
		if faces := d.numbers("faces"); c.n >= 4 && len(faces) != 12 {
			t.Errorf("%s: faces %v", name, faces)
		}
		if c.n == 120_000 && !c.exact && len(data) > 200_000 {
			t.Errorf("%s: %d bytes", name, len(data))
		}
	}
}

func idx(h *schemas.Hull) []int32 {
	if h == nil {
		return nil
	}
	return h.Idx
}

func maxima(s *live.Scene) (all []int32) {
	for _, m := range s.Maxima {
		all = append(all, m.Idx...)
	}
	return all
}

// Points that are no numbers are left out, and what refers to points still finds its own.
func TestEncodeLeavesOutWhatIsNotFinite(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	s := &live.Scene{X: []float32{0, nan, 2, inf, 4, 6}, Y: []float32{1, 1, 1, 1, nan, 5}, NPoints: 6,
		Intensity: []float32{nan, 9, 1, 9, 9, 3}, Strokes: []int32{2, 5, 6}, Return: []int32{-5, 1, 300, 1, 1, 2},
		Triangles: []int32{0, 2, 5}, Meshed: 1,
		Hull: &schemas.Hull{Idx: []int32{0, 2, 5}, Area: math.Inf(1)}}
	d := decode(t, Encode(s))
	for name, want := range map[string][]float64{"intensity": {0, 0, 255}, "return": {0, 255, 2}, "strokes": {1, 2, 3},
		"mesh": {0, 1, 2}, "meshxyz": {0, 1, 0, 2, 1, 0, 6, 5, 0}, "hull": {0, 1, 0, 2, 1, 0, 6, 5, 0}} {
		if got := d.numbers(name); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s %v, want %v", name, got, want)
		}
	}
	if d.header["area"] != nil {
		t.Errorf("area %v", d.header["area"])
	}
	all := &live.Scene{X: []float32{nan}, Y: []float32{nan}, Intensity: []float32{nan}, NPoints: 1}
	if d := decode(t, Encode(all)); len(d.points()) != 0 || d.header["intensity"] != nil {
		t.Errorf("a frame of nothing: %v", d.header)
	}
}

// A pruned frame numbers its points as they were received.
func TestEncodeFindsNumbers(t *testing.T) {
	s := &live.Scene{X: []float32{1, 2, 3}, Y: []float32{4, 5, 6}, Numbers: []int32{10, 20, 30}, NPoints: 100,
		Hull: &schemas.Hull{Idx: []int32{20, 30}}, Maxima: []schemas.Maxima{{Idx: []int32{15}}},
		Triangles: []int32{10, 20, 30}}
	d := decode(t, Encode(s))
	if got := fmt.Sprint(d.numbers("hull"), d.numbers("mesh"), d.numbers("maxima")); got != "[2 5 0 3 6 0] [0 1 2] []" {
		t.Error(got)
	}
}

// A scene of tokens has words, next tokens and the mask.
func TestEncodeTokens(t *testing.T) {
	s := &live.Scene{FrameKey: schemas.FrameKey{Topic: "tokens"}, Text: &live.Text{ID: "note", Task: "logits",
		NTokens: 2, IDs: []int32{5, 6}, Words: []string{"\"history\":false", "\x00é\xff"},
		Next:   []live.Next{{ID: 1, Word: "x", Logprob: float32(math.Inf(-1))}},
		Blocks: [][]byte{{1, 0}, {1, 1}}, BlockSize: 16}}
	d := decode(t, Encode(s))
	if d.header["kind"] != "tokens" || fmt.Sprint(d.numbers("blocks")) != "[1 0 1 1]" ||
		fmt.Sprint(d.header["blocks"]) != "map[cols:2 rows:2 size:16]" {
		t.Errorf("%v", d.header)
	}
	old := historyOf([][]byte{Encode(s)})[0]
	if h := decode(t, old).header; h["history"] != true || h["words"].([]any)[0] != `"history":false` {
		t.Errorf("history %v", h)
	}
}

// A scene that breaks the encoder is told of, and ends nothing.
func TestBrokenSceneEndsNothing(t *testing.T) {
	var log bytes.Buffer
	h := newHub(&Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if data := h.encoded(&live.Scene{X: make([]float32, 2), Y: make([]float32, 1)}, Encode); data != nil ||
		!strings.Contains(log.String(), "bug") {
		t.Errorf("%d bytes, log %q", len(data), &log)
	}
}

// BenchmarkScene is the cost of a frame that is watched: the copy in the worker, and the bytes
// elsewhere. At ten frames a second it is the share of a core, in hundredths of a millisecond.
func BenchmarkScene(b *testing.B) {
	s := sceneOf(120_000, true)
	s.Triangles = nil
	fr := &schemas.Frame{FrameKey: s.FrameKey}
	fr.Cloud32.X, fr.Cloud32.Y, fr.Cloud32.Z, fr.Intensity = s.X, s.Y, s.Z, s.Intensity
	r := &schemas.Result{FrameKey: s.FrameKey, NPoints: 120_000, Hull: s.Hull}
	b.Run("copy", func(b *testing.B) {
		for b.Loop() {
			live.Capture(&schemas.Message{}, fr, r)
		}
	})
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			Encode(s)
		}
	})
}
