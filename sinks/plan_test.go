package sinks_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"entropipe/ingest/backfill"
	"entropipe/ingest/replay"
	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/read"
	"entropipe/sinks/record"
)

// gallery is an archive of one folder, so large that its plan has several lanes and a
// list of files.
type gallery struct{ replay.Archive }

func (gallery) Parts(_ context.Context, f func(*replay.Part) error) error {
	p := &replay.Part{Input: replay.Input{Format: "pcd", Path: "/archive/a"}, Items: 70, Frames: 70}
	for i := range p.Items {
		p.Input.Files = append(p.Input.Files, fmt.Sprintf("%d.pcd", i))
	}
	p.Of = func(i int64) []string { return []string{"/archive/a/" + p.Input.Files[i]} }
	return f(p)
}

func (gallery) Stat(_ context.Context, path string, _ bool) (replay.File, error) {
	return replay.File{Path: path, Size: 100 << 20, ModTime: 1}, nil
}

// planIn opens the output and makes the plan, as the command does.
func planIn(ctx context.Context, store sinks.Store, name string) (*record.Plan, error) {
	if _, err := sinks.Open(ctx, store, sinktest.EncoderOf(), sinks.Config{}); err != nil {
		return nil, err
	}
	return backfill.Prepare(ctx, store, gallery{}, backfill.Options{Plan: name, Roots: []string{"/archive"},
		Source: map[string]string{"format": "pcd"}})
}

// mustHavePlan fails the test unless the output has this plan, whole.
func mustHavePlan(t *testing.T, store sinks.Store, want *record.Plan) {
	t.Helper()
	plans, err := sinks.Plans(t.Context(), store)
	if err != nil || len(plans) != 1 || plans[0].Hash != want.Hash {
		t.Fatalf("%d plans, %v", len(plans), err)
	}
	r, err := read.Verify(t.Context(), store, read.VerifyOptions{})
	if err != nil || !r.OK || len(r.Plans) != 1 || r.Plans[0].Items != 70 || r.Plans[0].Done != 0 {
		t.Fatalf("%v\n%v", err, r)
	}
}

// A planner that dies at any change of the disk, with any loss of what was not fsynced,
// leaves an output in which the next one makes the same plan, and a head only with all
// parts.
func TestPlannerCrashesAnywhere(t *testing.T) {
	want, err := planIn(t.Context(), sinktest.MemStore(sinktest.NewMemDisk()), "")
	if err != nil || want.Lanes < 5 || len(want.Lists) != 1 {
		t.Fatalf("%+v, %v", want, err)
	}
	for name, keep := range map[string]func(n int) func() bool{
		"nothing kept": func(int) func() bool { return sinktest.KeepNone },
		"all kept":     func(int) func() bool { return sinktest.KeepAll },
		"some kept":    func(n int) func() bool { return sinktest.KeepSome(uint64(n)) },
	} {
		for _, plan := range []string{"", "named"} {
			t.Run(name+" "+plan, func(t *testing.T) {
				for n := 0; ; n += batches.Sparse {
					d := sinktest.NewMemDisk()
					p := sinktest.DieAt(d, n)
					if _, err := planIn(p.Ctx, sinktest.MemStore(&p.Disk), plan); !p.Dead {
						if err != nil {
							t.Fatal(err)
						}
						t.Logf("%d places to crash", n)
						return
					}
					store := sinktest.MemStore(d.Crash(keep(n)))
					plans, err := sinks.Plans(t.Context(), store)
					if err != nil {
						t.Fatalf("after a crash at change %d: %v", n, err)
					}
					if len(plans) > 0 {
						mustHavePlan(t, store, want)
					}
					if _, err := planIn(t.Context(), store, plan); err != nil {
						t.Fatalf("after a crash at change %d: %v", n, err)
					}
					mustHavePlan(t, store, want)
				}
			})
		}
	}
}

// Each call of the disk may fail, or work and seem to have failed: the next try makes the plan.
func TestPlannerOnAFailingDisk(t *testing.T) {
	for _, fault := range []error{syscall.ENOSPC, syscall.EIO, errors.New("an answer was lost")} {
		for _, after := range []bool{false, true} {
			for n := 0; ; n += batches.Sparse {
				d, count, hit := sinktest.NewMemDisk(), 0, false
				ask := func(op, name string) error {
					if op == "look" {
						return nil
					}
					if count++; count == n+1 {
						hit = true
						return sinktest.PathError(op, name, fault)
					}
					return nil
				}
				faulty := &sinktest.FaultDisk{Disk: d, Before: ask}
				if after {
					faulty.Before, faulty.After = nil, ask
				}
				_, err := planIn(t.Context(), sinktest.MemStore(faulty), "")
				if !hit {
					if err != nil {
						t.Fatal(err)
					}
					break
				}
				want, again := planIn(t.Context(), sinktest.MemStore(d), "")
				if again != nil {
					t.Fatalf("after %v at change %d (%v): %v", fault, n, err, again)
				}
				mustHavePlan(t, sinktest.MemStore(d), want)
			}
		}
	}
}

// Whatever happens to the files of a plan is found, by readers of the plan and by verify.
func TestHarmedPlans(t *testing.T) {
	part := func(change func(d *sinktest.MemDisk, name string)) func(*sinktest.MemDisk, *record.Plan) {
		return func(d *sinktest.MemDisk, p *record.Plan) { change(d, record.PartName(p.Segments[0].SHA256)) }
	}
	for name, c := range map[string]struct {
		harm func(d *sinktest.MemDisk, p *record.Plan)
		text string // the fault's; empty: none
		note string
	}{
		"a segment is lost": {harm: part(func(d *sinktest.MemDisk, name string) { delete(d.Live.Files, name) }),
			text: "a plan names it"},
		"a segment is cut": {harm: part(func(d *sinktest.MemDisk, name string) {
			d.Live.Files[name].Data = d.Live.Files[name].Data[:100]
		}), text: "100 bytes with SHA-256"},
		"a list is lost": {harm: func(d *sinktest.MemDisk, p *record.Plan) {
			delete(d.Live.Files, record.PartName(p.Lists[0].SHA256))
		}, text: "a plan names it"},
		"the head is changed": {harm: func(d *sinktest.MemDisk, p *record.Plan) {
			f := d.Live.Files[record.PlanName(p.Name)]
			f.Data = []byte(strings.Replace(string(f.Data), `"items": 70`, `"items": 71`, 1))
		}, text: "checksum"},
		"the head is gone": {harm: func(d *sinktest.MemDisk, p *record.Plan) {
			delete(d.Live.Files, record.PlanName(p.Name))
		}, text: "names plan", note: "plans that were not completed"},
		"head and place are gone": {harm: func(d *sinktest.MemDisk, p *record.Plan) {
			delete(d.Live.Files, record.PlanName(p.Name))
			delete(d.Live.Files, record.PlaceName(1))
		}, note: "plans that were not completed"},
		"a place is changed": {harm: func(d *sinktest.MemDisk, p *record.Plan) {
			f := d.Live.Files[record.PlaceName(1)]
			f.Data = []byte(strings.Replace(string(f.Data), `"plan": "`, `"plan": "x`, 1))
		}, text: "checksum"},
		"a place is lost": {harm: func(d *sinktest.MemDisk, p *record.Plan) {
			d.Live.Files[record.PlaceName(2)] = &sinktest.Inode{Data: record.Encode(&record.PlanPlace{
				Format: record.FormatVersion, Number: 2, Plan: p.Name})}
			delete(d.Live.Files, record.PlaceName(1))
		}, text: "is not there, and a later one is"},
		"two places": {harm: func(d *sinktest.MemDisk, p *record.Plan) {
			d.Live.Files[record.PlaceName(2)] = &sinktest.Inode{Data: record.Encode(&record.PlanPlace{
				Format: record.FormatVersion, Number: 2, Plan: p.Name})}
		}, text: "has place 1 in the order of plans already"},
		"a place far away": {harm: func(d *sinktest.MemDisk, p *record.Plan) {
			d.Live.Files[record.PlaceName(1<<40)] = &sinktest.Inode{}
		}, text: "is not there, and a later one is"},
		"a file beside": {harm: func(d *sinktest.MemDisk, p *record.Plan) {
			d.Live.Files[path.Join(record.PlansFolder, "notes.txt")] = &sinktest.Inode{}
		}, text: "no commit record"},
		"nothing": {harm: func(*sinktest.MemDisk, *record.Plan) {}},
	} {
		d := sinktest.NewMemDisk()
		p, err := planIn(t.Context(), sinktest.MemStore(d), "")
		if err != nil {
			t.Fatal(err)
		}
		c.harm(d, p)
		r, err := read.Verify(t.Context(), sinktest.MemStore(d), read.VerifyOptions{Repair: true})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r.OK != (c.text == "") || !strings.Contains(r.String(), c.text) || !strings.Contains(r.String(), c.note) {
			t.Errorf("%s: want %q and %q\n%s", name, c.text, c.note, r)
		}
	}
}

// Lanes that a plan does not have, or that hold more than it says, are faults; missing
// items are said.
func TestLanesBeyondThePlan(t *testing.T) {
	for name, c := range map[string]struct {
		lane int32
		end  int64
		text string
		ok   bool
	}{
		"a lane begun":     {0, 3, "0 of 7 lanes done, 3 of 70 items; 67 items are missing", true},
		"a lane done":      {6, 10, "1 of 7 lanes done, 10 of 70 items; 60 items are missing", true},
		"an unknown lane":  {7, 3, "has no such lane", false},
		"more than it has": {0, 11, "the lane has 10 items, and the output has 11", false},
	} {
		d := sinktest.NewMemDisk()
		ctx, store := t.Context(), sinktest.MemStore(d)
		p, err := planIn(ctx, store, "")
		if err != nil {
			t.Fatal(err)
		}
		o := sinktest.OpenOn(t, store)
		err = o.Base(ctx, p.Name, backfill.TopicID(p), nil)
		if err == nil {
			_, err = o.Resume(ctx, p.Name, c.lane)
		}
		if err == nil {
			b := batches.Synthetic(batches.Spec{Topic: p.Name, Partition: c.lane, Records: int(c.end),
				Frames: 1, Points: 1,
				Datasets: []string{"a"}, Seed: 1})
			b.TopicID = backfill.TopicID(p)
			_, err = o.Commit(ctx, b)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r, err := read.Verify(ctx, store, read.VerifyOptions{Repair: true})
		if err != nil || r.OK != c.ok || !strings.Contains(r.String(), c.text) {
			t.Errorf("%s: %v, want %q\n%s", name, err, c.text, r)
		}
		s, err := read.Describe(ctx, store)
		if err != nil || len(s.Plans) != 1 || c.ok && !strings.Contains(s.String(), c.text) {
			t.Errorf("%s: %v, want %q in\n%s", name, err, c.text, s)
		}
	}
}

// What a planner that died has left among the parts goes with the next plan: files whose part is
// there now, and old ones whose part nobody makes. A young file may be another planner's.
func TestLeftoversOfPlannersAreRemoved(t *testing.T) {
	dir := t.TempDir()
	store, err := sinks.OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	first, err := planIn(t.Context(), store, "first")
	if err != nil {
		t.Fatal(err)
	}
	leave := func(part string, age time.Duration) string {
		t.Helper()
		name := filepath.Join(dir, record.PlansFolder, record.NewPrefix+part+"-"+record.NewUUID())
		at := time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(name, []byte("half"), 0o666), os.Chtimes(name, at, at)); err != nil {
			t.Fatal(err)
		}
		return name
	}
	known, unknown := path.Base(record.PartName(first.Segments[0].SHA256)), strings.Repeat("0", 64)+".jsonl"
	gone := []string{leave(known, 0), leave(unknown, 49*time.Hour)}
	young := leave(unknown, time.Hour)
	if _, err := sinks.CreatePlan(t.Context(), store, first); err != nil {
		t.Fatal(err)
	}
	for _, name := range gone {
		if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there: %v", name, err)
		}
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("a file of another planner is gone: %v", err)
	}
	if _, err := sinks.ReadLanes(t.Context(), store, first, 0); err != nil {
		t.Error(err)
	}
}
