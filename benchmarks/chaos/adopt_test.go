//go:build chaos

package chaos

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"entropipe/benchmarks/rig"
	"entropipe/sinks/record"
)

var adoptKills = flag.Int("chaos.adopt-kills", 12, "processes to kill that take over an earlier output")

// adoptLanes is the number of files of the archive; every ninth one changes.
const adoptLanes = 27

// TestAdoptionSurvivesKills: processes that take over what has not changed since an
// earlier output are killed at random moments, three at a time, until one of them ends. The
// result is that of a process in peace: the same rows, all equal lanes adopted, every
// adopted file the same inode; and the earlier output has not changed.
func TestAdoptionSurvivesKills(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	limit := 4*time.Minute + time.Duration(*adoptKills)*2*time.Second
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, fmt.Errorf("the run took longer than %v", limit))
	defer cancel()
	dir := t.TempDir()
	program, err := rig.Build(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(*seed, 3))
	archive := rig.Archive{Dir: filepath.Join(dir, "archive"), Seed: *seed}
	drawings := func(name string, i int) {
		if err := archive.Drawings(name, 40+i, 0); err != nil {
			t.Fatal(err)
		}
	}
	for i := range adoptLanes {
		drawings(fmt.Sprintf("%02d.ndjson", i), i)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	args := func(out string, more ...string) []string {
		return append([]string{"backfill", archive.Dir, "--ops", "hull2d,maxima2d,delaunay2d", "--roll-records", "1",
			"--log-level", "warn", "--out", at(out)}, more...)
	}
	run := func(args ...string) {
		t.Helper()
		if _, said, err := program.Run(ctx, args...); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, said)
		}
	}
	run(args("old")...)
	for i := 0; i < adoptLanes; i += 9 {
		drawings(fmt.Sprintf("%02d.ndjson", i), i+1)
	}
	reuse := []string{"--changed", "--reuse", at("old")}
	run(args("want", reuse...)...)
	before := listing(t, at("old"))

	kills, outputs, during := 0, 0, 0
	// Where chance has killed nobody at work, there are more outputs.
	for ; (kills < *adoptKills || during == 0 && outputs < 10) && !t.Failed(); outputs++ {
		least := kills
		out := fmt.Sprintf("new-%d", outputs)
		var mu sync.Mutex
		var crew sync.WaitGroup
		done, stop := context.WithCancel(ctx)
		for place := range 3 {
			crew.Go(func() {
				defer stop()
				for done.Err() == nil {
					p, err := rig.Start(rig.Spec{Path: program.Path, Args: args(out, reuse...),
						Log: fmt.Sprintf("%s-%d.log", at(out), place)})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					life := time.Duration(rng.Int64N(int64(500 * time.Millisecond)))
					work := rng.IntN(adoptLanes) // manifests
					if kills >= max(*adoptKills, least+1) {
						life = time.Hour
					}
					mu.Unlock()
					if ended := outlives(done, p, life, at(out), work); ended {
						if _, err := p.Wait(done); err != nil {
							t.Errorf("a process ended by itself: %v", err)
						}
						return
					}
					p.Kill()
					found, _ := rig.Manifests(at(out)) // there may be no output yet
					mu.Lock()
					if kills++; len(found) > 0 && len(found) < adoptLanes {
						during++
					}
					mu.Unlock()
				}
			})
		}
		crew.Wait()
		stop()
		if ctx.Err() != nil {
			t.Fatal(context.Cause(ctx))
		}
		run(args(out, reuse...)...) // finishes what those that were killed last have left
		judgeAdopted(t, at(out), at("old"), at("want"))
		run("verify", at(out))
		os.RemoveAll(at(out))
	}
	if diff := changed(before, listing(t, at("old"))); diff != "" {
		t.Errorf("the earlier output has changed: %s", diff)
	}
	run("verify", at("old"))
	fmt.Printf("chaos of an adoption: seed %d, %d outputs, %d kills, %d of them between the first manifest and the "+
		"last\n", *seed, outputs, kills, during)
	if during == 0 {
		t.Error("no kill met a process at work")
	}
}

// judgeAdopted compares an output with one that was made in peace.
func judgeAdopted(t *testing.T, out, old, want string) {
	t.Helper()
	if _, err := rig.SameOutputs(out, want, "latency_ns"); err != nil {
		t.Error(err)
	}
	manifests, err := rig.Manifests(out)
	if err != nil || len(manifests) != adoptLanes {
		t.Fatalf("%d manifests, %v", len(manifests), err)
	}
	adopted := 0
	for _, m := range manifests {
		if m.AdoptedFrom == "" {
			continue
		}
		adopted++
		for _, f := range m.Files {
			if !sameFile(filepath.Join(out, f.Path), filepath.Join(old, f.Path)) {
				t.Errorf("%s is not the file of the earlier output", f.Path)
			}
		}
	}
	if adopted != adoptLanes/9*8 {
		t.Errorf("%d lanes are adopted, want %d", adopted, adoptLanes/9*8)
	}
	left, err := filepath.Glob(filepath.Join(out, record.StagingFolder, "*", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%q is left in staging, %v", left, err)
	}
}

func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	second, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(first, second)
}

// listing returns size and time of each file of a folder.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			found[path] = fmt.Sprint(info.Size(), info.ModTime().UnixNano())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// changed names a file in which two listings differ.
func changed(a, b map[string]string) string {
	for name := range b {
		if a[name] != b[name] {
			return name
		}
	}
	if len(a) != len(b) {
		return fmt.Sprintf("%d files, before %d", len(b), len(a))
	}
	return ""
}
