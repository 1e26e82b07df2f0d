package backfill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
	"entropipe/cmd/run"
	"entropipe/ingest/backfill"
	"entropipe/ops/live"
	"entropipe/ops/metrics"
	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/record"
)

// feed is the run.Feed of an archive: its partitions are the lanes of a plan.
type feed struct {
	*job
	order uint64 // seed of the order of lanes
	reuse *reuse // nil: every lane is computed

	s      *run.Service
	plan   *record.Plan // nil before Open
	lanes  *backfill.Lanes
	opener *backfill.Opener

	mu     sync.Mutex
	known  map[int32]*reach // how far each lane of the shard is
	items  int64            // items of the shard
	begun  time.Time        // when Run began
	before int64            // durable items then

	working atomic.Int64 // lanes in work

	begins, mixed bool // the first look found manifests, and one of another content
}

// reach is how far a lane is, whichever process computed it.
type reach struct{ items, durable int64 }

// Look looks for a first input where there is no output yet, so that a wrong path leaves no
// folder behind. The search itself needs the output.
func (f *feed) Look(ctx context.Context, s *run.Service) error {
	f.s = s
	if err := f.probe(ctx, f.Output.Out, &f.Output.Bucket, f.Plan.Names.Sequence); err != nil {
		return err
	}
	var err error
	f.reuse, err = f.openReuse(ctx, &f.Flags.Plan, &f.Output.Bucket, f.Output.PartitionBy)
	return err
}

// Open reads or makes the plan, and finds out how far its lanes are.
func (f *feed) Open(ctx context.Context, s *run.Service) (partitions int, err error) {
	if err := f.reuse.fits(s.Output); err != nil {
		return 0, err
	}
	if f.options, err = f.reuse.options(ctx, s.Store(), f.options); err != nil {
		return 0, err
	}
	err = f.searching(f.Progress, func() error {
		f.plan, err = backfill.Prepare(ctx, s.Store(), f.archive, f.options)
		return err
	})
	if err != nil {
		return 0, err
	}
	s.AddContent(contentOf(f.plan))
	if err := s.Output.Base(ctx, f.plan.Name, schemas.TopicID{}, nil); err != nil { // every lane begins at 0
		return 0, err
	}
	f.lanes = backfill.NewLanes(f.plan, f.shard, s.Output, f.order)
	f.opener = &backfill.Opener{Plan: f.plan, Store: s.Store(), Archive: f.archive, Messages: f.messages}
	f.known = map[int32]*reach{}
	for i := range f.plan.Segments {
		segment := &f.plan.Segments[i]
		for k, n := range segment.Numbers {
			if f.shard.Of == 0 || n%f.shard.Of == f.shard.Index {
				f.known[n] = &reach{items: segment.Items[k]}
				f.items += segment.Items[k]
			}
		}
	}
	if err := f.look(ctx); err != nil {
		return 0, err
	}
	if err := f.unmixed(ctx); err != nil {
		return 0, err
	}
	f.begun, f.before = time.Now(), f.state().ItemsDone
	return min(max(len(f.known), 1), mostPartitions), nil
}

// mostPartitions bounds the partitions of a topic that is created for what is published.
const mostPartitions = 16

// contentOf returns what the plan adds to the content that decides rows.
func contentOf(p *record.Plan) sinks.Content {
	c := sinks.Content{}
	for name, value := range p.Source {
		c["source-"+name] = value
	}
	return c
}

// look reads how far the lanes are that other processes work on.
func (f *feed) look(ctx context.Context) error {
	if f.plan == nil {
		return nil
	}
	for _, n := range f.unfinished() {
		m, err := f.s.Output.Newest(ctx, f.plan.Name, n)
		if err != nil {
			return err
		}
		if m != nil {
			f.reached(n, m.End)
			f.begins = true
			f.mixed = f.mixed || m.ContentHash != f.s.Output.ContentHash()
		}
	}
	return nil
}

// unfinished returns the lanes of the shard that are not known to be done.
func (f *feed) unfinished() (lanes []int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for n, r := range f.known {
		if r.durable < r.items {
			lanes = append(lanes, n)
		}
	}
	slices.Sort(lanes)
	return lanes
}

// unmixed returns a *mistake.Config if the plan has rows of another content: lanes that are
// done are never computed again, so that the output would be neither one nor the other.
func (f *feed) unmixed(ctx context.Context) error {
	if f.Output.NewConfig || f.begins && !f.mixed {
		return nil
	}
	change, err := f.s.Output.Changed(ctx, f.plan.Name)
	if err != nil || change == nil {
		return err
	}
	return &mistake.Config{Problems: []mistake.Problem{{Path: "new-config",
		What: fmt.Sprintf("plan %s has rows of another configuration in %s: %s; write to another --out, or go on here "+
			"with --new-config, and finished lanes keep their rows", f.plan.Name, f.Output.Out, change)}}}
}

// reached notes that all items of a lane before next are durable.
func (f *feed) reached(lane int32, next int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.known[lane]; r != nil {
		r.durable = max(r.durable, min(next, r.items))
	}
}

// state says how far the lanes of the shard are.
func (f *feed) state() (b live.Backfill) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b.Lanes, b.Items = len(f.known), f.items
	for _, r := range f.known {
		b.ItemsDone += r.durable
		if r.durable == r.items {
			b.LanesDone++
		}
	}
	return b
}

// Backfill implements run.Archived.
func (f *feed) Backfill() *live.Backfill {
	b := f.state()
	since := time.Since(f.begun)
	if done := b.ItemsDone - f.before; done > 0 && since >= time.Second && b.ItemsDone < b.Items {
		left := since.Seconds() / float64(done) * float64(b.Items-b.ItemsDone)
		b.LeftS = &left
	}
	return &b
}

// Run hands out lanes until all are done or ctx ends.
func (f *feed) Run(ctx context.Context, handle run.Handle) error {
	looking, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { f.watch(looking) })
	defer watch.Wait()
	defer stop()
	jobs := f.Work.Jobs
	if jobs == 0 {
		jobs = f.s.Workers()
	}
	if err := f.adopt(ctx, jobs); err != nil {
		return err
	}
	err := f.lanes.Run(ctx, jobs, func(ctx context.Context, lane int32) error {
		f.working.Add(1)
		defer f.working.Add(-1)
		p := &tracked{Partition: f.opener.Lane(lane), feed: f, lane: lane}
		defer p.Close()
		err := handle(ctx, f.plan.Name, lane, p)
		f.tell(lane, err)
		return err
	})
	if err == nil && ctx.Err() == nil {
		f.sweep(ctx)
	}
	return err
}

// sweep removes what killed processes have staged of lanes that others have finished since.
func (f *feed) sweep(ctx context.Context) {
	if err := f.s.Output.Sweep(ctx, f.plan.Name); err != nil && ctx.Err() == nil {
		f.env.Log.Warn("files that killed processes have staged cannot be removed", "error", err)
	}
}

// tell logs why a lane stops.
func (f *feed) tell(lane int32, err error) {
	busy := (*backfill.BusyError)(nil)
	switch {
	case err == nil:
	case errors.As(err, &busy):
		f.env.Log.Info("another process works on this lane; it is looked at again at the end", "lane", lane)
	case stops(err):
		f.env.Log.Error("a lane stops; the others go on", "lane", lane, "error", err)
	}
}

// stops tells whether err ends its lane alone.
func stops(err error) bool {
	changed, unreadable := (*backfill.SourceChangedError)(nil), (*backfill.SourceError)(nil)
	return errors.As(err, &changed) || errors.As(err, &unreadable)
}

// watch reads how far other processes are, until ctx ends. It takes a tenth of its time
// at most.
func (f *feed) watch(ctx context.Context) {
	wait := lookEvery
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		begin := time.Now()
		if err := f.look(ctx); err != nil && ctx.Err() == nil {
			f.env.Log.Debug("the lanes of other processes cannot be looked at", "error", err)
		}
		wait = max(lookEvery, 10*time.Since(begin))
	}
}

// lookEvery is the time between two looks at the lanes of other processes.
const lookEvery = 5 * time.Second

// tracked is a lane whose commits are noted.
type tracked struct {
	*backfill.Partition
	feed *feed
	lane int32
}

// Committed implements pipeline.Partition.
func (t *tracked) Committed(ctx context.Context, next int64) {
	t.Partition.Committed(ctx, next)
	t.feed.reached(t.lane, next)
}

// Verdict is an error if a signal came before the end, or lanes stopped.
func (f *feed) Verdict(ctx context.Context) error {
	counts, stopped := f.lanes.Counts(), f.lanes.Stopped()
	if left := counts.Lanes - counts.Done - len(stopped); ctx.Err() != nil && left > 0 {
		return &command.InterruptedError{Lanes: left, All: counts.Lanes}
	}
	if len(stopped) == 0 {
		return nil
	}
	return &stoppedError{lanes: counts.Lanes, stopped: stopped}
}

// stoppedError says which lanes stopped.
type stoppedError struct {
	lanes   int
	stopped []backfill.StoppedLane
}

// Error names the first lanes with their reasons.
func (e *stoppedError) Error() string {
	const named = 5
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d lanes stopped, and the others are done:", len(e.stopped), e.lanes)
	for _, s := range e.stopped[:min(len(e.stopped), named)] {
		fmt.Fprintf(&b, " lane %d (%v);", s.Lane, s.Err)
	}
	if more := len(e.stopped) - named; more > 0 {
		fmt.Fprintf(&b, " and %d more;", more)
	}
	return b.String() + " run it again when their files are in order"
}

// Topics are the plan's name. Of a plan of very many lanes other processes' settings are
// compared at the start alone.
func (f *feed) Topics() []string {
	if len(f.known) > manyLanes {
		return nil
	}
	return []string{f.plan.Name}
}

// manyLanes is from how many lanes on looking at all of them every three seconds costs
// too much.
const manyLanes = 2000

// Name implements run.Feed.
func (f *feed) Name() string { return "archive" }

// Ready implements run.Feed: a file that cannot be read stops its lane alone.
func (f *feed) Ready() error { return nil }

// Count reports how many lanes are in work.
func (f *feed) Count(m *metrics.Metrics) { m.Consumer(0, 0, int(f.working.Load())) }

// Close implements run.Feed.
func (f *feed) Close() { f.reuse.Close() }

// described are the fields of the first line of the log.
func (f *feed) described() []any {
	all := f.state()
	d := []any{"plan", f.plan.Name, "lanes", all.Lanes, "items", all.Items, "lanes_done", all.LanesDone}
	if f.shard.Of > 0 {
		d = append(d, "shard", f.shard.String())
	}
	return append(d, "out", f.Output.Out)
}

// progress reads how far the lanes are for a progress display.
func (f *feed) progress(s *run.Service, begin time.Time) command.ProgressSource {
	return func() (int64, string) {
		b, st, since := f.state(), s.Pipeline.Stats(), time.Since(begin)
		text := fmt.Sprintf("%d/%d lanes, ", b.LanesDone, b.Lanes)
		if st.Sequences > 0 {
			text += command.Rate(st.Sequences, "sequences", since)
		} else {
			text += command.Rate(st.Frames, "frames", since)
		}
		if st.Rejects > 0 {
			text += ", " + command.Count(st.Rejects) + " rejects"
		}
		return b.ItemsDone, text
	}
}

// summary is the line that ends a backfill.
func (f *feed) summary(s *run.Service, took time.Duration) string {
	b, st := f.state(), s.Pipeline.Stats()
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s of %s lanes, %s items, %s frames, %s points, ", f.plan.Name,
		command.Count(int64(b.LanesDone)), command.Count(int64(b.Lanes)), command.Count(st.Messages),
		command.Count(st.Frames), command.Count(st.Points))
	if st.Sequences > 0 {
		fmt.Fprintf(&text, "%s sequences, %s tokens, ", command.Count(st.Sequences), command.Count(st.Tokens))
	}
	fmt.Fprintf(&text, "%s rows, %s rejects in %.1f s", command.Count(st.Rows), command.Count(st.Rejects),
		took.Seconds())
	if st.Published > 0 || st.Found > 0 {
		fmt.Fprintf(&text, ", %s records published", command.Count(st.Published+st.Found))
	}
	if st.Letters > 0 {
		fmt.Fprintf(&text, ", %s dead letters", command.Count(st.Letters))
	}
	if left := b.Lanes - b.LanesDone; left > 0 {
		fmt.Fprintf(&text, "; left: %s lanes with %s items", command.Count(int64(left)),
			command.Count(b.Items-b.ItemsDone))
	} else {
		text.WriteString("; nothing is left")
	}
	text.WriteString(f.reuse.summary())
	return text.String()
}
