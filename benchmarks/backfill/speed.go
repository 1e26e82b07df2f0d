package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"

	"entropipe/benchmarks/rig"
)

// speedCmd compares ways in turns.
type speedCmd struct {
	Rounds int `default:"11" help:"Turns of each way (${default}; --quick: 2)."`
	Drives int `default:"8" help:"Drives of the archive (${default}; --quick: 2)."`
	Scans  int `default:"100" help:"Scans of a drive (${default}; --quick: 6)."`
	Long   int `default:"4" help:"Times as many scans where two processes are beside one (${default}; --quick: 1)."`
}

// The ways of a round.
const (
	wayBroker = "produce and run"
	wayOne    = "backfill"
	wayLong   = "backfill of a long archive"
	wayTwo    = "two processes of it"
	// As two processes, but each has an output of its own: what the machine allows two of them.
	wayApart = "two processes, outputs apart"
)

var speedWays = []string{wayBroker, wayOne, wayLong, wayTwo, wayApart}

// speedJob is what each way does with a folder of drives.
func speedJob(folder string) job {
	return job{[]string{"files", folder}, []string{"--ops", "hull2d,maxima3d"}}
}

// Run is the subcommand.
func (c *speedCmd) Run(b *bench) error {
	if b.Quick {
		c.Rounds, c.Drives, c.Scans, c.Long = min(c.Rounds, 2), min(c.Drives, 2), min(c.Scans, 6), 1
	}
	if err := b.prepare(); err != nil {
		return err
	}
	folder, bytes, err := b.drives("archive", c.Drives, c.Scans)
	if err != nil {
		return err
	}
	long, _, err := b.drives("long", c.Drives, c.Long*c.Scans)
	if err != nil {
		return err
	}
	b.env = []string{"GOMAXPROCS=1"}
	if err := c.check(b, folder); err != nil {
		return err
	}
	for round := range c.Rounds {
		for _, i := range rand.Perm(len(speedWays)) {
			from, frames := folder, int64(c.Drives*c.Scans)
			if way := speedWays[i]; way != wayBroker && way != wayOne {
				from, frames = long, frames*int64(c.Long)
			}
			f, err := c.turn(b, speedJob(from), speedWays[i])
			if err != nil {
				return fmt.Errorf("%s: %w", speedWays[i], err)
			}
			f.What, f.Round, f.Frames, f.Bytes = "speed", round, frames, bytes/int64(c.Drives*c.Scans)*frames
			fmt.Printf("%2d %-24s %6.2f s, processor %6.2f s, broker's %5.2f s\n", round, f.Way, f.WallS,
				f.CPUS, f.BrokerCPUS)
			if err := b.add(f); err != nil {
				return err
			}
		}
	}
	return b.finish()
}

// check takes a small archive all ways, which must find the same rows. It also brings program
// and scans into memory.
func (c *speedCmd) check(b *bench, folder string) error {
	small, _, err := b.drives("small", 2, 3)
	if err != nil {
		return err
	}
	j := speedJob(small)
	outs := []string{b.path("check-broker"), b.path("check-one"), b.path("check-two")}
	for i, way := range []string{wayBroker, wayOne, wayTwo} {
		if _, err := c.way(b, j, way, outs[i]); err != nil {
			return fmt.Errorf("%s: %w", way, err)
		}
	}
	if _, err := rig.SameOutputs(outs[1], outs[0], rig.Places...); err != nil {
		return err
	}
	if _, err := rig.SameOutputs(outs[2], outs[1]); err != nil {
		return err
	}
	return rig.SameManifests(outs[2], outs[1])
}

// turn measures one way into a fresh output.
func (c *speedCmd) turn(b *bench, j job, way string) (figures, error) {
	out := b.path("out")
	defer os.RemoveAll(out)
	return c.way(b, j, way, out)
}

func (c *speedCmd) way(b *bench, j job, way, out string) (f figures, err error) {
	f.Way = way
	var t turn
	switch way {
	case wayBroker:
		return c.broker(b, j, out)
	case wayTwo:
		t, err = b.backfill(j, out, []string{"--shard", "0/2"}, []string{"--shard", "1/2"})
	case wayApart:
		apart := out + "-apart"
		defer os.RemoveAll(apart)
		t, err = b.backfill(j, out, []string{"--shard", "0/2"}, []string{"--shard", "1/2", "--out", apart})
	default:
		t, err = b.backfill(j, out)
	}
	if err != nil {
		return f, fmt.Errorf("%w\n%s", err, t.Said)
	}
	f.WallS, f.CPUS, f.MaxRSS = t.Wall.Seconds(), t.CPU.Seconds(), t.MaxRSS
	return f, nil
}

// broker measures produce, and then run, with a broker that has nothing else in its log.
func (c *speedCmd) broker(b *bench, j job, out string) (f figures, err error) {
	dir := b.path("broker")
	defer os.RemoveAll(dir)
	broker, err := b.program.NewBroker(b.ctx, dir)
	if err != nil {
		return f, err
	}
	defer broker.Kill()
	before, err := rig.ProcessorTime(broker.Pid())
	if err != nil && runtime.GOOS == "linux" {
		return f, err
	}
	var produced, ran turn
	topic, err := b.produce(&produced, broker.Addr, j, 4)
	if err == nil {
		err = b.ways.run(&ran, broker.Addr, j, topic, out)
	}
	if err != nil {
		return f, fmt.Errorf("%w\n%s", err, strings.TrimSpace(produced.Said+ran.Said))
	}
	after, err := rig.ProcessorTime(broker.Pid())
	if err != nil && runtime.GOOS == "linux" {
		return f, err
	}
	return figures{Way: wayBroker, WallS: (produced.Wall + ran.Wall).Seconds(),
		CPUS:     (produced.CPU + ran.CPU).Seconds(),
		RunWallS: ran.Wall.Seconds(), RunCPUS: ran.CPU.Seconds(), BrokerCPUS: (after - before).Seconds(),
		MaxRSS: max(produced.MaxRSS, ran.MaxRSS)}, nil
}
