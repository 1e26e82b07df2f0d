package schemas

// Op names an operator. The order is that of the columns of table frames.
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

// Status says how an operator ended on a frame. Degenerate clouds have defined
// results, so none of these is an error. The empty Status means that the
// operator was not configured: its columns are null.
type Status string

const (
	StatusOK              Status = "ok"
	StatusEmpty           Status = "empty"
	StatusDegeneratePoint Status = "degenerate_point" // one distinct point
	StatusDegenerateLine  Status = "degenerate_line"  // all points collinear
	StatusDegeneratePlane Status = "degenerate_plane" // 3-D operators only
	StatusPrunedInput     Status = "pruned_input"     // the message lacks points this operator needs
	StatusNotRun          Status = "not_run"          // configured, but the cloud has no z
)

// OpResult is an operator's entry in table frames.
type OpResult struct {
	Status Status
	N      int32 // hull vertices, maxima, or triangles
	Ns     int64 // time spent in the operator
}

// Hull is a convex hull in the plane: strict vertices only, counter-clockwise
// from the lexicographic minimum. One vertex for a degenerate point, two for a
// degenerate line, none for an empty frame.
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

// Entropy is what was measured of a frame for one operator: the range-partition
// entropy, in nats a point, which says how hard the frame is for it. It lies
// between Lower and Upper, and Kind says how that is known; F estimates it.
type Entropy struct {
	Op           Op
	N            int32 // hull vertices or maxima
	Lower, Upper float64
	Kind         string
	F            *float64 // nil: the frame is not there whole
	Survivors    int32    // points that the operator could not drop at once, where it tells; else N
}

// Points is a copy of a frame's finite points, for the optional table points.
// One of the two coordinate widths is set. Z and Intensity may be nil.
type Points struct {
	Idx           []int32
	X32, Y32, Z32 []float32
	X64, Y64, Z64 []float64
	Intensity     []float32
}

// Result is everything that the operators found on one frame. It owns its
// memory: nothing in it points into the message.
type Result struct {
	FrameKey
	NPoints   int32 // as received
	NDropped  int32 // with a non-finite coordinate
	Ops       [NumOps]OpResult
	Hull      *Hull     // nil unless hull2d ran
	Hull3     *Hull3    // nil unless hull3d ran
	Maxima    []Maxima  // one an operator that ran
	Triangles []int32   // three a triangle, in canonical order; nil unless delaunay2d ran
	Entropy   []Entropy // one an operator that was measured
	Points    *Points   // nil unless table points is asked for
	Stage     string    // mode of the preprocessing stage; empty: null
	ModelSHA  string    // empty: null
	LatencyNs int64     // end of the operators minus Kafka's timestamp
	Publish   *Record   // what is to be published of the frame; nil: nothing, or it is on its way
	// Tokens is what a model made of a sequence of tokens; nil: the result is of
	// a point cloud. A result of a sequence has nothing else but its key.
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
		n += 256 + int64(len(p.Idx))*4 + int64(len(p.X32)+len(p.Y32)+len(p.Z32)+len(p.Intensity))*4 + int64(len(p.X64)+len(p.Y64)+len(p.Z64))*8
	}
	if r.Publish != nil {
		n += r.Publish.Bytes()
	}
	if r.Tokens != nil {
		n += r.Tokens.bytes()
	}
	return n
}

// Stage of the pipeline in which a record was refused.
const (
	StageDecode   = "decode"
	StageAssemble = "assemble"
	StagePrepare  = "prepare"
	StageOperate  = "operate"
	StageModel    = "model"
)

// Reject is a record, or one frame of it, that could not be used. Every record
// leaves a trace: rows, a reject, or a counted hole.
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
	Value     []byte // first MaxRejectValue bytes; like key and headers with the first reject of a message only
	ValueSize int64
	ValueSHA  string // hex SHA-256 of the whole value; empty for a tombstone
	Retriable bool
}

// MaxRejectValue is how much of a refused value is kept in table rejects.
const MaxRejectValue = 64 << 10

// Batch is what one commit makes durable: everything that came out of the
// records [Start, End) of one partition. Results and Rejects are ordered by
// (Offset, Index).
type Batch struct {
	Topic      string
	Partition  int32
	Start, End int64
	Results    []Result
	Rejects    []Reject
	Messages   int64     // data records, accepted or not
	Holes      int64     // offsets without a data record: compaction, control records, aborted transactions
	Bytes      int64     // bytes of the records' values
	Last       *RecordID // last data record at or before End; nil: none since the base
	Gap        bool      // the records were deleted before they could be read (--on-gap skip); no rows
	TopicID    TopicID   // of the topic that the records came from; zero: not known
}
