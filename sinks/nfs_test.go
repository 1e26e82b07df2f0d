package sinks_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/internal/disk"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/read"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

var nfsSeeds = flag.Uint64("nfs-seeds", 10, "orders of calls that writers on NFS are tried in")

// Law: writers on several machines that see one folder through a network file system, late,
// with lost answers and files that become stale, have each record once, interleaved call by
// call. Only errors that pass by themselves come out.
func TestWritersOnNFS(t *testing.T) {
	defer sinks.SetCreateWait(sinks.SetCreateWait(time.Nanosecond))
	const end, writers = 40, 3
	met := map[string]int{}
	waited := 0
	for seed := range max(2, *nfsSeeds/uint64(batches.Sparse)) {
		d := sinktest.NewMemDisk()
		machines := []*sinktest.Mount{sinktest.NewMount(d, 2*seed), sinktest.NewMount(d, 2*seed+1)}
		s := &turns{rng: rand.New(rand.NewPCG(seed, 6)), running: writers}
		var wg sync.WaitGroup
		errs, passed := make([]error, writers), make([]int, writers)
		for i := range writers {
			rng := rand.New(rand.NewPCG(seed, uint64(200+i)))
			p := sinktest.DieAt(machines[i%2], 1<<30)
			if i > 0 { // the first one lives
				p = sinktest.DieAt(machines[i%2], rng.IntN(400))
			}
			die := p.Disk.Before
			p.Disk.Before = func(op, name string) error { s.wait(); return die(op, name) }
			w := sinktest.Writer{Store: sinktest.MemStore(&p.Disk), End: end, Parts: rng.IntN(2),
				Roll: func() int { return 1 + rng.IntN(12) }, Fail: func(err error) error {
					if p.Dead {
						return err
					}
					passed[i]++
					return passes(err)
				}}
			wg.Go(func() {
				defer s.done()
				if err := w.Run(p.Ctx); err != nil && !p.Dead {
					errs[i] = fmt.Errorf("writer %d: %w", i, err)
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, m := range machines {
			for what, n := range m.Tally {
				met[what] += n
			}
		}
		waited += passed[0] + passed[1] + passed[2]
		sinktest.TakeOver(t, sinktest.MemStore(d), 0, end, 5)
		if sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, end); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d errors that pass; faults: %v", waited, met)
	for _, what := range []string{"late", "lost create", "lost link", "lost mkdir", "lost rename", "lost remove",
		"stale sync", "zeros"} {
		if met[what] == 0 && batches.Sparse == 1 {
			t.Errorf("no fault %q came", what)
		}
	}
	if names := slices.Sorted(maps.Keys(met)); len(names) < 6 {
		t.Errorf("only the faults %q came", names)
	}
}

// Law: the same machine by machine, with power cuts of the server between them.
func TestPowerCutsOnNFS(t *testing.T) {
	defer sinks.SetCreateWait(sinks.SetCreateWait(time.Nanosecond))
	const end = 40
	for seed := range max(2, *nfsSeeds/uint64(batches.Sparse)) {
		rng := rand.New(rand.NewPCG(seed, 4))
		d := sinktest.NewMemDisk()
		for n := range uint64(12) {
			m := sinktest.NewMount(d, 100*seed+n)
			m.Lost = .1
			p := sinktest.DieAt(m, rng.IntN(120))
			w := sinktest.Writer{Store: sinktest.MemStore(&p.Disk), End: end, Parts: rng.IntN(2),
				Roll: func() int { return 1 + rng.IntN(12) }, Fail: func(err error) error {
					if p.Dead {
						return err
					}
					return passes(err)
				}}
			if err := w.Run(p.Ctx); err != nil && !p.Dead {
				t.Fatalf("seed %d: %v", seed, err)
			}
			d = d.Crash(sinktest.KeepSome(rng.Uint64()))
		}
		sinktest.TakeOver(t, sinktest.MemStore(d), 0, end, 10)
		if sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, end); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// passes returns an error unless it passes by itself. Where an output is opened the error of
// the disk comes as it is.
func passes(err error) error {
	if passing := (*schemas.UnavailableError)(nil); errors.As(err, &passing) || errors.Is(err, syscall.ESTALE) {
		return nil
	}
	return err
}

// late is a disk on which the names of one kind cannot be seen for some looks.
type late struct {
	disk.Disk
	hides func(name string) bool
	looks int
}

func (d *late) Remote() bool { return true }

func (d *late) hidden(name string) bool {
	if d.hides(name) && d.looks > 0 {
		d.looks--
		return true
	}
	return false
}

func (d *late) Open(name string) (disk.Object, error) {
	if d.hidden(name) {
		return nil, sinktest.PathError("open", name, fs.ErrNotExist)
	}
	return d.Disk.Open(name)
}

func (d *late) Size(name string) (int64, error) {
	if d.hidden(name) {
		return 0, sinktest.PathError("stat", name, fs.ErrNotExist)
	}
	return d.Disk.Size(name)
}

// A manifest, a base and a published file that another machine has made, and this one does
// not see for most of a minute, are neither made again nor called lost. What stays hidden
// longer is an error that passes.
func TestNamesThatCannotBeSeenYet(t *testing.T) {
	defer sinks.SetCreateWait(sinks.SetCreateWait(time.Nanosecond))
	ctx := t.Context()
	for what, hides := range map[string]func(name string) bool{
		"manifest": func(name string) bool { return strings.HasSuffix(name, "/00000000000000000005.json") },
		"base":     func(name string) bool { return strings.HasSuffix(name, "/"+record.BaseFile) },
		"identity": func(name string) bool { return name == record.StoreFile },
		"table":    func(name string) bool { return strings.HasPrefix(name, tables.Frames+"/") },
	} {
		t.Run(what, func(t *testing.T) {
			d := sinktest.NewMemDisk()
			sinktest.TakeOver(t, sinktest.MemStore(d), 0, 10, 5)
			hidden := &late{Disk: d, hides: hides, looks: 11}
			w := sinktest.Writer{Store: sinktest.MemStore(hidden), End: 20, Roll: sinktest.Roll(5),
				Fail: sinktest.IsCrash}
			if err := w.Run(ctx); err != nil || hidden.looks > 0 {
				t.Fatalf("%v; %d looks are left", err, hidden.looks)
			}
			sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 20)
			sinktest.MustBeClean(t, d)
		})
	}
	d := sinktest.NewMemDisk()
	o := sinktest.OpenResumed(t, &late{Disk: d, looks: 1 << 30,
		hides: func(name string) bool { return strings.HasSuffix(name, "/00000000000000000000.json") }})
	sinktest.TakeOver(t, sinktest.MemStore(d), 0, 10, 5)
	passing := (*schemas.UnavailableError)(nil)
	if _, err := o.Commit(ctx, sinktest.LogBatch(0, 5)); !errors.As(err, &passing) {
		t.Errorf("a manifest that stays hidden: %v", err)
	}
}

// A rename whose answer is lost is done, though the second answer says that there is no such
// file and this machine goes on seeing the old name, and not the new one, for a while.
func TestRenameWhoseAnswerIsLost(t *testing.T) {
	defer sinks.SetCreateWait(sinks.SetCreateWait(time.Nanosecond))
	for late := range 6 {
		d := sinktest.NewMemDisk()
		m := sinktest.NewMount(d, 1)
		m.Late, m.Lost, m.Only, m.Stale, m.Deaf = late, 1, "rename", 0, true
		w := sinktest.Writer{Store: sinktest.MemStore(m), End: 20, Roll: sinktest.Roll(5), Fail: sinktest.IsCrash}
		if err := w.Run(t.Context()); err != nil {
			t.Fatalf("answers up to %d looks old: %v", late, err)
		}
		sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 20)
		sinktest.MustBeClean(t, d)
		if m.Tally["lost rename"] == 0 {
			t.Errorf("no answer was lost: %v", m.Tally)
		}
	}
}

// A removed file that somebody has open stays for a while, as ".nfs" and digits. It hinders
// no commit, no verification and no reader, and is gone once it is closed.
func TestRemovedFilesThatAreOpen(t *testing.T) {
	ctx := t.Context()
	d := sinktest.NewMemDisk()
	m := sinktest.NewMount(d, 2)
	m.Late, m.Lost, m.Stale = 0, 0, 0
	z := freeze(t, sinktest.MemStore(m), 0, 5)
	var staged []disk.Object
	for name := range d.Live.Files { // a backup reads what the frozen writer has staged
		if strings.HasPrefix(name, record.StagingFolder) {
			o, err := m.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			staged = append(staged, o)
		}
	}
	sinktest.TakeOver(t, sinktest.MemStore(m), 0, 10, 10)
	if err := z.wake(); !errors.Is(err, schemas.ErrLost) {
		t.Errorf("the frozen writer's commit ended with %v, want ErrLost", err)
	}
	if n := len(sinktest.Sillies(d)); n != len(staged) || n == 0 {
		t.Errorf("%d files of %d that are open are left aside", n, len(staged))
	}
	sinktest.TakeOver(t, sinktest.MemStore(m), 0, 20, 10)
	sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 20)
	for _, o := range staged {
		o.Close()
	}
	sinktest.MustBeClean(t, d)

	// Beside data files and manifests, where a tool of somebody else has removed one.
	for _, name := range slices.Sorted(maps.Keys(d.Live.Files)) {
		if strings.HasSuffix(name, "00000000000000000010.json") || strings.HasPrefix(name, tables.Frames) {
			d.Live.Files[name[:strings.LastIndexByte(name, '/')]+"/.nfs000000000000002a00000001"] = d.Live.Files[name]
		}
	}
	sinktest.TakeOver(t, sinktest.MemStore(m), 0, 30, 10)
	report, err := read.Verify(ctx, sinktest.MemStore(d), read.VerifyOptions{Workers: 1})
	if err != nil || !report.OK || len(sinktest.Sillies(d)) < 2 {
		t.Errorf("%v, %d left aside\n%s", err, len(sinktest.Sillies(d)), report)
	}
}

// linkless refuses links, or takes them for copies that replace what is there.
type linkless struct {
	*sinktest.MemDisk
	refusal error // of a link; nil: it replaces
}

func (d *linkless) Link(from, to string) error {
	if d.refusal != nil {
		return &os.LinkError{Op: "link", Old: from, New: to, Err: d.refusal}
	}
	d.MemDisk.Remove(to)
	return d.MemDisk.Link(from, to)
}

// keeping is a disk whose renames leave the old name.
type keeping struct{ *sinktest.MemDisk }

func (d keeping) Rename(from, to string) error { return d.MemDisk.Link(from, to) }

// A file system on which a promise cannot be kept is refused before any record is read, as a
// mistake of the configuration. The look leaves nothing there.
func TestStoresThatCannotKeepThePromise(t *testing.T) {
	defer sinks.SetCreateWait(sinks.SetCreateWait(time.Nanosecond))
	mem := sinktest.NewMemDisk
	for _, c := range []struct {
		name string
		disk disk.Disk
		want string
	}{
		{"EPERM, as of FAT", &linkless{mem(), syscall.EPERM}, "no hard links"},
		{"ENOTSUP, as of SMB", &linkless{mem(), syscall.EOPNOTSUPP}, "no hard links"},
		{"ENOSYS, as of FUSE", &linkless{mem(), syscall.ENOSYS}, "no hard links"},
		{"EMLINK", &linkless{mem(), syscall.EMLINK}, "no hard links"},
		{"links that replace", &linkless{MemDisk: mem()}, "a second link of one name"},
		{"renames that copy", keeping{mem()}, "after a rename"},
		{"a machine that sees late", sinktest.NewMount(mem(), 7), ""},
		{"a good one", mem(), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := sinktest.MemStore(c.disk)
			_, err := sinks.Open(context.Background(), store, sinktest.EncoderOf(), sinks.Config{})
			if err == nil {
				err = store.CheckWritable(t.Context(), tables.Names())
			}
			wrong := (*sinks.ConfigError)(nil)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!errors.As(err, &wrong) || wrong.Field != "out" ||
				!strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want a mistake of --out that says %q", err, c.want)
			}
			names, err := c.disk.Names(record.CommitsFolder)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				if strings.HasPrefix(name, record.NewPrefix) {
					t.Errorf("%s is left", name)
				}
			}
		})
	}
}
