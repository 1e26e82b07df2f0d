package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"entropipe/benchmarks/rig"
)

// job is what both ways do: an archive, and what is computed of it.
type job struct {
	Source []string // words after produce or backfill: format, paths, flags of sources
	Run    []string // flags of run and backfill: operators, tables, stage, model
}

// ways takes an archive to tables, through a broker or past it.
type ways struct {
	ctx     context.Context
	program rig.Program
	env     []string // every measured process has it
	core    int      // processor of every process that is measured; negative: any
	topics  int      // topics made so far
}

// turn is what the processes of one way cost.
type turn struct {
	Wall   time.Duration // from the start of its first process to the end of its last
	CPU    time.Duration // all its processes
	MaxRSS int64         // largest process
	Said   string        // the last lines of the logs
}

// add adds a process that ran after the others.
func (t *turn) add(exit rig.Exit, said string) {
	t.Wall += exit.Wall
	t.CPU += exit.CPU
	t.MaxRSS = max(t.MaxRSS, exit.MaxRSS)
	t.Said += said + "\n"
}

// begin starts a process of a way.
func (w *ways) begin(args ...string) (p *rig.Process, err error) {
	err = rig.OnCore(w.core, func() (err error) {
		p, err = rig.Start(rig.Spec{Path: w.program.Path, Args: args, Env: w.env})
		return err
	})
	return p, err
}

// process runs a process of a way to its end, and adds it to the turn.
func (w *ways) process(t *turn, args ...string) error {
	p, err := w.begin(args...)
	if err != nil {
		return err
	}
	select {
	case <-p.Done(): // its last lines are gone after Wait
	case <-w.ctx.Done():
	}
	said := p.Tail(40)
	exit, err := p.Wait(w.ctx)
	t.add(exit, said)
	return err
}

// newTopic names a topic that no other call names.
func (w *ways) newTopic() string {
	w.topics++
	return fmt.Sprintf("way-%d", w.topics)
}

// produce sends an archive to a new topic of so many partitions.
func (w *ways) produce(t *turn, broker string, j job, partitions int) (topic string, err error) {
	topic = w.newTopic()
	args := slices.Concat([]string{"produce"}, j.Source,
		[]string{"--rate", "max", "--brokers", broker, "--topic", topic,
			"--partitions", fmt.Sprint(partitions)})
	return topic, w.process(t, args...)
}

// run takes what a topic holds to an output.
func (w *ways) run(t *turn, broker string, j job, topic, out string) error {
	return w.process(t, slices.Concat([]string{"run", "--brokers", broker, "--topic", topic, "--out",
		out, "--until-end",
		"--roll-age", "0"}, j.Run)...)
}

// throughBroker sends an archive to a topic and takes it from there to an output, one after
// the other.
func (w *ways) throughBroker(broker string, j job, out string) (t turn, err error) {
	topic, err := w.produce(&t, broker, j, 4)
	if err != nil {
		return t, err
	}
	return t, w.run(&t, broker, j, topic, out)
}

// backfillArgs is the command line of a process that takes an archive to an output.
func (j job) backfillArgs(out string, more ...string) []string {
	return slices.Concat([]string{"backfill"}, j.Source, []string{"--out", out}, j.Run, more)
}

// backfill takes an archive to an output without a broker, in processes that run side by side,
// one for each list of flags; without a list in one.
func (w *ways) backfill(j job, out string, each ...[]string) (t turn, err error) {
	if len(each) == 0 {
		each = [][]string{nil}
	}
	begun := time.Now()
	crew := make([]*rig.Process, len(each))
	var errs []error
	for i, more := range each {
		if crew[i], err = w.begin(j.backfillArgs(out, more...)...); err != nil {
			errs = append(errs, err)
			break
		}
	}
	for _, p := range crew {
		if p == nil {
			continue
		}
		select {
		case <-p.Done():
		case <-w.ctx.Done():
		}
		said := p.Tail(40)
		exit, err := p.Wait(w.ctx)
		t.add(exit, said)
		errs = append(errs, err)
	}
	t.Wall = time.Since(begun)
	return t, errors.Join(errs...)
}

// verify has the program check an output, and finds files that nobody wants.
func (w *ways) verify(out string) error {
	if _, said, err := w.program.Run(w.ctx, "verify", out); err != nil {
		return fmt.Errorf("verify %s: %w\n%s", out, err, said)
	}
	strays, err := rig.Strays(out)
	if err == nil && len(strays) > 0 {
		err = fmt.Errorf("%s has %d files that nobody wants: %s", out, len(strays), strays[:min(len(strays), 5)])
	}
	return err
}

// linked makes folder of so many scans out of files, by hard links, or by copies where these
// cannot be made: scan i is file i of the files, repeated.
func linked(folder string, files []string, scans int) error {
	if len(files) == 0 {
		return errors.New("no scans")
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	for i := range scans {
		from, to := files[i%len(files)], filepath.Join(folder, fmt.Sprintf("%010d.bin", i))
		if os.Link(from, to) == nil {
			continue
		}
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(to, data, 0o666); err != nil {
			return err
		}
	}
	return nil
}
