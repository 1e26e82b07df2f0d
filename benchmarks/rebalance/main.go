// Command rebalance measures how long a partition pauses between two commits while the
// processes of an output come and go: 1, 2, 3, 4, 3, 2, 1 of them, each step after -step, under
// a steady load of LiDAR frames of 1.9 MB with delaunay2d.
//
//	go build -o /tmp/entropipe . && go run ./benchmarks/rebalance -program /tmp/entropipe
//	go run ./benchmarks/rebalance -program /tmp/entropipe -static   # with --group-instance
//
// A pause is the time between the manifests of two commits that follow each other. The aim is
// at most twice the roll age: a partition that commits at that age in peace loses less than one
// more to a drain, a rebalance and the start of its next owner. The program exits with 1 if a
// pause is longer, if a process does not drain, or if verify finds a fault.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"entropipe/ingest"
	"entropipe/ingest/broker"
)

// settings are the flags.
type settings struct {
	program  string
	roll     time.Duration
	step     time.Duration
	session  time.Duration
	points   int
	static   bool
	topic    string
	dir, out string
}

func main() {
	var s settings
	flag.StringVar(&s.program, "program", "entropipe", "program to measure")
	flag.DurationVar(&s.roll, "roll-age", 10*time.Second, "age at which a partition commits")
	flag.DurationVar(&s.step, "step", 30*time.Second, "time between two changes of the number of processes")
	flag.DurationVar(&s.session, "session-timeout", 10*time.Second, "with -static, how long a place is kept")
	flag.IntVar(&s.points, "points", 119_000, "points of a frame, of 16 bytes each")
	flag.BoolVar(&s.static, "static", false, "give each process a --group-instance")
	flag.Parse()
	s.topic = "points"
	if err := s.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "rebalance:", err)
		os.Exit(1)
	}
}

// run measures once and prints a table.
func (s *settings) run(ctx context.Context) (err error) {
	if s.dir, err = os.MkdirTemp("", "entropipe-rebalance-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
	s.out = filepath.Join(s.dir, "out")
	b, err := broker.Start(broker.Config{Listen: "127.0.0.1:0", Dir: filepath.Join(s.dir, "broker"), Partitions: 4})
	if err != nil {
		return err
	}
	defer b.Close()
	began := time.Now()
	changes, err := s.load(ctx, b.Addr())
	if err != nil {
		return err
	}
	return s.judge(began, changes)
}

// load produces frames while it scales.
func (s *settings) load(ctx context.Context, brokers string) (changes []change, err error) {
	var producers []*exec.Cmd
	defer func() {
		for _, p := range producers {
			err = errors.Join(err, drain(p))
		}
	}()
	for i := range 6 { // more than partitions: names choose them
		p := s.command("produce", "synthetic", "--points", strconv.Itoa(s.points), "--brokers", brokers,
			"--topic", s.topic, "--sequence", fmt.Sprint("drive-", i), "--rate", "1hz", "--frames", "1000000",
			"--log-level", "warn")
		p.Stderr = os.Stderr
		if err := p.Start(); err != nil {
			return nil, err
		}
		producers = append(producers, p)
	}
	for ctx.Err() == nil {
		if _, err := ingest.Describe(ctx, []string{brokers}, ingest.Security{}, s.topic); err == nil {
			break
		} else if !errors.Is(err, ingest.ErrNoTopic) {
			return nil, err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return s.scale(brokers)
}

// command is the program with arguments.
func (s *settings) command(args ...string) *exec.Cmd {
	c := exec.Command(s.program, args...)
	c.Dir = s.dir
	return c
}

// change is a moment at which the number of processes changed.
type change struct {
	at        time.Time
	processes int
}

// scale starts three further processes after the first and ends them again, newest first.
func (s *settings) scale(brokers string) (changes []change, err error) {
	var workers []*exec.Cmd
	defer func() {
		for _, w := range workers {
			err = errors.Join(err, drain(w))
		}
	}()
	for _, want := range []int{1, 2, 3, 4, 3, 2, 1} {
		if want < len(workers) {
			last := workers[len(workers)-1]
			workers = workers[:len(workers)-1]
			if err := drain(last); err != nil {
				return nil, err
			}
		} else {
			args := []string{"run", "--brokers", brokers, "--topic", s.topic, "--out", s.out, "--ops", "delaunay2d",
				"--workers", "1", "--roll-age", s.roll.String(), "--log-level", "warn"}
			if s.static {
				args = append(args, "--group-instance", fmt.Sprint("worker-", want), "--session-timeout",
					s.session.String())
			}
			w := s.command(args...)
			w.Stderr = os.Stderr
			if err := w.Start(); err != nil {
				return nil, err
			}
			workers = append(workers, w)
		}
		changes = append(changes, change{time.Now(), want})
		fmt.Fprintf(os.Stderr, "%d processes\n", want)
		time.Sleep(s.step)
	}
	return changes, nil
}

// drain ends a process as a scheduler does.
func drain(w *exec.Cmd) error {
	if err := w.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return w.Wait()
}

// judge reads when the manifests were written, has the output verified, and prints.
func (s *settings) judge(began time.Time, changes []change) error {
	commits, err := s.commits()
	if err != nil {
		return err
	}
	fmt.Printf("roll age %v, frames of %d bytes, delaunay2d, static %v\n\n", s.roll, s.points*16, s.static)
	fmt.Println("| partition | commits | largest pause, s | at, s | processes then |")
	fmt.Println("|---|---|---|---|---|")
	var longest time.Duration
	for _, partition := range slices.Sorted(maps.Keys(commits)) {
		times := commits[partition]
		var pause time.Duration
		var at time.Time
		for i := 1; i < len(times); i++ {
			if d := times[i].Sub(times[i-1]); d > pause {
				pause, at = d, times[i-1]
			}
		}
		longest = max(longest, pause)
		fmt.Printf("| %s | %d | %.1f | %.0f | %d |\n", partition, len(times), pause.Seconds(), at.Sub(began).Seconds(),
			processesAt(changes, at.Add(pause)))
	}
	fmt.Printf("\nlargest pause %.1f s, %.2f x roll age\n", longest.Seconds(), float64(longest)/float64(s.roll))
	verify := s.command("verify", s.out)
	verify.Stdout = os.Stdout
	if err := verify.Run(); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	if len(commits) == 0 || longest > 2*s.roll {
		return fmt.Errorf("%d partitions, the largest pause is %v: want at most %v", len(commits), longest, 2*s.roll)
	}
	return nil
}

// commits returns the times of the commits of each partition, in order.
func (s *settings) commits() (map[string][]time.Time, error) {
	names, err := filepath.Glob(filepath.Join(s.out, "_commits", "topics", s.topic, "*", "*.json"))
	if err != nil {
		return nil, err
	}
	commits := map[string][]time.Time{}
	for _, name := range slices.Sorted(slices.Values(names)) {
		if filepath.Base(name) == "base.json" {
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		partition := filepath.Base(filepath.Dir(name))
		commits[partition] = append(commits[partition], info.ModTime())
	}
	return commits, nil
}

// processesAt returns how many processes there were at a time.
func processesAt(changes []change, at time.Time) (processes int) {
	for _, c := range changes {
		if !c.at.After(at) {
			processes = c.processes
		}
	}
	return processes
}
