package read_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/read"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

const repairEnd = 30 // three commits of ten records

// planned verifies an output and returns the report, with its plan.
func planned(t *testing.T, s sinks.Reader) *read.Report {
	t.Helper()
	r, err := read.Verify(t.Context(), s, read.VerifyOptions{Repair: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.Repair == nil {
		t.Fatal("there is no plan")
	}
	if _, err := json.Marshal(r); err != nil {
		t.Errorf("the plan has no JSON: %v", err)
	}
	return r
}

// bytesOf lists the contents of all files, whatever their names.
func bytesOf(d *sinktest.MemDisk) []string {
	return slices.Sorted(maps.Values(sinktest.ContentsOf(d)))
}

// What is lost at the end of an output is explained, and, when that is wanted,
// moved aside: then a writer writes the records again, each exactly once, and
// Verify passes. No byte of a file is lost by it, and no glob for tables finds it.
func TestRepairMendsTheEnd(t *testing.T) {
	for name, c := range mendable {
		t.Run(name, func(t *testing.T) {
			d := damagedOutput(t, c.harm)
			before := sinktest.ContentsOf(d)
			r := planned(t, sinktest.MemStore(d))
			if r.OK || r.Repair.Files() == 0 || len(r.Repair.Left) > 0 || r.Repair.Done {
				t.Fatalf("the plan is not whole:\n%s", r)
			}
			if !maps.Equal(before, sinktest.ContentsOf(d)) {
				t.Fatal("a plan has changed the output")
			}
			if err := r.Repair.Apply(t.Context(), sinktest.MemStore(d)); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(slices.Sorted(maps.Values(before)), bytesOf(d)) {
				t.Error("files are not what they were, under other names")
			}
			quarantined(t, d, r.Repair, before)
			again := planned(t, sinktest.MemStore(d))
			if !again.OK || again.Repair.Files() > 0 || !strings.Contains(again.String(), record.QuarantineFolder) {
				t.Errorf("after the repair:\n%s", again)
			}
			pos, err := sinktest.OpenOn(t, sinktest.MemStore(d)).Resume(t.Context(), sinktest.LogTopic, 0)
			if err != nil || pos.Next != c.next {
				t.Errorf("the writer goes on at %d (%v), want %d", pos.Next, err, c.next)
			}
			w := sinktest.Writer{Store: sinktest.MemStore(d), End: repairEnd + 5, Roll: sinktest.Roll(7),
				Fail: sinktest.IsCrash, Tables: []string{tables.Hulls}}
			if err := w.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, repairEnd+5)
			if s, err := read.Describe(t.Context(), sinktest.MemStore(d)); err != nil ||
				s.Partitions[0].End != repairEnd+5 {
				t.Errorf("described as %+v, %v", s, err)
			}
		})
	}
}

// quarantined checks that the files of a plan have their new names, with the bytes
// they had, and that these names end as they should.
func quarantined(t *testing.T, d *sinktest.MemDisk, r *read.Repair, before map[string]string) {
	t.Helper()
	for _, s := range r.Steps {
		for _, m := range s.Moves {
			if d.Live.Files[m.From] != nil {
				t.Errorf("%s is still there", m.From)
			}
			if node := d.Live.Files[m.To]; node == nil || string(node.Data) != before[m.From] ||
				int64(len(node.Data)) != m.Bytes {
				t.Errorf("%s is not in %s", m.From, m.To)
			}
			if want := r.Folder + "/" + m.From + ".quarantined"; m.To != want ||
				!strings.HasPrefix(want, "_quarantine/") {
				t.Errorf("%s is moved to %s", m.From, m.To)
			}
		}
	}
}

// What moving files does not mend is named, with what to do, and stays where it
// is: above all a hole in front of commits that are whole.
func TestRepairLeavesWhatItCannotMend(t *testing.T) {
	strange := record.TopicFolder(sinktest.LogTopic) + "/0/note.txt"
	base := record.TopicFolder(sinktest.LogTopic) + "/" + record.BaseFile
	of := func(start int64) string {
		return record.ManifestName(record.TopicPartition{Topic: sinktest.LogTopic, ID: 0}, start)
	}
	for name, c := range map[string]struct {
		harm  func(*testing.T, *sinktest.MemDisk)
		where string // begins a line of what is left
		says  string
	}{
		"manifest in the middle lost":    {lose(10), of(20), "has a hole: offsets 10 to 19"},
		"first manifest lost":            {lose(0), of(10), "has a hole: offsets 0 to 9"},
		"manifest in the middle damaged": {spoil(half, 10), of(10), "has a hole: offsets 10 to 19"},
		"middle lost, newest damaged":    {after(lose(0), spoil(half, 20)), of(20), "has a hole: offsets 0 to 9"},
		"file in the middle missing": {ofFile(10, func(d *sinktest.MemDisk, f *record.File) {
			delete(d.Live.Files, f.Path)
		}), "", "restore the file from a backup"},
		"file in the middle flipped": {ofFile(0, func(d *sinktest.MemDisk, f *record.File) {
			flipped(d.Live.Files[f.Path].Data)
		}), "", "restore the file from a backup"},
		"base lost": {func(_ *testing.T, d *sinktest.MemDisk) { delete(d.Live.Files, base) }, base,
			"restore it from a backup"},
		"base damaged, newest lost": {after(lose(20), func(_ *testing.T, d *sinktest.MemDisk) {
			flipped(d.Live.Files[base].Data)
		}), base, "restore it from a backup"},
		"store.json damaged": {after(lose(20), func(_ *testing.T, d *sinktest.MemDisk) {
			flipped(d.Live.Files[record.StoreFile].Data)
		}), record.StoreFile, "store.json"},
		"all records of the topic lost": {func(_ *testing.T, d *sinktest.MemDisk) {
			maps.DeleteFunc(d.Live.Files, func(name string, _ *sinktest.Inode) bool {
				return strings.HasPrefix(name, record.TopicsFolder)
			})
		}, "frames/", "base.json of this topic"},
		"stranger among the records": {func(_ *testing.T, d *sinktest.MemDisk) {
			d.Live.Files[strange] = &sinktest.Inode{}
		}, strange, "by hand"},
		"newest manifest of a later version": {func(t *testing.T, d *sinktest.MemDisk) {
			name, m := sinktest.ManifestOf(t, d, 20)
			m.Format = record.FormatVersion + 1
			d.Live.Files[name].Data = record.Encode(m)
		}, of(20), "later version"},
		"file before the base": {func(t *testing.T, d *sinktest.MemDisk) {
			rebase := func(start string) {
				b, err := record.ParseBase(base, d.Live.Files[base].Data, sinktest.LogTopic)
				if err != nil {
					t.Fatal(err)
				}
				b.Starts["0"] = 10
				d.Live.Files[base].Data = record.Encode(b)
				delete(d.Live.Files, start)
			}
			rebase(of(0))
		}, "frames/", "where this output begins"},
	} {
		t.Run(name, func(t *testing.T) {
			d := damagedOutput(t, c.harm)
			before := sinktest.ContentsOf(d)
			r := planned(t, sinktest.MemStore(d))
			if r.OK || r.Repair.Files() > 0 {
				t.Fatalf("something is to be moved:\n%s", r)
			}
			found := slices.ContainsFunc(r.Repair.Left, func(l read.RepairLeft) bool {
				return strings.HasPrefix(l.Where, c.where) && strings.Contains(l.Advice, c.says)
			})
			if !found || !strings.Contains(r.String(), "not repaired: ") {
				t.Errorf("nothing at %q says %q:\n%s", c.where, c.says, r)
			}
			if len(r.Repair.Left) < int(r.FaultCount) && name != "all records of the topic lost" {
				t.Errorf("%d of %d faults are explained:\n%s", len(r.Repair.Left), r.FaultCount, r)
			}
			if err := r.Repair.Apply(t.Context(), sinktest.MemStore(d)); err != nil ||
				!maps.Equal(before, sinktest.ContentsOf(d)) {
				t.Errorf("a plan without moves has changed the output, or fails: %v", err)
			}
		})
	}
}

// A partition that cannot be mended does not keep another from it.
func TestRepairMendsPartitionsOneByOne(t *testing.T) {
	ctx, d := t.Context(), sinktest.NewMemDisk()
	o := sinktest.OpenOn(t, sinktest.MemStore(d))
	if err := o.Base(ctx, sinktest.LogTopic, schemas.TopicID{}, nil); err != nil {
		t.Fatal(err)
	}
	commit := func(id int32, start int64) {
		t.Helper()
		if _, err := o.Resume(ctx, sinktest.LogTopic, id); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Commit(ctx, batches.Synthetic(batches.Spec{Topic: sinktest.LogTopic, Partition: id, Start: start,
			Records: 10, Frames: 1, Points: 4})); err != nil {
			t.Fatal(err)
		}
	}
	for id := range int32(3) {
		for start := range int64(3) {
			commit(id, 10*start)
		}
	}
	delete(d.Live.Files, record.ManifestName(record.TopicPartition{Topic: sinktest.LogTopic, ID: 0}, 10))
	delete(d.Live.Files, record.ManifestName(record.TopicPartition{Topic: sinktest.LogTopic, ID: 1}, 20))
	r := planned(t, sinktest.MemStore(d))
	if len(r.Repair.Steps) != 1 || r.Repair.Steps[0].Partition != 1 || r.Repair.Steps[0].Start != 20 ||
		r.Repair.Steps[0].End != 30 {
		t.Fatalf("steps:\n%s", r)
	}
	if err := r.Repair.Apply(ctx, sinktest.MemStore(d)); err != nil {
		t.Fatal(err)
	}
	o = sinktest.OpenOn(t, sinktest.MemStore(d))
	commit(1, 20)
	r = planned(t, sinktest.MemStore(d))
	for _, f := range r.Faults {
		if !strings.Contains(f.Where, "/part-0-") &&
			!strings.HasPrefix(f.Where, record.ManifestFolder(record.TopicPartition{Topic: sinktest.LogTopic, ID: 0})) {
			t.Errorf("%+v", f)
		}
	}
	if r.Repair.Files() > 0 || len(r.Repair.Left) == 0 {
		t.Errorf("after the repair:\n%s", r)
	}
}

// Leaving a step out keeps its files where they are.
func TestRepairLeavesStepsOut(t *testing.T) {
	d := damagedOutput(t, lose(20))
	r := planned(t, sinktest.MemStore(d))
	before := sinktest.ContentsOf(d)
	r.Repair.Leave(&r.Repair.Steps[0], "the records are gone")
	if r.Repair.Files() > 0 || !strings.Contains(r.String(), "the records are gone") {
		t.Errorf("the step is still there:\n%s", r)
	}
	if err := r.Repair.Apply(t.Context(), sinktest.MemStore(d)); err != nil ||
		!maps.Equal(before, sinktest.ContentsOf(d)) {
		t.Errorf("the step was done all the same; %v", err)
	}
}

// A repair that dies at any change of the disk, with any loss of what was not
// fsynced, is done by another one, also when a writer was at work in between. No
// file is lost on the way, and every record is there once in the end.
func TestRepairDiesAnywhere(t *testing.T) {
	deaths := 0
	for i, name := range slices.Sorted(maps.Keys(mendable)) {
		c := mendable[name]
		for n := i % 4; ; n += 4 * batches.Sparse { // the faults are many, and alike: together they die everywhere
			d := damagedOutput(t, c.harm)
			sinktest.Settle(d)
			before := bytesOf(d)
			p := sinktest.DieAt(d, n)
			r := planned(t, sinktest.MemStore(d))
			err := r.Repair.Apply(context.Background(), sinktest.MemStore(&p.Disk))
			if !p.Dead {
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				break
			}
			deaths++
			what := fmt.Sprintf("%s: death at change %d", name, n)
			if d = d.Crash(sinktest.KeepSome(uint64(n))); !slices.Equal(before, bytesOf(d)) {
				t.Fatalf("%s: files are lost", what)
			}
			if n/4%2 == 1 { // somebody does not wait for the second repair
				wroteOn(3)(t, d)
			}
			second := planned(t, sinktest.MemStore(d))
			if len(second.Repair.Left) > 0 {
				t.Fatalf("%s: the second repair:\n%s", what, second)
			}
			if err := second.Repair.Apply(context.Background(), sinktest.MemStore(d)); err != nil {
				t.Fatalf("%s: the second repair: %v", what, err)
			}
			w := sinktest.Writer{Store: sinktest.MemStore(d), End: repairEnd, Roll: sinktest.Roll(4),
				Fail: sinktest.IsCrash, Tables: []string{tables.Hulls}}
			if err := w.Run(t.Context()); err != nil {
				t.Fatalf("%s: the writer: %v", what, err)
			}
			if sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, repairEnd); t.Failed() {
				t.Fatal(what)
			}
		}
	}
	if t.Logf("%d deaths", deaths); deaths < len(mendable)/batches.Sparse {
		t.Errorf("only %d deaths", deaths)
	}
}

// A disk that refuses a move stops the repair with its error.
func TestRepairTellsWhatTheDiskSays(t *testing.T) {
	d := damagedOutput(t, lose(20))
	r := planned(t, sinktest.MemStore(d))
	f := &sinktest.FaultDisk{Disk: d, Before: func(op, name string) error {
		if op == "rename" {
			return sinktest.PathError(op, name, syscall.EROFS)
		}
		return nil
	}}
	if err := r.Repair.Apply(t.Context(), sinktest.MemStore(f)); !errors.Is(err, syscall.EROFS) || r.Repair.Done {
		t.Errorf("%v, done %t", err, r.Repair.Done)
	}
}

// A writer that commits between the plan and its execution stops it.
func TestRepairNoticesAWriter(t *testing.T) {
	d := damagedOutput(t, lose(20))
	r := planned(t, sinktest.MemStore(d))
	wroteOn(4)(t, d)
	before := sinktest.ContentsOf(d)
	if err := r.Repair.Apply(t.Context(), sinktest.MemStore(d)); err == nil ||
		!strings.Contains(err.Error(), "somebody writes") {
		t.Errorf("%v", err)
	}
	if !maps.Equal(before, sinktest.ContentsOf(d)) {
		t.Error("files were moved")
	}
}

// Two repairs within a second have folders of their own.
func TestQuarantinesAreApart(t *testing.T) {
	d := damagedOutput(t, lose(20))
	first := planned(t, sinktest.MemStore(d)).Repair
	if err := first.Apply(t.Context(), sinktest.MemStore(d)); err != nil {
		t.Fatal(err)
	}
	wroteOn(10)(t, d)
	lose(20)(t, d)
	second := planned(t, sinktest.MemStore(d)).Repair
	if first.Folder == second.Folder {
		t.Fatalf("both in %s", first.Folder)
	}
	if err := second.Apply(t.Context(), sinktest.MemStore(d)); err != nil {
		t.Fatal(err)
	}
	wroteOn(10)(t, d)
	sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, repairEnd)
}
