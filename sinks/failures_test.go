package sinks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/internal/disk"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/record"
)

// Failures that other systems had, which docs/reliability.md names, made again here.

// recordsOn returns the manifests of a disk by their paths.
func recordsOn(t *testing.T, d *sinktest.MemDisk) map[string]*record.Manifest {
	t.Helper()
	all := map[string]*record.Manifest{}
	for name, node := range d.Live.Files {
		if _, is := record.ManifestStart(path.Base(name)); !is || !strings.HasPrefix(name, record.CommitsFolder) {
			continue
		}
		m, err := record.ParseManifest(name, node.Data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = m
	}
	return all
}

// A coordinator dies after a commit and before it has told anybody, wherever that is, and
// another one goes on. Each file is in one commit.
func TestNoFileIsInTwoCommits(t *testing.T) {
	const end = 14
	for n := 0; ; n += 3 * batches.Sparse {
		d := sinktest.NewMemDisk()
		p := sinktest.DieAt(d, n)
		w := sinktest.Writer{Store: sinktest.MemStore(&p.Disk), End: end, Roll: sinktest.Roll(7),
			Fail: sinktest.IsCrash}
		w.Run(p.Ctx)
		for range 2 { // the next coordinator, and one after it
			sinktest.TakeOver(t, sinktest.MemStore(d), 0, end, 5)
		}
		of := map[string]string{}
		for name, m := range recordsOn(t, d) {
			for _, f := range m.Files {
				if other := of[f.Path]; other != "" {
					t.Errorf("death at change %d: %s is in %s and in %s", n, f.Path, other, name)
				}
				of[f.Path] = name
			}
		}
		for name := range d.Live.Files {
			if strings.HasSuffix(name, record.DataSuffix) && of[name] == "" {
				t.Errorf("death at change %d: %s is in no commit", n, name)
			}
		}
		if sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, end); t.Failed() || !p.Dead {
			return
		}
	}
}

// A commit succeeds, its answer is lost, the job dies and comes back as another job: with
// another version, configuration and content, and other batches.
func TestNewJobAfterALostAnswer(t *testing.T) {
	for _, made := range []bool{true, false} {
		for _, size := range []int{3, 8, 11} {
			d := sinktest.NewMemDisk()
			ctx, die := context.WithCancel(t.Context())
			lost := func(op, name string) error {
				if op == "create" && strings.HasSuffix(name, "/00000000000000000000.json") {
					die()
					return syscall.ETIMEDOUT
				}
				return nil
			}
			s := &faultStore{Store: sinktest.MemStore(d)}
			if s.before = lost; made {
				s.before, s.after = nil, lost
			}
			old := sinktest.Writer{Store: s, End: 8, Roll: sinktest.Roll(8), Fail: sinktest.IsCrash}
			old.Run(ctx)
			if n := len(recordsOn(t, d)); n != map[bool]int{true: 1, false: 0}[made] {
				t.Fatalf("%d commits before the new job", n)
			}
			o, err := sinks.Open(t.Context(), sinktest.MemStore(d), sinktest.EncoderOf(), sinks.Config{Version: "9.9.9",
				ConfigHash: strings.Repeat("ab", 32)})
			if err != nil {
				t.Fatal(err)
			}
			if err := o.Base(t.Context(), sinktest.LogTopic, schemas.TopicID{}, map[int32]int64{0: 4}); err != nil {
				t.Fatal(err)
			}
			pos, err := o.Resume(t.Context(), sinktest.LogTopic, 0)
			if want := map[bool]int64{true: 8, false: 0}[made]; err != nil || pos.Next != want {
				t.Fatalf("the new job goes on at %d (%v), want %d", pos.Next, err, want)
			}
			if _, err := o.Commit(t.Context(), sinktest.LogBatch(pos.Next, size)); err != nil {
				t.Fatal(err)
			}
			sinktest.TakeOver(t, sinktest.MemStore(d), 0, 20, 6)
			sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 20)
		}
	}
}

// A process dies while it writes the tail of a file that it began. Who goes on writes all of
// it anew: nothing that was staged before is in a table.
func TestTailOfAFileIsNotLost(t *testing.T) {
	const end = 12
	for _, keep := range []func() bool{sinktest.KeepAll, sinktest.KeepNone} {
		for n := 0; ; n += batches.Sparse {
			d := sinktest.NewMemDisk()
			p := &sinktest.FaultDisk{Disk: d}
			ctx, die := context.WithCancel(t.Context())
			writes, dead := 0, false
			p.Before = func(op, _ string) error {
				if op == "write" {
					writes++
				}
				if dead = dead || writes > n; dead {
					die()
					return syscall.EIO // a half of the bytes is written first
				}
				return nil
			}
			w := sinktest.Writer{Store: sinktest.MemStore(p), End: end, Roll: sinktest.Roll(end),
				Fail:  sinktest.IsCrash,
				Parts: 2}
			w.Run(ctx)
			if !dead {
				die()
				break
			}
			begun := map[string]bool{}
			d = d.Crash(keep)
			for name := range d.Live.Files {
				if strings.HasPrefix(name, record.StagingFolder+"/") {
					begun[strings.Split(name, "/")[1]] = true
				}
			}
			sinktest.TakeOver(t, sinktest.MemStore(d), 0, end, end)
			for _, m := range recordsOn(t, d) {
				for _, f := range m.Files {
					if begun[strings.Split(f.Staged, "/")[1]] {
						t.Errorf("death at write %d: %s was begun by the dead", n, f.Path)
					}
				}
			}
			if sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, end); t.Failed() {
				t.Fatalf("death at write %d", n)
			}
		}
	}
}

// A task is disposed of, with all of its cleaning, at any call: after it was cancelled, or
// after an error whose call was made. What a manifest names is never cleaned away.
func TestDisposalKeepsWhatAManifestNames(t *testing.T) {
	defer sinks.SetCreateWait(sinks.SetCreateWait(time.Nanosecond))
	const end = 10
	for n := 0; ; n += 2 * batches.Sparse {
		d := sinktest.NewMemDisk()
		ctx, cancel := context.WithCancel(t.Context())
		calls, reached := 0, false
		f := &sinktest.FaultDisk{Disk: d, After: func(op, name string) error {
			if op == "look" {
				return nil
			}
			if calls++; calls == n+1 {
				reached = true
				cancel()
				return sinktest.PathError(op, name, syscall.EIO)
			}
			return nil
		}}
		w := sinktest.Writer{Store: sinktest.MemStore(f), End: end, Roll: sinktest.Roll(5), Fail: sinktest.IsCrash}
		w.Run(ctx)
		cancel()
		for name, m := range recordsOn(t, d) {
			for _, file := range m.Files {
				if d.Live.Files[file.Staged] == nil && d.Live.Files[file.Path] == nil {
					t.Errorf("disposed of at call %d: %s names %s, which is gone", n, name, file.Path)
				}
			}
		}
		sinktest.TakeOver(t, sinktest.MemStore(d), 0, end, 3)
		if sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, end); t.Failed() {
			t.Fatalf("disposed of at call %d", n)
		}
		if !reached {
			return
		}
	}
}

// Whoever looks for *.parquet, at any moment of a writer's life, its death included, finds
// whole files, and no row twice.
func TestGlobsSeeWholeFiles(t *testing.T) {
	const end = 14
	seen, looks := map[string]*sinktest.Inode{}, 0
	look := func(d *sinktest.MemDisk) {
		looks++
		for name, node := range d.Live.Files {
			if !strings.HasSuffix(name, record.DataSuffix) || seen[name] == node {
				continue
			}
			if old := seen[name]; old != nil {
				t.Errorf("%s was replaced", name)
			}
			if !bytes.HasPrefix(node.Data, []byte("PAR1")) || !bytes.HasSuffix(node.Data, []byte("PAR1")) {
				t.Errorf("%s can be seen and is torn", name)
			}
			seen[name] = node
		}
		// reads every file
		for key, n := range sinktest.Tally(t, sinktest.MemStore(d)) {
			if n > 1 {
				t.Errorf("row %+v is there %d times", key, n)
			}
		}
	}
	for n := 20; ; n += 25 * min(batches.Sparse, 3) {
		d := sinktest.NewMemDisk()
		clear(seen)
		p := sinktest.DieAt(d, n)
		die := p.Disk.Before
		p.Disk.Before = func(op, name string) error {
			if op == "rename" || op == "link" || op == "write" || op == "close" {
				look(d)
			}
			return die(op, name)
		}
		w := sinktest.Writer{Store: sinktest.MemStore(&p.Disk), End: end, Roll: sinktest.Roll(7),
			Fail: sinktest.IsCrash}
		w.Run(p.Ctx)
		look(d)
		sinktest.TakeOver(t, sinktest.MemStore(d), 0, end, 4)
		if look(d); t.Failed() || !p.Dead {
			break
		}
	}
	if looks < 50 {
		t.Errorf("%d looks", looks)
	}
}

// A task hangs after its commit and before its files are moved, for so long that others move
// them and go on. It wakes up, and replaces nothing.
func TestHangingTaskReplacesNothing(t *testing.T) {
	for _, op := range []string{"rename", "syncdir", "remove"} {
		d := sinktest.NewMemDisk()
		frozen, thaw := make(chan struct{}), make(chan struct{})
		hung := false
		f := &sinktest.FaultDisk{Disk: d}
		o := sinktest.OpenResumed(t, f)
		f.Before = func(what, name string) error {
			table := strings.HasPrefix(name, "frames/") || strings.HasPrefix(name, record.StagingFolder+"/")
			if what == op && !hung && table && len(recordsOn(t, d)) > 0 {
				hung = true
				close(frozen)
				<-thaw
			}
			return nil
		}
		result := make(chan error, 1)
		go func() {
			_, err := o.Commit(context.Background(), sinktest.LogBatch(0, 9))
			result <- err
		}()
		<-frozen
		sinktest.TakeOver(t, sinktest.MemStore(d), 0, 20, 4)
		before := sinktest.ContentsOf(d)
		close(thaw)
		if err := <-result; err != nil {
			t.Errorf("hung at %s: %v", op, err)
		}
		for name, data := range sinktest.ContentsOf(d) {
			if strings.HasSuffix(name, record.DataSuffix) && before[name] != data {
				t.Errorf("hung at %s: %s was replaced", op, name)
			}
		}
		sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 20)
		sinktest.MustBeClean(t, d)
	}
}

// After a power cut at any change, whatever it takes away, a commit record is whole or not
// there: none is empty, so that nobody has to remove one by hand before a start.
func TestRecordsAreWholeOrAbsent(t *testing.T) {
	for n := 0; ; n += 2 * batches.Sparse {
		dead := false
		for way, keep := range []func() bool{sinktest.KeepNone, sinktest.KeepSome(uint64(n)), sinktest.KeepAll} {
			d := sinktest.NewMemDisk()
			p := sinktest.DieAt(d, n)
			w := sinktest.Writer{Store: sinktest.MemStore(&p.Disk), End: 8, Roll: sinktest.Roll(4),
				Fail: sinktest.IsCrash}
			w.Run(p.Ctx)
			dead = p.Dead
			d = d.Crash(keep)
			for name, node := range d.Live.Files {
				named := strings.HasPrefix(name, record.CommitsFolder) && strings.HasSuffix(name, ".json") &&
					!strings.HasPrefix(path.Base(name), record.NewPrefix)
				if named && !bytes.HasSuffix(bytes.TrimSpace(node.Data), []byte("}")) {
					t.Fatalf("power cut at change %d, way %d: %s holds %q", n, way, name, node.Data)
				}
			}
			recordsOn(t, d)
		}
		if !dead {
			return
		}
	}
}

// aged is a disk whose files are all of 1970: a clock was wrong, or a writer has hung for years.
type aged struct{ disk.Disk }

// A writer hangs with all of its files staged and no commit. Others resume the partition,
// sweep the topic and commit to another partition. What it has staged is still there when it
// wakes up, however old it looks.
func TestAgeOfStagedFilesProvesNothing(t *testing.T) {
	d := sinktest.NewMemDisk() // its files have the time zero
	z := freeze(t, sinktest.MemStore(d), 0, 12)
	for range 3 {
		o := sinktest.OpenResumed(t, aged{d})
		if err := o.Sweep(t.Context(), sinktest.LogTopic); err != nil {
			t.Fatal(err)
		}
		if reached, err := o.Reached(t.Context(), sinktest.LogTopic, 0, 1); reached || err != nil {
			t.Fatalf("reached %t, %v", reached, err)
		}
	}
	if err := z.wake(); err != nil {
		t.Errorf("the writer's commit: %v", err)
	}
	sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 12)
	sinktest.MustBeClean(t, d)
}

// The clock of a writer steps by an hour between commits, in both directions. The order of
// commits is that of offsets, so nothing is doubled, lost or left out.
func TestCommitsOfAClockThatIsSet(t *testing.T) {
	d := sinktest.NewMemDisk()
	for i, step := range []time.Duration{0, time.Hour, -time.Hour, -2 * time.Hour, 30 * time.Minute} {
		sinktest.TakeOver(t, sinktest.MemStore(d), 0, int64(4*(i+1)), 4)
		name := record.ManifestName(record.TopicPartition{Topic: sinktest.LogTopic, ID: 0}, int64(4*i))
		m, err := record.ParseManifest(name, d.Live.Files[name].Data)
		if err != nil {
			t.Fatal(err)
		}
		m.Created = m.Created.Add(step) // as that clock would have written it
		d.Live.Files[name].Data = record.Encode(m)
		sinktest.Settle(d)
	}
	sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 20)
	o := sinktest.OpenOn(t, sinktest.MemStore(d))
	if pos, err := o.Resume(t.Context(), sinktest.LogTopic, 0); err != nil || pos.Next != 20 {
		t.Errorf("goes on at %d, %v; want 20", pos.Next, err)
	}
	if err := errors.Join(o.Sweep(t.Context(), sinktest.LogTopic)); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(len(recordsOn(t, d))); got != "5" {
		t.Errorf("%s manifests", got)
	}
}
