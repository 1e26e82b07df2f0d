package replay

import (
	"entropipe/schemas"
)

// Messages yields the messages that a Producer sends of a Source, without a broker. It is for one
// goroutine, and holds one item.
type Messages struct {
	p   *Producer
	t   *timeline
	enc *encoder
	it  Item
	rec schemas.Record
}

// Sent is a message as a Producer sends it.
type Sent struct {
	Record   *schemas.Record
	Position int64 // position of the item within its input
	TimeNs   int64 // time of the item, nanoseconds since 1970
	Frames   int64
	Points   int64 // points, or token ids of sequences
}

// Messages returns the messages of src, a Source of one input, which stays open. Names, Key, Prune,
// Compression and Play.Epoch of p count, its other fields do not. p must not change meanwhile.
func (p *Producer) Messages(src Source) (*Messages, error) {
	t, err := p.timeline(src, 0)
	if err != nil {
		return nil, err
	}
	t.loops, t.single = 1, true
	return &Messages{p: p, t: t, enc: p.encoder()}, nil
}

// Next returns the next message, whose value is in buffer, or in new memory if that is too small.
// The message is valid until the next call. io.EOF: there is none. After a *BadInputError the next
// call continues behind the fault.
func (m *Messages) Next(buffer []byte) (Sent, error) {
	if err := m.t.next(&m.it); err != nil {
		return Sent{}, err
	}
	it := &m.it
	m.rec = *m.p.record(it, int(it.Position&0x7fffffff))
	var err error
	if m.rec.Value, m.rec.Headers, err = m.enc.append(buffer[:0], it); err != nil {
		return Sent{}, badItem(it, err)
	}
	return Sent{Record: &m.rec, Position: it.Position, TimeNs: it.TimeNs, Frames: it.Frames(), Points: it.Points()}, nil
}
