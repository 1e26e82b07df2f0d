package web

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"entropipe/ops/pipeline"
	"entropipe/schemas"
)

// sampleBytes bounds the bytes of a value that are shown.
const sampleBytes = 512

type rejectsJSON struct {
	Reasons []rejectJSON `json:"reasons"`
}

type rejectJSON struct {
	Stage  string     `json:"stage"`
	Reason string     `json:"reason"`
	Count  int64      `json:"count"`
	Sample sampleJSON `json:"sample"`
}

type sampleJSON struct {
	Topic     string   `json:"topic"`
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Index     int32    `json:"index"`
	Message   string   `json:"message"`
	TimeNs    int64    `json:"time_ns,string"`
	Key       string   `json:"key"`
	ValueHex  string   `json:"value_hex"`
	ValueSize int64    `json:"value_size"`
	Parsed    []string `json:"parsed"`
}

func rejectsOf(all []pipeline.Refused) rejectsJSON {
	out := rejectsJSON{Reasons: []rejectJSON{}}
	for i := range all {
		s := &all[i].Sample
		out.Reasons = append(out.Reasons, rejectJSON{Stage: s.Stage, Reason: s.Reason, Count: all[i].Count,
			Sample: sampleJSON{Topic: s.Topic, Partition: s.Partition, Offset: s.Offset, Index: s.Index,
				Message: s.Message, TimeNs: s.TimeNs, Key: readable(s.Key, 256),
				ValueHex: hex.EncodeToString(s.Value[:min(len(s.Value), sampleBytes)]), ValueSize: s.ValueSize,
				Parsed: parsed(s)}})
	}
	return out
}

// readable returns bytes as text; in hex if they are no text.
func readable(b []byte, most int) string {
	more := ""
	if len(b) > most {
		b, more = b[:most], "…"
		for len(b) > 0 && !utf8.Valid(b) && len(b) > most-utf8.UTFMax {
			b = b[:len(b)-1] // half a character
		}
	}
	if utf8.Valid(b) && !bytes.ContainsFunc(b, func(r rune) bool { return r < ' ' && r != '\t' }) {
		return string(b) + more
	}
	return "0x" + hex.EncodeToString(b) + more
}

// parsed returns lines about a refused value: its headers, and what its first bytes are.
func parsed(s *schemas.Reject) []string {
	lines := []string{}
	typed := false
	for _, h := range s.Headers {
		name := readable([]byte(h.Key), 64)
		lines = append(lines, name+": "+readable(h.Value, 200))
		typed = typed || strings.EqualFold(strings.ReplaceAll(h.Key, "_", "-"), "content-type")
	}
	if !typed {
		lines = append(lines, "no content-type: read as an Arrow stream, unless --content-type says otherwise")
	}
	if text := beginning(s.Value); text != "" {
		lines = append(lines, "begins as "+text)
	}
	return lines
}

// magics are the first bytes of formats.
var magics = []struct{ bytes, name string }{
	{"ARROW1\x00\x00", "an Arrow file, not a stream"},
	{"PAR1", "a Parquet file"},
	{"# .PCD", "a PCD file"},
	{"VERSION ", "a PCD file without its comment"},
	{"ply\n", "a PLY file"},
	{"ply\r\n", "a PLY file"},
	{"LASF", "a LAS or LAZ file"},
	{"\x89MCAP0\r\n", "an MCAP file"},
	{"#ROSBAG V", "a ROS 1 bag"},
	{"SQLite format 3\x00", "an SQLite file, such as a ROS 2 bag"},
	{"\x89HDF\r\n\x1a\n", "an HDF5 file"},
	{"\x1f\x8b", "gzip"},
	{"\x28\xb5\x2f\xfd", "zstd"},
	{"\x04\x22\x4d\x18", "an LZ4 frame"},
	{"PK\x03\x04", "a zip file"},
	{"\x89PNG\r\n\x1a\n", "a PNG picture"},
	{"\xff\xd8\xff", "a JPEG picture"},
	{"\x00\x01\x00\x00", "a ROS 2 message (CDR, little endian)"},
	{"\x00\x00\x00\x00", "zeros, a ROS 2 message (CDR, big endian) or the wire format of a schema registry"},
}

// beginning says what the first bytes of a value are; "" if nothing is known of them.
func beginning(v []byte) string {
	if len(v) == 0 {
		return "nothing: the value is empty"
	}
	if bytes.HasPrefix(v, []byte("\xff\xff\xff\xff")) && len(v) >= 8 {
		n := uint32(v[4]) | uint32(v[5])<<8 | uint32(v[6])<<16 | uint32(v[7])<<24
		return fmt.Sprintf("an Arrow stream whose first metadata has %d bytes", n)
	}
	for _, m := range magics {
		if bytes.HasPrefix(v, []byte(m.bytes)) {
			return m.name
		}
	}
	switch text := bytes.TrimLeft(v, " \t\r\n"); {
	case bytes.HasPrefix(text, []byte("{")), bytes.HasPrefix(text, []byte("[")):
		return "JSON: " + readable(text, 64)
	case !strings.HasPrefix(readable(v, 64), "0x"):
		return "text: " + readable(v, 64)
	}
	return ""
}
