// Package validate is the command validate: it checks a configuration file of the command
// run, and with --connect also topics and the output folder. It processes no message.
//
// A check is one thing that was looked at, with a verdict and a detail.
package validate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"entropipe/cmd/command"
	"entropipe/cmd/config"
	"entropipe/cmd/config/describe"
	"entropipe/cmd/config/value"
	"entropipe/cmd/mistake"
	"entropipe/cmd/run/flags"
	"entropipe/ingest"
	"entropipe/ingest/bucket"
	"entropipe/ops/metrics"
	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/read"
	"entropipe/sinks/record"
	"entropipe/sinks/s3"
	"entropipe/sinks/tables"
)

// Command is the command validate: its flags and arguments.
type Command struct {
	Config string `arg:"" optional:"" type:"path" keys:"run"`

	flags.Flags `embed:""`

	Of         string     `enum:"run,backfill" default:"run" group:"Validate"`
	Connect    bool       `group:"Validate"`
	FrameBytes value.Size `default:"2MiB" group:"Validate"`
	JSON       bool       `name:"json" group:"Validate"`
	Schema     bool       `group:"Validate"`
}

// checkResult is one thing that was looked at.
type checkResult struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

type checkResults []checkResult

// String is a line a check.
func (r checkResults) String() string {
	var b strings.Builder
	for _, c := range r {
		mark := "ok  "
		if !c.OK {
			mark = "FAIL"
		}
		fmt.Fprintf(&b, "%s %s: %s\n", mark, c.Name, c.Detail)
	}
	return b.String()
}

func (r *checkResults) add(name, detail string, err error) {
	if err != nil {
		detail = err.Error()
	}
	*r = append(*r, checkResult{name, err == nil, detail})
}

// failed is the error of checks that are not all well.
func (r checkResults) failed() error {
	n := 0
	for _, c := range r {
		if !c.OK {
			n++
		}
	}
	if n > 0 {
		return fmt.Errorf("validate: %d of %d checks failed", n, len(r))
	}
	return nil
}

// Run is reached only when file, variables and flags have been read without a
// mistake: the parser has checked them.
func (c *Command) Run(e *command.Env) error {
	switch {
	case c.Schema:
		_, err := e.Stdout.Write(describe.Schema(config.FileOf(e.Parser.Model.Node, c.Of)))
		return err
	case c.Config == "":
		return mistake.NewUsage(errors.New("validate needs CONFIG, a configuration file, or --schema"))
	}
	if err := c.Check(); err != nil {
		return err
	}
	security, err := c.Source.Security.Open(e.Log)
	if err != nil {
		return err
	}
	frames, tables, err := c.FrameConfig(e.Log)
	if err != nil {
		return err
	}
	var r checkResults
	what := "topics " + strings.Join(c.Source.Topic, ", ")
	if c.Of == "backfill" {
		what = "backfill"
	}
	r.add("configuration", fmt.Sprintf("%s: %s to %s, tables %s", config.ShownPath(c.Config), what, c.Output.Out,
		strings.Join(c.written(tables, frames.Ops), ", ")), nil)
	if c.Stage.Stage != "off" {
		r.add(c.checkStage())
	}
	if c.Tokens.LM != "" {
		r.add(c.checkModel())
	}
	if c.Connect {
		for _, topic := range c.Source.Topic {
			if c.Of == "run" {
				r.add(c.checkTopic(e.Ctx, security, topic))
			}
		}
		for _, topic := range c.Publish.Topics() {
			r.add(c.checkTarget(e.Ctx, security, topic))
		}
		r.add(c.checkOutput(e.Ctx))
		if r[len(r)-1].OK && command.IsBucket(c.Output.Out) {
			r.add(c.checkRules(e.Ctx))
		}
	}
	if err := command.PrintResult(e.Stdout, c.JSON, r); err != nil {
		return err
	}
	return r.failed()
}

// written returns the tables that a run may write: those that are asked for, or
// else what operators fill, and what a language model does.
func (c *Command) written(tables []string, ops []schemas.Op) []string {
	if c.Output.Tables == nil {
		tables = slices.DeleteFunc(tables, func(t string) bool {
			if ops == nil { // hull3d is no default operator
				return t == "hulls3d"
			}
			return !slices.ContainsFunc(flags.TableOps[t], func(op schemas.Op) bool { return slices.Contains(ops, op) })
		})
	}
	tables = append([]string{"frames", "rejects"}, tables...)
	if c.Tokens.LM != "" {
		tables = append(tables, "tokens")
		if c.Tokens.Mask != "" && c.Tokens.AuditEvery > 0 {
			tables = append(tables, "attention_stats")
		}
	}
	return tables
}

// checkStage reads the model and makes the stage.
func (c *Command) checkStage() (name, detail string, err error) {
	name = "stage " + c.Stage.Stage
	m, err := c.Stage.ReadModel()
	if err != nil {
		return name, "", err
	}
	if _, err = c.Stage.NewStage(m, metrics.New(prometheus.NewRegistry(), command.Version),
		slog.New(slog.DiscardHandler), nil); err != nil || m == nil {
		return name, "without a model", err
	}
	return name, fmt.Sprintf("%s, for %s", c.Stage.Model, strings.Join(m.Meta.Ops, ", ")), nil
}

// checkModel reads the language model, its tokenizer and masks.
func (c *Command) checkModel() (name, detail string, err error) {
	name = "language model " + c.Tokens.LM
	l, err := c.Tokens.Open(1)
	if err != nil {
		return name, "", err
	}
	cfg, texts, masks := l.Model.Config(), "no tokenizer: texts become rejects", ""
	if l.Tokenizer != nil {
		texts = "with a tokenizer"
	}
	if l.Plan != nil {
		from, to, dense := l.Served()
		masks = fmt.Sprintf("; attention by %s from %d to %d tokens", c.Tokens.Mask, from, to)
		if to == 0 {
			masks = "; attention dense in spite of " + c.Tokens.Mask + ": " + dense
		}
	}
	return name, fmt.Sprintf("%s, %d layers of %d, up to %d tokens, for %s; %s%s", cfg.Arch, cfg.Layers, cfg.Hidden,
		cfg.MaxPositions, c.Tokens.Task, texts, masks), nil
}

// checkTopic asks the brokers for a topic and compares its limit with the
// frames to come.
func (c *Command) checkTopic(ctx context.Context, security ingest.Security, topic string) (name,
	detail string, err error) {
	name = "topic " + topic
	t, err := ingest.Describe(ctx, c.Source.Brokers, security, topic)
	if err != nil {
		return name, "", err
	}
	if err := c.checkContinues(ctx, &t); err != nil {
		return name, "", err
	}
	if c.FrameBytes > c.Frames.MaxFrameBytes {
		return name, "", fmt.Errorf("frames of %s would become rejects: --max-frame-bytes is %s", c.FrameBytes,
			c.Frames.MaxFrameBytes)
	}
	limit := command.ByteSize(t.MaxMessageBytes)
	if t.MaxMessageBytes > int64(c.Frames.MaxFrameBytes) {
		limit += fmt.Sprintf(", of which those above --max-frame-bytes %s become rejects", c.Frames.MaxFrameBytes)
	}
	if t.MaxMessageBytes >= 0 && t.MaxMessageBytes < int64(c.FrameBytes) {
		limit += fmt.Sprintf("; frames of %s come in chunks", c.FrameBytes)
	}
	var records int64
	for _, p := range t.Partitions {
		records += p.End - p.Start
	}
	return name, fmt.Sprintf("%d partitions, about %s records, messages of up to %s", len(t.Partitions),
		command.Count(records), limit), nil
}

// checkTarget asks the brokers for a topic that is sent to.
func (c *Command) checkTarget(ctx context.Context, security ingest.Security, topic string) (name,
	detail string, err error) {
	name = "topic " + topic + ", sent to"
	t, err := ingest.Describe(ctx, c.Source.Brokers, security, topic)
	switch {
	case errors.Is(err, ingest.ErrNoTopic):
		return name, "not there yet: the start makes it", nil
	case err != nil:
		return name, "", err
	case t.MaxMessageBytes < 0:
		return name, fmt.Sprintf("%d partitions", len(t.Partitions)), nil
	}
	return name, fmt.Sprintf("%d partitions, messages of up to %s; larger ones go in chunks", len(t.Partitions),
		command.ByteSize(t.MaxMessageBytes)), nil
}

// checkContinues compares the topic with the one that the output was written from,
// if there is one.
func (c *Command) checkContinues(ctx context.Context, t *ingest.Topic) error {
	store, err := command.FindOutput(ctx, c.Output.Out, &c.Output.Bucket)
	if err != nil {
		return nil // checkOutput says what is wrong with it
	}
	defer store.Close()
	was, err := sinks.TopicIDIn(ctx, store, t.Name)
	if fault := (*bucket.Fault)(nil); errors.As(err, &fault) {
		return nil // as above
	}
	if err != nil || was.IsZero() || t.ID.IsZero() || was == t.ID || slices.Contains(c.Source.AcceptTopic, t.Name) {
		return err
	}
	return &schemas.RecreatedError{Topic: t.Name, Partition: -1, Was: was, Is: t.ID}
}

// checkOutput tries what commits need of the output folder.
func (c *Command) checkOutput(ctx context.Context) (name, detail string, err error) {
	name, out := "output "+c.Output.Out, c.Output.Out
	if store, err := command.FindOutput(ctx, out, &c.Output.Bucket); err == nil {
		defer store.Close()
		s, err := read.Identify(ctx, store)
		switch {
		case errors.Is(err, sinks.ErrNotFound): // nothing is written there yet
		case command.IsBucket(out) && err == nil && slices.Equal(s.PartitionBy, c.Output.PartitionBy):
			detail = "an output since " + s.Created.Format("2006-01-02") + "; "
		case err != nil:
			return name, "", err
		case !slices.Equal(s.PartitionBy, c.Output.PartitionBy):
			return name, "", fmt.Errorf("it was made with --partition-by %s", strings.Join(s.PartitionBy, ","))
		default:
			if err := store.CheckWritable(ctx, tables.Names()); err != nil {
				return name, "", err
			}
			detail = "an output since " + s.Created.Format("2006-01-02") + "; "
		}
	}
	if command.IsBucket(out) {
		return name, detail + "conditional writes and copies work", c.tryBucket(ctx)
	}
	return name, detail + "exclusive links and renames work", tryFolder(out)
}

// tryBucket lists, writes, copies and deletes objects where attempts are staged.
func (c *Command) tryBucket(ctx context.Context) error {
	store, err := command.MakeOutput(ctx, c.Output.Out, &c.Output.Bucket)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := store.CheckWritable(ctx, tables.Names()); err != nil {
		return err
	}
	if _, err := store.Names(ctx, record.TopicsFolder); err != nil {
		return err
	}
	return sinks.Probe(ctx, store)
}

// checkRules names the settings of the bucket that would touch the output.
func (c *Command) checkRules(ctx context.Context) (name, detail string, err error) {
	name = "rules of the bucket"
	store, err := command.MakeOutput(ctx, c.Output.Out, &c.Output.Bucket)
	if err != nil {
		return name, "", err
	}
	defer store.Close()
	ruled, ok := store.(interface {
		Rules(ctx context.Context) (s3.Rules, error)
	})
	if !ok {
		return name, "none", nil
	}
	rules, err := ruled.Rules(ctx)
	switch {
	case err != nil:
		return name, "", err
	case len(rules.Harmful) > 0:
		return name, "", errors.New(strings.Join(append(rules.Harmful, rules.Notes...), "; "))
	case len(rules.Notes) > 0:
		return name, "none would touch the output; " + strings.Join(rules.Notes, "; "), nil
	}
	return name, "none would touch the output", nil
}

// tryFolder makes a file in dir, or where dir would be made, links it
// exclusively, renames it, and leaves nothing behind.
func tryFolder(dir string) (err error) {
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			break
		} else if err == nil {
			return fmt.Errorf("%s is not a folder", dir)
		}
		up := filepath.Dir(filepath.Clean(dir))
		if up == dir {
			return fmt.Errorf("%s: no such folder", dir)
		}
		dir = up
	}
	tmp, err := os.MkdirTemp(dir, ".entropipe-validate-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	a, b := filepath.Join(tmp, "a"), filepath.Join(tmp, "b")
	if err := os.WriteFile(a, []byte("x"), 0o666); err != nil {
		return err
	}
	if err := os.Link(a, b); err != nil {
		return fmt.Errorf("the file system has no hard links, which commits need: %w", err)
	}
	if err := os.Link(a, b); !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("a second link of the same name gives %v: the file system cannot be trusted with commits",
			err)
	}
	return os.Rename(b, filepath.Join(tmp, "c"))
}
