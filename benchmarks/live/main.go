// Command live measures what browsers that watch a run cost it: frames from Kafka to committed
// Parquet with nobody, with readers of the live page, and with readers that stall, in short
// stretches of the same runs, in turns.
//
// Readers are WebSocket clients of this process that view a stream and read every scene. On a
// machine that has no core to spare they take time from the run; that time is theirs, so the
// page has the wall time less their processor time, and the processor time of the run alone.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"entropipe/benchmarks/rig"
)

type cli struct {
	Quick   bool `help:"Few frames and turns; keeps no result."`
	Readers int  `default:"20" help:"Readers of the page (${default})."`
	Runs    int  `default:"8" help:"Runs over all frames (${default}; --quick: 1)."`
	Frames  int  `default:"2000" help:"Frames of a run (${default}; --quick: 150)."`
	Points  int  `default:"120000" help:"Points of a frame (${default})."`

	Stretch time.Duration `default:"2s" help:"Length of a stretch (${default}; --quick: 300ms)."`

	Results string `placeholder:"DIR" help:"Folder of the result (benchmarks/results; --quick: none); -: none."`
	Render  bool   `help:"Measure nothing; write the page again from live.jsonl."`
}

const topic = "points"

func main() {
	var c cli
	kong.Parse(&c, kong.Name("live"), kong.Description("Measures what readers of the live page cost a run."))
	rig.Main("live", c.run)
}

func (c *cli) run(ctx context.Context) error {
	results, err := rig.ResultsFolder(c.Results, rig.KindOf(c.Quick))
	if err != nil {
		return err
	}
	r, err := newReport(results)
	if err != nil {
		return err
	}
	if c.Render {
		return r.write(os.Stdout)
	}
	if c.Quick {
		c.Runs, c.Frames, c.Stretch = min(c.Runs, 1), min(c.Frames, 150), min(c.Stretch, 300*time.Millisecond)
	}
	dir, err := os.MkdirTemp("", "entropipe-live-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, err := rig.Build(ctx, dir)
	if err != nil {
		return err
	}
	broker, err := program.NewBroker(ctx, filepath.Join(dir, "broker"))
	if err != nil {
		return err
	}
	defer broker.Kill()
	if _, said, err := program.Run(ctx, "produce", "synthetic", "--kind", "lidar", "--frames", strconv.Itoa(c.Frames),
		"--points", strconv.Itoa(c.Points), "--rate", "max", "--brokers", broker.Addr, "--topic", topic,
		"--log-level", "warn"); err != nil {
		return fmt.Errorf("produce: %w\n%s", err, said)
	}
	m := &measure{cli: c, program: program, broker: broker.Addr, report: r}
	for number := range c.Runs {
		if err := m.run(ctx, filepath.Join(dir, fmt.Sprintf("out-%d", number))); err != nil {
			return err
		}
	}
	return r.write(os.Stdout)
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
