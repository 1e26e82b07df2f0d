package schemas

import "encoding/binary"

// flat reads an unchecked FlatBuffer, the metadata of an Arrow message. It checks
// every read against the bytes. A read outside of them sets broken and returns zero,
// so that a caller reads a whole table and then checks broken once. Generated readers
// panic there instead.
//
// flat does not bound the number of reads: tables may share children, so a caller
// that walks a tree counts its nodes.
type flat struct {
	b      []byte
	broken bool
}

// table is a table of a FlatBuffer. The zero value has no fields.
type table struct {
	pos    int // position of the table
	vtable int // position of its vtable
	size   int // bytes of its vtable; 0: no table
}

// at tells whether n bytes at p can be read.
func (f *flat) at(p, n int) bool {
	if p < 0 || n < 0 || p > len(f.b)-n {
		f.broken = true
		return false
	}
	return true
}

func (f *flat) u8(p int) byte {
	if !f.at(p, 1) {
		return 0
	}
	return f.b[p]
}

func (f *flat) u16(p int) int {
	if !f.at(p, 2) {
		return 0
	}
	return int(binary.LittleEndian.Uint16(f.b[p:]))
}

func (f *flat) i32(p int) int {
	if !f.at(p, 4) {
		return 0
	}
	return int(int32(binary.LittleEndian.Uint32(f.b[p:])))
}

func (f *flat) i64(p int) int64 {
	if !f.at(p, 8) {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(f.b[p:]))
}

// root returns the table that the FlatBuffer begins with.
func (f *flat) root() table { return f.table(f.deref(0)) }

// deref follows the offset at p. Offsets of 2 GiB and more are negative here,
// and so out of bounds.
func (f *flat) deref(p int) int { return p + f.i32(p) }

// table returns the table at p.
func (f *flat) table(p int) table {
	t := table{pos: p, vtable: p - f.i32(p)}
	t.size = f.u16(t.vtable)
	if f.broken || t.size < 4 || t.size%2 != 0 || !f.at(t.vtable, t.size) {
		f.broken = true
		return table{}
	}
	return t
}

// field returns the position of a table's field, 0 if it is absent and so has
// its default value.
func (f *flat) field(t table, slot int) int {
	o := 4 + 2*slot
	if o+2 > t.size {
		return 0
	}
	if v := f.u16(t.vtable + o); v != 0 {
		return t.pos + v
	}
	return 0
}

// sub returns the table that a field refers to; the zero table if absent.
func (f *flat) sub(t table, slot int) table {
	p := f.field(t, slot)
	if p == 0 {
		return table{}
	}
	return f.table(f.deref(p))
}

// vector returns where the elements of a vector start, and how many there are,
// all of size bytes and within bounds.
func (f *flat) vector(t table, slot, size int) (start, n int) {
	p := f.field(t, slot)
	if p == 0 {
		return 0, 0
	}
	p = f.deref(p)
	n = f.i32(p)
	if n < 0 || n > len(f.b) || !f.at(p+4, n*size) {
		f.broken = true
		return 0, 0
	}
	return p + 4, n
}

// str returns a string field, as a view.
func (f *flat) str(t table, slot int) []byte {
	start, n := f.vector(t, slot, 1)
	return f.b[start : start+n]
}

// scalar fields with their default.

func (f *flat) byteField(t table, slot int, def byte) byte {
	if p := f.field(t, slot); p != 0 {
		return f.u8(p)
	}
	return def
}

func (f *flat) shortField(t table, slot, def int) int {
	if p := f.field(t, slot); p != 0 {
		return int(int16(f.u16(p)))
	}
	return def
}

func (f *flat) intField(t table, slot, def int) int {
	if p := f.field(t, slot); p != 0 {
		return f.i32(p)
	}
	return def
}

func (f *flat) longField(t table, slot int, def int64) int64 {
	if p := f.field(t, slot); p != 0 {
		return f.i64(p)
	}
	return def
}
