package replay

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"entropipe/ingest/filesys"
)

// Bounds of the search for scans below a folder that has none: a mistake is to be
// explained at once, also where the folder is a whole disk.
const (
	findDepth   = 5    // data sets are: dates, drives, velodyne_points, data
	findFolders = 2000 // folders that are read
	findNames   = 4096 // names that are read of each folder
	findMost    = 4    // data sets that the error names
)

// noScans is the error of a folder without scans. It names folders below that
// have some.
func noScans(dir string) error {
	found, more := foldersWithScans(dir)
	if len(found) == 0 {
		return fmt.Errorf("kitti: %w in %s; want a raw drive (velodyne_points/data), a sequence (velodyne), or a "+
			"folder of .bin files", errNoScans, dir)
	}
	text := strings.Join(found, ", ")
	if more {
		text += ", …"
	}
	if len(found) == 1 && !more {
		return fmt.Errorf("kitti: %w in %s itself; name the folder that has them: %s", errNoScans, dir, text)
	}
	return fmt.Errorf("kitti: %w in %s itself; name one of the folders that have them: %s", errNoScans, dir, text)
}

// foldersWithScans looks below dir, level by level. more: there are others, or
// not all folders were looked into.
func foldersWithScans(dir string) (found []string, more bool) {
	looked := 0
	for level, folders := 0, []string{dir}; level <= findDepth && len(folders) > 0; level++ {
		var below []string
		for _, folder := range folders {
			if looked++; looked > findFolders {
				return found, true
			}
			entries := someEntries(folder)
			if level > 0 && slices.ContainsFunc(entries, isScan) {
				if len(found) == findMost {
					return found, true
				}
				found = append(found, folder)
				continue
			}
			for _, e := range entries {
				if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
					below = append(below, filesys.Join(folder, e.Name()))
				}
			}
		}
		folders = below
	}
	return found, false
}

// someEntries returns at most findNames entries of a folder, in order; none of
// one that cannot be read.
func someEntries(folder string) []fs.DirEntry {
	var entries []fs.DirEntry
	_ = filesys.Each(folder, func(e fs.DirEntry) bool { // the names read before an error are enough
		entries = append(entries, e)
		return len(entries) < findNames
	})
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries
}

// isScan tells whether a file may be a scan by its name.
func isScan(e fs.DirEntry) bool {
	name := unpackedName(e.Name())
	return !e.IsDir() && !strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".bin")
}
