package replay

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"entropipe/ingest/filesys"
	"entropipe/schemas/codec"
	"entropipe/schemas/codec/las"
	"entropipe/schemas/codec/pcd"
	"entropipe/schemas/codec/ply"
)

// CloudFormat is a format whose files hold one cloud each.
type CloudFormat struct {
	Name string // name of the data set
	// Suffixes are the ends of the names that files of the format have, in small letters.
	Suffixes []string
	// Is reports whether a file that begins with head is of the format; nil: the format has
	// no magic.
	Is func(head []byte) bool
	// Decode reads a file into the columns of c, which takes at most limit bytes. Errors are
	// of type *codec.Error.
	Decode func(c *codec.Cloud, value []byte, limit int64) error
}

// The formats of clouds that need no data set around them.
var (
	PCD = CloudFormat{Name: "pcd", Suffixes: []string{".pcd"}, Is: pcd.Is, Decode: pcd.Decode}
	PLY = CloudFormat{Name: "ply", Suffixes: []string{".ply"}, Is: ply.Is, Decode: ply.Decode}
	LAS = CloudFormat{Name: "las", Suffixes: []string{".las"}, Is: las.Is, Decode: las.Decode}
)

// CloudFiles configures a Source of files with one cloud each. Format and Paths are
// required; the zero value of the other fields stops at the first fault.
//
// Files come in the natural order of their names. The files of one folder are a sequence,
// which has the folder's name. A file's number is the integer that its name is, if the names
// of all files of the folder are different integers, else its position. Times come from the
// files, else from their names: see nameTimes.
type CloudFiles struct {
	Format CloudFormat
	// Paths are files, and folders whose files with a suffix of Format are read. Files may be
	// compressed with gzip or Zstandard.
	Paths []string
	// SkipBad counts files that cannot be read, instead of stopping.
	SkipBad bool
	// MaxFrameBytes bounds the size of a file, unpacked; 0: 64 MiB. The columns of a cloud
	// take at most four times as much.
	MaxFrameBytes int64
	// Log names skipped files and ignored fields; nil: no log.
	Log *slog.Logger

	dir   string   // folder of names
	names []string // files of one folder, in the place of Paths; nil: Paths count
}

// DefaultMaxFrameBytes is the most bytes that a frame's file has by default.
const DefaultMaxFrameBytes = 64 << 20

// columnsPerByte is how many bytes of columns a byte of a file may give: columns are wider
// than the values of most formats.
const columnsPerByte = 4

// cloudFiles is an open set of files.
type cloudFiles struct {
	skips
	format CloudFormat
	files  []cloudFile
	max    int64
	next   int
	own    cloudLane
	told   map[string]bool // fields that the log has named
}

// cloudLane reads files.
type cloudLane struct {
	of    *cloudFiles
	at    *cloudFile
	file  fileReader
	cloud codec.Cloud
}

// cloudFile takes 40 bytes, its name apart.
type cloudFile struct {
	folder *cloudsOf
	name   string
	number int64
	timeNs int64
}

// cloudsOf is what the files of a folder have in common.
type cloudsOf struct {
	dir, sequence string
	timed         bool // names hold times
}

func (f *cloudFile) path() string { return filesys.Join(f.folder.dir, f.name) }

// Open lists the folders among the paths. Open reads no file. Files of several folders are an *Inputs:
// each folder has numbers and times of its own. The errors are: a path that
// does not exist, and a folder that cannot be read or has no file of the format.
func (f CloudFiles) Open() (Source, error) {
	s := &cloudFiles{skips: skips{allowed: f.SkipBad, log: f.Log}, format: f.Format,
		max: cmp.Or(max(f.MaxFrameBytes, 0), DefaultMaxFrameBytes), told: map[string]bool{}}
	s.own.of = s
	if f.names != nil {
		s.files = numberNames(f.dir, f.names, f.Log)
		return s, nil
	}
	var paths []string
	for _, path := range f.Paths {
		info, err := filesys.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Format.Name, err)
		}
		if !info.IsDir() {
			paths = append(paths, path)
			continue
		}
		found, err := f.Format.list(path)
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	s.files = numberFiles(paths, f.Log)
	if n := len(s.files); n > 0 && s.files[0].folder != s.files[n-1].folder {
		inputs, err := byFolder(f.Format.Name, f.Paths, f.Format.list)
		if err != nil {
			return nil, err
		}
		return inTurn(inputs, f.Log, f.SkipBad, func(in *Input) (Source, error) {
			one := f
			one.dir, one.names = in.Path, in.Files
			return one.Open()
		}), nil
	}
	return s, nil
}

// list returns the files of dir that have a suffix of the format.
func (f *CloudFormat) list(dir string) ([]string, error) {
	entries, err := filesys.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	there := map[string]bool{}
	for _, e := range entries {
		there[e.Name()] = true
	}
	var paths []string
	for _, e := range entries {
		name, plain := e.Name(), unpackedName(e.Name())
		if e.IsDir() || strings.HasPrefix(name, ".") || plain != name && there[plain] {
			continue
		}
		if f.owns(plain) {
			paths = append(paths, filesys.Join(dir, name))
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: no file %s in %s", f.Name, strings.Join(f.Suffixes, " or "), dir)
	}
	return paths, nil
}

// owns reports whether a file's name has a suffix of the format.
func (f *CloudFormat) owns(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(f.Suffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

// Next implements Source.
func (s *cloudFiles) Next(it *Item) error { return s.inLane(it, &s.own) }

func (s *cloudFiles) lane() lane { return &cloudLane{of: s} }

func (l *cloudLane) take() (err error) {
	l.at, err = pop(l.of.files, &l.of.next)
	return err
}

func (l *cloudLane) decode(it *Item) error {
	s, f, c := l.of, l.at, &l.cloud
	path := f.path()
	value, err := l.file.read(path, s.max, s.format.Is)
	if err != nil {
		return err
	}
	limit := s.max * columnsPerByte
	if err := s.format.Decode(c, value, limit); err != nil {
		return badCloud(path, err, limit)
	}
	*it = Item{Dataset: s.format.Name, Sequence: f.folder.sequence, Number: f.number, Cloud: c.Points, Pose: c.Pose,
		Ignored: c.Ignored, Sensor: c.Sensor}
	switch {
	case c.HasTime:
		it.TimeNs, it.Clock = c.TimeNs, UTC
	case f.folder.timed:
		it.TimeNs, it.Clock = f.timeNs, UTC
	}
	return nil
}

// badCloud adds the file to an error of Decode.
func badCloud(path string, err error, limit int64) error {
	var e *codec.Error
	if !errors.As(err, &e) {
		return err
	}
	detail := e.Error()
	if e.Reason == codec.TooLarge {
		detail = fmt.Sprintf("%s; --max-frame-bytes raises the limit, which is %d times its value",
			detail, columnsPerByte)
	}
	return &BadInputError{File: path, Detail: detail}
}

// finish logs each ignored field once.
func (l *cloudLane) finish(it *Item, err error) error {
	s := l.of
	if err != nil || s.log == nil {
		return err
	}
	var names []string
	for _, name := range it.Ignored {
		if !s.told[name] && len(s.told) < maxLogged {
			s.told[name] = true
			names = append(names, name)
		}
	}
	if names != nil {
		s.log.Info("fields without a column are ignored", "fields", strings.Join(names, ", "), "first", l.at.path())
	}
	return nil
}

func (l *cloudLane) skip(error) error { return nil }

func (l *cloudLane) close() { l.file.close() }

// Len returns the number of files.
func (s *cloudFiles) Len() int64 { return int64(len(s.files)) }

// Rewind implements Source.
func (s *cloudFiles) Rewind() error {
	s.next = 0
	s.again()
	return nil
}

// Close implements Source. No file is open between calls.
func (s *cloudFiles) Close() error { return s.own.file.close() }
