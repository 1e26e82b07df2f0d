// Command e2e measures the whole path, Kafka to committed Parquet, and prints
// ratios: a figure of one machine on one day means little, so everything is held
// against something that runs beside it, in turn, in the same run.
//
// It drives the built program by its command line, as a user does; only the raw
// fetch loop, the yardstick of throughput, uses the program's own packages. It
// checks that the work was done (rows counted, outputs verified) and that a
// broker's log was read to its end; it does not check geometry, which
// `correctness` leaves to checkers of their own.
//
// Every figure is appended, raw, to a .jsonl file of benchmarks/results.
//
// Vocabulary: a round is one run of each contender in turn; a share is our rate
// over that of the raw fetch loop; start-up is what a run takes that finds
// nothing to do; net means without start-up.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/alecthomas/kong"

	"entropipe/benchmarks/rig"
)

type cli struct {
	Throughput  throughputCmd  `cmd:"" help:"Frames a second, beside a raw fetch loop and a Python pipeline."`
	Chunks      chunksCmd      `cmd:"" help:"KITTI frames in chunks of 1 MB, beside whole ones."`
	Drawings    drawingsCmd    `cmd:"" help:"QuickDraw drawings a second through hull2d, maxima2d and delaunay2d."`
	Profile     profileCmd     `cmd:"" help:"Where the processor time of a run goes, stage by stage."`
	Memory      memoryCmd      `cmd:"" help:"Resident memory over thousands of KITTI frames at full rate."`
	Tokens      tokensCmd      `cmd:"" help:"Tokens a second through a model, beside the model alone."`
	Correctness correctnessCmd `cmd:"" help:"Rows by an embedded broker and by a real Kafka, compared."`
	Compare     compareCmd     `cmd:"" help:"Compare the tables of two outputs row by row."`
	Report      reportCmd      `cmd:"" help:"Measure nothing; write e2e.md from the newest records."`
	Fetch       fetchCmd       `cmd:"" hidden:"" help:"The raw fetch loop, in a process of its own."`

	Broker  string `enum:"embedded,kafka" default:"embedded" help:"Broker to start (${enum}; kafka by .ci/kafka)."`
	Results string `placeholder:"DIR" help:"Folder of the raw figures (benchmarks/results of this module); - for none."`
	Scratch string `placeholder:"DIR" help:"Empty or new folder for logs and outputs (default: temporary)."`

	Timeout time.Duration `default:"1h" help:"When to give up (${default})."`
}

func main() {
	var c cli
	k := kong.Parse(&c, kong.Name("e2e"), kong.Description("Measures entropipe end to end. benchmarks/README.md "+
		"says what is judged against what."))
	rig.Main("e2e", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("--timeout %v is over", c.Timeout))
		defer cancel()
		if err := checkScratch(c.Scratch); err != nil {
			return err
		}
		return k.Run(&env{ctx: ctx, flags: &c})
	})
}

// checkScratch refuses a folder with something in it: an output found there
// would be continued, and measured short.
func checkScratch(dir string) error {
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && len(entries) > 0 {
		return fmt.Errorf("%w: --scratch %s is not empty", rig.ErrUsage, dir)
	}
	return err
}

// env is what every command gets.
type env struct {
	ctx   context.Context
	flags *cli
}
