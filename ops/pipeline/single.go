package pipeline

import (
	"hash/crc32"

	"entropipe/schemas"
)

// Single puts the chunks of one message together, by the rules of a session, for who reads a
// message again. Its zero value waits for the message's first chunk. One goroutine may use it.
type Single struct {
	f *assembly
}

// Add takes the next record of the partition; records that are no chunk of the message pass.
// whole tells whether the message is there. An error says why it never will be: the first
// record is no chunk, the message has more than most bytes, or its chunks contradict each
// other.
func (s *Single) Add(m *schemas.Message, most int64) (whole bool, err error) {
	c, chunk, err := schemas.ChunkOf(m)
	if s.f == nil {
		if err != nil {
			return false, err
		}
		if s.f, err = begin(m, &c, chunk, most); err != nil {
			return false, err
		}
	} else if !chunk || err != nil || c.ID != s.f.id {
		return false, nil
	}
	s.f.add(&c, m)
	if s.f.refused == nil && s.f.missing == 0 {
		if sum := crc32.Checksum(s.f.message.Value, castagnoli); sum != s.f.of.CRC32C {
			s.f.refuse(schemas.ReasonBadChecksum, "the CRC-32C of the %d chunks is %08x, and should be %08x", s.f.of.Count,
				sum, s.f.of.CRC32C)
		}
	}
	return s.f.missing == 0, s.f.refused
}

// begin returns the assembly that begins with a record.
func begin(m *schemas.Message, c *schemas.Chunk, chunk bool, most int64) (*assembly, error) {
	refuse := func(text string) error {
		return &schemas.FormatError{Stage: schemas.StageAssemble, Reason: schemas.ReasonBadChunk, Detail: text, At: -1}
	}
	switch {
	case !chunk:
		return nil, refuse("the record is no chunk")
	case c.FrameBytes > most:
		return nil, refuse("the message is too large")
	}
	f := &assembly{id: c.ID, of: *c, missing: c.Count, have: make([]bool, c.Count)}
	f.message = *m.Clone()
	f.message.Headers = schemas.WithoutChunk(f.message.Headers)
	f.message.Value, f.message.Summed = make([]byte, c.FrameBytes), false
	return f, nil
}

// Message returns the message, once Add has said that it is whole. The caller owns it.
func (s *Single) Message() *schemas.Message { return &s.f.message }

// Missing returns the number of chunks that did not come, and of all chunks.
func (s *Single) Missing() (missing, all int) {
	if s.f == nil {
		return 0, 0
	}
	return s.f.missing, s.f.of.Count
}
