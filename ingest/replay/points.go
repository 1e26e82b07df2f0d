package replay

import (
	"context"
	"errors"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/ingest/filesys"
)

// The values of Table.GroupBy that are no columns.
const (
	ByFile     = "file"
	ByRowGroup = "row-group"
)

// The keys of a record's frames in table points of an output, and columns that tell the table.
var (
	outputKeys  = []string{"partition", "offset", "index"}
	outputMarks = []string{"partition", "offset", "index", "frame_id", "point_idx"}
)

// grouping makes items of the Parquet files of one folder.
type grouping interface {
	// next sets it to the next item, whose position is given; nil: nobody reads the item. After a
	// *BadInputError, which takes the position of an item, next continues behind the fault. Any
	// other error is final.
	next(it *Item, position int64) error
	// seek goes to an item, and returns its position: the wanted one, or one before it.
	seek(ctx context.Context, want int64) (position int64, err error)
	// count reads what is necessary to count the items.
	count(ctx context.Context) (*groupIndex, error)
	// sequence returns the name of the sequence that the folder gives; empty: the data do.
	sequence() string
	// tell logs what was left out, at the end of the first pass.
	tell()
	close()
}

// groupIndex says where the items of a folder are.
type groupIndex struct {
	items, frames int64
	marks         []groupMark
	files         func(position int64) []string
}

// groupMark is a place where reading can begin.
type groupMark struct {
	file, group int
	position    int64 // first item that begins there
	continues   bool  // the first rows belong to the item before
}

// pointSource is a Source of the points in one folder of Parquet files.
type pointSource struct {
	skips
	by    grouping
	ended bool
	from  int64 // position at which a pass begins
}

// Next implements Source.
func (s *pointSource) Next(it *Item) error {
	for {
		err := s.by.next(it, s.positions())
		if err == io.EOF && !s.quiet && !s.ended {
			s.ended = true
			s.by.tell()
		}
		var bad *BadInputError
		if err != nil && !errors.As(err, &bad) {
			return err
		}
		at := s.place()
		if err == nil {
			it.Position = at
			return nil
		}
		if err := s.pass(bad); err != nil {
			return err
		}
	}
}

// seek implements seeker.
func (s *pointSource) seek(ctx context.Context, want int64) error {
	at, err := s.by.seek(ctx, want)
	if err != nil {
		return err
	}
	s.position, s.from = at, want
	for s.position < want {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := s.by.next(nil, s.position)
		var bad *BadInputError
		if err == io.EOF {
			return nil
		}
		if err != nil && (!errors.As(err, &bad) || failing(bad.Err)) {
			return err
		}
		s.place()
	}
	return nil
}

// Rewind implements Source.
func (s *pointSource) Rewind() error {
	s.again()
	return s.seek(context.Background(), s.from)
}

// Close implements Source.
func (s *pointSource) Close() error {
	s.by.close()
	return nil
}

// grouped returns a Source of the points in files, which lie in one folder, grouped as GroupBy says.
// nil: a file is a cloud.
func (t Table) grouped(files []string) Source {
	by := t.GroupBy
	if t.Format != FormatParquet || len(by) == 1 && by[0] == ByFile {
		return nil
	}
	files = slices.Clone(files)
	slices.SortFunc(files, naturally)
	files = slices.Compact(files)
	first, own := t.lookAt(files)
	if len(by) == 0 && !own {
		return nil
	}
	s := &pointSource{skips: skips{allowed: t.SkipBad, log: t.Log}}
	dir := filesys.Dir(files[0])
	if own && len(by) == 0 {
		if frames, ok := framesFolder(dir); ok {
			s.by = newOutputFrames(&t, first, frames, files)
			return s
		}
		by = outputKeys
		if t.Log != nil {
			t.Log.Warn("table frames is not beside table points: sequence, sensor, time and pose of frames are not "+
				"known, "+
				"nor frames without points", "folder", dir)
		}
	}
	s.by = newTableGroups(&t, by, files, own)
	return s
}

// lookAt reads the footers of files until one can be read, and tells whether it is table points of
// an output.
func (t Table) lookAt(files []string) (names map[string]string, own bool) {
	for _, path := range files {
		f, err := openParquetFile(path)
		if err != nil {
			continue
		}
		defer f.close()
		names = map[string]string{}
		for _, name := range []string{"dataset", "sequence", "topic", "table"} {
			if value, ok := f.file.Lookup("entropipe." + name); ok {
				names[name] = value
			}
		}
		return names, hasColumns(f.columns, outputMarks...) && findColumn(f.columns, "x") >= 0
	}
	return nil, false
}

// framesFolder returns the folder of table frames that belongs to a folder in or below points.
func framesFolder(dir string) (string, bool) {
	parts := strings.Split(filepath.ToSlash(absolute(dir)), "/")
	for i := len(parts) - 1; i > 0; i-- {
		if parts[i] != "points" {
			continue
		}
		parts[i] = "frames"
		frames := filepath.FromSlash(strings.Join(parts, "/"))
		info, err := filesys.Stat(frames)
		return frames, err == nil && info.IsDir()
	}
	return "", false
}

// folderValues returns the values that folders such as date=2020-01-01 name.
func folderValues(dir string) map[string]string {
	values := map[string]string{}
	for _, part := range strings.Split(filepath.ToSlash(absolute(dir)), "/") {
		name, value, ok := strings.Cut(part, "=")
		if !ok || name == "" || value == "__HIVE_DEFAULT_PARTITION__" {
			continue
		}
		if plain, err := url.PathUnescape(value); err == nil {
			value = plain
		}
		values[name] = value
	}
	return values
}

// isOutput reports whether a folder with these names in it is an output of run.
func isOutput(dir string, names listing) bool {
	if !names.has("_commits") {
		return false
	}
	info, err := filesys.Stat(filesys.Join(dir, "_commits", "store.json"))
	return err == nil && info.Mode().IsRegular()
}
