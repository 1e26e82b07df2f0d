package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
	"entropipe/cmd/run/flags"
	"entropipe/cmd/run/language"
	"entropipe/cmd/run/stage"
	"entropipe/ingest"
	"entropipe/ingest/bucket"
	"entropipe/ops/foxglove"
	"entropipe/ops/live"
	"entropipe/ops/metrics"
	"entropipe/ops/pipeline"
	"entropipe/ops/web"
	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/tables"
)

// Service is everything that `run` is made of, wired.
type Service struct {
	flags      *flags.Flags
	security   ingest.Security
	workers    int
	store      command.Store   // nil for a trial
	Output     *sinks.Output   // nil for a trial
	output     pipeline.Output // Output, or what a trial has instead
	feed       Feed
	outboxes   []*ingest.Outbox // published records and dead letters
	Pipeline   *pipeline.Pipeline
	complaints ingest.Complaints  // about brokers, of consumer and outbox
	question   *pipeline.Question // whether a partition's end is reached
	stage      *pipeline.Stage    // nil: off
	model      *stage.ModelFile   // nil: it is not read again
	batches    pipeline.BatchTotals
	textless   bool // the language model has no tokenizer
	metrics    *metrics.Metrics
	Server     *web.Server // nil: --listen off
	Moved      bool        // the address of --listen was taken
	show       Show
	registry   *prometheus.Registry
	tap        *live.Tap        // nil: nobody can watch
	viewers    *foxglove.Server // nil as tap
	numbers    live.Numbers
	neighbours neighbours
	log        *slog.Logger
	hashes     string                            // a line for each model; the stage's first
	content    func(hashes string) sinks.Content // returns the content with models of these hashes
	extra      sinks.Content                     // added by the feed
	requests   bucket.Requests                   // to the output's store, as the metrics have them
	started    atomic.Bool                       // the fields above are there
	stop       func()                            // ends the goroutine that watches
	failed     chan error                        // why a worker wants the run to end
}

// Start makes the service: it looks for brokers and topics, opens the output,
// fixes its base, and starts the workers. The output comes late, so that a start
// that fails for another reason leaves no folder. What start makes, close ends,
// in the opposite order.
func Start(ctx context.Context, c *flags.Flags, config string, show Show, feed Feed,
	log *slog.Logger) (s *Service, err error) {
	if err := checkSystem(runtime.GOOS); err != nil {
		return nil, err
	}
	s = &Service{flags: c, feed: feed, show: show, workers: c.Resource.Workers, stop: func() {}, log: log,
		failed: make(chan error, 1)}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.workers <= 0 {
		s.workers = runtime.GOMAXPROCS(0)
	}
	if s.security, err = c.Source.Security.Open(log); err != nil {
		return s, err
	}
	frames, names, err := c.FrameConfig(log)
	if err != nil {
		return s, err
	}
	s.registry = prometheus.NewRegistry()
	s.metrics = metrics.New(s.registry, command.Version)
	s.metrics.Configured(c.RollAge, int64(c.Frames.MaxFrameBytes))
	frames.Metrics = s.metrics
	_, frames.Archive = feed.(Archived)
	staged, err := s.openStage(&frames)
	if err != nil {
		return s, err
	}
	lm, err := s.openLanguage(&frames)
	if err != nil {
		return s, err
	}
	if err := s.serve(); err != nil {
		return s, err
	}
	beside := lm.Bytes
	if s.tap != nil {
		beside += web.Memory
	}
	limitHeap(int64(c.Resource.Memory), beside)
	frames.Tap, lm.Tap = s.tap, s.tap
	if err := feed.Look(ctx, s); err != nil {
		return s, err
	}
	s.hashes = staged + lm.Config
	s.content = func(hashes string) sinks.Content {
		content := c.Content(&frames, names, hashes)
		maps.Copy(content, s.extra)
		return content
	}
	if err := s.openOutput(ctx, names, config+s.hashes); err != nil {
		return s, err
	}
	partitions, err := feed.Open(ctx, s)
	if err != nil {
		return s, err
	}
	if err := s.openPipeline(ctx, partitions, frames, &lm); err != nil {
		return s, err
	}
	s.started.Store(true)
	s.watch()
	return s, nil
}

// openStage makes the stage and gives it to the frames. It returns what the
// configuration's hash is to cover besides flags.
func (s *Service) openStage(frames *pipeline.FrameConfig) (config string, err error) {
	c := &s.flags.Stage
	if c.Model != "" && (c.Stage == "seed" || c.Stage == "prune") { // others change rows
		s.model = stage.NewModelFile(c.Model) // first: what changes while it is read is seen
	}
	model, err := c.ReadModel()
	if err != nil {
		return "", err
	}
	if s.stage, err = c.NewStage(model, s.metrics, s.log, s.fail); err != nil {
		return "", err
	}
	if frames.Stage = s.stage; model == nil {
		return "", nil
	}
	if stage.Idle(model, frames) {
		s.log.Warn("the model has nothing to do: what it serves does not run", "file", c.Model, "stage", c.Stage,
			"serves", strings.Join(model.Meta.Ops, ","))
	}
	return modelHash(model.SHA256), nil
}

// modelHash is the line of the stage's model among the hashes.
func modelHash(sha string) string { return "model_sha256: " + sha + "\n" }

// openLanguage makes what reads sequences.
func (s *Service) openLanguage(frames *pipeline.FrameConfig) (language.Language, error) {
	lm, err := s.flags.Tokens.Open(s.workers)
	if err != nil {
		return lm, err
	}
	lm.Report(s.log, &s.flags.Tokens)
	s.textless = lm.Model != nil && lm.Tokenizer == nil
	lm.MaxBytes, lm.OnPanic, lm.Metrics, lm.Totals = frames.MaxBytes, frames.OnPanic, s.metrics, &s.batches
	return lm, nil
}

// openOutput opens the output, or makes it.
func (s *Service) openOutput(ctx context.Context, names []string, settings string) (err error) {
	c := &s.flags.Output
	encoder, err := tables.New(tables.Config{PartitionBy: c.PartitionBy, Tables: names, Version: command.Version,
		Build: metrics.Revision()})
	if err == nil && s.show.Trial {
		s.output = newTrial(encoder)
		return nil
	}
	if err == nil {
		if s.store, err = command.MakeOutput(ctx, c.Out, &c.Bucket); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		hash := sha256.Sum256([]byte(settings))
		s.Output, err = sinks.Open(ctx, s.store, encoder, sinks.Config{ConfigHash: hex.EncodeToString(hash[:]),
			Content: s.content(s.hashes), OnChange: s.contentChanged, Version: command.Version})
	}
	if err == nil {
		if err = s.store.CheckWritable(ctx, tables.Names()); err != nil { // before any record is read
			err = fmt.Errorf("--out: %w", err)
		}
	}
	if wrong := (*sinks.ConfigError)(nil); errors.As(err, &wrong) {
		return &mistake.Config{Problems: []mistake.Problem{{Path: wrong.Field, What: wrong.Problem}}}
	}
	if err != nil {
		return err
	}
	s.output = s.Output
	return nil
}

// AddContent adds what the feed knows to the content that decides rows.
func (s *Service) AddContent(c sinks.Content) {
	s.extra = c
	s.Output.SetContent(s.content(s.hashes))
}

// Store returns the output's store; nil for a trial.
func (s *Service) Store() sinks.Store { return s.store }

// Workers returns how many frames are in work at a time.
func (s *Service) Workers() int { return s.workers }

// openPipeline starts the workers, and before them the outboxes of what is published.
func (s *Service) openPipeline(ctx context.Context, partitions int, frames pipeline.FrameConfig,
	lm *language.Language) (err error) {
	c := s.flags
	var to [3]pipeline.Publisher
	for i, topic := range [...]struct {
		name  string
		limit int64
	}{{c.Publish.Publish, 0}, {c.Publish.Results, resultsLimit}, {c.Publish.Letters, 0}} {
		if topic.name == "" || s.show.Trial {
			continue
		}
		o, err := openOutbox(ctx, c, topic.name, topic.limit, s.security, partitions, s.log, &s.complaints)
		if err != nil {
			return err
		}
		s.outboxes, to[i] = append(s.outboxes, o), o
	}
	queue := 0
	if lm.Model != nil {
		queue = 128 * s.workers // messages of one sequence fill batches only where many wait
	}
	s.Pipeline = pipeline.New(pipeline.Config{Output: s.output, Publisher: to[0], Results: to[1], Letters: to[2],
		Origin: s.origin(), Queue: queue,
		NewProcess: func() pipeline.Process { return pipeline.NewFrames(frames).Process },
		NewTokens:  func() *pipeline.Tokens { return pipeline.NewTokens(lm.TokenConfig) },
		Originals:  slices.Contains(c.Output.Tables, tables.Messages), Pack: tables.Pack,
		Workers: s.workers, Memory: int64(c.Resource.Memory), RetryFor: c.Output.RetryFor,
		Chunks: pipeline.Chunks{Window: int64(c.Source.ChunkWindow), Age: c.Source.ChunkAge,
			Max: int64(c.Frames.MaxFrameBytes)},
		SkipGaps: c.Source.OnGap == "skip", Archive: frames.Archive,
		Roll:    pipeline.Roll{Bytes: int64(c.Output.RollBytes), Records: c.Output.RollRecords, Age: c.RollAge},
		Tap:     s.tap,
		Metrics: s.metrics, Log: s.log})
	if s.Output != nil {
		s.question = s.Pipeline.Question(s.Output.Reached)
	}
	return nil
}

// origin says which process makes dead letters.
func (s *Service) origin() (o pipeline.Origin) {
	if s.Output == nil {
		return o
	}
	o = pipeline.Origin{Output: s.Output.UUID(), Group: s.flags.Source.Group}
	if o.Group == "" {
		o.Group = s.Output.DefaultGroup()
	}
	o.Worker, _ = os.Hostname() // empty if the system does not tell it
	return o
}

// Close ends what Start began, in the opposite order. It may be called after a failed Start.
func (s *Service) Close() {
	s.stop()
	if s.viewers != nil {
		s.viewers.Close()
	}
	if s.Server != nil {
		s.Server.Close()
	}
	if s.Pipeline != nil {
		s.Pipeline.Close()
	}
	for _, o := range s.outboxes {
		o.Abort() // every record that a commit needs is acknowledged
	}
	s.feed.Close()
	if s.store != nil {
		s.store.Close()
	}
}

// Run processes until ctx ends, the end is reached, or something fails.
func (s *Service) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-s.failed:
			cancel(err)
		case <-ctx.Done():
		}
	}()
	runs := ctx
	err := s.feed.Run(runs, func(ctx context.Context, topic string, id int32, p pipeline.Partition) error {
		return s.unlessRevoked(runs, ctx, topic, id, s.Pipeline.Partition(ctx, topic, id, p))
	})
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// unlessRevoked drops the error of an output that could not be written when the
// partition was revoked: whoever has it next begins behind what is committed. At
// the end of the run it is an error that not all of what was read is committed.
func (s *Service) unlessRevoked(run, handle context.Context, topic string, id int32, err error) error {
	passing := (*schemas.UnavailableError)(nil)
	if run.Err() != nil || handle.Err() == nil || !errors.As(err, &passing) {
		return err
	}
	s.log.Warn("a partition moved on before the output could be written; whoever has it next begins behind what is "+
		"committed", "topic", topic, "partition", id, "error", err)
	return nil
}

// reached asks the output whether all of a partition before end is committed.
func (s *Service) reached(ctx context.Context, topic string, id int32, end int64) (bool, error) {
	return s.question.Ask(ctx, topic, id, end)
}

// fail makes run drain and end with err. It may be called from any goroutine.
func (s *Service) fail(err error) {
	select {
	case s.failed <- err:
	default: // it ends already
	}
}

// ready says why the service is not ready, if so.
func (s *Service) ready() error {
	if !s.started.Load() {
		return errors.New("starting")
	}
	if err := s.feed.Ready(); err != nil {
		return err
	}
	if err := s.Pipeline.Unavailable(); err != nil {
		return fmt.Errorf("the output cannot be written: %w", err)
	}
	return nil
}

// watch writes every second what changes without an event into the metrics, and looks
// whether there is another model.
func (s *Service) watch() {
	done, ended := make(chan struct{}), make(chan struct{})
	var looking sync.WaitGroup
	if !s.show.Trial {
		looking.Go(func() { s.foreignWatch(done) })
	}
	if group, ok := s.feed.(grouped); ok && s.Server != nil {
		looking.Go(func() { s.neighbours.watch(done, group, s.Server.Watched) })
	}
	s.stop = func() { close(done); <-ended; looking.Wait() }
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		sampler := s.sampler()
		for {
			s.feed.Count(s.metrics)
			s.metrics.Ready(s.feed.Ready() == nil, s.Pipeline.Unavailable() == nil, s.ready() == nil)
			s.Pipeline.Sample()
			s.countRequests()
			s.sample(sampler)
			if st := s.Pipeline.Stats(); s.flags.Frames.MaxRejects.Limited() {
				if err := s.flags.Frames.MaxRejects.Exceeded(&st, false); err != nil {
					s.fail(err)
				}
			}
			if s.model != nil {
				if sha := s.model.Reload(s.stage, s.metrics, s.log); sha != "" && !s.show.Trial {
					s.Output.SetContent(s.content(modelHash(sha) + s.hashes[strings.Index(s.hashes, "\n")+1:]))
				}
			}
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	}()
}

// limitHeap lets the collector work harder before the heap grows far beyond
// what the budget counts. The space above it is for what is not counted, files
// being encoded above all; with less, the collector would run all the time
// when batches of triangles fill the budget. What is no part of the budget comes
// on top (beside): a language model's weights and what reading takes, and the
// scenes of the live page, without which twenty pages cost three times as many
// collections. GOMEMLIMIT, when set, is the user's word.
func limitHeap(memory, beside int64) {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(memory + memory/4*3 + beside)
	}
}
