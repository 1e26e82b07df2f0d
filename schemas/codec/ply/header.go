package ply

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"entropipe/schemas/codec"
)

const maxHeader = 64 << 10 // bytes

// header is what stands before the elements.
type header struct {
	elements []element
	text     bool
	order    binary.ByteOrder // order of binary values
	data     int              // position of the first element
	lines    int              // number of lines of the header
	ending   string           // end of a line of the header
}

type element struct {
	name       string
	count      int
	properties []property
	fixed      int // bytes of the scalar properties
	least      int // bytes of a record with empty lists
}

// property is a number, or a list of numbers of type kind.
type property struct {
	name string
	kind codec.Type
	list codec.Type // type of the list's length; 0: no list
}

// hasLists reports whether a property is a list, whose length takes a byte at least.
func (e *element) hasLists() bool { return e.least != e.fixed }

// typeNames are both families of names, that of the paper and that of later writers.
var typeNames = map[string]codec.Type{
	"char": codec.Int8, "int8": codec.Int8, "uchar": codec.Uint8, "uint8": codec.Uint8,
	"short": codec.Int16, "int16": codec.Int16, "ushort": codec.Uint16, "uint16": codec.Uint16,
	"int": codec.Int32, "int32": codec.Int32, "uint": codec.Uint32, "uint32": codec.Uint32,
	"float": codec.Float32, "float32": codec.Float32, "double": codec.Float64, "float64": codec.Float64,
}

// readHeader reads the lines up to end_header. The first line tells how lines end.
func readHeader(value []byte) (*header, *codec.Error) {
	h := &header{ending: "\n"}
	if first := bytes.IndexAny(value, "\r\n"); value[first] == '\r' {
		h.ending = "\r"
		if first+1 < len(value) && value[first+1] == '\n' {
			h.ending = "\r\n"
		}
	}
	formatted := false
	for at := 0; ; {
		if at >= maxHeader {
			return nil, codec.Errorf(codec.Corrupt, at, "the header has no line end_header within %d bytes", maxHeader)
		}
		end := bytes.Index(value[at:], []byte(h.ending))
		if end < 0 {
			return nil, codec.Errorf(codec.Truncated, len(value), "the header ends before the line end_header")
		}
		words := strings.Fields(string(value[at : at+min(end, maxHeader)]))
		begin := at
		at += end + len(h.ending)
		h.lines++
		if len(words) == 0 || h.lines == 1 {
			continue
		}
		var err *codec.Error
		switch words[0] {
		case "comment", "obj_info":
		case "format":
			formatted = true
			err = h.readFormat(words, begin)
		case "element":
			err = h.readElement(words, begin)
		case "property":
			err = h.readProperty(words, begin)
		case "end_header":
			if !formatted {
				return nil, codec.Errorf(codec.Corrupt, begin, "the header has no line format")
			}
			h.data = at
			return h, nil
		default:
			err = codec.Errorf(codec.Corrupt, begin, "the header has the unknown line %.80q", strings.Join(words, " "))
		}
		if err != nil {
			return nil, err
		}
	}
}

func (h *header) readFormat(words []string, at int) *codec.Error {
	if len(words) != 3 || words[2] != "1.0" {
		return codec.Errorf(codec.Unsupported, at, "the line %.80q is no format of version 1.0",
			strings.Join(words, " "))
	}
	switch h.order = binary.LittleEndian; words[1] {
	case "ascii":
		h.text = true
	case "binary_little_endian":
		h.text = false
	case "binary_big_endian":
		h.text, h.order = false, binary.BigEndian
	default:
		return codec.Errorf(codec.Unsupported, at, "format %.40q is unknown; want ascii, binary_little_endian or "+
			"binary_big_endian", words[1])
	}
	return nil
}

func (h *header) readElement(words []string, at int) *codec.Error {
	e := element{}
	if len(words) == 3 {
		e.name = words[1]
		n, err := strconv.ParseInt(words[2], 10, 64)
		if err == nil && n >= 0 && n <= math.MaxInt32 {
			e.count = int(n)
			for i := range h.elements {
				if h.elements[i].name == e.name {
					return codec.Errorf(codec.Duplicate, at, "there are two elements %.40s", e.name)
				}
			}
			h.elements = append(h.elements, e)
			return nil
		}
	}
	return codec.Errorf(codec.BadLength, at, "the line %.80q has no name and no count from 0 to %d",
		strings.Join(words, " "), math.MaxInt32)
}

func (h *header) readProperty(words []string, at int) *codec.Error {
	if len(h.elements) == 0 {
		return codec.Errorf(codec.Corrupt, at, "a property stands before the first element")
	}
	e := &h.elements[len(h.elements)-1]
	var q property
	switch {
	case len(words) == 3:
		q.kind, q.name = typeNames[words[1]], words[2]
	case len(words) == 5 && words[1] == "list":
		q.list, q.kind, q.name = typeNames[words[2]], typeNames[words[3]], words[4]
		if q.list == 0 || q.list.IsFloat() {
			return codec.Errorf(codec.BadType, at, "list %.40s has lengths of type %.40q, want an integer", q.name,
				words[2])
		}
	default:
		return codec.Errorf(codec.Corrupt, at, "the line %.80q is no property", strings.Join(words, " "))
	}
	if q.kind == 0 {
		return codec.Errorf(codec.BadType, at, "property %.40s has the unknown type %.40q", q.name,
			words[len(words)-2])
	}
	if q.list == 0 {
		e.fixed += q.kind.Size()
		e.least += q.kind.Size()
	} else {
		e.least += q.list.Size()
	}
	e.properties = append(e.properties, q)
	return nil
}

// names lists the elements.
func (h *header) names() string {
	var names []string
	for i := range h.elements[:min(len(h.elements), 20)] {
		names = append(names, h.elements[i].name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
