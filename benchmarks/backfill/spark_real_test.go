//go:build spark

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"entropipe/benchmarks/rig"
)

// sparkTest returns the Python of the suite, a folder with an archive of two drives, and the
// program.
func sparkTest(t *testing.T) (python, dir string, w *ways) {
	t.Helper()
	if python = os.Getenv("ENTROPIPE_PYTHON"); python == "" {
		t.Skip("ENTROPIPE_PYTHON names no Python with PySpark")
	}
	if _, err := exec.LookPath("java"); err != nil {
		t.Skip(err)
	}
	dir = t.TempDir()
	for _, drive := range []string{"drive-0000", "drive-0001"} {
		if err := (rig.Archive{Dir: filepath.Join(dir, "archive"), Seed: 1}).Drive(drive, 5, 3000); err != nil {
			t.Fatal(err)
		}
	}
	const patience = 10 * time.Minute // a Spark job takes ten seconds of two free processors
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, fmt.Errorf("no end after %v", patience))
	t.Cleanup(cancel)
	program, err := rig.Build(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return python, dir, &ways{ctx: ctx, program: program, core: -1}
}

// Law: a UDF with SciPy and moocore finds the same vertices and maxima. The command itself
// compares all ways before it times them.
func TestSparkFindsTheSame(t *testing.T) {
	python, dir, w := sparkTest(t)
	b := &bench{ways: *w, common: common{Scratch: t.TempDir()}}
	if err := (&sparkCmd{Python: python, Cores: 2}).same(b, filepath.Join(dir, "archive"), waySciPy); err != nil {
		t.Fatal(err)
	}
}

// interrupted plays the program: the first try of each shard ends as after a SIGTERM.
const interrupted = `#!/bin/sh
case "$*" in
*--shard*)
	shard=${*##*--shard }
	echo "$shard" >>tries
	[ "$(grep -cx "$shard" tries)" -gt 1 ] || { echo "interrupted" >&2; exit 75; } ;;
esac
exec PROGRAM "$@"
`

// The commands of the page run as they are typed. Interrupted shards are tried again, those
// with a mistake in their arguments are not.
func TestSparkPage(t *testing.T) {
	python, dir, w := sparkTest(t)
	root, err := rig.Root()
	if err != nil {
		t.Fatal(err)
	}
	stubs := t.TempDir()
	program := strings.ReplaceAll(interrupted, "PROGRAM", w.program.Path)
	if err := os.WriteFile(filepath.Join(stubs, "entropipe"), []byte(program), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "deploy"), filepath.Join(dir, "deploy")); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "schedulers", "spark.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```sh\n")
	block, _, found := strings.Cut(block, "```")
	if !found {
		t.Fatal("the page has no commands")
	}
	shell := func(script string) (string, error) {
		cmd := exec.CommandContext(w.ctx, "sh", "-ec", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), (&sparkCmd{Python: python, Cores: 1}).env()...)
		cmd.Env = append(cmd.Env, "PATH="+strings.Join([]string{stubs, os.Getenv("PATH"), filepath.Dir(python)},
			string(os.PathListSeparator)))
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	if said, err := shell(block); err != nil || !strings.Contains(said, "8 of 8 shards are done") {
		t.Fatalf("%v\n%s", err, said)
	}
	tries, err := os.ReadFile(filepath.Join(dir, "tries"))
	if err != nil || bytes.Count(tries, []byte("\n")) != 16 {
		t.Errorf("tries of 8 shards, each interrupted once: %v\n%s", err, tries)
	}
	alone, err := w.backfill(job{Source: []string{filepath.Join(dir, "archive")}}, filepath.Join(dir, "alone"))
	if err != nil {
		t.Fatalf("%v\n%s", err, alone.Said)
	}
	if _, err := rig.SameOutputs(filepath.Join(dir, "clouds"), filepath.Join(dir, "alone"), "topic"); err != nil {
		t.Error(err)
	}

	said, err := shell("echo 0/1 >tries; spark-submit --master 'local[1,4]' deploy/backfill/spark.py --shards 1 -- " +
		"archive --out ./clouds --no-such-flag")
	tries, failed := os.ReadFile(filepath.Join(dir, "tries"))
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 2 || !strings.Contains(said, "--no-such-flag") {
		t.Errorf("a mistake: %v\n%s", err, said)
	}
	if failed != nil || string(tries) != "0/1\n0/1\n" {
		t.Errorf("a mistake is tried more than once: %v %q", failed, tries)
	}
}
