// Package produce is the command produce: it sends a data set, or a synthetic scene, to a
// topic at a rate. Package ingest/replay reads the data and paces the messages.
//
// A source is what is sent: KITTI scans, QuickDraw drawings, texts or ids, synthetic
// frames. A pass is one way through it; --loop makes several.
package produce

import (
	"errors"
	"fmt"
	"math"

	"entropipe/algos/geom"
	"entropipe/cmd/command"
	"entropipe/cmd/config/value"
	"entropipe/cmd/mistake"
	"entropipe/cmd/produce/source"
	"entropipe/cmd/run/stage"
	"entropipe/ingest"
	"entropipe/ingest/replay"
	"entropipe/preprocess"
	"entropipe/schemas/codec"
)

// Command is the command produce: its flags and arguments.
type Command struct {
	Files     produceFiles     `cmd:"" default:"withargs" name:"files" set:"topic=points"`
	KITTI     produceKITTI     `cmd:"" name:"kitti" set:"topic=points"`
	Quickdraw produceQuickdraw `cmd:"" name:"quickdraw" set:"topic=points"`
	MCAP      produceMCAP      `cmd:"" name:"mcap" set:"topic=points"`
	Rosbag    produceRosbag    `cmd:"" name:"rosbag" set:"topic=points"`
	Sets      setCommands      `embed:""`
	PCD       producePCD       `cmd:"" name:"pcd" set:"topic=points"`
	PLY       producePLY       `cmd:"" name:"ply" set:"topic=points"`
	LAS       produceLAS       `cmd:"" name:"las" set:"topic=points"`
	Synthetic produceSynthetic `cmd:"" name:"synthetic" set:"topic=points"`
	Tokens    produceTokens    `cmd:"" name:"tokens" set:"topic=tokens"`
	Waymo     produceWaymo     `cmd:"" name:"waymo" set:"topic=points"`
}

// producerFlags are common to all sources.
type producerFlags struct {
	Brokers         []string    `default:"127.0.0.1:9092" placeholder:"HOST:PORT" group:"Topic"`
	Topic           string      `default:"${topic}" group:"Topic"`
	Partitions      int         `default:"4" group:"Topic"`
	Replication     int         `default:"0" group:"Topic" more:"yes"`
	MaxMessageBytes value.Size  `default:"16MiB" group:"Topic" more:"yes"`
	Compression     string      `enum:"none,lz4,zstd" default:"none" group:"Topic" more:"yes"`
	Chunk           chunkLimit  `default:"auto" placeholder:"auto|off|SIZE" group:"Topic" more:"yes"`
	Rate            replay.Rate `default:"realtime" group:"Replay"`
	Loop            int64       `default:"1" group:"Replay"`
	Limit           int64       `default:"0" group:"Replay"`
	Key             string      `enum:"sequence,frame,none" default:"sequence" group:"Topic"`
	Resume          resumeMode  `placeholder:"or-start" group:"Replay"`
	ResumeWindow    value.Size  `default:"1GiB" group:"Replay" more:"yes"`
	Stage           string      `enum:"off,prune" default:"off" group:"Stage"`
	For             []string    `enum:"hull2d,hull3d,maxima2d,maxima3d" placeholder:"OP" group:"Stage"`
	Model           string      `placeholder:"FILE" group:"Stage" more:"yes"`

	Names source.Names `embed:""`

	Security command.Security `embed:"" group:"Brokers"`
	Bucket   command.Bucket   `embed:"" group:"Input"`

	jobs int // inputs that are read at a time; 0: one
}

var keyNames = map[string]replay.Key{"sequence": replay.KeySequence, "frame": replay.KeyFrame, "none": replay.KeyNone}

type produceKITTI struct {
	source.KITTI  `embed:""`
	producerFlags `embed:""`
}

type produceQuickdraw struct {
	source.QuickDraw `embed:""`
	producerFlags    `embed:""`
}

type produceSynthetic struct {
	Kind          string `enum:"lidar,sketch" default:"lidar"`
	Frames        int64  `default:"0"`
	Points        int    `default:"0"`
	Seed          uint64 `default:"1"`
	producerFlags `embed:""`
}

// Run checks the flags and runs the command.
func (c *produceKITTI) Run(e *command.Env) error { return c.send(e, &c.KITTI) }

// Run checks the flags and runs the command.
func (c *produceQuickdraw) Run(e *command.Env) error { return c.send(e, &c.QuickDraw) }

// send checks the flags and sends what they name.
func (c *producerFlags) send(e *command.Env, from source.Source) error {
	if err := errors.Join(c.Check(), from.Check(), c.checkSources(from)); err != nil {
		return err
	}
	defer c.Bucket.Reading(e.Ctx, readAhead)()
	src, err := from.Open(source.Options{Rate: c.Rate, Log: e.Log})
	if err != nil {
		return err
	}
	return c.produce(e, src)
}

// readAhead bounds what is read ahead of archives in buckets, in bytes.
const readAhead = 64 << 20

// checkSources returns the mistakes of flags and paths of archives in buckets.
func (c *producerFlags) checkSources(from source.Source) error {
	if a, ok := from.(source.Archived); ok {
		return c.Bucket.CheckSources(a.Where())
	}
	return c.Bucket.CheckSources(nil)
}

// Run checks the flags and runs the command.
func (c *produceSynthetic) Run(e *command.Env) error {
	if err := errors.Join(c.Check(), command.CheckAmount("frames", c.Frames, 0, math.MaxInt64)); err != nil {
		return err
	}
	if c.Frames == 0 {
		c.Frames = c.Limit
	}
	var src replay.Source
	var err error
	if c.Kind == "sketch" {
		src, err = replay.Sketches{Frames: c.Frames, Points: c.Points, Seed: c.Seed, Pack: c.Rate.Pack(100)}.Open()
	} else {
		src, err = replay.LiDAR{Frames: c.Frames, Points: c.Points, Seed: c.Seed}.Open()
	}
	if err != nil {
		return mistake.NewUsage(err)
	}
	return c.produce(e, src)
}

func (c *producerFlags) producer(e *command.Env, security ingest.Security, prune *replay.Pruner) *replay.Producer {
	var resume *replay.Resume
	if c.Resume != "" {
		resume = &replay.Resume{Window: int64(c.ResumeWindow), OrStart: c.Resume == resumeOrStart}
	}
	return &replay.Producer{Key: keyNames[c.Key], Resume: resume, Jobs: c.jobs,
		Brokers: c.Brokers, Security: security, Prune: prune, Topic: c.Topic,
		Compression: c.Compression, Chunk: int64(c.Chunk), Log: e.Log,
		Create: ingest.TopicSpec{Partitions: c.Partitions, ReplicationFactor: c.Replication,
			MaxMessageBytes: int64(c.MaxMessageBytes)},
		Play:  replay.Play{Rate: c.Rate, Loop: c.Loop, Limit: c.Limit, Epoch: c.Names.Epoch},
		Names: c.Names.Replay()}
}

// produce sends src and says what became of it. A signal ends it in order:
// what was acknowledged is reported, exit 0.
func (c *producerFlags) produce(e *command.Env, src replay.Source) error {
	return c.produceAs(e, src, "frames", "points")
}

// produceAs is produce for what has other names. Texts have no points: their
// tokens are counted where they are made.
func (c *producerFlags) produceAs(e *command.Env, src replay.Source, frames, points string) error {
	defer src.Close()
	if in, ok := src.(*replay.Inputs); ok && len(in.List()) > 1 && c.Names.Sequence != "" {
		return source.OneName(c.Names.Sequence, len(in.List()))
	}
	prune, err := c.pruner()
	if err != nil {
		return err
	}
	security, err := c.Security.Open(e.Log)
	if err != nil {
		return err
	}
	p := c.producer(e, security, prune)
	show := command.StartProgress(e.Stderr, e.Log, frames, c.total(src), func() (int64, string) {
		st := p.Progress()
		return st.Frames, command.ByteSize(st.Bytes) + ", " + command.Rate(st.Frames, frames, st.Elapsed) + ", " +
			command.ByteSize(int64(float64(st.Bytes)/max(st.Elapsed.Seconds(), 1e-9))) + "/s"
	})
	st, err := p.Run(e.Ctx, src)
	show.Stop()
	amount := ""
	if st.Points > 0 || frames == "frames" {
		amount = command.Count(st.Points) + " " + points + ", "
	}
	fmt.Fprintf(
		e.Stdout,
		"%s: %s %s in %s messages, %s%s in %.1f s (%s/s)",
		c.Topic,
		command.Count(st.Frames),
		frames,
		command.Count(st.Messages),
		amount,
		command.ByteSize(st.Bytes),
		st.Elapsed.Seconds(),
		command.ByteSize(int64(float64(st.Bytes)/max(st.Elapsed.Seconds(), 1e-9))),
	)
	if st.Skipped > 0 {
		fmt.Fprintf(e.Stdout, ", %s bad inputs left out", command.Count(st.Skipped))
	}
	if st.There > 0 {
		fmt.Fprintf(e.Stdout, ", %s %s were there", command.Count(st.There), frames)
	}
	fmt.Fprintln(e.Stdout)
	return command.UnlessStopped(e, err)
}

// pruner returns what --stage prune leaves out; nil for off.
func (c *producerFlags) pruner() (*replay.Pruner, error) {
	if c.Stage == "off" {
		return nil, nil
	}
	flags := stage.Flags{Stage: c.Stage, Model: c.Model}
	m, err := flags.ReadModel()
	if err != nil {
		return nil, err
	}
	cfg := preprocess.Config{Mode: preprocess.Prune, Model: m, For: stage.PruneOps(c.For)}
	if _, err := newSurvivors(cfg); err != nil {
		return nil, flags.BadModel(err)
	}
	return &replay.Pruner{For: stage.OpSet(c.For), New: func() replay.Survivors {
		s, _ := newSurvivors(cfg) // as before
		return s
	}}, nil
}

// newSurvivors returns a function for one goroutine.
func newSurvivors(cfg preprocess.Config) (replay.Survivors, error) {
	narrow, err := preprocess.New[float32](cfg)
	if err != nil {
		return nil, err
	}
	wide, err := preprocess.New[float64](cfg)
	if err != nil {
		return nil, err
	}
	var keep []int32
	return func(p *codec.Points) (_ []int32, dropped int) {
		if p.Double {
			keep, dropped = survivors(wide, keep, p.Cloud64)
		} else {
			keep, dropped = survivors(narrow, keep, p.Cloud32)
		}
		return keep, dropped
	}, nil
}

// survivors returns the numbers of the points that s keeps of cloud, in the memory of keep.
func survivors[T geom.Float](s *preprocess.Stage[T], keep []int32, cloud geom.Cloud[T]) ([]int32, int) {
	in, report := s.Apply(cloud)
	return in.Original(s.Prune(keep[:0], &in)), report.Dropped
}

// total is how many frames will be sent, 0 if the source cannot tell.
func (c *producerFlags) total(src replay.Source) int64 {
	var n int64
	if s, ok := src.(interface{ Len() int64 }); ok {
		n = s.Len() * max(c.Loop, 1)
	}
	if c.Limit > 0 && (n == 0 || n > c.Limit) {
		n = c.Limit
	}
	return n
}

// Check returns all mistakes of the flags, joined, each a mistake.Usage.
func (c *producerFlags) Check() error {
	var stage error
	switch {
	case c.Stage == "off" && (len(c.For) > 0 || c.Model != ""):
		stage = mistake.About("--for, --model need --stage prune", "for", "model")
	case c.Stage == "prune" && len(c.For) == 0:
		stage = mistake.About("--stage prune needs --for, the operators that consumers run", "stage")
	}
	return errors.Join(stage, command.CheckBrokers(&c.Brokers), c.Security.Check(), command.CheckTopicName(c.Topic),
		command.CheckAmount("partitions", c.Partitions, 1, command.MaxPartitions),
		command.CheckAmount("replication", c.Replication, 0, math.MaxInt16),
		command.CheckAmount("max-message-bytes", c.MaxMessageBytes, 1, math.MaxInt32),
		command.CheckAmount("resume-window", c.ResumeWindow, 1, math.MaxInt64),
		command.CheckAmount("loop", c.Loop, 0, math.MaxInt32),
		command.CheckAmount("limit", c.Limit, 0, math.MaxInt64))
}
