// Package live holds what people see of a process while it runs: scenes, which are copies of
// the newest frames and token sequences of its streams, and State, the numbers of its stages.
//
// A Tap stands behind the operators. Workers offer it every frame; it copies the few that
// somebody watches and hands them to its watchers. Workers never wait for a watcher, and a
// frame that nobody watches costs one atomic load.
//
// Vocabulary: a stream is what one view shows, a topic and a sequence of it; a scene is what
// one frame of a stream shows; a watcher is a server of scenes, such as the live page.
package live

import "entropipe/schemas"

// Stream names one stream of scenes. Sequence is the producer's name of a drive, a segment
// or a recording, and may be empty.
type Stream struct {
	Topic    string `json:"topic"`
	Sequence string `json:"sequence"`
}

// Scene is a copy of one frame with its results, or of one token sequence. It is never
// changed after a Tap made it, so any goroutine may read it.
//
// Points are offsets from Origin, so that float32 holds coordinates of any size: at most
// 2^-24 of the frame's extent is lost, and nothing if Origin is zero. Z is nil in the plane.
type Scene struct {
	schemas.FrameKey
	SentNs     int64 // Kafka's timestamp of the record, nanoseconds since 1970; 0: none
	CapturedNs int64 // time of the copy, nanoseconds since 1970

	NPoints   int32 // points of the whole frame, as received
	Origin    [3]float64
	Double    bool // the frame's coordinates are float64
	X, Y, Z   []float32
	Numbers   []int32   // number of each point in the frame as received, ascending; nil: position
	Intensity []float32 // nil: absent
	Return    []int32   // nil: absent
	Strokes   []int32   // position behind the last point of each stroke of a drawing; nil: unknown
	Sampled   bool      // X holds a sample, with the corners of hulls and the maxima

	// Results of the operators, nil if an operator did not run. Indices are numbers in the
	// frame as received, and Position finds their points. Triangles is nil in a scene that
	// is sampled or too large; Meshed is the number of triangles all the same.
	Hull      *schemas.Hull
	Hull3     *schemas.Hull3
	Maxima    []schemas.Maxima
	Triangles []int32
	Meshed    int32
	Ops       [schemas.NumOps]schemas.OpResult

	Text *Text // nil: the scene is a frame, no token sequence
}

// Text is what a scene shows of a token sequence.
type Text struct {
	ID        string // name of the sequence
	Model     string
	Task      string // embed, logits, generate
	NTokens   int32  // tokens that the model read
	IDs       []int32
	Words     []string // text of each of IDs; nil if the model has no tokenizer
	Next      []Next   // the likeliest next tokens, best first, or the generated ones in order
	Generated bool     // Next are generated tokens
	// Blocks are the blocks of keys that each block of queries reads, a row for each block of
	// queries, 1 or 0 for each block of keys, of the first layer and head; nil: all keys.
	Blocks    [][]byte
	BlockSize int
}

// Next is one next token.
type Next struct {
	ID      int32   `json:"id"`
	Word    string  `json:"word"`
	Logprob float32 `json:"logprob"` // natural logarithm; 0 for generated tokens
}

// Stream returns the stream of the scene.
func (s *Scene) Stream() Stream { return Stream{Topic: s.Topic, Sequence: s.Sequence} }

// Len returns the number of points that the scene holds.
func (s *Scene) Len() int { return len(s.X) }

// Bytes estimates the memory of the scene.
func (s *Scene) Bytes() int64 {
	n := int64(len(s.X)+len(s.Y)+len(s.Z)+len(s.Numbers)+len(s.Intensity)+len(s.Return)+len(s.Triangles))*4 + 1024
	if s.Hull3 != nil {
		n += int64(len(s.Hull3.Idx)+len(s.Hull3.Faces)) * 4
	}
	for i := range s.Maxima {
		n += int64(len(s.Maxima[i].Idx)) * 4
	}
	if s.Hull != nil {
		n += int64(len(s.Hull.Idx)) * 20
	}
	if s.Text != nil {
		n += int64(len(s.Text.IDs)) * 32
	}
	return n
}
