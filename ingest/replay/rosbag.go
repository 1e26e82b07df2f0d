package replay

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"entropipe/schemas/codec"
)

// Rosbag configures a Source of the point clouds in ROS 2 bags. Paths is required; the zero
// value of the other fields takes every topic of point clouds and stops at the first fault.
//
// Messages come in the order of their log times, part after part. The parts of a bag are one
// sequence. A topic is a sensor, and its messages are numbered from 0, also those that cannot
// be used. A bag that was not closed is read whole, with the log of its database. No file is
// changed or made beside a bag.
type Rosbag struct {
	// Paths are folders of bags and .db3 files, also compressed ones. A folder whose files are
	// MCAP is a Source of MCAP.
	Paths []string
	// Topics are the topics to read; nil: all that hold point clouds.
	Topics []string
	// Time is the time of a cloud: HeaderTime or LogTime; "": HeaderTime.
	Time string
	// SkipBad counts messages and parts that cannot be used, instead of stopping.
	SkipBad bool
	// MaxFrameBytes bounds the size of a message; 0: 64 MiB.
	MaxFrameBytes int64
	// Log names skipped messages, and says why poses are unknown; nil: no log.
	Log *slog.Logger

	sequence string // name for all parts; empty: each has its own
}

// rosbag reads the parts one after the other.
type rosbag struct {
	skips
	Rosbag
	parts  []bagPart
	topics map[topicInfo]bool

	next     int // the next part
	part     bagPart
	database *bagDatabase
	numbers  map[[2]string]*int64 // number of the next message, by sequence and topic
	unpacker messageUnpacker      // for transforms
	poses    posing
	own      bagLane
}

// bagLane reads messages.
type bagLane struct {
	of       *rosbag
	path     string
	sequence string
	message  bagMessage // its data are those of the database until the next take, or raw
	raw      []byte
	number   int64
	cloud    codec.Cloud
	unpacker messageUnpacker
	postponed
}

// Open finds the parts and reads their topics. A bag without point clouds, and topics that
// are not there, are an error that lists the topics.
func (r Rosbag) Open() (Source, error) {
	s := &rosbag{skips: skips{allowed: r.SkipBad, log: r.Log}, Rosbag: r, topics: map[topicInfo]bool{}}
	s.Time = cmp.Or(r.Time, HeaderTime)
	s.MaxFrameBytes = cmp.Or(r.MaxFrameBytes, 64<<20)
	if s.Time != HeaderTime && s.Time != LogTime {
		return nil, fmt.Errorf("rosbag: time %q: a bag has the times header and log", r.Time)
	}
	var err error
	if s.parts, err = findBags(r.Paths); err != nil {
		return nil, err
	}
	if s.parts[0].mcap {
		return MCAP(r).Open()
	}
	for i := range s.parts {
		s.parts[i].sequence = cmp.Or(r.sequence, s.parts[i].sequence)
	}
	for _, p := range s.parts {
		if err := s.inspect(p); err != nil {
			return nil, err
		}
	}
	if err := checkTopics(s.topics, r.Topics); err != nil {
		return nil, fmt.Errorf("rosbag: %s: %w", s.parts[0].path, err)
	}
	s.unpacker.limit = s.MaxFrameBytes
	s.own = bagLane{of: s, unpacker: s.unpacker}
	return s, s.Rewind()
}

// inspect reads the topics of a part. A part that cannot be read is met again by Next, and
// is a fault there; the first one must be readable unless others are.
func (s *rosbag) inspect(p bagPart) error {
	if p.packed && len(s.topics) > 0 {
		return nil // unpacking takes long, and the parts of a bag have the same topics mostly
	}
	d, err := openBagDatabase(p.path, s.MaxFrameBytes)
	defer d.close()
	if err != nil {
		if s.allowed && len(s.parts) > 1 {
			return nil
		}
		return fmt.Errorf("rosbag: %w", partFault(p, err))
	}
	for _, t := range d.topics {
		s.topics[t] = true
	}
	return nil
}

// partFault is the fault of a part that cannot be opened, or of all that follows in it.
func partFault(p bagPart, err error) error {
	var bad *BadInputError
	if errors.As(err, &bad) {
		return bad
	}
	return &BadInputError{File: p.path, Detail: err.Error(), Err: err}
}

func (s *rosbag) wanted(t topicInfo) bool {
	return (len(s.Topics) == 0 || slices.Contains(s.Topics, t.name)) && decoderOf(t.schema, t.encoding) != nil
}

// Next implements Source.
func (s *rosbag) Next(it *Item) error { return s.inLane(it, &s.own) }

func (s *rosbag) lane() lane {
	return &bagLane{of: s, unpacker: messageUnpacker{limit: s.MaxFrameBytes}, postponed: postponed{ahead: true}}
}

// take takes the next message of a cloud, and the transforms before it.
func (l *bagLane) take() error { return l.next(nil) }

// pass passes over the next cloud, whose data are read only while no cloud has said which frame is
// the root.
func (l *bagLane) pass() error {
	p := &l.of.poses
	l.ahead = false // nobody else reads
	err := l.next(func(t topicInfo) bool {
		return (!p.any || p.root != "") && !isTransforms(t.schema, t.encoding)
	})
	if err == io.EOF {
		return err
	}
	return errors.Join(err, l.skip(err))
}

// next takes the next message, without the data of those that are lean.
func (l *bagLane) next(lean func(topicInfo) bool) error {
	s, m := l.of, &l.message
	l.begin()
	for {
		if err := s.message(m, &l.postponed, lean); err != nil {
			return err
		}
		l.path, l.sequence = s.part.path, s.part.sequence
		if !isTransforms(m.topic.schema, m.topic.encoding) {
			break
		}
		path, topic, data, err := l.path, m.topic, m.data, m.faulted
		if l.ahead {
			data = bytes.Clone(data)
		}
		l.do(func() { s.transform(path, topic, data, err) })
	}
	key := [2]string{l.sequence, m.topic.name}
	if s.numbers[key] == nil {
		s.numbers[key] = new(int64)
	}
	l.number = *s.numbers[key]
	*s.numbers[key]++
	if l.ahead {
		l.raw = append(l.raw[:0], m.data...)
		m.data = l.raw
	}
	return nil
}

// message sets m to the next message of any part. io.EOF: there is none.
func (s *rosbag) message(m *bagMessage, later *postponed, lean func(topicInfo) bool) error {
	for {
		if s.database == nil {
			if s.next == len(s.parts) {
				return io.EOF
			}
			s.part = s.parts[s.next]
			s.next++
			if err := s.open(later); err != nil {
				return partFault(s.part, err)
			}
		}
		s.database.lean = lean
		more, err := s.database.next(m)
		if err != nil {
			return partFault(s.part, err)
		}
		if more {
			return nil
		}
		if err := s.close(); err != nil {
			return err
		}
	}
}

// open opens the part.
func (s *rosbag) open(later *postponed) error {
	d, err := openBagDatabase(s.part.path, s.MaxFrameBytes)
	if err == nil {
		err = d.start(func(t topicInfo) bool { return s.wanted(t) || isTransforms(t.schema, t.encoding) })
	}
	if err != nil {
		return errors.Join(err, d.close())
	}
	if s.next == 1 || s.parts[s.next-2].sequence != s.part.sequence {
		later.do(s.poses.reset)
	}
	for _, t := range d.topics {
		later.do(func() { s.poses.expect(t) })
	}
	s.database = d
	return nil
}

// transform takes the transforms of a message, or notes that it could not be read.
func (s *rosbag) transform(path string, topic topicInfo, data []byte, err error) {
	if err == nil {
		data, err = s.unpacker.unpack(data)
	}
	s.poses.take(path, topic, data, err)
}

func (l *bagLane) decode(it *Item) error {
	s, m, c := l.of, &l.message, &l.cloud
	data, err := m.data, m.faulted
	if err == nil {
		data, err = l.unpacker.unpack(data)
	}
	if err == nil {
		// Points of few bytes become columns of four or eight bytes a value.
		err = decoderOf(m.topic.schema, m.topic.encoding)(c, data, 4*s.MaxFrameBytes)
	}
	if err != nil {
		return &BadInputError{File: l.path, Detail: fmt.Sprintf("row %d, message %d of %s: %v", m.row, l.number,
			m.topic.name, err)}
	}
	ns := c.TimeNs
	if s.Time != HeaderTime || !c.HasTime {
		ns = m.logNs
		if c.HasTime { // offsets begin at the frame's time
			for i := range c.TOffsetNs {
				c.TOffsetNs[i] += c.TimeNs - ns
			}
		}
	}
	*it = Item{Dataset: "rosbag", Sequence: l.sequence, Sensor: m.topic.name, Number: l.number, TimeNs: ns, Clock: UTC,
		Cloud: c.Points, Ignored: c.Ignored}
	return nil
}

// finish adds the pose of the sensor.
func (l *bagLane) finish(it *Item, err error) error {
	l.catchUp()
	if err != nil {
		return err
	}
	stamp := l.cloud.TimeNs
	if !l.cloud.HasTime {
		stamp = l.message.logNs
	}
	it.Pose = l.of.poses.of(l.path, l.cloud.Sensor, stamp)
	return nil
}

// skip takes the transforms, and reads the cloud until one has said which frame is the root.
func (l *bagLane) skip(err error) error {
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

func (l *bagLane) close() { l.unpacker.close() }

// Rewind implements Source.
func (s *rosbag) Rewind() error {
	s.poses.tell()
	err := s.close()
	s.quiet, s.position = s.quiet || s.next > 0, 0
	s.next, s.numbers = 0, map[[2]string]*int64{}
	s.poses.quiet, s.poses.log = s.quiet, s.log
	s.poses.reset()
	return err
}

func (s *rosbag) close() error {
	if s.database == nil {
		return nil
	}
	err := s.database.close()
	s.database = nil
	return err
}

// Close implements Source.
func (s *rosbag) Close() error {
	s.poses.tell()
	s.unpacker.close()
	s.own.close()
	return s.close()
}
