// Package run is the command run: it reads topics and writes tables, until a signal or
// the end. The Service wires consumer, stage, operators, language model, output and HTTP
// server; the work itself is in the packages ingest, ops/pipeline and sinks. The commands
// demo and validate use its Flags and, demo, its Service.
//
// Content is what decides rows: the schema, operators, tables, and hashes of models. Two
// configurations with equal content write equal rows. A foreign process writes to the
// same output with other content. The base of a topic is the offset of each partition
// where an output begins. The verdict says whether a run without an error succeeded.
package run

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"entropipe/cmd/command"
	"entropipe/cmd/config"
	"entropipe/cmd/config/describe"
	"entropipe/cmd/config/value"
	"entropipe/cmd/mistake"
	"entropipe/cmd/run/language"
	"entropipe/cmd/run/stage"
	"entropipe/ops/pipeline"
	"entropipe/schemas"
)

// Command is the command run: its flags and arguments.
type Command struct {
	Config string `arg:"" optional:"" type:"path"`

	Flags `embed:""`

	PrintConfig bool `group:"Other"`
	Commented   bool `group:"Other" more:"yes"`
}

// Flags are what a configuration file may say.
type Flags struct {
	Source   SourceFlags    `embed:"" group:"Source"`
	Output   OutputFlags    `embed:"" group:"Output"`
	Frames   FrameFlags     `embed:"" group:"Frames"`
	Stage    stage.Flags    `embed:"" group:"Stage"`
	Publish  stage.Publish  `embed:"" group:"Publish"`
	Tokens   language.Flags `embed:"" group:"Tokens"`
	Resource ResourceFlags  `embed:"" group:"Service"`
	Serve    ServeFlags     `embed:"" group:"Service"`
	Progress bool           `group:"Other" content:"no"`
}

// SourceFlags say what is read.
type SourceFlags struct {
	Security command.Security `embed:"" group:"Brokers"`

	Brokers   []string      `default:"127.0.0.1:9092" placeholder:"HOST:PORT" content:"no"`
	Topic     []string      `default:"points" content:"no"`
	Group     string        `content:"no" more:"yes"`
	From      string        `enum:"earliest,latest" default:"earliest" content:"no"`
	UntilEnd  bool          `content:"no"`
	Session   time.Duration `name:"session-timeout" default:"10s" content:"no" more:"yes"`
	Rebalance time.Duration `name:"rebalance-timeout" default:"30s" content:"no" more:"yes"`
	OnGap     string        `enum:"stop,skip" default:"stop" content:"no" more:"yes"`

	AcceptTopic []string `placeholder:"TOPIC" content:"no" more:"yes"`
}

// OutputFlags say where and how rows become files.
type OutputFlags struct {
	Out          string        `default:"./entropipe-out" placeholder:"DIR" content:"no"`
	Tables       []string      `enum:"frames,rejects,hulls,hulls3d,maxima,triangles,points,entropy" content:"yes"`
	PartitionBy  []string      `enum:"dataset,sequence,date" default:"dataset" content:"no" more:"yes"`
	StrictConfig bool          `content:"no" more:"yes"`
	NewConfig    bool          `content:"no" more:"yes"`
	RollBytes    value.Size    `default:"256MiB" content:"no" more:"yes"`
	RollRecords  int64         `default:"100000" content:"no" more:"yes"`
	RollAge      time.Duration `default:"60s" content:"no"`
	RetryFor     time.Duration `default:"10m" content:"no" more:"yes"`
}

// FrameFlags say what is done with every frame.
type FrameFlags struct {
	Ops           []string    `enum:"hull2d,hull3d,maxima2d,maxima3d,delaunay2d,none" placeholder:"OP" content:"yes"`
	EntropyEvery  int64       `default:"100" content:"yes" more:"yes"`
	Raw           []string    `placeholder:"velodyne|TOPIC=velodyne" content:"yes" more:"yes"`
	MaxRejects    rejectLimit `default:"auto" placeholder:"N|N%" content:"no" more:"yes"`
	MaxFrameBytes value.Size  `default:"64MiB" content:"yes" more:"yes"`
}

// ResourceFlags bound what the process takes.
type ResourceFlags struct {
	Workers int        `default:"0" content:"no"`
	Memory  value.Size `default:"256MiB" content:"no"`
}

// ServeFlags turn the HTTP server on.
type ServeFlags struct {
	Listen string `default:"off" placeholder:"HOST:PORT|off" content:"no"`
	Pprof  bool   `content:"no" more:"yes"`
}

// Run checks the flags and runs the command.
func (c *Command) Run(e *command.Env) error {
	if err := c.Check(); err != nil {
		return err
	}
	switch {
	case c.Commented && !c.PrintConfig:
		return mistake.NewUsage(errors.New("--commented needs --print-config"))
	case c.Commented:
		_, err := fmt.Fprint(e.Stdout, describe.Commented(e.Parser, c))
		return err
	case c.PrintConfig:
		_, err := fmt.Fprint(e.Stdout, config.Effective(e.Parser, c))
		return err
	}
	flags, want := c.idle(config.Differs(e.Parser, c))
	for i, flag := range flags {
		e.Log.Warn("this flag does nothing without another", "flag", "--"+flag, "want", want[i])
	}
	s, err := Start(e.Ctx, &c.Flags, config.Effective(e.Parser, c), e.Log)
	if err != nil {
		if err = command.UnlessStopped(e, err); err == nil && c.Source.UntilEnd {
			err = &command.InterruptedError{}
		}
		return err
	}
	defer s.Close()
	e.Log.Info("running", "brokers", strings.Join(c.Source.Brokers, ","), "topics", strings.Join(c.Source.Topic, ","), "group", s.group, "out", c.Output.Out)
	begin := time.Now()
	stop := func() {}
	if c.Progress {
		name := "frames"
		if c.Tokens.LM != "" {
			name = "frames and sequences"
		}
		stop = command.StartProgress(e.Stderr, e.Log, name, 0, s.progress(begin)).Stop
	}
	err = s.Run(e.Ctx)
	stop()
	if err == nil {
		err = s.verdict(e.Ctx)
	}
	c.totals(e.Log, s, begin, err)
	return err
}

// totals logs what was done, unless a failure is what there is to say.
func (c *Command) totals(log *slog.Logger, s *Service, begin time.Time, err error) {
	text := "done"
	if err != nil {
		rejects, interrupted := (*rejectsError)(nil), (*command.InterruptedError)(nil)
		if text = "stopped"; !errors.As(err, &rejects) && !errors.As(err, &interrupted) {
			return
		}
	}
	st := s.Pipeline.Stats()
	done := []any{"frames", st.Frames, "points", st.Points, "rejects", st.Rejects, "rows", st.Rows, "bytes", st.FileBytes, "seconds", time.Since(begin).Seconds()}
	if c.Tokens.LM != "" {
		done = append(done, s.tokens(&st)...)
	}
	if c.Publish.Publish != "" {
		done = append(done, "bytes_in", st.BytesIn, "published", st.Published, "published_bytes", st.PublishedBytes)
	}
	log.Info(text, done...)
}

// progress reads the pipeline's totals since begin for a progress display.
func (s *Service) progress(begin time.Time) command.ProgressSource {
	return func() (int64, string) {
		st, since := s.Pipeline.Stats(), time.Since(begin)
		text := ""
		if st.Frames > 0 || st.Sequences == 0 {
			text += command.Rate(st.Frames, "frames", since) + ", " + command.Rate(st.Points, "points", since) + ", "
		}
		if st.Sequences > 0 {
			text += command.Rate(st.Sequences, "sequences", since) + ", " + command.Rate(st.Tokens, "tokens", since) + ", "
		}
		text += command.ByteSize(st.FileBytes) + " written"
		if st.Rejects > 0 {
			text += ", " + command.Count(st.Rejects) + " rejects"
		}
		return st.Frames + st.Sequences, text
	}
}

// tokens are the totals of sequences, for the last line of the log.
func (s *Service) tokens(st *pipeline.Stats) []any {
	b := &s.batches
	done := []any{"sequences", st.Sequences, "tokens", st.Tokens, "batches", b.Batches.Load(), "batch_fill", b.Fill(), "padding", b.Padding.Load()}
	if n := b.Unverified.Load(); n > 0 {
		done = append(done, "unverified", n)
	}
	if s.flags.Tokens.Ladder > 0 {
		done = append(done, "ladder_rows", b.Rows.Load(), "ladder_extended", b.Extended.Load(), "ladder_dense", b.Dense.Load())
	}
	return done
}

// TableOps says which operators write a table, of those that need one.
var TableOps = map[string][]schemas.Op{
	"hulls":     {schemas.Hull2D},
	"hulls3d":   {schemas.Hull3D},
	"maxima":    {schemas.Maxima2D, schemas.Maxima3D},
	"triangles": {schemas.Delaunay2D},
}

// FrameConfig checks the operators and tables asked for and returns what is done
// with a frame, and the tables besides frames and rejects.
func (c *Flags) FrameConfig(log *slog.Logger) (pipeline.FrameConfig, []string, error) {
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
			return cfg, nil, mistake.NewUsage(fmt.Errorf("--ops %s: want hull2d, hull3d, maxima2d, maxima3d or delaunay2d", name))
		}
		if !slices.Contains(cfg.Ops, op) {
			cfg.Ops = append(cfg.Ops, op)
		}
	}
	var err error
	if cfg.Raw, err = command.RawTopics(c.Frames.Raw, c.Source.Topic); err != nil {
		return cfg, nil, err
	}
	tables := c.Output.Tables
	if tables == nil {
		tables = []string{"hulls", "hulls3d", "maxima", "triangles"}
	}
	tables = slices.DeleteFunc(slices.Clone(tables), func(t string) bool { return t == "frames" || t == "rejects" }) // always written
	for _, t := range tables {
		if !slices.Contains([]string{"hulls", "hulls3d", "maxima", "triangles", "points", "entropy"}, t) {
			return cfg, nil, mistake.NewUsage(fmt.Errorf("--tables %s: want hulls, hulls3d, maxima, triangles, points or entropy", t))
		}
	}
	for _, t := range tables {
		if writers := TableOps[t]; cfg.Ops != nil && c.Output.Tables != nil && writers != nil && !slices.ContainsFunc(writers, func(op schemas.Op) bool { return slices.Contains(cfg.Ops, op) }) {
			log.Warn("this table stays empty: no operator of --ops writes it", "table", t, "ops", strings.Join(c.Frames.Ops, ","))
		}
	}
	cfg.Publish = stage.OpSet(c.Publish.For)
	if slices.Contains(tables, "entropy") {
		cfg.EntropyEvery = c.Frames.EntropyEvery
	}
	cfg.Points = slices.Contains(tables, "points")
	cfg.Hull3D = slices.Contains(c.Output.Tables, "hulls3d") // asked for, not by default
	return cfg, tables, nil
}
