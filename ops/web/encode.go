package web

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"sync"
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

// headroom is the room that is kept for the header before the sections. A longer header costs
// a copy of the sections.
const headroom = 4 << 10

// encoder makes the bytes of one scene.
type encoder struct {
	scene  *live.Scene
	exact  bool
	header header
	body   []byte // headroom, then the sections
	names  []string
	sent   []int32      // position in the scene of each point that is sent, ascending
	xyz    [3][]float32 // the same points' coordinates; without an axis in the plane: nil
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
	memory := points.Get().(*pointMemory)
	defer points.Put(memory)
	e.choose(memory)
	h.Held, h.Sampled = len(e.sent), s.Sampled || len(e.sent) < s.Len()
	e.reserve()
	e.coordinates()
	e.attributes()
	e.hulls()
	e.mesh()
}

// pointMemory is memory of the points that are sent, for one encoder at a time.
type pointMemory struct {
	at  []int32
	xyz [3][]float32
}

var points = sync.Pool{New: func() any { return new(pointMemory) }}

// choose sets the points to send: those with finite coordinates, of a large frame a sample.
func (e *encoder) choose(memory *pointMemory) {
	s := e.scene
	most := s.Len()
	if !e.exact {
		most = min(most, live.SamplePoints)
	}
	at := live.AppendStrata(memory.at[:0], s.Len(), most)
	x, y, z := memory.xyz[0][:0], memory.xyz[1][:0], memory.xyz[2][:0]
	x, y = slices.Grow(x, len(at))[:len(at)], slices.Grow(y, len(at))[:len(at)]
	n := 0
	if s.Z == nil {
		for _, i := range at {
			x[n], y[n], at[n] = s.X[i], s.Y[i], i
			if finite(x[n]) && finite(y[n]) {
				n++
			}
		}
	} else {
		z = slices.Grow(z, len(at))[:len(at)]
		for _, i := range at {
			x[n], y[n], z[n], at[n] = s.X[i], s.Y[i], s.Z[i], i
			if finite(x[n]) && finite(y[n]) && finite(z[n]) {
				n++
			}
		}
	}
	*memory = pointMemory{at, [3][]float32{x, y, z}}
	e.sent, e.xyz = at[:n], [3][]float32{x[:n], y[:n], nil}
	if s.Z != nil {
		e.xyz[2] = z[:n]
	}
}

// reserve makes room for the sections, so that few of them grow it.
func (e *encoder) reserve() {
	s, each := e.scene, 6
	if e.exact {
		each = 12
	}
	for _, present := range []bool{s.Intensity != nil, s.Return != nil} {
		if present {
			each++
		}
	}
	room := headroom + each*len(e.sent) + 64
	for _, numbers := range s.Corners() {
		room += 12 * len(numbers)
	}
	if s.Hull3 != nil {
		room += 4 * len(s.Hull3.Faces)
	}
	if s.Triangles != nil && (e.exact || len(s.Triangles) <= 3*maxMesh) {
		room += 4 * len(s.Triangles)
	}
	e.body = make([]byte, headroom, room+4*len(s.Strokes))
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

// extent returns the least and the largest of some finite values; zeros if there is none.
func extent(values []float32) (low, high float32) {
	if len(values) == 0 {
		return 0, 0
	}
	low, high = values[0], values[0]
	for _, v := range values {
		if v < low {
			low = v
		}
		if v > high {
			high = v
		}
	}
	return low, high
}

// coordinates writes section xyz and the box.
func (e *encoder) coordinates() {
	h, n := &e.header, len(e.sent)
	for axis, values := range e.xyz {
		h.Min[axis], h.Max[axis] = extent(values)
	}
	if e.exact {
		to := e.begin("xyz", "f32", 4, 3*n)
		for axis, values := range e.xyz {
			for k, v := range values { // zeros in the plane
				binary.LittleEndian.PutUint32(to[12*k+4*axis:], math.Float32bits(v))
			}
		}
		return
	}
	to := e.begin("xyz", "i16", 2, 3*n)
	for axis, values := range e.xyz {
		low, scale := float64(h.Min[axis]), 0.
		if extent := float64(h.Max[axis]) - low; extent > 0 {
			scale = 65535 / extent
		}
		if values == nil {
			values = e.xyz[0] // their scale is 0
			low = 0
		}
		for k, v := range values {
			q := (float64(v)-low)*scale + .5
			binary.LittleEndian.PutUint16(to[6*k+2*axis:], uint16(int32(q)-32768))
		}
	}
}

// attributes writes what points have beside coordinates, and the strokes.
func (e *encoder) attributes() {
	s := e.scene
	if s.Intensity != nil {
		e.intensity()
	}
	if s.Return != nil {
		to := e.begin("return", "u8", 1, len(e.sent))
		for k, i := range e.sent {
			to[k] = byte(min(max(s.Return[i], 0), 255))
		}
	}
	if s.Strokes != nil {
		to := e.begin("strokes", "u32", 4, len(s.Strokes))
		for n, end := range s.Strokes {
			k, _ := slices.BinarySearch(e.sent, end)
			binary.LittleEndian.PutUint32(to[4*n:], uint32(k))
		}
	}
}

// intensity writes the intensities, as bytes between the least and the largest finite one.
func (e *encoder) intensity() {
	values := e.scene.Intensity
	low, high := float32(math.Inf(1)), float32(math.Inf(-1))
	for _, i := range e.sent {
		v := values[i]
		if v < low && finite(v) {
			low = v
		}
		if v > high && finite(v) {
			high = v
		}
	}
	if low <= high {
		e.header.Intensity = &[2]float32{low, high}
	}
	to, scale := e.begin("intensity", "u8", 1, len(e.sent)), 0.
	if high > low {
		scale = 255 / (float64(high) - float64(low))
	}
	for k, i := range e.sent {
		if v := values[i]; finite(v) {
			to[k] = byte((float64(v)-float64(low))*scale + .5)
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
	e.corners(name, at)
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
	e.corners("meshxyz", corners)
	e.indices("mesh", at, len(corners))
}

// corners writes the coordinates of the points at some positions of the scene.
func (e *encoder) corners(name string, at []int32) {
	to := e.begin(name, "f32", 4, 3*len(at))
	for k, i := range at {
		for axis := range 3 {
			binary.LittleEndian.PutUint32(to[12*k+4*axis:], math.Float32bits(e.at(axis, i)))
		}
	}
}

// indices writes positions below n: u16 if they fit.
func (e *encoder) indices(name string, at []int32, n int) {
	if n <= 1<<16 {
		to := e.begin(name, "u16", 2, len(at))
		for k, i := range at {
			binary.LittleEndian.PutUint16(to[2*k:], uint16(i))
		}
		return
	}
	to := e.begin(name, "u32", 4, len(at))
	for k, i := range at {
		binary.LittleEndian.PutUint32(to[4*k:], uint32(i))
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
		to := e.begin("blocks", "u8", 1, rows*cols)[:0]
		for _, row := range t.Blocks {
			to = append(to, row...)
		}
	}
}

// begin begins a section of n numbers of some bytes each, and returns its bytes, which are 0.
func (e *encoder) begin(name, kind string, each, n int) []byte {
	if e.body == nil {
		e.body = make([]byte, headroom)
	}
	at := (len(e.body) + 3) &^ 3
	e.body = slices.Grow(e.body, at+each*n-len(e.body))
	clear(e.body[len(e.body) : at+each*n])
	e.body = e.body[:at+each*n]
	e.header.Sections[name] = section{kind, at - headroom, n}
	e.names = append(e.names, name)
	return e.body[at:]
}

// bytes puts the header before the sections. Sections count their places from the scene's
// begin, which depends on the length of the header, which depends on the places: their digits
// are reserved.
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
	if e.body == nil {
		e.body = make([]byte, headroom)
	}
	all := e.body[max(headroom-room, 0):]
	if room > headroom {
		all = append(make([]byte, room, room+len(e.body)-headroom), e.body[headroom:]...)
	}
	binary.LittleEndian.PutUint32(all, magic)
	binary.LittleEndian.PutUint32(all[4:], uint32(room-8))
	for i := copy(all[8:room], text) + 8; i < room; i++ {
		all[i] = ' '
	}
	return all
}
