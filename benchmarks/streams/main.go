// Command streams takes the same records of the same topic of a real Kafka to Parquet by
// entropipe, by Flink's file sink, by Spark Structured Streaming and by Iceberg's sink of Kafka
// Connect, all exactly once, on the same processors, in turns: frames a second, processor time
// and memory of whole process trees.
//
// What they write is compared before it counts: a peer that writes less is not a peer. The
// jobs of Flink and Spark are flink_job.py, spark_job.py, shapes.py and flink/PointsOf.java,
// that of Kafka Connect is in iceberg; judge.py reads what they have committed, as their
// readers do.
//
// Vocabulary: a work is what is written (messages, records, points, shapes); an engine takes a
// topic to files; a turn is one run of an engine's processes; a start is a turn over a few
// frames, whose cost is what an engine takes before it works.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/alecthomas/kong"

	"entropipe/benchmarks/rig"
)

type cli struct {
	Time   timeCmd   `cmd:"" default:"withargs" help:"Time all engines (the default command)."`
	Kills  killsCmd  `cmd:"" help:"Kill each engine's processes under a steady load; count rows afterwards."`
	Render renderCmd `cmd:"" help:"Write the page again from the records; measure nothing."`
	Tree   treeCmd   `cmd:"" hidden:"" help:"Run a command and write what its processes cost."`
}

// common are the flags of all commands that measure.
type common struct {
	Quick   bool          `help:"Few frames, one round; keeps no result."`
	Engines []string      `enum:"${engines}" default:"${engines}" help:"Engines (${enum})."`
	Cores   int           `default:"2" help:"Processors of an engine; the broker may use all (${default})."`
	Every   time.Duration `default:"5s" help:"Interval of checkpoints; the roll age of ours (${default})."`
	Points  int           `default:"119000" help:"Points of a frame, of 16 bytes each (${default})."`
	Seed    uint64        `default:"1" help:"Seed of frames, orders and kills (${default})."`
	Results string        `placeholder:"DIR" help:"Folder of the result (benchmarks/results; --quick: none); -: none."`
	Scratch string        `placeholder:"DIR" help:"Folder for topics and outputs; default: a temporary one."`
	Keep    bool          `help:"Keep logs and outputs of the scratch folder."`
}

func main() {
	var c cli
	k := kong.Parse(&c, kong.Name("streams"), kong.Vars{"engines": "entropipe,flink,spark,iceberg",
		"works": "messages,records,points,shapes"},
		kong.Description("Times Flink and Spark beside entropipe, from Kafka to Parquet."))
	rig.Main("streams", func(ctx context.Context) error {
		k.BindTo(ctx, (*context.Context)(nil))
		return k.Run()
	})
}

// exitStatus is the status of a command that is run by this program.
type exitStatus int

// Error says the status.
func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// ExitCode is the status.
func (s exitStatus) ExitCode() int { return int(s) }

// renderCmd writes the page.
type renderCmd struct {
	Results string `placeholder:"DIR" help:"Folder of streams.jsonl and streams.md (benchmarks/results)."`
}

// Run is the subcommand.
func (c *renderCmd) Run() error {
	folder, err := rig.ResultsFolder(c.Results, rig.FullRun)
	if err != nil {
		return err
	}
	r, err := newReport(folder)
	if err != nil {
		return err
	}
	return r.write()
}

// say tells what goes on.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "streams: "+format+"\n", args...) }
