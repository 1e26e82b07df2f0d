package replay

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"entropipe/ingest/filesys"
)

// filed is a Source with a list of files. It may be asked after it was closed. Paths are absolute.
type filed interface {
	// common returns the files that all items depend on.
	common() []string
	// FilesOf returns the files of an item; none beyond the end. The slice is valid until the
	// next call.
	FilesOf(position int64) []string
}

// filesIn returns the source of src that has a list of files.
func filesIn(src Source) (filed, bool) {
	switch s := src.(type) {
	case *renamed:
		return filesIn(s.Source)
	case *filedRenamed:
		return filesIn(s.Source)
	case filed:
		return s, true
	}
	return nil, false
}

// filedRenamed is a renamed Source with a list of files.
type filedRenamed struct{ renamed }

// FilesOf returns the files of an item.
func (r *filedRenamed) FilesOf(position int64) []string {
	s, _ := filesIn(r.Source)
	return s.FilesOf(position)
}

// sequenced is a Source whose items have one sequence, which a folder names.
type sequenced interface {
	sequenceName() string // empty: there are several, or files name them
}

// goTo makes the item at a position the next one of a list of n.
func (s *skips) goTo(position int64, next *int, n int) error {
	*next, s.position = int(min(position, int64(n))), position
	return nil
}

// existing returns the absolute paths of those that are not empty.
func existing(paths ...string) (found []string) {
	for _, path := range paths {
		if path != "" {
			found = append(found, absolute(path))
		}
	}
	return found
}

func (s *kitti) seek(_ context.Context, at int64) error { return s.goTo(at, &s.next, len(s.scans)) }
func (s *kitti) sequenceName() string                   { return s.layout.sequence }

func (s *kitti) common() []string {
	files := existing(s.layout.times)
	for _, path := range s.extras.files {
		files = append(files, existing(path)...)
	}
	return files
}

// FilesOf returns a scan with its labels and its pose.
func (s *kitti) FilesOf(at int64) []string {
	if at < 0 || at >= int64(len(s.scans)) {
		return nil
	}
	sc := &s.scans[at]
	files := existing(filesys.Join(s.layout.data, sc.name), s.extras.labelsOf(sc))
	if o, ok := s.extras.poses.(*oxts); ok {
		files = append(files, existing(o.fileOf(sc.number))...)
	}
	return files
}

func (s *cloudFiles) seek(_ context.Context, at int64) error {
	return s.goTo(at, &s.next, len(s.files))
}
func (s *cloudFiles) common() []string { return nil }

// FilesOf returns the file of an item.
func (s *cloudFiles) FilesOf(at int64) []string {
	if at < 0 || at >= int64(len(s.files)) {
		return nil
	}
	return existing(s.files[at].path())
}

func (s *cloudFiles) sequenceName() string {
	return only(len(s.files), func(i int) string { return s.files[i].folder.sequence })
}

// only returns the name that n things have, if it is the same of all.
func only(n int, name func(i int) string) string {
	for i := 1; i < n; i++ {
		if name(i) != name(0) {
			return ""
		}
	}
	if n == 0 {
		return ""
	}
	return name(0)
}

func (s *tableFiles) seek(_ context.Context, at int64) error {
	return s.goTo(at, &s.next, len(s.files))
}
func (s *tableFiles) common() []string { return nil }

// FilesOf returns the file of an item.
func (s *tableFiles) FilesOf(at int64) []string {
	if at < 0 || at >= int64(len(s.files)) {
		return nil
	}
	return existing(s.files[at].path)
}

func (s *tableFiles) sequenceName() string {
	return only(len(s.files), func(i int) string { return s.files[i].sequence })
}

func (s *argoverse2) seek(_ context.Context, at int64) error {
	return s.goTo(at, &s.next, len(s.sweeps))
}

// common returns the poses of the logs.
func (s *argoverse2) common() (files []string) {
	last := ""
	for i := range s.sweeps {
		if log := s.sweeps[i].log; log != last {
			files = append(files, existing(firstFile(filesys.Join(log, avPosesFile)))...)
			last = log
		}
	}
	return files
}

// FilesOf returns the file of an item.
func (s *argoverse2) FilesOf(at int64) []string {
	if at < 0 || at >= int64(len(s.sweeps)) {
		return nil
	}
	return existing(s.sweeps[at].file)
}

func (s *argoverse2) sequenceName() string {
	return only(len(s.sweeps), func(i int) string { return filesys.Base(s.sweeps[i].log) })
}

func (s *nuScenes) seek(_ context.Context, at int64) error { return s.goTo(at, &s.next, len(s.sweeps)) }

// common returns the tables that were read.
func (s *nuScenes) common() []string { return existing(s.tables...) }

// FilesOf returns the file of an item.
func (s *nuScenes) FilesOf(at int64) []string {
	if at < 0 || at >= int64(len(s.sweeps)) {
		return nil
	}
	return existing(s.sweeps[at].path())
}

func (s *nuScenes) sequenceName() string {
	return only(len(s.sweeps), func(i int) string {
		if s.sweeps[i].clock != NoClock {
			return ""
		}
		return s.sweeps[i].sequence
	})
}

// container is a Source whose items lie in files that hold many, where an input may name their folder.
type container interface{ containers() []string }

func (s *mcapSource) containers() (paths []string) {
	for _, f := range s.files {
		paths = append(paths, f.path)
	}
	return paths
}

// containers returns the parts of a bag, with what belongs to them.
func (s *rosbag) containers() (paths []string) {
	for i, p := range s.parts {
		if meta := firstFile(filesys.Join(filesys.Dir(p.path), metadataFile)); meta != "" && i == 0 {
			paths = append(paths, meta)
		}
		paths = append(paths, p.path, firstFile(p.path+"-wal"), firstFile(p.path+"-journal"))
	}
	return paths
}

// containers returns the files of segments, of version 2 those of their components.
func (s *waymoSource) containers() (paths []string) {
	for _, in := range s.segments {
		paths = append(paths, in.path)
		for _, folder := range []string{"lidar_calibration", "lidar_pose", "vehicle_pose"} {
			if in.second {
				paths = append(paths, firstFile(filesys.Join(filesys.Dir(filesys.Dir(in.path)), folder,
					filesys.Base(in.path))))
			}
		}
	}
	return paths
}

func (s *mcapSource) sequenceName() string {
	return only(len(s.files), func(i int) string { return s.files[i].sequence })
}

func (s *rosbag) sequenceName() string {
	return only(len(s.parts), func(i int) string { return s.parts[i].sequence })
}

// labelsOf returns the path of the labels of a scan; empty: there are none.
func (x *kittiExtras) labelsOf(sc *scan) string {
	if x.labels == "" {
		return ""
	}
	stem := unpackedName(sc.name)
	path := filesys.Join(x.labels, strings.TrimSuffix(stem, filepath.Ext(stem))+".label")
	return firstFile(path, path+".gz", path+".zst")
}

// fileOf returns the path of a frame; empty: there is none.
func (o *oxts) fileOf(n int64) string {
	return firstFile(filesys.Join(o.folder, fmt.Sprintf("%010d.txt", n)))
}
