package sinks_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/read"
	"entropipe/sinks/record"
)

// idOf is a topic's id for tests.
func idOf(n byte) schemas.TopicID { return schemas.TopicID{n, 7} }

// continued is an output of one partition with a manifest of [0, 5) in the topic
// with the given id, whose base has another.
func continued(t *testing.T, base, id schemas.TopicID) (*sinks.Output, *sinks.Local) {
	t.Helper()
	o, store := opened(t, t.TempDir())
	if err := o.Base(t.Context(), sinktest.LogTopic, base, map[int32]int64{0: 0, 1: 3}); err != nil {
		t.Fatal(err)
	}
	commitHoles(t, o, 0, 5, id)
	return o, store
}

func opened(t *testing.T, dir string) (*sinks.Output, *sinks.Local) {
	t.Helper()
	store, err := sinks.OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	o, err := sinks.Open(t.Context(), store, sinktest.EncoderOf(), sinks.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return o, store
}

// commitHoles commits [start, end) of partition 0, without records.
func commitHoles(t *testing.T, o *sinks.Output, start, end int64, id schemas.TopicID) {
	t.Helper()
	pos, err := o.Resume(t.Context(), sinktest.LogTopic, 0)
	if err != nil || pos.Next != start {
		t.Fatalf("resumed at %+v, %v", pos, err)
	}
	if _, err := o.Commit(t.Context(), &schemas.Batch{Topic: sinktest.LogTopic, Start: start, End: end,
		Holes: end - start, TopicID: id}); err != nil {
		t.Fatal(err)
	}
}

func TestPositionsNameTheTopicTheyContinue(t *testing.T) {
	none := schemas.TopicID{}
	for _, c := range []struct{ base, commits, first, second schemas.TopicID }{
		{idOf(1), idOf(1), idOf(1), idOf(1)},
		{none, idOf(2), idOf(2), none}, // the brokers got ids: the other partition has met none yet
		{none, none, none, none},
	} {
		o, store := continued(t, c.base, c.commits)
		if id, err := o.TopicID(t.Context(), sinktest.LogTopic); err != nil || id != c.base {
			t.Errorf("%+v: the topic has id %s, %v", c, id, err)
		}
		again, _ := opened(t, store.String())
		for _, o := range []*sinks.Output{o, again} {
			for p, want := range []schemas.Position{{Next: 5, TopicID: c.first}, {Next: 3, TopicID: c.second}} {
				if pos, err := o.Resume(t.Context(), sinktest.LogTopic, int32(p)); err != nil || pos != want {
					t.Errorf("%+v: partition %d resumes at %+v, %v; want %+v", c, p, pos, err, want)
				}
			}
			all, err := o.Positions(t.Context(), sinktest.LogTopic)
			if err != nil || len(all) != 2 || all[0].TopicID != c.first || all[0].Next != 5 || all[1].Next != 3 {
				t.Errorf("%+v: positions %+v, %v", c, all, err)
			}
		}
		sound(t, store)
	}
}

func sound(t *testing.T, store *sinks.Local) {
	t.Helper()
	r, err := read.Verify(t.Context(), store, read.VerifyOptions{})
	if err != nil || !r.OK {
		t.Errorf("%v\n%s", err, r)
	}
}

// A batch of another topic than the one that Resume has named is refused,
// whatever its reader believed.
func TestBatchOfAnotherTopicIsRefused(t *testing.T) {
	o, store := continued(t, idOf(1), idOf(1))
	for _, other := range []schemas.TopicID{idOf(2), {}} {
		if _, err := o.Resume(t.Context(), sinktest.LogTopic, 0); err != nil {
			t.Fatal(err)
		}
		b := &schemas.Batch{Topic: sinktest.LogTopic, Start: 5, End: 6, Holes: 1, TopicID: other}
		if err := o.Stage(t.Context(), b); err == nil || !strings.Contains(err.Error(), idOf(1).String()) {
			t.Errorf("staged: %v", err)
		}
		if _, err := o.Commit(t.Context(), b); err == nil || !strings.Contains(err.Error(), idOf(1).String()) {
			t.Errorf("committed: %v", err)
		}
	}
	commitHoles(t, o, 5, 6, idOf(1))
	sound(t, store)
}

// What one process accepts holds for every partition and every process, also one
// that had the output open, and stays.
func TestAcceptedTopicStaysAccepted(t *testing.T) {
	o, store := continued(t, idOf(1), idOf(1))
	other, _ := opened(t, store.String())
	for n := byte(2); n < 5; n++ {
		at, err := o.Positions(t.Context(), sinktest.LogTopic)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second is no news
			if err := o.Accept(t.Context(), sinktest.LogTopic, idOf(n), at); err != nil {
				t.Fatal(err)
			}
		}
		for _, o := range []*sinks.Output{o, other} {
			if id, err := o.TopicID(t.Context(), sinktest.LogTopic); err != nil || id != idOf(n) {
				t.Errorf("the topic has id %s, %v; accepted was %s", id, err, idOf(n))
			}
			if id, err := sinks.TopicIDIn(t.Context(), store, sinktest.LogTopic); err != nil || id != idOf(n) {
				t.Errorf("a reader finds id %s, %v; accepted was %s", id, err, idOf(n))
			}
			for p := range int32(2) {
				if pos, err := o.Resume(t.Context(), sinktest.LogTopic, p); err != nil || pos.TopicID != idOf(n) ||
					pos.Next != at[p].Next {
					t.Errorf("partition %d resumes at %+v, %v", p, pos, err)
				}
			}
		}
		end := at[0].Next
		commitHoles(t, other, end, end+1, idOf(n))
		sound(t, store)
	}
	names, err := store.Names(t.Context(), record.TopicFolder(sinktest.LogTopic))
	bases := 0
	for _, name := range names {
		if record.IsBaseName(name) {
			bases++
		}
	}
	if err != nil || bases != 4 {
		t.Errorf("%d bases in %v, %v", bases, names, err)
	}
}

// Of two processes that accept different topics at once one fails.
func TestTwoTopicsAreNotAcceptedAtOnce(t *testing.T) {
	o, store := continued(t, idOf(1), idOf(1))
	results := make(chan error)
	for n := range byte(8) {
		go func() { results <- o.Accept(t.Context(), sinktest.LogTopic, idOf(10+n%2), nil) }()
	}
	for range 8 {
		if err := <-results; err != nil && !strings.Contains(err.Error(), "at the same moment") {
			t.Error(err)
		}
	}
	id, err := o.TopicID(t.Context(), sinktest.LogTopic)
	if err != nil || id != idOf(10) && id != idOf(11) {
		t.Errorf("%s, %v", id, err)
	}
	sound(t, store)
}

// verify finds a chain that goes on in another topic without leave.
func TestVerifyFindsTheRecordsOfAnotherTopic(t *testing.T) {
	none := schemas.TopicID{}
	for _, c := range []struct {
		base, first, second schemas.TopicID
		accepted            bool
		wrong               bool
	}{
		{idOf(1), idOf(1), idOf(1), false, false},
		{idOf(1), idOf(1), idOf(2), false, true},
		{idOf(1), idOf(2), idOf(2), false, true},
		{idOf(1), idOf(1), none, false, true},
		{idOf(1), idOf(1), idOf(2), true, false},
		{none, none, idOf(2), false, false},
		{none, idOf(1), idOf(2), false, true},
		{none, idOf(1), none, false, true},
	} {
		o, store := continued(t, c.base, c.base)
		if c.accepted {
			if err := o.Accept(t.Context(), sinktest.LogTopic, c.second, nil); err != nil {
				t.Fatal(err)
			}
		}
		for i, id := range []schemas.TopicID{c.first, c.second} { // as no Output would
			m := &record.Manifest{Format: record.FormatVersion, UUID: record.NewUUID(), Topic: sinktest.LogTopic,
				TopicID: id.String(), Start: 5 + int64(i), End: 6 + int64(i), Counts: record.Counts{Holes: 1}}
			if err := store.Create(t.Context(), record.ManifestName(m.TopicPartition(), m.Start),
				record.Encode(m)); err != nil {
				t.Fatal(err)
			}
		}
		r, err := read.Verify(t.Context(), store, read.VerifyOptions{})
		if err != nil || r.OK == c.wrong || c.wrong && !strings.Contains(r.String(), "another topic of the same name") {
			t.Errorf("%+v: %v\n%s", c, err, r)
		}
	}
}

// A base is read like every other record: damage, and ids that are none, are
// errors.
func TestDamagedBases(t *testing.T) {
	o, store := continued(t, idOf(1), idOf(1))
	name := record.TopicFolder(sinktest.LogTopic) + "/" + record.BaseName(2)
	for what, text := range map[string]string{
		"a strange id": strings.Replace(string(record.Encode(record.Base{Format: record.FormatVersion,
			Topic: sinktest.LogTopic, TopicID: idOf(3).String()})), idOf(3).String(), "0123", 1),
		"another topic": string(record.Encode(record.Base{Format: record.FormatVersion, Topic: "elsewhere",
			TopicID: idOf(3).String()})),
		"no JSON": "{",
	} {
		if err := store.Create(t.Context(), name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if pos, err := o.Resume(t.Context(), sinktest.LogTopic, 0); err == nil {
			t.Errorf("%s: resumes at %+v", what, pos)
		}
		if r, err := read.Verify(t.Context(), store, read.VerifyOptions{}); err != nil || r.OK {
			t.Errorf("%s: verify: %v\n%s", what, err, r)
		}
		if err := os.Remove(filepath.Join(store.String(), name)); err != nil {
			t.Fatal(err)
		}
	}
	sound(t, store)
}
