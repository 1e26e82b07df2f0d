package pipeline

import (
	"bytes"

	"entropipe/schemas"
)

// copy copies the message of t, if batches have the messages themselves. The message is still in
// memory; the copy counts in t.bytes. A value that is not whole, because it is too large or its
// chunks are not what was sent, is left out: a part of a value would pass for a value.
func (t *task) copy(p *Pipeline) {
	if !p.cfg.Originals {
		return
	}
	m := &t.msg
	o := &schemas.Original{Topic: m.Topic, Partition: m.Partition, Offset: m.Offset, TimeNs: m.SentAt(),
		Key: bytes.Clone(m.Key), Headers: cloneHeaders(m.Headers), Size: int64(len(m.Value))}
	switch {
	case t.parts != nil && t.parts.refused != nil:
		o.Size = t.parts.of.FrameBytes
	case m.Oversize > 0:
		o.Size = m.Oversize
	case m.Value != nil:
		if o.Packed = p.pack(m.Value); o.Packed == nil {
			o.Value = p.buffers.get(len(m.Value))
			copy(o.Value, m.Value)
		}
	}
	t.origin = o
	t.bytes += o.Bytes()
}

// pack returns what Config.Pack makes of a value, in memory of its size; nil: nothing.
func (p *Pipeline) pack(value []byte) []byte {
	if p.cfg.Pack == nil {
		return nil
	}
	scratch := p.buffers.get(len(value) + len(value)/64 + 64) // incompressible values grow
	packed := p.cfg.Pack(scratch[:0], value)
	if packed == nil {
		p.buffers.put(scratch)
		return nil
	}
	own := p.buffers.get(len(packed))
	copy(own, packed)
	if cap(packed) == cap(scratch) { // it has not outgrown the scratch
		p.buffers.put(scratch)
	}
	return own
}

// appendCopy appends the copy of the message of t, if there is one.
func (t *task) appendCopy(to []schemas.Original) []schemas.Original {
	if t.origin == nil {
		return to
	}
	return append(to, *t.origin)
}

// recycle takes back the memory of copies that are committed: fresh memory of a frame costs more
// than copying it.
func (p *Pipeline) recycle(all []schemas.Original) {
	for i := range all {
		p.buffers.put(all[i].Value)
		p.buffers.put(all[i].Packed)
	}
	clear(all)
}
