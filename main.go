// Command entropipe turns streams of point clouds into tables: Kafka in, exact
// hulls, maxima and Delaunay triangulations out, as Parquet, each record
// exactly once.
//
// main.go holds the grammar of the command line and the exit statuses; every
// command has a file of its own (run.go, demo.go, produce.go, ...), and they
// are the only places that know every concrete type. The life of one frame:
//
//	main.go, run.go           flags -> configuration -> wiring
//	ops/pipeline/pipeline.go  goroutines, order, memory, commit
//	ops/pipeline/frame.go     decode, prepare, operate: the steps of one frame
//	sinks/                    rows -> files -> manifest
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

// version names the release; the revision comes from the build.
const version = "0.1.0"

// Exit statuses. 130, after a second signal, is in signals.go.
const (
	exitRuntime     = 1
	exitUsage       = 2
	exitInterrupted = 75 // before the end that was to be reached: trying again helps
	exitConfig      = 78
)

// cli is the grammar. Every flag is also a key of the configuration file and a
// variable ENTROPIPE_<FLAG>; flag beats variable beats file beats default.
type cli struct {
	Run      runCmd      `cmd:"" help:"Process topics into Parquet until stopped."`
	Demo     demoCmd     `cmd:"" help:"See it work: embedded broker, synthetic LiDAR, sketches and notes, Parquet out."`
	Broker   brokerCmd   `cmd:"" help:"Run an embedded Kafka broker, for laptops and tests."`
	Produce  produceCmd  `cmd:"" help:"Send a data set or a synthetic scene to a topic."`
	Train    trainCmd    `cmd:"" help:"Train the network that moves points, on a stream's frames."`
	Freeze   freezeCmd   `cmd:"" help:"Choose the attention blocks that a transformer reads, and measure what that costs."`
	TrainLM  trainLMCmd  `cmd:"" name:"train-lm" help:"Train a small language model on text files."`
	TrainViT trainViTCmd `cmd:"" name:"train-vit" help:"Train a small image classifier."`
	Verify   verifyCmd   `cmd:"" help:"Check an output folder: every manifest, file, checksum, row count and offset."`
	Info     infoCmd     `cmd:"" help:"Say what is in a file, an output folder, a folder of a model or mask, or a topic."`
	Export   exportCmd   `cmd:"" help:"Draw a frame from the tables: svg, png, geojson or ply. Or write a model as onnx, a mask for other programs."`
	Validate validateCmd `cmd:"" help:"Check a configuration file, and with --connect what it points to."`
	Bench    benchCmd    `cmd:"" help:"Time the operators on this machine: ns a point, beside one plain read."`
	Version  versionCmd  `cmd:"" help:"Print the version."`

	LogLevel  string `enum:"debug,info,warn,error" default:"info" help:"Least level that is logged (${enum})." group:"Logging" content:"no"`
	LogFormat string `enum:"text,json" default:"text" help:"Form of the log on stderr (${enum})." group:"Logging" content:"no"`
}

// env is what every command gets: where to write, and what ends it early.
type env struct {
	ctx    context.Context // ends with the first SIGTERM or Ctrl-C
	stdout io.Writer       // results
	stderr io.Writer       // progress
	log    *slog.Logger    // to stderr
	model  *kong.Kong      // the grammar, for the configuration loader
	args   []string        // the command line
}

func main() {
	os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr))
}

// Main runs the command line args and returns the exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	var c cli
	status := -1
	screen := newScreen(stderr)
	stderr = screen
	from := &settings{lookup: os.LookupEnv}
	parser, err := newParserOf(&c, from, kong.Writers(stdout, stderr), kong.Exit(func(code int) { status = max(status, code) }))
	if err != nil {
		panic("main: grammar: " + err.Error())
	}
	ctx, err := parse(parser, args)
	if status >= 0 {
		return status // --help has been printed
	}
	if err != nil {
		if config := (*ConfigError)(nil); errors.As(err, &config) {
			config.Problems = sortedProblems(append(config.Problems, from.more(args)...))
		}
		return fail(stderr, err)
	}
	signalled, stop := untilSignal(context.Background(), screen.abandon)
	defer stop()
	e := &env{ctx: signalled, stdout: stdout, stderr: stderr, log: newLogger(stderr, c.LogLevel, c.LogFormat), model: parser, args: args}
	warnOfSlips(e.log, ctx, os.Environ())
	if err := ctx.Run(e); err != nil {
		if signalled.Err() != nil && errors.Is(err, context.Canceled) { // of what has no result before its end
			err = errors.New("stopped before the end")
		}
		return fail(stderr, from.blame(err))
	}
	return 0
}

// usageError is a mistake on the command line.
type usageError struct{ error }

// Unwrap returns the mistake.
func (u usageError) Unwrap() error { return u.error }

// fail prints err as one line, or one a problem, and returns its exit status.
func fail(to io.Writer, err error) int {
	var text strings.Builder
	defer func() { io.WriteString(to, discreet(text.String())) }()
	w := &text
	var (
		usage   usageError
		parsing *kong.ParseError
		config  *ConfigError
		stopped *interruptedError
	)
	switch {
	case errors.As(err, &config):
		fmt.Fprintln(w, err)
		return exitConfig
	case errors.As(err, &usage), errors.As(err, &parsing):
		fmt.Fprintf(w, "entropipe: %v\nentropipe --help lists the commands; entropipe COMMAND --help their flags.\n", err)
		return exitUsage
	}
	fmt.Fprintf(w, "entropipe: %v\n", err)
	if errors.As(err, &stopped) {
		return exitInterrupted
	}
	return exitRuntime
}

func newLogger(w io.Writer, level, format string) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		panic("main: log level " + level) // the grammar allows no other
	}
	opts := &slog.HandlerOptions{Level: l, ReplaceAttr: discreetAttr}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

type versionCmd struct{}

func (versionCmd) Run(e *env) error {
	_, err := fmt.Fprintln(e.stdout, "entropipe", versionString())
	return err
}
