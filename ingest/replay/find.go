package replay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"entropipe/ingest/filesys"
)

// deepest bounds the folders within folders that are looked into.
const deepest = 32

// finder looks for the inputs at some paths.
type finder struct {
	skips
	only   *form // --format; nil: the content decides
	inputs []Input
	groups map[group]int   // index of the input of these files
	seen   map[string]bool // folders that were looked into, without links
	others int             // files below folders that are of no format
	other  *sample         // the first of these
	first  *BadInputError  // the first bad input
	looked *atomic.Int64   // files that were looked at
	ctx    context.Context // the search's
	enough int             // inputs at which the search ends; 0: it does not
}

// errEnough ends a search.
var errEnough = errors.New("enough inputs were found")

// group is what the files of one input have in common.
type group struct {
	format *form
	folder string
}

// find returns the inputs at f.Paths.
func (f Files) find(ctx context.Context, looked *atomic.Int64) (*finder, error) {
	w := &finder{skips: skips{allowed: f.SkipBad, log: f.Log}, groups: map[group]int{}, seen: map[string]bool{},
		looked: looked, ctx: ctx, enough: f.First}
	if f.Format != "" {
		if w.only = formatNamed(f.Format); w.only == nil {
			return nil, fmt.Errorf("format %q is not known; the formats are %s", f.Format,
				strings.Join(Formats(), ", "))
		}
	}
	if len(f.Paths) == 0 {
		return nil, errors.New("no file or folder is named")
	}
	for _, path := range f.Paths {
		if err := w.path(path); err == errEnough {
			break
		} else if err != nil {
			return nil, err
		}
	}
	if len(w.inputs) == 0 {
		return nil, w.nothing(f.Paths)
	}
	w.sort()
	distinguish(w.inputs)
	w.say()
	return w, nil
}

// path adds the inputs at a path that a user named.
func (w *finder) path(path string) error {
	info, err := filesys.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(path, "*?["):
		found, _ := filesys.Glob(path) // a pattern that cannot be read matches nothing
		if len(found) == 0 {
			return w.bad(&BadInputError{File: path, Detail: "no file matches the pattern"})
		}
		slices.SortFunc(found, naturally)
		for _, p := range found {
			if err := w.path(p); err != nil {
				return err
			}
		}
		return nil
	case err != nil:
		return w.bad(missing(path, err))
	case info.IsDir():
		return w.folder(path, 0)
	}
	return w.file(filesys.Dir(path), filesys.Base(path), true)
}

// missing returns the error for a path that os.Stat refuses.
func missing(path string, err error) *BadInputError {
	if errors.Is(err, fs.ErrNotExist) {
		if to, failed := os.Readlink(path); failed == nil {
			return &BadInputError{File: path, Err: err,
				Detail: fmt.Sprintf("it is a link to %s, which does not exist", to)}
		}
		return &BadInputError{File: path, Detail: "there is no such file or folder", Err: err}
	}
	return unreadable(path, err)
}

// bad passes over a bad input if that is allowed.
func (w *finder) bad(err *BadInputError) error {
	if w.first == nil {
		w.first = err
	}
	return w.pass(err)
}

// file adds a file to the input that it belongs to. named: a user named it, and did not
// name its folder.
func (w *finder) file(dir, name string, named bool) error {
	path := filesys.Join(dir, name)
	if err := w.ctx.Err(); err != nil {
		return err
	}
	w.looked.Add(1)
	take := takeListed
	if named {
		take = takeSample
	}
	s, err := take(path)
	if err != nil {
		var bad *BadInputError
		if errors.As(err, &bad) {
			return w.bad(bad)
		}
		return err
	}
	if s.kind == lfsPointer && (named || w.awaits(s)) {
		return w.bad(pointerFault(path))
	}
	found := s.format()
	if s.kind == lfsPointer {
		found = nil
	}
	if w.only != nil && (named || found == nil && w.only.claims(s)) {
		found = w.only
	}
	switch {
	case found == nil && (named || len(s.head) == 0 && w.expected(s)):
		return w.bad(s.unknown())
	case found == nil || w.only != nil && found != w.only:
		if w.others++; w.other == nil {
			w.other = s
		}
		return nil
	}
	if found.plain && s.size < 0 {
		unpack := "zstd -d "
		if strings.HasSuffix(path, ".gz") {
			unpack = "gunzip "
		}
		return w.bad(&BadInputError{File: path, Detail: "it is " + s.kind + " that is compressed as a whole, which " +
			"is not read; unpack it first: " + unpack + path})
	}
	w.add(found, dir, name, s)
	return w.ended()
}

// ended returns errEnough if the search ends here.
func (w *finder) ended() error {
	if w.enough > 0 && len(w.inputs) >= w.enough {
		return errEnough
	}
	return nil
}

// claims reports whether a file below a folder whose content says nothing has the ending
// that the format's files have.
func (f *form) claims(s *sample) bool { return strings.HasSuffix(s.plain, "."+f.name) }

// expected reports whether the name of an empty file is that of a cloud.
func (w *finder) expected(s *sample) bool {
	return slices.Contains(Formats(), strings.TrimPrefix(filepath.Ext(s.plain), "."))
}

// add puts a file of a format into its input.
func (w *finder) add(found *form, folder, name string, s *sample) {
	g := group{found, folder}
	i, ok := w.groups[g]
	if !ok || found.alone {
		i = len(w.inputs)
		in := Input{Format: found.name, Path: folder}
		switch {
		case !found.alone:
			in.name = filesys.Base(absolute(folder))
		case found.name == FormatQuickDraw:
			in.name = s.word()
		}
		w.inputs = append(w.inputs, in)
		w.groups[g] = i
	}
	if in := &w.inputs[i]; !slices.Contains(in.Files[max(0, len(in.Files)-1):], name) {
		in.Files = append(in.Files, name)
	}
}

// folder adds the inputs in and below a folder.
func (w *finder) folder(dir string, depth int) error {
	whole, err := filesys.EvalSymlinks(dir)
	if err == nil {
		whole, err = filesys.Abs(whole)
	}
	if err != nil {
		return w.bad(missing(dir, err))
	}
	if w.seen[whole] || depth > deepest {
		return nil
	}
	w.seen[whole] = true
	names, err := readFolder(dir)
	if err != nil {
		return w.bad(unreadable(dir, err))
	}
	if isOutput(dir, names) && (w.only == nil || w.only.name == FormatParquet) {
		if !names.has("points") {
			return w.bad(noPoints(dir))
		}
		return w.folder(filesys.Join(dir, "points"), depth+1)
	}
	for _, f := range formats {
		if f.layout != nil && (w.only == nil || w.only == f) && f.layout(dir, names) {
			w.looked.Add(1)
			w.inputs = append(w.inputs, Input{Format: f.name, Path: dir})
			return w.ended()
		}
	}
	return w.entries(dir, names, depth)
}

// bookkeeping are folders in which lakes and outputs keep records of tables.
var bookkeeping = []string{"_commits", "_staging", "_quarantine", "_delta_log", "_temporary", "_spark_metadata"}

// entries adds the files of a folder, then what is below it.
func (w *finder) entries(dir string, names listing, depth int) error {
	var below []string
	for _, i := range names.natural() {
		name, mode := names[i].name, names[i].mode
		path := filesys.Join(dir, name)
		if mode&fs.ModeSymlink != 0 {
			info, err := filesys.Stat(path)
			if err != nil {
				if err := w.bad(missing(path, err)); err != nil {
					return err
				}
				continue
			}
			mode = info.Mode().Type()
		}
		packed := unpackedName(name)
		switch {
		case strings.HasPrefix(name, ".") || mode.IsDir() && slices.Contains(bookkeeping, name):
		case mode.IsDir():
			below = append(below, path)
		case !mode.IsRegular():
		case packed != name && names.has(packed): // the folder has the unpacked file, too
		default:
			if err := w.file(dir, name, false); err != nil {
				return err
			}
		}
	}
	for _, path := range below {
		if err := w.folder(path, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// nothing returns the error for paths without an input.
func (w *finder) nothing(paths []string) error {
	where := strings.Join(paths[:min(len(paths), 3)], ", ")
	if w.other == nil && w.count == 1 {
		return w.first
	}
	if w.other == nil {
		return &BadInputError{File: where, Detail: "there is no file to read" + w.hint()}
	}
	what := w.other.kind
	if what == "" {
		what = "of no known format"
	}
	return &BadInputError{File: where, Detail: fmt.Sprintf(
		"%d %s, and none is of a format that entropipe reads; %s is %s%s", w.others,
		plural(int64(w.others), "file is there", "files are there"), w.other.path, what, w.other.advice())}
}

func (w *finder) hint() string {
	if w.count > 0 {
		return fmt.Sprintf("; %d bad %s left out", w.count, plural(w.count, "input was", "inputs were"))
	}
	return ""
}

// sort puts the files of each input into their natural order.
func (w *finder) sort() {
	for i := range w.inputs {
		in := &w.inputs[i]
		slices.SortFunc(in.Files, naturally)
		in.Files = slices.Compact(in.Files)
	}
}

// distinguish gives inputs of one format that would have the same name the names of the folders
// above, as far as it takes.
func distinguish(inputs []Input) {
	same := map[string][]int{}
	for i := range inputs {
		if in := &inputs[i]; in.name != "" {
			name := in.Format + "/" + in.name
			same[name] = append(same[name], i)
		}
	}
	for _, of := range same {
		if len(of) < 2 {
			continue
		}
		paths := make([]string, len(of))
		for k, i := range of {
			if paths[k] = absolute(inputs[i].Path); inputs[i].single() {
				paths[k] = filesys.Join(paths[k], stemOf(inputs[i].Files[0]))
			}
		}
		for k, name := range uniqueEnds(paths) {
			inputs[of[k]].Sequence = name
		}
	}
}

// absolute returns path itself where the working directory is not known.
func absolute(path string) string {
	if whole, err := filesys.Abs(path); err == nil {
		return whole
	}
	return path
}

// uniqueEnds returns the last parts of each path, as many as make all of them different,
// joined by "_".
func uniqueEnds(paths []string) []string {
	parts := make([][]string, len(paths))
	most := 0
	for i, p := range paths {
		parts[i] = strings.Split(strings.Trim(filepath.ToSlash(p), "/"), "/")
		most = max(most, len(parts[i]))
	}
	ends := make([]string, len(paths))
	for n := 2; n <= most; n++ {
		seen := map[string]bool{}
		for i, p := range parts {
			ends[i] = strings.Join(p[max(0, len(p)-n):], "_")
			seen[ends[i]] = true
		}
		if len(seen) == len(paths) {
			break
		}
	}
	return ends
}

// mostSaid is how many inputs the log names.
const mostSaid = 50

// say logs the inputs, and how many files are none.
func (w *finder) say() {
	if w.log == nil {
		return
	}
	for i := range w.inputs[:min(len(w.inputs), mostSaid)] {
		in := &w.inputs[i]
		path, files := in.Path, max(len(in.Files), 1)
		if len(in.Files) == 1 {
			path = filesys.Join(path, in.Files[0])
		}
		args := []any{"format", in.Format, "path", path}
		if files > 1 {
			args = append(args, "files", files)
		}
		if in.Sequence != "" {
			args = append(args, "sequence", in.Sequence)
		}
		w.log.Info("found", args...)
	}
	if n := len(w.inputs) - mostSaid; n > 0 {
		w.log.Info(fmt.Sprintf("found %d more inputs", n))
	}
	if w.others > 0 {
		w.log.Info("files of no format that is read are left out", "count", w.others, "first", w.other.path)
	}
}

// naturally compares names as people order them: runs of digits by their numbers.
func naturally(a, b string) int {
	whole := strings.Compare(a, b)
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x > 0 && y > 0 {
			left, right := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0")
			if len(left) != len(right) {
				return len(left) - len(right)
			}
			if c := strings.Compare(left, right); c != 0 {
				return c
			}
			a, b = a[x:], b[y:]
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	if a == "" && b == "" {
		return whole // differ in zeros before numbers, or not at all
	}
	return len(a) - len(b)
}

// digits returns the number of digits that s begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}
