package produce

import (
	"errors"
	"fmt"
	"math"
	"time"

	"entropipe/algos/geom"
	"entropipe/cmd/command"
	"entropipe/cmd/config/value"
	"entropipe/cmd/mistake"
	"entropipe/cmd/run/stage"
	"entropipe/ingest"
	"entropipe/ingest/replay"
	"entropipe/preprocess"
)

type Command struct {
	KITTI     produceKITTI     `cmd:"" name:"kitti" set:"topic=points" help:"Velodyne scans: a raw drive, an odometry sequence, or a folder of .bin files."`
	Quickdraw produceQuickdraw `cmd:"" name:"quickdraw" set:"topic=points" help:"QuickDraw drawings, raw or simplified .ndjson."`
	Synthetic produceSynthetic `cmd:"" name:"synthetic" set:"topic=points" help:"A synthetic LiDAR or synthetic sketches."`
	Tokens    produceTokens    `cmd:"" name:"tokens" set:"topic=tokens" help:"Texts or token ids: .txt, .jsonl, Parquet."`
}

// producerFlags are common to all sources.
type producerFlags struct {
	Brokers         []string    `default:"127.0.0.1:9092" placeholder:"HOST:PORT" help:"Some brokers of the cluster (${default})." group:"Topic"`
	Topic           string      `default:"${topic}" help:"Topic to send to (${default}); created when absent." group:"Topic"`
	Partitions      int         `default:"4" help:"Partitions of a topic that is created (${default})." group:"Topic"`
	Replication     int         `default:"0" help:"Replicas of a topic that is created; 0: the cluster's default." group:"Topic"`
	MaxMessageBytes value.Size  `default:"16MiB" help:"Largest message of a topic that is created (${default})." group:"Topic"`
	Compression     string      `enum:"none,lz4,zstd" default:"none" help:"Compression of the Arrow body (${enum})." group:"Topic"`
	Rate            replay.Rate `default:"realtime" help:"realtime, max, a frequency like 10hz, or a multiple like 2x (${default})." group:"Replay"`
	Loop            int64       `default:"1" help:"How often to go through the data (${default}); frame numbers and times go on." group:"Replay"`
	Limit           int64       `default:"0" help:"Frames to send; 0: all." group:"Replay"`
	Epoch           time.Time   `format:"2006-01-02T15:04:05Z07:00" default:"2020-01-01T00:00:00Z" help:"When frames without a time of their own begin (${default})." group:"Replay"`
	Dataset         string      `help:"Name of the data set, instead of its own." group:"Names"`
	Sequence        string      `help:"Name of the sequence, instead of its own." group:"Names"`
	Sensor          string      `help:"Name of the sensor, instead of its own." group:"Names"`
	Stage           string      `enum:"off,prune" default:"off" help:"prune: send only the points of a cloud that the operators of --for can depend on (${enum})." group:"Stage"`
	For             []string    `enum:"hull2d,hull3d,maxima2d,maxima3d" placeholder:"OP" help:"Operators for which consumers are to find the rows of whole frames: hull2d, hull3d, maxima2d, maxima3d." group:"Stage"`
	Model           string      `placeholder:"FILE" help:"Model whose hints make hull3d faster (.safetensors). May be left out." group:"Stage"`

	Security command.Security `embed:""`
}

type produceKITTI struct {
	Dir           string `arg:"" type:"path" help:"Drive, sequence or folder."`
	SkipBad       bool   `help:"Leave out and count scans that cannot be read, instead of stopping."`
	producerFlags `embed:""`
}

func (produceKITTI) Help() string {
	return `DIR is a raw drive (2011_09_26_drive_0005_sync, times from timestamps.txt, gaps kept),
an odometry sequence (velodyne/, times.txt), or any folder of .bin files (10 Hz from --epoch),
which may be compressed (.bin.gz). Of a folder above, the error names those that have scans.

Examples:
  entropipe produce kitti 2011_09_26/2011_09_26_drive_0005_sync
  entropipe produce kitti dataset/sequences/00 --rate max --sequence kitti_00
  entropipe produce kitti scans/ --stage prune --for hull2d,maxima3d
  entropipe produce kitti scans/ --rate 2x --loop 10 --brokers kafka1:9092 --topic lidar`
}

type produceQuickdraw struct {
	Files         []string `arg:"" type:"path" help:"Files of drawings, .ndjson or .ndjson.gz."`
	SkipBad       bool     `help:"Leave out and count lines that cannot be read, instead of stopping."`
	Pack          int      `default:"256" help:"Most drawings in a message (${default})."`
	producerFlags `embed:""`
}

func (produceQuickdraw) Help() string {
	return `Examples:
  entropipe produce quickdraw cow.ndjson --rate max
  entropipe produce quickdraw simplified/*.ndjson --rate 20000hz --topic sketches`
}

type produceSynthetic struct {
	Kind          string `enum:"lidar,sketch" default:"lidar" help:"What to make (${enum})."`
	Frames        int64  `default:"0" help:"Sweeps or drawings to make; 0: until stopped."`
	Points        int    `default:"0" help:"Points of each, roughly; 0: 120000 a sweep, 40 a drawing."`
	Seed          uint64 `default:"1" help:"Same seed, same data (${default})."`
	producerFlags `embed:""`
}

func (produceSynthetic) Help() string {
	return `A 64-beam LiDAR that drives along a street at 10 Hz, or a crowd that draws a thousand
sketches a second.

Examples:
  entropipe produce synthetic --kind lidar --frames 600
  entropipe produce synthetic --kind sketch --frames 100000 --rate max --topic sketches`
}

func (c *produceKITTI) Run(e *command.Env) error {
	if err := c.Check(); err != nil {
		return err
	}
	src, err := replay.KITTI{Dir: c.Dir, SkipBad: c.SkipBad, Log: e.Log}.Open()
	if err != nil {
		return err
	}
	return c.produce(e, src)
}

func (c *produceQuickdraw) Run(e *command.Env) error {
	if err := errors.Join(c.Check(), command.CheckAmount("pack", c.Pack, 1, command.MaxPack)); err != nil {
		return err
	}
	src, err := replay.QuickDraw{Files: c.Files, SkipBad: c.SkipBad, Pack: c.Rate.Pack(c.Pack), Log: e.Log}.Open()
	if err != nil {
		return err
	}
	return c.produce(e, src)
}

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
	return &replay.Producer{Brokers: c.Brokers, Security: security, Prune: prune, Topic: c.Topic, Compression: c.Compression, Log: e.Log,
		Create: ingest.TopicSpec{Partitions: c.Partitions, ReplicationFactor: c.Replication, MaxMessageBytes: int64(c.MaxMessageBytes)},
		Play:   replay.Play{Rate: c.Rate, Loop: c.Loop, Limit: c.Limit, Epoch: c.Epoch},
		Names:  replay.Names{Dataset: c.Dataset, Sequence: c.Sequence, Sensor: c.Sensor}}
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
		return st.Frames, command.ByteSize(st.Bytes) + ", " + command.Rate(st.Frames, frames, st.Elapsed) + ", " + command.ByteSize(int64(float64(st.Bytes)/max(st.Elapsed.Seconds(), 1e-9))) + "/s"
	})
	st, err := p.Run(e.Ctx, src)
	show.Stop()
	amount := ""
	if st.Points > 0 || frames == "frames" {
		amount = command.Count(st.Points) + " " + points + ", "
	}
	fmt.Fprintf(e.Stdout, "%s: %s %s in %s messages, %s%s in %.1f s (%s/s)", c.Topic, command.Count(st.Frames), frames, command.Count(st.Messages), amount,
		command.ByteSize(st.Bytes), st.Elapsed.Seconds(), command.ByteSize(int64(float64(st.Bytes)/max(st.Elapsed.Seconds(), 1e-9))))
	if st.Skipped > 0 {
		fmt.Fprintf(e.Stdout, ", %s bad inputs left out", command.Count(st.Skipped))
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
	s, err := preprocess.New[float32](preprocess.Config{Mode: preprocess.Prune, Model: m, For: stage.PruneOps(c.For)})
	if err != nil {
		return nil, flags.BadModel(err)
	}
	var keep []int32
	return &replay.Pruner{For: stage.OpSet(c.For), Survivors: func(cloud geom.Cloud[float32]) ([]int32, int) {
		in, report := s.Apply(cloud)
		keep = in.Original(s.Prune(keep[:0], &in))
		return keep, report.Dropped
	}}, nil
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

// check returns all mistakes, as usageErrors.
func (c *producerFlags) Check() error {
	var stage error
	switch {
	case c.Stage == "off" && (len(c.For) > 0 || c.Model != ""):
		stage = mistake.About("--for, --model: want --stage prune", "for", "model")
	case c.Stage == "prune" && len(c.For) == 0:
		stage = mistake.About("--stage prune: want --for, the operators that consumers run", "stage")
	}
	return errors.Join(stage, command.CheckBrokers(&c.Brokers), c.Security.Check(), command.CheckTopicName(c.Topic),
		command.CheckAmount("partitions", c.Partitions, 1, command.MaxPartitions),
		command.CheckAmount("replication", c.Replication, 0, math.MaxInt16),
		command.CheckAmount("max-message-bytes", c.MaxMessageBytes, 1, math.MaxInt32),
		command.CheckAmount("loop", c.Loop, 0, math.MaxInt32),
		command.CheckAmount("limit", c.Limit, 0, math.MaxInt64))
}
