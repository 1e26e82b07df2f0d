// Package cmd is the command line of entropipe: the grammar, and Main, which runs one
// command line.
//
// Each command is a package below this one, with its flags, its checks and its help
// text. What commands share is in cmd/command; where their flags come from besides the
// command line, in cmd/config.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"entropipe/cmd/bench"
	"entropipe/cmd/broker"
	"entropipe/cmd/command"
	"entropipe/cmd/config"
	"entropipe/cmd/demo"
	"entropipe/cmd/export"
	"entropipe/cmd/info"
	"entropipe/cmd/mistake"
	"entropipe/cmd/produce"
	"entropipe/cmd/run"
	"entropipe/cmd/train"
	"entropipe/cmd/transformer"
	"entropipe/cmd/validate"
	"entropipe/cmd/verify"
)

// cli is the grammar. Every flag is also a key of the configuration file and a
// variable ENTROPIPE_<FLAG>; flag beats variable beats file beats default.
type cli struct {
	Run      run.Command          `cmd:"" help:"Process topics into Parquet until stopped."`
	Demo     demo.Command         `cmd:"" help:"See it work: embedded broker, synthetic LiDAR, sketches and notes, Parquet out."`
	Broker   broker.Command       `cmd:"" help:"Run an embedded Kafka broker, for laptops and tests."`
	Produce  produce.Command      `cmd:"" help:"Send a data set or a synthetic scene to a topic."`
	Train    train.Command        `cmd:"" help:"Train the network that moves points, on a stream's frames."`
	Freeze   transformer.Freeze   `cmd:"" help:"Choose the attention blocks that a transformer reads, and measure what that costs."`
	TrainLM  transformer.TrainLM  `cmd:"" name:"train-lm" help:"Train a small language model on text files."`
	TrainViT transformer.TrainViT `cmd:"" name:"train-vit" help:"Train a small image classifier."`
	Verify   verify.Command       `cmd:"" help:"Check an output folder: every manifest, file, checksum, row count and offset."`
	Info     info.Command         `cmd:"" help:"Say what is in a file, an output folder, a folder of a model or mask, or a topic."`
	Export   export.Command       `cmd:"" help:"Draw a frame from the tables: svg, png, geojson or ply. Or write a model as onnx, a mask for other programs."`
	Validate validate.Command     `cmd:"" help:"Check a configuration file, and with --connect what it points to."`
	Bench    bench.Command        `cmd:"" help:"Time the operators on this machine: ns a point, beside one plain read."`
	Version  versionCmd           `cmd:"" help:"Print the version."`

	LogLevel  string `enum:"debug,info,warn,error" default:"info" help:"Least level that is logged (${enum})." group:"Logging" content:"no"`
	LogFormat string `enum:"text,json" default:"text" help:"Form of the log on stderr (${enum})." group:"Logging" content:"no"`
}

// Main runs the command line args and returns the exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	var c cli
	status := -1
	screen := command.NewScreen(stderr)
	stderr = screen
	from := &config.Settings{Lookup: os.LookupEnv, Grammar: func() any { return &cli{} }}
	parser, err := config.NewParserOf(&c, from, kong.Writers(stdout, stderr), kong.Exit(func(code int) { status = max(status, code) }))
	if err != nil {
		panic("main: grammar: " + err.Error())
	}
	ctx, err := config.Parse(parser, args)
	if status >= 0 {
		return status // --help has been printed
	}
	if err != nil {
		if wrong := (*mistake.Config)(nil); errors.As(err, &wrong) {
			wrong.Problems = mistake.SortedProblems(append(wrong.Problems, from.More(args)...))
		}
		return command.Fail(stderr, err)
	}
	signalled, stop := command.UntilSignal(context.Background(), screen.Abandon)
	defer stop()
	e := &command.Env{Ctx: signalled, Stdout: stdout, Stderr: stderr, Log: command.NewLogger(stderr, c.LogLevel, c.LogFormat), Model: parser, Args: args}
	config.WarnOfSlips(e.Log, ctx, os.Environ())
	if err := ctx.Run(e); err != nil {
		if signalled.Err() != nil && errors.Is(err, context.Canceled) { // of what has no result before its end
			err = errors.New("stopped before the end")
		}
		return command.Fail(stderr, from.Blame(err))
	}
	return 0
}

type versionCmd struct{}

func (versionCmd) Run(e *command.Env) error {
	_, err := fmt.Fprintln(e.Stdout, "entropipe", command.VersionString())
	return err
}
