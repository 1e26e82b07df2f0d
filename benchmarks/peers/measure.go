package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// entry is one way of one library to do an operation on the input at hand.
type entry struct {
	source  *process
	op      string // as the program calls it
	variant string

	begun bool
	last  time.Duration // one run
	used  time.Duration
	ns    []int64 // time of each run
	count int
	err   error
	// agreement with ours; empty where nothing could be compared
	agreement string
}

func (e *entry) label() string {
	if e.variant == "" {
		return e.source.name()
	}
	return e.source.name() + " " + e.variant
}

// A turn lasts at least as long as aTurn, or one run; an entry has its turns
// until there have been rounds of them or its time is used up.
const aTurn = 20 * time.Millisecond

// patience is how often turns come, and the time that an entry may use of one
// input.
func (c *timeCmd) patience() (rounds int, most time.Duration) {
	if c.Quick {
		return 5, 500 * time.Millisecond
	}
	return 9, 3 * time.Second
}

// fromPoints is from how many points on more than one thread is worth a turn; a
// lattice of 1e5 has some fewer.
const fromPoints = 90_000

// measureAll measures one input after the other, until the time is over.
func (c *timeCmd) measureAll(ctx context.Context, report *report, sources []*process, inputs []input,
	scratch string) error {
	deadline := time.Now().Add(c.timeout())
	known := forecast{}
	for i, in := range inputs {
		if time.Now().After(deadline) {
			report.leaveOut("", in.String(), fmt.Sprintf("no time left after %v", c.timeout()))
			continue
		}
		say("%d/%d %v: %s", i+1, len(inputs), in, strings.Join(in.ops, ", "))
		cloud, err := in.make()
		if err != nil {
			return err
		}
		file, err := writeCloud(cloud, in.dims, filepath.Join(scratch, "cloud"))
		if err != nil {
			return err
		}
		loaded := map[*process]error{}
		for _, op := range in.ops {
			if err := c.measure(ctx, report, known, sources, in, op, file, loaded); err != nil {
				return err
			}
		}
		if err := os.Remove(file.path); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// measure times every entry of one operation on one input, and compares.
func (c *timeCmd) measure(ctx context.Context, report *report, known forecast, sources []*process, in input, op string,
	file *cloudFile, loaded map[*process]error) error {
	var all []*entry
	n := file.cloud.Len()
	for _, s := range sources {
		for _, name := range s.ops() {
			base, variant, _ := strings.Cut(name, ":")
			if base != op || strings.HasSuffix(variant, manyThreads) && n < fromPoints {
				continue
			}
			e := &entry{source: s, op: name, variant: variant}
			if would := known.of(e.label(), op, in.dist, n); would > c.limit() {
				report.leaveOut(e.label(), fmt.Sprintf("%s %v", op, in),
					fmt.Sprintf("would take some %v", would.Round(100*time.Millisecond)))
				continue
			}
			if _, done := loaded[s]; !done {
				loaded[s] = s.load(ctx, file)
			}
			e.err = loaded[s]
			all = append(all, e)
		}
	}
	rounds, most := c.patience()
	for range rounds {
		for _, e := range all {
			e.turn(ctx, most)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	compareAll(ctx, all, file, dimsOf(op), filepath.Dir(file.path))
	for _, e := range all {
		known.learn(e, op, in.dist, n)
		report.add(in, op, n, e)
	}
	return nil
}

// turn runs e a few times. The first turn is not counted, unless it takes all
// the time there is: memory grows in it, code is read.
func (e *entry) turn(ctx context.Context, most time.Duration) {
	if e.err != nil || e.used >= most {
		return
	}
	times := 1
	if e.begun {
		times = int(max(1, min(2000, aTurn/max(1, e.last))))
	}
	ns, count, err := e.source.run(ctx, e.op, times)
	if err != nil {
		e.err = err
		return
	}
	first := !e.begun
	e.begun, e.last, e.count = true, time.Duration(ns[len(ns)-1]), count
	if first && e.last < most {
		return
	}
	for _, t := range ns {
		e.ns = append(e.ns, t)
		e.used += time.Duration(t)
	}
}

// compareAll holds what every entry found against what ours did.
func compareAll(ctx context.Context, all []*entry, file *cloudFile, dims int, scratch string) {
	path := filepath.Join(scratch, "found")
	defer os.Remove(path) // it may never have been made
	fetch := func(e *entry) (r result, err error) {
		f, err := e.source.save(ctx, e.op, path)
		if err == nil {
			r, err = resultOf(f, file.cloud, dims)
		}
		return r, err
	}
	var we *entry
	var reference result
	for _, e := range all {
		if e.source.name() == ours && e.variant == "" && e.err == nil {
			if reference, e.err = fetch(e); e.err == nil {
				we = e
			}
		}
	}
	for _, e := range all {
		if we == nil || e == we || e.err != nil {
			continue
		}
		r, err := fetch(e)
		if err != nil {
			e.err = err
			continue
		}
		e.agreement = agreement(reference, r, we.count, e.count, file.cloud)
	}
}

func dimsOf(op string) int {
	if strings.HasSuffix(op, "3d") {
		return 3
	}
	return 2
}

// forecast holds, for every entry, operation and distribution, what the last
// size took.
type forecast map[[3]string]struct {
	points int
	took   time.Duration
}

// of is what a run over n points would take, 0 where nothing is known: that
// of the last size, and some more than its growth.
func (f forecast) of(label, op, dist string, n int) time.Duration {
	last, ok := f[[3]string{label, op, dist}]
	if !ok || n <= last.points {
		return 0
	}
	return time.Duration(1.2 * float64(last.took) * float64(n) / float64(last.points))
}

func (f forecast) learn(e *entry, op, dist string, n int) {
	last := f[[3]string{e.label(), op, dist}]
	last.points = n
	switch {
	case len(e.ns) > 0:
		last.took = e.last
	case errors.Is(e.err, errTooLong):
		last.took = e.source.limit
	default:
		return
	}
	f[[3]string{e.label(), op, dist}] = last
}
