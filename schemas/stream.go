package schemas

import (
	"bytes"
	"encoding/binary"
)

// Kinds of Arrow messages (MessageHeader in Message.fbs).
const (
	kindSchema          = 1
	kindDictionaryBatch = 2
	kindRecordBatch     = 3
)

// ipcMessage is one message of an Arrow IPC stream: metadata and body are
// views of the value, and lie within it.
type ipcMessage struct {
	flat
	at      int   // position of the message in the value
	kind    byte  // kindSchema, …
	version int   // metadata version: 3 is V4, 4 is V5
	header  table // the Schema, RecordBatch or DictionaryBatch
	body    []byte
	bodyAt  int // position of the body in the value
}

// Metadata versions: layouts of before V4 are not written any more.
const (
	metadataV4 = 3
	metadataV5 = 4
)

const continuation = 0xFFFFFFFF // begins a message since Arrow 0.15

// readMessage reads the message at position at of the value. next is where
// the following one starts; it is -1, and the message empty, at the end of the
// stream: its end mark, or the end of the value after a whole message.
func readMessage(value []byte, at int) (m ipcMessage, next int, err *FormatError) {
	rest := value[at:]
	if len(rest) == 0 {
		return m, -1, nil
	}
	size, prefix, err := readPrefix(rest, at)
	if err != nil {
		return m, 0, err
	}
	if size == 0 {
		if over := len(rest) - prefix; over > 0 {
			return m, 0, formatErr(ReasonTrailingBytes, at+prefix,
				"%d bytes follow the end of the Arrow stream; a message holds one stream and nothing else", over)
		}
		return m, -1, nil
	}
	if size > len(rest)-prefix {
		return m, 0, formatErr(ReasonTruncated, at, "the message declares %d bytes of metadata, but only %d are left",
			size, len(rest)-prefix)
	}
	m = ipcMessage{flat: flat{b: rest[prefix : prefix+size : prefix+size]}, at: at, bodyAt: at + prefix + size}
	root := m.root()
	m.version, m.kind, m.header = m.shortField(root, 0, 0), m.byteField(root, 1, 0), m.sub(root, 2)
	bodyLen := m.longField(root, 3, 0)
	switch {
	case m.broken || m.header.size == 0:
		return m, 0, formatErr(ReasonCorrupt, at, "the metadata of the message points outside its %d bytes", size)
	case m.version != metadataV5 && m.version != metadataV4:
		return m, 0, formatErr(ReasonUnsupported, at, "metadata version V%d; V4 and V5 can be read", m.version+1)
	case bodyLen < 0:
		return m, 0, formatErr(ReasonCorrupt, at, "the message declares a body of %d bytes", bodyLen)
	case bodyLen > int64(len(value)-m.bodyAt):
		return m, 0, formatErr(ReasonTruncated, at, "the message declares a body of %d bytes, but only %d are left",
			bodyLen, len(value)-m.bodyAt)
	}
	next = m.bodyAt + int(bodyLen)
	m.body = value[m.bodyAt:next:next]
	return m, next, nil
}

// readPrefix returns the length of the metadata, 0 for the end mark, and the
// bytes that say so: 8, or 4 in streams of before Arrow 0.15.
func readPrefix(rest []byte, at int) (size, prefix int, err *FormatError) {
	if len(rest) < 4 {
		return 0, 0, formatErr(ReasonTruncated, at, "%d bytes are left where a message should begin", len(rest))
	}
	word, prefix := binary.LittleEndian.Uint32(rest), 4
	if word == continuation {
		if len(rest) < 8 {
			return 0, 0, formatErr(ReasonTruncated, at, "%d bytes are left where a message should begin", len(rest))
		}
		word, prefix = binary.LittleEndian.Uint32(rest[4:]), 8
	}
	if int32(word) < 0 {
		return 0, 0, formatErr(ReasonCorrupt, at, "the message declares %d bytes of metadata", int32(word))
	}
	return int(word), prefix, nil
}

// readSchemaMessage reads the message that a stream begins with. Values that
// are something else altogether are told apart here.
func readSchemaMessage(value []byte) (ipcMessage, int, *FormatError) {
	switch {
	case len(value) == 0:
		return ipcMessage{}, 0, formatErr(ReasonEmpty, -1, "the value has no bytes")
	case bytes.HasPrefix(value, []byte("ARROW1")):
		return ipcMessage{}, 0, formatErr(ReasonFileFormat, 0,
			"the value is an Arrow file (or Feather); messages hold the stream format (pyarrow.ipc.new_stream)")
	case bytes.HasPrefix(value, []byte("FEA1")):
		return ipcMessage{}, 0, formatErr(ReasonFileFormat, 0,
			"the value is a Feather V1 file; messages hold Arrow's stream format (pyarrow.ipc.new_stream)")
	}
	modern := len(value) >= 4 && binary.LittleEndian.Uint32(value) == continuation
	m, next, err := readMessage(value, 0)
	switch {
	case err != nil && modern && err.Reason != ReasonTrailingBytes:
		return m, 0, err
	case err != nil && !modern: // four bytes that are no length say nothing of a schema
		return m, 0, formatErr(ReasonNotArrow, 0, "the value (%d bytes, beginning % x) is no Arrow IPC stream",
			len(value), value[:min(len(value), 8)])
	case err != nil || next < 0:
		return m, 0, formatErr(ReasonTruncated, 0, "the Arrow stream ends before its schema")
	case m.kind != kindSchema:
		return m, 0, formatErr(ReasonCorrupt, 0,
			"the Arrow stream begins with a message of kind %d, not with its schema", m.kind)
	case len(m.body) > 0:
		return m, 0, formatErr(ReasonCorrupt, m.bodyAt, "the schema has a body of %d bytes", len(m.body))
	}
	return m, next, nil
}
