package parquetfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Types of the compact thrift protocol.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
)

// maxThriftDepth bounds the nesting of structures, with room for later versions of the
// format.
const maxThriftDepth = 24

// maxThriftElements bounds the elements of all lists of a footer: encodings,
// statistics and names of MaxColumnChunks column chunks.
const maxThriftElements = 4 << 20

// scanner walks compact thrift and reserves no memory. Bytes that it accepts contain no
// length beyond their end, so the library's decoder, which reserves memory by these
// lengths, takes a bounded multiple of the bytes.
type scanner struct {
	b        []byte
	at       int
	depth    int
	elements int // number of list elements so far
}

var errThriftDepth = errors.New("its metadata nest too deep")

func (s *scanner) uvarint() (uint64, error) {
	if s.at < len(s.b) && s.b[s.at] < 0x80 { // most numbers
		s.at++
		return uint64(s.b[s.at-1]), nil
	}
	v, n := binary.Uvarint(s.b[s.at:])
	if n == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	if n < 0 {
		return 0, errors.New("a number of its metadata is too long")
	}
	s.at += n
	return v, nil
}

func (s *scanner) bytes(n uint64) error {
	if n > uint64(len(s.b)-s.at) {
		return io.ErrUnexpectedEOF
	}
	s.at += int(n)
	return nil
}

func (s *scanner) byte() (byte, error) {
	if s.at == len(s.b) {
		return 0, io.ErrUnexpectedEOF
	}
	s.at++
	return s.b[s.at-1], nil
}

// fields calls field for each field of a struct; field must consume the value.
func (s *scanner) fields(field func(id int64, kind byte) error) error {
	if s.depth++; s.depth > maxThriftDepth {
		return errThriftDepth
	}
	defer func() { s.depth-- }()
	id := int64(0)
	for {
		b, err := s.byte()
		if err != nil || b == 0 {
			return err
		}
		if b>>4 != 0 {
			id += int64(b >> 4)
		} else {
			u, err := s.uvarint()
			if err != nil {
				return err
			}
			id = int64(u>>1) ^ -int64(u&1)
		}
		if err := field(id, b&15); err != nil {
			return err
		}
	}
}

// list reads the head of a list. Each element takes at least a byte, so n is bounded.
func (s *scanner) list() (n int, kind byte, err error) {
	b, err := s.byte()
	if err != nil {
		return 0, 0, err
	}
	size := uint64(b >> 4)
	if size == 15 {
		if size, err = s.uvarint(); err != nil {
			return 0, 0, err
		}
	}
	if err := s.count(size); err != nil {
		return 0, 0, err
	}
	return int(size), b & 15, nil
}

func (s *scanner) count(n uint64) error {
	if n > uint64(len(s.b)-s.at) {
		return fmt.Errorf("its metadata claim a list of %d elements with %d bytes left: %w", n, len(s.b)-s.at,
			io.ErrUnexpectedEOF)
	}
	if s.elements += int(n); s.elements > maxThriftElements {
		return fmt.Errorf("its metadata have more than %d elements", maxThriftElements)
	}
	return nil
}

// place is the place of a value in a structure.
type place int

const (
	inStruct place = iota // the value of a field: the field's type is the value of a bool
	inList                // an element of a list or map: a bool takes a byte
)

// skip passes over a value.
func (s *scanner) skip(kind byte, at place) error {
	switch kind {
	case thriftTrue, thriftFalse:
		if at == inList {
			return s.bytes(1)
		}
		return nil
	case thriftByte:
		return s.bytes(1)
	case thriftI16, thriftI32, thriftI64:
		_, err := s.uvarint()
		return err
	case thriftDouble:
		return s.bytes(8)
	case thriftBinary:
		n, err := s.uvarint()
		if err != nil {
			return err
		}
		return s.bytes(n)
	case thriftList, thriftSet:
		n, elem, err := s.list()
		if err != nil {
			return err
		}
		return s.each(n, func() error { return s.skip(elem, inList) })
	case thriftMap:
		return s.skipMap()
	case thriftStruct:
		return s.fields(func(_ int64, kind byte) error { return s.skip(kind, inStruct) })
	}
	return fmt.Errorf("its metadata have a value of the unknown type %d", kind)
}

func (s *scanner) each(n int, f func() error) error {
	if s.depth++; s.depth > maxThriftDepth {
		return errThriftDepth
	}
	defer func() { s.depth-- }()
	for range n {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) skipMap() error {
	n, err := s.uvarint()
	if err != nil || n == 0 {
		return err
	}
	kinds, err := s.byte()
	if err != nil {
		return err
	}
	if err := s.count(n); err != nil {
		return err
	}
	return s.each(int(n), func() error {
		if err := s.skip(kinds>>4, inList); err != nil {
			return err
		}
		return s.skip(kinds&15, inList)
	})
}
