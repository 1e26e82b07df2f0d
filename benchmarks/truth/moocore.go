package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"entropipe/algos/geom"
	"entropipe/benchmarks/rig"
)

// moocoreName is the strongest peer for maxima in space that benchmarks/peers knows.
const moocoreName = "moocore"

// moocore is that library (Pareto fronts, in C), behind the program of benchmarks/peers,
// which times its call alone: neither the reading of a cloud nor the making of indices.
type moocore struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
	version string
	folder  string
}

var errNoMoocore = errors.New("moocore is not built: go run ./benchmarks/peers --only moocore builds it")

// startMoocore starts the program with the interpreter that benchmarks/peers has built.
func startMoocore(ctx context.Context) (*moocore, error) {
	root, errRoot := rig.Root()
	caches, errCaches := os.UserCacheDir()
	if err := errors.Join(errRoot, errCaches); err != nil {
		return nil, err
	}
	built, err := filepath.Glob(filepath.Join(caches, "entropipe-peers", "python", "venv-*", "complete"))
	if err != nil {
		return nil, err
	}
	if len(built) == 0 {
		return nil, errNoMoocore
	}
	python := filepath.Join(filepath.Dir(slices.MaxFunc(built, newer)), "bin", "python")
	m := &moocore{cmd: exec.CommandContext(ctx, python, filepath.Join(root, "benchmarks", "peers", "python", "peer.py"),
		"moocore")}
	m.cmd.Env = append(m.cmd.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1")
	if m.in, err = m.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if m.folder, err = os.MkdirTemp("", "entropipe-moocore-"); err != nil {
		return nil, err
	}
	if err := m.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(m.folder))
	}
	m.out = bufio.NewScanner(out)
	var hello struct{ Version string }
	if err := m.answer(&hello); err != nil {
		m.close()
		return nil, fmt.Errorf("moocore: %w", err)
	}
	m.version = hello.Version
	return m, nil
}

// newer compares files by their time.
func newer(a, b string) int {
	of := func(path string) int64 {
		if info, err := os.Stat(path); err == nil {
			return info.ModTime().UnixNano()
		}
		return 0
	}
	return cmp.Compare(of(a), of(b))
}

// answer reads a line of the program.
func (m *moocore) answer(to any) error {
	if !m.out.Scan() {
		return errors.Join(io.ErrUnexpectedEOF, m.out.Err())
	}
	var failure struct{ Error string }
	if err := json.Unmarshal(m.out.Bytes(), &failure); err != nil {
		return err
	}
	if failure.Error != "" {
		return errors.New(failure.Error)
	}
	return json.Unmarshal(m.out.Bytes(), to)
}

// maxima3D returns the least time in milliseconds of repeats calls on a frame, after one
// that is not counted, and the number of maxima.
func (m *moocore) maxima3D(c geom.Cloud[float32], repeats int) (ms float64, count int, err error) {
	var b []byte
	for i := range c.X {
		for _, v := range []float32{c.X[i], c.Y[i], c.Z[i]} {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(v)))
		}
	}
	path := filepath.Join(m.folder, "cloud")
	if err := os.WriteFile(path, b, 0o666); err != nil {
		return 0, 0, err
	}
	var loaded struct{ Points int }
	var ran struct {
		Ns    []int64
		Count int
	}
	if _, err := fmt.Fprintf(m.in, "load 3 %s\nrun maxima3d %d\n", path, repeats+1); err != nil {
		return 0, 0, err
	}
	if err := errors.Join(m.answer(&loaded), m.answer(&ran)); err != nil {
		return 0, 0, err
	}
	if loaded.Points != c.Len() || len(ran.Ns) != repeats+1 {
		return 0, 0, fmt.Errorf("moocore read %d points of %d and ran %d times of %d", loaded.Points, c.Len(),
			len(ran.Ns), repeats+1)
	}
	return float64(slices.Min(ran.Ns[1:])) / 1e6, ran.Count, nil
}

// close ends the program.
func (m *moocore) close() error {
	return errors.Join(m.in.Close(), m.cmd.Wait(), os.RemoveAll(m.folder))
}
