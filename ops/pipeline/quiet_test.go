package pipeline

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"entropipe/schemas"
)

// quiet is a partition whose end has been reached: it is asked, and has nothing.
type quiet struct{}

func (quiet) Check(context.Context, schemas.Position) (schemas.TopicID, error) {
	return schemas.TopicID{}, nil
}
func (quiet) Committed(context.Context, int64) {}

func (quiet) Fetch(ctx context.Context, from int64, _ int32) (schemas.Fetched, error) {
	select {
	case <-time.After(500 * time.Millisecond):
		return schemas.Fetched{From: from, Next: from, End: from}, nil
	case <-ctx.Done():
		return schemas.Fetched{}, ctx.Err()
	}
}

// Law: partitions without records, however many, neither make those that have
// some wait, but for a first turn, nor make them commit early: what they reserve
// is no memory that a commit would free.
func TestQuietPartitionsDisturbNobody(t *testing.T) {
	const records, each = 5000, 10
	for _, n := range []int{0, 100, 600, 2000} {
		if testing.Short() && n > 100 {
			break // the race detector finds no more
		}
		synctest.Test(t, func(t *testing.T) {
			out := &topicOutput{}
			p := newPipeline(out, echo(0), func(c *Config) { c.Memory, c.Roll.Records = 256<<20, 1<<30 })
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() {
					if err := p.Partition(ctx, "quiet", int32(i), quiet{}); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			start := time.Now()
			hot := &endless{message: schemas.Message{Topic: "hot"}, n: records, bytes: 1 << 10, each: each}
			if err := p.Partition(ctx, "hot", 0, hot); err != nil {
				t.Error(err)
			}
			took := time.Since(start)
			cancel()
			all.Wait()
			p.Close()
			// A first turn is a poll of as many as fit three quarters of the memory.
			if most := time.Duration(n/192+1) * 500 * time.Millisecond; took > most {
				t.Errorf("beside %d quiet partitions %d fetches took %v, at most %v is a turn of each", n,
					records/each, took, most)
			}
			if len(out.batches) != 1 || out.batches[0].Messages != records {
				t.Errorf("beside %d quiet partitions %d records made %d commits", n, records, len(out.batches))
			}
			if used := p.budget.used(); used != 0 {
				t.Errorf("%d bytes are still counted", used)
			}
		})
	}
}

// Law: a commit is asked for where it makes room, and nowhere else.
func TestCommitsAreAskedForWhereTheyHelp(t *testing.T) {
	idle := func() bool { return true }
	for _, c := range []struct {
		name          string
		fetched, held int64
		bytes         int64
		idle          func() bool
		want          bool
	}{
		{"nobody waits", 40, 40, 0, nil, false},
		{"more than the limit", 60, 50, 0, nil, true},
		{"fetched memory is in the way", 50, 10, 10, busy, false},
		{"of one who is idle too", 70, 10, 10, idle, false},
		{"held memory is in the way", 30, 65, 10, busy, true},
		{"of one who is idle too", 60, 35, 10, idle, true},
		{"there is room: of one who has become idle", 60, 10, 10, idle, false},
		{"a huge record, others fetched", 10, 10, 200, idle, false},
		{"a huge record, others held", 0, 10, 200, busy, true},
	} {
		asked := 0
		b := budget{limit: 100, relieve: func() { asked++ }, fetched: c.fetched, held: c.held}
		if c.bytes > 0 {
			b.waiting = []*reservation{{bytes: c.bytes, borrower: whoIs(c.idle), granted: make(chan struct{})}}
		}
		b.press()
		if (asked > 0) != c.want {
			t.Errorf("%s (%d fetched, %d held, %d wanted): asked for a commit: %v", c.name, c.fetched, c.held,
				c.bytes, asked > 0)
		}
	}
	// What was fetched goes, and only what is held is left in the way.
	asked := 0
	b := budget{limit: 100, relieve: func() { asked++ }, fetched: 50, held: 50}
	b.waiting = []*reservation{{bytes: 60, borrower: whoIs(busy), granted: make(chan struct{})}}
	if b.press(); asked != 0 {
		t.Error("asked although fetched memory was in the way")
	}
	if b.fetch(-50); asked != 1 {
		t.Error("not asked when fetched memory had gone")
	}
}
