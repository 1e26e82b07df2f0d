// Command peers times the libraries that people use for hulls, maxima and
// Delaunay triangulations beside ours: on the same files, in turns, in one run.
// It builds them from package registries first, and compares what they find
// with what we find, index by index.
//
// Every peer is a process of its own that answers requests on its standard
// input (process.go); its program stands in a folder of its own, with the
// versions pinned. What cannot be built here is said and left out.
//
// Vocabulary: an input is one cloud in a file, float64; an entry is one way of
// one library to do an operation, with one number of threads; a turn is one
// request to run an entry a few times; a bare entry gives less than the others.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"entropipe/benchmarks/rig"
)

type cli struct {
	Time   timeCmd   `cmd:"" default:"withargs" help:"Build, time and compare (the default command)."`
	Render renderCmd `cmd:"" help:"Measure nothing; write peers.md again from peers.jsonl."`
	Ours   oursCmd   `cmd:"" hidden:"" help:"Answer requests for our operators."`
}

type timeCmd struct {
	Quick   bool     `help:"Two sizes, less than three minutes once everything is built."`
	Only    []string `placeholder:"NAME" help:"Peers to time, as the page names them; none: only ours (default: all)."`
	Ops     []string `enum:"${ops}" default:"${ops}" help:"Operations (${enum})."`
	Sizes   []string `placeholder:"N" help:"Points a cloud (1e3,1e4,1e5,1e6 and, of some, 1e7; with --quick 1e3,1e5)."`
	Dist    []string `placeholder:"NAME" help:"Distributions; by default those that suit each operation, and kitti."`
	Threads []int    `default:"1,2" help:"Numbers of threads of ours (${default}); the peers have one."`
	Seed    uint64   `default:"1" help:"Seed of the clouds (${default})."`
	Strict  bool     `help:"Fail when a peer cannot be built, or finds something else."`
	Results string   `placeholder:"DIR" help:"Folder of the result (benchmarks/results); -: none."`
	Scratch string   `placeholder:"DIR" help:"Folder for inputs and outputs (default: temporary)."`

	Limit   time.Duration `default:"10s" help:"Longest run of an entry that is begun (${default}; --quick: 1s)."`
	Timeout time.Duration `default:"25m" help:"Time for all measurements (${default}; --quick: 150s)."`
}

func main() {
	var c cli
	k := kong.Parse(&c, kong.Name("peers"), kong.Vars{"ops": "hull2d,maxima2d,maxima3d,hull3d,delaunay2d"},
		kong.Description("Times other libraries beside ours. benchmarks/peers/README.md says what is judged against "+
			"what."))
	rig.Main("peers", func(ctx context.Context) error {
		k.BindTo(ctx, (*context.Context)(nil))
		return k.Run()
	})
}

// Run builds, times, compares and reports.
func (c *timeCmd) Run(ctx context.Context) error {
	inputs, err := c.inputs()
	if err != nil {
		return err
	}
	scratch, clean, err := c.scratch()
	if err != nil {
		return err
	}
	defer clean()
	report := newReport(c.Seed)
	sources, err := c.sources(ctx, report)
	defer func() {
		for _, s := range sources {
			s.close()
		}
	}()
	if err != nil {
		return err
	}
	if err := c.measureAll(ctx, report, sources, inputs, scratch); err != nil {
		return err
	}
	folder, err := rig.ResultsFolder(c.Results, rig.KindOf(c.Quick || len(c.Only) > 0))
	if err != nil {
		return err
	}
	if err := report.write(folder, os.Stdout); err != nil {
		return err
	}
	if c.Strict && (len(report.LeftOut) > 0 || report.differ() > 0) {
		return fmt.Errorf("%d left out, %d results differ", len(report.LeftOut), report.differ())
	}
	return nil
}

func (c *timeCmd) scratch() (dir string, clean func(), err error) {
	if c.Scratch != "" {
		dir, err = filepath.Abs(c.Scratch)
		if err == nil {
			err = os.MkdirAll(dir, 0o777)
		}
		return dir, func() {}, err
	}
	dir, err = os.MkdirTemp("", "entropipe-peers-")
	return dir, func() { os.RemoveAll(dir) }, err
}

// sources builds the peers and starts them, ours first. What cannot be built or
// started goes to the report.
func (c *timeCmd) sources(ctx context.Context, report *report) (sources []*process, err error) {
	cache, err := cacheFolder()
	if err != nil {
		return nil, err
	}
	folder, err := peersFolder()
	if err != nil {
		return nil, err
	}
	wanted, err := c.wanted()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	begin := func(name string, command []string) {
		s := &process{command: command, limit: c.hardLimit()}
		if err := s.start(ctx); err != nil {
			report.leaveOut(name, "", fmt.Sprintf("does not start: %v", err))
			return
		}
		report.Versions[s.name()] = s.version()
		sources = append(sources, s)
	}
	begin(ours, []string{self, "ours", "--threads",
		strings.Trim(strings.ReplaceAll(fmt.Sprint(c.Threads), " ", ","), "[]")})
	built := map[string]error{}
	for _, p := range wanted {
		kit, source, cache := kits[p.kit], filepath.Join(folder, p.kit), filepath.Join(cache, p.kit)
		if _, done := built[p.kit]; !done {
			say("building %s", p.kit)
			built[p.kit] = kit.build(ctx, source, cache)
		}
		if err := built[p.kit]; err != nil {
			report.leaveOut(p.name, "", fmt.Sprintf("could not be built: %v", err))
			continue
		}
		begin(p.name, kit.command(source, cache, p.name))
	}
	return sources, context.Cause(ctx)
}

// hardLimit is how long any request may take: more than a run that was thought
// to stay below the limit.
func (c *timeCmd) hardLimit() time.Duration { return 4*c.limit() + 20*time.Second }

func (c *timeCmd) limit() time.Duration {
	if c.Quick {
		return min(c.Limit, time.Second)
	}
	return c.Limit
}

func (c *timeCmd) timeout() time.Duration {
	if c.Quick {
		return min(c.Timeout, 150*time.Second)
	}
	return c.Timeout
}

// renderCmd writes the page of a folder again.
type renderCmd struct {
	Results string `placeholder:"DIR" help:"Folder of peers.jsonl and peers.md (benchmarks/results)."`
}

// Run is the subcommand.
func (c *renderCmd) Run() error {
	folder, err := rig.ResultsFolder(c.Results, rig.FullRun)
	if err != nil {
		return err
	}
	return render(folder)
}

// say tells what goes on.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "peers: "+format+"\n", args...) }
