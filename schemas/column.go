package schemas

import (
	"fmt"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
)

// The columns that a decoder reads. It skips all others.
const (
	colX = iota
	colY
	colZ
	colIntensity
	colDrawing
	colLabel
	colTime
	colTokens
	colIndex
	colID
	colText
	colMask
	colStamp
	colRing
	colReturn
	colLaser
	colRed
	colGreen
	colBlue
	colElongation
	colTOffset
	colStroke
	numColumns
)

var columnNames = [numColumns]string{"x", "y", "z", "intensity", "drawing_id", "label", "ts_ns", "input_ids", "index",
	"id", "text", "attention_mask", "ts", "ring", "return", "laser", "red", "green", "blue", "elongation",
	"t_offset_ns", "stroke_idx"}

// column says where a column's values stand in every batch of a schema.
type column struct {
	name   string         // the name as the schema spells it; empty if there is no such column
	dt     arrow.DataType // the type; nil if no column of ours can have it
	desc   string         // the type's name, for errors
	dict   bool           // the column is dictionary-encoded: dt is the type of its words
	dictID int64          // the dictionary's id, if dict
	index  arrow.DataType // the type of the indices, if dict; nil if it is not an integer type
	node   int            // number of the column's field node
	buffer int            // number of the column's first buffer, variadic ones before it not counted
	views  int            // view columns before it, each with a variadic count
	twice  bool           // two columns have the name
	list   byte           // typeList or another type of list; 0 if the column holds no lists
	size   int            // elements in each list, if list is typeFixedSizeList
	elem   *column        // the column of the lists' elements; nil if the column holds no lists
	unit   int            // nanoseconds in one unit of a timestamp; 0 if the column is no timestamp
}

// readType sets the types of c, the column of field t.
func (r *layoutReader) readType(c *column, t table) {
	kind := r.byteField(t, 2, 0)
	c.dt = r.dataType(kind, r.sub(t, 3))
	c.desc = "unknown"
	if kind < numTypes {
		c.desc = arrowTypes[kind].name
	}
	if c.dt != nil {
		c.desc = c.dt.Name()
	}
	if kind == typeTimestamp {
		c.unit = [4]int{1e9, 1e6, 1e3, 1}[r.shortField(r.sub(t, 3), 0, 0)&3]
	}
	if d := r.sub(t, 4); d.size > 0 {
		c.dict, c.dictID = true, r.longField(d, 0, 0)
		c.index = arrow.PrimitiveTypes.Int32
		if it := r.sub(d, 1); it.size > 0 {
			c.index = r.dataType(typeInt, it)
		}
		c.desc = "dictionary of " + c.desc
	}
}

// dataType returns the Arrow type of a column of ours, nil for the others.
func (r *layoutReader) dataType(kind byte, t table) arrow.DataType {
	switch kind {
	case typeFloat:
		switch r.shortField(t, 0, 0) {
		case 0:
			return arrow.FixedWidthTypes.Float16
		case 1:
			return arrow.PrimitiveTypes.Float32
		case 2:
			return arrow.PrimitiveTypes.Float64
		}
	case typeInt:
		return intType(r.intField(t, 0, 0), r.byteField(t, 1, 0) != 0)
	case typeBool:
		return arrow.FixedWidthTypes.Boolean
	case typeUtf8:
		return arrow.BinaryTypes.String
	case typeLargeUtf8:
		return arrow.BinaryTypes.LargeString
	case typeUtf8View:
		return arrow.BinaryTypes.StringView
	case typeTimestamp:
		if r.shortField(t, 0, 0) == 3 {
			return arrow.FixedWidthTypes.Timestamp_ns
		}
	}
	return nil
}

func intType(bits int, signed bool) arrow.DataType {
	switch {
	case bits == 8 && signed:
		return arrow.PrimitiveTypes.Int8
	case bits == 16 && signed:
		return arrow.PrimitiveTypes.Int16
	case bits == 32 && signed:
		return arrow.PrimitiveTypes.Int32
	case bits == 64 && signed:
		return arrow.PrimitiveTypes.Int64
	case bits == 8:
		return arrow.PrimitiveTypes.Uint8
	case bits == 16:
		return arrow.PrimitiveTypes.Uint16
	case bits == 32:
		return arrow.PrimitiveTypes.Uint32
	case bits == 64:
		return arrow.PrimitiveTypes.Uint64
	}
	return nil
}

// require returns an error unless the schema has column i once, with a type that ok
// accepts. types names these types.
func (l *layout) require(i int, ok func(*column) bool, types string) *FormatError {
	if l.cols[i].name == "" {
		return formatErr(ReasonMissingColumn, 0, "there is no column %s; the columns are %s",
			columnNames[i], l.columnList())
	}
	return l.allow(i, ok, types)
}

// allow is require for a column that may be missing.
func (l *layout) allow(i int, ok func(*column) bool, types string) *FormatError {
	switch c := &l.cols[i]; {
	case c.name == "":
		return nil
	case c.twice:
		return formatErr(ReasonDuplicateColumn, 0, "there are two columns %s", c.name)
	case !ok(c):
		return formatErr(ReasonBadType, 0, "column %s is of type %s; it must be %s", c.name, c.desc, types)
	}
	return nil
}

// columnList names the columns, the first ones if there are many.
func (l *layout) columnList() string {
	if len(l.names) == 0 {
		return "none"
	}
	s := fmt.Sprintf("%q", l.names)
	if len(l.top) > len(l.names) {
		s += fmt.Sprintf(" and %d more", len(l.top)-len(l.names))
	}
	return strings.Trim(s, "[]")
}

// checkPoints tells whether the schema can be read as points/1.
func (l *layout) checkPoints() *FormatError {
	if err := l.requirePlane(); err != nil {
		return err
	}
	if err := l.allow(colZ, (*column).isNumber, numberTypes); err != nil {
		return err
	}
	return l.allow(colIntensity, (*column).isNumber, numberTypes)
}

// numberTypes names the types of coordinates, for errors.
const numberTypes = "a floating-point or integer number"

// requirePlane checks columns x and y.
func (l *layout) requirePlane() *FormatError {
	if err := l.require(colX, (*column).isNumber, numberTypes); err != nil {
		return err
	}
	return l.require(colY, (*column).isNumber, numberTypes)
}

// checkSketches tells whether the schema can be read as sketches/1.
func (l *layout) checkSketches() *FormatError {
	if err := l.requirePlane(); err != nil {
		return err
	}
	if err := l.require(colDrawing, (*column).isInteger, "an integer"); err != nil {
		return err
	}
	if err := l.allow(colLabel, (*column).isString, "a string, or a dictionary of strings"); err != nil {
		return err
	}
	return l.allow(colTime, (*column).isTime, "an integer or a timestamp in nanoseconds")
}

// checkSequences checks the columns that text/1 and tokens/1 have in common.
func (l *layout) checkSequences() *FormatError {
	isID := func(c *column) bool { return c.isString() || c.isInteger() }
	if err := l.allow(colID, isID, "a string, a dictionary of strings or an integer"); err != nil {
		return err
	}
	if err := l.allow(colTime, (*column).isTime, "an integer or a timestamp in nanoseconds"); err != nil {
		return err
	}
	return l.allow(colStamp, func(c *column) bool { return c.unit > 0 && !c.dict }, "a timestamp")
}

// checkTexts tells whether the schema can be read as text/1.
func (l *layout) checkTexts() *FormatError {
	if err := l.checkSequences(); err != nil {
		return err
	}
	return l.require(colText, (*column).isString, "a string, or a dictionary of strings")
}

// checkTokens tells whether the schema can be read as tokens/1.
func (l *layout) checkTokens() *FormatError {
	if err := l.checkSequences(); err != nil {
		return err
	}
	if err := l.require(colTokens, (*column).isTokenList, "a list of integers"); err != nil {
		return err
	}
	return l.allow(colMask, (*column).isMaskList, "a list of integers or booleans")
}

func (c *column) isFloat() bool {
	return !c.dict && c.dt != nil && arrow.IsFloating(c.dt.ID())
}

func (c *column) isInteger() bool {
	return !c.dict && c.dt != nil && arrow.IsInteger(c.dt.ID())
}

func (c *column) isNumber() bool { return c.isFloat() || c.isInteger() }

func (c *column) isTime() bool {
	return c.isInteger() || !c.dict && c.dt != nil && c.dt.ID() == arrow.TIMESTAMP
}

func (c *column) isString() bool {
	if c.dt == nil || c.dict && c.index == nil {
		return false
	}
	return c.dt.ID() == arrow.STRING || c.dt.ID() == arrow.LARGE_STRING || c.dt.ID() == arrow.STRING_VIEW
}

// isDouble tells whether the values need float64: they are float64, or
// integers that float32 does not hold.
func (c *column) isDouble() bool {
	switch c.dt.ID() {
	case arrow.FLOAT64, arrow.INT32, arrow.UINT32, arrow.INT64, arrow.UINT64:
		return true
	}
	return false
}
