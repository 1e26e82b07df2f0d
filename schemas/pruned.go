package schemas

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Headers of a pruned message. A message with HeaderPrunedFor has all three.
const (
	HeaderPrunedFor = "pruned-for" // operators, comma-separated
	HeaderNPoints   = "n-points"   // points of the whole frame, as received
	HeaderNDropped  = "n-dropped"  // points of the whole frame that have a non-finite coordinate
)

// Pruned describes a frame that holds only some points of a whole frame: those that
// could matter to the operators For. Surviving points certify each dropped point, so
// these operators find in the survivors what they would find in the whole frame.
// Other operators cannot use the frame.
type Pruned struct {
	For      OpSet   // the operators for which the points suffice
	NPoints  int32   // points of the whole frame, as received
	NDropped int32   // points of the whole frame that have a non-finite coordinate
	Index    []int32 // number of each point in the whole frame, ascending
}

// OpSet is a set of operators.
type OpSet uint8

// Prunable are the operators that a frame can be pruned for. Delaunay2D is not among
// them, because a triangulation contains every point.
const Prunable OpSet = 1<<Hull2D | 1<<Hull3D | 1<<Maxima2D | 1<<Maxima3D

// Has tells whether op is in s.
func (s OpSet) Has(op Op) bool { return s>>op&1 != 0 }

// With returns the union of s and op.
func (s OpSet) With(op Op) OpSet { return s | 1<<op }

// String returns the operators' names, separated by commas, as HeaderPrunedFor has
// them.
func (s OpSet) String() string {
	var names []string
	for op := range NumOps {
		if s.Has(op) {
			names = append(names, op.String())
		}
	}
	return strings.Join(names, ",")
}

// ParseOpSet is the inverse of String; it also accepts blanks around the commas. The
// set must contain at least one operator, and operators of Prunable only.
func ParseOpSet(text string) (OpSet, error) {
	var s OpSet
	for name := range strings.SplitSeq(text, ",") {
		op, ok := ParseOp(strings.TrimSpace(name))
		if !ok || !Prunable.Has(op) {
			return 0, fmt.Errorf("%.40q is not an operator to prune for; name some of %s", strings.TrimSpace(name),
				strings.ReplaceAll(Prunable.String(), ",", ", "))
		}
		s = s.With(op)
	}
	return s, nil
}

// Headers returns the headers of a pruned points/1 message, beside the headers of
// any. The message's column index is p.Index.
func (p *Pruned) Headers() []Header {
	return []Header{
		{HeaderPrunedFor, []byte(p.For.String())},
		{HeaderNPoints, strconv.AppendInt(nil, int64(p.NPoints), 10)},
		{HeaderNDropped, strconv.AppendInt(nil, int64(p.NDropped), 10)},
	}
}

// prunedOf returns what the headers say about a pruned message, or nil if the
// message is not pruned. A column index alone does not make a message pruned, since
// pandas adds one to everything.
func prunedOf(m *Message) (*Pruned, *FormatError) {
	text := headerValue(m.Headers, HeaderPrunedFor)
	if len(text) == 0 {
		return nil, nil
	}
	var p Pruned
	var err error
	if p.For, err = ParseOpSet(string(text[:min(len(text), 200)])); err != nil {
		return nil, formatErr(ReasonBadHeader, -1, "header %s is %.80q: %v", HeaderPrunedFor, text, err)
	}
	if p.NPoints, err = countHeader(m, HeaderNPoints, math.MaxInt32); err != nil {
		return nil, formatErr(ReasonBadHeader, -1, "%v", err)
	}
	if p.NDropped, err = countHeader(m, HeaderNDropped, p.NPoints); err != nil {
		return nil, formatErr(ReasonBadHeader, -1, "%v", err)
	}
	return &p, nil
}

func countHeader(m *Message, name string, most int32) (int32, error) {
	v := headerValue(m.Headers, name)
	if n, ok := parseInt(v); ok && n >= 0 && n <= int64(most) {
		return int32(n), nil
	}
	return 0, fmt.Errorf("header %s is %.40q; beside %s it must be a number from 0 to %d", name, v,
		HeaderPrunedFor, most)
}

// prune reads the column index of a pruned message into p, and checks that f can be
// the pruned frame that p describes. Only the whole frame could tell whether the
// right points survived.
func (d *Decoder) prune(f *Frame, p *Pruned, l *layout) *FormatError {
	c := &l.cols[colIndex]
	if err := l.require(colIndex, (*column).isInteger, "an integer"); err != nil {
		return err
	}
	if err := d.checkSize(8); err != nil {
		return err
	}
	index, err := values(d, c, &d.i64[0], fillIDs)
	if err != nil {
		return err
	}
	finite := int64(p.NPoints) - int64(p.NDropped)
	// if false, no operator runs and no point needs to survive
	found := f.HasZ() || p.For.Has(Hull2D) || p.For.Has(Maxima2D)
	if n := int64(len(index)); n > finite || n == 0 && finite > 0 && found {
		return formatErr(ReasonBadValue, -1, "%d points cannot be what is left of %d that were finite (%s %d, %s %d)",
			n, finite, HeaderNPoints, p.NPoints, HeaderNDropped, p.NDropped)
	}
	d.index = resize(d.index, len(index))
	last := int64(-1)
	for i, v := range index {
		if v <= last || v >= int64(p.NPoints) {
			return formatErr(ReasonBadValue, -1, "column %s holds %d in row %d, after %d; its values must ascend, "+
				"and be below %s, %d", c.name, v, i, last, HeaderNPoints, p.NPoints)
		}
		d.index[i], last = int32(v), v
	}
	if !f.Cloud32.Finite() || !f.Cloud64.Finite() {
		return formatErr(ReasonBadValue, -1, "a pruned message has a coordinate that is not finite; such points are "+
			"only counted (%s)", HeaderNDropped)
	}
	p.Index = d.index
	f.Pruned = p
	return nil
}
