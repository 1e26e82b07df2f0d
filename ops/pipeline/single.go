package pipeline

import (
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
	switch {
	case s.f != nil && (!chunk || err != nil || c.ID != s.f.id):
		return false, nil
	case s.f == nil && err != nil:
		return false, err
	case s.f == nil && (!chunk || c.FrameBytes > most):
		return false, &schemas.FormatError{Stage: schemas.StageAssemble, Reason: schemas.ReasonBadChunk, At: -1,
			Detail: "the record is no chunk, or one of a message that is too large"}
	case s.f == nil:
		s.f = &assembly{id: c.ID, of: c, size: -1, message: *m.Clone()}
		s.f.message.Headers = schemas.WithoutChunk(s.f.message.Headers)
		s.f.message.Value, s.f.message.Summed = nil, false
	}
	if err := s.f.take(&c, m, nil, func(int64) error { return nil }); err != nil {
		return false, err
	}
	if s.f.refused == nil && len(s.f.parts) == c.Count {
		s.f.join(nil)
		s.f.drop(nil)
		return s.f.refused == nil, s.f.refused
	}
	return false, s.f.refused
}

// Message returns the message, once Add has said that it is whole. The caller owns it.
func (s *Single) Message() *schemas.Message { return &s.f.message }

// Missing returns the number of chunks that did not come, and of all chunks.
func (s *Single) Missing() (missing, all int) {
	if s.f == nil {
		return 0, 0
	}
	return s.f.of.Count - len(s.f.parts), s.f.of.Count
}
