package schemas

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"entropipe/schemas/codec"
	"entropipe/schemas/codec/foxglove"
	"entropipe/schemas/codec/pointcloud2"
)

// What is no cloud of the expected format is often a file of another, or wrapped by a client
// library. Rejects name such values, and say what helps.

// container is a file that holds many clouds, or one in a form that no message has.
type container struct{ name, remedy string }

const (
	sendFile  = "send its clouds with: entropipe produce FILE"
	unpack    = "unpack it before it is sent; Kafka's producers compress by themselves"
	unpacked  = unpack + ", and entropipe produce reads packed files"
	noPackets = "no format for packets is read; write its points as PCD, LAS or Arrow"
)

// containers are named as codec.Name does.
var containers = []container{
	{"an MCAP file", sendFile},
	{"an SQLite database", "if it is a ROS 2 bag, " + sendFile},
	{"a TFRecord file", sendFile},
	{"a Parquet file", sendFile},
	{"an encrypted Parquet file", "decrypt it; then " + sendFile},
	{"a gzip file", unpacked},
	{"a Zstandard file", unpacked},
	{"an LZ4 file", unpack},
	{"an xz file", unpack},
	{"a bzip2 file", unpack},
	{"a 7z archive", unpack},
	{"a ZIP archive", unpack},
	{"an empty ZIP archive", unpack},
	{"a pcap capture", noPackets},
	{"a pcapng capture", noPackets},
	{"a ROS 1 bag", "convert it with: rosbags-convert --src FILE --dst FOLDER; then send its clouds with: entropipe " +
		"produce FOLDER"},
	{"a LAZ file", "unpack it with: pdal translate FILE.laz FILE.las"},
	{"an E57 file", "convert it with: pdal translate FILE.e57 FILE.las"},
	{"an HDF5 file", "write its points as Arrow"},
	{"an Ouster OSF file", "convert it to MCAP or PCD with Ouster's SDK"},
	{"a Rerun recording", "write its points as Arrow"},
}

// named returns err, or, where the bytes of m are known as something else than a value of f,
// a reject that says so. f is nil if the content type is unknown.
func named(m *Message, f *format, by authority, err *FormatError) *FormatError {
	if err.Reason == ReasonTooLarge || len(m.Value) == 0 || err.Reason == ReasonBadHeader ||
		err.Reason == ReasonUnknownSchema || f == arrowFormat && err.Reason != ReasonNotArrow ||
		f != nil && f.is != nil && f.is(m.Value) {
		return err
	}
	name := codec.Name(m.Value)
	if i := slices.IndexFunc(containers, func(c container) bool { return c.name == name }); i >= 0 {
		return formatErr(ReasonContainer, 0, "the value is %s, which is no message of one cloud: %s", name,
			containers[i].remedy)
	}
	if f != nil && f.numbers {
		if what := confluent(m.Value, f); what != "" {
			err.Detail += "; if a serializer of Confluent's schema registry wrote it, it has " + what
		}
		return err
	}
	maybeKITTI := plausible(m.Value)
	if f == arrowFormat && by != byHeader {
		if begun := beginsAs(m.Value); begun != nil {
			err.Detail += fmt.Sprintf("; it begins as %s: send it %s", begun.what, begun.howToSend(m.Topic))
			return err
		}
		if maybeKITTI {
			err.Detail += fmt.Sprintf("; it may be a raw KITTI .bin of %d points: send it %s", len(m.Value)/rawWidth,
				formatNamed([]byte("kitti")).howToSend(m.Topic))
			return err
		}
	}
	if what := confluent(m.Value, f); what != "" && !maybeKITTI {
		return formatErr(ReasonSchemaRegistry, 0, "the value has Confluent's wire format, %s: %sentropipe asks no "+
			"schema registry; send the value with a plain serializer%s", what, saidType(m), aboutContentType(f))
	}
	if f == nil && name != "" {
		err.Detail += "; the value is " + name
	}
	if f == arrowFormat && by == byNobody && len(headerValue(m.Headers, HeaderContentType)) == 0 {
		err.Detail += "; a value without header content-type is Arrow, unless --content-type says more of its topic"
	}
	if id := headerValue(m.Headers, "--value-schema-id"); len(id) == 17 && id[0] == 1 {
		err.Detail += fmt.Sprintf("; header __value_schema_id names schema %x-%x-%x-%x-%x of Confluent's registry, "+
			"which entropipe does not ask", id[1:5], id[5:7], id[7:9], id[9:11], id[11:])
	}
	return err
}

// plausible reports whether a value that nothing describes can be a raw .bin.
func plausible(value []byte) bool { return len(value) > 0 && implausible(value) == "" }

// beginsAs returns the format that the value begins as; nil for formats without magic.
func beginsAs(value []byte) *format {
	for _, f := range formats {
		if f.is != nil && f.is(value) {
			return f
		}
	}
	return nil
}

// isPointCloud2 reports whether value is a PointCloud2 in plain CDR. It decodes it.
func isPointCloud2(value []byte) bool {
	if len(value) < 4 || value[0] != 0 || value[1] > 1 {
		return false
	}
	return pointcloud2.Decode(new(codec.Cloud), value, int64(len(value))*8) == nil
}

// isFoxglove reports whether value is a PointCloud in Protobuf. It decodes it.
func isFoxglove(value []byte) bool {
	if len(value) == 0 || value[0] != 1<<3|2 && value[0] != 2<<3|2 { // timestamp or frame_id
		return false
	}
	return foxglove.Decode(new(codec.Cloud), value, int64(len(value))*8) == nil
}

// isFoxgloveJSON reports whether value may be a PointCloud in JSON.
func isFoxgloveJSON(value []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(value, " \t\r\n"), []byte{'{'}) &&
		bytes.Contains(value, []byte(`"point_stride"`))
}

// saidType repeats a content type that is not read.
func saidType(m *Message) string {
	full := headerValue(m.Headers, HeaderContentType)
	if f, _ := formatOfType(full); f != nil || general(full) != "" {
		return ""
	}
	return fmt.Sprintf("content-type is %.80q; ", full)
}

func aboutContentType(f *format) string {
	if f != nil && f != arrowFormat {
		return ""
	}
	return " and a content-type that this build reads: " + contentTypesHelp()
}

// confluent describes the framing of Confluent's schema registry, which serializers put before
// a value: a byte 0 and the schema's id as big-endian int32, and before protobuf the position
// of the message in its schema. It returns "" for a value that does not begin so. Registries
// count ids from 1; those above 2^24 are not recognised, because CDR begins like them.
func confluent(value []byte, f *format) string {
	if len(value) < 6 || value[0] != 0 || value[1] != 0 {
		return ""
	}
	id := binary.BigEndian.Uint32(value[1:])
	if id == 0 {
		return ""
	}
	payload := value[5:]
	text := bytes.TrimLeft(payload, " \t\r\n")
	switch index, ok := messageIndex(payload); {
	case len(text) > 0 && (text[0] == '{' || text[0] == '['):
		return fmt.Sprintf("schema id %d, before JSON", id)
	case ok && (f == nil || f.within == contentTypeProtobuf || f == arrowFormat):
		return fmt.Sprintf("schema id %d, before Protobuf with message index %v", id, index)
	}
	return fmt.Sprintf("schema id %d", id)
}

// messageIndex reads the position of a message in its schema, zigzag varints: their number,
// then each; a single 0 stands for the first message. ok is false if what follows is no
// message of protobuf.
func messageIndex(b []byte) (index []int64, ok bool) {
	const most = 8 // messages nested within messages
	n, size := binary.Varint(b)
	if size <= 0 || n < 0 || n > most {
		return nil, false
	}
	b = b[size:]
	if n == 0 {
		return []int64{0}, isProtobuf(b)
	}
	for range n {
		i, size := binary.Varint(b)
		if size <= 0 || i < 0 || i > 10_000 {
			return nil, false
		}
		index, b = append(index, i), b[size:]
	}
	return index, isProtobuf(b)
}

// isProtobuf reports whether b is a row of fields of protobuf, at least one.
func isProtobuf(b []byte) bool {
	for first := true; len(b) > 0 || first; first = false {
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag>>3 == 0 || tag>>3 >= 1<<29 {
			return false
		}
		b = b[n:]
		skip := uint64(0)
		switch tag & 7 {
		case 0:
			if _, n = binary.Uvarint(b); n <= 0 {
				return false
			}
			skip = uint64(n)
		case 1:
			skip = 8
		case 2:
			if skip, n = binary.Uvarint(b); n <= 0 {
				return false
			}
			b = b[n:]
		case 5:
			skip = 4
		default:
			return false
		}
		if skip > uint64(len(b)) {
			return false
		}
		b = b[skip:]
	}
	return true
}
