package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"entropipe/benchmarks/rig"
)

// A peer is a library with the kit that its program comes from.
type peer struct{ name, kit string }

var peers = []peer{
	{"cgal", "cgal"}, {"scipy", "python"}, {"shapely", "python"}, {"moocore", "python"}, {"manifold", "python"},
	{"delaunator", "rust"}, {"spade", "rust"}, {"geo", "rust"}, {"parry", "rust"},
	{"quickhull", "rust"}, {"chull", "rust"},
	{"simplefeatures", "golang"}, {"s2", "golang"},
}

// wanted are the peers of --only.
func (c *timeCmd) wanted() ([]peer, error) {
	if len(c.Only) == 0 {
		return peers, nil
	}
	var some []peer
	for _, name := range c.Only {
		i := slices.IndexFunc(peers, func(p peer) bool { return p.name == name })
		switch {
		case i >= 0:
			some = append(some, peers[i])
		case name != "none":
			return nil, fmt.Errorf("%w: no peer is called %s", rig.ErrUsage, name)
		}
	}
	return some, nil
}

// A kit builds the programs of one language from the folder that holds their
// source and pinned versions, into a folder of the cache.
type kit struct {
	build   func(ctx context.Context, source, cache string) error
	command func(source, cache, library string) []string
}

var kits = map[string]kit{
	"cgal": {buildCGAL, func(_, cache, _ string) []string { return []string{filepath.Join(cache, "peer")} }},
	"python": {buildPython, func(source, cache, library string) []string {
		return []string{pythonOf(source, cache), filepath.Join(source, "peer.py"), library}
	}},
	"rust": {buildRust, func(_, cache, library string) []string {
		return []string{filepath.Join(cache, "release", "peer"), library}
	}},
	"golang": {buildGo, func(_, cache, library string) []string {
		return []string{filepath.Join(cache, "peer"), library}
	}},
}

// cacheFolder is where builds stay from one run to the next.
func cacheFolder() (string, error) {
	base, err := os.UserCacheDir() // $XDG_CACHE_HOME where it is set
	return filepath.Join(base, "entropipe-peers"), err
}

// peersFolder is this package's.
func peersFolder() (string, error) {
	root, err := rig.Root()
	return filepath.Join(root, "benchmarks", "peers"), err
}

// buildCGAL takes the headers of Debian's package. -frounding-math is what CGAL
// asks for; without -ffp-contract=off the compiler would fuse where the
// processor can, and change signs.
func buildCGAL(ctx context.Context, source, cache string) error {
	if _, err := os.Stat("/usr/include/CGAL/version.h"); err != nil {
		if err := install(ctx, "g++", "libcgal-dev"); err != nil {
			return err
		}
	}
	program := programOf(source, cache)
	if exists(program) {
		return nil
	}
	if err := os.MkdirAll(cache, 0o777); err != nil {
		return err
	}
	return command(ctx, 10*time.Minute, "", nil, "g++", "-std=c++17", "-O3", "-DNDEBUG", "-DCGAL_NDEBUG",
		"-march=native", "-ffp-contract=off", "-frounding-math",
		"-o", program, filepath.Join(source, "peer.cpp"), "-lgmp", "-lmpfr")
}

// programOf is the program of the source as it is now.
func programOf(source, cache string) string {
	return filepath.Join(cache, "peer-"+markOf(filepath.Join(source, "peer.cpp")))
}

// install installs Debian packages, which takes a system with apt and the
// rights of root.
func install(ctx context.Context, packages ...string) error {
	if _, err := exec.LookPath("apt-get"); err != nil || os.Getuid() != 0 {
		return fmt.Errorf("%s not installed, and no apt or no rights to install it", strings.Join(packages, ", "))
	}
	say("installing %s", strings.Join(packages, ", "))
	env := []string{"DEBIAN_FRONTEND=noninteractive"}
	return errors.Join(
		command(ctx, 3*time.Minute, "", env, "apt-get", "-qq", "update"),
		command(ctx, 10*time.Minute, "", env, "apt-get",
			append([]string{"-qq", "install", "-y", "--no-install-recommends"}, packages...)...))
}

// pythonOf is the interpreter of the environment with what is pinned now.
func pythonOf(source, cache string) string {
	return filepath.Join(cache, "venv-"+markOf(filepath.Join(source, "requirements.txt")), "bin", "python")
}

func buildPython(ctx context.Context, source, cache string) error {
	python := pythonOf(source, cache)
	venv := filepath.Dir(filepath.Dir(python))
	if exists(filepath.Join(venv, "complete")) {
		return nil
	}
	if err := os.RemoveAll(venv); err != nil {
		return err
	}
	if err := command(ctx, 2*time.Minute, "", nil, "python3", "-m", "venv", venv); err != nil {
		return err
	}
	if err := command(ctx, 10*time.Minute, "", nil, python, "-m", "pip", "install", "--quiet",
		"--disable-pip-version-check", "-r", filepath.Join(source, "requirements.txt")); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(venv, "complete"), nil, 0o666)
}

func buildRust(ctx context.Context, source, cache string) error {
	return command(ctx, 15*time.Minute, source, []string{"RUSTFLAGS=-C target-cpu=native"}, "cargo", "build", "--quiet",
		"--release", "--locked", "--target-dir", cache)
}

func buildGo(ctx context.Context, source, cache string) error {
	return command(ctx, 5*time.Minute, source, []string{"GOFLAGS=-mod=readonly"}, "go", "build", "-o",
		filepath.Join(cache, "peer"), ".")
}

// markOf names a file by its content. Of one that is not there nothing can be
// built either, which says so.
func markOf(path string) string {
	b, _ := os.ReadFile(path)
	return fmt.Sprintf("%x", sha256.Sum256(b))[:12]
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// command runs a program to its end; the error quotes the last it said.
func command(ctx context.Context, limit time.Duration, dir string, env []string, name string, args ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not ended after %v", limit))
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, append(os.Environ(), env...), 5*time.Second
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	return fmt.Errorf("%s: %w: %s", name, err, bytes.Join(lines[max(0, len(lines)-3):], []byte("; ")))
}
