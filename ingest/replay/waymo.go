package replay

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"entropipe/schemas/codec"
	"entropipe/schemas/codec/waymo"
)

// Waymo configures a Source of the LiDAR frames of the Waymo Open Dataset, perception,
// version 1 (.tfrecord) or 2 (Parquet). Paths is required; the zero value of the other
// fields takes all lasers and returns, and stops at the first fault.
//
// An item is a frame of all lasers in the vehicle frame, with the sensor "all"; its pose
// takes it to the world. The sequence is the segment's context, the number the position of
// the frame in its segment, and the time that of the frame, UTC.
type Waymo struct {
	// Paths are .tfrecord files, folders of them, folders with the components of version 2
	// (lidar, lidar_calibration, …), folders of such splits, or single lidar/….parquet.
	Paths []string
	// Lasers are top, front, side_left, side_right, rear; nil: all.
	Lasers []string
	// Returns are 1 and 2; nil: both.
	Returns []int
	// PerLaser makes an item of each laser, whose name is the sensor.
	PerLaser bool
	// SkipBad counts frames and segments that cannot be read, instead of stopping.
	SkipBad bool
	// MaxFrameBytes bounds the size of a record, of an unpacked image and of a cloud; 0: 64
	// MiB.
	MaxFrameBytes int64
	// Log names what is skipped and what segments lack; nil: no log.
	Log *slog.Logger
}

// waymoSource reads segments one after the other.
type waymoSource struct {
	skips
	lasers   waymo.LaserSet
	returns  waymo.ReturnSet
	perLaser bool
	max      int64
	segments []waymoInput

	at        int         // index of the next segment
	reader    waymoReader // nil between segments
	frame     waymo.Frame
	number    int64         // the frame's, in its segment
	left      []waymo.Laser // lasers of the frame that are not sent yet
	projector waymo.Projector
	cloud     codec.Cloud
	noted     map[string]bool
	segment   int              // index of the segment of the newest frame; -1: none
	base      int64            // number of that file's first frame
	counts    map[string]int64 // number behind the last frame of each segment
}

// waymoReader reads the frames of a segment.
type waymoReader interface {
	// next sets f to the next frame and returns its number; io.EOF behind the last one.
	// After a *BadInputError the next call returns what follows.
	next(f *waymo.Frame) (number int64, err error)
	close() error
}

// Open finds the segments. It reads folders, and the first bytes of single files.
func (w Waymo) Open() (Source, error) {
	s := &waymoSource{skips: skips{allowed: w.SkipBad, log: w.Log}, perLaser: w.PerLaser, max: w.MaxFrameBytes,
		noted: map[string]bool{}, counts: map[string]int64{}, segment: -1}
	if s.max <= 0 {
		s.max = 64 << 20
	}
	var err error
	if s.lasers, err = waymoLasers(w.Lasers); err != nil {
		return nil, err
	}
	if s.returns, err = waymoReturns(w.Returns); err != nil {
		return nil, err
	}
	if len(w.Paths) == 0 {
		return nil, errors.New("waymo: no file or folder named")
	}
	for _, path := range w.Paths {
		found, err := findWaymo(path)
		if err != nil {
			return nil, fmt.Errorf("waymo: %w", err)
		}
		s.segments = append(s.segments, found...)
	}
	return s, nil
}

func waymoLasers(names []string) (set waymo.LaserSet, err error) {
	if len(names) == 0 {
		return waymo.AllLasers, nil
	}
	for _, name := range names {
		laser := waymo.ParseLaser(strings.TrimSpace(name))
		if laser == waymo.Unknown {
			return 0, fmt.Errorf("waymo: laser %q: want top, front, side_left, side_right or rear", name)
		}
		set |= 1 << laser
	}
	return set, nil
}

func waymoReturns(numbers []int) (set waymo.ReturnSet, err error) {
	if len(numbers) == 0 {
		return waymo.BothReturns, nil
	}
	for _, n := range numbers {
		if n != 1 && n != 2 {
			return 0, fmt.Errorf("waymo: return %d: want 1 or 2", n)
		}
		set |= 1 << (n - 1)
	}
	return set, nil
}

// Next implements Source.
func (s *waymoSource) Next(it *Item) error {
	for {
		err := s.step(it)
		if err == nil {
			it.Position = s.place()
			return nil
		}
		if err == errNoItem {
			continue
		}
		if err != io.EOF {
			s.place()
		}
		if err = s.forgive(err); err != nil {
			return err
		}
	}
}

// errNoItem: a step gave no item, and the next one may.
var errNoItem = errors.New("no item yet")

// step opens a segment, reads a frame or makes an item of the frame.
func (s *waymoSource) step(it *Item) error {
	if len(s.left) > 0 {
		laser := s.left[0]
		s.left = s.left[1:]
		return s.item(it, 1<<laser, laser.String())
	}
	if s.reader == nil {
		return s.openNext()
	}
	number, err := s.reader.next(&s.frame)
	if err == io.EOF {
		err = s.reader.close()
		s.reader = nil
		if err == nil {
			err = errNoItem
		}
		return err
	}
	if err != nil {
		return err
	}
	s.arrive(&s.frame, s.at-1, number)
	if !s.perLaser {
		return s.item(it, s.lasers, s.sensor())
	}
	for _, laser := range s.lasers.Each() {
		if sweep := &s.frame.Sweeps[laser]; sweep.Returns[0] != nil || sweep.Returns[1] != nil {
			s.left = append(s.left, laser)
		}
	}
	return errNoItem
}

// sensor is "all", or the name of the only laser.
func (s *waymoSource) sensor() string {
	if all := s.lasers.Each(); len(all) == 1 {
		return all[0].String()
	}
	return "all"
}

func (s *waymoSource) openNext() error {
	if s.at == len(s.segments) {
		return io.EOF
	}
	in := s.segments[s.at]
	s.at++
	reader, err := in.open(s)
	if err != nil {
		return err
	}
	s.reader = reader
	return errNoItem
}

// item makes an item of the frame's points of lasers.
func (s *waymoSource) item(it *Item, lasers waymo.LaserSet, sensor string) error {
	if err := s.projector.Cloud(&s.cloud, &s.frame, lasers, s.max); err != nil {
		return s.unprojected(err)
	}
	*it = waymoItem(&s.cloud, sensor)
	s.name(it, s.frame.Context)
	return nil
}

// waymoItem is an item of a cloud that has no name yet.
func waymoItem(c *codec.Cloud, sensor string) Item {
	return Item{Dataset: "waymo", Sensor: sensor, TimeNs: c.TimeNs, Clock: UTC, Cloud: c.Points, Pose: c.Pose,
		Ignored: c.Ignored}
}

// name gives an item of the newest frame its sequence and number.
func (s *waymoSource) name(it *Item, context string) {
	it.Sequence, it.Number = context, s.number
	if context == "" {
		it.Sequence = s.segments[s.segment].name()
	}
}

// unprojected is the fault of the newest frame, which gives no points.
func (s *waymoSource) unprojected(err *codec.Error) error {
	return &BadInputError{File: s.segments[s.segment].path, Detail: fmt.Sprintf("frame %d: %s", s.number, err.Detail)}
}

// arrive takes note of a frame, the newest one, which has a number in its file. A further file
// of a segment continues its numbers.
func (s *waymoSource) arrive(f *waymo.Frame, segment int, number int64) {
	if s.segment != segment {
		s.segment, s.base = segment, s.counts[f.Context]
	}
	s.number = s.base + number
	s.counts[f.Context] = s.number + 1
	s.noteMissing(f)
}

// note logs a fact once, however many frames have it.
func (s *waymoSource) note(text string) {
	if s.log == nil || s.noted[text] {
		return
	}
	s.noted[text] = true
	s.log.Warn(text, "file", s.segments[s.segment].path, "frame", s.number)
}

// noteMissing names what the frame lacks of what was asked for.
func (s *waymoSource) noteMissing(f *waymo.Frame) {
	if f.World == nil {
		s.note("frames without a pose of the vehicle")
	}
	var seconds waymo.LaserSet
	for _, laser := range s.lasers.Each() {
		sweep := &f.Sweeps[laser]
		switch {
		case !f.Listed.Has(laser):
			s.note("frames without laser " + laser.String())
		case sweep.Returns[0] == nil && sweep.Returns[1] == nil:
			s.note("frames without a range image of laser " + laser.String())
		case laser == waymo.Top && (sweep.Pose == nil || f.World == nil):
			s.note("frames whose points of laser top are not motion compensated: there is no pose image")
		}
		if sweep.Returns[1] != nil {
			seconds |= 1 << laser
		}
	}
	if seconds == 0 && s.returns&2 != 0 {
		s.note("frames without second returns")
	}
}

// Rewind implements Source.
func (s *waymoSource) Rewind() error {
	err := s.Close()
	s.at, s.left, s.segment = 0, s.left[:0], -1
	s.again()
	clear(s.counts)
	return err
}

// Close implements Source.
func (s *waymoSource) Close() error {
	if s.reader == nil {
		return nil
	}
	err := s.reader.close()
	s.reader = nil
	return err
}
