//go:build chaos

package chaos

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	kafka "github.com/segmentio/kafka-go"

	"entropipe/benchmarks/rig"
	"entropipe/schemas"
	"entropipe/sinks/tables"
)

var chunkKills = flag.Int("chaos.chunk-kills", 3, "workers to kill while frames in chunks flow")

const (
	chunkTopic      = "chunks"
	chunkPartitions = 4 // every second one lacks chunks
	window          = 2 << 20
	narrow          = 12 << 10 // a window that many frames do not fit into
)

// chunkRun is a run of frames in chunks. The crew of three is killed, frozen and asked to end
// as in every run. Then outputs are made in peace: of the same topic, of the whole frames in
// another one, and with a window that is too narrow, twice.
type chunkRun struct {
	*run
	flocks [chunkPartitions]*flock
}

// TestChunksSurviveKills: every frame has its rows once, those of the frame sent whole, at the
// offset of its first chunk. A frame that lacks a chunk is one reject, at the same offset in
// every output.
func TestChunksSurviveKills(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	limit := 8*time.Minute + time.Duration(*chunkKills)*4**pause
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, fmt.Errorf("the run took longer than %v", limit))
	defer cancel()
	r := &chunkRun{run: prepare(ctx, t)}
	if err := r.client.CreateTopic(ctx, chunkTopic, chunkPartitions, 1<<20); err != nil {
		t.Fatal(err)
	}
	r.words = r.chunkArgs("out")
	r.send(chunkTopic)
	r.hire()
	r.phase("built, crew at work")
	r.chaos(ctx, *chunkKills, 1)
	r.phase("events over")
	r.dismiss(ctx)
	r.untilEnd(ctx, "drain", r.words)
	r.phase("drained")
	r.judgeChunks(ctx)
}

// chunkArgs is the command line of a worker. Only the window gives frames up: it takes a
// chunk-age of hours at the log's end.
func (r *chunkRun) chunkArgs(out string, more ...string) []string {
	at := filepath.Join(r.dir, out)
	if at == r.out {
		at = r.address()
	}
	return r.args(chunkTopic, at, slices.Concat([]string{"--chunk-age", "3h",
		"--chunk-window", fmt.Sprint(window)}, more)...)
}

// send starts the producer: some hundred records a second over all partitions. When it is
// asked to end, it sends what frames lack, and then whole frames that fill the window, so that
// nothing is open at the end.
func (r *chunkRun) send(topic string) {
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	r.producer = &producer{client: r.client, topic: topic, acked: map[Place]Sent{}}
	var all sync.WaitGroup
	for i := range r.flocks {
		f := &flock{maker: maker{partition: int32(i), rng: rand.New(rand.NewPCG(*seed, uint64(i)))}, lossy: i%2 > 0}
		r.flocks[i] = f
		all.Go(func() { r.feed(ctx, f) })
	}
	go func() {
		all.Wait()
		close(r.produced)
	}()
}

func (r *chunkRun) feed(ctx context.Context, f *flock) {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Minute)
	defer cancel()
	tick := time.NewTicker(150 * time.Millisecond)
	defer tick.Stop()
	for {
		more := ctx.Err() == nil
		records := f.batch(1+f.rng.IntN(30), more)
		if len(records) == 0 {
			break
		}
		if _, err := r.producer.insist(last, f.partition, records); err != nil {
			r.t.Errorf("partition %d: %v", f.partition, err)
			return
		}
		if more {
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}
	for filled := 0; filled < window; {
		frame := f.frame(fmt.Sprintf("p%d-end", f.partition), 60_000)
		filled += len(frame.Value)
		if err := r.whole(last, f.partition, frame); err != nil {
			r.t.Errorf("partition %d: %v", f.partition, err)
		}
	}
}

// whole sends frames, each in one record.
func (r *chunkRun) whole(ctx context.Context, partition int32, frames ...*schemas.Record) error {
	for len(frames) > 0 {
		n := min(len(frames), 20)
		var batch []kafka.Record
		for _, frame := range frames[:n] {
			batch = append(batch, toKafka(frame))
		}
		if _, err := r.producer.insist(ctx, partition, batch); err != nil {
			return err
		}
		frames = frames[n:]
	}
	return nil
}

// judgeChunks compares the outputs with the log, and with each other.
func (r *chunkRun) judgeChunks(ctx context.Context) {
	logs, err := readLogs(ctx, r.broker.Addr, chunkTopic, chunkPartitions)
	if err != nil {
		r.t.Fatal(err)
	}
	m := meaningOf(chunkTopic, logs, window)
	r.look(ctx)
	v := r.judgeRejects(ctx, "out", m)
	fmt.Printf("chaos of chunks: broker %s, seed %d, %d sensors in each of %d partitions, records %d (%d chunks, "+
		"%d of them again, %d requests sent again), frames %d, of which chunks are lost %d, kills %d, freezes %d, "+
		"stops %d, broker kills %d, verified beside %d times, assignments %d, commits %d: missing %d, doubled %d, "+
		"stray %d, wrong %d, torn %d, rejects %d\n",
		r.broker.Kind, *seed, sensorsEach, chunkPartitions, len(m.want.Acked)+len(m.want.Further), m.chunks, m.twice,
		r.producer.retries, len(m.want.Acked), m.broken, r.kills, r.freezes, r.stops, r.brokerKills, r.verifies,
		r.assignments(), r.commits(), v.Missing, v.Doubled, v.Stray, v.Wrong, v.Torn, v.Rejects)
	if m.broken == 0 || m.twice == 0 || r.commits() == 0 {
		r.t.Errorf("%d broken frames, %d chunks twice, %d commits: the run proves nothing", m.broken, m.twice,
			r.commits())
	}
	r.untilEnd(ctx, "peace", r.chunkArgs("peace", "--roll-age", "1h", "--workers", "1"))
	r.same("out", "peace", tables.Names(), "latency_ns")
	r.phase("judged")
	r.compareWhole(ctx, m)
	r.phase("compared with whole frames")
	r.judgeNarrow(ctx, logs, m)
	r.phase("judged with a narrow window")
	r.openEnd(ctx)
	r.phase("judged with an open end")
}

// judgeRejects judges an output by the log, and its rejects by their reason.
func (r *chunkRun) judgeRejects(ctx context.Context, out string, m meaning) *Verdict {
	r.t.Helper()
	out = filepath.Join(r.dir, out)
	v, err := Judge(out, m.want)
	if err != nil {
		r.t.Fatal(err)
	}
	if !v.OK() || v.Rejects != m.broken {
		r.t.Errorf("%s: %v; want %d rejects", out, v, m.broken)
	}
	if reasons := r.reasons(out); len(reasons) > 1 || int64(reasons["assemble/incomplete"]) != v.Rejects {
		r.t.Errorf("%s: reasons of rejects %v", out, reasons)
	}
	if _, said, err := r.program.Run(ctx, "verify", out); err != nil {
		r.t.Errorf("verify %s: %v\n%s", out, err, said)
	}
	return v
}

// reasons counts the rejects of an output.
func (r *chunkRun) reasons(out string) map[string]int {
	found := map[string]int{}
	err := filepath.WalkDir(filepath.Join(out, "rejects"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".parquet") {
			return nil // there may be none
		}
		return readFile(path, []string{"stage", "reason"}, func(row []parquet.Value) {
			found[row[0].String()+"/"+row[1].String()]++
		})
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return found
}

func (r *chunkRun) same(got, want string, names []string, leaveOut ...string) {
	r.t.Helper()
	c, err := rig.CompareTables(filepath.Join(r.dir, got), filepath.Join(r.dir, want), names, leaveOut...)
	if err == nil {
		err = c.Err()
	}
	if err != nil {
		r.t.Errorf("%s beside %s: %v", got, want, err)
	}
}

// compareWhole sends every frame that the log has, whole and in the order of their offsets, to
// another topic, and compares what becomes of them.
func (r *chunkRun) compareWhole(ctx context.Context, m meaning) {
	const topic = "whole"
	if err := r.client.CreateTopic(ctx, topic, chunkPartitions, 16<<20); err != nil {
		r.t.Fatal(err)
	}
	r.producer = &producer{client: r.client, topic: topic}
	for p, numbers := range m.frames {
		var frames []*schemas.Record
		for _, n := range numbers {
			frames = append(frames, r.flocks[p].frames[n])
		}
		if err := r.whole(ctx, int32(p), frames...); err != nil {
			r.t.Fatal(err)
		}
	}
	r.untilEnd(ctx, "whole", r.args(topic, filepath.Join(r.dir, "whole")))
	names := slices.DeleteFunc(slices.Clone(tables.Names()), func(name string) bool { return name == "rejects" })
	r.same("out", "whole", names, append(rig.Places, "latency_ns")...)
}

// judgeNarrow makes two outputs with a window that many frames do not fit into: they are given
// up, the same ones in both.
func (r *chunkRun) judgeNarrow(ctx context.Context, logs [][]logged, wide meaning) {
	m := meaningOf(chunkTopic, logs, narrow)
	if m.broken <= wide.broken {
		r.t.Errorf("%d frames are given up in a window of %d bytes, %d in one of %d", m.broken, narrow, wide.broken,
			window)
	}
	for out, roll := range map[string]string{"narrow": "7", "narrow-again": "1000"} {
		r.untilEnd(ctx, out, r.chunkArgs(out, "--chunk-window", fmt.Sprint(narrow), "--roll-records", roll))
		r.judgeRejects(ctx, out, m)
	}
	r.same("narrow", "narrow-again", tables.Names(), "latency_ns")
}

// openEnd ends a topic within a frame. The frame is given up at the end of its time; what comes
// of it afterwards changes nothing.
func (r *chunkRun) openEnd(ctx context.Context) {
	const topic = "open"
	if err := r.client.CreateTopic(ctx, topic, 1, 1<<20); err != nil {
		r.t.Fatal(err)
	}
	r.producer = &producer{client: r.client, topic: topic}
	f := &flock{maker: maker{rng: rand.New(rand.NewPCG(*seed, 99))}}
	var all []*schemas.Record
	for range 3 {
		number := len(f.frames)
		all = append(all, schemas.ChunksOf(f.frame("open", 500), chunkBytes, chunkID(0, number))...)
	}
	cut := len(all)/3 + 1
	args := r.args(topic, filepath.Join(r.dir, "open"), "--chunk-age", "1s")
	for _, part := range [][]*schemas.Record{all[:cut], all[cut:]} {
		if err := r.whole(ctx, 0, part...); err != nil {
			r.t.Fatal(err)
		}
		r.untilEnd(ctx, "open", args)
	}
	logs, err := readLogs(ctx, r.broker.Addr, topic, 1)
	if err != nil {
		r.t.Fatal(err)
	}
	m := meaningOf(topic, logs, window)
	m.want.Acked[Place{0, int64(len(all) / 3)}] = Sent{}
	m.broken = 1
	r.judgeRejects(ctx, "open", m)
}
