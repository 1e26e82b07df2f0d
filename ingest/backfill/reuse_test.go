package backfill

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"entropipe/ingest/replay"
	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// tree is an archive for plans: each file below its roots is an input of three items, or
// each folder with files is one input with an item for each file.
type tree struct {
	replay.Archive // panics: a plan does not open inputs
	roots          []string
	folders        bool
}

const treeItems = 3

func (a *tree) Parts(_ context.Context, f func(*replay.Part) error) error {
	for _, root := range a.roots {
		folders := map[string][]string{}
		var order []string
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			folder := path
			if a.folders {
				folder = filepath.Dir(path)
			}
			if folders[folder] == nil {
				order = append(order, folder)
			}
			folders[folder] = append(folders[folder], path)
			return nil
		})
		if err != nil {
			return err
		}
		for _, folder := range order {
			files := folders[folder]
			p := &replay.Part{Input: replay.Input{Format: "test", Path: folder}, Items: treeItems, Common: files}
			if a.folders {
				p.Items, p.Common = int64(len(files)), nil
				p.Of = func(i int64) []string { return files[i : i+1] }
				for _, file := range files {
					p.Input.Files = append(p.Input.Files, filepath.Base(file))
				}
			}
			p.Frames = p.Items
			if err := f(p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *tree) Stat(_ context.Context, path string, sum bool) (replay.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return replay.File{}, err
	}
	f := replay.File{Path: path, Size: info.Size(), ModTime: info.ModTime().UnixNano()}
	if sum {
		data, err := os.ReadFile(path)
		if err != nil {
			return f, err
		}
		s := sha256.Sum256(data)
		f.SHA256 = hex.EncodeToString(s[:])
	}
	return f, nil
}

// write makes files with times that differ.
func write(t *testing.T, files ...string) {
	t.Helper()
	for _, name := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(filepath.Base(name)), 0o600); err != nil {
			t.Fatal(err)
		}
		touch(t, name, 0)
	}
}

// touch gives a file a time that its name and n decide.
func touch(t *testing.T, name string, n int) {
	t.Helper()
	sum := sha256.Sum256([]byte(filepath.Base(name)))
	at := time.Unix(1.7e9+int64(sum[0])<<8+int64(sum[1])+int64(n), 0)
	if err := os.Chtimes(name, at, at); err != nil {
		t.Fatal(err)
	}
}

// flags decide the rows of the test's outputs.
var flags = sinks.Content{"ops": "hull2d"}

// outputIn makes an output in a folder, or opens it.
func outputIn(t *testing.T, dir string, content sinks.Content) (*sinks.Local, *sinks.Output) {
	t.Helper()
	s, err := sinks.OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	e, err := tables.New(tables.Config{})
	if err != nil {
		t.Fatal(err)
	}
	o, err := sinks.Open(t.Context(), s, e, sinks.Config{Content: content})
	if err != nil {
		t.Fatal(err)
	}
	return s, o
}

// fill commits what is left of the lanes of a plan, in commits of so many items.
func fill(t *testing.T, o *sinks.Output, p *record.Plan, size int64) (computed []int32) {
	t.Helper()
	ctx := t.Context()
	if err := o.Base(ctx, p.Name, schemas.TopicID{}, nil); err != nil {
		t.Fatal(err)
	}
	for i := range p.Segments {
		for k, n := range p.Segments[i].Numbers {
			end := p.Segments[i].Items[k]
			pos, err := o.Resume(ctx, p.Name, n)
			if err != nil {
				t.Fatal(err)
			}
			if pos.Next < end {
				computed = append(computed, n)
			}
			for at := pos.Next; at < end; at += size {
				commit(t, o, p.Name, n, at, min(at+size, end))
			}
		}
	}
	slices.Sort(computed)
	return computed
}

// commit commits items that are all rejects.
func commit(t *testing.T, o *sinks.Output, topic string, lane int32, start, end int64) {
	t.Helper()
	b := &schemas.Batch{Topic: topic, Partition: lane, Start: start, End: end, Messages: end - start,
		Last: &schemas.RecordID{Offset: end - 1}}
	for at := start; at < end; at++ {
		b.Rejects = append(b.Rejects, schemas.Reject{Topic: topic, Partition: lane, Offset: at, Index: -1,
			Stage: schemas.StageDecode, Reason: "not_arrow", Value: []byte("x"), ValueSize: 1})
	}
	if _, err := o.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// archiveIn returns the options and the archive of roots.
func archiveIn(folders bool, roots ...string) (Options, *tree) {
	return Options{Roots: roots, Source: map[string]string{"format": "test"}}, &tree{roots: roots, folders: folders}
}

// lanesOf returns the input of each lane, with its first item, by number.
func lanesOf(t *testing.T, s sinks.Reader, p *record.Plan) map[int32]string {
	t.Helper()
	lanes := map[int32]string{}
	err := eachLane(t.Context(), s, p, func(l *record.Lane) error {
		lanes[l.Number] = fmt.Sprintf("%d/%s+%d", l.Root, l.Input.Path, l.First)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lanes
}

// Law: a lane whose input, range and files are as before keeps its number and is taken
// over; all others have numbers that no lane had. The numbers of lanes that are gone are
// free.
func TestLanesKeepTheirNumbers(t *testing.T) {
	type lanes = map[int32]string
	before := lanes{0: "0/1+0", 1: "0/2+0", 2: "0/3+0", 3: "0/4+0"}
	without2 := lanes{0: "0/1+0", 4: "0/2+0", 2: "0/3+0", 3: "0/4+0"}
	all, not1 := []int32{0, 1, 2, 3}, []int32{0, 2, 3}
	for name, c := range map[string]struct {
		folders  bool
		identity string
		change   func(t *testing.T, dir string) (roots []string) // nil: a alone
		want     lanes                                           // of the new plan
		same     []int32                                         // lanes that are taken over
	}{
		"nothing":        {want: before, same: all},
		"a file touched": {change: touched("a/2"), want: without2, same: not1},
		"a file touched, by checksum": {identity: record.BySHA256, change: touched("a/2"), want: before,
			same: all},
		"a file changed": {change: changed("a/2"), want: without2, same: not1},
		"a file changed, by checksum": {identity: record.BySHA256, change: changed("a/2"), want: without2,
			same: not1},
		"a file added in the middle": {change: added("a/21"),
			want: lanes{0: "0/1+0", 1: "0/2+0", 4: "0/21+0", 2: "0/3+0", 3: "0/4+0"}, same: all},
		"files added at both ends": {change: added("a/0", "a/9"),
			want: lanes{4: "0/0+0", 0: "0/1+0", 1: "0/2+0", 2: "0/3+0", 3: "0/4+0", 5: "0/9+0"}, same: all},
		"a file removed": {change: removed("a/1"), want: lanes{1: "0/2+0", 2: "0/3+0", 3: "0/4+0"},
			same: []int32{1, 2, 3}},
		"all files replaced":            {change: both(removed("a"), added("a/8")), want: lanes{4: "0/8+0"}},
		"the archive mounted elsewhere": {change: both(renamed("a", "z"), read("z")), want: before, same: all},
		"another folder first": {change: both(added("y/1"), read("y", "a")),
			want: lanes{4: "0/1+0", 0: "1/1+0", 1: "1/2+0", 2: "1/3+0", 3: "1/4+0"}, same: all},
		"another folder with such files": {change: both(added("y/1"), read("y", "x")), want: lanes{4: "0/1+0"}},
		// one input of four items, in lanes of two
		"items: nothing": {folders: true, want: lanes{0: "0/.+0", 1: "0/.+2"}, same: []int32{0, 1}},
		"items: the last one touched": {folders: true, change: touched("a/4"),
			want: lanes{0: "0/.+0", 2: "0/.+2"}, same: []int32{0}},
		"items: one at the end": {folders: true, change: added("a/9"),
			want: lanes{0: "0/.+0", 1: "0/.+2", 2: "0/.+4"}, same: []int32{0, 1}},
		"items: one in the middle": {folders: true, change: added("a/21"),
			want: lanes{0: "0/.+0", 2: "0/.+2", 3: "0/.+4"}, same: []int32{0}},
		"items: the first one gone": {folders: true, change: removed("a/1"), want: lanes{2: "0/.+0", 3: "0/.+2"}},
		"items: mounted elsewhere": {folders: true, change: both(renamed("a", "z"), read("z")), // another sequence
			want: lanes{2: "0/.+0", 3: "0/.+2"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			added("a/1", "a/2", "a/3", "a/4")(t, dir)
			if err := os.Mkdir(filepath.Join(dir, "x"), 0o755); err != nil {
				t.Fatal(err)
			}
			opt, archive := archiveIn(c.folders, filepath.Join(dir, "a"))
			opt.items, opt.Identity = 2, c.identity
			if !c.folders {
				opt.items = treeItems
			}
			old, _ := outputIn(t, filepath.Join(dir, "old"), flags)
			first, err := Prepare(t.Context(), old, archive, opt)
			if err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				if roots := c.change(t, dir); roots != nil {
					for i := range roots {
						roots[i] = filepath.Join(dir, roots[i])
					}
					opt.Roots, archive.roots = roots, roots
				}
			}
			store, _ := outputIn(t, filepath.Join(dir, "new"), flags)
			opt.Identity = "" // that of the earlier plan
			for range 2 {     // the second search finds the same plan
				e, err := ReadEarlier(t.Context(), old, opt)
				if err != nil {
					t.Fatal(err)
				}
				with, err := e.Options(t.Context(), store, opt)
				if err != nil {
					t.Fatal(err)
				}
				p, err := Prepare(t.Context(), store, archive, with)
				if err != nil {
					t.Fatal(err)
				}
				if p.Name != first.Name || p.Identity != first.Identity {
					t.Errorf("plan %s by %s, want %s by %s", p.Name, p.Identity, first.Name, first.Identity)
				}
				if diff := cmp.Diff(c.want, lanesOf(t, store, p)); diff != "" {
					t.Error(diff)
				}
				same, err := e.Lanes(t.Context(), store, p)
				if err != nil {
					t.Fatal(err)
				}
				var numbers []int32
				for n := range same {
					numbers = append(numbers, n)
				}
				if slices.Sort(numbers); !slices.Equal(numbers, c.same) {
					t.Errorf("lanes %d are taken over, want %d", numbers, c.same)
				}
			}
		})
	}
}

// both makes two changes; the second one says where the archive is.
func both(first, second func(*testing.T, string) []string) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string { first(t, dir); return second(t, dir) }
}

// read names the roots of the archive.
func read(roots ...string) func(*testing.T, string) []string {
	return func(*testing.T, string) []string { return slices.Clone(roots) }
}

func touched(name string) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string { touch(t, filepath.Join(dir, name), 1); return nil }
}

// changed writes other bytes of the same length, at another time.
func changed(name string) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		return touched(name)(t, dir)
	}
}

func added(names ...string) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string {
		t.Helper()
		for _, name := range names {
			write(t, filepath.Join(dir, name))
		}
		return nil
	}
}

func removed(name string) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string {
		t.Helper()
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		return nil
	}
}

func renamed(from, to string) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string {
		t.Helper()
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
		return nil
	}
}

// What an earlier output cannot be is said before anything is searched.
func TestEarlierPlans(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a/1"), filepath.Join(dir, "b/2"))
	old, _ := outputIn(t, filepath.Join(dir, "old"), flags)
	opt, archive := archiveIn(false, filepath.Join(dir, "a"))
	says := func(what string, opt Options, want string) {
		t.Helper()
		_, err := ReadEarlier(t.Context(), old, opt)
		if wrong := (*sinks.ConfigError)(nil); !errors.As(err, &wrong) || wrong.Field != "reuse" ||
			!strings.Contains(wrong.Problem, want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	says("no plan", opt, "not the output of a backfill")
	a, err := Prepare(t.Context(), old, archive, opt)
	if err != nil {
		t.Fatal(err)
	}
	with := opt
	with.Identity = record.BySHA256
	says("by another identity", with, "by mtime")
	with = opt
	with.Plan = "other"
	says("a name", with, "no plan with the name other")
	optB, archiveB := archiveIn(false, filepath.Join(dir, "b"))
	b, err := Prepare(t.Context(), old, archiveB, optB)
	if err != nil {
		t.Fatal(err)
	}
	for want, opt := range map[*record.Plan]Options{a: opt, b: optB} {
		if e, err := ReadEarlier(t.Context(), old, opt); err != nil || e.Plan().Name != want.Name {
			t.Errorf("plan of %s: %v", opt.Roots, err)
		}
	}
	with, _ = archiveIn(false, filepath.Join(dir, "c"))
	says("roots of none of two", with, "name one with --plan")
	with.Plan = b.Name
	if e, err := ReadEarlier(t.Context(), old, with); err != nil || e.Plan().Name != b.Name {
		t.Errorf("named: %v", err)
	}
	with = opt
	with.Source = map[string]string{"format": "test", "dataset": "other"}
	e, err := ReadEarlier(t.Context(), old, with)
	if err != nil || !strings.Contains(e.Why(), "dataset: (none) -> other") {
		t.Fatalf("%v", err)
	}
	store, _ := outputIn(t, filepath.Join(dir, "new"), flags)
	if with, err = e.Options(t.Context(), store, with); err != nil || with.Plan != "" || with.Number != nil {
		t.Errorf("%+v, %v", with, err)
	}
	p, err := Prepare(t.Context(), store, archive, with)
	if err != nil {
		t.Fatal(err)
	}
	if same, err := e.Lanes(t.Context(), store, p); err != nil || len(same) > 0 {
		t.Errorf("lanes %v of other messages are the same, %v", same, err)
	}
}

// earlier is an output of as many files as lanes, all computed.
type earlier struct {
	dir     string
	opt     Options
	archive *tree
	old     *sinks.Local
	plan    *record.Plan
}

// newEarlier makes an output of so many lanes, with commits of so many items.
func newEarlier(t *testing.T, lanes int, size int64) *earlier {
	t.Helper()
	h := &earlier{dir: t.TempDir()}
	for i := range lanes {
		write(t, filepath.Join(h.dir, "a", fmt.Sprintf("%03d", i)))
	}
	h.opt, h.archive = archiveIn(false, filepath.Join(h.dir, "a"))
	var o *sinks.Output
	h.old, o = outputIn(t, filepath.Join(h.dir, "old"), flags)
	var err error
	if h.plan, err = Prepare(t.Context(), h.old, h.archive, h.opt); err != nil {
		t.Fatal(err)
	}
	if n := len(fill(t, o, h.plan, size)); n != lanes {
		t.Fatalf("%d lanes", n)
	}
	return h
}

// process adopts into a folder as one process does, and returns the output and its plan.
func (h *earlier) process(t *testing.T, dir string, content sinks.Content, shard Shard) (*sinks.Output, *record.Plan,
	*AdoptedLanes, string) {
	t.Helper()
	ctx := t.Context()
	store, o := outputIn(t, dir, content)
	e, err := ReadEarlier(ctx, h.old, h.opt)
	if err != nil {
		t.Fatal(err)
	}
	opt, err := e.Options(ctx, store, h.opt)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Prepare(ctx, store, h.archive, opt)
	if err != nil {
		t.Fatal(err)
	}
	same, err := e.Lanes(ctx, store, p)
	if err != nil {
		t.Fatal(err)
	}
	former, err := sinks.OpenFormer(ctx, h.old)
	if err == nil {
		err = o.Base(ctx, p.Name, schemas.TopicID{}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	a := Adoption{Output: o, Former: former, Plan: p, Lanes: same, Shard: shard, Jobs: 3,
		Log: slog.New(slog.NewTextHandler(&log, nil))}
	sum, err := a.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return o, p, sum, log.String()
}

// Of a hundred files one is touched: one lane is computed, and every other file of a
// table is the same inode as before. A second run adopts and computes nothing.
func TestOneOfAHundred(t *testing.T) {
	h := newEarlier(t, 100, treeItems)
	touch(t, filepath.Join(h.dir, "a/042"), 1)
	dir := filepath.Join(h.dir, "new")
	o, p, sum, _ := h.process(t, dir, flags, Shard{})
	if text := sum.String(); text != "adopted 99 of 100 lanes, 1 changed" || sum.Copied > 0 || sum.Linked != 99 {
		t.Errorf("%s: %+v", text, sum)
	}
	if computed := fill(t, o, p, treeItems); !slices.Equal(computed, []int32{100}) {
		t.Errorf("lanes %d are computed", computed)
	}
	shared, own := 0, 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, record.DataSuffix) {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		mine, err := os.Stat(path)
		if err != nil {
			return err
		}
		if theirs, err := os.Stat(filepath.Join(h.dir, "old", rel)); err == nil && os.SameFile(mine, theirs) {
			shared++
		} else {
			own++
		}
		return nil
	})
	if err != nil || shared != 99 || own != 1 {
		t.Errorf("%d shared files, %d own, %v", shared, own, err)
	}
	o, p, sum, _ = h.process(t, dir, flags, Shard{})
	if sum.Adopted != 99 || sum.Linked > 0 || len(fill(t, o, p, treeItems)) > 0 {
		t.Errorf("again: %s: %+v", sum, sum)
	}
}

// Shards, and processes without shards that run at once, adopt every lane once.
func TestManyProcessesAdopt(t *testing.T) {
	h := newEarlier(t, 9, 2)
	for _, sharded := range []bool{true, false} {
		dir := filepath.Join(h.dir, fmt.Sprintf("new-%t", sharded))
		var wg sync.WaitGroup
		sums := make([]*AdoptedLanes, 3)
		for i := range sums {
			var shard Shard
			if sharded {
				shard = Shard{int32(i), 3}
			}
			wg.Go(func() { _, _, sums[i], _ = h.process(t, dir, flags, shard) })
		}
		wg.Wait()
		total, linked := 0, int64(0)
		for _, s := range sums {
			total += s.Adopted
			linked += s.Linked
		}
		if want := map[bool]int{true: 9, false: 27}[sharded]; total != want || linked != 18 {
			t.Errorf("sharded %t: %d lanes, %d files", sharded, total, linked)
		}
		o, p, _, _ := h.process(t, dir, flags, Shard{})
		if computed := fill(t, o, p, treeItems); len(computed) > 0 {
			t.Errorf("sharded %t: lanes %d are computed", sharded, computed)
		}
	}
}

// What of equal lanes cannot be adopted is counted by its reason, and computed.
func TestLanesThatCannotBeAdopted(t *testing.T) {
	h := newEarlier(t, 8, 2)
	file := func(lane int32, start, end int64) string {
		name := fmt.Sprintf("part-%d-%020d-%020d.parquet", lane, start, end)
		return filepath.Join(h.dir, "old", "rejects", "topic="+h.plan.Name, name)
	}
	for _, name := range []string{file(3, 0, 2), file(4, 2, 3)} {
		if err := os.Truncate(name, 10); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(h.dir, "old",
		record.ManifestName(record.TopicPartition{Topic: h.plan.Name, ID: 5}, 2))); err != nil {
		t.Fatal(err)
	}
	o, p, sum, log := h.process(t, filepath.Join(h.dir, "new"), flags, Shard{})
	if text := sum.String(); text != "adopted 5 of 8 lanes, 0 changed, 2 adopted in part, 1 not adopted" {
		t.Errorf("%s: %+v", text, sum)
	}
	for _, want := range []string{"it has 10 bytes", "it ends at offset 2 there"} {
		if !strings.Contains(log, want) || !strings.Contains(strings.Join(sum.Reasons(), "\n"), want) {
			t.Errorf("no word of %q in %s\n%q", want, log, sum.Reasons())
		}
	}
	if computed := fill(t, o, p, treeItems); !slices.Equal(computed, []int32{3, 4, 5}) {
		t.Errorf("lanes %d are computed", computed)
	}
	_, _, sum, _ = h.process(t, filepath.Join(h.dir, "new"), flags, Shard{})
	if text := sum.String(); text != "adopted 5 of 8 lanes, 0 changed, 3 computed before" {
		t.Errorf("again: %s", text)
	}
	other := sinks.Content{"ops": "hull3d"}
	_, _, sum, log = h.process(t, filepath.Join(h.dir, "other"), other, Shard{})
	if sum.Not != 8 || len(sum.Whys) != 1 || !strings.Contains(log, "ops: hull2d -> hull3d") {
		t.Errorf("other flags: %+v\n%s", sum, log)
	}
}
