package backfill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"entropipe/cmd/command"
	"entropipe/cmd/run"
	"entropipe/ingest/backfill"
	"entropipe/ops/live"
	"entropipe/ops/metrics"
	"entropipe/sinks"
	"entropipe/sinks/record"
)

// A dry run searches the archive as a backfill does, and has some lanes computed for a few
// seconds by the service that would compute all of them. The plan is kept in memory, and
// tables are encoded and dropped.

// Bounds of the sample.
const (
	sampleLanes = 16
	sampleTime  = 6 * time.Second // processors of a busy machine need some to come up to speed
)

// dryRun prints counts and an estimate.
func (j *job) dryRun(settings string) error {
	e := j.env
	parts := &memoryStore{parts: map[string][]byte{}}
	sample := &spread{most: sampleLanes}
	earlier, err := j.openReuse(e.Ctx, &j.Flags.Plan, &j.Output.Bucket, j.Output.PartitionBy)
	if err != nil {
		return explained(err)
	}
	defer earlier.Close()
	if j.options, err = earlier.options(e.Ctx, parts, j.options); err != nil {
		return explained(err)
	}
	unchanged := int64(0)
	j.options.Each = func(l *record.Lane) error {
		if j.shard.Of > 0 && l.Number%j.shard.Of != j.shard.Index {
			return nil
		}
		same, err := earlier.has(l)
		if same {
			unchanged++
		} else {
			sample.add(l)
		}
		return err
	}
	var plan *record.Plan
	err = j.searching(j.Progress, func() (err error) {
		plan, err = backfill.Build(e.Ctx, j.archive, j.options, parts)
		return err
	})
	if err != nil {
		return explained(err)
	}
	if plan.Lanes == 0 {
		return nothing()
	}
	if unchanged > 0 {
		fmt.Fprintf(e.Stdout, "%s lanes have not changed since %s, and their tables would be linked\n",
			command.Count(unchanged), j.Flags.Plan.Reuse)
		if sample.count == 0 {
			return nil
		}
	}
	j.service.Source.Topic = []string{plan.Name}
	f := &trial{job: j, plan: plan, lanes: sample.lanes, bytes: sample.bytes,
		opener: &backfill.Opener{Plan: plan, Store: parts, Archive: j.archive, Messages: j.messages}}
	s, err := run.Start(e.Ctx, j.service, settings, run.Show{Trial: true}, f, e.Log)
	if err != nil {
		return stoppedEarly(e, err)
	}
	defer s.Close()
	if err := s.Run(e.Ctx); err != nil {
		return err
	}
	if e.Ctx.Err() != nil {
		return &command.InterruptedError{}
	}
	st := s.Pipeline.Stats()
	return j.report(plan, sample, f, st.Rows, st.FileBytes)
}

// report prints what a backfill would do.
func (j *job) report(p *record.Plan, sample *spread, f *trial, rows, written int64) error {
	w := j.env.Stdout
	fmt.Fprintf(w, "%s: %s files, %s items, %s frames, %s in %s lanes\n", p.Name, command.Count(p.Files),
		command.Count(p.Items), command.Count(p.Frames), command.ByteSize(p.Bytes), command.Count(int64(p.Lanes)))
	if j.shard.Of > 0 {
		fmt.Fprintf(w, "shard %s: %s items, %s in %s lanes\n", j.shard, command.Count(sample.items),
			command.ByteSize(sample.bytes), command.Count(sample.count))
	}
	for _, text := range f.wrong {
		fmt.Fprintf(w, "sample: %s\n", text)
	}
	items, share := f.computed()
	if items == 0 {
		_, err := fmt.Fprintln(w, "estimate: none, since no item of the sample was computed")
		return err
	}
	took := time.Duration(float64(f.took) / share)
	_, err := fmt.Fprintf(w, "sample: %s items in %.1f s\nestimate: %s on this machine by one process, %s rows, %s of "+
		"tables; nothing was written\n", command.Count(items), f.took.Seconds(), command.Approximate(took),
		command.Count(int64(float64(rows)/share)), command.ByteSize(int64(float64(written)/share)))
	return err
}

// spread keeps lanes that are spread over all that it is given.
type spread struct {
	most  int
	lanes []record.Lane
	step  int64 // every step-th lane is kept
	count int64
	items int64
	bytes int64
}

func (s *spread) add(l *record.Lane) {
	if s.step == 0 {
		s.step = 1
	}
	if s.count%s.step == 0 {
		keep := *l
		keep.Common, keep.Files, keep.At, keep.Input.Files = nil, nil, nil, nil // the plan has them
		s.lanes = append(s.lanes, keep)
	}
	s.count++
	s.items += l.Items
	s.bytes += l.Bytes
	if len(s.lanes) > s.most {
		kept := s.lanes[:0]
		for i := 0; i < len(s.lanes); i += 2 {
			kept = append(kept, s.lanes[i])
		}
		s.lanes = kept
		s.step *= 2
	}
}

// trial is the run.Feed of a sample.
type trial struct {
	*job
	plan   *record.Plan
	lanes  []record.Lane
	opener *backfill.Opener
	bytes  int64 // bytes of the shard
	s      *run.Service
	took   time.Duration

	mu    sync.Mutex
	done  map[int32]int64 // items that were computed, by lane
	wrong []string        // why lanes stopped
}

// Look implements run.Feed.
func (t *trial) Look(_ context.Context, s *run.Service) error {
	t.s, t.done = s, map[int32]int64{}
	return nil
}

// Open implements run.Feed.
func (t *trial) Open(context.Context, *run.Service) (int, error) { return 1, nil }

// Run computes each lane for its part of the time.
func (t *trial) Run(ctx context.Context, handle run.Handle) error {
	begin := time.Now()
	defer func() { t.took = time.Since(begin) }()
	jobs := t.Work.Jobs
	if jobs == 0 {
		jobs = t.s.Workers()
	}
	jobs = min(jobs, len(t.lanes))
	each := sampleTime * time.Duration(jobs) / time.Duration(len(t.lanes))
	next := make(chan int32, len(t.lanes))
	for i := range t.lanes {
		next <- t.lanes[i].Number
	}
	close(next)
	var all sync.WaitGroup
	faults := make([]error, jobs)
	for i := range jobs {
		all.Go(func() {
			for lane := range next {
				if err := t.lane(ctx, lane, each, handle); err != nil {
					faults[i] = err
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(faults...)
}

// lane computes a lane for some time.
func (t *trial) lane(ctx context.Context, lane int32, each time.Duration, handle run.Handle) error {
	ctx, cancel := context.WithTimeout(ctx, each)
	defer cancel()
	p := &sampled{Partition: t.opener.Lane(lane), trial: t, lane: lane}
	defer p.Close()
	err := handle(ctx, t.plan.Name, lane, p)
	switch {
	case err == nil || errors.Is(err, context.DeadlineExceeded):
		return nil
	case stops(err):
		t.mu.Lock()
		t.wrong = append(t.wrong, fmt.Sprintf("lane %d would stop: %v", lane, err))
		t.mu.Unlock()
		return nil
	}
	return err
}

// computed returns how many items were computed, and their share of the shard's bytes.
func (t *trial) computed() (items int64, share float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var weight float64
	for i := range t.lanes {
		l := &t.lanes[i]
		items += t.done[l.Number]
		weight += float64(max(l.Bytes, 1)) * float64(t.done[l.Number]) / float64(l.Items)
	}
	all := float64(max(t.bytes, 1))
	return items, min(weight/all, 1)
}

// sampled is a lane whose commits are counted.
type sampled struct {
	*backfill.Partition
	trial *trial
	lane  int32
}

// Committed implements pipeline.Partition.
func (s *sampled) Committed(ctx context.Context, next int64) {
	s.Partition.Committed(ctx, next)
	s.trial.mu.Lock()
	s.trial.done[s.lane] = next
	s.trial.mu.Unlock()
}

// Verdict implements run.Feed.
func (t *trial) Verdict(context.Context) error { return nil }

// Topics implements run.Feed.
func (t *trial) Topics() []string { return []string{t.plan.Name} }

// Name implements run.Feed.
func (t *trial) Name() string { return "archive" }

// Ready implements run.Feed.
func (t *trial) Ready() error { return nil }

// Count implements run.Feed.
func (t *trial) Count(*metrics.Metrics) {}

// Backfill implements run.Archived.
func (t *trial) Backfill() *live.Backfill { return &live.Backfill{} }

// Close implements run.Feed.
func (t *trial) Close() {}

// memoryStore holds the parts of a plan that is not written.
type memoryStore struct{ parts map[string][]byte }

// Put implements backfill.Sink.
func (m *memoryStore) Put(_ context.Context, data []byte) (record.PlanPart, error) {
	part := record.PlanPart{SHA256: record.PartHash(data), Bytes: int64(len(data))}
	m.parts[record.PartName(part.SHA256)] = slices.Clone(data)
	return part, nil
}

// Open implements sinks.Reader.
func (m *memoryStore) Open(_ context.Context, name string) (sinks.Object, error) {
	data, ok := m.parts[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, errors.Join(sinks.ErrNotFound, fs.ErrNotExist))
	}
	return memoryObject{bytes.NewReader(data)}, nil
}

// List implements sinks.Reader.
func (m *memoryStore) List(context.Context, string, func(sinks.Entry) error) error { return nil }

// Names implements sinks.Reader.
func (m *memoryStore) Names(context.Context, string) ([]string, error) { return nil, nil }

// memoryObject is a part as an open file.
type memoryObject struct{ *bytes.Reader }

// Size implements sinks.Object.
func (o memoryObject) Size() int64 { return o.Reader.Size() }

// Close implements sinks.Object.
func (o memoryObject) Close() error { return nil }
