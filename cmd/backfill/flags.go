package backfill

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
	"entropipe/cmd/produce/source"
	"entropipe/cmd/run/flags"
	"entropipe/cmd/run/language"
	"entropipe/cmd/run/stage"
	"entropipe/ingest/backfill"
)

// Flags are the flags of every source, besides its own.
type Flags struct {
	Plan     PlanFlags           `embed:"" group:"Plan"`
	Work     WorkFlags           `embed:"" group:"Work"`
	Output   flags.OutputFlags   `embed:"" group:"Output"`
	Frames   flags.FrameFlags    `embed:"" group:"Frames"`
	Stage    stage.Flags         `embed:"" group:"Stage"`
	Publish  stage.Publish       `embed:"" group:"Publish"`
	Brokers  BrokerFlags         `embed:"" group:"Brokers"`
	Tokens   language.Flags      `embed:"" group:"Tokens"`
	Resource flags.ResourceFlags `embed:"" group:"Service"`
	Serve    flags.ServeFlags    `embed:"" group:"Service"`
	Config   string              `type:"path" placeholder:"FILE" group:"Other" content:"no"`
	Progress progressMode        `default:"auto" placeholder:"auto|true|false" group:"Other" content:"no"`
	DryRun   bool                `group:"Work" content:"no"`
}

// BrokerFlags say where published records go.
type BrokerFlags struct {
	Brokers  []string         `default:"127.0.0.1:9092" placeholder:"HOST:PORT" content:"no" more:"yes"`
	Security command.Security `embed:""`
}

// PlanFlags say how the archive is divided.
type PlanFlags struct {
	Names source.Names `embed:""`

	Plan     string `placeholder:"NAME" content:"no"`
	Identity string `enum:"auto,mtime,sha256" default:"auto" content:"no" more:"yes"`
	Changed  bool   `content:"no" more:"yes"`
	Reuse    string `type:"output" placeholder:"OLD" content:"no" more:"yes"`
}

// WorkFlags say which lanes this process computes, and how many at a time.
type WorkFlags struct {
	Shard  backfill.Shard `placeholder:"I/N" content:"no"`
	Shards int            `default:"0" content:"no" more:"yes"`
	Jobs   int            `default:"0" content:"no"`
}

// identity returns what identifies files; empty: the plan's.
func (c *PlanFlags) identity() string {
	if c.Identity == "auto" {
		return ""
	}
	return c.Identity
}

// check returns all mistakes of the flags, joined, each a mistake.Usage.
func (c *PlanFlags) check() error {
	if c.Plan == "" {
		return nil
	}
	return command.CheckNameOfTopic("plan", c.Plan)
}

// Check returns all mistakes of the flags, joined, each a mistake.Usage.
func (c *Flags) Check() error {
	return errors.Join(c.Plan.check(), c.Plan.checkReuse(c.Output.Out),
		command.CheckAmount("jobs", c.Work.Jobs, 0, command.MaxWorkers),
		command.CheckAmount("shards", c.Work.Shards, 0, math.MaxInt32), c.service().Check())
}

// What the flags of run say by default about consumer groups and chunks; a backfill has none.
const (
	usualSession   = 10 * time.Second
	usualRebalance = 30 * time.Second
	usualChunkAge  = 30 * time.Second
)

// noPlan is the topic of a service whose plan is not known yet: no topic has such a name.
const noPlan = "backfill"

// service returns the flags of run that the service has. Records have no topic before the
// plan is made.
func (c *Flags) service() *flags.Flags {
	topic := noPlan
	if c.Plan.Plan != "" {
		topic = c.Plan.Plan
	}
	f := &flags.Flags{Output: c.Output, Frames: c.Frames, Stage: c.Stage, Publish: c.Publish, Tokens: c.Tokens,
		Resource: c.Resource, Serve: c.Serve}
	f.Source = flags.SourceFlags{Security: c.Brokers.Security, Brokers: slices.Clone(c.Brokers.Brokers),
		Topic: []string{topic}, From: "earliest", OnGap: "stop", UntilEnd: true, Session: usualSession,
		Rebalance: usualRebalance, ChunkWindow: flags.DefaultChunkWindow, ChunkAge: usualChunkAge}
	return f
}

// shard returns the shard of this process: that of --shard, else that of a Kubernetes
// Indexed Job, else all lanes.
func (c *WorkFlags) shard(lookup func(string) (string, bool)) (backfill.Shard, error) {
	const indexName, countName = "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS"
	index, indexed := lookup(indexName)
	switch {
	case c.Shard.Of > 0 && c.Shards > 0:
		return c.Shard, mistake.About("--shard, --shards: want one of them", "shards", "shard")
	case c.Shard.Of > 0:
		return c.Shard, nil
	case !indexed || index == "":
		if c.Shards > 0 {
			return c.Shard, mistake.About(fmt.Sprintf("--shards %d needs %s, which a Kubernetes Indexed Job sets; "+
				"elsewhere say --shard I/%d", c.Shards, indexName, c.Shards), "shards")
		}
		return c.Shard, nil
	}
	count, set := lookup(countName)
	if c.Shards > 0 {
		count, set = strconv.Itoa(c.Shards), true
	}
	if !set || count == "" {
		return c.Shard, mistake.About(fmt.Sprintf("--shards is missing: %s is %s, and the number of shards is "+
			"unknown; say --shards N, or set %s", indexName, index, countName), "shards")
	}
	var s backfill.Shard
	if err := s.UnmarshalText([]byte(index + "/" + count)); err != nil {
		return s, mistake.About(fmt.Sprintf("--shards: %s is %s of %s: %v", indexName, index, count, err), "shards")
	}
	return s, nil
}

// progressMode is --progress: a bar on a terminal, lines elsewhere, or neither.
type progressMode string

const (
	progressAuto progressMode = "auto" // on a terminal
	progressOn   progressMode = "true"
	progressOff  progressMode = "false"
)

// IsBool lets the flag stand without a value.
func (progressMode) IsBool() bool { return true }

// Decode reads the value, if there is one.
func (m *progressMode) Decode(ctx *kong.DecodeContext) error {
	*m = progressOn
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		return nil
	}
	text := progressMode(fmt.Sprint(ctx.Scan.Pop().Value))
	if text != progressAuto && text != progressOn && text != progressOff {
		return fmt.Errorf("want auto, true or false, got %q", string(text))
	}
	*m = text
	return nil
}

// shown tells whether progress is shown on w.
func (m progressMode) shown(w io.Writer) bool {
	if s, ok := w.(*command.Screen); m == progressAuto {
		return ok && s.Bars()
	}
	return m == progressOn
}
