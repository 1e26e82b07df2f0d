package replay

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"entropipe/ingest/filesys"
	"entropipe/schemas"
	"entropipe/schemas/codec"
)

// Argoverse2 configures a Source of the LiDAR sweeps of Argoverse 2. Paths is required; the
// zero value of the other fields stops at the first fault.
type Argoverse2 struct {
	// Paths are the folders of logs (with sensors/lidar or lidar), folders that hold such folders
	// (a split: train, val, test), the folders of the sweeps, or sweeps (.feather). A log has its
	// poses in city_SE3_egovehicle.feather.
	Paths []string
	// SkipBad counts sweeps that cannot be read, instead of stopping.
	SkipBad bool
	// MaxFrameBytes bounds the size of a sweep, unpacked; 0: 64 MiB.
	MaxFrameBytes int64
	// Log names skipped sweeps; nil: no log.
	Log *slog.Logger
}

// argoverse2 is an open list of sweeps.
type argoverse2 struct {
	skips
	sweeps  []avSweep
	max     int64
	next    int
	own     avLane
	reader  scanReader // the poses', as is table
	table   schemas.Table
	posesOf string          // folder of the log that poses are of
	poses   map[int64]rigid // never changed once a lane has it
}

// avLane reads sweeps.
type avLane struct {
	of     *argoverse2
	at     *avSweep
	poses  map[int64]rigid // the sweep's log
	reader scanReader
	table  schemas.Table
	cloud  codec.Cloud
}

// avSweep is one file; its number is its position in the log.
type avSweep struct {
	log    string // folder of the log
	file   string
	number int64
	timeNs int64
}

// Open lists the sweeps of all logs. It opens no file.
func (a Argoverse2) Open() (Source, error) {
	if len(a.Paths) == 0 {
		return nil, errors.New("argoverse2: no folder or file named")
	}
	s := &argoverse2{skips: skips{allowed: a.SkipBad, log: a.Log}, max: a.MaxFrameBytes}
	if s.max <= 0 {
		s.max = 64 << 20
	}
	for _, path := range a.Paths {
		path, err := filesys.Abs(path)
		if err != nil {
			return nil, err
		}
		if err := s.add(path); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(s.sweeps, func(a, b avSweep) int {
		return cmp.Or(strings.Compare(a.log, b.log), cmp.Compare(a.timeNs, b.timeNs))
	})
	for i := 1; i < len(s.sweeps); i++ {
		before, at := &s.sweeps[i-1], &s.sweeps[i]
		if before.log != at.log {
			continue
		}
		if before.timeNs == at.timeNs {
			return nil, fmt.Errorf("argoverse2: %s and %s are of the same time", before.file, at.file)
		}
		at.number = before.number + 1
	}
	s.own.of = s
	return s, nil
}

// add appends the sweeps at path.
func (s *argoverse2) add(path string) error {
	info, err := filesys.Stat(path)
	if err != nil {
		return fmt.Errorf("argoverse2: %w", err)
	}
	if !info.IsDir() {
		return s.addFile(path)
	}
	before := len(s.sweeps)
	for _, pattern := range []string{"", "sensors/lidar", "lidar", "*/sensors/lidar", "*/lidar"} {
		files, err := filesys.Glob(filesys.Join(escapeGlob(path), pattern, "*"+featherSuffix+"*"))
		if err != nil {
			return fmt.Errorf("argoverse2: %w", err)
		}
		for _, file := range files {
			if !strings.HasSuffix(unpackedName(file), featherSuffix) || pattern == "" && !isNumbered(file) {
				continue // a log holds its poses and annotations as such files, too
			}
			if err := s.addFile(file); err != nil {
				return err
			}
		}
		if len(s.sweeps) > before {
			return nil
		}
	}
	if _, err := filesys.ReadDir(path); err != nil {
		return fmt.Errorf("argoverse2: %w", err)
	}
	return fmt.Errorf("argoverse2: no sweep in %s; want the folder of a log, which has sensors/lidar/*%s, or a folder "+
		"of logs", path, featherSuffix)
}

const featherSuffix = ".feather"

// avPosesFile is the file of a log that has its poses.
const avPosesFile = "city_SE3_egovehicle" + featherSuffix

// escapeGlob returns path as a pattern that matches itself.
func escapeGlob(path string) string {
	return strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, `\`, `\\`).Replace(path)
}

// isNumbered reports whether the name of a file is a time.
func isNumbered(file string) bool {
	_, err := sweepTime(file)
	return err == nil
}

// sweepTime returns the time in a file's name: nanoseconds.
func sweepTime(file string) (int64, error) {
	stem := strings.TrimSuffix(unpackedName(filesys.Base(file)), featherSuffix)
	ns, err := strconv.ParseUint(stem, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("argoverse2: the name of %s is no time in nanoseconds, as 315966265259836000%s is", file,
			featherSuffix)
	}
	return int64(ns), nil
}

// addFile appends one sweep. Its log is the folder above lidar and sensors.
func (s *argoverse2) addFile(file string) error {
	ns, err := sweepTime(file)
	if err != nil {
		return err
	}
	log := filesys.Dir(file)
	for _, below := range []string{"lidar", "sensors"} {
		if filesys.Base(log) == below {
			log = filesys.Dir(log)
		}
	}
	s.sweeps = append(s.sweeps, avSweep{log: log, file: file, timeNs: ns})
	return nil
}

// Next implements Source.
func (s *argoverse2) Next(it *Item) error { return s.inLane(it, &s.own) }

func (s *argoverse2) lane() lane { return &avLane{of: s} }

// take takes the next sweep, with the poses of its log.
func (l *avLane) take() (err error) {
	s := l.of
	if l.at, err = pop(s.sweeps, &s.next); err == nil && l.at.log != s.posesOf {
		err = s.readPoses(l.at.log)
	}
	l.poses = s.poses
	return err
}

// avNames are the columns of a sweep that have other names than sensors usually give them.
var avNames = Columns{laser: "laser_number"}

func (l *avLane) decode(it *Item) error {
	s, at := l.of, l.at
	if err := l.reader.load(at.file, s.max); err != nil {
		return err
	}
	l.table.MaxBytes = s.max
	err := l.table.Read(l.reader.raw)
	if err == nil {
		err = fillCloud(&l.cloud, &l.table, avNames, s.max)
	}
	if err != nil {
		return &BadInputError{File: at.file, Detail: err.Error(), Err: err}
	}
	*it = Item{Dataset: "argoverse2", Sequence: filesys.Base(at.log), Sensor: "lidar", Number: at.number,
		TimeNs: at.timeNs, Clock: UTC, Cloud: l.cloud.Points, Ignored: l.cloud.Ignored}
	if pose, ok := l.poses[at.timeNs]; ok {
		it.Pose = pose.pose()
	}
	return nil
}

func (l *avLane) finish(_ *Item, err error) error { return err }

func (l *avLane) skip(error) error { return nil }

func (l *avLane) close() {}

// readPoses reads the poses of a log, which may have none. A fault in them is one of the log: it
// is passed once, and the sweeps of the log have no poses then.
func (s *argoverse2) readPoses(log string) error {
	s.posesOf, s.poses = log, map[int64]rigid{}
	path := filesys.Join(log, avPosesFile)
	if firstFile(path) == "" {
		if s.log != nil && !s.quiet {
			s.log.Warn("the sweeps of a log have no poses: it has no city_SE3_egovehicle.feather", "log", log)
		}
		return nil
	}
	err := s.loadPoses(path)
	var bad *BadInputError
	if errors.As(err, &bad) {
		s.poses = nil
		return s.pass(bad)
	}
	return err
}

func (s *argoverse2) loadPoses(path string) error {
	if err := s.reader.load(path, s.max); err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return &BadInputError{File: path, Detail: fmt.Sprintf(format, args...)}
	}
	s.table.MaxBytes = s.max
	if err := s.table.Read(s.reader.raw); err != nil {
		return bad("%v", err)
	}
	columns := s.table.Columns()
	find := func(name string) int {
		return slices.IndexFunc(columns, func(c schemas.TableColumn) bool { return c.Name == name })
	}
	times := find("timestamp_ns")
	if times < 0 {
		return bad("there is no column timestamp_ns")
	}
	ns, err := s.table.Int64s(times, nil)
	if err != nil {
		return bad("%v", err)
	}
	var parts [7][]float64
	for i, name := range [...]string{"qw", "qx", "qy", "qz", "tx_m", "ty_m", "tz_m"} {
		at := find(name)
		if at < 0 {
			return bad("there is no column %s", name)
		}
		if parts[i], err = s.table.Float64s(at, nil); err != nil {
			return bad("%v", err)
		}
	}
	for i, t := range ns {
		m, ok := rigidOf([4]float64{parts[0][i], parts[1][i], parts[2][i], parts[3][i]},
			[3]float64{parts[4][i], parts[5][i], parts[6][i]})
		if !ok {
			return bad("row %d is no pose", i)
		}
		if old, twice := s.poses[t]; twice && old != m {
			return bad("row %d has another pose for the time %d than a row before it", i, t)
		}
		s.poses[t] = m
	}
	return nil
}

// Len returns the number of sweeps.
func (s *argoverse2) Len() int64 { return int64(len(s.sweeps)) }

// Rewind implements Source.
func (s *argoverse2) Rewind() error {
	s.next = 0
	s.again()
	return nil
}

// Close implements Source. No file is open between calls.
func (s *argoverse2) Close() error { return nil }
