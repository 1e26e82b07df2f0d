//go:build chaos

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"entropipe/benchmarks/rig"
)

var compactKills = flag.Int("chaos.compact-kills", 8, "workers, compactors and vacuums to kill, in all")

// compactRun has a worker write an output, two compactors follow it into another one, and one
// vacuum after the other retire what that one covers. All of them are killed at random moments,
// while readers look at the compaction.
type compactRun struct {
	*run
	into string
	jobs map[string]*job

	mu            sync.Mutex // guards what readers count
	looks, lists  int        // of the compaction; of the files that info names
	gone          int        // lists that a vacuum has overtaken
	seen, listed  int        // records of the last look, and of the last list
	stop          context.CancelFunc
	readers       sync.WaitGroup
	vacuums       int            // that came to their end
	killed        map[string]int // by name of the job
	cutInTheWork  int            // kills that left something staged
	retiredBefore int
}

// job is a process that is started anew after each kill.
type job struct {
	words   []string
	ends    bool // it ends by itself, and begins anew
	process *rig.Process
}

// TestCompactionSurvivesKills: the compaction has each record once, readers see it grow and
// nothing else, and what is retired is there.
func TestCompactionSurvivesKills(t *testing.T) {
	if *outKind != "folder" {
		t.Skip("compaction of buckets has its tests in package compact")
	}
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	limit := 4*time.Minute + time.Duration(*compactKills)*6*time.Second
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, fmt.Errorf("the run took longer than %v", limit))
	defer cancel()
	c := newCompactRun(ctx, t)
	c.phase("at work")
	for n := range *compactKills {
		c.event(ctx, n)
	}
	c.phase("events over")
	c.finish(ctx)
	c.phase("drained and compacted")
	c.judgeAll(ctx)
}

func newCompactRun(ctx context.Context, t *testing.T) *compactRun {
	c := &compactRun{run: prepare(ctx, t), killed: map[string]int{}}
	c.into = filepath.Join(c.dir, "out2")
	if err := c.client.CreateTopic(ctx, topic, partitions, 1<<20); err != nil {
		t.Fatal(err)
	}
	compact := []string{"compact", c.out, "--into", c.into, "--follow", "--poll", "50ms", "--target-bytes", "64KiB"}
	c.words = c.args(topic, c.out)
	c.jobs = map[string]*job{
		"worker":    {words: c.words},
		"compact-1": {words: append(slices.Clone(compact), "--max-age", "500ms")},
		"compact-2": {words: append(slices.Clone(compact), "--max-age", "2s")},
		"vacuum":    {words: []string{"vacuum", c.out, "--covered-by", c.into, "--older-than", "1s"}, ends: true},
	}
	t.Cleanup(func() {
		for _, j := range c.jobs {
			if j.process != nil {
				j.process.Kill()
			}
		}
	})
	c.produce()
	c.start("worker")
	c.until(ctx, func() bool { return c.commits() > 0 })
	c.start("compact-1")
	c.start("compact-2")
	c.until(ctx, func() bool { return c.compacted() > 0 })
	c.start("vacuum")
	look, stop := context.WithCancel(ctx)
	c.stop = stop
	t.Cleanup(func() { stop(); c.readers.Wait() })
	c.readers.Go(func() { c.read(look) })
	c.readers.Go(func() { c.list(look) })
	return c
}

// until waits for a condition.
func (c *compactRun) until(ctx context.Context, done func() bool) {
	for !done() {
		c.wait(ctx, 20*time.Millisecond)
		c.mend(ctx)
	}
}

func (c *compactRun) start(name string) {
	p, err := rig.Start(rig.Spec{Path: c.program.Path, Args: c.jobs[name].words, Log: c.log(name)})
	if err != nil {
		c.t.Fatal(err)
	}
	c.jobs[name].process = p
}

func (c *compactRun) log(name string) string { return filepath.Join(c.dir, name+".log") }

// mend starts the next vacuum when one has ended, and finds a job that ended although nobody
// asked.
func (c *compactRun) mend(ctx context.Context) {
	for name, j := range c.jobs {
		if j.process == nil {
			continue
		}
		select {
		case <-j.process.Done():
		default:
			continue
		}
		if _, err := j.process.Wait(ctx); err != nil || !j.ends {
			c.t.Errorf("%s ended by itself: %v; the last it logged:\n%s", name, err, j.process.Tail(8))
		}
		c.vacuums++
		c.start(name)
	}
}

// compacted counts the manifests of the compaction.
func (c *compactRun) compacted() int { return len(c.glob(c.into, "0*.json")) }

// retired counts the retired commits of the output.
func (c *compactRun) retired() int { return len(c.glob(c.out, "0*.retired.json")) }

func (c *compactRun) glob(out, name string) []string {
	found, err := filepath.Glob(filepath.Join(out, "_commits", "topics", "*", "*", name))
	if err != nil {
		c.t.Fatal(err)
	}
	return found
}

// event kills a process at a random moment, after the crew has come further since the last one.
func (c *compactRun) event(ctx context.Context, n int) {
	names := []string{"compact-1", "worker", "vacuum", "compact-2"}
	name := names[n%len(names)]
	progress := map[string]func() int{"worker": c.commits, "vacuum": c.retired, "compact-1": c.compacted,
		"compact-2": c.compacted}[name]
	for before := progress(); progress() == before; {
		c.wait(ctx, 20*time.Millisecond)
		c.mend(ctx)
	}
	most := 400 * time.Millisecond
	if name == "vacuum" { // it lives shortly
		c.jobs[name].process.Kill()
		c.start(name)
		most = 60 * time.Millisecond
	}
	c.wait(ctx, time.Duration(c.rng.Int64N(int64(most))))
	if name == "compact-2" {
		c.terminate(ctx, name)
	}
	c.jobs[name].process.Kill()
	c.killed[name]++
	if left, err := staged(c.into); err == nil && left > 0 {
		c.cutInTheWork++
	}
	c.start(name)
}

// terminate asks a process to end, at a random moment after it listens to signals, and starts it
// anew.
func (c *compactRun) terminate(ctx context.Context, name string) {
	c.wait(ctx, 300*time.Millisecond)
	if _, err := c.jobs[name].process.Stop(2 * time.Minute); err != nil {
		c.t.Errorf("%s was asked to end: %v", name, err)
	}
	c.stops++
	c.start(name)
	c.wait(ctx, time.Duration(c.rng.Int64N(int64(400*time.Millisecond))))
}

// read looks at the files of the compaction, as a reader does who knows no manifests.
func (c *compactRun) read(ctx context.Context) {
	for ctx.Err() == nil {
		rows, err := recordsOf(func(table string) ([]string, error) { return filesBelow(filepath.Join(c.into, table)) })
		if err != nil {
			c.t.Errorf("a reader of the compaction: %v", err)
			return
		}
		c.mu.Lock()
		c.looks++
		c.seen = c.growth("a reader of the compaction", c.seen, rows)
		c.mu.Unlock()
		pauseFor(ctx, 20*time.Millisecond)
	}
}

// list reads the files that info names: those of the compaction, and the tail of the output.
func (c *compactRun) list(ctx context.Context) {
	for ctx.Err() == nil {
		_, said, err := c.program.Run(ctx, "info", c.out, "--files", "--with", c.into, "--json")
		if ctx.Err() != nil {
			return
		}
		var found struct {
			Tables []struct {
				Table     string
				Compacted []string
				Files     []string
			}
		}
		if err == nil {
			err = json.Unmarshal([]byte(said), &found)
		}
		if err != nil {
			c.t.Errorf("info --files: %v\n%s", err, said)
			return
		}
		files := map[string][]string{}
		for _, t := range found.Tables {
			for _, name := range t.Compacted {
				files[t.Table] = append(files[t.Table], filepath.Join(c.into, name))
			}
			for _, name := range t.Files {
				files[t.Table] = append(files[t.Table], filepath.Join(c.out, name))
			}
		}
		rows, err := recordsOf(func(table string) ([]string, error) { return files[table], nil })
		c.mu.Lock()
		c.lists++
		switch {
		case errors.Is(err, fs.ErrNotExist): // a vacuum has deleted it since
			c.gone++
		case err != nil:
			c.t.Errorf("a reader of the list: %v", err)
		default:
			c.listed = c.growth("a reader of the list", c.listed, rows)
		}
		c.mu.Unlock()
		pauseFor(ctx, 100*time.Millisecond)
	}
}

// growth reports rows that are there twice and counts that fall, and returns the count.
func (c *compactRun) growth(who string, before int, rows map[key]int) int {
	for k, n := range rows {
		if n != 1 {
			c.t.Errorf("%s sees %d@%d row %d %d times", who, k.Partition, k.Offset, k.index, n)
		}
	}
	if len(rows) < before {
		c.t.Errorf("%s sees %d rows after %d", who, len(rows), before)
	}
	return len(rows)
}

func pauseFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// filesBelow lists the files of a table.
func filesBelow(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".parquet") {
			files = append(files, path)
		}
		return err
	})
	return files, err
}

// recordsOf counts the rows of frames and rejects, by record and index.
func recordsOf(files func(table string) ([]string, error)) (map[key]int, error) {
	rows := map[key]int{}
	for _, table := range []string{"frames", "rejects"} {
		names, err := files(table)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			keys, err := parquet.ReadFile[struct {
				Partition int32 `parquet:"partition"`
				Offset    int64 `parquet:"offset"`
				Index     int32 `parquet:"index"`
			}](name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			for _, k := range keys {
				index := k.Index
				if table == "rejects" {
					index = -1
				}
				rows[key{Place{k.Partition, k.Offset}, index}]++
			}
		}
	}
	return rows, nil
}

// finish ends the producer and all jobs, has one worker read what is left, and one compactor and
// one vacuum end their work in peace.
func (c *compactRun) finish(ctx context.Context) {
	c.run.stop()
	select {
	case <-c.produced:
	case <-ctx.Done():
		c.t.Fatal(context.Cause(ctx))
	}
	c.mend(ctx)
	c.retiredBefore = c.retired()
	c.wait(ctx, time.Second) // the last one that was started listens to signals
	for _, name := range []string{"worker", "compact-1", "compact-2"} {
		j := c.jobs[name]
		if _, err := j.process.Stop(2 * time.Minute); err != nil {
			c.t.Errorf("%s was asked to end: %v", name, err)
		}
		j.process = nil
	}
	c.jobs["vacuum"].process.Kill()
	c.jobs["vacuum"].process = nil
	c.untilEnd(ctx, "drain", c.words)
	compact := []string{"compact", c.out, "--into", c.into}
	for _, words := range [][]string{compact, {"vacuum", c.out, "--covered-by", c.into, "--older-than", "0s"},
		compact} {
		if _, said, err := c.program.Run(ctx, words...); err != nil {
			c.t.Errorf("%s at the end: %v\n%s", words[0], err, said)
		}
	}
	c.stop()
	c.readers.Wait()
}

// judgeAll compares the compaction with the log, and makes sure that the judges can say no.
func (c *compactRun) judgeAll(ctx context.Context) {
	for _, out := range []string{c.out, c.into} {
		if _, said, err := c.program.Run(ctx, "verify", out); err != nil {
			c.t.Errorf("verify %s: %v\n%s", filepath.Base(out), err, said)
		}
	}
	retired := c.retired()
	counts, compacted := c.counts(ctx, c.out), c.counts(ctx, c.into)
	if counts != compacted {
		c.t.Errorf("the output counts %s, its compaction %s", counts, compacted)
	}
	want := c.expected(ctx)
	c.out = c.into
	v, err := Judge(c.out, want)
	if err != nil {
		c.t.Fatal(err)
	}
	if !v.OK() || v.Frames == 0 || v.Rejects == 0 || int(v.Records) < len(want.Acked) {
		c.t.Errorf("%v: want frames, rejects, and every acknowledged record", v)
	}
	if retired == 0 || c.looks == 0 || c.lists == c.gone || c.seen == 0 {
		c.t.Errorf("%d retired commits, %d looks, %d lists, %d of them overtaken: nothing is shown", retired, c.looks,
			c.lists, c.gone)
	}
	kills := 0
	for _, n := range c.killed {
		kills += n
	}
	f := compactFigures{Kills: kills, Killed: c.killed, Stops: c.stops, Cut: c.cutInTheWork, Seed: *seed,
		Seconds: time.Since(c.begun).Seconds(), Records: v.Records,
		Acknowledged: len(want.Acked), Commits: len(c.glob(filepath.Join(c.dir, "out"), "0*.json")) - retired,
		Ranges: c.compacted(), Retired: retired, RetiredInTime: c.retiredBefore, Vacuums: c.vacuums, Looks: c.looks,
		Lists: c.lists, Overtaken: c.gone, Missing: v.Missing, Doubled: v.Doubled, Stray: v.Stray, Wrong: v.Wrong,
		Torn: v.Torn}
	text, err := json.Marshal(f)
	if err != nil {
		c.t.Fatal(err)
	}
	fmt.Printf("chaos of a compaction: %s\n", text)
	if !c.t.Failed() {
		c.damage(ctx, want)
	}
	if *results != "" && !c.t.Failed() {
		j, err := rig.ReadJournal[compactFigures]("chaos compact", *results)
		if err == nil {
			err = j.Add(f)
		}
		if err != nil {
			c.t.Error(err)
		}
	}
}

// counts returns what verify counts: rows by partition, and by table.
func (c *compactRun) counts(ctx context.Context, out string) string {
	_, said, err := c.program.Run(ctx, "verify", out, "--json")
	var report struct {
		Partitions []struct {
			Partition                        int32
			Base, End                        int64
			Messages, Frames, Rejects, Holes int64
		}
	}
	if err == nil {
		err = json.Unmarshal([]byte(said), &report)
	}
	if err != nil {
		c.t.Errorf("verify --json: %v", err)
	}
	return fmt.Sprintf("%+v", report)
}

// compactFigures are those of a run.
type compactFigures struct {
	Seed          uint64         `json:"seed"`
	Seconds       float64        `json:"seconds"`
	Records       int64          `json:"records"`
	Acknowledged  int            `json:"acknowledged"`
	Kills         int            `json:"kills"`
	Killed        map[string]int `json:"killed"`
	Stops         int            `json:"stops"`                   // SIGTERM to a compactor at work
	Cut           int            `json:"kills_with_staged_files"` // of the compaction
	Commits       int            `json:"commits"`
	Ranges        int            `json:"ranges"` // manifests of the compaction
	Retired       int            `json:"retired"`
	RetiredInTime int            `json:"retired_before_the_end"`
	Vacuums       int            `json:"vacuums_that_ended"`
	Looks         int            `json:"looks"`
	Lists         int            `json:"lists"`
	Overtaken     int            `json:"lists_overtaken_by_a_vacuum"`
	Missing       int64          `json:"missing"`
	Doubled       int64          `json:"doubled"`
	Stray         int64          `json:"stray"`
	Wrong         int64          `json:"wrong"`
	Torn          int64          `json:"torn"`
}
