package schemas

import "entropipe/schemas/codec"

// Op names an operator. Table frames has its columns in the order of the constants.
type Op uint8

const (
	Hull2D Op = iota
	Hull3D
	Maxima2D
	Maxima3D
	Delaunay2D
	NumOps
)

var opNames = [NumOps]string{"hull2d", "hull3d", "maxima2d", "maxima3d", "delaunay2d"}

func (o Op) String() string { return opNames[o] }

// ParseOp returns the operator of that name.
func ParseOp(name string) (Op, bool) {
	for o, n := range opNames {
		if n == name {
			return Op(o), true
		}
	}
	return 0, false
}

// Status is the outcome of an operator on a frame. Degenerate clouds have defined
// results, so no Status is an error. The empty Status means that the operator was not
// configured: its columns are null.
type Status string

const (
	StatusOK              Status = "ok"
	StatusEmpty           Status = "empty"
	StatusDegeneratePoint Status = "degenerate_point" // one distinct point
	StatusDegenerateLine  Status = "degenerate_line"  // all points collinear
	StatusDegeneratePlane Status = "degenerate_plane" // 3-D operators only
	StatusPrunedInput     Status = "pruned_input"     // the frame was pruned for other operators
	StatusNotRun          Status = "not_run"          // configured, but the cloud has no z
)

// OpResult is an operator's entry in table frames.
type OpResult struct {
	Status Status
	N      int32 // number of hull vertices, maxima, or triangles
	Ns     int64 // time spent in the operator, nanoseconds
}

// Hull is a convex hull in the plane: strict vertices only, counter-clockwise
// from the lexicographic minimum. It has one vertex if all points are equal, two if
// they are collinear, none if the frame is empty.
type Hull struct {
	Idx             []int32
	X, Y            []float64 // coordinates of the vertices
	Area, Perimeter float64
	Status          Status
	ErrorBound      *float64 // nil: exact
}

// Hull3 is a convex hull in space: extreme points only, ascending, and the
// faces of its surface, three vertices each, counter-clockwise seen from
// outside, in canonical order. A degenerate hull has no faces: one vertex for
// a point, two for a line, the corners of the polygon for a plane.
type Hull3 struct {
	Idx          []int32
	Faces        []int32
	Area, Volume float64
	Status       Status
	ErrorBound   *float64 // nil: exact
}

// Maxima is the set of maximal points for one choice of directions, as indices
// in ascending order.
type Maxima struct {
	Directions string // "x:max,y:max[,z:max]"
	Idx        []int32
	ErrorBound *float64 // nil: exact
}

// Entropy is the range-partition entropy of a frame for one operator, in nats a
// point: a measure of how hard the frame is for the operator. The entropy lies
// between Lower and Upper, and Kind names the derivation of these bounds. F is an
// estimate.
type Entropy struct {
	Op           Op
	N            int32 // hull vertices or maxima
	Lower, Upper float64
	Kind         string
	F            *float64 // nil if the frame is pruned
	Stage        string   // StageBefore or StageAfter; empty: the stage moved no point of Op
}

// Sides of the stage in Entropy.
const (
	StageBefore = "before"
	StageAfter  = "after"
)

// Points is a copy of a frame's finite points, for the optional table points.
// Either X32 and Y32 or X64 and Y64 are set. Z and Intensity may be nil.
type Points struct {
	Idx           []int32 // positions in the frame as received, ascending; nil: 0, 1, …
	X32, Y32, Z32 []float32
	X64, Y64, Z64 []float64
	Intensity     []float32
	codec.Extra
}

// Len returns the number of points.
func (p *Points) Len() int { return max(len(p.X32), len(p.X64)) }

// Result holds the output of all operators for one frame, or of a model for one
// sequence. It owns its memory: nothing in it points into the message.
type Result struct {
	FrameKey
	NPoints   int32 // points of the whole frame, as received
	NDropped  int32 // points with a non-finite coordinate
	Ops       [NumOps]OpResult
	Hull      *Hull     // nil unless hull2d ran
	Hull3     *Hull3    // nil unless hull3d ran
	Maxima    []Maxima  // one for each maxima operator that ran
	Triangles []int32   // three a triangle, in canonical order; nil unless delaunay2d ran
	Entropy   []Entropy // one for each operator that was measured
	Points    *Points   // nil unless table points is written
	Stage     string    // mode of the preprocessing stage; empty: null
	ModelSHA  string    // empty: null
	LatencyNs int64     // end of the operators minus Kafka's timestamp
	Publish   *Record   // the record of survivors to publish; nil if there is none or it was sent
	Found     *Record   // the record of schema results/1 to publish; nil as Publish
	// Tokens is the row of a token sequence, whose Result has only a FrameKey
	// beside it; nil in the result of a point cloud.
	Tokens *TokenResult
}

// Bytes estimates the memory that r holds, for the pipeline's budget.
func (r *Result) Bytes() int64 {
	n := int64(512) + int64(len(r.Triangles))*4
	if h := r.Hull; h != nil {
		n += 128 + int64(len(h.Idx))*20
	}
	if h := r.Hull3; h != nil {
		n += 128 + int64(len(h.Idx)+len(h.Faces))*4
	}
	for _, m := range r.Maxima {
		n += 64 + int64(len(m.Idx))*4
	}
	n += int64(len(r.Entropy)) * 80
	if p := r.Points; p != nil {
		n += 256 + int64(len(p.Idx))*4 + int64(len(p.X32)+len(p.Y32)+len(p.Z32)+len(p.Intensity))*4 +
			int64(len(p.X64)+len(p.Y64)+len(p.Z64)+len(p.TOffsetNs))*8 + int64(len(p.Elongation))*4
		for _, v := range p.Int32s() {
			n += int64(len(*v)) * 4
		}
	}
	if r.Publish != nil {
		n += r.Publish.Bytes()
	}
	if r.Found != nil {
		n += r.Found.Bytes()
	}
	if r.Tokens != nil {
		n += r.Tokens.bytes()
	}
	return n
}

// Stages of the pipeline that refuse records.
const (
	StageDecode   = "decode"
	StageAssemble = "assemble"
	StagePrepare  = "prepare"
	StageOperate  = "operate"
	StageModel    = "model"
)

// Reject is a record, or one frame or sequence of it, that could not be used. Every
// offset leaves a trace: rows, a reject, or a counted hole.
type Reject struct {
	Topic     string
	Partition int32
	Offset    int64
	Index     int32 // position within the message; -1: the whole message
	TimeNs    int64 // event time if known, else Kafka's
	Stage     string
	Reason    string // one of a small fixed set
	Message   string
	Key       []byte
	Headers   []Header
	Value     []byte // first MaxRejectValue bytes; only the first reject of a message has key, headers and value
	ValueSize int64
	ValueSHA  string // hex SHA-256 of the whole value; empty for a tombstone
	Retriable bool
}

// MaxRejectValue is the number of bytes of a refused value that table rejects keeps.
const MaxRejectValue = 64 << 10

// Original is a message itself, in memory of its own. A tombstone has neither Value nor Packed, and
// Size 0; a message whose value was never there whole has neither, and the size of the whole.
type Original struct {
	Topic     string
	Partition int32
	Offset    int64
	TimeNs    int64 // Kafka's timestamp; 0: the record has none
	Key       []byte
	Headers   []Header
	Value     []byte
	Packed    []byte // the value as the output has prepared it; nil: it is in Value
	Size      int64  // bytes of the value
}

// Bytes estimates the memory that o holds.
func (o *Original) Bytes() int64 {
	n := int64(192 + cap(o.Key) + cap(o.Value) + cap(o.Packed))
	for i := range o.Headers {
		n += int64(48 + len(o.Headers[i].Key) + len(o.Headers[i].Value))
	}
	return n
}

// Batch is the unit of commit: the results and rejects of the records [Start, End)
// of one partition, each ordered by (Offset, Index), and the messages themselves by offset.
type Batch struct {
	Topic      string
	Partition  int32
	Start, End int64
	Results    []Result
	Rejects    []Reject
	Originals  []Original // the messages themselves, each once; nil: they are not asked for
	Messages   int64      // data records, accepted or not; of a message in chunks the first one
	Chunks     int64      // further records of messages in chunks
	Holes      int64      // offsets without a data record: compaction, control records, aborted transactions
	Bytes      int64      // bytes of the records' keys and values
	Last       *RecordID  // last data record at or before End; nil: none since the base
	Gap        bool       // retention deleted the records before they were read (--on-gap skip); no rows
	TopicID    TopicID    // id of the topic that the records came from; zero: unknown
	Chunked    *Chunked   // what became of chunks at End; nil: there is nothing to say
}
