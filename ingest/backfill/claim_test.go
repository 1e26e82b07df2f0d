package backfill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"entropipe/sinks"
	"entropipe/sinks/record"
)

// planner is a process that calls Prepare and waits before each call of the store until it is
// let go on or killed.
type planner struct {
	inputs []int // numbers of the archive's inputs
	name   string
	number int

	at   chan bool // true: it waits; false: it has ended
	step chan bool // true: it goes on; false: it is killed
	dead bool
	stop context.CancelFunc
	plan *record.Plan
	err  error
}

var errKilled = errors.New("killed")

func newPlanner(number int, name string, inputs ...int) *planner {
	return &planner{number: number, name: name, inputs: inputs}
}

// start runs the planner up to its first call of the store.
func (p *planner) start(t testing.TB, store *parts) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	p.at, p.step, p.stop, p.dead = make(chan bool), make(chan bool), stop, false
	a := &shelf{root: "/archive"}
	for _, n := range p.inputs {
		a.inputs = append(a.inputs, shelfInput{name: fmt.Sprintf("in%d", n), items: 3, size: 70})
	}
	opt := Options{Roots: []string{a.root}, Plan: p.name,
		Source: map[string]string{"format": "shelf", "number": fmt.Sprint(p.number)}}
	go func() {
		defer stop()
		p.plan, p.err = Prepare(ctx, &paused{store, p}, a, opt)
		p.at <- false
	}()
	if !<-p.at {
		t.Fatal("it calls no store")
	}
}

// advance does one call of the store, or kills the planner before it. It tells whether the
// planner goes on.
func (p *planner) advance(alive bool) bool {
	p.step <- alive
	return <-p.at
}

// finish runs a planner that was started to its end.
func (p *planner) finish() {
	for p.advance(true) {
	}
}

func (p *planner) wait() error {
	if !p.dead {
		p.at <- true
		if p.dead = !<-p.step; p.dead {
			p.stop()
		}
	}
	if p.dead {
		return errKilled
	}
	return nil
}

// paused is the store of a planner.
type paused struct {
	*parts
	p *planner
}

func (s *paused) Create(ctx context.Context, name string, data []byte) error {
	if err := s.p.wait(); err != nil {
		return err
	}
	return s.parts.Create(ctx, name, data)
}

func (s *paused) Read(ctx context.Context, name string) ([]byte, error) {
	if err := s.p.wait(); err != nil {
		return nil, err
	}
	return s.parts.Read(ctx, name)
}

func (s *paused) Open(ctx context.Context, name string) (sinks.Object, error) {
	if err := s.p.wait(); err != nil {
		return nil, err
	}
	return s.parts.Open(ctx, name)
}

func (s *paused) Names(ctx context.Context, folder string) ([]string, error) {
	if err := s.p.wait(); err != nil {
		return nil, err
	}
	return s.parts.Names(ctx, folder)
}

// judge keeps the planners that have ever been let to work.
type judge struct {
	store  *parts
	passed []*planner
}

// ended checks what a planner has come to.
func (j *judge) ended(t testing.TB, p *planner) {
	t.Helper()
	config := (*sinks.ConfigError)(nil)
	if p.err != nil {
		if !p.dead && (!errors.As(p.err, &config) || !strings.Contains(p.err.Error(), "belongs to plan")) {
			t.Fatalf("planner %d: %v", p.number, p.err)
		}
		if !p.dead && slices.Contains(j.passed, p) {
			t.Fatalf("planner %d worked on its plan, and is refused: %v", p.number, p.err)
		}
		return
	}
	for _, q := range j.passed {
		if q != p && q.shares(p) {
			t.Fatalf("planners %d and %d share a file, and both work", q.number, p.number)
		}
	}
	if !slices.Contains(j.passed, p) {
		j.passed = append(j.passed, p)
	}
}

func (p *planner) shares(q *planner) bool {
	return slices.ContainsFunc(p.inputs, func(n int) bool { return slices.Contains(q.inputs, n) })
}

// again starts all planners once more, one after the other: whoever worked goes on, and
// whoever is refused shares a file with a plan that is worked on.
func (j *judge) again(t testing.TB, planners ...*planner) (messages []string) {
	t.Helper()
	for _, p := range planners {
		p.start(t, j.store)
		p.finish()
		j.ended(t, p)
		messages = append(messages, fmt.Sprint(p.err))
	}
	for _, p := range planners {
		if !slices.ContainsFunc(j.passed, p.shares) {
			t.Fatalf("planner %d is refused, and nobody has its files: %v", p.number, p.err)
		}
	}
	return messages
}

// Of two planners with the same files one works, however their calls are mixed: the first one
// does some calls, then the other one some, then the first one goes on, or is killed there.
// A planner that is refused is refused again, in the same words.
func TestOneOfTwoPlannersWorks(t *testing.T) {
	for _, names := range [][2]string{{"a", "b"}, {"", ""}} {
		for _, killed := range []bool{false, true} {
			for first, more := 0, true; more; first++ {
				for second, others := 0, true; others; second++ {
					j := &judge{store: newParts()}
					a, b := newPlanner(1, names[0], 1, 2), newPlanner(2, names[1], 2, 3)
					a.start(t, j.store)
					b.start(t, j.store)
					for range first {
						more = more && a.advance(true)
					}
					for range second {
						others = others && b.advance(true)
					}
					switch {
					case more && killed:
						a.advance(false)
					case more:
						a.finish()
					}
					j.ended(t, a)
					if others {
						b.finish()
					}
					j.ended(t, b)
					if len(j.passed) == 0 {
						t.Fatalf("names %q, killed %t, %d and %d calls: nobody works: %v, %v", names, killed, first,
							second, a.err, b.err)
					}
					before := []string{fmt.Sprint(a.err), fmt.Sprint(b.err)}
					for i, text := range j.again(t, a, b) {
						if text != before[i] && !killed {
							t.Fatalf("names %q, %d and %d calls: first %s, then %s", names, first, second, before[i],
								text)
						}
					}
					if !more {
						break
					}
				}
			}
		}
	}
}

// Three planners, any files, any order of calls, any of them killed anywhere and started again.
func TestPlannersInAnyOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		j := &judge{store: newParts()}
		var planners, running []*planner
		for i := range 3 {
			inputs := rapid.SliceOfNDistinct(rapid.IntRange(0, 3), 1, 3, rapid.ID).Draw(r, "inputs")
			name := rapid.SampledFrom([]string{"", fmt.Sprintf("plan%d", i)}).Draw(r, "name")
			planners = append(planners, newPlanner(i, name, inputs...))
			planners[i].start(t, j.store)
		}
		running = slices.Clone(planners)
		for kills := 2; len(running) > 0; {
			i := rapid.IntRange(0, len(running)-1).Draw(r, "planner")
			p, alive := running[i], true
			if kills > 0 && rapid.IntRange(0, 19).Draw(r, "kill") == 19 {
				kills--
				alive = false
			}
			for n := rapid.IntRange(1, 12).Draw(r, "calls"); n > 0; n-- {
				if p.advance(alive) {
					continue
				}
				j.ended(t, p)
				if !p.dead {
					running = slices.Delete(running, i, i+1)
				} else {
					p.start(t, j.store)
				}
				break
			}
		}
		j.again(t, planners...)
		if first, second := j.again(t, planners...), j.again(t, planners...); !slices.Equal(first, second) {
			r.Fatalf("first %q, then %q", first, second)
		}
	})
}

// counted counts what is read of the order of plans.
type counted struct {
	*parts
	places int
}

func (c *counted) Read(ctx context.Context, name string) ([]byte, error) {
	if strings.HasPrefix(name, record.PlanOrderFolder) {
		c.places++
	}
	return c.parts.Read(ctx, name)
}

// What earlier programs and dead planners leave: a plan without a place gets one, unless a plan
// that was begun has its files; of two plans of one search the one with a place is worked on.
func TestPlansWithoutAPlace(t *testing.T) {
	ctx, a := t.Context(), small()
	for name, c := range map[string]struct {
		placed, begun bool // plan b is
		want          string
	}{
		"b has a place":            {placed: true, want: "b"},
		"b was begun":              {begun: true, want: "none"},
		"both are without a place": {want: "a"},
	} {
		store := newParts()
		opt := Options{Roots: []string{a.root}, Source: map[string]string{"format": "shelf"}, items: 10}
		for _, plan := range []string{"a", "b"} { // stored, and not claimed
			opt.Plan = plan
			p, err := Build(ctx, a, opt, Into(store))
			if err == nil {
				p, err = sinks.CreatePlan(ctx, store, p)
			}
			if err == nil && plan == "b" && c.placed {
				err = claim(ctx, store, p)
			}
			if err == nil && plan == "b" && c.begun {
				err = store.Create(ctx, record.TopicFolder(plan)+"/"+record.BaseFile, []byte("{}"))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		p, err := prepare(t, store, a, nil)
		if c.begun {
			refused(t, name, err, "plan", "belongs to plan b", "--plan b")
			continue
		}
		if err != nil || p.Name != c.want {
			t.Errorf("%s: %v, %v", name, p, err)
		}
		with := &counted{parts: store}
		opt.Plan = c.want
		if _, err := Prepare(ctx, with, a, opt); err != nil || with.places != 1 {
			t.Errorf("%s: %d reads of places, %v", name, with.places, err)
		}
		for _, other := range []string{"a", "b"} {
			if _, err := prepare(t, store, a, func(o *Options) { o.Plan = other }); other != c.want {
				refused(t, name, err, "plan", "belongs to plan "+c.want)
			}
		}
	}
}
