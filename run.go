package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"entropipe/ingest"
	"entropipe/ops/metrics"
	"entropipe/ops/pipeline"
	"entropipe/schemas"
	"entropipe/sinks"
)

type runCmd struct {
	Config string `arg:"" optional:"" type:"path" help:"Configuration file (YAML). Flags and variables override it."`

	runFlags `embed:""`

	PrintConfig bool `help:"Print the configuration in effect as YAML, and exit." group:"Other"`
}

// runFlags are what a configuration file may say.
type runFlags struct {
	Source   sourceFlags   `embed:""`
	Output   outputFlags   `embed:""`
	Frames   frameFlags    `embed:""`
	Stage    stageFlags    `embed:""`
	Publish  publishFlags  `embed:""`
	Tokens   lmFlags       `embed:""`
	Resource resourceFlags `embed:""`
	Serve    serveFlags    `embed:""`
	Progress bool          `help:"Show progress: a bar on a terminal, a log line every ten seconds elsewhere." group:"Other"`
}

func (runCmd) Help() string {
	return `Reads point clouds from the topics and writes their hulls, maxima and Delaunay
triangulations to --out as Parquet, each record exactly once, whatever dies in between.
With --lm, messages of token sequences and texts become table tokens, just so.
Several processes with the same --out share the partitions.

Examples:
  entropipe run                                       # topic points on 127.0.0.1:9092, to ./entropipe-out
  entropipe run --until-end --progress                # what is there now, then stop
  entropipe run --brokers kafka1:9092,kafka2:9092 --topic lidar,drone --out /data/clouds
  entropipe run production.yaml --listen 127.0.0.1:8421
  entropipe run --ops hull2d,maxima3d --roll-age 10s  # no triangulation, a file every 10 s
  entropipe run --ops hull2d,hull3d                   # hulls in space too: table hulls3d
  entropipe run --ops hull3d --stage seed --model lidar.safetensors
  entropipe run --ops none --publish survivors --for hull2d,maxima3d
  entropipe run --topic points,tokens --lm all-MiniLM-L6-v2     # sequences too: table tokens

SIGTERM or Ctrl-C: finish what was read, commit, leave the group, exit 0. A second one: exit at once.`
}

// sourceFlags say what is read.
type sourceFlags struct {
	Brokers   []string      `default:"127.0.0.1:9092" placeholder:"HOST:PORT" help:"Some brokers of the cluster (${default})." group:"Source"`
	Topic     []string      `default:"points" help:"Topics to read (${default})." group:"Source"`
	Group     string        `help:"Consumer group; by default named after the output, entropipe-<8 digits>." group:"Source"`
	From      string        `enum:"earliest,latest" default:"earliest" help:"Where an output begins that has nothing of a topic yet (${enum})." group:"Source"`
	UntilEnd  bool          `help:"Stop at the last stable offsets seen at the start." group:"Source"`
	Session   time.Duration `name:"session-timeout" default:"10s" help:"Silence after which the group gives a process's partitions to others (${default})." group:"Source"`
	Rebalance time.Duration `name:"rebalance-timeout" default:"30s" help:"How long a process may take to commit what it has when partitions move (${default})." group:"Source"`
	OnGap     string        `enum:"stop,skip" default:"stop" help:"When retention has deleted records before they were read: stop, or record the gap and go on (${enum})." group:"Source"`
}

// outputFlags say where and how rows become files.
type outputFlags struct {
	Out         string        `default:"./entropipe-out" placeholder:"DIR" help:"Output folder (${default})." group:"Output"`
	Tables      []string      `enum:"frames,rejects,hulls,hulls3d,maxima,triangles,points,entropy" placeholder:"TABLE" help:"Tables to write besides frames and rejects: hulls, hulls3d, maxima, triangles (the default: those of the operators), points, entropy." group:"Output"`
	PartitionBy []string      `enum:"dataset,sequence,date" default:"dataset" help:"Folders of a table: dataset[,sequence][,date]. Fixed once an output exists." group:"Output"`
	RollBytes   Size          `default:"256MiB" help:"Commit after so many bytes of input (${default})." group:"Output"`
	RollRecords int64         `default:"100000" help:"Commit after so many records (${default})." group:"Output"`
	RollAge     time.Duration `default:"60s" help:"Commit after so long; 0 turns the clock off (${default})." group:"Output"`
}

// frameFlags say what is done with every frame.
type frameFlags struct {
	Ops           []string `enum:"hull2d,hull3d,maxima2d,maxima3d,delaunay2d,none" placeholder:"OP" help:"Operators: hull2d, hull3d, maxima2d, maxima3d, delaunay2d; or none, for --publish alone. Default: hull2d, delaunay2d, and maxima3d for clouds with z, maxima2d for those without; hull3d too, for clouds with z, where --tables names hulls3d." group:"Frames"`
	EntropyEvery  int64    `default:"100" help:"Measure every so many frames for table entropy; 0: none (${default})." group:"Frames"`
	MaxFrameBytes Size     `default:"64MiB" help:"Largest frame, decompressed (${default})." group:"Frames"`
}

// resourceFlags bound what the process takes.
type resourceFlags struct {
	Workers int  `default:"0" help:"Frames worked on at a time; 0: one a core." group:"Resources"`
	Memory  Size `default:"256MiB" help:"Records, results and rows in memory (${default})." group:"Resources"`
}

// serveFlags turn the HTTP server on.
type serveFlags struct {
	Listen string `default:"off" placeholder:"HOST:PORT|off" help:"Serve /metrics, /healthz, /readyz and /version there (${default})." group:"Serving"`
	Pprof  bool   `help:"Serve /debug/pprof as well." group:"Serving"`
}

func (c *runCmd) Run(e *env) error {
	if err := c.check(); err != nil {
		return inFile(c.Config, err)
	}
	if c.PrintConfig {
		_, err := fmt.Fprint(e.stdout, effectiveConfig(e.model, c))
		return err
	}
	s, err := start(e.ctx, &c.runFlags, effectiveConfig(e.model, c), e.log)
	if err != nil {
		return unlessStopped(e, err)
	}
	defer s.close()
	e.log.Info("running", "brokers", strings.Join(c.Source.Brokers, ","), "topics", strings.Join(c.Source.Topic, ","), "group", s.group, "out", c.Output.Out)
	begin := time.Now()
	stop := func() {}
	if c.Progress {
		stop = startProgress(e.stderr, e.log, "frames", 0, s.progress(begin)).Stop
	}
	err = s.run(e.ctx)
	stop()
	if err != nil {
		return err
	}
	st := s.pipeline.Stats()
	done := []any{"frames", st.Frames, "points", st.Points, "rejects", st.Rejects, "rows", st.Rows, "bytes", st.FileBytes, "seconds", time.Since(begin).Seconds()}
	if c.Tokens.LM != "" {
		done = append(done, s.tokens(&st)...)
	}
	if c.Publish.Publish != "" {
		done = append(done, "bytes_in", st.BytesIn, "published", st.Published, "published_bytes", st.PublishedBytes)
	}
	e.log.Info("done", done...)
	return nil
}

// service is everything that `run` is made of, wired.
type service struct {
	store    *sinks.Local
	output   *sinks.Output
	consumer *ingest.Consumer
	outbox   *ingest.Outbox // of --publish; nil without
	pipeline *pipeline.Pipeline
	stage    *pipeline.Stage // nil: off
	model    *modelFile      // nil: it is not read again
	batches  pipeline.BatchTotals
	metrics  *metrics.Metrics
	server   *metrics.Server
	group    string
	log      *slog.Logger
	stop     func()     // ends the goroutine that watches
	failed   chan error // why a worker wants the run to end
}

// start opens the output, fixes its base, and makes the rest of the service.
// What it starts, close ends, in the opposite order.
func start(ctx context.Context, c *runFlags, config string, log *slog.Logger) (s *service, err error) {
	s = &service{stop: func() {}, log: log, failed: make(chan error, 1)}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	frames, tables, err := c.frames(log)
	if err != nil {
		return s, err
	}
	if c.Stage.Model != "" && (c.Stage.Stage == "seed" || c.Stage.Stage == "prune") { // others change rows
		s.model = newModelFile(c.Stage.Model) // first: what changes while it is read is seen
	}
	model, err := c.Stage.readModel()
	if err != nil {
		return s, err
	}
	registry := prometheus.NewRegistry()
	s.metrics = metrics.New(registry, version)
	if s.stage, err = c.Stage.newStage(model, s.metrics, log, s.fail); err != nil {
		return s, err
	}
	if frames.Stage = s.stage; model != nil {
		if idle(model, &frames) {
			log.Warn("the model has nothing to do: what it serves does not run", "file", c.Stage.Model, "stage", c.Stage.Stage, "serves", strings.Join(model.Meta.Ops, ","))
		}
		config += "model_sha256: " + model.SHA256 + "\n"
	}
	workers := c.Resource.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	lm, err := c.Tokens.open(workers)
	if err != nil {
		return s, err
	}
	lm.report(log, &c.Tokens)
	lm.MaxBytes, lm.OnPanic, lm.Metrics, lm.Totals = frames.MaxBytes, frames.OnPanic, s.metrics, &s.batches
	config += lm.config
	limitHeap(int64(c.Resource.Memory), lm.bytes)
	if err := s.open(ctx, c, tables, config); err != nil {
		return s, err
	}
	if s.group = c.Source.Group; s.group == "" {
		s.group = s.output.DefaultGroup()
	}
	consumer, err := ingest.NewConsumer(ingest.Config{Brokers: c.Source.Brokers, Topics: c.Source.Topic, Group: s.group,
		UntilEnd: c.Source.UntilEnd, Reached: s.output.Reached, MaxFrameBytes: int64(c.Frames.MaxFrameBytes), Log: log,
		Timing: ingest.Timing{Session: c.Source.Session, Rebalance: c.Source.Rebalance}})
	if err != nil {
		return s, err
	}
	s.consumer = consumer
	partitions, err := s.fixBase(ctx, c)
	if err != nil {
		return s, err
	}
	var publisher pipeline.Publisher
	if c.Publish.Publish != "" {
		if s.outbox, err = c.openOutbox(ctx, partitions, log); err != nil {
			return s, err
		}
		publisher = s.outbox
	}
	queue := 0
	if lm.Model != nil {
		queue = 128 * workers // messages of one sequence fill batches only where many wait
	}
	s.pipeline = pipeline.New(pipeline.Config{Output: s.output, Publisher: publisher, Queue: queue,
		NewProcess: func() pipeline.Process { return pipeline.NewFrames(frames).Process },
		NewTokens:  func() *pipeline.Tokens { return pipeline.NewTokens(lm.TokenConfig) },
		Workers:    workers, Memory: int64(c.Resource.Memory), SkipGaps: c.Source.OnGap == "skip",
		Roll:    pipeline.Roll{Bytes: int64(c.Output.RollBytes), Records: c.Output.RollRecords, Age: c.Output.RollAge},
		Metrics: s.metrics, Log: log})
	if c.Serve.Listen != "off" {
		s.server, err = metrics.Serve(metrics.ServerConfig{Listen: c.Serve.Listen, Gatherer: registry, Version: version, Pprof: c.Serve.Pprof, Ready: s.ready})
		if err != nil {
			return s, err
		}
		log.Info("listening", "metrics", "http://"+s.server.Addr()+"/metrics")
	}
	s.watch()
	return s, nil
}

func (s *service) close() {
	s.stop()
	if s.server != nil {
		s.server.Close()
	}
	if s.pipeline != nil {
		s.pipeline.Close()
	}
	if s.outbox != nil {
		s.outbox.Close(false) // what counts is acknowledged
	}
	if s.consumer != nil {
		s.consumer.Close()
	}
	if s.store != nil {
		s.store.Close()
	}
}

// open opens the output folder, or makes it one.
func (s *service) open(ctx context.Context, c *runFlags, tables []string, config string) (err error) {
	if s.store, err = sinks.OpenLocal(c.Output.Out); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	hash := sha256.Sum256([]byte(config))
	s.output, err = sinks.Open(ctx, s.store, sinks.Config{PartitionBy: c.Output.PartitionBy, Tables: tables,
		ConfigHash: hex.EncodeToString(hash[:]), Version: version, Build: metrics.Revision()})
	if wrong := (*sinks.ConfigError)(nil); errors.As(err, &wrong) {
		return &ConfigError{Problems: []Problem{{Path: wrong.Field, What: wrong.Problem}}}
	}
	return err
}

// run processes until ctx ends, the end is reached, or something fails.
func (s *service) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-s.failed:
			cancel(err)
		case <-ctx.Done():
		}
	}()
	err := s.consumer.Run(ctx, func(ctx context.Context, p *ingest.Partition) error {
		return s.pipeline.Partition(ctx, p.Topic, p.ID, p)
	})
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// fail makes run drain and end with err. It may be called from any goroutine.
func (s *service) fail(err error) {
	select {
	case s.failed <- err:
	default: // it ends already
	}
}

// fixBase writes down where every partition begins, before the first fetch. An
// output that knows the topic already keeps what it has. It returns how many
// partitions the largest topic has.
func (s *service) fixBase(ctx context.Context, c *runFlags) (partitions int, err error) {
	for _, topic := range c.Source.Topic {
		starts, err := s.consumer.Starts(ctx, topic, c.Source.From)
		if err != nil {
			return 0, err
		}
		if err := s.output.Base(ctx, topic, starts); err != nil {
			return 0, err
		}
		partitions = max(partitions, len(starts))
	}
	return partitions, nil
}

// ready says why the service is not ready, if so.
func (s *service) ready() error {
	if !s.consumer.Stats().Connected {
		return errors.New("no broker answers")
	}
	return nil
}

// watch copies the consumer's numbers into the metrics every second, and looks
// whether there is another model.
func (s *service) watch() {
	done, ended := make(chan struct{}), make(chan struct{})
	s.stop = func() { close(done); <-ended }
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		var seen ingest.Stats
		for {
			now := s.consumer.Stats()
			s.metrics.Consumer(now.Rebalances-seen.Rebalances, now.FetchErrors+now.JoinErrors-seen.FetchErrors-seen.JoinErrors, now.Connected)
			seen = now
			if s.model != nil {
				s.model.reload(s.stage, s.metrics, s.log)
			}
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	}()
}

// progress reads the pipeline's totals since begin for a progress display.
func (s *service) progress(begin time.Time) progressSource {
	return func() (int64, string) {
		st, since := s.pipeline.Stats(), time.Since(begin)
		text := rate(st.Frames, "frames", since) + ", " + rate(st.Points, "points", since)
		if st.Sequences > 0 {
			text += ", " + rate(st.Sequences, "sequences", since) + ", " + rate(st.Tokens, "tokens", since)
		}
		text += ", " + byteSize(st.FileBytes) + " written"
		if st.Rejects > 0 {
			text += ", " + count(st.Rejects) + " rejects"
		}
		return st.Frames + st.Sequences, text
	}
}

// tokens are the totals of sequences, for the last line of the log.
func (s *service) tokens(st *pipeline.Stats) []any {
	return []any{"sequences", st.Sequences, "tokens", st.Tokens, "batches", s.batches.Batches.Load(), "batch_fill", s.batches.Fill(), "padding", s.batches.Padding.Load()}
}

// frames checks the operators and tables asked for and returns what is done
// with a frame, and the tables besides frames and rejects.
func (c *runFlags) frames(log *slog.Logger) (pipeline.FrameConfig, []string, error) {
	cfg := pipeline.FrameConfig{MaxBytes: int64(c.Frames.MaxFrameBytes), OnPanic: func(k schemas.FrameKey, what any, stack []byte) {
		log.Error("an operator panicked: the frame, or sequence, becomes a reject", "topic", k.Topic, "partition", k.Partition, "offset", k.Offset, "index", k.Index, "panic", what, "stack", string(stack))
	}}
	for _, name := range c.Frames.Ops {
		if name == "none" {
			cfg.Ops = []schemas.Op{}
			break
		}
		op, ok := schemas.ParseOp(name)
		if !ok {
			return cfg, nil, usageError{fmt.Errorf("--ops %s: want hull2d, hull3d, maxima2d, maxima3d or delaunay2d", name)}
		}
		if !slices.Contains(cfg.Ops, op) {
			cfg.Ops = append(cfg.Ops, op)
		}
	}
	tables := c.Output.Tables
	if tables == nil {
		tables = []string{"hulls", "hulls3d", "maxima", "triangles"}
	}
	tables = slices.DeleteFunc(slices.Clone(tables), func(t string) bool { return t == "frames" || t == "rejects" }) // always written
	for _, t := range tables {
		if !slices.Contains([]string{"hulls", "hulls3d", "maxima", "triangles", "points", "entropy"}, t) {
			return cfg, nil, usageError{fmt.Errorf("--tables %s: want hulls, hulls3d, maxima, triangles, points or entropy", t)}
		}
	}
	cfg.Publish = opSet(c.Publish.For)
	if slices.Contains(tables, "entropy") {
		cfg.EntropyEvery = c.Frames.EntropyEvery
	}
	cfg.Points = slices.Contains(tables, "points")
	cfg.Hull3D = slices.Contains(c.Output.Tables, "hulls3d") // asked for, not by default
	return cfg, tables, nil
}

// limitHeap lets the collector work harder before the heap grows far beyond
// what the budget counts. The space above it is for what is not counted, files
// being encoded above all; with less, the collector would run all the time
// when batches of triangles fill the budget. A language model comes on top: its
// weights and what reading takes are no part of the budget. GOMEMLIMIT, when
// set, is the user's word.
func limitHeap(memory, model int64) {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(memory + memory/4*3 + model)
	}
}
