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
