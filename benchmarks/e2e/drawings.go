package main

import (
	"fmt"
	"path/filepath"
	"strconv"

	"entropipe/benchmarks/rig"
)

const opsDrawings = "hull2d,maxima2d,delaunay2d"

type drawingsCmd struct {
	Data       string `placeholder:"DIR" help:"QuickDraw .ndjson files (sketch/quickdraw_simplified of the real data)."`
	Loop       int64  `default:"200" help:"How often the files are sent (${default})."`
	Partitions int    `default:"4" help:"Partitions of the topic (${default})."`
	Rounds     int    `default:"5" help:"Runs (${default})."`
}

func (c *drawingsCmd) Run(e *env) error {
	if c.Loop < 1 || c.Rounds < 1 || c.Partitions < 1 {
		return fmt.Errorf("%w: want at least one loop, round and partition", rig.ErrUsage)
	}
	dir, err := dataDir(c.Data, "sketch", "quickdraw_simplified")
	if err != nil {
		return err
	}
	b, err := e.open("drawings", e.flags.Broker)
	if err != nil {
		return err
	}
	defer b.close()
	files, err := b.fillDrawings("drawings", dir, c.Loop, c.Partitions)
	if err != nil {
		return err
	}
	var rates, net []float64
	var drawings int64
	for round := range c.Rounds {
		m, err := b.measure("drawings", opsDrawings, drawings)
		if err != nil {
			return err
		}
		drawings = m.frames
		rates, net = append(rates, float64(drawings)/m.seconds()), append(net, float64(drawings)/m.net())
		note("round %d: %d drawings, %.0f a second", round+1, drawings, rates[round])
		if err := b.results.add(m.figure("drawings", round)); err != nil {
			return err
		}
	}
	fmt.Printf("%s to committed Parquet, %s broker, %d drawings of %d files: %.0f drawings/s (net of start-up "+
		"%.0f); medians of %d rounds\n",
		opsDrawings, b.broker.Kind, drawings, files, rig.Median(rates), rig.Median(net), c.Rounds)
	return nil
}

// fillDrawings creates a topic and sends it the drawings of all files in a
// folder, loop times. It returns the number of files.
func (b *bench) fillDrawings(topic, dir string, loop int64, partitions int) (int, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.ndjson"))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("%s: no .ndjson file: %w", dir, orMismatch(err))
	}
	if err := b.client.CreateTopic(b.ctx, topic, partitions, maxMessage); err != nil {
		return 0, err
	}
	args := append([]string{"produce", "quickdraw"}, files...)
	_, _, err = b.program.Run(b.ctx, append(args, "--brokers", b.broker.Addr, "--topic", topic, "--rate", "max",
		"--loop", strconv.FormatInt(loop, 10))...)
	return len(files), err
}
