package replay

import (
	"errors"
	"io"
	"slices"

	"entropipe/schemas/codec"
	"entropipe/schemas/codec/waymo"
)

// waymoLane reads frames of version 1, all lasers of a frame as one item.
type waymoLane struct {
	of        *waymoSource
	segment   int // index of the frame's segment
	number    int64
	offset    int64
	raw       []byte // record of the frame
	decoder   waymo.Decoder
	frame     waymo.Frame
	projector waymo.Projector
	cloud     codec.Cloud
}

// lane returns nil for version 2: what takes its time there is the unpacking of pages, which
// hold several frames. It also returns nil where a frame is several items.
func (s *waymoSource) lane() lane {
	if s.perLaser || slices.ContainsFunc(s.segments, func(in waymoInput) bool { return in.second }) {
		return nil
	}
	return &waymoLane{of: s, decoder: waymo.Decoder{Lasers: s.lasers, Returns: s.returns}}
}

// take takes the next record.
func (l *waymoLane) take() error {
	return l.record(func(r *waymoRecords) error {
		record, err := r.read()
		if err == nil {
			l.raw = append(l.raw[:0], record...)
		}
		return err
	})
}

// pass passes over the next record. Of one file the records alone number the frames.
func (l *waymoLane) pass() error {
	if len(l.of.segments) > 1 {
		err := l.take()
		if err != io.EOF {
			return errors.Join(err, l.skip(err))
		}
		return err
	}
	return l.record(func(r *waymoRecords) error { return r.fault(r.records.Skip()) })
}

// record has read take the next record of any file.
func (l *waymoLane) record(read func(r *waymoRecords) error) error {
	s := l.of
	for {
		if s.reader == nil {
			if err := s.openNext(); err != errNoItem {
				return err
			}
		}
		records := s.reader.(*waymoRecords)
		err := read(records)
		if err == io.EOF {
			err = records.close()
			s.reader = nil
			if err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		l.segment, l.number, l.offset = s.at-1, records.records.Number(), records.records.Offset()
		return nil
	}
}

func (l *waymoLane) decode(it *Item) error {
	s := l.of
	if fault := l.decoder.Decode(&l.frame, l.raw, s.max); fault != nil {
		return badRecord(s.segments[l.segment].path, l.number, l.offset, fault)
	}
	if fault := l.projector.Cloud(&l.cloud, &l.frame, s.lasers, s.max); fault != nil {
		return fault
	}
	*it = waymoItem(&l.cloud, s.sensor())
	return nil
}

// finish numbers the frame, also one that gives no points.
func (l *waymoLane) finish(it *Item, err error) error {
	var fault *codec.Error
	if err != nil && !errors.As(err, &fault) {
		return err
	}
	l.of.arrive(&l.frame, l.segment, l.number)
	if fault != nil {
		return l.of.unprojected(fault)
	}
	l.of.name(it, l.frame.Context)
	return nil
}

// skip numbers the frame, too: a further file of its segment continues the numbers.
func (l *waymoLane) skip(err error) error {
	if err != nil {
		return nil
	}
	if fault := l.decoder.Decode(&l.frame, l.raw, l.of.max); fault == nil {
		l.of.arrive(&l.frame, l.segment, l.number)
	}
	return nil
}

func (l *waymoLane) close() {}
