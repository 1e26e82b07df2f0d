package replay

import (
	"cmp"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"entropipe/ingest/filesys"
)

// packedSuffixes are the ends of the names of compressed files.
var packedSuffixes = []string{".gz", ".zst", ".zstd"}

// unpackedName returns a file's name without the suffix of its compression.
func unpackedName(name string) string {
	for _, suffix := range packedSuffixes {
		if plain, found := strings.CutSuffix(name, suffix); found {
			return plain
		}
	}
	return name
}

// stemOf returns a file's name without the suffixes of compression and format.
func stemOf(path string) string {
	name := unpackedName(filesys.Base(path))
	if plain, found := strings.CutSuffix(name, ".pcd.bin"); found {
		return plain
	}
	return strings.TrimSuffix(name, filepath.Ext(name))
}

// numberFiles sorts files by folder and natural order of their names, and gives them
// sequences, numbers and times.
func numberFiles(paths []string, log *slog.Logger) []cloudFile {
	folders := map[string]*cloudsOf{}
	files := make([]cloudFile, len(paths))
	for i, path := range paths {
		dir := filesys.Dir(path)
		if folders[dir] == nil {
			folders[dir] = &cloudsOf{dir: dir, sequence: folderName(dir)}
		}
		files[i] = cloudFile{folder: folders[dir], name: filesys.Base(path)}
	}
	slices.SortStableFunc(files, func(a, b cloudFile) int {
		if a.folder == b.folder {
			return cmp.Or(naturally(a.name, b.name), strings.Compare(a.name, b.name))
		}
		return naturally(a.folder.dir, b.folder.dir)
	})
	for from := 0; from < len(files); {
		to := from + 1
		for to < len(files) && files[to].folder == files[from].folder {
			to++
		}
		numberFolder(files[from:to], log)
		nameTimes(files[from:to])
		from = to
	}
	return files
}

// numberNames is numberFiles for files of one folder, whose names it keeps.
func numberNames(dir string, names []string, log *slog.Logger) []cloudFile {
	folder := &cloudsOf{dir: dir, sequence: folderName(dir)}
	files := make([]cloudFile, len(names))
	for i, name := range names {
		files[i] = cloudFile{folder: folder, name: name}
	}
	slices.SortStableFunc(files, func(a, b cloudFile) int { return naturally(a.name, b.name) })
	numberFolder(files, log)
	nameTimes(files)
	return files
}

// folderName returns the name of a folder, also of "." and "..".
func folderName(dir string) string {
	if whole, err := filesys.Abs(dir); err == nil {
		dir = whole
	}
	return filesys.Base(dir)
}

// numberFolder numbers the files of one folder by their names, if these are different
// integers, else by position.
func numberFolder(files []cloudFile, log *slog.Logger) {
	for i := range files {
		n, err := strconv.ParseUint(stemOf(files[i].name), 10, 63)
		// Equal integers are neighbours in natural order.
		twice := err == nil && i > 0 && files[i-1].number == int64(n)
		if err != nil || twice {
			if twice && log != nil {
				log.Warn("two files have the same number; frames are numbered by position", "second", files[i].path())
			}
			for k := range files {
				files[k].number = int64(k)
			}
			return
		}
		files[i].number = int64(n)
	}
}

// Bounds of times in names: 1990 and 2100. Digits that are no time are hardly between them
// in any unit.
const (
	firstPlausible = 631152000  // seconds since 1970
	lastPlausible  = 4102444800 // seconds since 1970
)

// nameTimes sets the times of the files of one folder, if all names end with a plausible
// time since 1970: seconds of 9 or 10 digits, perhaps with a fraction, or milliseconds,
// microseconds or nanoseconds, in the same unit for all.
func nameTimes(files []cloudFile) {
	unit := int64(0)
	for i := range files {
		ns, u := timeOfName(stemOf(files[i].name))
		if u == 0 || unit != 0 && u != unit {
			return
		}
		files[i].timeNs, unit = ns, u
	}
	files[0].folder.timed = true
}

// timeOfName returns the time at the end of a name, and the nanoseconds of its unit; 0: the
// name has none.
func timeOfName(name string) (ns, unit int64) {
	at := len(name)
	for at > 0 && isDigit(name[at-1]) {
		at--
	}
	if at > 1 && name[at-1] == '.' && isDigit(name[at-2]) && len(name)-at <= 9 {
		fraction := name[at:]
		whole, unit := timeOfName(name[:at-1])
		if unit != 1e9 {
			return 0, 0
		}
		part, err := strconv.ParseInt(fraction+"000000000"[len(fraction):], 10, 64)
		if err != nil {
			return 0, 0
		}
		return whole + part, 1e9
	}
	v, err := strconv.ParseInt(name[at:], 10, 64)
	if err != nil || name[at] == '0' {
		return 0, 0
	}
	for unit = 1e9; unit >= 1; unit /= 1000 {
		if perSecond := 1e9 / unit; v >= firstPlausible*perSecond && v < lastPlausible*perSecond &&
			v <= math.MaxInt64/unit {
			return v * unit, unit
		}
	}
	return 0, 0
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
