// Package demo is the command demo: a broker, producers of synthetic sweeps, sketches and
// notes, and the service of the command run, in one process. It needs nothing else and
// has no flags of its own for what run decides.
//
// A note is a made-up sentence for the language model. The backlog of a topic is the
// messages that earlier demos in the folder sent and none committed.
package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"entropipe/cmd/command"
	"entropipe/cmd/config"
	"entropipe/cmd/run"
	"entropipe/cmd/run/flags"
	"entropipe/cmd/run/language"
	"entropipe/cmd/run/stage"
	"entropipe/ingest"
	"entropipe/ingest/broker"
	"entropipe/ingest/replay"
)

// Command is the command demo: its flags and arguments.
type Command struct {
	Frames int64  `default:"200"`
	Out    string `default:"./entropipe-demo" placeholder:"DIR"`
	Listen string `default:"127.0.0.1:8421" placeholder:"HOST:PORT|off"`
	Keep   bool
	Rate   replay.Rate `default:"realtime"`
	Points int         `default:"120000"`
	Seed   uint64      `default:"1"`
	LM     string      `name:"lm" default:"builtin:bytes" placeholder:"DIR"`
}

// The demo's topics, and how many drawings and notes are sent for every LiDAR
// frame: as many as the crowd draws and writes in a tenth of a second.
const (
	demoLidar     = "points"
	demoSketches  = "sketches"
	demoTokens    = "tokens"
	sketchesEach  = 100
	sentencesEach = 10
)

var demoTopics = []string{demoLidar, demoSketches, demoTokens}

// demo is one run of the command.
type demo struct {
	*Command
	brokers []string
	log     *slog.Logger
	sent    map[string]int64 // frames there before, by topic
	backlog map[string]int64 // messages that no run has committed, by topic
	pace    pace
	took    time.Duration // until everything was committed; 0: it was not
}

// Run checks the flags and runs the command.
func (c *Command) Run(e *command.Env) error {
	if err := c.Check(); err != nil {
		return err
	}
	begin := time.Now()
	if err := os.MkdirAll(c.Out, 0o777); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	b, err := broker.Start(broker.Config{Listen: "127.0.0.1:0", Dir: filepath.Join(c.Out, "_broker"),
		Partitions: 2, Log: e.Log})
	if err != nil {
		return err
	}
	defer b.Close()
	d := &demo{Command: c, brokers: []string{b.Addr()}, log: quiet(e.Log), sent: map[string]int64{},
		backlog: map[string]int64{}}
	for _, topic := range demoTopics {
		if err := ingest.EnsureTopic(e.Ctx, d.brokers, ingest.Security{}, topic,
			ingest.TopicSpec{Partitions: 2, MaxMessageBytes: 64 << 20}); err != nil {
			return err
		}
	}
	flags := d.flags()
	s, err := run.Start(e.Ctx, flags, config.Effective(e.Parser, c),
		run.Show{Settings: config.Lines(e.Parser, c, e.Settings), Demo: true}, run.Topics(), d.log)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := d.look(e.Ctx, s); err != nil {
		return err
	}
	if s.Server != nil {
		fmt.Fprintf(e.Stderr, "http://%s/\n", s.Server.Addr())
		if s.Moved {
			fmt.Fprintf(e.Stderr, "%s is taken: the page has a free port\n", c.Listen)
		}
	}
	fmt.Fprintf(e.Stderr, "broker on %s, output in %s\n", b.Addr(), c.Out)
	if n := d.sent[demoLidar]; n > 0 {
		fmt.Fprintf(e.Stderr, "continuing: %s LiDAR frames were sent before\n", command.Count(n))
	}
	d.pace = pace{begin: time.Now(), hz: c.Rate.Hz(10), total: c.Frames}
	show := command.StartProgress(e.Stderr, e.Log, "LiDAR frames", c.Frames, func() (int64, string) {
		lidar, all, since := s.Pipeline.Stats(demoLidar), s.Pipeline.Stats(), time.Since(begin)
		return lidar.Frames, command.Rate(lidar.Frames, "frames", since) + ", " +
			command.Rate(lidar.Points, "points", since) + ", " +
			command.Count(all.Frames-lidar.Frames) + " sketches, " + command.Rate(all.Tokens, "tokens", since) + ", " +
			command.ByteSize(all.FileBytes) + " written" +
			d.pace.text(lidar.Frames-d.backlog[demoLidar], time.Since(d.pace.begin))
	})
	err = d.stream(e.Ctx, s)
	ended := time.Since(d.pace.begin)
	show.Stop()
	if err == nil {
		err = d.report(e.Stdout, s, begin, ended)
	}
	return err
}

// flags are those of the `run` command that the demo stands for.
func (d *demo) flags() *flags.Flags {
	return &flags.Flags{
		Source: flags.SourceFlags{Brokers: d.brokers, Topic: demoTopics, From: "earliest", OnGap: "stop"},
		Output: flags.OutputFlags{Out: d.Out, Tables: []string{"hulls", "maxima", "triangles", "points"},
			PartitionBy: []string{"dataset"}, RollBytes: 256 << 20, RollRecords: 100_000},
		RollAge: time.Second,
		Frames:  flags.FrameFlags{MaxFrameBytes: 64 << 20},
		Stage:   stage.Flags{Stage: "off"},
		Tokens: language.Flags{LM: d.LM, Weights: "f32", Task: "logits", TruncateSide: "auto", TopK: 5, MaxNew: 1,
			TokenBudget: 4096},
		Resource: flags.ResourceFlags{Memory: 256 << 20},
		Serve:    flags.ServeFlags{Listen: d.Listen},
	}
}

// look finds out what earlier runs have sent and committed.
func (d *demo) look(ctx context.Context, s *run.Service) error {
	for topic, frames := range map[string]int64{demoLidar: 1, demoSketches: sketchPack, demoTokens: sentencesEach} {
		t, err := ingest.Describe(ctx, d.brokers, ingest.Security{}, topic)
		if err != nil {
			return err
		}
		for _, p := range t.Partitions {
			pos, err := s.Output.Resume(ctx, topic, p.ID)
			if err != nil {
				return err
			}
			d.sent[topic] += p.End * frames
			d.backlog[topic] += p.End - pos.Next
		}
	}
	return nil
}

// sketchPack is how many drawings a message holds: all of them hold as many.
const sketchPack = 100

// stream produces and processes until everything that was sent is committed,
// or ctx ends.
func (d *demo) stream(parent context.Context, s *run.Service) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	var producers, processing sync.WaitGroup
	messages := make(chan int64, len(demoTopics)) // acknowledged, by each producer
	send := func(topic string, rate replay.Rate, src replay.Source, err error) {
		producers.Go(func() {
			if err == nil {
				var n int64
				n, err = d.produce(ctx, topic, rate, src)
				messages <- n
			}
			if err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	lidar, err := replay.LiDAR{Frames: d.Frames, Points: d.Points, Seed: d.Seed}.Open()
	send(demoLidar, d.Rate, lidar, err)
	crowd, err := replay.Sketches{Frames: d.Frames * sketchesEach, Pack: sketchPack, Seed: d.Seed}.Open()
	send(demoSketches, d.Rate.Times(sketchesEach), crowd, err)
	send(demoTokens, d.Rate.Times(sentencesEach), &sentences{total: d.Frames * sentencesEach, seed: d.Seed}, nil)
	processing.Go(func() {
		if err := s.Run(ctx); err != nil {
			cancel(err)
		}
	})
	producers.Wait()
	close(messages)
	var wanted int64
	for _, n := range d.backlog {
		wanted += n
	}
	for n := range messages {
		wanted += n
	}
	d.await(ctx, s, wanted)
	cancel(nil)
	processing.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// await returns when so many messages are committed and nobody wants the demo
// to stay, or ctx ends. It notes when they were.
func (d *demo) await(ctx context.Context, s *run.Service, messages int64) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if d.took == 0 && s.Pipeline.Stats().Messages >= messages && ctx.Err() == nil {
			d.took = time.Since(d.pace.begin)
		}
		if d.took > 0 && !d.Keep {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// produce sends src to topic and returns how many messages were acknowledged.
func (d *demo) produce(ctx context.Context, topic string, rate replay.Rate, src replay.Source) (int64, error) {
	defer src.Close()
	p := replay.Producer{Brokers: d.brokers, Topic: topic, Play: replay.Play{Rate: rate}, Log: d.log}
	st, err := p.Run(ctx, &continued{Source: src, frames: d.sent[topic]})
	return st.Messages, err
}

// continued numbers and dates the frames of a scene on from those of earlier
// runs.
type continued struct {
	replay.Source
	frames int64
}

func (c *continued) Next(it *replay.Item) error {
	if err := c.Source.Next(it); err != nil {
		return err
	}
	period := int64(time.Second / 10)
	switch {
	case it.Drawings != nil:
		period /= sketchesEach
	case it.Sequences != nil:
		period /= sentencesEach
		for i := range it.Sequences {
			it.Sequences[i].ID = fmt.Sprintf("note-%d", c.frames+it.Number+int64(i))
		}
	}
	it.Number += c.frames
	it.TimeNs += c.frames * period
	for i := range it.Drawings {
		if d := &it.Drawings[i]; d.TimeNs != 0 { // 0: unknown
			d.TimeNs += c.frames * period
		}
	}
	return nil
}

// report prints what was done and how to look at it. The stream ended so long after
// its begin.
func (d *demo) report(w io.Writer, s *run.Service, begin time.Time, ended time.Duration) error {
	lidar, sketches, tokens := s.Pipeline.Stats(demoLidar), s.Pipeline.Stats(demoSketches), s.Pipeline.Stats(demoTokens)
	elapsed := time.Since(begin)
	tab := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	row := func(name, a, b, c string) { fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t\n", name, a, b, c) }
	each := func(name string, f func(int64) string, a, b, c int64) { row(name, f(a), f(b), f(c)) }
	row("", "LiDAR", "sketches", "tokens")
	each("frames, notes", command.Count, lidar.Frames, sketches.Frames, tokens.Sequences)
	each("points, tokens", command.Count, lidar.Points, sketches.Points, tokens.Tokens)
	each("rows", command.Count, lidar.Rows, sketches.Rows, tokens.Rows)
	each("bytes in", command.ByteSize, lidar.BytesIn, sketches.BytesIn, tokens.BytesIn)
	each("bytes written", command.ByteSize, lidar.FileBytes, sketches.FileBytes, tokens.FileBytes)
	each("a second", command.Count, perSecond(lidar.Frames, elapsed), perSecond(sketches.Frames, elapsed),
		perSecond(tokens.Sequences, elapsed))
	row("latency p50", ms(lidar.LatencyP50), ms(sketches.LatencyP50), ms(tokens.LatencyP50))
	row("latency p99", ms(lidar.LatencyP99), ms(sketches.LatencyP99), ms(tokens.LatencyP99))
	each("rejects", command.Count, lidar.Rejects, sketches.Rejects, tokens.Rejects)
	if first := s.Pipeline.Stats().FirstCommit; !first.IsZero() {
		row("first row after", ms(first.Sub(begin)), "", "")
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	fmt.Fprint(w, d.pace.verdict(lidar.Frames-d.backlog[demoLidar], cmp.Or(d.took, ended)))
	out := filepath.ToSlash(d.Out)
	_, err := fmt.Fprintf(w, `
Open it:
  Picture    entropipe export %[2]s --topic points -o frame.png
  DuckDB     duckdb -c "SELECT frame_id, n_points, n_hull, area FROM read_parquet('%[1]s/hulls/*/topic=points/*.parquet', hive_partitioning=true) ORDER BY area DESC LIMIT 5"
  GeoPandas  python3 -c "import geopandas; print(geopandas.read_parquet('%[1]s/hulls')[['frame_id', 'n_hull', 'geometry']].head())"
  DuckDB     duckdb -c "SELECT id, n_tokens, chr(top_ids[1]) AS next, exp(top_logprobs[1]) AS p FROM read_parquet('%[1]s/tokens/*/*/*.parquet') LIMIT 5"
  Polars     python3 -c "import polars; print(polars.scan_parquet('%[1]s/triangles/**/*.parquet', hive_partitioning=True).head().collect())"
`, out, shellWord(out))
	return err
}

// pace is how fast frames are due.
type pace struct {
	begin time.Time
	hz    float64 // 0: as many as go through
	total int64   // 0: no end
}

// fallsBehind is from when on a stream counts as late. A commit comes a second after
// its first frame.
const fallsBehind = 3 * time.Second

// behind returns how long the frame after the first done ones has been due, when
// elapsed has gone by since the begin; 0 if nothing is due.
func (p pace) behind(done int64, elapsed time.Duration) time.Duration {
	if p.hz == 0 {
		return 0
	}
	return max(0, elapsed-time.Duration(float64(max(done, 0))/p.hz*float64(time.Second)))
}

// text returns ", 12s behind real time" for a bar; nothing while frames come in time.
func (p pace) text(done int64, elapsed time.Duration) string {
	late := p.behind(done, elapsed)
	if late < fallsBehind || p.total > 0 && done >= p.total {
		return ""
	}
	return fmt.Sprintf(", %v behind real time", late.Round(time.Second))
}

// verdict returns the line that says of a stream that has ended how late it was;
// nothing if it was in time.
func (p pace) verdict(done int64, ended time.Duration) string {
	late := p.behind(done, ended)
	if late < fallsBehind {
		return ""
	}
	return fmt.Sprintf("\nBehind real time by %v: %s frames took %v. This machine keeps up with fewer --points, or "+
		"with a lower --rate.\n",
		late.Round(time.Second), command.Count(done), ended.Round(time.Second))
}

// shellWord returns text as a word of a shell's command.
func shellWord(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("_./:=,@%+-", r))
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

func perSecond(n int64, d time.Duration) int64 { return int64(float64(n)/max(d.Seconds(), 1e-9) + .5) }

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// quiet returns log without what is less than a warning: the demo shows a bar.
func quiet(log *slog.Logger) *slog.Logger { return slog.New(atLeast{log.Handler()}) }

type atLeast struct{ slog.Handler }

func (h atLeast) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

func (h atLeast) WithAttrs(a []slog.Attr) slog.Handler { return atLeast{h.Handler.WithAttrs(a)} }

func (h atLeast) WithGroup(name string) slog.Handler { return atLeast{h.Handler.WithGroup(name)} }

// Check returns all mistakes of the flags, joined, each a mistake.Usage.
func (c *Command) Check() error {
	return errors.Join(command.CheckAmount("frames", c.Frames, 0, math.MaxInt64),
		command.CheckAmount("points", c.Points, 1, replay.MaxSyntheticPoints),
		command.CheckFolder("out", c.Out), command.CheckListen(c.Listen))
}
