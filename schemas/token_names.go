package schemas

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
)

// nameSequences gives the rows their ids. All that are asked for share one
// string.
func (d *Decoder) nameSequences(l *layout) (err *FormatError) {
	d.idText, d.idEnds = resize(d.idText, 0), resize(d.idEnds, 0)
	switch c := &l.cols[colID]; {
	case c.name == "":
		for i := range d.sequences {
			d.nameRow(&d.sequences[i], "")
		}
	case c.isInteger() && c.dt.ID() == arrow.UINT64: // hashes, half of which are no int64
		if err = d.nameByHashes(c); err != nil {
			return err
		}
	case c.isInteger():
		var ids []int64
		if ids, err = values(d, c, &d.i64[0], fillInts); err != nil {
			return err
		}
		for i, id := range ids[d.first:][:len(d.sequences)] {
			if id == nullInt64 {
				d.nameRow(&d.sequences[i], "")
			} else {
				d.idText = strconv.AppendInt(d.idText, id, 10)
				d.idEnds = append(d.idEnds, len(d.idText))
			}
		}
	default:
		size := int64(0)
		err = d.eachText(c, 0, func(s *Sequence, id string, _ bool) *FormatError {
			if !utf8.ValidString(id) {
				s.refuse(ReasonBadValue, "column %s is not UTF-8", c.name)
				id = ""
			} else if len(id) > maxName {
				s.refuse(ReasonBadLength, "column %s has %d bytes; %d is the most", c.name, len(id), maxName)
				id = ""
			}
			before := len(d.idText)
			d.nameRow(s, id)
			if size += int64(len(d.idText) - before); size > d.limit() { // views may overlap
				return formatErr(ReasonTooLarge, -1, "the ids take more than %d bytes (--max-frame-bytes)", d.limit())
			}
			if s == &d.passed {
				d.idText, d.idEnds = d.idText[:before], d.idEnds[:len(d.idEnds)-1]
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	all, from := string(d.idText), 0
	for i, end := range d.idEnds {
		d.sequences[i].ID = all[from:end]
		from = end
	}
	return nil
}

// nameByHashes gives the rows the numbers of a column of uint64 for ids.
func (d *Decoder) nameByHashes(c *column) *FormatError {
	row := 0
	for i := range d.batches {
		b := &d.batches[i]
		if b.rows == 0 {
			continue
		}
		a, err := d.array(b, c, c.dt)
		if err != nil {
			return err
		}
		ids := a.(*array.Uint64)
		for r := range b.rows {
			switch s := d.sequence(row); {
			case s == &d.passed:
			case ids.IsNull(r):
				d.nameRow(s, "")
			default:
				d.idText = strconv.AppendUint(d.idText, ids.Value(r), 10)
				d.idEnds = append(d.idEnds, len(d.idText))
			}
			row++
		}
	}
	return nil
}

// nameRow appends the id of the next row, or for an empty one where it stands:
// topic/partition/offset/index.
func (d *Decoder) nameRow(s *Sequence, id string) {
	d.idText = append(d.idText, id...)
	if id == "" {
		d.idText = append(append(d.idText, s.Topic...), '/')
		d.idText = append(strconv.AppendInt(d.idText, int64(s.Partition), 10), '/')
		d.idText = append(strconv.AppendInt(d.idText, s.Offset, 10), '/')
		d.idText = strconv.AppendInt(d.idText, int64(s.Index), 10)
	}
	d.idEnds = append(d.idEnds, len(d.idText))
}

// dateSequences gives the rows their own times, where they have some.
func (d *Decoder) dateSequences(l *layout) *FormatError {
	c := l.cols[colTime]
	unit := int64(1)
	if c.name == "" {
		if c = l.cols[colStamp]; c.name == "" {
			return nil
		}
		unit, c.dt = int64(c.unit), arrow.PrimitiveTypes.Int64
	}
	times, err := values(d, &c, &d.i64[1], fillInts)
	if err != nil {
		return err
	}
	for i, t := range times[d.first:][:len(d.sequences)] {
		switch {
		case t == nullInt64:
		case t > math.MaxInt64/unit || t < math.MinInt64/unit:
			d.sequences[i].refuse(ReasonBadValue, "column %s holds a time beyond the years 1678 to 2261", c.name)
		default:
			d.sequences[i].TimeNs = t * unit
		}
	}
	return nil
}
