package replay

import (
	"math"
	"strings"

	"entropipe/schemas"
	"entropipe/schemas/codec"
)

// Columns names the columns of a table that hold something else than their names say. An empty
// name leaves it to the names that drivers and data sets use (codec.RoleOf).
type Columns struct {
	X, Y, Z, Intensity string

	laser string // may be absent from the table
}

// roles are the columns of ours that Columns can name.
func (n *Columns) roles() map[codec.Role]string {
	all := map[codec.Role]string{codec.X: n.X, codec.Y: n.Y, codec.Z: n.Z, codec.Intensity: n.Intensity,
		codec.Laser: n.laser}
	for role, name := range all {
		if name == "" {
			delete(all, role)
		}
	}
	return all
}

// columnPlan says which column of a table fills which of ours: its position plus 1, by role.
type columnPlan [codec.RGB + 1]int

// planColumns assigns columns to roles, and returns the names of columns without a role. Two
// columns for a coordinate or the intensity are an error, because names can choose one; of two
// columns for another role the one with our name, else the first one, is taken.
func planColumns(columns []schemas.TableColumn, names Columns) (plan columnPlan, ignored []string, err error) {
	chosen := names.roles()
	for role, name := range chosen {
		at := findColumn(columns, name)
		if at < 0 && role == codec.Laser {
			continue
		}
		if at < 0 {
			return plan, nil, codec.Errorf(codec.Missing, -1, "there is no column %q; the columns are %s", name,
				listColumns(columns))
		}
		plan[role] = at + 1
	}
	taken := func(at int) bool {
		for _, p := range plan {
			if p == at+1 {
				return true
			}
		}
		return false
	}
	for at, c := range columns {
		role := codec.RoleOf(c.Name)
		_, named := chosen[role]
		if taken(at) || role == codec.NoRole || named || !c.Number && role > codec.Z {
			continue
		}
		old := plan[role]
		switch {
		case old == 0 || role > codec.Intensity && c.Name == codec.RoleNames[role]:
			plan[role] = at + 1
		case role <= codec.Intensity:
			return plan, nil, codec.Errorf(codec.Duplicate, -1, "columns %s and %s both hold %s; name one of them",
				columns[old-1].Name, c.Name, codec.RoleNames[role])
		}
	}
	if plan[codec.X] == 0 || plan[codec.Y] == 0 {
		return plan, nil, codec.Errorf(codec.Missing, -1, "there is no column x or no column y; the columns are %s; "+
			"name those that hold them", listColumns(columns))
	}
	if plan[codec.RGB] > 0 && plan[codec.Red]+plan[codec.Green]+plan[codec.Blue] > 0 {
		plan[codec.RGB] = 0
	}
	for at, c := range columns {
		if !taken(at) {
			ignored = append(ignored, c.Name)
		}
	}
	return plan, ignored, nil
}

// findColumn returns the position of the column of a name, in these letters before others; -1: none.
func findColumn(columns []schemas.TableColumn, name string) int {
	found := -1
	for i, c := range columns {
		if c.Name == name {
			return i
		}
		if found < 0 && strings.EqualFold(c.Name, name) {
			found = i
		}
	}
	return found
}

func listColumns(columns []schemas.TableColumn) string {
	var names []string
	for _, c := range columns[:min(len(columns), 20)] {
		names = append(names, c.Name)
	}
	if len(columns) > 20 {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

// columnTable is a table of named columns: an Arrow or a Parquet file. The methods are those
// of schemas.Table.
type columnTable interface {
	Rows() int
	Columns() []schemas.TableColumn
	Float32s(i int, dst []float32) ([]float32, error)
	Float64s(i int, dst []float64) ([]float64, error)
	Int64s(i int, dst []int64) ([]int64, error)
}

// fillCloud reads the columns of a table into c, one cloud. Coordinates are float64 where one of
// their types needs it: none is rounded. limit bounds the bytes of the columns.
func fillCloud(c *codec.Cloud, t columnTable, names Columns, limit int64) error {
	c.Reset()
	plan, err := planTable(t.Columns(), names)
	if err != nil {
		return err
	}
	return plan.fill(c, t, limit)
}

// tablePlan says how a cloud is made of a table.
type tablePlan struct {
	columnPlan
	columns []schemas.TableColumn
	ignored []string
	width   int64 // bytes of a point, at most
	double  bool  // coordinates are float64
}

func planTable(columns []schemas.TableColumn, names Columns) (p tablePlan, err error) {
	p.columns = columns
	if p.columnPlan, p.ignored, err = planColumns(columns, names); err != nil {
		return p, err
	}
	for role, at := range p.columnPlan {
		if at == 0 {
			continue
		}
		p.width += 8
		if role <= int(codec.Z) {
			p.double = p.double || columns[at-1].Wide
		}
	}
	return p, nil
}

// fill reads the columns into c. limit bounds their bytes.
func (p *tablePlan) fill(c *codec.Cloud, t columnTable, limit int64) error {
	c.Reset()
	c.Ignored = append(c.Ignored, p.ignored...)
	c.Double = p.double
	n := t.Rows()
	if int64(n)*p.width > limit {
		return tooManyPoints(int64(n), p.width, limit)
	}
	f := columnFiller{c: c, t: t, n: n}
	f.sparse, _ = t.(sparseTable)
	for role, at := range p.columnPlan {
		if at > 0 {
			if err := f.fill(codec.Role(role), at-1, p.columns[at-1]); err != nil {
				c.Reset()
				return err
			}
		}
	}
	return nil
}

// sparseTable is a columnTable whose columns may have no value in any row.
type sparseTable interface {
	// absent reports whether the column that was read last has none. The values that were
	// returned are then undefined.
	absent() bool
}

// tooManyPoints is the error for n points of width bytes each.
func tooManyPoints(n, width, limit int64) error {
	return codec.Errorf(codec.TooLarge, -1, "%d points take %d bytes, more than the limit of %d", n, n*width, limit)
}

// columnFiller fills the columns of a cloud of n points.
type columnFiller struct {
	c      *codec.Cloud
	t      columnTable
	sparse sparseTable // nil: every column has values
	n      int
}

// absent reports whether the column that was read last has no value, and so is none of the cloud.
func (f *columnFiller) absent() bool { return f.sparse != nil && f.sparse.absent() }

// fill reads column number at into the column of role.
func (f *columnFiller) fill(role codec.Role, at int, from schemas.TableColumn) (err error) {
	c := f.c
	switch role {
	case codec.X, codec.Y, codec.Z:
		if c.Double {
			to := [...]*[]float64{&c.Cloud64.X, &c.Cloud64.Y, &c.Cloud64.Z}[role-codec.X]
			*to, err = f.t.Float64s(at, c.Float64s(role, f.n))
			*to = axis(f, role, *to)
		} else {
			to := [...]*[]float32{&c.Cloud32.X, &c.Cloud32.Y, &c.Cloud32.Z}[role-codec.X]
			*to, err = f.t.Float32s(at, c.Float32s(role, f.n))
			*to = axis(f, role, *to)
		}
	case codec.Intensity:
		c.Points.Intensity, err = present(f)(f.t.Float32s(at, c.Float32s(role, f.n)))
	case codec.Elongation:
		c.Elongation, err = present(f)(f.t.Float32s(at, c.Float32s(role, f.n)))
	case codec.TOffset:
		c.TOffsetNs, err = f.times(at, from)
	case codec.RGB:
		err = f.colours(at, from)
	default:
		*intColumn(&c.Extra, role), err = f.ints(role, at, from)
	}
	return err
}

// axis returns a column of coordinates. Without any value z is absent, and x and y are NaN.
func axis[T float32 | float64](f *columnFiller, role codec.Role, v []T) []T {
	if !f.absent() || len(v) == 0 {
		return v
	}
	if role == codec.Z {
		return nil
	}
	for i := range v {
		v[i] = T(math.NaN())
	}
	return v
}

// present returns a function that drops a column without any value.
func present(f *columnFiller) func(v []float32, err error) ([]float32, error) {
	return func(v []float32, err error) ([]float32, error) {
		if f.absent() {
			return nil, err
		}
		return v, err
	}
}

// intColumn returns the column of e that role fills.
func intColumn(e *codec.Extra, role codec.Role) *[]int32 {
	for i, name := range codec.Int32Names {
		if name == codec.RoleNames[role] {
			return e.Int32s()[i]
		}
	}
	panic("role " + codec.RoleNames[role] + " is no integer") // the caller has handled all others
}

// ints reads a column of int32. Floats must be whole; null and NaN become codec.NoInt32.
func (f *columnFiller) ints(role codec.Role, at int, from schemas.TableColumn) ([]int32, error) {
	v := f.c.Int32s(role, f.n)
	if !from.Integer {
		wide, err := f.t.Float64s(at, f.c.Float64s(role, f.n))
		if f.absent() {
			return nil, err
		}
		for i := 0; err == nil && i < len(wide); i++ {
			if v[i], err = int32Of(wide[i]); err != nil {
				err = codec.Errorf(codec.BadValue, -1, "column %s, row %d: %v", from.Name, i, err)
			}
		}
		return v, err
	}
	wide, err := f.t.Int64s(at, f.c.Int64s(role, f.n))
	if f.absent() {
		return nil, err
	}
	for i := 0; err == nil && i < len(wide); i++ {
		switch w := wide[i]; {
		case w == codec.NoInt64:
			v[i] = codec.NoInt32
		case w <= math.MinInt32 || w > math.MaxInt32:
			err = codec.Errorf(codec.BadValue, -1, "column %s, row %d: %d is no int32", from.Name, i, w)
		default:
			v[i] = int32(w)
		}
	}
	return v, err
}

// int32Of returns a whole number as int32; codec.NoInt32 for NaN.
func int32Of(v float64) (int32, error) {
	if v != v {
		return codec.NoInt32, nil
	}
	if !(v > math.MinInt32 && v <= math.MaxInt32) || v != math.Trunc(v) {
		return 0, codec.Errorf(codec.BadValue, -1, "%v is no int32", v)
	}
	return int32(v), nil
}

// times reads times of points: integers are nanoseconds, floats are seconds.
func (f *columnFiller) times(at int, from schemas.TableColumn) ([]int64, error) {
	if from.Integer {
		v, err := f.t.Int64s(at, f.c.Int64s(codec.TOffset, f.n))
		if f.absent() {
			v = nil
		}
		return v, err
	}
	v := f.c.Int64s(codec.TOffset, f.n)
	seconds, err := f.t.Float64s(at, f.c.Float64s(codec.TOffset, f.n))
	if f.absent() {
		return nil, err
	}
	for i := 0; err == nil && i < len(seconds); i++ {
		v[i] = nanoseconds(seconds[i])
	}
	return v, err
}

// nanoseconds returns the nearest integer; codec.NoInt64 for what does not fit.
func nanoseconds(seconds float64) int64 {
	ns := math.RoundToEven(seconds * 1e9)
	if !(ns > math.MinInt64 && ns < math.MaxInt64) {
		return codec.NoInt64
	}
	return int64(ns)
}

// colours reads 0x00RRGGBB: integers, or the bits of float32.
func (f *columnFiller) colours(at int, from schemas.TableColumn) error {
	c, n := f.c, f.n
	if !from.Integer && from.Wide {
		c.Ignored = append(c.Ignored, from.Name)
		return nil
	}
	var bits []int64
	if from.Integer {
		var err error
		if bits, err = f.t.Int64s(at, c.Int64s(codec.RGB, n)); err != nil {
			return err
		}
	} else {
		narrow, err := f.t.Float32s(at, c.Float32s(codec.RGB, n))
		if err != nil {
			return err
		}
		bits = c.Int64s(codec.RGB, n)
		for i, v := range narrow {
			bits[i] = int64(math.Float32bits(v))
		}
	}
	if f.absent() {
		return nil
	}
	setColours(c, bits)
	return nil
}

// setColours fills red, green and blue from 0x00RRGGBB.
func setColours(c *codec.Cloud, bits []int64) {
	n := len(bits)
	c.Red, c.Green, c.Blue = c.Int32s(codec.Red, n), c.Int32s(codec.Green, n), c.Int32s(codec.Blue, n)
	for i, v := range bits {
		if v == codec.NoInt64 {
			c.Red[i], c.Green[i], c.Blue[i] = codec.NoInt32, codec.NoInt32, codec.NoInt32
			continue
		}
		c.Red[i], c.Green[i], c.Blue[i] = int32(v>>16&0xff), int32(v>>8&0xff), int32(v&0xff)
	}
}
