package s3_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"entropipe/schemas"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/record"
	"entropipe/sinks/s3/s3test"
)

// span is the number of offsets of each manifest that chain makes.
const span = 7

// chain stores manifests without files, from number first to number last-1 of a partition.
func chain(t *testing.T, s *s3test.Server, first, last int) {
	t.Helper()
	for n := first; n < last; n++ {
		start := int64(n) * span
		m := &record.Manifest{Format: record.FormatVersion, UUID: record.NewUUID(),
			Topic: sinktest.LogTopic, Start: start,
			End: start + span, Gap: true, Counts: record.Counts{Holes: span}, Files: []record.File{},
			Created: time.Now().UTC()}
		p := record.TopicPartition{Topic: sinktest.LogTopic}
		s.Put(t, "out/"+record.ManifestName(p, start), string(record.Encode(m)), nil)
	}
}

// Law: a resume finds the end of the newest manifest, whatever it is told where to look. With a
// hint that is not far off it lists twice, however many manifests there are.
func TestHints(t *testing.T) {
	t.Parallel()
	s := s3test.New(t)
	began := sinktest.OpenOn(t, s.Open(t, "out"))
	if err := began.Base(t.Context(), sinktest.LogTopic, schemas.TopicID{}, nil); err != nil {
		t.Fatal(err)
	}
	p := record.ManifestFolder(record.TopicPartition{Topic: sinktest.LogTopic})
	there := 0
	for _, manifests := range []int{0, 1, 1000, 1001, 2001} {
		chain(t, s, there, manifests)
		there = manifests
		newest := int64(manifests-1) * span
		for _, c := range []struct {
			name  string
			hint  int64
			right bool // at most 1,000 names are at the hint or behind it, and one at least
		}{
			{name: "none", hint: -1},
			{name: "the first offset", hint: 0},
			{name: "the newest", hint: newest, right: true},
			{name: "the one before", hint: newest - span, right: true},
			{name: "between two", hint: newest - span - 3, right: true},
			{name: "990 before", hint: newest - 990*span, right: true},
			{name: "1,000 before", hint: newest - 1000*span},
			{name: "1,500 before", hint: newest - 1500*span},
			{name: "one ahead", hint: newest + 1},
			{name: "the end", hint: newest + span},
			{name: "far ahead", hint: math.MaxInt64},
			{name: "a larger number of digits", hint: 1_000_000_000},
		} {
			store := s.Open(t, "out")
			o := sinktest.OpenOn(t, store)
			o.Hint(sinktest.LogTopic, 0, c.hint)
			before := store.Requests()
			pos, err := o.Resume(t.Context(), sinktest.LogTopic, 0)
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("%d manifests, hint %s", manifests, c.name)
			if want := int64(manifests) * span; pos.Next != want {
				t.Errorf("%s: goes on at %d, want %d", name, pos.Next, want)
			}
			got := minus(store.Requests(), before)
			// a page more where the last one is full, one for the hint, one for staging
			most := int64(manifests/1000) + 3
			if manifests > 0 && c.right || manifests < 1000 && c.hint <= max(newest, 0) {
				most = 2
			}
			if got.List > most || got.Get > 12 {
				t.Errorf("%s: %+v, want at most %d listings", name, got, most)
			}
			if _, err := o.Commit(t.Context(), sinktest.LogBatch(pos.Next+1, span)); err == nil {
				t.Errorf("%s: a commit behind the next offset", name)
			}
		}
	}
	for name, spoil := range map[string]func(){
		"other names behind the manifests": func() { s.Put(t, "out/"+p+"/zzz", "", nil) },
		"a name between manifests":         func() { s.Put(t, "out/"+p+"/00000000000000020990.retired.json", "", nil) },
		"a repair moved the newest ones": func() {
			for ; there > 2990; there-- {
				s.Remove(t, fmt.Sprintf("out/%s/%s", p, record.ManifestBase(int64(there-1)*span)))
			}
		},
	} {
		spoil()
		for _, hint := range []int64{0, 2980 * span, 2989 * span, 2995 * span, 2999 * span, 3000 * span, 4000 * span} {
			o := sinktest.OpenOn(t, s.Open(t, "out"))
			o.Hint(sinktest.LogTopic, 0, hint)
			if pos, err := o.Resume(t.Context(), sinktest.LogTopic, 0); err != nil || pos.Next != int64(there)*span {
				t.Errorf("%s, hint %d: goes on at %d, want %d (%v)", name, hint, pos.Next, there*span, err)
			}
		}
	}
	store := s.Open(t, "out")
	o := sinktest.OpenOn(t, store)
	for range 3 { // others commit while this process has not looked
		before := store.Requests()
		pos, err := o.Resume(t.Context(), sinktest.LogTopic, 0)
		if err != nil || pos.Next != int64(there)*span {
			t.Fatalf("goes on at %d, want %d (%v)", pos.Next, there*span, err)
		}
		if got := minus(store.Requests(), before); got.Get > 40 || got.List > 8 {
			t.Errorf("after others: %+v", got)
		}
		chain(t, s, there, there+900)
		there += 900
	}
}

// A staged listing is of one partition: other partitions' attempts cost nothing.
func TestStagingOfOtherPartitions(t *testing.T) {
	t.Parallel()
	s := s3test.New(t)
	sinktest.TakeOver(t, s.Open(t, "out"), 0, 10, 10)
	for n := range 2500 {
		p := record.TopicPartition{Topic: sinktest.LogTopic, ID: int32(1 + n%100)}
		s.Put(t, fmt.Sprintf("out/%s/frames-0", record.StagingName(p, 0, record.NewUUID())), "", nil)
	}
	mine := record.StagingName(record.TopicPartition{Topic: sinktest.LogTopic}, 0, record.NewUUID())
	s.Put(t, "out/"+mine+"/frames-0", "", nil) // an attempt that lost its race
	store := s.Open(t, "out")
	o := sinktest.OpenOn(t, store)
	before := store.Requests()
	if _, err := o.Resume(t.Context(), sinktest.LogTopic, 0); err != nil {
		t.Fatal(err)
	}
	if got := minus(store.Requests(), before); got.List != 2 {
		t.Errorf("%+v, want 2 listings", got)
	}
	if keys := s.Keys(t, "out/"+mine); len(keys) > 0 {
		t.Errorf("%q are left", keys)
	}
}
