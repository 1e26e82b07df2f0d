//go:build chaos

package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"entropipe/benchmarks/rig"
)

var (
	backfillKills = flag.Int("chaos.backfill-kills", 40, "processes of a backfill to kill")
	backfillScale = flag.Int("chaos.backfill-scale", 2, "size of the archive: some 300 items each")
)

const backfillCrew = 4

// backfillRun takes a mixed archive to one output after the other, in four processes that are
// killed at random moments, until as many were killed as asked for. Every output begins with
// processes that race for the plan. In every second one the processes are shards, each of them
// twice; in the others they share all lanes.
type backfillRun struct {
	t        *testing.T
	dir      string
	program  rig.Program
	want     string   // output that one process made in peace
	manifest int      // manifests of it
	source   []string // words after backfill

	mu                           sync.Mutex
	rng                          *rand.Rand
	planned, resumed, after, all int // kills before the plan, after the first manifest, after the last one
	here                         int // kills at this output
}

// TestBackfillSurvivesKills: nothing is missing, nothing is there twice, no file is left over.
func TestBackfillSurvivesKills(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	limit := 4*time.Minute + time.Duration(*backfillKills)*3*time.Second
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, fmt.Errorf("the run took longer than %v", limit))
	defer cancel()
	r := newBackfillRun(ctx, t)
	outputs := 0
	for ; r.all < *backfillKills && !t.Failed(); outputs++ {
		out := filepath.Join(r.dir, fmt.Sprintf("out-%d", outputs))
		r.crew(ctx, out, 1+outputs%2)
		r.judge(ctx, out)
		if outputs == 0 && !t.Failed() {
			r.damage(ctx, out)
		}
		if !t.Failed() {
			os.RemoveAll(out)
		}
	}
	fmt.Printf("chaos of a backfill: seed %d, %d outputs, %d processes, kills %d: %d before there was a plan, %d "+
		"between the "+
		"first manifest and the last, %d when all lanes were done; %d manifests an output\n", *seed,
		outputs, backfillCrew,
		r.all, r.planned, r.resumed, r.after, r.manifest)
	if r.resumed == 0 {
		t.Error("no kill met a process at work")
	}
}

func newBackfillRun(ctx context.Context, t *testing.T) *backfillRun {
	dir, err := os.MkdirTemp("", "entropipe-chaos-")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d, folder %s", *seed, dir)
	t.Cleanup(func() {
		if t.Failed() || *keep {
			fmt.Printf("chaos: seed %d, outputs and logs kept in %s\n", *seed, dir)
			return
		}
		os.RemoveAll(dir)
	})
	r := &backfillRun{t: t, dir: dir, rng: rand.New(rand.NewPCG(*seed, 2)),
		want: filepath.Join(dir, "want")}
	if r.program, err = rig.Build(ctx, dir); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(dir, "archive")
	if err := (rig.Archive{Dir: archive, Seed: *seed}).Mixed(*backfillScale); err != nil {
		t.Fatal(err)
	}
	r.source = []string{"files", archive, "--skip-bad", "--ops", "hull2d,maxima2d,delaunay2d", "--roll-records", "15",
		"--log-level", "warn"}
	if _, _, err := r.program.Run(ctx, r.args(r.want)...); err != nil {
		t.Fatalf("in peace: %v", err)
	}
	if _, said, err := r.program.Run(ctx, "verify", r.want); err != nil {
		t.Fatalf("verify: %v\n%s", err, said)
	}
	manifests, err := rig.Manifests(r.want)
	if r.manifest = len(manifests); err != nil || r.manifest == 0 {
		t.Fatalf("%d manifests, %v", r.manifest, err)
	}
	return r
}

func (r *backfillRun) args(out string, more ...string) []string {
	return append(append([]string{"backfill"}, r.source...), append(more, "--out", out)...)
}

// crew has four processes work on an output until one of each shard says that all is done.
func (r *backfillRun) crew(ctx context.Context, out string, shards int) {
	r.here = 0
	done, stop := make([]context.Context, shards), make([]context.CancelFunc, shards)
	for i := range done {
		done[i], stop[i] = context.WithCancel(ctx)
		defer stop[i]()
	}
	var crew sync.WaitGroup
	for i := range backfillCrew {
		var more []string
		shard := i % shards
		if shards > 1 {
			more = []string{"--shard", fmt.Sprintf("%d/%d", shard, shards)}
		}
		crew.Go(func() {
			defer stop[shard]()
			r.place(done[shard], out, i, more)
		})
	}
	crew.Wait()
	if ctx.Err() != nil {
		r.t.Fatal(context.Cause(ctx))
	}
}

// place keeps one place of the crew filled until a process there ends by itself, or done ends.
func (r *backfillRun) place(done context.Context, out string, number int, more []string) {
	log := fmt.Sprintf("%s-%d.log", out, number)
	for done.Err() == nil {
		p, err := rig.Start(rig.Spec{Path: r.program.Path, Args: r.args(out, more...), Log: log})
		if err != nil {
			r.t.Error(err)
			return
		}
		life, work := r.life()
		if ended := outlives(done, p, life, out, work); ended {
			if _, err := p.Wait(done); err != nil {
				r.t.Errorf("a process ended by itself: %v", err)
			}
			return
		}
		p.Kill()
		r.killed(out)
	}
}

// killsOfOutput is how many processes are killed at one output, about.
const killsOfOutput = 25

// life draws how long a process lives, and how many manifests the output has then at least:
// most processes begin to work, some do not get so far. Without kills left, it is as long as
// it takes.
func (r *backfillRun) life() (life time.Duration, work int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all >= *backfillKills || r.here >= killsOfOutput {
		return time.Hour, 0
	}
	if r.rng.IntN(4) == 0 {
		return time.Duration(r.rng.Int64N(int64(80 * time.Millisecond))), 0
	}
	return time.Duration(r.rng.Int64N(int64(500 * time.Millisecond))), r.rng.IntN(r.manifest)
}

// outlives waits until a process has lived for so long and an output has so many manifests. It
// returns true when the process ends before by itself, and false when done ends before.
func outlives(done context.Context, p *rig.Process, life time.Duration, out string, manifests int) (ended bool) {
	begun := time.Now()
	for time.Since(begun) < life || manifestsOf(out) < manifests {
		select {
		case <-p.Done():
			return true
		case <-done.Done():
			return false
		case <-time.After(2 * time.Millisecond):
		}
	}
	return false
}

// manifestsOf counts the manifests of an output, which need not exist.
func manifestsOf(out string) int {
	// The pattern is a valid one.
	found, _ := filepath.Glob(filepath.Join(out, "_commits", "topics", "*", "*", "0*.json"))
	return len(found)
}

// killed counts a kill by what the output held at that moment.
func (r *backfillRun) killed(out string) {
	plans, _ := filepath.Glob(filepath.Join(out, "_commits", "topics", "*", "plan.json")) // the pattern is a valid one
	manifests := manifestsOf(out)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all++
	r.here++
	switch {
	case len(plans) == 0:
		r.planned++
	case manifests >= r.manifest:
		r.after++
	case manifests > 0:
		r.resumed++
	}
}

// judge has one process look once more, and compares the output with that made in peace: rows,
// manifests, files.
func (r *backfillRun) judge(ctx context.Context, out string) {
	if _, _, err := r.program.Run(ctx, r.args(out)...); err != nil {
		r.t.Errorf("the last process: %v", err)
	}
	found, err := rig.CompareOutputs(out, r.want)
	if err == nil {
		err = found.Err()
	}
	if err := errors.Join(err, rig.SameManifests(out, r.want)); err != nil {
		r.t.Error(err)
	}
	if strays, err := rig.Strays(out); err != nil || len(strays) > 0 {
		r.t.Errorf("%d stray files, %v:\n%s", len(strays), err, strings.Join(strays, "\n"))
	}
	if _, said, err := r.program.Run(ctx, "verify", out); err != nil {
		r.t.Errorf("verify: %v\n%s", err, said)
	}
}

// damage removes one file of a good output and adds another one twice: both judges must see
// each.
func (r *backfillRun) damage(ctx context.Context, out string) {
	files, err := filepath.Glob(filepath.Join(out, "frames", "*", "*", "*.parquet"))
	if err != nil || len(files) < 2 {
		r.t.Fatalf("%d files of frames, %v", len(files), err)
	}
	victim, aside := files[r.rng.IntN(len(files))], filepath.Join(r.dir, "aside")
	if err := os.Rename(victim, aside); err != nil {
		r.t.Fatal(err)
	}
	r.mustSee(ctx, out, "without "+victim, func(c *rig.Comparison) bool { return c.Missing > 0 && c.Doubled == 0 })
	again := filepath.Join(filepath.Dir(victim), "again-"+filepath.Base(victim))
	if err := errors.Join(os.Link(aside, victim), os.Link(aside, again)); err != nil {
		r.t.Fatal(err)
	}
	r.mustSee(ctx, out, "with "+victim+" twice",
		func(c *rig.Comparison) bool { return c.Missing == 0 && c.Doubled > 0 })
}

func (r *backfillRun) mustSee(ctx context.Context, out, what string, seen func(*rig.Comparison) bool) {
	if found, err := rig.CompareOutputs(out, r.want); err != nil || !seen(found) {
		r.t.Errorf("%s the judge says %+v, %v", what, found, err)
	}
	if _, said, err := r.program.Run(ctx, "verify", out); err == nil {
		r.t.Errorf("%s verify says\n%s", what, said)
	}
}
