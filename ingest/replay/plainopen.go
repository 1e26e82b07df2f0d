package replay

import (
	"slices"
	"strings"

	"entropipe/ingest/filesys"
	"entropipe/schemas/codec"
)

// largestPointer is more bytes than a pointer of Git LFS may have, by its specification.
const largestPointer = 1024

// openPlain opens a regular file of an input. The error is that of filesys.Open, or a *BadInputError
// for a pointer of Git LFS, which stands where the file was not fetched: whatever the name of the
// file, its text is no content.
func openPlain(path string) (filesys.File, error) {
	f, err := filesys.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil || info.Size() >= largestPointer {
		return f, nil // a file that cannot be asked cannot be read, and its reader says so
	}
	head := make([]byte, 64)
	n, _ := f.ReadAt(head, 0)
	if codec.Name(head[:n]) == lfsPointer {
		f.Close()
		return nil, pointerFault(path)
	}
	return f, nil
}

// lfsPointer is the kind of a pointer of Git LFS.
const lfsPointer = "a Git LFS pointer"

func pointerFault(path string) *BadInputError {
	return &BadInputError{File: path, Detail: "this is " + lfsPointer + ", not the file's content; fetch the file " +
		"first: git lfs pull"}
}

// endings are those of the files of formats.
var endings = map[string][]string{
	FormatKITTI:     {".bin"},
	FormatNuScenes:  {".bin", ".json"},
	FormatWaymo:     {".tfrecord", ".parquet"},
	FormatMCAP:      {".mcap"},
	FormatRosbag:    {".db3", ".mcap"},
	FormatQuickDraw: {".ndjson"},
	PCD.Name:        {".pcd"},
	PLY.Name:        {".ply"},
	LAS.Name:        {".las", ".laz"},
	FormatCSV:       {".csv", ".tsv", ".xyz", ".asc"},
	FormatParquet:   {".parquet", ".pq"},
	FormatArrow:     {".arrow", ".arrows", ".feather", ".ipc"},
}

// awaits reports whether a pointer of Git LFS stands in the place of a file of a format that is
// looked for, by its name.
func (w *finder) awaits(s *sample) bool {
	plain := unpackedName(s.plain)
	for format, ends := range endings {
		if (w.only == nil || w.only.name == format) &&
			slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(plain, end) }) {
			return true
		}
	}
	return false
}
