// Command register adds the files of an output to tables of an Iceberg catalog, as they are.
//
// It reads the manifests of an output in order, makes a table for each table of the output, and
// adds the files that the manifests name: no byte of them is read but their footers, and none is
// written. What was added is part of the same transaction (fence.go), so each file is added
// once, whatever dies and however many processes register at once. It changes nothing in the
// output.
//
// It is a module and a program of its own: the library of Iceberg brings another Arrow than the
// one of entropipe, and both do not fit into one program. So it imports only packages of
// entropipe that need no Arrow.
//
// Vocabulary. A mark is the end of what a table has of one partition; the fence of a table is all
// its marks. A chain is the manifests of a partition. A batch is manifests that are registered
// together.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// version is that of entropipe.
const version = "0.1.0"

// firstWait is the time before a second try.
const firstWait = 50 * time.Millisecond

// Exit statuses, those of entropipe; 0 is success.
const (
	exitRuntime     = 1
	exitUsage       = 2
	exitInterrupted = 75
	exitConfig      = 78
	exitAborted     = 130
)

// cli is the grammar. Every flag is also a variable ENTROPIPE_<FLAG>. Credentials are no flags,
// since ps shows those.
type cli struct {
	Out string `arg:""`

	Catalog   string `placeholder:"URL" required:"" group:"Catalog"`
	Warehouse string `placeholder:"NAME" group:"Catalog"`
	Namespace string `default:"entropipe" group:"Catalog"`
	Scope     string `placeholder:"TEXT" group:"Catalog"`
	TokenURL  string `placeholder:"URL" group:"Catalog"`

	Table          []string      `placeholder:"NAME" group:"Tables"`
	LocationPrefix string        `placeholder:"URL" group:"Tables"`
	Batch          int           `default:"2000" group:"Tables"`
	Follow         bool          `group:"Tables"`
	Poll           time.Duration `default:"30s" group:"Tables"`
	RetryFor       time.Duration `default:"10m" group:"Tables"`
	JSON           bool          `name:"json" group:"Tables"`

	Bucket bucketFlags `embed:"" group:"Object store"`

	LogLevel  string           `enum:"debug,info,warn,error" default:"info" group:"Logging"`
	LogFormat string           `enum:"text,json" default:"text" group:"Logging"`
	Version   kong.VersionFlag `env:"-"`
}

// bucketFlags are the flags of buckets: of OUT, and of the tables' metadata where the catalog
// does not say. Their credentials come from where the programs of AWS look for them.
type bucketFlags struct {
	Endpoint  string `name:"s3-endpoint" env:"ENTROPIPE_S3_ENDPOINT" placeholder:"URL" group:"Object store"`
	Region    string `name:"s3-region" env:"ENTROPIPE_S3_REGION" placeholder:"NAME" group:"Object store"`
	PathStyle bool   `name:"s3-path-style" env:"ENTROPIPE_S3_PATH_STYLE" group:"Object store"`
}

// helpLines describes the argument and the flags.
var helpLines = map[string]string{
	"out":             "Output: a folder, or s3://BUCKET/PREFIX.",
	"catalog":         "REST catalog, without /v1.",
	"warehouse":       "Warehouse of the catalog.",
	"namespace":       "Namespace of the tables; parts with dots between. Made where there is none.",
	"scope":           "Scope of the login, such as PRINCIPAL_ROLE:ALL.",
	"token-url":       "Server of tokens; default: the catalog.",
	"table":           "Tables to register; default: all.",
	"location-prefix": "Address of OUT as readers of the tables see it; default: s3://… or file://….",
	"batch":           "Files of a batch: a batch is one transaction for each table.",
	"follow":          "Continue while OUT grows, until stopped.",
	"poll":            "Time between two looks of --follow.",
	"retry-for":       "Time for which a catalog or bucket that is away is tried again.",
	"json":            "Print one JSON document.",
	"s3-endpoint":     "Server of s3:// addresses; default: AWS_ENDPOINT_URL_S3, else AWS.",
	"s3-region":       "Region of the bucket; default: AWS_REGION, else what the server says.",
	"s3-path-style":   "Send the bucket in the path of requests, not in the name of the host.",
	"log-level":       "Lowest level that is logged: debug, info, warn, error.",
	"log-format":      "Format of the log on stderr: text, json.",
	"version":         "Print the version.",
	"help":            "Show this help.",
}

// describe gives the argument and the flags their lines.
func describe(k *kong.Kong) error {
	for _, p := range k.Model.Positional {
		p.Help = helpLines[p.Name]
	}
	for _, f := range k.Model.Flags {
		if f.Help = helpLines[f.Name]; f.Help == "" {
			return fmt.Errorf("flag %s has no help", f.Name)
		}
	}
	return nil
}

const about = `Adds the files of OUT to tables of an Iceberg catalog, as they are: hulls of OUT become table
hulls of the namespace, and so on. Nothing is rewritten. Killed or repeated, it goes on where the
tables end; several may run. Register the output that readers use: OUT itself, or its compaction.

A login of the catalog stands in ENTROPIPE_CATALOG_CREDENTIAL (ID:SECRET) or
ENTROPIPE_CATALOG_TOKEN. Every flag is a variable, too: ENTROPIPE_<FLAG>.

Examples:
  register ./entropipe-out --catalog http://127.0.0.1:8181 --warehouse lake
  register s3://lake/points-large --catalog https://catalog.example.com --warehouse lake --follow
  register ./entropipe-out --catalog http://127.0.0.1:8181 --table hulls,maxima --namespace lidar.raw`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run runs the command line args and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	var c cli
	status := -1
	parser, err := kong.New(&c, kong.Name("register"), kong.Description(about), kong.Writers(stdout, stderr),
		kong.DefaultEnvars("ENTROPIPE"), kong.Vars{"version": built()},
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 100}), kong.PostBuild(describe),
		kong.ValueFormatter(func(v *kong.Value) string { return v.Help }),
		kong.Exit(func(code int) { status = max(status, code) }))
	if err != nil {
		panic("register: grammar: " + err.Error())
	}
	_, err = parser.Parse(args)
	if status >= 0 {
		return status // --help or --version has been printed
	}
	if err == nil {
		err = c.check()
	}
	ctx, stop := untilSignal()
	defer stop()
	if err == nil {
		err = c.run(ctx, stdout, newLogger(stderr, c.LogLevel, c.LogFormat))
	}
	return fail(stderr, err)
}

// fail prints err and returns its exit status.
func fail(to io.Writer, err error) int {
	if err == nil {
		return 0
	}
	var (
		parsing *kong.ParseError
		use     *usageError
		setting *settingError
		early   interruptedError
	)
	text := strings.ReplaceAll(discreet(err.Error()), "\n", " ")
	fmt.Fprintf(to, "register: %s\n", text)
	switch {
	case errors.As(err, &parsing), errors.As(err, &use):
		fmt.Fprintln(to, "register --help lists the flags.")
		return exitUsage
	case errors.As(err, &setting):
		return exitConfig
	case errors.As(err, &early):
		return exitInterrupted
	}
	return exitRuntime
}

// check returns all mistakes of the flags, joined.
func (c *cli) check() error {
	var wrong []error
	if u, err := url.Parse(c.Catalog); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		wrong = append(wrong, usage("--catalog: want http://HOST[:PORT][/PATH] or https://…"))
	} else if u.User != nil {
		wrong = append(wrong, usage("--catalog: a login stands in ENTROPIPE_CATALOG_CREDENTIAL, not in the URL"))
	}
	if c.Namespace == "" || slices.Contains(strings.Split(c.Namespace, "."), "") {
		wrong = append(wrong, usage("--namespace: want a name, or names with dots between"))
	}
	if c.LocationPrefix != "" {
		wrong = append(wrong, checkLocation(c.LocationPrefix))
	}
	if c.Batch < 1 || c.Batch > 1_000_000 {
		wrong = append(wrong, usage("--batch %d: want 1 to 1000000", c.Batch))
	}
	if c.Poll < 10*time.Millisecond {
		wrong = append(wrong, usage("--poll %v: want 10ms or more", c.Poll))
	}
	if c.RetryFor < 0 {
		wrong = append(wrong, usage("--retry-for %v: want 0 or more", c.RetryFor))
	}
	return errors.Join(wrong...)
}

// run registers, and prints what was done, after an error, too.
func (c *cli) run(ctx context.Context, stdout io.Writer, log *slog.Logger) error {
	s, err := openSource(c.Out, c.LocationPrefix, &c.Bucket)
	if err != nil {
		return err
	}
	defer s.Close()
	var r *registrar
	defer func() {
		if r != nil {
			printResult(stdout, c.JSON, r.count())
		}
	}()
	first := &registrar{cfg: config{RetryFor: c.RetryFor, FirstWait: firstWait}, log: log}
	err = first.trying(ctx, func() error {
		lake, err := openCatalog(ctx, c)
		if err == nil {
			r, err = openRegistrar(ctx, s, lake, config{Namespace: strings.Split(c.Namespace, "."),
				Tables: c.Table, Poll: c.Poll, Batch: c.Batch, RetryFor: c.RetryFor, FirstWait: firstWait}, log)
		}
		return err
	})
	if err == nil {
		stop := progress(log, r)
		if c.Follow {
			err = r.follow(ctx)
		} else {
			err = r.run(ctx)
		}
		stop()
	}
	switch {
	case ctx.Err() == nil:
		return err
	case c.Follow:
		return nil
	}
	return interruptedError{}
}

// printResult prints what was done as one line, or as one JSON document.
func printResult(w io.Writer, asJSON bool, d done) {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.Encode(d)
		return
	}
	if d.Files == 0 {
		fmt.Fprintln(w, "nothing new to register")
	} else {
		fmt.Fprintf(w, "%d files with %d rows, of %d commits, were added in %d transactions\n", d.Files, d.Rows,
			d.Commits, d.Transactions)
	}
	if d.Retired > 0 {
		fmt.Fprintf(w, "%d retired commits were passed over: only their compaction has the rows\n", d.Retired)
	}
	if d.Unpublished > 0 {
		fmt.Fprintf(w, "the newest commit of %d partitions is not published yet, and was left for the next run\n",
			d.Unpublished)
	}
}

// progress logs every ten seconds how far r is, until the function that it returns is called.
func progress(log *slog.Logger, r *registrar) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(10 * time.Second)
		defer tick.Stop()
		before := int64(0)
		for {
			select {
			case <-end:
				return
			case <-tick.C:
			}
			if now := r.step.Load(); now != before {
				d := r.count()
				log.Info("progress", "commits read", now, "files", d.Files, "rows", d.Rows,
					"transactions", d.Transactions)
				before = now
			}
		}
	}()
	return func() { close(end); <-ended }
}

// untilSignal returns a context that the first SIGTERM or Ctrl-C ends. The second one ends the
// process.
func untilSignal() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
			return
		}
		<-signals
		os.Exit(exitAborted)
	}()
	return ctx, func() { signal.Stop(signals); cancel() }
}

// newLogger returns a logger that hides passwords in URLs.
func newLogger(w io.Writer, level, format string) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		panic("register: log level " + level) // the grammar allows no other
	}
	opts := &slog.HandlerOptions{Level: l, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if err, ok := a.Value.Any().(error); ok {
			a.Value = slog.StringValue(discreet(err.Error()))
		}
		return a
	}}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// built returns the version with the commit that was built.
func built() string {
	text := "register " + version
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				text += " (" + s.Value + ")"
			}
		}
	}
	return text
}
