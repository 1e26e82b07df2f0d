package backfill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/record"
)

// Adopting is an output that adopts commits of another one.
type Adopting interface {
	Adopt(ctx context.Context, f *sinks.Former, topic string, id int32, end int64) (sinks.Adopted, error)
	// Newest returns the newest manifest of a partition; nil: there is none.
	Newest(ctx context.Context, topic string, id int32) (*record.Manifest, error)
}

var _ Adopting = (*sinks.Output)(nil)

// Adoption takes over the lanes of an earlier output that are equal, before the other
// lanes are computed. All fields but Shard and Order are required.
type Adoption struct {
	Output   Adopting
	Former   *sinks.Former
	Plan     *record.Plan   // the plan of Output
	Lanes    map[int32]bool // the lanes of the plan that are equal, from Earlier.Lanes
	Shard    Shard
	Order    uint64        // seed of the order of lanes, where the shard is the whole plan
	Jobs     int           // lanes at a time
	RetryFor time.Duration // how long an output that cannot be written is tried again
	Log      *slog.Logger
}

// AdoptedLanes counts the lanes of a shard after an Adoption.
type AdoptedLanes struct {
	Lanes    int   // of the shard
	Adopted  int   // taken over whole, now or before
	Computed int   // equal, and their rows were computed before
	Partly   int   // taken over up to a commit that could not be; the rest is computed
	Not      int   // equal, and nothing could be taken over
	Changed  int   // new, or changed since the earlier plan
	Linked   int64 // files that share their bytes with the earlier output
	Copied   int64
	Bytes    int64
	Whys     map[string]int // number of lanes by the reason why they are not whole
}

// String counts the lanes, such as "adopted 99 of 100 lanes, 1 changed".
func (a *AdoptedLanes) String() string {
	text := fmt.Sprintf("adopted %d of %d lanes, %d changed", a.Adopted, a.Lanes, a.Changed)
	if a.Partly > 0 {
		text += fmt.Sprintf(", %d adopted in part", a.Partly)
	}
	if a.Computed > 0 {
		text += fmt.Sprintf(", %d computed before", a.Computed)
	}
	if a.Not > 0 {
		text += fmt.Sprintf(", %d not adopted", a.Not)
	}
	return text
}

// Run adopts what can be adopted. Several processes may run it at once: each commit has
// one creator. It is repeated at no cost: lanes that are there are not adopted again.
// Faults of the earlier output are counted and logged, once a reason; an error is one of
// the new output, or that ctx has ended.
func (a *Adoption) Run(ctx context.Context) (*AdoptedLanes, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &adopting{Adoption: a, sum: AdoptedLanes{Whys: map[string]int{}}}
	queue := r.queue()
	var wg sync.WaitGroup
	var fault error
	for range max(1, min(a.Jobs, len(queue))) {
		wg.Go(func() {
			for ctx.Err() == nil {
				r.mu.Lock()
				if len(queue) == 0 {
					r.mu.Unlock()
					return
				}
				l := queue[0]
				queue = queue[1:]
				r.mu.Unlock()
				if err := r.lane(ctx, l.number, l.items); err != nil {
					r.mu.Lock()
					if fault == nil {
						fault = err
					}
					r.mu.Unlock()
					cancel()
				}
			}
		})
	}
	wg.Wait()
	if fault == nil {
		fault = ctx.Err()
	}
	return &r.sum, fault
}

// adopting is one run of an Adoption.
type adopting struct {
	*Adoption
	mu  sync.Mutex
	sum AdoptedLanes
}

// queue returns the lanes of the shard that are equal, and counts the others.
func (r *adopting) queue() []lane {
	var queue []lane
	for i := range r.Plan.Segments {
		s := &r.Plan.Segments[i]
		for k, n := range s.Numbers {
			if !r.Shard.has(n) {
				continue
			}
			if r.sum.Lanes++; r.Lanes[n] {
				queue = append(queue, lane{number: n, items: s.Items[k]})
			} else {
				r.sum.Changed++
			}
		}
	}
	if r.Shard.Of == 0 { // several processes rarely try the same lane at once
		rng := rand.New(rand.NewPCG(r.Order, 2))
		rng.Shuffle(len(queue), func(i, k int) { queue[i], queue[k] = queue[k], queue[i] })
	}
	return queue
}

// lane adopts one lane. While the output cannot be written it waits.
func (r *adopting) lane(ctx context.Context, number int32, items int64) error {
	var done sinks.Adopted
	began, wait := time.Now(), time.Second/4
	for {
		a, err := r.Output.Adopt(ctx, r.Former, r.Plan.Name, number, items)
		done.Next, done.Why = a.Next, a.Why
		done.Commits += a.Commits
		done.Linked += a.Linked
		done.Copied += a.Copied
		done.Bytes += a.Bytes
		passing := (*schemas.UnavailableError)(nil)
		switch {
		case err == nil:
			return r.count(ctx, number, items, &done)
		case ctx.Err() != nil:
			return nil
		case !errors.As(err, &passing) || time.Since(began) >= r.RetryFor:
			return err
		}
		r.Log.Warn("the output cannot be written; trying again", "lane", number, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, 30*time.Second)
	}
}

// count adds a lane to the sum.
func (r *adopting) count(ctx context.Context, number int32, items int64, a *sinks.Adopted) error {
	m, err := r.Output.Newest(ctx, r.Plan.Name, number)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.sum
	s.Linked += a.Linked
	s.Copied += a.Copied
	s.Bytes += a.Bytes
	switch ours := m == nil || m.AdoptedFrom == ""; {
	case a.Next >= items && !ours:
		s.Adopted++
		return nil
	case a.Next >= items:
		s.Computed++
		return nil
	case a.Next > 0 && !ours:
		s.Partly++
	default:
		s.Not++
	}
	why := a.Why
	if len(s.Whys) >= maxWhys && s.Whys[why] == 0 {
		why = "other reasons"
	}
	if s.Whys[why]++; s.Whys[why] == 1 {
		r.Log.Info("a lane cannot be adopted whole; the rest of it is computed", "lane", number, "from_item", a.Next,
			"reason", a.Why)
	}
	return nil
}

// maxWhys bounds the reasons that are counted apart.
const maxWhys = 100

// Reasons returns the keys of Whys, the most frequent one first.
func (a *AdoptedLanes) Reasons() []string {
	return slices.SortedFunc(maps.Keys(a.Whys), func(x, y string) int {
		return cmp.Or(cmp.Compare(a.Whys[y], a.Whys[x]), cmp.Compare(x, y))
	})
}
