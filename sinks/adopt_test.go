package sinks_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/internal/disk"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/read"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

const adoptEnd = 20 // three commits: 8, 8, 4 records

// flags are the content of both outputs.
var flags = sinks.Content{"ops": "hull2d", "tables": "hulls"}

// former makes the other output on a disk.
func former(t *testing.T, s sinks.Store) {
	t.Helper()
	w := sinktest.Writer{Store: s, End: adoptEnd, Roll: sinktest.Roll(8), Fail: sinktest.IsCrash, Content: flags,
		Tables: []string{tables.Hulls}}
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// formerInMemory returns another output, all of it durable.
func formerInMemory(t *testing.T) *sinktest.MemDisk {
	t.Helper()
	formerOnce.Do(func() {
		formerDisk = sinktest.NewMemDisk()
		former(t, sinktest.MemStore(formerDisk))
	})
	return formerDisk.Crash(sinktest.KeepAll) // a copy
}

var (
	formerOnce sync.Once
	formerDisk *sinktest.MemDisk
)

// adopter is a writer that adopts what it can, and writes the rest in commits of five.
func adopter(s sinks.Store, from sinks.Reader) *sinktest.Writer {
	return &sinktest.Writer{Store: s, End: adoptEnd, Roll: sinktest.Roll(5), Fail: sinktest.IsCrash, Content: flags,
		Tables: []string{tables.Hulls}, Former: from}
}

// manifestsOf returns the manifests of the log, by start.
func manifestsOf(t *testing.T, s sinks.Reader) map[int64]*record.Manifest {
	t.Helper()
	found := map[int64]*record.Manifest{}
	p := record.TopicPartition{Topic: sinktest.LogTopic, ID: 0}
	names, err := s.Names(t.Context(), record.ManifestFolder(p))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if start, ok := record.ManifestStart(name); ok {
			if found[start], err = sinks.ReadManifest(t.Context(), s, record.ManifestName(p, start)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return found
}

// mustBeClean fails the test if anything is left in staging or aside. What a crash leaves
// beside the record of a configuration goes with the next commit that needs one.
func mustBeClean(t *testing.T, d *sinktest.MemDisk) {
	t.Helper()
	maps.DeleteFunc(d.Live.Files, func(name string, _ *sinktest.Inode) bool {
		return strings.HasPrefix(name, record.ConfigsFolder+"/"+record.NewPrefix)
	})
	sinktest.MustBeClean(t, d)
}

// mustBeAdopted fails the test unless s holds the log once, all of it adopted from the
// other output: equal manifests but for uuid, staged names, time and the name of that output.
func mustBeAdopted(t *testing.T, s, from sinks.Reader) {
	t.Helper()
	sinktest.MustBeWhole(t, s, 0, adoptEnd)
	other, err := sinks.OpenFormer(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	want, got := manifestsOf(t, from), manifestsOf(t, s)
	if len(got) != len(want) {
		t.Errorf("%d manifests, %d there", len(got), len(want))
	}
	for start, m := range got {
		old := want[start]
		if old == nil || m.AdoptedFrom != other.UUID() || m.UUID == old.UUID {
			t.Fatalf("manifest at %d is not adopted: %+v", start, m)
		}
		m.UUID, m.AdoptedFrom, m.Created = old.UUID, old.AdoptedFrom, old.Created
		for i := range m.Files {
			m.Files[i].Staged = old.Files[i].Staged
		}
		if diff := cmp.Diff(old, m); diff != "" {
			t.Errorf("manifest at %d: %s", start, diff)
		}
	}
}

// Law: what is adopted is the other output's rows, files and counts, without one row
// computed, on every pair of stores; the other output stays as it is, byte by byte, and
// is needed no more.
func TestAdopt(t *testing.T) {
	folder := func(t *testing.T) *sinks.Local {
		s, err := sinks.OpenLocal(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	memory := func(*testing.T) *sinks.Local { return sinktest.MemStore(sinktest.NewMemDisk()) }
	for name, c := range map[string]struct {
		from, to func(*testing.T) *sinks.Local
		linked   bool
	}{
		"folder to folder": {folder, folder, true},
		"memory to memory": {memory, memory, true},
		"memory to folder": {memory, folder, false}, // no common file system
		"folder to memory": {folder, memory, false},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := c.from(t), c.to(t)
			former(t, from)
			before := allOf(t, from)
			w := adopter(to, from)
			if err := w.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			a := w.Adopted[0]
			if a.Commits != 3 || a.Next != adoptEnd || a.Why != "" || a.Bytes == 0 || (a.Linked > 0) != c.linked ||
				(a.Copied > 0) == c.linked {
				t.Errorf("%+v", a)
			}
			mustBeAdopted(t, to, from)
			mustBeCounted(t, to)
			if to.String() != "mem" && c.linked {
				sameInodes(t, to, from)
			}
			if diff := cmp.Diff(before, allOf(t, from)); diff != "" {
				t.Errorf("the other output has changed: %s", diff)
			}
			for _, f := range namesIn(t, to, record.StagingFolder) {
				t.Errorf("%s is left", f)
			}
			if err := w.Run(t.Context()); err != nil || w.Adopted[1].Commits != 0 || w.Adopted[1].Next != adoptEnd {
				t.Errorf("again: %+v, %v", w.Adopted[1], err)
			}
		})
	}
}

// mustBeCounted fails the test unless verify and info name the adopted commits.
func mustBeCounted(t *testing.T, s sinks.Reader) {
	t.Helper()
	r, err := read.Verify(t.Context(), s, read.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := read.Describe(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for what, found := range map[string][]read.AdoptedReport{"verify": r.Adopted, "info": d.Adopted} {
		if len(found) != 1 || found[0].Commits != 3 || found[0].Partitions != 1 {
			t.Errorf("%s: %+v", what, found)
		}
	}
	for _, text := range []string{r.String(), d.String()} {
		if !strings.Contains(text, "adopted: 3 commits of 1 partitions have files of output "+r.Adopted[0].From) {
			t.Errorf("adopted commits are not named:\n%s", text)
		}
	}
}

// sameInodes fails the test unless every file of a table has its bytes in both outputs
// only once.
func sameInodes(t *testing.T, to, from *sinks.Local) {
	t.Helper()
	n := 0
	for _, name := range namesIn(t, to, ".") {
		if !strings.HasSuffix(name, record.DataSuffix) {
			continue
		}
		mine, err := os.Lstat(filepath.Join(to.String(), name))
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := os.Lstat(filepath.Join(from.String(), name))
		if err != nil || !os.SameFile(mine, theirs) {
			t.Errorf("%s is another file (%v)", name, err)
		}
		n++
	}
	if n == 0 {
		t.Error("there are no files")
	}
}

// allOf returns the bytes of all files of a store.
func allOf(t *testing.T, s sinks.Reader) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range namesIn(t, s, ".") {
		data, err := sinks.ReadRecord(t.Context(), s, name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(data)
	}
	return all
}

// Law: what cannot be adopted is named, and computed; what stands before it is adopted.
func TestAdoptOnlyWhatIsWholeAndEqual(t *testing.T) {
	p := record.TopicPartition{Topic: sinktest.LogTopic, ID: 0}
	edit := func(start int64, change func(m *record.Manifest)) func(*testing.T, *sinktest.MemDisk) {
		return func(t *testing.T, d *sinktest.MemDisk) {
			name, m := sinktest.ManifestOf(t, d, start)
			change(m)
			d.Live.Files[name].Data = record.Encode(m)
		}
	}
	type files = map[string]*sinktest.Inode
	file := func(start int64, harm func(files files, name string)) func(*testing.T, *sinktest.MemDisk) {
		return func(t *testing.T, d *sinktest.MemDisk) {
			_, m := sinktest.ManifestOf(t, d, start)
			harm(d.Live.Files, m.Files[1].Path)
		}
	}
	cut := func(n *sinktest.Inode) { n.Data = n.Data[1:] }
	for name, c := range map[string]struct {
		harm    func(*testing.T, *sinktest.MemDisk)
		commits int64
		why     string
	}{
		"nothing committed": {func(t *testing.T, d *sinktest.MemDisk) {
			for _, start := range []int64{0, 8, 16} {
				delete(d.Live.Files, record.ManifestName(p, start))
			}
		}, 0, "nothing of it is there"},
		"it ends early": {func(t *testing.T, d *sinktest.MemDisk) {
			delete(d.Live.Files, record.ManifestName(p, 16))
		}, 2, "it ends at offset 16 there"},
		"a hole": {func(t *testing.T, d *sinktest.MemDisk) {
			delete(d.Live.Files, record.ManifestName(p, 8))
		}, 1, "it ends at offset 8 there"},
		"manifest damaged": {func(t *testing.T, d *sinktest.MemDisk) {
			d.Live.Files[record.ManifestName(p, 8)].Data[40] ^= 1
		}, 1, "is damaged"},
		"another configuration": {edit(8, func(m *record.Manifest) { m.ContentHash = strings.Repeat("ab", 32) }), 1,
			"made with another configuration"},
		"no configuration": {edit(0, func(m *record.Manifest) { m.ContentHash = "" }), 0, "is not recorded"},
		"a later format":   {edit(8, func(m *record.Manifest) { m.Format = 3 }), 1, "later version"},
		"one file twice":   {edit(8, func(m *record.Manifest) { m.Files = append(m.Files, m.Files[0]) }), 1, "twice"},
		"a commit beyond it": {edit(16, func(m *record.Manifest) { m.End++; m.Counts.Holes++ }), 2,
			"behind the end at 20"},
		"file missing":        {file(8, func(files files, name string) { delete(files, name) }), 1, "missing"},
		"file short":          {file(8, func(files files, name string) { cut(files[name]) }), 1, "bytes"},
		"bit flipped":         {file(8, func(files files, name string) { files[name].Data[9] ^= 1 }), 1, "SHA-256"},
		"newest file flipped": {file(16, func(files files, name string) { files[name].Data[9] ^= 1 }), 2, "SHA-256"},
	} {
		for _, linked := range []bool{true, false} {
			if !linked && batches.Sparse > 1 {
				continue
			}
			t.Run(fmt.Sprintf("%s, linked %t", name, linked), func(t *testing.T) {
				from, to := formerInMemory(t), sinktest.NewMemDisk()
				c.harm(t, from)
				sinktest.Settle(from)
				w := adopter(sinktest.MemStore(onOtherDisk(to, !linked)), sinktest.MemStore(from))
				if err := w.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if a := w.Adopted[0]; a.Commits != c.commits || !strings.Contains(a.Why, c.why) ||
					a.Linked > 0 && !linked || a.Copied > 0 && linked {
					t.Errorf("%+v, want %d commits, and %q", a, c.commits, c.why)
				}
				sinktest.MustBeWhole(t, sinktest.MemStore(to), 0, adoptEnd)
				sinktest.MustBeClean(t, to)
			})
		}
	}
}

// onOtherDisk returns a disk that cannot link files of another one, if other is set.
func onOtherDisk(d disk.Disk, other bool) disk.Disk {
	return &sinktest.FaultDisk{Disk: d, Before: func(op, name string) error {
		if other && op == "link" && strings.HasPrefix(name, record.StagingFolder) {
			return errors.Join(errors.ErrUnsupported, sinktest.PathError(op, name, syscall.EXDEV))
		}
		return nil
	}}
}

// What a whole output cannot be adopted from is said before anything is done.
func TestAdoptable(t *testing.T) {
	identity := func(change func(*record.Store)) func(*sinktest.MemDisk) {
		return func(d *sinktest.MemDisk) {
			s, err := record.ParseStore(d.Live.Files[record.StoreFile].Data)
			if err != nil {
				t.Fatal(err)
			}
			change(&s)
			d.Live.Files[record.StoreFile].Data = record.Encode(s)
		}
	}
	mine := sinktest.NewMemDisk()
	o := sinktest.OpenOn(t, sinktest.MemStore(mine))
	for name, c := range map[string]struct {
		harm func(*sinktest.MemDisk)
		says string
	}{
		"another output": {func(*sinktest.MemDisk) {}, ""},
		"no output":      {func(d *sinktest.MemDisk) { delete(d.Live.Files, record.StoreFile) }, "not an output"},
		"damaged":        {func(d *sinktest.MemDisk) { d.Live.Files[record.StoreFile].Data[30] ^= 1 }, "is damaged"},
		"this output":    {identity(func(s *record.Store) { s.UUID = o.UUID() }), "the output that is written"},
		"other folders": {identity(func(s *record.Store) { s.PartitionBy = []string{"dataset", "date"} }),
			"--partition-by dataset,date"},
		"an earlier format":    {identity(func(s *record.Store) { s.Format, s.Schema = 1, 1 }), "format is 1"},
		"a format of tomorrow": {identity(func(s *record.Store) { s.Format, s.Schema = 3, 3 }), "later version"},
	} {
		d := formerInMemory(t)
		c.harm(d)
		f, err := sinks.OpenFormer(t.Context(), sinktest.MemStore(d))
		if err == nil {
			err = o.Adoptable(f)
		}
		wrong := (*sinks.ConfigError)(nil)
		if c.says == "" && err != nil || c.says != "" && (!errors.As(err, &wrong) || wrong.Field != "reuse" ||
			!strings.Contains(wrong.Problem, c.says)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if c.says == "" || f == nil {
			continue
		}
		if _, err := o.Adopt(t.Context(), f, sinktest.LogTopic, 0, adoptEnd); !errors.As(err, &wrong) {
			t.Errorf("%s: adopted all the same: %v", name, err)
		}
	}
}

// A process that dies at any change of the disk, with any loss of what was not
// fsynced, while it adopts: the next one ends with the same output, all adopted,
// whether it is a copy or a link.
func TestAdoptCrashAtEveryOperation(t *testing.T) {
	from := formerInMemory(t)
	before := maps.Clone(sinktest.ContentsOf(from))
	for kind, copied := range []bool{false, true} {
		for phase, way := range []struct {
			name string
			keep func(n int) func() bool
		}{
			{"all lost", func(int) func() bool { return sinktest.KeepNone }},
			{"nothing lost", func(int) func() bool { return sinktest.KeepAll }},
			{"some lost", func(n int) func() bool { return sinktest.KeepSome(uint64(n)) }},
		} {
			t.Run(fmt.Sprintf("%s, copied %t", way.name, copied), func(t *testing.T) {
				step := 6 * batches.Sparse // the ways and kinds together crash at every change
				for n := (phase + 3*kind) % step; ; n += step {
					d := sinktest.NewMemDisk()
					p := sinktest.DieAt(d, n)
					w := adopter(sinktest.MemStore(onOtherDisk(&p.Disk, copied)), sinktest.MemStore(from))
					if err := w.Run(p.Ctx); !p.Dead {
						if err != nil {
							t.Fatalf("without a crash: %v", err)
						}
						t.Logf("%d places to crash", n)
						break
					}
					d = d.Crash(way.keep(n))
					for range 2 { // the second one has nothing to do but clean
						w := adopter(sinktest.MemStore(onOtherDisk(d, copied)), sinktest.MemStore(from))
						if err := w.Run(t.Context()); err != nil {
							t.Fatalf("after a crash at change %d: %v", n, err)
						}
					}
					mustBeAdopted(t, sinktest.MemStore(d), sinktest.MemStore(from))
					if mustBeClean(t, d); t.Failed() {
						t.Fatalf("after a crash at change %d", n)
					}
				}
			})
		}
	}
	if !maps.Equal(before, sinktest.ContentsOf(from)) {
		t.Error("the other output has changed")
	}
}

// Who dies while it adopts can be followed by one that computes, and the other way
// round.
func TestAdoptAfterACrashOfAnother(t *testing.T) {
	from := formerInMemory(t)
	for n := 0; ; n += 7 * batches.Sparse {
		alive := 0
		for _, adoptsFirst := range []bool{true, false} {
			d := sinktest.NewMemDisk()
			p := sinktest.DieAt(d, n)
			first, second := adopter(sinktest.MemStore(&p.Disk), sinktest.MemStore(from)), adopter(nil, nil)
			if !adoptsFirst {
				first.Former, second.Former = nil, sinktest.MemStore(from)
			}
			if first.Run(p.Ctx); !p.Dead {
				alive++
			}
			d = d.Crash(sinktest.KeepSome(uint64(n)))
			second.Store = sinktest.MemStore(d)
			for range 2 {
				if err := second.Run(t.Context()); err != nil {
					t.Fatalf("adopts first %t, after a crash at change %d: %v", adoptsFirst, n, err)
				}
			}
			sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, adoptEnd)
			if mustBeClean(t, d); t.Failed() {
				t.Fatalf("adopts first %t, after a crash at change %d", adoptsFirst, n)
			}
		}
		if alive == 2 {
			return
		}
	}
}

// Law: whichever call of either disk fails, once or for a while, with whatever error:
// nothing is lost or doubled. A fault of the other output stops nothing: the rest is
// computed.
func TestAdoptFaultAtEveryCall(t *testing.T) {
	defer sinks.SetCreateWait(sinks.SetCreateWait(time.Microsecond))
	for _, c := range []struct {
		name        string
		calls, step int
		hidden      bool
		ofOther     bool
	}{{"this disk, once", 1, 5, false, false}, {"this disk, once, hidden", 1, 5, true, false},
		{"this disk, for a while", 20, 11, false, false}, {"the other disk, once", 1, 1, false, true},
		{"the other disk, for a while", 20, 2, false, true}} {
		t.Run(c.name, func(t *testing.T) {
			from := formerInMemory(t)
			last := -1
			step := c.step * batches.Sparse
			for n := 0; n < 600; n += step {
				d := sinktest.NewMemDisk()
				refusal := refusals[n%len(refusals)]
				mine, theirs := disk.Disk(d), disk.Disk(from)
				var failed *int
				if c.ofOther {
					theirs, failed = broken(from, n, c.calls, refusal, c.hidden)
				} else {
					mine, failed = broken(d, n, c.calls, refusal, c.hidden)
				}
				w := adopter(sinktest.MemStore(mine), sinktest.MemStore(theirs))
				w.Fail = func(err error) error {
					if !errors.Is(err, refusal) {
						return fmt.Errorf("the disk's error is lost: %w", err)
					}
					if c.ofOther && len(w.Adopted) > 0 { // before, it is whether there is another output at all
						return fmt.Errorf("a fault of the other output stops this one: %w", err)
					}
					return nil
				}
				if err := w.Run(t.Context()); err != nil {
					t.Fatalf("%v at call %d: %v", refusal, n, err)
				}
				if *failed > 0 {
					last = n
				}
				sinktest.TakeOver(t, sinktest.MemStore(d), 0, adoptEnd, adoptEnd)
				mustBeClean(t, d)
				if sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, adoptEnd); t.Failed() {
					t.Fatalf("%v at call %d", refusal, n)
				}
				if n > last+2*step {
					break
				}
			}
			if t.Logf("%d calls", last+1); last < 30 || last > 580 {
				t.Errorf("the last call that failed is number %d", last)
			}
		})
	}
}

func broken(d disk.Disk, n, calls int, refusal syscall.Errno, hidden bool) (disk.Disk, *int) {
	f, failed := brokenFrom(d, n, calls, refusal, hidden)
	return f, failed
}

// Processes that adopt and processes that compute race on one partition, call by call,
// some of them dying on the way: every record is there once, whoever wins.
func TestAdoptingAndComputingWriters(t *testing.T) {
	const writers = 4 // two of each kind
	mixed := 0
	for seed := range uint64(max(4, 32/batches.Sparse)) {
		from, d := formerInMemory(t), sinktest.NewMemDisk()
		s := &turns{rng: rand.New(rand.NewPCG(seed, 5)), running: writers}
		var wg sync.WaitGroup
		errs := make([]error, writers)
		for i := range writers {
			rng := rand.New(rand.NewPCG(seed, uint64(100+i)))
			p := sinktest.DieAt(d, 1<<30)
			if i > 0 { // the first one lives
				p = sinktest.DieAt(d, rng.IntN(300))
			}
			die := p.Disk.Before
			p.Disk.Before = func(op, name string) error { s.wait(); return die(op, name) }
			w := adopter(sinktest.MemStore(&p.Disk), nil)
			if w.Roll = func() int { return 1 + rng.IntN(12) }; i%2 == 0 {
				w.Former = sinktest.MemStore(from)
			} else {
				w.Roll = sinktest.Roll(8) // the cuts of the other output: adopting goes on behind its commits
			}
			late := 0
			if w.Former != nil {
				late = rng.IntN(150) // adopting takes fewer calls, and would always be first
			}
			wg.Go(func() {
				defer s.done()
				for range late {
					s.wait()
				}
				if err := w.Run(p.Ctx); err != nil && !p.Dead {
					errs[i] = err
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		sinktest.TakeOver(t, sinktest.MemStore(d), 0, adoptEnd, 5)
		mustBeClean(t, d)
		if sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, adoptEnd); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		kinds := map[bool]bool{}
		for _, m := range manifestsOf(t, sinktest.MemStore(d)) {
			kinds[m.AdoptedFrom != ""] = true
		}
		mixed += len(kinds) - 1
	}
	if mixed == 0 {
		t.Error("no output has both adopted and computed commits: this test shows nothing")
	}
}

// An output whose last writer died before it moved the files of its newest commit can
// be adopted from: the files are still staged there, and stay so.
func TestAdoptStagedFiles(t *testing.T) {
	var found bool
	for n := 40; !found; n += 2 { // the manifest comes after some forty changes
		from := sinktest.NewMemDisk()
		p := sinktest.DieAt(from, n)
		w := adopter(sinktest.MemStore(&p.Disk), nil)
		if w.Roll = sinktest.Roll(adoptEnd); w.Run(p.Ctx) == nil {
			break
		}
		if len(manifestsOf(t, sinktest.MemStore(from))) == 0 {
			continue
		}
		_, m := sinktest.ManifestOf(t, from, 0)
		if from.Live.Files[m.Files[0].Staged] == nil {
			continue
		}
		found = true
		before := maps.Clone(sinktest.ContentsOf(from))
		d := sinktest.NewMemDisk()
		w = adopter(sinktest.MemStore(d), sinktest.MemStore(from))
		if err := w.Run(t.Context()); err != nil || w.Adopted[0].Commits != 1 {
			t.Fatalf("%+v, %v", w.Adopted, err)
		}
		mustBeAdopted(t, sinktest.MemStore(d), sinktest.MemStore(from))
		if !maps.Equal(before, sinktest.ContentsOf(from)) {
			t.Error("the other output has changed")
		}
	}
	if !found {
		t.Error("no crash leaves a manifest with staged files")
	}
}

// Outputs that share files: a repair of one moves names, never bytes, so the other
// stays whole. A deleted output takes nothing from the other.
func TestRepairBesideSharedFiles(t *testing.T) {
	for _, ofNew := range []bool{true, false} {
		from, d := formerInMemory(t), sinktest.NewMemDisk()
		if err := adopter(sinktest.MemStore(d), sinktest.MemStore(from)).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		harmed, other := from, d
		if ofNew {
			harmed, other = d, from
		}
		_, m := sinktest.ManifestOf(t, harmed, 16)
		delete(harmed.Live.Files, m.Files[0].Path) // its other name stays
		before := maps.Clone(sinktest.ContentsOf(other))
		r, err := read.Verify(t.Context(), sinktest.MemStore(harmed), read.VerifyOptions{Repair: true})
		if err != nil || r.OK || r.Repair.Files() == 0 {
			t.Fatalf("%v\n%s", err, r)
		}
		if err := r.Repair.Apply(t.Context(), sinktest.MemStore(harmed)); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(before, sinktest.ContentsOf(other)) {
			t.Errorf("repair of the new output %t: the other one has changed", ofNew)
		}
		sinktest.MustBeWhole(t, sinktest.MemStore(other), 0, adoptEnd)
		w := adopter(sinktest.MemStore(harmed), sinktest.MemStore(other))
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		sinktest.MustBeWhole(t, sinktest.MemStore(harmed), 0, adoptEnd)
		if a := w.Adopted[0]; a.Commits != 1 { // the repaired commit comes back from the other output
			t.Errorf("repair of the new output %t: %+v", ofNew, a)
		}
	}
}

// Adoption has one topic and one base like any writer: without the base it fails, and
// a partition that it completed takes commits behind it.
func TestCommitBehindAdopted(t *testing.T) {
	ctx := t.Context()
	from, d := formerInMemory(t), sinktest.NewMemDisk()
	o, err := sinks.Open(ctx, sinktest.MemStore(d), sinktest.EncoderOf(tables.Hulls), sinks.Config{Content: flags})
	if err != nil {
		t.Fatal(err)
	}
	f, err := sinks.OpenFormer(ctx, sinktest.MemStore(from))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Adopt(ctx, f, sinktest.LogTopic, 0, adoptEnd); !errors.Is(err, sinks.ErrNotFound) {
		t.Errorf("without a base: %v", err)
	}
	id := schemas.TopicID{1, 2, 3}
	if err := o.Base(ctx, sinktest.LogTopic, id, nil); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(ctx)
	end()
	if a, err := o.Adopt(ended, f, sinktest.LogTopic, 0, adoptEnd); !errors.Is(err, context.Canceled) || a.Commits > 0 {
		t.Errorf("after the end: %+v, %v", a, err)
	}
	if a, err := o.Adopt(ctx, f, sinktest.LogTopic, 0, adoptEnd); err != nil || a.Next != adoptEnd || a.Why != "" {
		t.Fatalf("%+v, %v", a, err)
	}
	pos, err := o.Resume(ctx, sinktest.LogTopic, 0)
	if want := sinktest.LogBatch(0, adoptEnd).Last; err != nil || pos.Next != adoptEnd || *pos.Last != *want {
		t.Fatalf("%+v, %v, want the last record %+v", pos, err, want)
	}
	b := sinktest.LogBatch(adoptEnd, 5)
	if b.TopicID = id; pos.TopicID != id {
		t.Errorf("the topic has id %s, want %s", pos.TopicID, id)
	}
	if _, err := o.Commit(ctx, b); err != nil {
		t.Fatal(err)
	}
	sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, adoptEnd+5)
	for start, m := range manifestsOf(t, sinktest.MemStore(d)) {
		if m.TopicID != id.String() {
			t.Errorf("manifest at %d has topic id %q", start, m.TopicID)
		}
	}
	adopted := slices.Collect(maps.Values(manifestsOf(t, sinktest.MemStore(d))))
	if n := len(slices.DeleteFunc(adopted, func(m *record.Manifest) bool { return m.AdoptedFrom == "" })); n != 3 {
		t.Errorf("%d adopted manifests", n)
	}
}
