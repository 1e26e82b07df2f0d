package replay

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"

	"entropipe/ingest/filesys"
	"entropipe/schemas/codec"
	"entropipe/schemas/codec/nuscenes"
)

// NuScenes configures a Source of the LiDAR scans of nuScenes. Paths is required; the zero value
// of the other fields stops at the first fault.
type NuScenes struct {
	// Paths are folders or scans (.pcd.bin, .pcd.bin.gz). A folder that holds the folder of the
	// tables (v1.0-mini, …), and that folder itself, give all scenes: samples and sweeps in the
	// order of time, with poses. Any other folder gives the scans in it, in samples and sweeps
	// below it, or in LIDAR_TOP below these; names and times are then those of the files.
	Paths []string
	// Tables is the folder of the tables where there are several, by its last name.
	Tables string
	// Scenes are the names of the scenes to read; nil: all. Scenes need the tables.
	Scenes []string
	// SkipBad counts scans and records that cannot be read, instead of stopping.
	SkipBad bool
	// MaxFrameBytes bounds the size of a scan; 0: 64 MiB.
	MaxFrameBytes int64
	// Log names missing and skipped scans; nil: no log.
	Log *slog.Logger
}

// nuScenes is an open list of sweeps.
type nuScenes struct {
	skips
	sweeps []sweep
	tables []string // files that were read
	max    int64
	next   int
	own    nuScenesLane
}

// nuScenesLane reads sweeps.
type nuScenesLane struct {
	of     *nuScenes
	at     *sweep
	reader scanReader
	cloud  codec.Cloud
}

// sweep is one scan, whose sequence is a scene or a log.
type sweep struct {
	root     string // folder of the data set; empty where file is a whole path
	file     string
	sequence string
	sensor   string
	number   int64
	timeNs   int64
	sensorAt *rigid // sensor to vehicle; nil: unknown
	egoAt    *rigid // vehicle to world; nil: unknown
	clock    Clock
	scene    int32 // position of the scene in its table
	sameEgo  int32 // the sweep that waits for the same pose of the vehicle; -1: none
}

func (s *sweep) path() string { return filesys.Join(s.root, s.file) }

// Open reads the tables, which takes seconds where they have millions of records, or lists the
// folders. Memory: about 400 bytes for each scan of the tables, whatever their size.
func (n NuScenes) Open() (Source, error) {
	if len(n.Paths) == 0 {
		return nil, errors.New("nuscenes: no folder or file named")
	}
	s := &nuScenes{skips: skips{allowed: n.SkipBad, log: n.Log}, max: n.MaxFrameBytes}
	if s.max <= 0 {
		s.max = 64 << 20
	}
	var files []string
	for _, path := range n.Paths {
		tables, err := findTables(path, n.Tables)
		if err != nil {
			return nil, err
		}
		if tables == "" {
			if files, err = appendScans(files, path); err != nil {
				return nil, err
			}
			continue
		}
		if err := s.readTables(tables, n.Scenes); err != nil {
			return nil, err
		}
	}
	if len(files) > 0 && len(n.Scenes) > 0 {
		return nil, fmt.Errorf("nuscenes: %s has no tables (v1.0-*) beside its scans, so scenes have no names",
			n.Paths[0])
	}
	named, err := sweepsByName(files)
	if err != nil {
		return nil, err
	}
	s.sweeps = append(s.sweeps, named...)
	s.own.of = s
	return s, nil
}

// findTables returns the folder of the tables at path; "" if there is none.
func findTables(path, name string) (string, error) {
	info, err := filesys.Stat(path)
	if err != nil {
		return "", fmt.Errorf("nuscenes: %w", err)
	}
	if !info.IsDir() {
		return "", nil
	}
	const telling = "sample_data.json"
	if firstFile(filesys.Join(path, telling)) != "" {
		return path, nil
	}
	if name != "" {
		if firstFile(filesys.Join(path, name, telling)) == "" {
			return "", fmt.Errorf("nuscenes: there is no %s in %s", filesys.Join(name, telling), path)
		}
		return filesys.Join(path, name), nil
	}
	entries, err := filesys.ReadDir(path)
	if err != nil {
		return "", fmt.Errorf("nuscenes: %w", err)
	}
	var found []string
	for _, e := range entries {
		if firstFile(filesys.Join(path, e.Name(), telling)) != "" {
			found = append(found, e.Name())
		}
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return filesys.Join(path, found[0]), nil
	}
	return "", fmt.Errorf("nuscenes: %s holds the tables %s; choose one (--tables %s), or name its folder", path,
		strings.Join(found, ", "), found[0])
}

// scanSuffix is how the name of a scan ends, without the ending of gzip.
const scanSuffix = ".pcd.bin"

// appendScans appends the scans that path names.
func appendScans(files []string, path string) ([]string, error) {
	if info, err := filesys.Stat(path); err != nil || !info.IsDir() {
		return append(files, path), err
	}
	before := len(files)
	for _, below := range []string{"", "LIDAR_TOP", "samples", "samples/LIDAR_TOP", "sweeps", "sweeps/LIDAR_TOP"} {
		folder := filesys.Join(path, below)
		entries, err := filesys.ReadDir(folder)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("nuscenes: %w", err)
		}
		for _, e := range entries {
			name := e.Name()
			if !e.IsDir() && strings.HasSuffix(unpackedName(name), scanSuffix) && !strings.HasPrefix(name, ".") {
				files = append(files, filesys.Join(folder, name))
			}
		}
	}
	if len(files) == before {
		return nil, fmt.Errorf("nuscenes: no %s file in %s; want the folder above samples and sweeps, with its "+
			"tables (v1.0-mini) if possible, or a folder of scans", scanSuffix, path)
	}
	return files, nil
}

// sweepsByName puts scans in order by their names, LOG__CHANNEL__MICROSECONDS.pcd.bin: by log,
// channel and time. Where no name is of that form, the scans have no times, and their folder is
// the sequence.
func sweepsByName(files []string) ([]sweep, error) {
	sweeps := make([]sweep, len(files))
	named := 0
	for i, file := range files {
		stem := strings.TrimSuffix(unpackedName(filesys.Base(file)), scanSuffix)
		sweeps[i] = sweep{file: file, sensor: "LIDAR_TOP"}
		parts := strings.Split(stem, "__")
		if len(parts) == 3 {
			micros, err := strconv.ParseInt(parts[2], 10, 64)
			if err == nil && micros >= 0 && micros <= maxMicros && parts[0] != "" && parts[1] != "" {
				named++
				sweeps[i] = sweep{file: file, sequence: parts[0], sensor: parts[1], timeNs: micros * 1000, clock: UTC}
			}
		}
	}
	if named == 0 {
		for i := range sweeps {
			folder, err := filesys.Abs(filesys.Dir(files[i]))
			if err != nil {
				return nil, err
			}
			sweeps[i].sequence = filesys.Base(folder)
		}
	} else if named < len(files) {
		i := slices.IndexFunc(sweeps, func(s sweep) bool { return s.sequence == "" })
		return nil, fmt.Errorf("nuscenes: %s has no time in its name, but others have: want LOG__LIDAR_TOP__"+
			"MICROSECONDS%s", files[i], scanSuffix)
	}
	slices.SortStableFunc(sweeps, func(a, b sweep) int {
		return cmp.Or(strings.Compare(a.sequence, b.sequence), strings.Compare(a.sensor, b.sensor),
			cmp.Compare(a.timeNs, b.timeNs), strings.Compare(a.file, b.file))
	})
	return sweeps, numberSweeps(sweeps)
}

// maxMicros is the greatest time in microseconds since 1970 that int64 holds in nanoseconds.
const maxMicros = (1<<63 - 1) / 1000

// numberSweeps numbers sorted sweeps within their sequence and sensor. Two sweeps of one time
// are an error.
func numberSweeps(sweeps []sweep) error {
	for i := 1; i < len(sweeps); i++ {
		a, b := &sweeps[i-1], &sweeps[i]
		if a.sequence != b.sequence || a.sensor != b.sensor {
			continue
		}
		if b.clock == UTC && a.timeNs == b.timeNs {
			return fmt.Errorf("nuscenes: %s and %s are of the same time in %s", a.file, b.file, a.sequence)
		}
		b.number = a.number + 1
	}
	return nil
}

// Next implements Source.
func (s *nuScenes) Next(it *Item) error { return s.inLane(it, &s.own) }

func (s *nuScenes) lane() lane { return &nuScenesLane{of: s} }

func (l *nuScenesLane) take() (err error) {
	l.at, err = pop(l.of.sweeps, &l.of.next)
	return err
}

func (l *nuScenesLane) decode(it *Item) error {
	at, path := l.at, l.at.path()
	if err := l.reader.load(path, l.of.max); err != nil {
		return err
	}
	if err := nuscenes.Decode(&l.cloud, l.reader.raw, l.of.max); err != nil {
		return &BadInputError{File: path, Detail: err.Error(), Err: err}
	}
	*it = Item{Dataset: "nuscenes", Sequence: at.sequence, Sensor: at.sensor, Number: at.number, TimeNs: at.timeNs,
		Clock: at.clock, Cloud: l.cloud.Points}
	if at.egoAt != nil && at.sensorAt != nil {
		world := at.egoAt.times(at.sensorAt)
		it.Pose = world.pose()
	}
	return nil
}

func (l *nuScenesLane) finish(_ *Item, err error) error { return err }

func (l *nuScenesLane) skip(error) error { return nil }

func (l *nuScenesLane) close() {}

// Len returns the number of scans.
func (s *nuScenes) Len() int64 { return int64(len(s.sweeps)) }

// Rewind implements Source.
func (s *nuScenes) Rewind() error {
	s.next = 0
	s.again()
	return nil
}

// Close implements Source. No file is open between calls.
func (s *nuScenes) Close() error { return nil }
