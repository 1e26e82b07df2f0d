package produce

import (
	"strings"

	"entropipe/cmd/config/value"
	"entropipe/ingest"
)

// chunkLimit is --chunk: the bytes of a value above which it is sent in chunks.
type chunkLimit int64

// UnmarshalText reads auto, off or a size.
func (l *chunkLimit) UnmarshalText(text []byte) error {
	switch strings.TrimSpace(string(text)) {
	case "auto":
		*l = ingest.ChunkAuto
		return nil
	case "off":
		*l = ingest.ChunkOff
		return nil
	}
	var size value.Size
	if err := size.UnmarshalText(text); err != nil || size < leastChunk {
		return value.NewError("\""+string(text)+"\"", "auto, off, or a size of at least 1KiB such as 900KB")
	}
	*l = chunkLimit(size)
	return nil
}

// leastChunk keeps a slip of the unit from making a million records of a frame.
const leastChunk = 1 << 10

// Pattern returns a regular expression of the texts that UnmarshalText reads.
func (chunkLimit) Pattern() string {
	return `^ *(auto|off|[0-9]+([.][0-9]+)? *([kKmMgGtT]i?)?[bB]?) *$`
}

// String returns l in the form that UnmarshalText reads.
func (l chunkLimit) String() string {
	switch l {
	case ingest.ChunkAuto:
		return "auto"
	case ingest.ChunkOff:
		return "off"
	}
	return value.Size(l).String()
}
