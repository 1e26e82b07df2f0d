package sinks_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/disk"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/read"
	"entropipe/sinks/record"
)

// contentText is the record of a content.
func contentText(c sinks.Content) []byte {
	return record.Encode(map[string]any{"format": record.FormatVersion, "content": c})
}

func opsOf(ops string) sinks.Content { return sinks.Content{"ops": ops, "max-frame-bytes": "64MiB"} }

// contentWriter opens the output with a content and resumes partition 0; commit
// writes the next ten records.
func contentWriter(t *testing.T, d disk.Disk, c sinks.Content) (o *sinks.Output, commit func()) {
	t.Helper()
	return configWriter(t, d, sinks.Config{Content: c})
}

func configWriter(t *testing.T, d disk.Disk, c sinks.Config) (o *sinks.Output, commit func()) {
	t.Helper()
	ctx := context.Background()
	o, err := sinks.Open(ctx, sinktest.MemStore(d), sinktest.EncoderOf(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Base(ctx, sinktest.LogTopic, schemas.TopicID{}, map[int32]int64{0: 0}); err != nil {
		t.Fatal(err)
	}
	return o, func() {
		t.Helper()
		pos, err := o.Resume(ctx, sinktest.LogTopic, 0)
		if err != nil {
			t.Fatal(err)
		}
		b := sinktest.LogBatch(pos.Next, 10)
		if b.Last == nil {
			b.Last = pos.Last
		}
		if _, err := o.Commit(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
}

// Law: a manifest's content is on record before the manifest is, with its hash;
// who goes on with another one is told once, from where and what; info lists both
// by offsets.
func TestContentsAlongAChain(t *testing.T) {
	ctx, d := context.Background(), sinktest.NewMemDisk()
	a, b := opsOf("hull2d"), opsOf("hull2d,maxima2d")
	_, commit := contentWriter(t, d, a)
	commit()
	commit()
	var told []*sinks.ContentChange
	o, _ := configWriter(t, d, sinks.Config{Content: b, OnChange: func(c *sinks.ContentChange) {
		told = append(told, c)
	}})
	for range 2 { // resumed twice
		if _, err := o.Resume(ctx, sinktest.LogTopic, 0); err != nil {
			t.Fatal(err)
		}
	}
	if len(told) != 1 || told[0].Offset != 20 || told[0].Was != a.Hash() || told[0].Is != b.Hash() ||
		told[0].String() != "ops: hull2d -> hull2d,maxima2d" {
		t.Errorf("told %+v", told)
	}
	if c, err := o.Changed(ctx, sinktest.LogTopic); err != nil || c == nil || c.String() != told[0].String() {
		t.Errorf("changed %+v, %v", c, err)
	}
	if c, err := o.Changed(ctx, "another"); err != nil || c != nil {
		t.Errorf("of a topic that is not there: %+v, %v", c, err)
	}
	if _, err := o.Commit(ctx, sinktest.LogBatch(20, 10)); err != nil {
		t.Fatal(err)
	}
	if c, err := o.Changed(ctx, sinktest.LogTopic); err != nil || c != nil {
		t.Errorf("after its own commit: %+v, %v", c, err)
	}
	for start, want := range map[int64]sinks.Content{0: a, 10: a, 20: b} {
		_, m := sinktest.ManifestOf(t, d, start)
		if got, err := sinks.ReadContent(ctx, sinktest.MemStore(d), m.ContentHash); err != nil ||
			!maps.Equal(got, want) {
			t.Errorf("the manifest at %d: %v, %v; want %v", start, got, err, want)
		}
	}
	s, err := read.Describe(ctx, sinktest.MemStore(d))
	if err != nil {
		t.Fatal(err)
	}
	want := []read.Configuration{
		{Hash: a.Hash(), Content: a, Ranges: []read.OffsetRange{{Topic: sinktest.LogTopic, Start: 0, End: 20}}},
		{Hash: b.Hash(), Content: b, Ranges: []read.OffsetRange{{Topic: sinktest.LogTopic, Start: 20, End: 30}}}}
	if !slices.EqualFunc(s.Configurations, want, func(x, y read.Configuration) bool {
		return x.Hash == y.Hash && maps.Equal(x.Content, y.Content) && slices.Equal(x.Ranges, y.Ranges)
	}) {
		t.Errorf("info has %+v", s.Configurations)
	}
	for _, line := range []string{"configuration " + a.Hash()[:8] +
		": max-frame-bytes: 64MiB; ops: hull2d\n  points/0: offsets 0 to 20\n",
		"configuration " + b.Hash()[:8] + ", against " + a.Hash()[:8] +
			": ops: hull2d -> hull2d,maxima2d\n  points/0: offsets 20 to 30\n"} {
		if !strings.Contains(s.String(), line) {
			t.Errorf("info lacks %q:\n%s", line, s)
		}
	}
	sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 30)
}

// Law: a manifest without the record of its content, or with a damaged one, is a
// fault; a record that no manifest names is none.
func TestVerifyFindsContents(t *testing.T) {
	c := opsOf("hull2d")
	for name, try := range map[string]struct {
		harm  func(d *sinktest.MemDisk)
		fault string
	}{
		"whole": {func(*sinktest.MemDisk) {}, ""},
		"unused": {func(d *sinktest.MemDisk) {
			other := opsOf("maxima2d")
			d.Live.Files[record.ContentName(other.Hash())] = &sinktest.Inode{Data: contentText(other)}
		}, ""},
		"gone": {func(d *sinktest.MemDisk) { delete(d.Live.Files, record.ContentName(c.Hash())) },
			sinks.ErrNotFound.Error()},
		"another": {func(d *sinktest.MemDisk) {
			d.Live.Files[record.ContentName(c.Hash())].Data = contentText(opsOf("maxima2d"))
		}, "belongs into"},
		"flipped": {func(d *sinktest.MemDisk) {
			f := d.Live.Files[record.ContentName(c.Hash())]
			f.Data = slices.Clone(f.Data)
			f.Data[30] ^= 1
		}, "damaged"},
		"empty": {func(d *sinktest.MemDisk) { d.Live.Files[record.ContentName(c.Hash())] = &sinktest.Inode{} },
			"damaged"},
		"stranger": {func(d *sinktest.MemDisk) { d.Live.Files[record.ConfigsFolder+"/note.txt"] = &sinktest.Inode{} },
			"no commit record"},
		"no hash": {func(d *sinktest.MemDisk) {
			file, m := sinktest.ManifestOf(t, d, 10)
			m.ContentHash = "../../store"
			d.Live.Files[file] = &sinktest.Inode{Data: record.Encode(m)}
		}, "no hash"},
	} {
		d := sinktest.NewMemDisk()
		_, commit := contentWriter(t, d, c)
		commit()
		commit()
		try.harm(d)
		r, err := read.Verify(context.Background(), sinktest.MemStore(d), read.VerifyOptions{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		if r.OK != (try.fault == "") || !strings.Contains(r.String(), try.fault) {
			t.Errorf("%s: want a fault %q:\n%s", name, try.fault, r)
		}
		if n := strings.Count(r.String(), "fault: "); n > 1 {
			t.Errorf("%s: %d faults of one record:\n%s", name, n, r)
		}
		if name == "flipped" { // the error of a writer with this content says what to do
			o, _ := contentWriter(t, d, c)
			pos, err := o.Resume(context.Background(), sinktest.LogTopic, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := o.Commit(context.Background(), sinktest.LogBatch(pos.Next, 10)); err == nil ||
				!strings.Contains(err.Error(), "remove this file") {
				t.Errorf("a commit over a damaged record: %v", err)
			}
		}
		// Writers go on: what was is unknown, and no reason to stop.
		if name == "gone" || name == "flipped" {
			_, commit := contentWriter(t, d, opsOf("maxima3d"))
			commit()
		}
	}
}

// A full disk that takes no record of the content takes no manifest either, and
// keeps nothing of the attempt.
func TestContentThatCannotBeRecorded(t *testing.T) {
	d := &deniedDisk{MemDisk: sinktest.NewMemDisk()}
	o, _ := contentWriter(t, d, opsOf("hull2d"))
	ctx := context.Background()
	if _, err := o.Resume(ctx, sinktest.LogTopic, 0); err != nil {
		t.Fatal(err)
	}
	d.folder, d.err = record.ConfigsFolder, errors.New("no space")
	if _, err := o.Commit(ctx, sinktest.LogBatch(0, 10)); !errors.Is(err, d.err) {
		t.Errorf("%v, want that there is no space", err)
	}
	if names := namesIn(t, sinktest.MemStore(d), record.StagingFolder); len(names) > 0 {
		t.Errorf("%q is left in staging", names)
	}
	d.folder = ""
	if _, err := o.Resume(ctx, sinktest.LogTopic, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Commit(ctx, sinktest.LogBatch(0, 10)); err != nil {
		t.Error(err)
	}
}

// Law: two that commit side by side with different contents see each other, by
// manifests that are newer than their own; one that ended, one that was draining
// when the other began, and equal contents are not seen.
func TestForeignConfigurations(t *testing.T) {
	ctx, a, b := context.Background(), opsOf("hull2d"), opsOf("maxima2d")
	look := func(f *sinks.Foreign) (changes []string) {
		t.Helper()
		found, err := f.Look(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range found {
			changes = append(changes, c.String())
		}
		return changes
	}
	none := func(what string, changes []string) {
		t.Helper()
		if len(changes) > 0 {
			t.Errorf("%s: %q", what, changes)
		}
	}
	d := sinktest.NewMemDisk()
	first, commitA := contentWriter(t, d, a)
	second, commitB := contentWriter(t, d, b)
	commitA()
	commitA()
	ofA, ofB := first.Foreign([]string{sinktest.LogTopic, "later"}), second.Foreign([]string{sinktest.LogTopic})
	none("the beginning", append(look(ofA), look(ofB)...))
	commitA() // draining, while b has not committed yet
	none("b, which has not committed", look(ofB))
	commitB()
	none("b, of what came before its own commit", look(ofB))
	none("b again", look(ofB))
	if got := look(ofA); !slices.Equal(got, []string{"ops: hull2d -> maxima2d"}) {
		t.Errorf("a finds %q beside itself", got)
	}
	none("a, of what it has seen", look(ofA))
	commitA()
	commitA()
	if got := look(ofB); !slices.Equal(got, []string{"ops: maxima2d -> hull2d", "ops: maxima2d -> hull2d"}) {
		t.Errorf("b finds %q beside itself", got)
	}
	none("a, of its own", look(ofA))

	// A twin has the same content; a new model is the writer's own word.
	_, commitTwin := contentWriter(t, d, a)
	commitTwin()
	none("a, of its twin", look(ofA))
	look(ofB)
	second.SetContent(a)
	commitB()
	commitTwin()
	none("b with the content of a", look(ofB))
	none("a, of b with its content", look(ofA))
	second.SetContent(b)
	commitB()
	commitB()
	if got := look(ofA); len(got) != 2 {
		t.Errorf("a finds %q after b changed", got)
	}
	none("b, of its own with both contents", look(ofB))
	if n := second.OwnManifests(); n > 0 {
		t.Errorf("%d manifests are remembered that were met", n)
	}
}
