// Command live measures what browsers that watch a run cost it: the same frames from Kafka to
// committed Parquet with nobody, with readers of the live page, and with readers that stall,
// in turns, in one run.
//
// Readers are WebSocket clients of this process that view a stream and read every scene. On a
// machine that has no core to spare they take time from the run; that time is theirs, so the
// page has the wall time less their processor time, and the processor time of the run alone.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/alecthomas/kong"

	"entropipe/benchmarks/rig"
)

type cli struct {
	Quick   bool   `help:"Few frames and turns; keeps no result."`
	Readers int    `default:"20" help:"Readers of the page (${default})."`
	Rounds  int    `default:"7" help:"Turns of each way (${default}; --quick: 2)."`
	Frames  int    `default:"400" help:"Frames of a turn (${default}; --quick: 60)."`
	Points  int    `default:"120000" help:"Points of a frame (${default})."`
	Results string `placeholder:"DIR" help:"Folder of the result (benchmarks/results; --quick: none); -: none."`
	Render  bool   `help:"Measure nothing; write the page again from live.jsonl."`
}

const topic = "points"

func main() {
	var c cli
	kong.Parse(&c, kong.Name("live"), kong.Description("Measures what readers of the live page cost a run."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := c.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "live:", err)
		os.Exit(1)
	}
}

func (c *cli) run(ctx context.Context) error {
	results, err := rig.ResultsFolder(c.Results, rig.KindOf(c.Quick))
	if err != nil {
		return err
	}
	r, err := newReport(results)
	if err != nil || c.Render {
		return errors.Join(err, r.write(os.Stdout))
	}
	if c.Quick {
		c.Rounds, c.Frames = min(c.Rounds, 2), min(c.Frames, 60)
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
	for round := range c.Rounds {
		order := rand.Perm(len(ways))
		for _, i := range order {
			f, err := c.turn(ctx, program, broker.Addr, filepath.Join(dir, fmt.Sprintf("out-%d-%d", round, i)), ways[i])
			if err != nil {
				return fmt.Errorf("%s: %w", ways[i], err)
			}
			f.Round = round
			fmt.Printf("%2d %-8s %6.2f s, processor %6.2f s, readers' processor %5.2f s, %d scenes, %.0f MB\n",
				round, f.Way, f.WallS, f.CPUS, f.ReadersCPUS, f.Scenes, float64(f.Bytes)/1e6)
			if err := r.add(f); err != nil {
				return err
			}
		}
	}
	return r.write(os.Stdout)
}

// turn runs until the end of the topic, watched or not.
func (c *cli) turn(ctx context.Context, program rig.Program, broker, out, way string) (figures, error) {
	f := figures{Way: way, Frames: c.Frames, Points: c.Points}
	address, err := freeAddress()
	if err != nil {
		return f, err
	}
	p, err := rig.Start(rig.Spec{Path: program.Path, Args: []string{"run", "--brokers", broker, "--topic", topic,
		"--until-end", "--out", out, "--listen", address, "--log-level", "warn"}})
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(out)
	defer p.Kill()
	before := processorTime()
	var readers *readers
	if way != alone {
		f.Readers = c.Readers
		readers = watch(ctx, address, c.Readers, way == stalled)
	}
	exit, err := p.Wait(ctx)
	if readers != nil {
		f.Scenes, f.Bytes = readers.end()
		f.ReadersCPUS = (processorTime() - before).Seconds()
	}
	if err != nil {
		return f, err
	}
	if exit.Status != 0 {
		return f, fmt.Errorf("run: exit status %d\n%s", exit.Status, p.Tail(20))
	}
	if way == watched && f.Scenes == 0 {
		return f, errors.New("no reader got a scene")
	}
	f.WallS, f.CPUS = exit.Wall.Seconds(), exit.CPU.Seconds()
	return f, nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
