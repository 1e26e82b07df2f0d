package sinks

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"entropipe/schemas"
)

func opsOf(ops string) Content { return Content{"ops": ops, "max-frame-bytes": "64MiB"} }

// contentWriter opens the output with a content and resumes partition 0; commit
// writes the next ten records.
func contentWriter(t *testing.T, d disk, c Content) (o *Output, commit func()) {
	t.Helper()
	ctx := context.Background()
	o, err := Open(ctx, memStore(d), Config{Tables: []string{}, Content: c})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Base(ctx, logTopic, schemas.TopicID{}, map[int32]int64{0: 0}); err != nil {
		t.Fatal(err)
	}
	return o, func() {
		t.Helper()
		pos, err := o.Resume(ctx, logTopic, 0)
		if err != nil {
			t.Fatal(err)
		}
		b := logBatch(pos.Next, 10)
		if b.Last == nil {
			b.Last = pos.Last
		}
		if _, err := o.Commit(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
}

// Law: equal contents have equal hashes, different ones have not, and changes are
// exactly the keys that differ.
func TestHashOfContent(t *testing.T) {
	if got := (Content{}).Hash() + Content(nil).Hash(); got != "" {
		t.Errorf("no content has hash %s", got)
	}
	if got, want := (Content{"b": "2", "a": "1"}).Hash(), (Content{"a": "1", "b": "2"}).Hash(); got != want || !isHash(got) {
		t.Errorf("%s is not %s", got, want)
	}
	value := rapid.SampledFrom([]string{"a", "b", "a,b", "\x00", "<&>", "\u2028", "a -> b"})
	content := rapid.MapOfN(rapid.SampledFrom([]string{"ops", "tables", "lm"}), value, 1, 3)
	rapid.Check(t, func(rt *rapid.T) {
		a, b := Content(content.Draw(rt, "a")), Content(content.Draw(rt, "b"))
		equal := maps.Equal(a, b)
		if (a.Hash() == b.Hash()) != equal || (len(a.Changes(b)) == 0) != equal || len(a.Changes(b)) != len(b.Changes(a)) {
			rt.Fatalf("%v and %v: hashes %s %s, changes %q", a, b, a.Hash(), b.Hash(), a.Changes(b))
		}
	})
	got := Content{"ops": "hull2d", "lm": "gpt2"}.Changes(Content{"ops": "hull2d,maxima2d", "raw": "velodyne"})
	if want := []string{"lm: gpt2 -> (none)", "ops: hull2d -> hull2d,maxima2d", "raw: (none) -> velodyne"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Law: a manifest's content is on record before the manifest is, with its hash;
// who goes on with another one is told once, from where and what; info lists both
// by offsets.
func TestContentsAlongAChain(t *testing.T) {
	ctx, d := context.Background(), newMemDisk()
	a, b := opsOf("hull2d"), opsOf("hull2d,maxima2d")
	_, commit := contentWriter(t, d, a)
	commit()
	commit()
	var told []*ContentChange
	o, _ := contentWriter(t, d, b)
	o.cfg.OnChange = func(c *ContentChange) { told = append(told, c) }
	for range 2 { // resumed twice
		if _, err := o.Resume(ctx, logTopic, 0); err != nil {
			t.Fatal(err)
		}
	}
	if len(told) != 1 || told[0].Offset != 20 || told[0].Was != a.Hash() || told[0].Is != b.Hash() || told[0].String() != "ops: hull2d -> hull2d,maxima2d" {
		t.Errorf("told %+v", told)
	}
	if c, err := o.Changed(ctx, logTopic); err != nil || c == nil || c.String() != told[0].String() {
		t.Errorf("changed %+v, %v", c, err)
	}
	if c, err := o.Changed(ctx, "another"); err != nil || c != nil {
		t.Errorf("of a topic that is not there: %+v, %v", c, err)
	}
	if _, err := o.Commit(ctx, logBatch(20, 10)); err != nil {
		t.Fatal(err)
	}
	if c, err := o.Changed(ctx, logTopic); err != nil || c != nil {
		t.Errorf("after its own commit: %+v, %v", c, err)
	}
	for start, want := range map[int64]Content{0: a, 10: a, 20: b} {
		_, m := manifestOf(t, d, start)
		if got, err := ReadContent(ctx, memStore(d), m.ContentHash); err != nil || !maps.Equal(got, want) {
			t.Errorf("the manifest at %d: %v, %v; want %v", start, got, err, want)
		}
	}
	s, err := Describe(ctx, memStore(d))
	if err != nil {
		t.Fatal(err)
	}
	want := []Configuration{{a.Hash(), a, []OffsetRange{{logTopic, 0, 0, 20}}}, {b.Hash(), b, []OffsetRange{{logTopic, 0, 20, 30}}}}
	if !slices.EqualFunc(s.Configurations, want, func(x, y Configuration) bool {
		return x.Hash == y.Hash && maps.Equal(x.Content, y.Content) && slices.Equal(x.Ranges, y.Ranges)
	}) {
		t.Errorf("info has %+v", s.Configurations)
	}
	for _, line := range []string{"configuration " + a.Hash()[:8] + ": max-frame-bytes: 64MiB; ops: hull2d\n  points/0: offsets 0 to 20\n",
		"configuration " + b.Hash()[:8] + ", against " + a.Hash()[:8] + ": ops: hull2d -> hull2d,maxima2d\n  points/0: offsets 20 to 30\n"} {
		if !strings.Contains(s.String(), line) {
			t.Errorf("info lacks %q:\n%s", line, s)
		}
	}
	mustBeWhole(t, memStore(d), 0, 30)
}

// Law: a manifest without the record of its content, or with a damaged one, is a
// fault; a record that no manifest names is none.
func TestVerifyFindsContents(t *testing.T) {
	c := opsOf("hull2d")
	for name, try := range map[string]struct {
		harm  func(d *memDisk)
		fault string
	}{
		"whole": {func(*memDisk) {}, ""},
		"unused": {func(d *memDisk) {
			other := opsOf("maxima2d")
			d.live.files[contentFile(other.Hash())] = &inode{data: encodeRecord(contentRecord{2, other})}
		}, ""},
		"gone": {func(d *memDisk) { delete(d.live.files, contentFile(c.Hash())) }, ErrNotFound.Error()},
		"another": {func(d *memDisk) {
			d.live.files[contentFile(c.Hash())].data = encodeRecord(contentRecord{2, opsOf("maxima2d")})
		}, "belongs into"},
		"flipped": {func(d *memDisk) {
			f := d.live.files[contentFile(c.Hash())]
			f.data = slices.Clone(f.data)
			f.data[30] ^= 1
		}, "damaged"},
		"empty":    {func(d *memDisk) { d.live.files[contentFile(c.Hash())] = &inode{} }, "damaged"},
		"stranger": {func(d *memDisk) { d.live.files[configsFolder+"/note.txt"] = &inode{} }, "no commit record"},
		"no hash": {func(d *memDisk) {
			file, m := manifestOf(t, d, 10)
			m.ContentHash = "../../store"
			d.live.files[file] = &inode{data: encodeRecord(m)}
		}, "no hash"},
	} {
		d := newMemDisk()
		_, commit := contentWriter(t, d, c)
		commit()
		commit()
		try.harm(d)
		r, err := Verify(context.Background(), memStore(d), VerifyOptions{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		if r.OK != (try.fault == "") || !strings.Contains(r.String(), try.fault) {
			t.Errorf("%s: want a fault %q:\n%s", name, try.fault, r)
		}
		if n := strings.Count(r.String(), "fault: "); n > 1 {
			t.Errorf("%s: %d faults of one record:\n%s", name, n, r)
		}
		if name == "flipped" { // who writes with it says what to do
			o, _ := contentWriter(t, d, c)
			pos, err := o.Resume(context.Background(), logTopic, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := o.Commit(context.Background(), logBatch(pos.Next, 10)); err == nil || !strings.Contains(err.Error(), "remove this file") {
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
	d := &deniedDisk{memDisk: newMemDisk()}
	o, _ := contentWriter(t, d, opsOf("hull2d"))
	ctx := context.Background()
	if _, err := o.Resume(ctx, logTopic, 0); err != nil {
		t.Fatal(err)
	}
	d.folder, d.err = configsFolder, errors.New("no space")
	if _, err := o.Commit(ctx, logBatch(0, 10)); !errors.Is(err, d.err) {
		t.Errorf("%v, want that there is no space", err)
	}
	if names := namesIn(t, memStore(d), stagingFolder); len(names) > 0 {
		t.Errorf("%q is left in staging", names)
	}
	d.folder = ""
	if _, err := o.Resume(ctx, logTopic, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Commit(ctx, logBatch(0, 10)); err != nil {
		t.Error(err)
	}
}

// Law: two that commit side by side with different contents see each other, by
// manifests that are newer than their own; one that ended, one that was draining
// when the other began, and equal contents are not seen.
func TestForeignConfigurations(t *testing.T) {
	ctx, a, b := context.Background(), opsOf("hull2d"), opsOf("maxima2d")
	look := func(f *Foreign) (changes []string) {
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
	d := newMemDisk()
	first, commitA := contentWriter(t, d, a)
	second, commitB := contentWriter(t, d, b)
	commitA()
	commitA()
	ofA, ofB := first.Foreign([]string{logTopic, "later"}), second.Foreign([]string{logTopic})
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
	if n := len(second.own.uuids); n > 0 {
		t.Errorf("%d manifests are remembered that were met", n)
	}
}
