// Package cmd is the command line of entropipe: the grammar, and Main, which runs one
// command line. It holds no command: each is a package below this one, with its flags,
// its checks and its help text. Package cmd/command has what commands share, cmd/config
// reads flags from variables and files, cmd/mistake has the errors of users.
//
// The grammar is a struct whose fields are the commands and whose tags declare the flags.
package cmd

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"entropipe/cmd/backfill"
	"entropipe/cmd/bench"
	"entropipe/cmd/broker"
	"entropipe/cmd/command"
	"entropipe/cmd/compact"
	"entropipe/cmd/completion"
	"entropipe/cmd/config"
	"entropipe/cmd/demo"
	"entropipe/cmd/export"
	"entropipe/cmd/info"
	"entropipe/cmd/initialize"
	"entropipe/cmd/manual"
	"entropipe/cmd/mistake"
	"entropipe/cmd/produce"
	"entropipe/cmd/replay"
	"entropipe/cmd/run"
	"entropipe/cmd/top"
	"entropipe/cmd/train"
	"entropipe/cmd/transformer"
	"entropipe/cmd/truth"
	"entropipe/cmd/validate"
	"entropipe/cmd/verify"
	"entropipe/cmd/version"
)

//go:generate go test -run TestDescribedFiles -update .

// cli is the grammar. Every flag is also a key of the configuration file and a
// variable ENTROPIPE_<FLAG>; flag beats variable beats file beats default.
type cli struct {
	Run      run.Command          `cmd:""`
	Demo     demo.Command         `cmd:""`
	Broker   broker.Command       `cmd:""`
	Produce  produce.Command      `cmd:""`
	Backfill backfill.Command     `cmd:""`
	Train    train.Command        `cmd:""`
	Freeze   transformer.Freeze   `cmd:""`
	TrainLM  transformer.TrainLM  `cmd:"" name:"train-lm"`
	TrainViT transformer.TrainViT `cmd:"" name:"train-vit"`
	Top      top.Command          `cmd:""`
	Verify   verify.Command       `cmd:""`
	Compact  compact.Command      `cmd:""`
	Vacuum   compact.Vacuum       `cmd:""`
	Replay   replay.Command       `cmd:""`
	Info     info.Command         `cmd:""`
	Export   export.Command       `cmd:""`
	Init     initialize.Command   `cmd:""`
	Validate validate.Command     `cmd:"" others:"run,backfill"`
	Bench    bench.Command        `cmd:""`
	Truth    truth.Command        `cmd:""`
	Version  version.Command      `cmd:""`

	Completion completion.Command `cmd:"" others:"yes"`
	Man        manual.Command     `cmd:"" others:"yes"`

	LogLevel  string `enum:"debug,info,warn,error" default:"info" group:"Logging" content:"no"`
	LogFormat string `enum:"text,json" default:"text" group:"Logging" content:"no"`
}

// Main runs the command line args and returns the exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	var c cli
	status := -1
	screen := command.NewScreen(stderr)
	stderr = screen
	from := &config.Settings{Lookup: os.LookupEnv, Grammar: func() any { return &cli{} }}
	parser, err := config.NewParserOf(args, &c, from, kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { status = max(status, code) }))
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
	e := &command.Env{Ctx: signalled, Stdout: stdout, Stderr: stderr,
		Log: command.NewLogger(stderr, c.LogLevel, c.LogFormat), Parser: parser, Settings: from}
	from.WarnOfSlips(e.Log, ctx, os.Environ())
	if err := ctx.Run(e); err != nil {
		if signalled.Err() != nil && errors.Is(err, context.Canceled) { // the command has no partial result
			err = errors.New("stopped before the end")
		}
		return command.Fail(stderr, from.Blame(err))
	}
	return 0
}
