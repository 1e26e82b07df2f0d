package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"entropipe/models/mat"
	"entropipe/preprocess/net"
	"entropipe/preprocess/train"
)

// entry is one way to do a case.
type entry struct {
	name string
	run  func(times int) ([]int64, error)
}

// measureThreads measures all cases with one number of threads.
func (c *cli) measureThreads(ctx context.Context, python string, made *prepared, threads int, r *report) error {
	p, version, err := startPeer(ctx, python, threads)
	if err != nil {
		return err
	}
	r.torch = version
	err = c.measureWith(ctx, p, made, threads, r)
	if closed := p.Close(); err == nil {
		err = closed
	}
	return err
}

func (c *cli) measureWith(ctx context.Context, p *peer, made *prepared, threads int, r *report) error {
	if _, err := p.ask(map[string]any{"do": "load", "folder": made.folder, "dims": 2}); err != nil {
		return err
	}
	// The rate that products reach in this run, with the shape of the largest layer.
	const rows, in, out = 100_000, 128, 256
	gemm := 2.0 * rows * in * out
	entries := []entry{{ours, ourProduct(rows, in, out, threads)},
		{"product", p.timed(map[string]any{"do": "mul", "m": rows, "k": in, "n": out})}}
	if err := c.take(ctx, r, row{Case: "product", Size: fmt.Sprintf("%d×%d×%d", rows, in, out), Threads: threads,
		Work: gemm}, entries); err != nil {
		return err
	}
	for _, n := range c.Sizes {
		if err := c.pass(ctx, p, made, n, threads, r); err != nil {
			return err
		}
	}
	return c.step(ctx, p, made, threads, r)
}

// Operations of a point in a pass, with the frame's features multiplied once;
// in a step three times as many, without those of the inputs' gradients.
const (
	passWork = 2.0 * (2*64 + 64*128 + 128*256 + 256*128 + 128*2)
	stepWork = 3*passWork - 2*(2*64)
)

func (c *cli) pass(ctx context.Context, p *peer, made *prepared, n, threads int, r *report) error {
	network, err := net.New(made.model)
	if err != nil {
		return err
	}
	points := made.points[:2*n]
	path := filepath.Join(made.folder, "some")
	if err := made.save("some", points); err != nil {
		return err
	}
	if _, err := p.ask(map[string]any{"do": "points", "path": path}); err != nil {
		return err
	}
	dst, runner := make([]float32, len(points)), net.Runner{Workers: threads}
	entries := []entry{{ours, repeated(func() error { runner.Displace(dst, points, network); return nil })}}
	runner.Displace(dst, points, network)
	for _, form := range c.Forms {
		result := filepath.Join(made.folder, "result")
		if _, err := p.ask(map[string]any{"do": "displace", "form": form, "times": 1, "save": result}); err != nil {
			return fmt.Errorf("%s: %w", form, err)
		}
		if err := same(result, dst); err != nil {
			return fmt.Errorf("%s, %d points: %w", form, n, err)
		}
		entries = append(entries, entry{form, p.timed(map[string]any{"do": "displace", "form": form})})
	}
	return c.take(ctx, r, row{Case: "pass", Size: fmt.Sprintf("%d points", n), Threads: threads,
		Work: passWork * float64(n)}, entries)
}

// same compares displacements, in units of sigma.
func same(path string, want []float32) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	got := make([]float32, len(want))
	if err := binary.Read(f, binary.LittleEndian, got); err != nil {
		return err
	}
	for i, v := range got {
		if e := math.Abs(float64(v - want[i])); !(e < 1e-4) {
			return fmt.Errorf("displacement %d is %v in PyTorch, %v here", i, v, want[i])
		}
	}
	return nil
}

func (c *cli) step(ctx context.Context, p *peer, made *prepared, threads int, r *report) error {
	got, err := p.ask(map[string]any{"do": "case", "folder": made.folder, "clouds": stepClouds, "points": stepPoints,
		"tau": tau, "lambda": lambda, "reach": reach})
	if err != nil {
		return err
	}
	for b, f := range got.F {
		if !(math.Abs(f-made.f[b]) < 1e-3*(1+made.f[b])) {
			return fmt.Errorf("cloud %d has F %v in PyTorch, %v here", b, f, made.f[b])
		}
	}
	t, err := train.New(settings(1, threads), made.data)
	if err != nil {
		return err
	}
	say("warming up: the regulariser has its weight after a fifth of the steps")
	for 4*t.Steps() < t.Config().Steps {
		if err := t.Step(); err != nil {
			return err
		}
	}
	entries := []entry{{ours, repeated(t.Step)}}
	for _, form := range c.Forms {
		entries = append(entries, entry{form, p.timed(map[string]any{"do": "step", "form": form})})
	}
	return c.take(ctx, r, row{Case: "step", Size: fmt.Sprintf("%d×%d points, F of hull2d", stepClouds, stepPoints),
		Threads: threads, Work: stepWork * stepClouds * stepPoints}, entries)
}

// take lets the entries of a case run in turns, and adds the row to the report.
func (c *cli) take(ctx context.Context, r *report, w row, entries []entry) error {
	say("%s, %s, %d threads", w.Case, w.Size, w.Threads)
	all := map[string][]int64{}
	times := make([]int, len(entries))
	for k, e := range entries {
		for range 2 { // the first run may compile
			ns, err := e.run(1)
			if err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
			times[k] = max(1, int(c.Turn.Nanoseconds()/ns[0]))
		}
	}
	for range c.Rounds {
		for k, e := range entries {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			ns, err := e.run(times[k])
			if err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
			all[e.name] = append(all[e.name], ns...)
		}
	}
	r.add(w, all)
	return nil
}

const ours = "entropipe"

// repeated times calls of f.
func repeated(f func() error) func(times int) ([]int64, error) {
	return func(times int) (ns []int64, err error) {
		for range times {
			start := time.Now()
			if err := f(); err != nil {
				return nil, err
			}
			ns = append(ns, time.Since(start).Nanoseconds())
		}
		return ns, nil
	}
}

// timed asks the peer for times.
func (p *peer) timed(request map[string]any) func(times int) ([]int64, error) {
	return func(times int) ([]int64, error) {
		request["times"] = times
		a, err := p.ask(request)
		return a.Ns, err
	}
}

func ourProduct(rows, in, out, threads int) func(times int) ([]int64, error) {
	b, a, dst := make([]float32, in*out), make([]float32, rows*in), make([]float32, rows*out)
	for i := range b {
		b[i] = float32(i%7) / 7
	}
	for i := range a {
		a[i] = float32(i%5) / 5
	}
	var w mat.Weights
	w.Pack(mat.Of(in, out, b))
	return repeated(func() error {
		w.Mul(mat.Of(rows, out, dst), mat.Of(rows, in, a), mat.Epilogue{}, threads)
		return nil
	})
}
