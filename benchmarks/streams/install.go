package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"entropipe/benchmarks/rig"
)

// kit is what the jobs of one engine need: a Python with its packages, and jars.
type kit struct{ python, jars string }

// bin returns the path of a program of the kit's Python.
func (k kit) bin(name string) string { return filepath.Join(filepath.Dir(k.python), name) }

// folderOf is where this package's files are.
func folderOf(parts ...string) (string, error) {
	root, err := rig.Root()
	return filepath.Join(append([]string{root, "benchmarks", "streams"}, parts...)...), err
}

// installed returns the kit of an engine. What is missing comes from the registries of pip and
// Maven into the cache of continuous integration, which keeps it from one run to the next.
func installed(ctx context.Context, engine string) (kit, error) {
	source, err := folderOf(engine)
	if err != nil {
		return kit{}, err
	}
	base, err := os.UserCacheDir() // $XDG_CACHE_HOME where it is set
	if err != nil {
		return kit{}, err
	}
	cache := filepath.Join(base, "entropipe-ci")
	venv := "" // Kafka Connect needs none
	if engine != engineIceberg {
		venv, err = folderFor(ctx, cache, filepath.Join(source, "requirements.txt"), "python", makePython)
	}
	if err != nil {
		return kit{}, err
	}
	jars, err := folderFor(ctx, cache, filepath.Join(source, "pom.xml"), "jars", makeJars)
	k := kit{filepath.Join(venv, "bin", "python"), jars}
	if err == nil && engine == engineFlink {
		err = compileJava(ctx, filepath.Join(source, "PointsOf.java"), k)
	}
	return k, err
}

// folderFor returns the folder of the cache that make fills by a file, named by the file's
// content. A folder counts once it is complete.
func folderFor(ctx context.Context, cache, file, kind string,
	make func(ctx context.Context, file, folder string) error) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	engine := filepath.Base(filepath.Dir(file))
	sum := sha256.Sum256(text)
	folder := filepath.Join(cache, fmt.Sprintf("streams-%s-%s-%x", engine, kind, sum[:6]))
	complete := filepath.Join(folder, "complete")
	if _, err := os.Stat(complete); err == nil {
		return folder, nil
	}
	say("installing %s of %s", kind, engine)
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(cache, 0o777), make(ctx, file, folder)); err != nil {
		return "", err
	}
	return folder, os.WriteFile(complete, nil, 0o666)
}

func makePython(ctx context.Context, requirements, folder string) error {
	if err := command(ctx, 2*time.Minute, "python3", "-m", "venv", folder); err != nil {
		return err
	}
	return command(ctx, 20*time.Minute, filepath.Join(folder, "bin", "python"), "-m", "pip", "install", "--quiet",
		"--disable-pip-version-check", "-r", requirements)
}

func makeJars(ctx context.Context, pom, folder string) error {
	return command(ctx, 10*time.Minute, "mvn", "--batch-mode", "--quiet", "-Dstyle.color=never", "--file", pom,
		"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+folder)
}

// compileJava compiles the UDF against Flink's jars into a jar beside them, if it is not there
// yet.
func compileJava(ctx context.Context, source string, k kit) error {
	text, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	jar := filepath.Join(k.jars, fmt.Sprintf("udf-%x.jar", sum[:6]))
	if _, err := os.Stat(jar); err == nil {
		return nil
	}
	old, err := filepath.Glob(filepath.Join(k.jars, "udf-*.jar"))
	if err != nil {
		return err
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	libraries, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(k.python)), "lib", "python3*",
		"site-packages", "pyflink", "lib"))
	if err != nil || len(libraries) != 1 {
		return fmt.Errorf("%s: Flink's jars are not there: %w", k.python, errors.Join(err, os.ErrNotExist))
	}
	classes, err := os.MkdirTemp("", "entropipe-classes-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(classes)
	if err := command(ctx, 2*time.Minute, "javac", "-nowarn", "-d", classes, "-cp",
		filepath.Join(libraries[0], "*")+":"+filepath.Join(k.jars, "*"), source); err != nil {
		return fmt.Errorf("%w (Debian: default-jdk-headless)", err)
	}
	part := jar + ".part"
	if err := command(ctx, time.Minute, "jar", "--create", "--file", part, "-C", classes, "."); err != nil {
		return err
	}
	return os.Rename(part, jar)
}

// command runs a program to its end; the error quotes the last that it said.
func command(ctx context.Context, limit time.Duration, name string, args ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not ended after %v", limit))
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return fmt.Errorf("%s: %w: %s", name, err, strings.Join(lines[max(0, len(lines)-5):], "; "))
}
