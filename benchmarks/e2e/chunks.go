package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"entropipe/benchmarks/rig"
)

// chunksCmd compares frames in chunks, in a topic of a broker whose limits nobody has raised,
// with the same frames in a topic that takes them whole.
type chunksCmd struct {
	Data       string  `placeholder:"DIR" help:"KITTI .bin files (a drive of the real data, else made up)."`
	Frames     int64   `default:"1000" help:"Frames in each topic (${default})."`
	Partitions int     `default:"4" help:"Partitions of both topics (${default})."`
	Ops        string  `default:"hull2d,maxima3d" help:"Operators (${default})."`
	Rounds     int     `default:"9" help:"Pairs of runs, in turns (${default})."`
	Least      float64 `default:"0.8" help:"Share of the rate of whole frames below which it fails (${default})."`
	Window     int64   `default:"67" help:"Memory beyond that of whole frames that fails, in MB (${default})."`
}

// defaultLimit is Kafka's own of a message.
const defaultLimit = 1048588

const (
	wholeTopic = "whole"
	partsTopic = "chunks"
)

// Run is the subcommand.
func (c *chunksCmd) Run(e *env) error {
	if c.Partitions < 1 || c.Rounds < 1 || c.Frames < int64(c.Partitions) {
		return fmt.Errorf("%w: want at least one round, partition, and frame a partition", rig.ErrUsage)
	}
	// Scripts that start a real Kafka leave its limits alone.
	if err := os.Setenv("ENTROPIPE_KAFKA_DEFAULTS", "1"); err != nil {
		return err
	}
	b, err := e.open("chunks", e.flags.Broker)
	if err != nil {
		return err
	}
	defer b.close()
	dir, err := c.data(b)
	if err != nil {
		return err
	}
	limit := int64(0) // what the broker has
	if b.broker.Kind == rig.Embedded {
		limit = defaultLimit
	}
	if err := b.fillUpTo(partsTopic, dir, c.Frames, c.Partitions, limit); err != nil {
		return err
	}
	if err := b.fill(wholeTopic, dir, c.Frames, c.Partitions); err != nil {
		return err
	}
	if err := c.compare(b); err != nil {
		return err
	}
	return c.measure(b)
}

// data returns the frames that are sent: where there are no real ones, scans of their size.
func (c *chunksCmd) data(b *bench) (string, error) {
	dir, err := dataDir(c.Data, "kitti", "raw_2011_09_26_drive_0005")
	if err == nil || c.Data != "" {
		return dir, err
	}
	note("%v: the frames are made up", err)
	archive := rig.Archive{Dir: filepath.Join(b.scratch, "data"), Seed: 1}
	return filepath.Join(archive.Dir, "drive"), archive.Drive("drive", 20, 120_000)
}

// compare makes an output of each topic, and makes sure that their rows are equal and that the
// frames of one came in chunks.
func (c *chunksCmd) compare(b *bench) error {
	ranges, err := b.client.Ranges(b.ctx, partsTopic, c.Partitions)
	if err != nil {
		return err
	}
	records := int64(0)
	for _, r := range ranges {
		records += r.End - r.Start
	}
	if records <= c.Frames {
		return fmt.Errorf("%d frames are %d records: they did not come in chunks", c.Frames, records)
	}
	outs := map[string]string{}
	for _, topic := range []string{partsTopic, wholeTopic} {
		outs[topic] = b.newOutput()
		defer os.RemoveAll(outs[topic])
		if _, err := b.runUntilEnd(topic, outs[topic], c.Ops); err != nil {
			return err
		}
		if _, said, err := b.program.Run(b.ctx, "verify", outs[topic]); err != nil {
			return fmt.Errorf("verify: %w\n%s", err, said)
		}
	}
	rows, err := rig.SameOutputs(outs[partsTopic], outs[wholeTopic], append(rig.Places, "latency_ns")...)
	if err != nil {
		return err
	}
	note("%d frames in %d chunks: rows equal to those of whole frames: %v", c.Frames, records, rows)
	return nil
}

// measure runs both in turns, whole frames first in every second round.
func (c *chunksCmd) measure(b *bench) error {
	var pairs []figures
	for round := range c.Rounds {
		topics := []string{partsTopic, wholeTopic}
		if round%2 > 0 {
			slices.Reverse(topics)
		}
		runs := map[string]measured{}
		for _, topic := range topics {
			m, err := b.measure(topic, c.Ops, c.Frames)
			if err != nil {
				return err
			}
			runs[topic] = m
		}
		parts, whole := runs[partsTopic], runs[wholeTopic]
		figure := parts.figure("pair", round)
		figure["whole_seconds"], figure["whole_start_up_seconds"] = whole.seconds(), whole.startUp.Seconds()
		figure["whole_cpu_seconds"], figure["whole_max_rss"] = whole.exit.CPU.Seconds(), whole.exit.MaxRSS
		if err := b.results.add(figure); err != nil {
			return err
		}
		pairs = append(pairs, figures{Frames: float64(c.Frames), Seconds: parts.seconds(),
			CPUSeconds: parts.exit.CPU.Seconds(), MaxRSS: float64(parts.exit.MaxRSS), WholeSeconds: whole.seconds(),
			WholeCPUSeconds: whole.exit.CPU.Seconds(), WholeMaxRSS: float64(whole.exit.MaxRSS)})
		note("round %d: %s", round+1, chunksResult(pairs[round:]))
	}
	fmt.Printf("KITTI frames in chunks, %s, %s broker, %d frames: %s; medians of %d pairs\n", c.Ops, b.broker.Kind,
		c.Frames, chunksResult(pairs), c.Rounds)
	share, more := chunksShare(pairs), chunksMemory(pairs)
	if share < c.Least || more > float64(c.Window)*1e6 {
		return fmt.Errorf("share %.2f, want %.2f; %s more memory, want at most %d MB", share, c.Least, megabytes(more),
			c.Window)
	}
	return nil
}

// chunksShare is the median over the pairs of the rate of chunks over that of whole frames.
func chunksShare(pairs []figures) float64 {
	return medianPair(pairs, func(f figures) float64 { return f.WholeSeconds / f.Seconds })
}

// chunksMemory is the largest resident set with chunks minus that with whole frames, bytes.
func chunksMemory(pairs []figures) float64 {
	parts, whole := 0.0, 0.0
	for _, f := range pairs {
		parts, whole = max(parts, f.MaxRSS), max(whole, f.WholeMaxRSS)
	}
	return parts - whole
}

func medianPair(pairs []figures, of func(figures) float64) float64 {
	values := make([]float64, len(pairs))
	for i, f := range pairs {
		values[i] = of(f)
	}
	return rig.Median(values)
}

// chunksResult says what pairs of runs show.
func chunksResult(pairs []figures) string {
	parts, whole := 0.0, 0.0
	for _, f := range pairs {
		parts, whole = max(parts, f.MaxRSS), max(whole, f.WholeMaxRSS)
	}
	return fmt.Sprintf("%.2f of the rate of whole frames (%.0f frames/s beside %.0f), %.2f times the processor time; "+
		"peak %.0f MB resident beside %.0f", chunksShare(pairs), medianPair(pairs, framesPerSecond),
		medianPair(pairs, func(f figures) float64 { return f.Frames / f.WholeSeconds }),
		medianPair(pairs, func(f figures) float64 { return f.CPUSeconds / f.WholeCPUSeconds }), parts/1e6, whole/1e6)
}

// chunkLines has a line for each broker.
func chunkLines(records []measurement) (all []outcome) {
	for _, broker := range brokers {
		run := newest(records, func(f figures) bool { return f.Broker == broker && f.What == "pair" })
		if len(run) == 0 {
			continue
		}
		var pairs []figures
		for _, m := range run {
			pairs = append(pairs, m.Figures)
		}
		all = append(all, outcome{fmt.Sprintf("%.0f KITTI frames in chunks of 1 MB, %s", pairs[0].Frames, pairs[0].Ops),
			broker, chunksResult(pairs), run})
	}
	return all
}
