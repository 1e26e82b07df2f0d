package replay

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"

	"entropipe/schemas/codec"
	"entropipe/schemas/codec/mcap"
)

// mcapLane reads messages.
type mcapLane struct {
	of       *mcapSource
	path     string
	sequence string
	message  mcap.Message // its data are those of the reader until the next take, or raw
	raw      []byte
	stream   *stream
	number   int64
	cloud    codec.Cloud
	postponed
}

func (s *mcapSource) lane() lane { return &mcapLane{of: s, postponed: postponed{ahead: true}} }

// take takes the next message of a cloud, and the transforms before it.
func (l *mcapLane) take() error {
	s, m := l.of, &l.message
	l.begin()
	for {
		if s.file == nil {
			if err := s.open(&l.postponed); err != nil {
				return err
			}
		}
		err := s.reader.Next(m)
		var fault *mcap.Error
		switch {
		case err == io.EOF:
			s.end()
			continue
		case errors.As(err, &fault):
			return &BadInputError{File: s.path, Detail: fault.Error()}
		case err != nil:
			return fmt.Errorf("mcap: %s: %w", s.path, err)
		}
		l.path, l.sequence, l.stream = s.path, s.files[s.next-1].sequence, s.stream(m.Channel, &l.postponed)
		switch {
		case l.stream == nil:
		case l.stream.decode == nil:
			l.transforms()
		default:
			l.number = *l.stream.number
			*l.stream.number++
			return l.keep()
		}
	}
}

// pass passes over the next message of a cloud.
func (l *mcapLane) pass() error {
	l.ahead = false // nobody else reads
	err := l.take()
	if err == io.EOF {
		return err
	}
	return errors.Join(err, l.skip(err))
}

// transforms takes the transforms of the message.
func (l *mcapLane) transforms() {
	poses, path, topic, data := &l.of.poses, l.path, infoOf(l.message.Channel), l.message.Data
	if l.ahead {
		data = bytes.Clone(data)
	}
	l.do(func() { poses.take(path, topic, data, nil) })
}

// keep keeps the message while other lanes read on.
func (l *mcapLane) keep() error {
	m := &l.message
	if size := int64(len(m.Data)); size > l.of.MaxFrameBytes {
		return l.bad("it has %d bytes, more than the limit of %d", size, l.of.MaxFrameBytes)
	}
	if l.ahead {
		l.raw = append(l.raw[:0], m.Data...)
		m.Data = l.raw
	}
	return nil
}

// bad returns a fault of the message.
func (l *mcapLane) bad(format string, args ...any) error {
	m := &l.message
	return &BadInputError{File: l.path, Detail: fmt.Sprintf("record %d at byte %d, message %d of %s: ", m.Record,
		m.Offset, l.number, m.Channel.Topic) + fmt.Sprintf(format, args...)}
}

func (l *mcapLane) decode(it *Item) error {
	s, m, c := l.of, &l.message, &l.cloud
	// Points of few bytes become columns of four or eight bytes a value.
	if err := l.stream.decode(c, m.Data, 4*s.MaxFrameBytes); err != nil {
		return l.bad("%v", err)
	}
	ns := c.TimeNs
	if s.Time != HeaderTime || !c.HasTime {
		stamp := m.LogTime
		if s.Time == PublishTime {
			stamp = m.PublishTime
		}
		if stamp > math.MaxInt64 {
			return l.bad("the time of %d ns is after the year 2262", stamp)
		}
		ns = int64(stamp)
		if c.HasTime { // offsets begin at the frame's time
			for i := range c.TOffsetNs {
				c.TOffsetNs[i] += c.TimeNs - ns
			}
		}
	}
	*it = Item{Dataset: "mcap", Sequence: l.sequence, Sensor: m.Channel.Topic, Number: l.number, TimeNs: ns, Clock: UTC,
		Cloud: c.Points, Ignored: c.Ignored}
	return nil
}

// finish adds the pose of the sensor.
func (l *mcapLane) finish(it *Item, err error) error {
	l.catchUp()
	if err != nil {
		return err
	}
	c := &l.cloud
	stamp := c.TimeNs
	if !c.HasTime {
		stamp = int64(min(l.message.LogTime, math.MaxInt64))
	}
	frame := l.of.poses.of(l.path, c.Sensor, stamp)
	if frame == nil || c.Pose == nil {
		it.Pose = cmp.Or(frame, c.Pose)
		return nil
	}
	both := compose(frame, c.Pose)
	it.Pose = &both
	return nil
}

// skip takes the transforms, and reads the cloud until one has said which frame is the root.
func (l *mcapLane) skip(err error) error {
	l.catchUp()
	if p := &l.of.poses; err != nil || !p.any || p.root != "" {
		return nil
	}
	var it Item
	if err := l.decode(&it); err == nil {
		return l.finish(&it, nil)
	}
	return nil
}

func (l *mcapLane) close() {}
