// Package run is the command run: it reads topics and writes tables, until a signal or
// the end. The Service wires consumer, stage, operators, language model, output and HTTP
// server; the work itself is in the packages ingest, ops/pipeline and sinks. Its flags are
// in cmd/run/flags. The command demo uses the Service, too.
//
// A foreign process writes to the same output with other content. The base of a topic is
// the offset of each partition where an output begins. The verdict says whether a run without an error succeeded.
package run

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"entropipe/cmd/command"
	"entropipe/cmd/config"
	"entropipe/cmd/config/describe"
	"entropipe/cmd/mistake"
	"entropipe/cmd/run/flags"
	"entropipe/ops/pipeline"
)

// Command is the command run: its flags and arguments.
type Command struct {
	Config string `arg:"" optional:"" type:"path"`

	flags.Flags `embed:""`

	PrintConfig bool `group:"Other"`
	Commented   bool `group:"Other" more:"yes"`
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
	flags, want := c.Idle(config.Differs(e.Parser, c))
	for i, flag := range flags {
		e.Log.Warn("this flag does nothing without another", "flag", "--"+flag, "want", want[i])
	}
	feed := &kafkaFeed{}
	s, err := Start(e.Ctx, &c.Flags, config.Effective(e.Parser, c),
		Show{Settings: config.Lines(e.Parser, c, e.Settings)}, feed, e.Log)
	if err != nil {
		if err = command.UnlessStopped(e, err); err == nil && c.Source.UntilEnd {
			err = &command.InterruptedError{}
		}
		return err
	}
	defer s.Close()
	e.Log.Info("running", "brokers", strings.Join(c.Source.Brokers, ","), "topics", strings.Join(c.Source.Topic, ","),
		"group", feed.group, "out", c.Output.Out)
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
		err = s.Verdict(e.Ctx)
	}
	c.totals(e.Log, s, begin, err)
	return err
}

// totals logs what was done, unless a failure is what there is to say.
func (c *Command) totals(log *slog.Logger, s *Service, begin time.Time, err error) {
	text := "done"
	if err != nil {
		rejects, interrupted := (*flags.RejectsError)(nil), (*command.InterruptedError)(nil)
		if text = "stopped"; !errors.As(err, &rejects) && !errors.As(err, &interrupted) {
			return
		}
	}
	s.WarnOfEmptyTables()
	st := s.Pipeline.Stats()
	done := []any{"frames", st.Frames, "points", st.Points, "rejects", st.Rejects, "rows", st.Rows, "bytes",
		st.FileBytes, "seconds", time.Since(begin).Seconds()}
	if c.Tokens.LM != "" {
		done = append(done, s.tokens(&st)...)
	}
	if c.Publish.Publish != "" {
		done = append(done, "bytes_in", st.BytesIn, "published", st.Published, "published_bytes", st.PublishedBytes)
	}
	if c.Publish.Results != "" {
		done = append(done, "results", st.Found, "results_bytes", st.FoundBytes)
	}
	if c.Publish.Letters != "" {
		done = append(done, "dead_letters", st.Letters, "dead_letter_bytes", st.LetterBytes)
	}
	log.Info(text, append(done, s.requestTotals(&st)...)...)
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
			text += command.Rate(st.Sequences, "sequences", since) + ", " +
				command.Rate(st.Tokens, "tokens", since) + ", "
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
	done := []any{"sequences", st.Sequences, "tokens", st.Tokens, "batches", b.Batches.Load(), "batch_fill", b.Fill(),
		"padding", b.Padding.Load()}
	if n := b.Unverified.Load(); n > 0 {
		done = append(done, "unverified", n)
	}
	if s.flags.Tokens.Ladder > 0 {
		done = append(done, "ladder_rows", b.Rows.Load(), "ladder_extended", b.Extended.Load(),
			"ladder_dense", b.Dense.Load())
	}
	return done
}
