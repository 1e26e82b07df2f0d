// Package mcap reads and writes MCAP files (version 0): messages of many topics with their
// schemas, in chunks that may be compressed.
//
// Reader streams over an io.Reader: it needs no index, and reads files that were never
// closed up to their last whole message. Summary reads the index at the end of a closed
// file. Writer makes files with an index. The package opens no file and knows no message
// encoding.
//
// Vocabulary. A record is an opcode, a length and a content. A chunk is a record that holds
// further records. A channel is a topic with an encoding and a schema. The data section ends
// with record DataEnd; the summary section follows, and the footer closes the file.
package mcap

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Magic stands at both ends of a file.
const Magic = "\x89MCAP0\r\n"

// Is reports whether head, the begin of a file, is that of an MCAP file of any version.
func Is(head []byte) bool {
	return len(head) >= len(Magic) && bytes.HasPrefix(head, []byte(Magic[:5])) && string(head[6:8]) == Magic[6:]
}

// Opcodes of records.
const (
	opHeader          = 0x01
	opFooter          = 0x02
	opSchema          = 0x03
	opChannel         = 0x04
	opMessage         = 0x05
	opChunk           = 0x06
	opMessageIndex    = 0x07
	opChunkIndex      = 0x08
	opAttachment      = 0x09
	opAttachmentIndex = 0x0a
	opStatistics      = 0x0b
	opMetadata        = 0x0c
	opMetadataIndex   = 0x0d
	opSummaryOffset   = 0x0e
	opDataEnd         = 0x0f
)

// opNames are the names of records in errors.
var opNames = [...]string{"record of opcode 0", "header", "footer", "schema", "channel", "message", "chunk",
	"message index", "chunk index", "attachment", "attachment index", "statistics", "metadata", "metadata index",
	"summary offset", "data end"}

func opName(op byte) string {
	if int(op) < len(opNames) {
		return opNames[op]
	}
	return fmt.Sprintf("record of opcode %#x", op)
}

// prefix is the size of opcode and length, which begin every record.
const prefix = 9

// Schema says how the messages of a channel are laid out.
type Schema struct {
	ID       uint16
	Name     string // such as sensor_msgs/msg/PointCloud2
	Encoding string // of Data: ros2msg, ros2idl, protobuf, jsonschema, ros1msg …
	Data     []byte
}

// Channel is a topic. Schema is nil for messages without a schema.
type Channel struct {
	ID              uint16
	Topic           string
	MessageEncoding string // cdr, protobuf, json, ros1 …
	Schema          *Schema
	Metadata        map[string]string
}

// SchemaName returns the name of the schema; "" without a schema.
func (c *Channel) SchemaName() string {
	if c.Schema == nil {
		return ""
	}
	return c.Schema.Name
}

// Message is a message of a channel. Data belong to the Reader until its next call.
type Message struct {
	Channel     *Channel
	Sequence    uint32
	LogTime     uint64 // nanoseconds, of any clock; usually since 1970
	PublishTime uint64
	Data        []byte
	Offset      int64 // bytes from the begin of the file to the message, or to the chunk that holds it
	Record      int64 // number of the record at Offset, from 0
}

// Error says which record of a file cannot be used.
type Error struct {
	Reason string // a reason of package codec
	Detail string
	Offset int64 // bytes from the begin of the file to the record
	Record int64 // number of the record, from 0; those within a chunk are not counted
}

func (e *Error) Error() string {
	return fmt.Sprintf("record %d at byte %d: %s", e.Record, e.Offset, e.Detail)
}

// cursor reads the content of a record. After a read beyond the end, bad is set and all
// values are zero.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.b)) || c.bad {
		c.bad, c.b = true, nil
		return nil
	}
	v := c.b[:n:n]
	c.b = c.b[n:]
	return v
}

func (c *cursor) u16() uint16 {
	if v := c.take(2); v != nil {
		return binary.LittleEndian.Uint16(v)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if v := c.take(4); v != nil {
		return binary.LittleEndian.Uint32(v)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if v := c.take(8); v != nil {
		return binary.LittleEndian.Uint64(v)
	}
	return 0
}

// text reads a length of four bytes and as many bytes.
func (c *cursor) text() string { return string(c.take(uint64(c.u32()))) }

// texts reads a map; nil for the empty one. Of two equal keys the later one counts.
func (c *cursor) texts() map[string]string {
	in := cursor{b: c.take(uint64(c.u32())), bad: c.bad}
	var m map[string]string
	for len(in.b) > 0 {
		key, value := in.text(), in.text()
		if m == nil {
			m = map[string]string{}
		}
		m[key] = value
	}
	c.bad = c.bad || in.bad
	return m
}

// channels are the schemas and channels of a file, by id.
type channels struct {
	schemas map[uint16]*Schema
	byID    map[uint16]*Channel
}

// maxNamed bounds the bytes that schemas and channels of a file may take together.
const maxNamed = 64 << 20

// addSchema takes the content of a schema record. A schema that is repeated must be equal.
func (c *channels) addSchema(content []byte) string {
	in := cursor{b: content}
	s := Schema{ID: in.u16(), Name: in.text(), Encoding: in.text()}
	data := in.take(uint64(in.u32()))
	if in.bad {
		return "the schema is longer than its record"
	}
	if s.ID == 0 {
		return "a schema has the id 0, which means no schema"
	}
	if old := c.schemas[s.ID]; old != nil {
		if old.Name != s.Name || old.Encoding != s.Encoding || !bytes.Equal(old.Data, data) {
			return fmt.Sprintf("schema %d is %.80q here, and %.80q before", s.ID, s.Name, old.Name)
		}
		return ""
	}
	s.Data = bytes.Clone(data)
	if c.schemas == nil {
		c.schemas = map[uint16]*Schema{}
	}
	c.schemas[s.ID] = &s
	return ""
}

// addChannel takes the content of a channel record. A channel that is repeated must be equal.
func (c *channels) addChannel(content []byte) string {
	in := cursor{b: content}
	id, schema := in.u16(), in.u16()
	ch := Channel{ID: id, Topic: in.text(), MessageEncoding: in.text(), Metadata: in.texts()}
	if in.bad {
		return "the channel is longer than its record"
	}
	if schema != 0 {
		if ch.Schema = c.schemas[schema]; ch.Schema == nil {
			return fmt.Sprintf("channel %d, topic %.80q, names schema %d, which has not come", id, ch.Topic, schema)
		}
	}
	if old := c.byID[id]; old != nil {
		if old.Topic != ch.Topic || old.MessageEncoding != ch.MessageEncoding || old.Schema != ch.Schema {
			return fmt.Sprintf("channel %d is topic %.80q here, and %.80q before", id, ch.Topic, old.Topic)
		}
		return ""
	}
	if c.byID == nil {
		c.byID = map[uint16]*Channel{}
	}
	c.byID[id] = &ch
	return ""
}
