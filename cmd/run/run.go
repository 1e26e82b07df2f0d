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
	"entropipe/cmd/config/value"
	"entropipe/cmd/mistake"
	"entropipe/cmd/run/language"
	"entropipe/cmd/run/stage"
	"entropipe/ops/pipeline"
	"entropipe/schemas"
)

type Command struct {
	Config string `arg:"" optional:"" type:"path" help:"Configuration file (YAML). Flags and variables override it."`

	Flags `embed:""`

	PrintConfig bool `help:"Print the configuration in effect as YAML, and exit." group:"Other"`
}

// Flags are what a configuration file may say.
type Flags struct {
	Source   SourceFlags    `embed:""`
	Output   OutputFlags    `embed:""`
	Frames   FrameFlags     `embed:""`
	Stage    stage.Flags    `embed:""`
	Publish  stage.Publish  `embed:""`
	Tokens   language.Flags `embed:""`
	Resource ResourceFlags  `embed:""`
	Serve    ServeFlags     `embed:""`
	Progress bool           `help:"Show progress: a bar on a terminal, a log line every ten seconds elsewhere." group:"Other" content:"no"`
}

func (Command) Help() string {
	return `Reads point clouds from the topics and writes their hulls, maxima and Delaunay
triangulations to --out as Parquet, each record exactly once, whatever dies in between.
With --lm, messages of token sequences and texts become table tokens, just so.
Several processes with the same --out share the partitions.

Examples:
  entropipe run                                       # topic points on 127.0.0.1:9092, to ./entropipe-out
  entropipe run --until-end --progress                # what is there now, then stop
  entropipe run --retry-for 2h                        # what to wait for room on a full disk
  entropipe run --max-rejects 5%                      # exit 1 where more than one frame in twenty is refused
  entropipe run --brokers kafka1:9092,kafka2:9092 --topic lidar,drone --out /data/clouds
  entropipe run production.yaml --listen 127.0.0.1:8421
  entropipe run --ops hull2d,maxima3d --roll-age 10s  # no triangulation, a file every 10 s
  entropipe run --ops hull2d,hull3d                   # hulls in space too: table hulls3d
  entropipe run --ops hull3d --stage seed --model lidar.safetensors
  entropipe run --ops none --publish survivors --for hull2d,maxima3d
  entropipe run --topic points --raw velodyne         # .bin files sent as they are, by clients without headers
  entropipe run --brokers mirror:9092 --out /data/clouds --topic lidar --accept-topic lidar    # fail over, once
  entropipe run --topic points,tokens --lm all-MiniLM-L6-v2     # sequences too: table tokens
  entropipe run --topic tokens --lm all-MiniLM-L6-v2 --mask mask/ --ladder 0.1

SIGTERM or Ctrl-C: finish what was read, commit, leave the group, exit 0; 75 with --until-end, if its
end was not reached: run it again. A second one: exit at once.`
}

// SourceFlags say what is read.
type SourceFlags struct {
	Security command.Security `embed:""`

	Brokers   []string      `default:"127.0.0.1:9092" placeholder:"HOST:PORT" help:"Some brokers of the cluster (${default})." group:"Source" content:"no"`
	Topic     []string      `default:"points" help:"Topics to read (${default})." group:"Source" content:"no"`
	Group     string        `help:"Consumer group of the processes that share an output; by default named after it, entropipe-<8 digits>." group:"Source" content:"no"`
	From      string        `enum:"earliest,latest" default:"earliest" help:"Where an output begins that has nothing of a topic yet (${enum})." group:"Source" content:"no"`
	UntilEnd  bool          `help:"Stop at the last stable offsets seen at the start." group:"Source" content:"no"`
	Session   time.Duration `name:"session-timeout" default:"10s" help:"Silence after which the group gives a process's partitions to others (${default})." group:"Source" content:"no"`
	Rebalance time.Duration `name:"rebalance-timeout" default:"30s" help:"How long a process may take to commit what it has when partitions move (${default})." group:"Source" content:"no"`
	OnGap     string        `enum:"stop,skip" default:"stop" help:"When retention has deleted records before they were read: stop, or record the gap and go on (${enum})." group:"Source" content:"no"`

	AcceptTopic []string `placeholder:"TOPIC" help:"Go on in this topic although it has another id, as a mirror on another cluster has: only if the last record that was committed of every partition is there and equal. For one start; it stays accepted." group:"Source" content:"no"`
}

// OutputFlags say where and how rows become files.
type OutputFlags struct {
	Out          string        `default:"./entropipe-out" placeholder:"DIR" help:"Output folder (${default})." group:"Output" content:"no"`
	Tables       []string      `enum:"frames,rejects,hulls,hulls3d,maxima,triangles,points,entropy" placeholder:"TABLE" help:"Tables to write besides frames and rejects: hulls, hulls3d, maxima, triangles (the default: those of the operators), points, entropy." group:"Output" content:"yes"`
	PartitionBy  []string      `enum:"dataset,sequence,date" default:"dataset" help:"Folders of a table: dataset[,sequence][,date]. Fixed once an output exists." group:"Output" content:"no"`
	StrictConfig bool          `help:"Stop with status 78 when other rows would follow those that are there: at the start, if the newest of its topics were made with another configuration (--ops, --tables, models, …), and when another process writes with another one." group:"Output" content:"no"`
	NewConfig    bool          `help:"With --strict-config, start with another configuration than the output's newest rows have." group:"Output" content:"no"`
	RollBytes    value.Size    `default:"256MiB" help:"Commit after so many bytes of input (${default})." group:"Output" content:"no"`
	RollRecords  int64         `default:"100000" help:"Commit after so many records (${default})." group:"Output" content:"no"`
	RollAge      time.Duration `default:"60s" help:"Commit after so long; 0 turns the clock off (${default})." group:"Output" content:"no"`
	RetryFor     time.Duration `default:"10m" help:"How long to try again while the output cannot be written, as on a full or read-only disk; then status 1. 0: not at all (${default})." group:"Output" content:"no"`
}

// FrameFlags say what is done with every frame.
type FrameFlags struct {
	Ops           []string    `enum:"hull2d,hull3d,maxima2d,maxima3d,delaunay2d,none" placeholder:"OP" help:"Operators: hull2d, hull3d, maxima2d, maxima3d, delaunay2d; or none, for --publish alone. Default: hull2d, delaunay2d, and maxima3d for clouds with z, maxima2d for those without; hull3d too, for clouds with z, where --tables names hulls3d." group:"Frames" content:"yes"`
	EntropyEvery  int64       `default:"100" help:"Measure every so many frames for table entropy; 0: none (${default})." group:"Frames" content:"yes"`
	Raw           []string    `placeholder:"velodyne|TOPIC=velodyne" help:"Take values that no header describes for raw KITTI .bin, if they are no Arrow stream and look like one: velodyne in every topic, TOPIC=velodyne in that one." group:"Frames" content:"yes"`
	MaxRejects    rejectLimit `default:"auto" placeholder:"N|N%" help:"Stop with status 1 when more frames and sequences than N, or than N in a hundred of the first 100 or more, were refused since the start; none: never; auto: with --until-end when nothing but rejects came (${default})." group:"Frames" content:"no"`
	MaxFrameBytes value.Size  `default:"64MiB" help:"Largest frame, decompressed (${default})." group:"Frames" content:"yes"`
}

// ResourceFlags bound what the process takes.
type ResourceFlags struct {
	Workers int        `default:"0" help:"Frames worked on at a time; 0: one a core." group:"Resources" content:"no"`
	Memory  value.Size `default:"256MiB" help:"Records, results and rows in memory (${default})." group:"Resources" content:"no"`
}

// ServeFlags turn the HTTP server on.
type ServeFlags struct {
	Listen string `default:"off" placeholder:"HOST:PORT|off" help:"Serve /metrics, /healthz, /readyz and /version there (${default})." group:"Serving" content:"no"`
	Pprof  bool   `help:"Serve /debug/pprof as well." group:"Serving" content:"no"`
}

func (c *Command) Run(e *command.Env) error {
	if err := c.Check(); err != nil {
		return err
	}
	if c.PrintConfig {
		_, err := fmt.Fprint(e.Stdout, config.Effective(e.Model, c))
		return err
	}
	flags, want := c.idle(config.Differs(e.Model, c))
	for i, flag := range flags {
		e.Log.Warn("this flag does nothing without another", "flag", "--"+flag, "want", want[i])
	}
	s, err := Start(e.Ctx, &c.Flags, config.Effective(e.Model, c), e.Log)
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
