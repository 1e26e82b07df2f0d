// Package flags is the grammar of the command run: its flags, their help, their checks,
// and the content that they decide. It starts nothing; package run does. The commands demo
// and validate use the same flags.
//
// Content is what decides rows: the schema, operators, tables, and hashes of models. Two
// configurations with equal content write equal rows.
package flags

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"entropipe/cmd/command"
	"entropipe/cmd/config/value"
	"entropipe/cmd/mistake"
	"entropipe/cmd/run/language"
	"entropipe/cmd/run/stage"
	"entropipe/ops/pipeline"
	"entropipe/schemas"
)

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
	RollAge  time.Duration  `default:"60s" group:"Output" content:"no"`
	Progress bool           `group:"Other" content:"no"`
}

// SourceFlags say what is read.
type SourceFlags struct {
	Security command.Security `embed:"" group:"Brokers"`

	Brokers       []string `default:"127.0.0.1:9092" placeholder:"HOST:PORT" content:"no"`
	Topic         []string `default:"points" content:"no"`
	Group         string   `content:"no" more:"yes"`
	From          string   `enum:"earliest,latest" default:"earliest" content:"no"`
	UntilEnd      bool     `content:"no"`
	GroupInstance string   `placeholder:"ID" content:"no" more:"yes"`

	Session   time.Duration `name:"session-timeout" default:"10s" content:"no" more:"yes"`
	Rebalance time.Duration `name:"rebalance-timeout" default:"30s" content:"no" more:"yes"`
	OnGap     string        `enum:"stop,skip" default:"stop" content:"no" more:"yes"`

	ChunkWindow value.Size    `default:"64MiB" content:"yes" more:"yes"`
	ChunkAge    time.Duration `default:"30s" content:"no" more:"yes"`

	AcceptTopic []string `placeholder:"TOPIC" content:"no" more:"yes"`
	ContentType []string `placeholder:"TYPE|TOPIC=TYPE" content:"yes" more:"yes"`
}

// OutputFlags say where and how rows become files.
type OutputFlags struct {
	Bucket command.Bucket `embed:""`

	Out string `default:"./entropipe-out" placeholder:"DIR" content:"no"`

	Tables []string `enum:"frames,rejects,hulls,hulls3d,maxima,triangles,points,entropy,messages" content:"yes"`

	PartitionBy  []string      `enum:"dataset,sequence,date" default:"dataset" content:"no" more:"yes"`
	StrictConfig bool          `content:"no" more:"yes"`
	NewConfig    bool          `content:"no" more:"yes"`
	RollBytes    value.Size    `default:"256MiB" content:"no" more:"yes"`
	RollRecords  int64         `default:"100000" content:"no" more:"yes"`
	RetryFor     time.Duration `default:"10m" content:"no" more:"yes"`
}

// FrameFlags say what is done with every frame.
type FrameFlags struct {
	Ops           []string    `enum:"hull2d,hull3d,maxima2d,maxima3d,delaunay2d,none" placeholder:"OP" content:"yes"`
	EntropyEvery  int64       `default:"100" content:"yes" more:"yes"`
	MaxRejects    rejectLimit `default:"auto" placeholder:"N|N%" content:"no" more:"yes"`
	MaxFrameBytes value.Size  `default:"64MiB" content:"yes" more:"yes"`
}

// ResourceFlags bound what the process takes.
type ResourceFlags struct {
	Workers int        `default:"0" content:"no"`
	Memory  value.Size `default:"${memory}" content:"no"`
}

// Variables are defaults that other commands set to values of their own: a backfill has no
// partitions that all fill batches at a time.
func (ResourceFlags) Variables() map[string]string { return map[string]string{"memory": "256MiB"} }

// ServeFlags turn the HTTP server on.
type ServeFlags struct {
	Listen    string   `default:"off" placeholder:"HOST:PORT|off" content:"no"`
	Hosts     []string `name:"listen-host" placeholder:"NAME" content:"no" more:"yes"`
	Origins   []string `name:"listen-origin" placeholder:"URL" content:"no" more:"yes"`
	Advertise string   `name:"listen-advertise" placeholder:"URL|HOST:PORT|off" content:"no" more:"yes"`
	TokenFile string   `name:"listen-token-file" placeholder:"FILE" content:"no" more:"yes"`
	Pprof     bool     `content:"no" more:"yes"`
}

// FrameConfig checks the operators and tables asked for and returns what is done
// with a frame, and the tables besides frames and rejects.
func (c *Flags) FrameConfig(log *slog.Logger) (pipeline.FrameConfig, []string, error) {
	cfg := pipeline.FrameConfig{MaxBytes: int64(c.Frames.MaxFrameBytes),
		OnPanic: func(k schemas.FrameKey, what any, stack []byte) {
			log.Error("an operator panicked: the frame, or sequence, becomes a reject", "topic", k.Topic, "partition",
				k.Partition, "offset", k.Offset, "index", k.Index, "panic", what, "stack", string(stack))
		}}
	for _, name := range c.Frames.Ops {
		if name == "none" {
			cfg.Ops = []schemas.Op{}
			break
		}
		op, ok := schemas.ParseOp(name)
		if !ok {
			return cfg, nil, mistake.NewUsage(fmt.Errorf("--ops %s: want hull2d, hull3d, maxima2d, maxima3d or "+
				"delaunay2d", name))
		}
		if !slices.Contains(cfg.Ops, op) {
			cfg.Ops = append(cfg.Ops, op)
		}
	}
	var err error
	if cfg.ContentTypes, err = command.ContentTypes(c.Source.ContentType, c.Source.Topic); err != nil {
		return cfg, nil, err
	}
	tables := c.Output.Tables
	if tables == nil {
		tables = []string{"hulls", "hulls3d", "maxima", "triangles"}
	}
	// always written
	tables = slices.DeleteFunc(slices.Clone(tables), func(t string) bool { return t == "frames" || t == "rejects" })
	for _, t := range tables {
		if !slices.Contains([]string{"hulls", "hulls3d", "maxima", "triangles", "points", "entropy", "messages"}, t) {
			return cfg, nil, mistake.NewUsage(fmt.Errorf("--tables %s: want hulls, hulls3d, maxima, triangles, "+
				"points, entropy or messages", t))
		}
	}
	for _, t := range tables {
		if writers := TableOps[t]; cfg.Ops != nil && c.Output.Tables != nil && writers != nil &&
			!slices.ContainsFunc(writers, func(op schemas.Op) bool { return slices.Contains(cfg.Ops, op) }) {
			log.Warn("this table stays empty: no operator of --ops writes it", "table", t, "ops",
				strings.Join(c.Frames.Ops, ","))
		}
	}
	cfg.Publish, cfg.Results = stage.OpSet(c.Publish.For), c.Publish.Results != ""
	if slices.Contains(tables, "entropy") {
		if cfg.EntropyEvery = c.Frames.EntropyEvery; cfg.EntropyEvery == 0 {
			log.Warn("this table stays empty: --entropy-every is 0", "table", "entropy")
		}
	}
	cfg.Points = slices.Contains(tables, "points")
	cfg.Hull3D = slices.Contains(c.Output.Tables, "hulls3d") // asked for, not by default
	return cfg, tables, nil
}

// TableOps says which operators write a table, of those that need one.
var TableOps = map[string][]schemas.Op{
	"hulls":     {schemas.Hull2D},
	"hulls3d":   {schemas.Hull3D},
	"maxima":    {schemas.Maxima2D, schemas.Maxima3D},
	"triangles": {schemas.Delaunay2D},
	"entropy":   {schemas.Hull2D, schemas.Hull3D, schemas.Maxima2D, schemas.Maxima3D},
}
