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
)

// KITTI configures a Source of velodyne scans. Dir is required; the zero value of the
// other fields stops at the first fault.
type KITTI struct {
	// Dir is a raw drive (…_sync or …_extract), the date folder that holds
	// exactly one, its velodyne_points or data folder, an odometry sequence,
	// an object folder (training, testing), or any folder of .bin files. Files may
	// be compressed with gzip (.bin.gz).
	Dir string
	// Files are the names of the scans to read; nil: all scans of the folder.
	Files []string
	// SkipBad counts scans that cannot be read, instead of stopping.
	SkipBad bool
	// MaxFrameBytes bounds the size of a scan; 0: 64 MiB.
	MaxFrameBytes int64
	// Log names missing and skipped scans; nil: no log.
	Log *slog.Logger
}

// kitti is an open folder of scans.
type kitti struct {
	skips
	layout layout
	scans  []scan
	times  *times // nil: the scans have no times
	max    int64
	next   int
	extras *kittiExtras
	own    kittiLane
	warned bool // the log has the warning about rounded coordinates
	posed  bool // the log says that a scan has no pose
}

// kittiLane reads scans.
type kittiLane struct {
	of     *kitti
	at     *scan
	reader scanReader
	labels labelReader
}

// layout says where the parts of a folder of scans are.
type layout struct {
	data     string // folder of the scans
	times    string // timestamps.txt or times.txt; empty: none
	sequence string
}

// scan is one file; its number is that of its name, or its position where the
// names are not numbers.
type scan struct {
	name   string
	number int64
}

// Open finds the scans and their times. It reads the list of files, not the
// files; a folder that is not there, has no scan, or holds several drives is
// an error that says so.
func (k KITTI) Open() (Source, error) {
	dir, err := filesys.Abs(k.Dir)
	if err != nil {
		return nil, err
	}
	if info, err := filesys.Stat(dir); err != nil {
		return nil, fmt.Errorf("kitti: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("kitti: %s is a file; name the folder that holds the scans", k.Dir)
	}
	at, err := findLayout(dir)
	if err != nil {
		return nil, err
	}
	s := &kitti{skips: skips{allowed: k.SkipBad, log: k.Log}, layout: at, max: k.MaxFrameBytes}
	if s.max <= 0 {
		s.max = 64 << 20
	}
	if s.scans, err = listScans(at.data); err != nil {
		return nil, err
	}
	if k.Files != nil {
		wanted := slices.Sorted(slices.Values(k.Files))
		s.scans = slices.DeleteFunc(s.scans, func(sc scan) bool {
			_, found := slices.BinarySearch(wanted, sc.name)
			return !found
		})
		if len(s.scans) == 0 {
			return nil, noScans(dir)
		}
	}
	if at.times != "" {
		if s.times, err = readTimes(at.times); err != nil {
			return nil, err
		}
	}
	if s.extras, err = openExtras(at.data, k.Log); err != nil {
		return nil, err
	}
	s.reportGaps()
	s.own.of = s
	return s, nil
}

// findLayout recognises the folder by its parts, the most telling first.
func findLayout(dir string) (layout, error) {
	parent, base := filesys.Dir(dir), filesys.Base(dir)
	switch {
	case isDir(dir, "velodyne_points", "data"):
		return rawDrive(dir), nil
	case base == "velodyne_points" && isDir(dir, "data"):
		return rawDrive(parent), nil
	case base == "data" && filesys.Base(parent) == "velodyne_points":
		return rawDrive(filesys.Dir(parent)), nil
	case isDir(dir, "velodyne"):
		return benchmark(dir), nil
	case base == "velodyne" && hasScans(dir):
		return benchmark(parent), nil
	case hasScans(dir):
		times := firstFile(filesys.Join(dir, "timestamps.txt"), filesys.Join(dir, "times.txt"))
		return layout{data: dir, times: times, sequence: base}, nil
	}
	return onlyDrive(dir)
}

func rawDrive(root string) layout {
	points := filesys.Join(root, "velodyne_points")
	return layout{
		data:     filesys.Join(points, "data"),
		times:    firstFile(filesys.Join(points, "timestamps.txt")),
		sequence: filesys.Base(root),
	}
}

// benchmark is an odometry sequence, which has times, or an object folder,
// whose scans have nothing to do with each other.
func benchmark(root string) layout {
	at := layout{
		data:     filesys.Join(root, "velodyne"),
		times:    firstFile(filesys.Join(root, "times.txt")),
		sequence: "object_" + filesys.Base(root),
	}
	if at.times != "" || filesys.Base(filesys.Dir(root)) == "sequences" {
		at.sequence = "odometry_" + filesys.Base(root)
	}
	return at
}

// onlyDrive looks for a drive one folder below.
func onlyDrive(dir string) (layout, error) {
	entries, err := filesys.ReadDir(dir)
	if err != nil {
		return layout{}, fmt.Errorf("kitti: %w", err)
	}
	var drives []string
	for _, e := range entries {
		if sub := filesys.Join(dir, e.Name()); isDir(sub, "velodyne_points", "data") || isDir(sub, "velodyne") {
			drives = append(drives, e.Name())
		}
	}
	switch {
	case len(drives) == 1:
		return findLayout(filesys.Join(dir, drives[0]))
	case len(drives) > 1:
		return layout{}, fmt.Errorf("kitti: %s holds %d drives (%s, …); name one of them", dir, len(drives), drives[0])
	}
	return layout{}, noScans(dir)
}

var errNoScans = errors.New("no .bin file")

func isDir(elem ...string) bool {
	info, err := filesys.Stat(filesys.Join(elem...))
	return err == nil && info.IsDir()
}

func firstFile(paths ...string) string {
	for _, p := range paths {
		if info, err := filesys.Stat(p); err == nil && info.Mode().IsRegular() {
			return p
		}
	}
	return ""
}

// hasScans is also true of scans that cannot be put in order: opening the
// folder says why.
func hasScans(dir string) bool {
	_, err := listScans(dir)
	return !errors.Is(err, errNoScans)
}

// listScans returns the .bin and .bin.gz files of dir, or the .txt files where there is no
// .bin: the unsynchronised drives hold text. Numbers as names order them and
// become frame numbers; otherwise the names do, and their positions are.
func listScans(dir string) ([]scan, error) {
	entries, err := readFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("kitti: %w", err)
	}
	scans, numbered := scansNamed(entries, ".bin")
	if len(scans) == 0 {
		// Other text lies around everywhere: only numbers are scans.
		if scans, numbered = scansNamed(entries, ".txt"); !numbered {
			scans = nil
		}
	}
	if len(scans) == 0 {
		return nil, noScans(dir)
	}
	// A multiple of 20 bytes is often one of 16, and the points then nonsense.
	if name := scans[0].name; strings.HasSuffix(unpackedName(name), ".pcd.bin") {
		return nil, fmt.Errorf("kitti: %s in %s is a nuScenes scan, of five numbers a point where KITTI has four; "+
			"entropipe produce nuscenes sends it", name, dir)
	}
	if !numbered {
		for i := range scans { // the folder has sorted them
			scans[i].number = int64(i)
		}
		return scans, nil
	}
	slices.SortStableFunc(scans, func(a, b scan) int { return cmp.Compare(a.number, b.number) })
	for i := 1; i < len(scans); i++ {
		if scans[i].number == scans[i-1].number {
			return nil, fmt.Errorf("kitti: %s: %s and %s have the same number", dir, scans[i-1].name, scans[i].name)
		}
	}
	return scans, nil
}

func scansNamed(entries listing, suffix string) (scans []scan, numbered bool) {
	numbered = true
	for i := range entries {
		name, plain := entries[i].name, unpackedName(entries[i].name)
		stem, ok := strings.CutSuffix(plain, suffix)
		if !ok || entries[i].mode.IsDir() || strings.HasPrefix(stem, ".") {
			continue
		}
		if plain != name && entries.has(plain) {
			continue // the folder has the unpacked file, too
		}
		if suffix == ".txt" && (stem == "timestamps" || stem == "times") {
			continue
		}
		n, err := strconv.ParseUint(stem, 10, 63)
		numbered = numbered && err == nil
		scans = append(scans, scan{name: name, number: int64(n)})
	}
	return scans, numbered
}

// reportGaps names the scans that are missing between the first and the last.
// Numbers far apart are not counts of scans but, say, clocks: no gaps then.
func (s *kitti) reportGaps() {
	first, last := s.scans[0].number, s.scans[len(s.scans)-1].number
	missing := last - first + 1 - int64(len(s.scans))
	if s.log == nil || missing == 0 || missing/10 > int64(len(s.scans)) {
		return
	}
	s.log.Warn(fmt.Sprintf("%d %s missing: %s", missing, plural(missing, "scan", "scans"), gaps(s.scans)),
		"folder", s.layout.data)
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// gaps lists the missing numbers as "177-180, 199", at most eight ranges.
func gaps(scans []scan) string {
	const most = 8
	var b strings.Builder
	n := 0
	for i := 1; i < len(scans); i++ {
		from, to := scans[i-1].number+1, scans[i].number-1
		if from > to {
			continue
		}
		if n++; n > most {
			continue
		}
		if n > 1 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.FormatInt(from, 10))
		if to > from {
			b.WriteString("-" + strconv.FormatInt(to, 10))
		}
	}
	if n > most {
		fmt.Fprintf(&b, " and %d more gaps", n-most)
	}
	return b.String()
}

// Next implements Source.
func (s *kitti) Next(it *Item) error { return s.inLane(it, &s.own) }

func (s *kitti) lane() lane { return &kittiLane{of: s} }

func (l *kittiLane) take() (err error) {
	l.at, err = pop(l.of.scans, &l.of.next)
	return err
}

func (l *kittiLane) decode(it *Item) error {
	s := l.of
	*it = Item{Dataset: "kitti", Sequence: s.layout.sequence, Sensor: "velodyne", Number: l.at.number}
	if s.times != nil {
		var err error
		if it.TimeNs, err = s.times.at(l.at.number); err != nil {
			return err
		}
		it.Clock = s.times.clock
	}
	if err := l.reader.read(it, filesys.Join(s.layout.data, l.at.name), s.max); err != nil {
		return err
	}
	return s.extras.add(it, l.at, &l.labels, s.max)
}

// finish names what is true of many scans once.
func (l *kittiLane) finish(it *Item, err error) error {
	s := l.of
	if err != nil || s.log == nil {
		return err
	}
	if l.reader.lossy && !s.warned {
		s.warned = true
		s.log.Warn("coordinates have more digits than float32 holds; scans are float32, so these are rounded", "folder",
			s.layout.data, "first", l.at.name)
	}
	if s.extras.poses != nil && it.Pose == nil && !s.posed {
		s.posed = true
		s.log.Warn("scans have no pose", "folder", s.layout.data, "first", l.at.name)
	}
	return nil
}

func (l *kittiLane) skip(error) error { return nil }

func (l *kittiLane) close() {}

// Len returns the number of scans.
func (s *kitti) Len() int64 { return int64(len(s.scans)) }

// Rewind implements Source.
func (s *kitti) Rewind() error {
	s.next = 0
	s.again()
	return nil
}

// Close implements Source. No file is open between calls.
func (s *kitti) Close() error { return nil }
