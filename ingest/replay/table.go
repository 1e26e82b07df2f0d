package replay

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"entropipe/ingest/filesys"
	"entropipe/schemas"
	"entropipe/schemas/codec"
)

// The formats of tables.
const (
	FormatCSV     = "csv"
	FormatParquet = "parquet"
	FormatArrow   = "arrow"
)

// Table configures a Source of tables of points: a file is a cloud, a row a point. Paths and
// Format are required; the zero value of the other fields stops at the first fault.
type Table struct {
	// Paths are files, or folders, of which the files with the format's endings are taken: .csv,
	// .tsv, .txt, .xyz, .asc; .parquet; .arrow, .arrows, .feather, .ipc. Files of text and of
	// Arrow may be compressed with gzip (.gz) or Zstandard (.zst).
	Paths []string
	// Format is FormatCSV, FormatParquet or FormatArrow.
	Format string
	// Columns names the columns of points where their names do not say what they hold.
	Columns Columns
	// GroupBy are the columns of a Parquet table whose equal values make rows one cloud; or it is
	// ByFile or ByRowGroup. nil: a file is a cloud, and of table points of an output a frame is.
	GroupBy []string
	// SkipBad counts files that cannot be read, instead of stopping.
	SkipBad bool
	// MaxFrameBytes bounds the columns of a cloud, and an Arrow file; 0: 64 MiB.
	MaxFrameBytes int64
	// Log names skipped files; nil: no log.
	Log *slog.Logger
}

// tableEndings are the endings of files by format, without that of gzip.
var tableEndings = map[string][]string{
	FormatCSV:     {".csv", ".tsv", ".txt", ".xyz", ".asc"},
	FormatParquet: {".parquet"},
	FormatArrow:   {".arrow", ".arrows", ".feather", ".ipc"},
}

// tableFiles is an open list of tables.
type tableFiles struct {
	skips
	Table
	files []tableFile
	next  int
	own   tableLane
}

// tableLane reads files.
type tableLane struct {
	of     *tableFiles
	at     *tableFile
	reader scanReader
	arrow  schemas.Table
	text   textTable
	cloud  codec.Cloud
}

// tableFile is one file. Its number is that of its name where all names of its folder are numbers,
// else its position in the folder.
type tableFile struct {
	path, sequence string
	number         int64
}

// Open lists the files. It opens none. Files of several folders are an *Inputs: each folder has
// numbers and times of its own.
func (t Table) Open() (Source, error) {
	if len(t.Paths) == 0 {
		return nil, fmt.Errorf("%s: no folder or file named", t.Format)
	}
	if tableEndings[t.Format] == nil {
		return nil, t.unknown()
	}
	if t.MaxFrameBytes <= 0 {
		t.MaxFrameBytes = 64 << 20
	}
	if t.Format == FormatParquet {
		src, files, err := t.openGrouped()
		if src != nil || err != nil {
			return src, err
		}
		t.Paths = files
	} else if t.GroupBy != nil {
		return nil, fmt.Errorf("%s: rows are grouped in Parquet files alone", t.Format)
	}
	s := &tableFiles{skips: skips{allowed: t.SkipBad, log: t.Log}, Table: t}
	for _, path := range t.Paths {
		path, err := filesys.Abs(path)
		if err != nil {
			return nil, err
		}
		if err := s.add(path); err != nil {
			return nil, err
		}
	}
	s.own.of = s
	if only(len(s.files), func(i int) string { return filesys.Dir(s.files[i].path) }) == "" && len(s.files) > 1 {
		inputs, err := byFolder(t.Format, t.Paths, t.list)
		if err != nil {
			return nil, err
		}
		return inTurn(inputs, t.Log, t.SkipBad, func(in *Input) (Source, error) {
			one := t
			one.Paths = in.paths()
			return one.Open()
		}), nil
	}
	return s, numberTables(s.files)
}

// add appends the files at path.
func (s *tableFiles) add(path string) error {
	info, err := filesys.Stat(path)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Format, err)
	}
	if !info.IsDir() {
		s.files = append(s.files, tableFile{path: path, sequence: filesys.Base(filesys.Dir(path))})
		return nil
	}
	found, err := s.list(path)
	for _, file := range found {
		s.files = append(s.files, tableFile{path: file, sequence: filesys.Base(path)})
	}
	return err
}

// list returns the files in a folder that have an ending of the format.
func (t Table) list(dir string) (files []string, err error) {
	if t.Format == FormatParquet {
		return findParquet(dir)
	}
	entries, err := filesys.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Format, err)
	}
	endings := tableEndings[t.Format]
	for _, e := range entries {
		name := unpackedName(e.Name())
		if e.IsDir() || strings.HasPrefix(name, ".") ||
			!slices.Contains(endings, strings.ToLower(filepath.Ext(name))) {
			continue
		}
		files = append(files, filesys.Join(dir, e.Name()))
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no file in %s that ends with %s", t.Format, dir, strings.Join(endings, ", "))
	}
	return files, nil
}

// unknown is the error of a format that is none of a table.
func (t Table) unknown() error {
	return fmt.Errorf("a table of format %q is not known; use csv, parquet or arrow", t.Format)
}

// numberTables numbers the files of each folder, and puts those with numbers as names in their order.
func numberTables(files []tableFile) error {
	named := true
	for i := range files {
		stem := unpackedName(filesys.Base(files[i].path))
		stem = strings.TrimSuffix(stem, filepath.Ext(stem))
		n, err := strconv.ParseUint(stem, 10, 63)
		files[i].number = int64(n)
		named = named && err == nil
	}
	if named {
		slices.SortStableFunc(files, func(a, b tableFile) int {
			return cmp.Or(strings.Compare(filesys.Dir(a.path), filesys.Dir(b.path)), cmp.Compare(a.number, b.number))
		})
	}
	last := map[string]int64{}
	for i := range files {
		f := &files[i]
		before, ok := last[f.sequence]
		switch {
		case !named && ok:
			f.number = before + 1
		case !named:
			f.number = 0
		case ok && before == f.number:
			return fmt.Errorf("%s: there are two files with the number %d", filesys.Dir(f.path), f.number)
		}
		last[f.sequence] = f.number
	}
	return nil
}

// Next implements Source.
func (s *tableFiles) Next(it *Item) error { return s.inLane(it, &s.own) }

func (s *tableFiles) lane() lane { return &tableLane{of: s} }

func (l *tableLane) take() (err error) {
	l.at, err = pop(l.of.files, &l.of.next)
	return err
}

func (l *tableLane) decode(it *Item) error {
	if err := l.read(l.at.path); err != nil {
		return err
	}
	*it = Item{Dataset: l.of.Format, Sequence: l.at.sequence, Number: l.at.number, Cloud: l.cloud.Points,
		Ignored: l.cloud.Ignored}
	return nil
}

func (l *tableLane) finish(_ *Item, err error) error { return err }

func (l *tableLane) skip(error) error { return nil }

func (l *tableLane) close() {}

// read reads the cloud of a file. The error is a *BadInputError.
func (l *tableLane) read(path string) error {
	s := l.of
	switch s.Format {
	case FormatCSV:
		return l.readText(path)
	case FormatParquet:
		return l.readParquet(path)
	}
	if err := l.reader.load(path, s.MaxFrameBytes); err != nil {
		return err
	}
	l.arrow.MaxBytes = s.MaxFrameBytes
	err := l.arrow.Read(l.reader.raw)
	if err == nil {
		err = fillCloud(&l.cloud, &l.arrow, s.Columns, s.MaxFrameBytes)
	}
	if err != nil {
		return &BadInputError{File: path, Detail: err.Error(), Err: err}
	}
	return nil
}

func (l *tableLane) readParquet(path string) error {
	t, err := openParquetTable(path)
	if err != nil {
		return err
	}
	defer t.close()
	if err := fillCloud(&l.cloud, t, l.of.Columns, l.of.MaxFrameBytes); err != nil {
		return &BadInputError{File: path, Detail: err.Error(), Err: err}
	}
	return nil
}

// readText reads a file of text, unpacked where its first bytes say that it is compressed.
func (l *tableLane) readText(path string) error {
	f, err := openPlain(path)
	if err != nil {
		return badFile(path, err)
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 256<<10)
	from := io.Reader(r)
	named := path
	switch magic, _ := r.Peek(len(zstdMagic)); {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		named = "a.gz"
	case string(magic) == zstdMagic:
		named = "a.zst"
	}
	if named != path {
		z, form, err := unpacker(r, named, l.of.MaxFrameBytes)
		if err != nil {
			return &BadInputError{File: path, Detail: "not " + form + ": " + err.Error(), Err: err}
		}
		defer z.Close()
		from = z
	}
	return l.text.read(&l.cloud, from, path, l.of.Columns, l.of.MaxFrameBytes)
}

// Len returns the number of files.
func (s *tableFiles) Len() int64 { return int64(len(s.files)) }

// Rewind implements Source.
func (s *tableFiles) Rewind() error {
	s.next = 0
	s.again()
	return nil
}

// Close implements Source. No file is open between calls.
func (s *tableFiles) Close() error { return nil }
