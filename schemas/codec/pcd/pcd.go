// Package pcd reads PCD files of versions 0.5 to 0.7, the format of the Point Cloud
// Library: text, binary, and binary compressed with LZF.
package pcd

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"entropipe/schemas/codec"
)

// Is reports whether a value that begins with head is a PCD file: its first line that is no
// comment names the version or the fields.
func Is(head []byte) bool {
	if bytes.HasPrefix(head, []byte("# .PCD")) {
		return true
	}
	for line := range bytes.Lines(head) {
		words := bytes.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		switch string(words[0]) {
		case "VERSION", "FIELDS", "COLUMNS":
			return len(words) > 1
		}
		return false
	}
	return false
}

// Decode reads the PCD file value into the columns of c. Coordinates keep the width of
// their fields. A field of several values (COUNT above 1) has no role. A VIEWPOINT that is
// no identity becomes the pose. Bytes after the last point, which memory-mapped writers
// leave, are named in c.Ignored. limit bounds the bytes of the columns and of the unpacked
// points. Errors are of type *codec.Error.
func Decode(c *codec.Cloud, value []byte, limit int64) error {
	c.Reset()
	if !Is(value) {
		return codec.NotMagic("PCD", value)
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
	c.Pose = h.pose()
	p := codec.Packed{Fields: h.packed(), Stride: h.stride}
	if err := codec.AssignRoles(p.Fields, nil); err != nil {
		return err
	}
	for i := range p.Fields {
		if h.fields[i].count != 1 {
			p.Fields[i].Role = codec.NoRole
		}
	}
	data := value[h.data:]
	switch h.encoding {
	case "ascii":
		records, err := h.records(c, value)
		if err != nil {
			return err
		}
		return c.Unpack(&p, records, h.points, limit)
	case "binary":
		if err := h.enough(len(data), len(value)); err != nil {
			return err
		}
		if err := c.Unpack(&p, data, h.points, limit); err != nil {
			return err
		}
		h.nameRest(c, len(data)-h.points*h.stride)
		return nil
	}
	return h.decodeCompressed(c, &p, value, limit)
}

// enough returns an error if there are fewer bytes than the points take.
func (h *header) enough(have, at int) *codec.Error {
	if need := int64(h.points) * int64(h.stride); int64(have) < need {
		return codec.Errorf(codec.Truncated, at, "POINTS %d of %d bytes need %d bytes of data; there are %d", h.points,
			h.stride, need, have)
	}
	return nil
}

func (h *header) nameRest(c *codec.Cloud, rest int) {
	if rest > 0 {
		c.Ignored = append(c.Ignored, fmt.Sprintf("%d bytes after the points", rest))
	}
}

// decodeCompressed reads data of the form binary_compressed: two sizes, then the fields one
// after the other in LZF.
func (h *header) decodeCompressed(c *codec.Cloud, p *codec.Packed, value []byte, limit int64) *codec.Error {
	data := value[h.data:]
	if len(data) < 8 {
		if h.points == 0 {
			return c.Unpack(p, nil, 0, limit)
		}
		return codec.Errorf(codec.Truncated, len(value),
			"compressed data begin with two sizes of 4 bytes; there are %d "+
				"bytes", len(data))
	}
	packed, raw := int64(binary.LittleEndian.Uint32(data)), int64(binary.LittleEndian.Uint32(data[4:]))
	data = data[8:]
	want := int64(h.points) * int64(h.stride)
	switch {
	case packed > int64(len(data)):
		return codec.Errorf(codec.Truncated, len(value), "the compressed data have %d bytes; there are %d", packed,
			len(data))
	case raw != want:
		return codec.Errorf(codec.BadLength, h.data+4, "the unpacked data have %d bytes; %d points of %d bytes have %d",
			raw, h.points, h.stride, want)
	case raw > limit:
		return codec.Errorf(codec.TooLarge, h.data+4, "the unpacked data have %d bytes, more than the limit of %d", raw,
			limit)
	case raw > (packed+2)/3*maxRun+maxLiteral:
		return codec.Errorf(codec.Corrupt, h.data, "%d bytes of LZF cannot hold %d bytes", packed, raw)
	}
	columns := c.Bytes(int(raw))
	if at := unpackLZF(columns, data[:packed]); at >= 0 {
		return codec.Errorf(codec.Corrupt, h.data+8+at, "the compressed data are damaged")
	}
	at := 0
	for i := range p.Fields {
		f := &h.fields[i]
		p.Fields[i].Offset, p.Fields[i].Step = at, f.size*f.count
		at += f.size * f.count * h.points
	}
	if err := c.Unpack(p, columns, h.points, limit); err != nil {
		return err
	}
	h.nameRest(c, len(data)-int(packed))
	return nil
}
