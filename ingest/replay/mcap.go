package replay

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"

	"entropipe/ingest/filesys"
	"entropipe/schemas/codec/mcap"
)

// Times that a cloud of a recording can have.
const (
	HeaderTime  = "header"  // stamp of the message; log time where it is 0
	LogTime     = "log"     // when the recorder received the message
	PublishTime = "publish" // when the message was sent
)

// MCAP configures a Source of the point clouds in MCAP files. Paths is required; the zero
// value of the other fields takes every topic of point clouds and stops at the first fault.
//
// Messages come in the order of the file. A file is a sequence; the parts of a ROS 2 bag are
// one. A topic is a sensor, and its messages are numbered from 0, also those that cannot be
// used. A file that was not closed is read to its last whole message, and the log says so.
type MCAP struct {
	// Paths are files, perhaps in gzip or Zstandard, folders of files, and folders of ROS 2 bags (with metadata.yaml).
	Paths []string
	// Topics are the topics to read; nil: all that hold point clouds.
	Topics []string
	// Time is the time of a cloud: HeaderTime, LogTime or PublishTime; "": HeaderTime.
	Time string
	// SkipBad counts messages and chunks that cannot be used, instead of stopping.
	SkipBad bool
	// MaxFrameBytes bounds the size of a message; 0: 64 MiB.
	MaxFrameBytes int64
	// Log names skipped messages, and files that were not closed; nil: no log.
	Log *slog.Logger

	sequence string // name for all files; empty: each has its own
}

// recording is a file of messages.
type recording struct{ path, sequence string }

// mcapSource reads the files one after the other.
type mcapSource struct {
	skips
	MCAP
	files   []recording
	total   int64 // messages of the topics; 0: unknown
	checked bool  // the topics were checked when the files were opened
	topics  map[topicInfo]bool

	next     int // the next file
	path     string
	file     filesys.File
	reader   *mcap.Reader
	unpacked func() // ends the unpacking of file
	streams  map[*mcap.Channel]*stream
	numbers  map[[2]string]*int64 // number of the next message, by sequence and topic
	poses    posing
	own      mcapLane
}

// stream is a channel whose messages are wanted: clouds, or transforms where decode is nil.
type stream struct {
	decode cloudDecoder
	number *int64
}

// Open finds the files and reads their summaries. Files without point clouds, and topics that
// are not there, are an error that lists the topics. Where a file has no summary, that error
// comes at the end of the last file.
func (m MCAP) Open() (Source, error) {
	s := &mcapSource{skips: skips{allowed: m.SkipBad, log: m.Log}, MCAP: m, topics: map[topicInfo]bool{}}
	s.Time = cmp.Or(m.Time, HeaderTime)
	s.MaxFrameBytes = cmp.Or(m.MaxFrameBytes, 64<<20)
	if s.Time != HeaderTime && s.Time != LogTime && s.Time != PublishTime {
		return nil, fmt.Errorf("mcap: time %q; want header, log or publish", m.Time)
	}
	for _, path := range m.Paths {
		files, err := recordings(path)
		if err != nil {
			return nil, err
		}
		s.files = append(s.files, files...)
	}
	for i := range s.files {
		s.files[i].sequence = cmp.Or(m.sequence, s.files[i].sequence)
	}
	if len(s.files) == 0 {
		return nil, errors.New("mcap: no file is named")
	}
	s.checked = true
	for _, f := range s.files {
		if err := s.inspect(f.path); err != nil {
			return nil, err
		}
	}
	if s.checked {
		if err := s.check(); err != nil {
			return nil, err
		}
	} else {
		s.total = 0
	}
	s.own.of = s
	return s, s.Rewind()
}

// inspect reads the topics of a file from its summary.
func (s *mcapSource) inspect(path string) error {
	f, err := openPlain(path)
	if err != nil {
		return fmt.Errorf("mcap: %w", err)
	}
	defer f.Close()
	summary, err := s.summary(f)
	if err != nil {
		return fmt.Errorf("mcap: %s: %w", path, err)
	}
	if summary == nil || len(summary.Channels) == 0 || summary.Counts == nil {
		s.checked = false
		return nil
	}
	for _, c := range summary.Channels {
		s.topics[infoOf(c)] = true
		if s.wanted(c) {
			s.total += int64(min(summary.Counts[c.ID], math.MaxInt32))
		}
	}
	return nil
}

// summary returns nil for a file without one.
func (s *mcapSource) summary(f filesys.File) (*mcap.Summary, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return mcap.ReadSummary(f, info.Size())
}

func infoOf(c *mcap.Channel) topicInfo { return topicInfo{c.Topic, c.SchemaName(), c.MessageEncoding} }

func (s *mcapSource) wanted(c *mcap.Channel) bool {
	return (len(s.Topics) == 0 || slices.Contains(s.Topics, c.Topic)) &&
		decoderOf(c.SchemaName(), c.MessageEncoding) != nil
}

// check compares the topics that were seen with those that are wanted.
func (s *mcapSource) check() error {
	err := checkTopics(s.topics, s.Topics)
	if err == nil {
		return nil
	}
	if len(s.files) == 1 {
		return fmt.Errorf("mcap: %s: %w", s.files[0].path, err)
	}
	return fmt.Errorf("mcap: %d files from %s on: %w", len(s.files), s.files[0].path, err)
}

// Next implements Source.
func (s *mcapSource) Next(it *Item) error { return s.inLane(it, &s.own) }

// open opens the next file. io.EOF: there is none.
func (s *mcapSource) open(later *postponed) error {
	if s.next == len(s.files) {
		if s.checked {
			return io.EOF
		}
		s.checked = true
		if err := s.check(); err != nil {
			return err
		}
		return io.EOF
	}
	s.path = s.files[s.next].path
	f, err := openPlain(s.path)
	if err != nil {
		return fmt.Errorf("mcap: %w", err)
	}
	content, unpacked, err := unpackStream(f)
	if err != nil {
		f.Close()
		return fmt.Errorf("mcap: %s: it cannot be unpacked: %w", s.path, err)
	}
	s.file, s.unpacked, s.reader = f, unpacked, mcap.NewReader(content)
	s.streams = map[*mcap.Channel]*stream{}
	if s.next == 0 || s.files[s.next-1].sequence != s.files[s.next].sequence {
		later.do(s.poses.reset)
	}
	s.next++
	summary, err := s.summary(f)
	if err != nil {
		return fmt.Errorf("mcap: %s: %w", s.path, err)
	}
	if summary == nil {
		return nil
	}
	for _, c := range summary.Channels {
		later.do(func() { s.poses.expect(infoOf(c)) })
	}
	if s.allowed { // chunks that are lost may have had the channels
		s.reader.Use(summary)
	}
	return nil
}

// end closes the file, and says if it was never closed before.
func (s *mcapSource) end() {
	for _, c := range s.reader.Channels() {
		s.topics[infoOf(c)] = true
	}
	if ended := s.reader.Unclosed(); ended != nil && s.log != nil && !s.quiet {
		s.log.Warn("read to the last whole message", "file", s.path, "end", ended.Error())
	}
	s.unpacked()
	s.file.Close()
	s.file, s.reader = nil, nil
}

// stream returns nil for a channel that is not wanted.
func (s *mcapSource) stream(c *mcap.Channel, later *postponed) *stream {
	st, known := s.streams[c]
	if known {
		return st
	}
	switch {
	case isTransforms(c.SchemaName(), c.MessageEncoding):
		later.do(func() { s.poses.expect(infoOf(c)) })
		st = &stream{}
	case s.wanted(c):
		key := [2]string{s.files[s.next-1].sequence, c.Topic}
		if s.numbers[key] == nil {
			s.numbers[key] = new(int64)
		}
		st = &stream{decode: decoderOf(c.SchemaName(), c.MessageEncoding), number: s.numbers[key]}
	}
	s.streams[c] = st
	return st
}

// Len returns the number of clouds; 0 if a file does not say.
func (s *mcapSource) Len() int64 { return s.total }

// Rewind implements Source.
func (s *mcapSource) Rewind() error {
	err := s.Close()
	s.quiet, s.position = s.next > 0, 0
	s.next, s.numbers = 0, map[[2]string]*int64{}
	s.poses.quiet, s.poses.log = s.quiet, s.log
	s.poses.reset()
	return err
}

// Close implements Source.
func (s *mcapSource) Close() error {
	s.poses.tell()
	if s.file == nil {
		return nil
	}
	s.unpacked()
	err := s.file.Close()
	s.file, s.reader = nil, nil
	return err
}
