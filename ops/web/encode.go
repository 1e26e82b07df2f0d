package web

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"time"

	"entropipe/ops/live"
	"entropipe/schemas"
)

// The first bytes of every scene, "ENP1", and what a scene holds at most.
const (
	magic = 0x31504e45

	// maxMesh is the number of triangles up to which a frame's mesh is sent at once.
	maxMesh = 20_000
)

// header is the JSON part of a scene. Numbers that JavaScript would round are texts.
type header struct {
	Kind    string      `json:"kind"`
	History bool        `json:"history"`
	Stream  live.Stream `json:"stream"`
	Dataset string      `json:"dataset"`
	Sensor  string      `json:"sensor"`

	Frame     int64          `json:"frame,string"`
	TimeNs    int64          `json:"time_ns,string"`
	Partition int32          `json:"partition"`
	Offset    int64          `json:"offset,string"`
	Index     int32          `json:"index"`
	Drawing   *headerDrawing `json:"drawing,omitempty"`

	Points    int32       `json:"points"`
	Held      int         `json:"held"`
	Space     bool        `json:"space"`
	Sampled   bool        `json:"sampled"`
	Triangles int32       `json:"triangles"`
	SentNs    int64       `json:"sent_ns,string"`
	Captured  int64       `json:"captured_ns,string"`
	Encoded   int64       `json:"encoded_ns,string"`
	Origin    [3]float64  `json:"origin"`
	Min       [3]float32  `json:"min"`
	Max       [3]float32  `json:"max"`
	Intensity *[2]float32 `json:"intensity,omitempty"`

	Ops    map[string]headerOp `json:"ops"`
	Area   *float64            `json:"area,omitempty"`
	Volume *float64            `json:"volume,omitempty"`

	*headerText
	Sections map[string]section `json:"sections"`
}

type headerDrawing struct {
	ID    int64  `json:"id,string"`
	Label string `json:"label"`
}

type headerOp struct {
	Status schemas.Status `json:"status"`
	N      int32          `json:"n"`
	Ms     float64        `json:"ms"`
}

// headerText is what a scene of tokens has in place of points.
type headerText struct {
	ID        string        `json:"id"`
	Model     string        `json:"model"`
	Task      string        `json:"task"`
	NTokens   int32         `json:"n_tokens"`
	Words     []string      `json:"words,omitempty"`
	IDs       []int32       `json:"ids,omitempty"`
	Next      []live.Next   `json:"next"`
	Generated bool          `json:"generated"`
	Blocks    *headerBlocks `json:"blocks,omitempty"`
}

type headerBlocks struct {
	Rows int `json:"rows"`
	Cols int `json:"cols"`
	Size int `json:"size"`
}

// section says where numbers of one kind are: n of them, at bytes behind the scene's begin.
type section struct {
	Type string `json:"type"`
	At   int    `json:"at"`
	N    int    `json:"n"`
}

// Encode returns the bytes of a scene as pages read it: at most 20,000 of its points, int16 in
// the box of the finite ones, whole hulls and maxima, and the mesh up to 20,000 triangles.
func Encode(s *live.Scene) []byte { return encode(s, false) }

// EncodeExact returns the bytes of a scene with all points and triangles that it holds, float32.
func EncodeExact(s *live.Scene) []byte { return encode(s, true) }

func encode(s *live.Scene, exact bool) []byte {
	e := encoder{scene: s, exact: exact, header: header{Kind: "frame", Stream: s.Stream(), Dataset: s.Dataset,
		Sensor: s.Sensor, Frame: s.FrameID, TimeNs: s.TimeNs, Partition: s.Partition, Offset: s.Offset,
		Index: s.Index, SentNs: s.SentNs, Captured: s.CapturedNs, Ops: map[string]headerOp{},
		Sections: map[string]section{}}}
	switch {
	case s.Text != nil:
		e.header.Kind = "tokens"
		e.text(s.Text)
	case exact:
		e.header.Kind = "exact"
		e.frame()
	default:
		e.frame()
	}
	return e.bytes()
}

// encoder makes the bytes of one scene.
type encoder struct {
	scene  *live.Scene
	exact  bool
	header header
	body   []byte
	names  []string // sections in their order
	sent   []int32  // position in the scene of each point that is sent, ascending
}

func (e *encoder) frame() {
	s, h := e.scene, &e.header
	h.Points, h.Space, h.Triangles, h.Origin = s.NPoints, s.Z != nil, s.Meshed, s.Origin
	if d := s.Drawing; d != nil {
		h.Drawing = &headerDrawing{d.ID, d.Label}
	}
	for op := range schemas.NumOps {
		if r := s.Ops[op]; r.Status != "" {
			h.Ops[op.String()] = headerOp{r.Status, r.N, float64(r.Ns) / 1e6}
		}
	}
	e.choose()
	h.Held, h.Sampled = len(e.sent), s.Sampled || len(e.sent) < s.Len()
	e.coordinates()
	e.attributes()
	e.hulls()
	e.mesh()
}

// choose sets the points to send: those with finite coordinates, of a large frame a sample.
func (e *encoder) choose() {
	s := e.scene
	at := live.Strata(s.Len(), s.Len())
	if !e.exact {
		at = live.Strata(s.Len(), live.SamplePoints)
	}
	e.sent = at[:0]
	for _, i := range at {
		if finite(s.X[i]) && finite(s.Y[i]) && (s.Z == nil || finite(s.Z[i])) {
			e.sent = append(e.sent, i)
		}
	}
}

func finite[T float32 | float64](v T) bool { return v-v == 0 }

// at returns the coordinate of point i along an axis.
func (e *encoder) at(axis int, i int32) float32 {
	switch s := e.scene; {
	case axis == 0:
		return s.X[i]
	case axis == 1:
		return s.Y[i]
	case s.Z != nil:
		return s.Z[i]
	}
	return 0
}

// coordinates writes section xyz and the box.
func (e *encoder) coordinates() {
	h := &e.header
	for axis, values := range [][]float32{e.scene.X, e.scene.Y, e.scene.Z} {
		if values == nil || len(e.sent) == 0 {
			continue
		}
		low, high := values[e.sent[0]], values[e.sent[0]]
		for _, i := range e.sent {
			low, high = min(low, values[i]), max(high, values[i])
		}
		h.Min[axis], h.Max[axis] = low, high
	}
	if e.exact {
		e.begin("xyz", "f32", 3*len(e.sent))
		for _, i := range e.sent {
			for axis := range 3 {
				e.float(e.at(axis, i))
			}
		}
		return
	}
	e.begin("xyz", "i16", 3*len(e.sent))
	if len(e.sent) == 0 {
		return
	}
	at := len(e.body)
	e.body = slices.Grow(e.body, 14*len(e.sent))[:at+6*len(e.sent)] // with room for what follows
	for axis, values := range [][]float32{e.scene.X, e.scene.Y, e.scene.Z} {
		low, scale := float64(h.Min[axis]), 0.
		if extent := float64(h.Max[axis]) - low; extent > 0 {
			scale = 65535 / extent
		}
		to := e.body[at+2*axis:]
		for k, i := range e.sent {
			q := 0.
			if values != nil {
				q = (float64(values[i])-low)*scale + .5
			}
			binary.LittleEndian.PutUint16(to[6*k:], uint16(int32(q)-32768))
		}
	}
}

// attributes writes what points have beside coordinates, and the strokes.
func (e *encoder) attributes() {
	s := e.scene
	if s.Intensity != nil {
		low, high := float32(math.Inf(1)), float32(math.Inf(-1))
		for _, i := range e.sent {
			if v := s.Intensity[i]; finite(v) {
				low, high = min(low, v), max(high, v)
			}
		}
		if low <= high {
			e.header.Intensity = &[2]float32{low, high}
		}
		e.begin("intensity", "u8", len(e.sent))
		for _, i := range e.sent {
			q := 0.
			if v := s.Intensity[i]; finite(v) && high > low {
				q = (float64(v)-float64(low))/(float64(high)-float64(low))*255 + .5
			}
			e.body = append(e.body, byte(q))
		}
	}
	if s.Return != nil {
		e.begin("return", "u8", len(e.sent))
		for _, i := range e.sent {
			e.body = append(e.body, byte(min(max(s.Return[i], 0), 255)))
		}
	}
	if s.Strokes != nil {
		e.begin("strokes", "u32", len(s.Strokes))
		for _, end := range s.Strokes {
			k, _ := slices.BinarySearch(e.sent, end)
			e.body = binary.LittleEndian.AppendUint32(e.body, uint32(k))
		}
	}
}

// hulls writes hulls and maxima. A corner that the scene does not hold leaves its section out.
func (e *encoder) hulls() {
	s, h := e.scene, &e.header
	if s.Hull != nil {
		if finite(s.Hull.Area) {
			h.Area = &s.Hull.Area
		}
		e.vertices("hull", s.Hull.Idx)
	}
	if s.Hull3 != nil {
		if finite(s.Hull3.Volume) {
			h.Volume = &s.Hull3.Volume
		}
		if e.vertices("hull3", s.Hull3.Idx) {
			faces := make([]int32, len(s.Hull3.Faces))
			for k, number := range s.Hull3.Faces {
				at, _ := slices.BinarySearch(s.Hull3.Idx, number)
				faces[k] = int32(at)
			}
			e.indices("faces", faces, len(s.Hull3.Idx))
		}
	}
	if len(s.Maxima) > 0 {
		var all []int32
		for i := range s.Maxima {
			all = append(all, s.Maxima[i].Idx...)
		}
		e.vertices("maxima", all)
	}
}

// vertices writes the coordinates of the points with these numbers; false if one is missing.
func (e *encoder) vertices(name string, numbers []int32) bool {
	at := make([]int32, len(numbers))
	for k, number := range numbers {
		i, found := e.scene.Position(number)
		if !found {
			return false
		}
		at[k] = i
	}
	e.begin(name, "f32", 3*len(at))
	for _, i := range at {
		for axis := range 3 {
			e.float(e.at(axis, i))
		}
	}
	return true
}

// mesh writes the triangles, with corners of their own if not all points are sent.
func (e *encoder) mesh() {
	s := e.scene
	if s.Triangles == nil || !e.exact && len(s.Triangles) > 3*maxMesh {
		return
	}
	at := make([]int32, len(s.Triangles))
	for k, number := range s.Triangles {
		i, found := s.Position(number)
		if !found {
			return
		}
		at[k] = i
	}
	if len(e.sent) == s.Len() {
		e.indices("mesh", at, s.Len())
		return
	}
	corners := slices.Clone(at)
	slices.Sort(corners)
	corners = slices.Compact(corners)
	place := make(map[int32]int32, len(corners))
	for k, i := range corners {
		place[i] = int32(k)
	}
	for k, i := range at {
		at[k] = place[i]
	}
	e.begin("meshxyz", "f32", 3*len(corners))
	for _, i := range corners {
		for axis := range 3 {
			e.float(e.at(axis, i))
		}
	}
	e.indices("mesh", at, len(corners))
}

// indices writes positions below n: u16 if they fit.
func (e *encoder) indices(name string, at []int32, n int) {
	if n <= 1<<16 {
		e.begin(name, "u16", len(at))
		for _, i := range at {
			e.body = binary.LittleEndian.AppendUint16(e.body, uint16(i))
		}
		return
	}
	e.begin(name, "u32", len(at))
	for _, i := range at {
		e.body = binary.LittleEndian.AppendUint32(e.body, uint32(i))
	}
}

// text writes what a scene of tokens holds.
func (e *encoder) text(t *live.Text) {
	h := &headerText{ID: t.ID, Model: t.Model, Task: t.Task, NTokens: t.NTokens, Generated: t.Generated,
		Next: make([]live.Next, len(t.Next))}
	copy(h.Next, t.Next)
	for i := range h.Next {
		if !finite(h.Next[i].Logprob) {
			h.Next[i].Logprob = -math.MaxFloat32
		}
	}
	if h.Words = t.Words; h.Words == nil {
		h.IDs = t.IDs
	}
	e.header.headerText = h
	if rows := len(t.Blocks); rows > 0 {
		cols := len(t.Blocks[0])
		h.Blocks = &headerBlocks{rows, cols, t.BlockSize}
		e.begin("blocks", "u8", rows*cols)
		for _, row := range t.Blocks {
			e.body = append(e.body, row...)
		}
	}
}

// begin begins a section of n numbers.
func (e *encoder) begin(name, kind string, n int) {
	e.body = append(e.body, make([]byte, -len(e.body)&3)...)
	e.header.Sections[name] = section{kind, len(e.body), n}
	e.names = append(e.names, name)
}

func (e *encoder) float(v float32) {
	e.body = binary.LittleEndian.AppendUint32(e.body, math.Float32bits(v))
}

// bytes joins header and sections. Sections count their places from the scene's begin, which
// depends on the length of the header, which depends on the places: their digits are reserved.
func (e *encoder) bytes() []byte {
	e.header.Encoded = time.Now().UnixNano()
	text, err := json.Marshal(&e.header)
	if err != nil { // every float is checked before
		panic("web: a scene without JSON form: " + err.Error())
	}
	room := (8 + len(text) + 8*len(e.names) + 7) &^ 7
	for _, name := range e.names {
		s := e.header.Sections[name]
		s.At += room
		e.header.Sections[name] = s
	}
	if text, err = json.Marshal(&e.header); err != nil {
		panic("web: a scene without JSON form: " + err.Error())
	}
	all := make([]byte, 0, room+len(e.body))
	all = binary.LittleEndian.AppendUint32(all, magic)
	all = binary.LittleEndian.AppendUint32(all, uint32(room-8))
	all = append(all, text...)
	for len(all) < room {
		all = append(all, ' ')
	}
	return append(all, e.body...)
}
