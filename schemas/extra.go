package schemas

import (
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"entropipe/schemas/codec"
)

// extraMemory is scratch memory for the further columns of a cloud.
type extraMemory struct {
	i32        [codec.Int32Columns][]int32
	elongation []float32
	offsets    []int64
}

// extraColumns are the columns of codec.Extra.Int32s.
var extraColumns = [codec.Int32Columns]int{colRing, colReturn, colLaser, colLabel, colRed, colGreen, colBlue}

// extra reads the further columns of a cloud. Column label is read if it holds integers,
// because the label of a drawing is a text. A column of another type, or one that stands
// there twice, is no column of ours and is skipped.
func (d *Decoder) extra(f *Frame, l *layout) (err *FormatError) {
	columns := f.Extra.Int32s()
	for i, which := range extraColumns {
		c := &l.cols[which]
		if c.name == "" || c.twice || !c.isInteger() {
			continue
		}
		if *columns[i], err = values(d, c, &d.others.i32[i], fillInt32s); err != nil {
			return err
		}
	}
	if c := &l.cols[colElongation]; c.name != "" && !c.twice && c.isNumber() {
		if f.Elongation, err = values(d, c, &d.others.elongation, fillRounded); err != nil {
			return err
		}
	}
	if c := &l.cols[colTOffset]; c.name != "" && !c.twice && c.isInteger() {
		if f.TOffsetNs, err = values(d, c, &d.others.offsets, fillInts); err != nil {
			return err
		}
	}
	return nil
}

// fillInt32s converts integers. Null becomes codec.NoInt32. A value that is no int32 is an
// error.
func fillInt32s(dst []int32, a arrow.Array, c *column) *FormatError {
	wide := make([]int64, len(dst))
	if err := fillInts(wide, a, c); err != nil {
		return err
	}
	for i, v := range wide {
		switch {
		case v == nullInt64:
			dst[i] = codec.NoInt32
		case v < math.MinInt32 || v > math.MaxInt32:
			return formatErr(ReasonBadValue, -1, "column %s holds %d, which is no int32", c.name, v)
		default:
			dst[i] = int32(v)
		}
	}
	return nil
}

// appendPose appends the twelve numbers, with commas between them.
func appendPose(dst []byte, p *codec.Pose) []byte {
	for i, v := range p {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendFloat(dst, v, 'g', -1, 64)
	}
	return dst
}

// pose reads the header pose.
func pose(h *Header) (*codec.Pose, *FormatError) {
	if len(h.Value) > 1000 {
		return nil, formatErr(
			ReasonBadHeader,
			-1,
			"header %s has %d bytes; it must be 12 numbers with commas between "+
				"them",
			h.Key,
			len(h.Value),
		)
	}
	parts := strings.Split(string(h.Value), ",")
	p := new(codec.Pose)
	if len(parts) != len(p) {
		return nil, formatErr(
			ReasonBadHeader,
			-1,
			"header %s has %d numbers; it must have 12, with commas between them",
			h.Key,
			len(parts),
		)
	}
	for i, part := range parts {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || v-v != 0 {
			return nil, formatErr(ReasonBadHeader, -1, "number %d of header %s is %.40q; it must be a finite decimal",
				i+1, h.Key, part)
		}
		p[i] = v
	}
	return p, nil
}
