package s3_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/record"
	"entropipe/sinks/s3"
	"entropipe/sinks/s3/s3test"
)

// moment is where a writer stands while it commits: before its nth request of a kind.
type moment struct {
	name string
	kind s3test.Kind
	nth  int
}

// moments are all of which a writer may stand at, but for the begin and the end.
var moments = []moment{
	{"some files are staged", s3test.Put, 1},
	{"staged, and no manifest", s3test.Create, 0},
	{"a manifest, and no copy", s3test.Copy, 0},
	{"some copies", s3test.Copy, 1},
	{"copied, and not deleted", s3test.Delete, 0},
}

// standing is a writer that stands at a moment of its first commit, from which on its requests
// are kept, so that they can be executed once more.
type standing struct {
	at     moment
	stood  func() s3test.Fault // called at the moment
	commit context.Context     // context of the commit

	mu    sync.Mutex
	begun bool // the commit
	count int
	kept  map[s3test.Kind][]s3test.Seen
	there bool
}

func (z *standing) plan(seen s3test.Seen) s3test.Fault {
	z.mu.Lock()
	if !z.begun || z.there && z.commit.Err() != nil { // before the commit, and after its death
		begun := z.begun
		z.mu.Unlock()
		if begun {
			return s3test.CutBefore
		}
		return ""
	}
	z.kept[seen.Kind] = append(z.kept[seen.Kind], seen)
	if seen.Kind == z.at.kind {
		z.count++
	}
	now := !z.there && z.count == z.at.nth+1
	z.there = z.there || now
	z.mu.Unlock()
	if now {
		return z.stood()
	}
	return ""
}

// begin has the writer resume the partition, and returns what commits.
func (z *standing) begin(t *testing.T, s *s3test.Server, records int) func() error {
	t.Helper()
	z.kept = map[s3test.Kind][]s3test.Seen{}
	o := sinktest.OpenOn(t, s.OpenAt(t, s.Before(t, z.plan).URL, "out"))
	if err := o.Base(t.Context(), sinktest.LogTopic, schemas.TopicID{}, map[int32]int64{0: 0}); err != nil {
		t.Fatal(err)
	}
	pos, err := o.Resume(t.Context(), sinktest.LogTopic, 0)
	if err != nil {
		t.Fatal(err)
	}
	return func() error {
		z.mu.Lock()
		z.begun = true
		z.mu.Unlock()
		_, err := o.Commit(z.commit, sinktest.LogBatch(pos.Next, records))
		return err
	}
}

// Law: a writer that stands still at any moment of a commit, while another one commits the same
// records in batches of any size, changes nothing when it goes on: it has lost, or what it
// does is done.
func TestZombieGoesOn(t *testing.T) {
	const done, end = 4, 14
	for number, at := range moments {
		for i, size := range []int{3, 5, 9} {
			if (number+i)%stride(2) != 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s, batches of %d", at.name, size), func(t *testing.T) {
				t.Parallel()
				s := s3test.New(t)
				sinktest.TakeOver(t, s.Open(t, "out"), 0, done, done)
				frozen, thaw, result := make(chan struct{}), make(chan struct{}), make(chan error, 1)
				z := &standing{at: at, commit: t.Context(), stood: func() s3test.Fault {
					close(frozen)
					<-thaw
					return ""
				}}
				commit := z.begin(t, s, 5)
				go func() { result <- commit() }()
				<-frozen
				sinktest.TakeOver(t, s.Open(t, "out"), 0, end, size)
				before := tablesOf(t, s)
				close(thaw)
				err := <-result
				lost := at.kind == s3test.Put || at.kind == s3test.Create
				if lost && !errors.Is(err, schemas.ErrLost) || !lost && err != nil {
					t.Errorf("the commit ended with %v; lost %t", err, lost)
				}
				mustBeAs(t, s, before, end, "the zombie has gone on")
				mustBeWhole(t, s, end)
			})
		}
	}
}

// Law: requests of a writer that died at any moment of a commit are executed once more, in any
// order of their kinds, at any moment of the commit of another writer and after it. Neither
// what readers see nor what a third writer finds changes by it.
func TestZombieInEveryOrder(t *testing.T) {
	arrivals := append([]moment{{"the other one has ended", "", 0}}, moments...)
	number := 0
	for _, died := range moments {
		for _, arrival := range arrivals {
			for _, order := range orders(died) {
				if number++; number%stride(37) != 0 {
					continue
				}
				size := 3 + number%5
				t.Run(fmt.Sprintf("died: %s; arrival: %s; %v", died.name, arrival.name, order), func(t *testing.T) {
					t.Parallel()
					lateInOrder(t, died, arrival, order, size)
				})
			}
		}
	}
}

// orders returns the orders in which requests may arrive of a writer that died at a moment.
func orders(died moment) [][]s3test.Kind {
	kinds := []s3test.Kind{s3test.Put, s3test.Create, s3test.Copy, s3test.Delete}
	return permutations(kinds[:slices.Index(kinds, died.kind)+1])
}

func permutations(kinds []s3test.Kind) (all [][]s3test.Kind) {
	if len(kinds) == 0 {
		return [][]s3test.Kind{nil}
	}
	for i, first := range kinds {
		for _, rest := range permutations(slices.Concat(kinds[:i], kinds[i+1:])) {
			all = append(all, append([]s3test.Kind{first}, rest...))
		}
	}
	return all
}

func lateInOrder(t *testing.T, died, arrival moment, order []s3test.Kind, size int) {
	const done, end = 4, 17
	s := s3test.New(t)
	sinktest.TakeOver(t, s.Open(t, "out"), 0, done, done)
	ctx, die := context.WithCancel(t.Context())
	defer die()
	z := &standing{at: died, commit: ctx, stood: func() s3test.Fault { die(); return s3test.CutBefore }}
	if err := z.begin(t, s, 5)(); err == nil {
		t.Fatal("the writer has not died")
	}
	arrive := func() {
		for _, kind := range order {
			if len(z.kept[kind]) == 0 {
				t.Errorf("it sent nothing of kind %s", kind)
			}
			for _, seen := range z.kept[kind] {
				seen.Repeat()
			}
		}
	}
	if arrival.kind != "" {
		other := &standing{at: arrival, commit: t.Context(), stood: func() s3test.Fault { arrive(); return "" }}
		err := other.begin(t, s, size)()
		if err != nil && !errors.Is(err, schemas.ErrLost) {
			t.Errorf("the other one: %v", err)
		}
	}
	sinktest.TakeOver(t, s.Open(t, "out"), 0, end, size)
	before := tablesOf(t, s)
	arrive()
	mustBeAs(t, s, before, end, "the requests have arrived")
	sinktest.TakeOver(t, s.Open(t, "out"), 0, end+3, 3)
	sinktest.MustBeWhole(t, s.Open(t, "out"), 0, end+3)
}

// tablesOf returns the objects outside of staging, by their keys.
func tablesOf(t *testing.T, s *s3test.Server) map[string]string {
	t.Helper()
	store, all := s.Open(t, "out"), map[string]string{}
	err := store.List(t.Context(), ".", func(e sinks.Entry) error {
		if !strings.HasPrefix(e.Name, record.StagingFolder+"/") {
			all[e.Name] = contentOf(t, store, e.Name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func mustBeAs(t *testing.T, s *s3test.Server, before map[string]string, end int64, when string) {
	t.Helper()
	after := tablesOf(t, s)
	for name := range maps.Keys(after) {
		if text, there := before[name]; !there || text != after[name] {
			t.Errorf("%s: %s is another one; it was there: %t", when, name, there)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%s: %d objects, before %d", when, len(after), len(before))
	}
	sinktest.MustBeWhole(t, s.Open(t, "out"), 0, end)
}

// Two processes resume a partition at a time. One of them publishes the file that the other one
// reads, and deletes it in staging.
func TestPublishedWhileItIsRead(t *testing.T) {
	s := s3test.New(t)
	text := strings.Repeat("0123456789abcdef", 20_000)
	folder := record.StagingName(record.TopicPartition{Topic: "t"}, 0, record.NewUUID())
	move := sinks.Move{From: folder + "/frames-0", To: "frames/part.parquet",
		Bytes: int64(len(text)), SHA256: sum(text)}
	s.Put(t, "out/"+move.From, text, map[string]string{})
	publish := func(store *s3.Store) error { return store.Publish(t.Context(), []sinks.Move{move}) }
	reads := 0
	p := s.Before(t, func(seen s3test.Seen) s3test.Fault {
		if seen.Kind == s3test.Get {
			if reads++; reads == 2 {
				if err := publish(s.Open(t, "out")); err != nil {
					t.Error(err)
				}
			}
		}
		return ""
	})
	if err := publish(s.OpenAt(t, p.URL, "out")); err != nil || reads < 2 {
		t.Errorf("after %d reads: %v", reads, err)
	}
	if keys := s.Keys(t, ""); len(keys) != 1 || contentOf(t, s.Open(t, "out"), move.To) != text {
		t.Errorf("%q", keys)
	}
}
