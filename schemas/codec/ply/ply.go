// Package ply reads the vertices of PLY files, the polygon format of Stanford: text, and
// binary in both byte orders.
package ply

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"strings"

	"entropipe/schemas/codec"
)

// Is reports whether a value that begins with head is a PLY file.
func Is(head []byte) bool {
	rest, found := bytes.CutPrefix(head, []byte("ply"))
	rest = bytes.TrimLeft(rest, " \t")
	return found && len(rest) > 0 && (rest[0] == '\n' || rest[0] == '\r')
}

// Decode reads element vertex of the PLY file value into the columns of c. Coordinates keep
// the width of their properties. List properties and properties without a role are named in
// c.Ignored, and so are the other elements; elements that follow the vertices are not read.
// limit bounds the bytes of the columns. Errors are of type *codec.Error.
func Decode(c *codec.Cloud, value []byte, limit int64) error {
	c.Reset()
	if !Is(value) {
		return codec.NotMagic("PLY", value)
	}
	h, err := readHeader(value)
	if err == nil {
		err = h.decode(c, value, limit)
	}
	if err != nil {
		return err
	}
	return nil
}

func (h *header) decode(c *codec.Cloud, value []byte, limit int64) *codec.Error {
	vertex := -1
	for i := range h.elements {
		if h.elements[i].name == "vertex" {
			vertex = i
			break
		}
	}
	if vertex < 0 {
		return codec.Errorf(codec.Missing, h.data, "there is no element vertex; the elements are %s", h.names())
	}
	p, err := h.elements[vertex].packed()
	if err != nil {
		return err
	}
	var data []byte
	if h.text {
		data, err = h.textRecords(c, value, vertex)
	} else {
		p.BigEndian = h.order == binary.BigEndian
		data, err = h.binaryRecords(c, value, vertex)
	}
	if err != nil {
		return err
	}
	e := &h.elements[vertex]
	if err := c.Unpack(p, data, e.count, limit); err != nil {
		return err
	}
	for _, q := range e.properties {
		if q.list != 0 {
			c.Ignored = append(c.Ignored, q.name)
		}
	}
	for i, other := range h.elements {
		if i != vertex {
			c.Ignored = append(c.Ignored, "element "+other.name)
		}
	}
	return nil
}

// packed returns the description of a vertex without its lists.
func (e *element) packed() (*codec.Packed, *codec.Error) {
	p := &codec.Packed{Stride: e.fixed}
	at, texture := 0, false
	for _, q := range e.properties {
		if q.list == 0 {
			p.Fields = append(p.Fields, codec.Field{Name: q.name, Offset: at, Type: q.kind})
			at += q.kind.Size()
		}
		texture = texture || q.name == "s"
	}
	err := codec.AssignRoles(p.Fields, func(name string) string {
		if texture && name == "t" { // s and t are a place in a picture
			return ""
		}
		// CloudCompare's names of scalar fields.
		return strings.TrimPrefix(strings.ToLower(name), "scalar_")
	})
	return p, err
}

// binaryRecords returns the vertices without their lists: a part of value, or scratch
// memory of c.
func (h *header) binaryRecords(c *codec.Cloud, value []byte, vertex int) ([]byte, *codec.Error) {
	at := h.data
	for i := range h.elements[:vertex] {
		e := &h.elements[i]
		if err := e.fits(value, at); err != nil {
			return nil, err
		}
		if !e.hasLists() {
			at += e.count * e.fixed
			continue
		}
		for k := range e.count {
			next, err := h.next(e, value, at, nil)
			if err != nil {
				return nil, e.of(k, err)
			}
			at = next
		}
	}
	e := &h.elements[vertex]
	if err := e.fits(value, at); err != nil {
		return nil, err
	}
	if !e.hasLists() {
		return value[at : at+e.count*e.fixed], nil
	}
	records := c.Bytes(e.count * e.fixed)
	for k := range e.count {
		next, err := h.next(e, value, at, records[k*e.fixed:])
		if err != nil {
			return nil, e.of(k, err)
		}
		at = next
	}
	return records, nil
}

// fits returns an error if value has fewer bytes from at than e takes with empty lists.
func (e *element) fits(value []byte, at int) *codec.Error {
	if e.least > 0 && e.count > (len(value)-at)/e.least {
		return codec.Errorf(codec.Truncated, len(value), "element %s of %d needs %d bytes each at least; there are %d "+
			"bytes", e.name, e.count, e.least, len(value)-at)
	}
	return nil
}

// of adds to err which of e it is about.
func (e *element) of(k int, err *codec.Error) *codec.Error {
	return codec.Errorf(err.Reason, int(err.At), "element %s, number %d: %s", e.name, k, err.Detail)
}

// next returns the position after the record of e at position at, and copies its scalar
// values to dst unless dst is nil.
func (h *header) next(e *element, value []byte, at int, dst []byte) (int, *codec.Error) {
	for i := range e.properties {
		q := &e.properties[i]
		size := cmp.Or(q.list, q.kind).Size()
		if size > len(value)-at {
			return 0, codec.Errorf(codec.Truncated, len(value), "property %s ends after the file", q.name)
		}
		if q.list == 0 {
			if dst != nil {
				copy(dst, value[at:at+size])
				dst = dst[size:]
			}
			at += size
			continue
		}
		n, ok := h.length(value[at:], q.list)
		if !ok {
			return 0, codec.Errorf(codec.BadLength, at, "list %s has a negative length", q.name)
		}
		at += size
		if n > (len(value)-at)/q.kind.Size() {
			return 0, codec.Errorf(codec.Truncated, len(value), "list %s of %d values ends after the file", q.name, n)
		}
		at += n * q.kind.Size()
	}
	return at, nil
}

// length reads the length of a list; false: it is negative.
func (h *header) length(b []byte, t codec.Type) (int, bool) {
	n := 0
	switch t {
	case codec.Int8:
		n = int(int8(b[0]))
	case codec.Uint8:
		n = int(b[0])
	case codec.Int16:
		n = int(int16(h.order.Uint16(b)))
	case codec.Uint16:
		n = int(h.order.Uint16(b))
	case codec.Int32:
		n = int(int32(h.order.Uint32(b)))
	case codec.Uint32:
		n = int(min(h.order.Uint32(b), math.MaxInt32))
	}
	return n, n >= 0
}
