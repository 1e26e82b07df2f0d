package schemas

import (
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Names of the message schemas, the values of header schema.
const (
	SchemaPoints   = "points/1"   // a message holds one cloud
	SchemaSketches = "sketches/1" // a message holds drawings
	SchemaTokens   = "tokens/1"   // a message holds sequences of token ids
	SchemaText     = "text/1"     // a message holds texts
)

// Names of the headers, as producers here write them. Readers accept any case, and
// underscores for hyphens. If a header is repeated, its last value counts.
const (
	HeaderContentType = "content-type"
	HeaderFormat      = "format" // short name of a content type, beside application/octet-stream
	HeaderSchema      = "schema"
	HeaderDataset     = "dataset"
	HeaderSequence    = "sequence"
	HeaderSensor      = "sensor"
	HeaderFrameID     = "frame-id"
	HeaderTimeNs      = "ts-ns"
	HeaderPose        = "pose" // 12 decimals with commas: the upper three rows of sensor to world
)

// Headers returns the headers of a message that holds an Arrow stream of the given
// schema, with the headers of CloudEvents 1.0 (Kafka binding, binary mode). It reads
// Dataset, Sequence, Sensor, FrameID, TimeNs and Pose of k; if the message holds several
// drawings, k is the key of the first. source names the producer as a URI reference,
// for example "/produce/kitti".
//
// ce_id depends on k alone, so consumers can recognise a message that was produced
// twice.
func Headers(k FrameKey, schema, source string) []Header {
	id := url.PathEscape(k.Dataset) + "/" + url.PathEscape(k.Sequence) + "/"
	if k.Sensor != "" {
		id += url.PathEscape(k.Sensor) + "/"
	}
	frame := strconv.FormatInt(k.FrameID, 10)
	hs := []Header{
		{"ce_specversion", []byte("1.0")},
		{"ce_id", []byte(id + frame)},
		{"ce_type", []byte("entropipe." + strings.TrimSuffix(schema, "/1") + ".v1")},
		{"ce_source", []byte(source)},
		{"ce_time", []byte(time.Unix(0, k.TimeNs).UTC().Format(time.RFC3339Nano))},
		{HeaderContentType, []byte(ContentTypeArrow)},
		{HeaderSchema, []byte(schema)},
		{HeaderDataset, []byte(k.Dataset)},
		{HeaderSequence, []byte(k.Sequence)},
		{HeaderFrameID, []byte(frame)},
		{HeaderTimeNs, strconv.AppendInt(nil, k.TimeNs, 10)},
	}
	if k.Sensor != "" {
		hs = append(hs, Header{HeaderSensor, []byte(k.Sensor)})
	}
	if k.Pose != nil {
		hs = append(hs, Header{HeaderPose, appendPose(nil, k.Pose)})
	}
	return hs
}

// headerValue returns the value of the last header of that name, nil if there
// is none.
func headerValue(hs []Header, name string) []byte {
	for i := len(hs) - 1; i >= 0; i-- {
		if sameName(hs[i].Key, name) && hs[i].Value != nil {
			return hs[i].Value
		}
	}
	return nil
}

// sameName compares a header's key with one of our names, which are lower case
// with hyphens.
func sameName(key, name string) bool {
	if len(key) != len(name) {
		return false
	}
	for i := 0; i < len(key); i++ {
		c := key[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		} else if c == '_' {
			c = '-'
		}
		if c != name[i] {
			return false
		}
	}
	return true
}

// parseInt reads a decimal int64 without allocating.
func parseInt(v []byte) (int64, bool) {
	if len(v) > 20 { // longer than any int64, and than the stack buffer of the conversion
		return 0, false
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	return n, err == nil
}
