// Command network times EntropyNet beside PyTorch: a pass over the points of
// one frame, and a step of training with F as loss, in all forms that a user
// of PyTorch would try, on the same numbers, in turns, in one run. It makes an
// environment with the pinned versions first, and checks that both compute the
// same.
//
// Words: a case is one amount of work; an entry is one way to do it, ours or a
// form of peer.py; a turn is one request to run an entry a few times. Ratios
// are ours over the fastest form of PyTorch.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"entropipe/benchmarks/rig"
)

type cli struct {
	Quick   bool          `help:"Up to 1e5 points and few turns."`
	Threads []int         `default:"1,2" help:"Numbers of threads, of both sides (${default})."`
	Forms   []string      `default:"split,tiled,split-compiled,tiled-compiled" help:"Forms in PyTorch (${default})."`
	Sizes   []int         `default:"10000,100000,1000000" help:"Points of a pass (${default}; --quick: to 100000)."`
	Turn    time.Duration `default:"400ms" help:"Time of a turn, at least one run (${default})."`
	Rounds  int           `default:"5" help:"Turns of each entry (${default}; with --quick 3)."`
	Python  string        `placeholder:"PATH" help:"Python with torch (default: set up in the user's cache)."`
	Results string        `placeholder:"DIR" help:"Folder of the result (benchmarks/results; --quick: none); -: none."`
	Render  bool          `help:"Measure nothing; write the page again from network.jsonl."`
	Seed    uint64        `default:"1" help:"Seed of points and weights (${default})."`
}

func main() {
	var c cli
	kong.Parse(&c, kong.Name("network"), kong.Description("Times EntropyNet and its training beside PyTorch."))
	rig.Main("network", c.run)
}

func (c *cli) run(ctx context.Context) error {
	results, err := rig.ResultsFolder(c.Results, rig.KindOf(c.Quick))
	if err != nil {
		return err
	}
	r := newReport(results)
	if c.Render {
		if err := r.read(); err != nil {
			return err
		}
		return r.write(os.Stdout)
	}
	if c.Quick {
		c.Rounds = min(c.Rounds, 3)
		c.Sizes = slices.DeleteFunc(c.Sizes, func(n int) bool { return n > 100_000 })
	}
	python, err := c.python(ctx)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "entropipe-network-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	made, err := c.prepare(folder)
	if err != nil {
		return err
	}
	for _, threads := range c.Threads {
		if err := c.measureThreads(ctx, python, made, threads, r); err != nil {
			return err
		}
	}
	return r.write(os.Stdout)
}

// python is the interpreter to use, made if there is none.
func (c *cli) python(ctx context.Context) (string, error) {
	if c.Python != "" {
		return c.Python, nil
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	mark := sha256.Sum256([]byte(requirements))
	venv := filepath.Join(base, "entropipe-network", "venv-"+hex.EncodeToString(mark[:6]))
	python := filepath.Join(venv, "bin", "python")
	if _, err := os.Stat(filepath.Join(venv, "complete")); err == nil {
		return python, nil
	}
	say("setting up PyTorch in %s", venv)
	list := filepath.Join(venv, "requirements.txt")
	return python, errors.Join(
		os.RemoveAll(venv),
		command(ctx, "python3", "-m", "venv", venv),
		os.WriteFile(list, []byte(requirements), 0o666),
		command(ctx, python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", list),
		os.WriteFile(filepath.Join(venv, "complete"), nil, 0o666))
}

func command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// say tells what goes on.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "network: "+format+"\n", args...) }
