// Package rig starts what a chaos run or a measurement needs, each as a process
// of its own: the program, an embedded or a real broker, topics in it.
//
// It treats the program as a black box: what it knows are the command line, the
// exit status, and the numbers that the kernel keeps of a process. It is no test
// framework and decides nothing; its callers do.
//
// Vocabulary: a program is the built binary; a process is one run of it, or of a
// peer; a broker is embedded (`entropipe broker`) or real (Apache Kafka, through
// two scripts); to kill is kill -9, to stop is to ask.
//
// Every child ends with its parent, whatever ends the parent (on Linux), and is
// addressed by its own pid alone.
package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Program is a built entropipe binary.
type Program struct{ Path string }

// Build compiles the program that this module holds into dir. The variable
// ENTROPIPE_BIN names a binary to take instead.
func Build(ctx context.Context, dir string) (Program, error) {
	if path := os.Getenv("ENTROPIPE_BIN"); path != "" {
		path, err := filepath.Abs(path)
		return Program{path}, err
	}
	root, err := Root()
	if err != nil {
		return Program{}, err
	}
	p := Program{filepath.Join(dir, "entropipe")}
	out, err := buildWith(ctx, root, p.Path, "auto")
	if err != nil && strings.Contains(out, "obtaining VCS status") {
		out, err = buildWith(ctx, root, p.Path, "false") // git tells no revision of a checkout that another user owns
	}
	if err != nil {
		return p, fmt.Errorf("go build in %s: %w\n%s", root, err, out)
	}
	return p, nil
}

func buildWith(ctx context.Context, root, path, vcs string) (said string, err error) {
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs="+vcs, "-o", path, ".")
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	return string(out), err
}

// Root returns the folder of the module: the nearest one above the working
// directory that holds a go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("no go.mod at or above the working directory")
		}
		dir = up
	}
}

// TestData returns the path of a part of the real data: below the folder that
// ENTROPIPE_TESTDATA names, or else ../shared/data beside the module.
func TestData(parts ...string) (string, error) {
	base := os.Getenv("ENTROPIPE_TESTDATA")
	if base == "" {
		root, err := Root()
		if err != nil {
			return "", fmt.Errorf("real data: ENTROPIPE_TESTDATA is not set, and there is %w", err)
		}
		base = filepath.Join(root, "..", "shared", "data")
	}
	path := filepath.Join(append([]string{base}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("real data: %w (set ENTROPIPE_TESTDATA)", err)
	}
	return path, nil
}
