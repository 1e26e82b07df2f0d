package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"entropipe/benchmarks/rig"
)

const (
	opsPlain    = "hull2d,maxima3d"
	opsDelaunay = "hull2d,maxima3d,delaunay2d"
)

type throughputCmd struct {
	Data           string `placeholder:"DIR" help:"KITTI .bin files (a drive of the real data)."`
	Frames         int64  `default:"2000" help:"Frames in the topic (${default})."`
	DelaunayFrames int64  `default:"200" help:"Frames in the topic for delaunay2d (${default}); 0: leave it out."`
	Partitions     int    `default:"4" help:"Partitions of both topics (${default})."`
	Rounds         int    `default:"5" help:"How often each contender runs (${default})."`

	Python         string `placeholder:"PATH" help:"Interpreter of the Python pipeline; else it is left out."`
	Baseline       string `placeholder:"PATH" help:"The Python pipeline, which prints one JSON line."`
	BaselineFrames int    `default:"300" help:"Frames of the Python pipeline; Delaunay: a tenth (${default})."`
}

func (c *throughputCmd) Run(e *env) error {
	if c.Partitions < 1 || c.Rounds < 1 || c.Frames < int64(c.Partitions) || (c.Python == "") != (c.Baseline == "") {
		return fmt.Errorf("%w: want at least one round, partition, and frame a partition; --python goes with "+
			"--baseline", rig.ErrUsage)
	}
	dir, err := dataDir(c.Data, "kitti", "raw_2011_09_26_drive_0005")
	if err != nil {
		return err
	}
	b, err := e.open("throughput", e.flags.Broker)
	if err != nil {
		return err
	}
	defer b.close()
	plain, err := c.share(b, dir)
	if err != nil {
		return err
	}
	var delaunay float64
	if c.DelaunayFrames > 0 {
		if delaunay, err = c.delaunay(b, dir); err != nil {
			return err
		}
	}
	if c.Python == "" {
		return nil
	}
	return c.peers(b, plain, delaunay)
}

// share runs the raw fetch loop and the pipeline in turn and prints the ratio of
// their medians. It returns the pipeline's frames a second.
func (c *throughputCmd) share(b *bench, dir string) (float64, error) {
	if err := b.fill("frames", dir, c.Frames, c.Partitions); err != nil {
		return 0, err
	}
	var raw, ours, net, rates []float64
	for round := range c.Rounds {
		f, err := b.rawFetch("frames")
		if err != nil {
			return 0, err
		}
		if f.Records != c.Frames {
			return 0, fmt.Errorf("the fetch loop read %d records of %d", f.Records, c.Frames)
		}
		m, err := b.measure("frames", opsPlain, c.Frames)
		if err != nil {
			return 0, err
		}
		raw, ours = append(raw, f.rate()), append(ours, float64(f.Bytes)/m.seconds())
		net, rates = append(net, float64(f.Bytes)/m.net()), append(rates, float64(m.frames)/m.seconds())
		note("round %d: fetch %s/s, pipeline %s/s", round+1, megabytes(raw[round]), megabytes(ours[round]))
		figure := m.figure("share", round)
		figure["value_bytes"], figure["fetch_seconds"] = f.Bytes, f.Seconds
		if err := b.results.add(figure); err != nil {
			return 0, err
		}
	}
	fmt.Printf("%s to committed Parquet, %s broker, %d frames: %s/s; raw fetch %s/s; share %.2f (net of start-up "+
		"%.2f); medians of %d rounds\n",
		opsPlain, b.broker.Kind, c.Frames, megabytes(rig.Median(ours)), megabytes(rig.Median(raw)),
		rig.Median(ours)/rig.Median(raw), rig.Median(net)/rig.Median(raw), c.Rounds)
	return rig.Median(rates), nil
}

func (c *throughputCmd) delaunay(b *bench, dir string) (float64, error) {
	if err := b.fill("delaunay", dir, c.DelaunayFrames, c.Partitions); err != nil {
		return 0, err
	}
	var rates, cpu []float64
	for round := range c.Rounds {
		m, err := b.measure("delaunay", opsDelaunay, c.DelaunayFrames)
		if err != nil {
			return 0, err
		}
		rates, cpu = append(rates, float64(m.frames)/m.seconds()), append(cpu, m.exit.CPU.Seconds()/float64(m.frames))
		if err := b.results.add(m.figure("delaunay", round)); err != nil {
			return 0, err
		}
	}
	fmt.Printf("%s, %s broker, %d frames: %.1f frames/s, %.4f core-seconds a frame (%.1f frames/s a core); medians "+
		"of %d rounds\n",
		opsDelaunay, b.broker.Kind, c.DelaunayFrames, rig.Median(rates), rig.Median(cpu), 1/rig.Median(cpu), c.Rounds)
	return rig.Median(rates), nil
}

// measured is one run of the program over a topic.
type measured struct {
	exit    rig.Exit
	startUp time.Duration // time of a second run, which finds nothing to do
	frames  int64
	ops     string
	bytes   int64 // size of the tables
}

// seconds is from the start of the process to its end: joining the group and
// leaving it count, against us.
func (m *measured) seconds() float64 { return m.exit.Wall.Seconds() }

func (m *measured) net() float64 { return max(m.exit.Wall-m.startUp, time.Millisecond).Seconds() }

func (m *measured) figure(what string, round int) map[string]any {
	return map[string]any{"what": what, "round": round + 1, "ops": m.ops, "frames": m.frames, "seconds": m.seconds(),
		"start_up_seconds": m.startUp.Seconds(),
		"cpu_seconds":      m.exit.CPU.Seconds(), "max_rss": m.exit.MaxRSS, "table_bytes": m.bytes}
}

// measure runs the program over a topic into a new output, makes sure that it
// has a row for each of want frames, measures start-up, and removes the output.
func (b *bench) measure(topic, ops string, want int64) (m measured, err error) {
	out := b.newOutput()
	defer os.RemoveAll(out)
	m.ops = ops
	if m.exit, err = b.runUntilEnd(topic, out, ops); err != nil {
		return m, err
	}
	again, err := b.runUntilEnd(topic, out, ops)
	if err != nil {
		return m, err
	}
	m.startUp = again.Wall
	if m.frames, err = countRows(out, "frames"); err != nil {
		return m, err
	}
	if rejects, err := countRows(out, "rejects"); err != nil || rejects > 0 || want > 0 && m.frames != want {
		return m, fmt.Errorf("%s: %d rows in frames, %d in rejects, %d frames were sent: %w", out, m.frames, rejects,
			want, orMismatch(err))
	}
	m.bytes, err = tableBytes(out)
	return m, err
}

// tableBytes adds up the files of all tables.
func tableBytes(out string) (int64, error) {
	files, err := filepath.Glob(filepath.Join(out, "*", "*", "*", "*.parquet"))
	if err != nil {
		return 0, err
	}
	var n int64
	for _, f := range files {
		st, err := os.Stat(f)
		if err != nil {
			return 0, err
		}
		n += st.Size()
	}
	return n, nil
}
