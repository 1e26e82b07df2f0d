package sinks_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/disk"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// unpublished is an output of [0, 30) whose last commit, of [20, 30), died before
// it moved any of its files but the first n.
func unpublished(t *testing.T, n int) (*sinktest.MemDisk, *record.Manifest) {
	t.Helper()
	d := sinktest.NewMemDisk()
	sinktest.TakeOver(t, sinktest.MemStore(d), 0, 20, 10)
	died, moved := errors.New("the process is gone"), 0
	f := &sinktest.FaultDisk{Disk: d, Before: func(op, _ string) error {
		if op == "rename" {
			if moved++; moved > n {
				return died
			}
		}
		return nil
	}}
	o := sinktest.OpenOn(t, sinktest.MemStore(f))
	if _, err := o.Resume(t.Context(), sinktest.LogTopic, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Commit(t.Context(), sinktest.LogBatch(20, 10)); !errors.Is(err, died) {
		t.Fatalf("the commit ended with %v", err)
	}
	_, m := sinktest.ManifestOf(t, d, 20)
	if len(m.Files) < 3 {
		t.Fatalf("%d files are too few for this test", len(m.Files))
	}
	return d, m
}

// harms are ways in which a file may change while nobody looks.
var harms = map[string]func([]byte) []byte{
	"first bit flipped":  func(b []byte) []byte { b[0] ^= 1; return b },
	"middle bit flipped": func(b []byte) []byte { b[len(b)/2] ^= 0x10; return b },
	"last bit flipped":   func(b []byte) []byte { b[len(b)-1] ^= 0x80; return b },
	"cut":                func(b []byte) []byte { return b[:len(b)-1] },
	"longer":             func(b []byte) []byte { return append(b, 0) },
	"empty":              func([]byte) []byte { return nil },
	"zeros":              func(b []byte) []byte { clear(b); return b },
}

// A staged file that has changed since it was written is never published: not by
// Resume, not by Reached, however far its commit had come. The error names the
// file, and everything stays where it is. With its bytes back the commit rolls
// forward.
func TestRollForwardComparesWhatIsStaged(t *testing.T) {
	for name, harm := range harms {
		for moved := range 2 {
			d, m := unpublished(t, moved)
			for _, f := range m.Files {
				node := d.Live.Files[f.Staged]
				if node == nil {
					continue // published
				}
				good := string(node.Data)
				node.Data = harm(node.Data)
				before := sinktest.ContentsOf(d)
				what := fmt.Sprintf("%s: %s, %d files published before", f.Staged, name, moved)

				o := sinktest.OpenOn(t, sinktest.MemStore(d))
				if _, err := o.Resume(t.Context(), sinktest.LogTopic, 0); !namesDamaged(err, f) {
					t.Errorf("%s: resume: %v", what, err)
				}
				if _, err := o.Commit(t.Context(), sinktest.LogBatch(30, 5)); err == nil {
					t.Errorf("%s: the next commit goes on behind it", what)
				}
				if ok, err := o.Reached(t.Context(), sinktest.LogTopic, 0, 30); ok && err == nil ||
					!namesDamaged(err, f) {
					t.Errorf("%s: reached: %t, %v", what, ok, err)
				}
				if after := sinktest.ContentsOf(d); !maps.Equal(before, after) {
					t.Errorf("%s: files were %q, are %q", what, slices.Sorted(maps.Keys(before)),
						slices.Sorted(maps.Keys(after)))
				}
				node.Data = []byte(good)
			}
			sinktest.TakeOver(t, sinktest.MemStore(d), 0, 35, 5)
			sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 35)
			sinktest.MustBeClean(t, d)
		}
	}
}

// namesDamaged tells whether err is that of a damaged file, f, and names it.
func namesDamaged(err error, f record.File) bool {
	var damaged *sinks.DamagedFileError
	return errors.As(err, &damaged) && damaged.From == f.Staged && strings.Contains(err.Error(), f.Staged) &&
		strings.Contains(err.Error(), f.Path)
}

// Who has lost a race publishes the winner's files where the winner died, and
// compares them like any other's.
func TestLoserComparesTheWinnersFiles(t *testing.T) {
	d := sinktest.NewMemDisk()
	sinktest.TakeOver(t, sinktest.MemStore(d), 0, 10, 10)
	z := freeze(t, sinktest.MemStore(d), 0, 10)
	died, s := errors.New("the process is gone"), &faultStore{Store: sinktest.MemStore(d)}
	winner := sinktest.OpenOn(t, s)
	if _, err := winner.Resume(t.Context(), sinktest.LogTopic, 0); err != nil {
		t.Fatal(err)
	}
	s.before = func(op, _ string) error {
		if op == "publish" {
			return died
		}
		return nil
	}
	if _, err := winner.Commit(t.Context(), sinktest.LogBatch(10, 15)); !errors.Is(err, died) {
		t.Fatalf("the winner's commit ended with %v", err)
	}
	_, m := sinktest.ManifestOf(t, d, 10)
	node := d.Live.Files[m.Files[1].Staged]
	node.Data[len(node.Data)/3] ^= 4
	if err := z.wake(); !errors.Is(err, schemas.ErrLost) {
		t.Fatalf("the loser's commit ended with %v", err)
	}
	loser := sinktest.OpenOn(t, sinktest.MemStore(d))
	if _, err := loser.Resume(t.Context(), sinktest.LogTopic, 0); !namesDamaged(err, m.Files[1]) {
		t.Errorf("the loser resumes: %v", err)
	}
	if d.Live.Files[m.Files[0].Path] != nil {
		t.Error("the loser has published a file beside the damaged one")
	}
	node.Data[len(node.Data)/3] ^= 4
	sinktest.TakeOver(t, sinktest.MemStore(d), 0, 30, 5)
	sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 30)
}

// A commit reads nothing of what it has just written, since the sums were made on
// the way to the disk, and a resume nothing of what is published. What is still
// staged at a resume is read.
func TestOnlyWhatIsStillStagedIsRead(t *testing.T) {
	d := &watchedDisk{Disk: sinktest.NewMemDisk()}
	sinktest.TakeOver(t, sinktest.MemStore(d), 0, 30, 10)
	sinktest.TakeOver(t, sinktest.MemStore(d), 0, 30, 10)
	for _, name := range d.opened {
		if !strings.HasPrefix(name, record.CommitsFolder+"/") {
			t.Errorf("%s was read", name)
		}
	}
	left, m := unpublished(t, 0)
	d = &watchedDisk{Disk: left}
	sinktest.TakeOver(t, sinktest.MemStore(d), 0, 30, 10)
	for _, f := range m.Files {
		if !slices.Contains(d.opened, f.Staged) {
			t.Errorf("%s was published unread; read were %q", f.Staged, d.opened)
		}
	}
}

// watchedDisk notes the files that are opened.
type watchedDisk struct {
	disk.Disk
	opened []string
}

func (d *watchedDisk) Open(name string) (disk.Object, error) {
	o, err := d.Disk.Open(name)
	if err == nil {
		d.opened = append(d.opened, name)
	}
	return o, err
}

// Wherever a writer dies, and whatever of the unsynced is lost: a frame that a
// reader finds has all its hulls. So frames are published last.
func TestFramesArePublishedLast(t *testing.T) {
	const end = 12
	hulls := []string{tables.Hulls}
	partly := 0
	for n := 0; ; n++ {
		d := sinktest.NewMemDisk()
		p := sinktest.DieAt(d, n)
		w := sinktest.Writer{Store: sinktest.MemStore(&p.Disk), End: end, Roll: sinktest.Roll(6),
			Fail: sinktest.IsCrash, Tables: hulls}
		w.Run(p.Ctx)
		for seed := range uint64(4) {
			after := d.Crash(sinktest.KeepSome(seed))
			var frames, others int
			for name := range after.Live.Files {
				frames += strings.Count(name, "frames/dataset=")
				others += strings.Count(name, "hulls/dataset=") + strings.Count(name, "rejects/topic=")
			}
			if missing := hullless(after); len(missing) > 0 {
				t.Fatalf("death at change %d, seed %d: %q are there without their hulls", n, seed, missing)
			}
			if others > 0 && frames == 0 {
				partly++
			}
		}
		if !p.Dead {
			break
		}
	}
	if partly == 0 {
		t.Error("no death came between hulls and frames")
	}
}

// hullless returns the files of frames that readers see without those of hulls of
// the same commit.
func hullless(d *sinktest.MemDisk) (missing []string) {
	for name := range d.Live.Files {
		if rest, ok := strings.CutPrefix(name, tables.Frames+"/"); ok && d.Live.Files[tables.Hulls+"/"+rest] == nil {
			missing = append(missing, name)
		}
	}
	return missing
}
