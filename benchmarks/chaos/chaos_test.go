//go:build chaos

package chaos

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"entropipe/benchmarks/rig"
)

var (
	kills = flag.Int("chaos.kills", 15, "workers to kill; other events in proportion")
	seed  = flag.Uint64("chaos.seed", 0, "seed of the events; 0: from the clock")
	kind  = flag.String("chaos.broker", rig.Embedded,
		"embedded, or kafka: a real one, by .ci/kafka or the scripts that ENTROPIPE_KAFKA_START and "+
			"ENTROPIPE_KAFKA_STOP name")
	keep    = flag.Bool("chaos.keep", false, "keep the folder of a run that passed")
	pause   = flag.Duration("chaos.pause", 1500*time.Millisecond, "mean time between events")
	session = flag.Duration("chaos.session", 1500*time.Millisecond,
		"session timeout of the group; much longer than the pauses, and the crew hardly comes to work")
	records = flag.Int64("chaos.records", 0, "records that the producer acknowledges at least before the run ends")
	rate    = flag.Int("chaos.rate", 250, "records a second, at most")
	roll    = flag.Duration("chaos.roll", 300*time.Millisecond, "age at which a batch is committed")
	ops     = flag.String("chaos.ops", "hull2d,maxima2d,delaunay2d", "operators")
)

const (
	topic      = "chaos"
	partitions = 5
	workers    = 3
)

// TestChaos is the run that the package's comment describes.
func TestChaos(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	limit := 8*time.Minute + time.Duration(*kills)*4**pause + 2*time.Duration(*records)*time.Second/time.Duration(*rate)
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, fmt.Errorf("the run took longer than %v", limit))
	defer cancel()
	r := newRun(ctx, t)
	r.phase("built, crew at work")
	least := 2
	if r.bucket != nil {
		least = 1
	}
	r.chaos(ctx, *kills, least)
	r.phase("events over")
	for r.producer.count() < *records {
		r.wait(ctx, 100*time.Millisecond)
	}
	r.phase("records sent")
	r.drain(ctx)
	r.phase("drained")
	r.judge(ctx)
}

// phase logs how long the run has taken so far.
func (r *run) phase(name string) {
	r.t.Logf("%5.1f s: %s", time.Since(r.begun).Seconds(), name)
}

// run is one chaos run: its processes and its counts.
type run struct {
	begun    time.Time
	t        *testing.T
	words    []string // command line of every worker
	rng      *rand.Rand
	dir, out string  // out: where the judge reads
	bucket   *bucket // the crew's output; nil: it is out
	program  rig.Program
	broker   *rig.Broker
	client   *rig.Client
	producer *producer
	produced chan struct{} // closed when the producer has ended
	stop     context.CancelFunc
	crew     [workers]*worker

	kills, freezes, stops, brokerKills, verifies int
	serverKills                                  int
	refused, unwritten                           int   // starts and ends while the bucket could not be reached
	left                                         int64 // records that the crew left to the last run
}

func newRun(ctx context.Context, t *testing.T) *run {
	r := prepare(ctx, t)
	if err := r.client.CreateTopic(ctx, topic, partitions, 1<<20); err != nil {
		t.Fatal(err)
	}
	r.words = r.args(topic, r.address())
	r.produce()
	r.hire()
	return r
}

// prepare starts the broker of a run.
func prepare(ctx context.Context, t *testing.T) *run {
	r := &run{begun: time.Now(), t: t, rng: rand.New(rand.NewPCG(*seed, 0)), produced: make(chan struct{})}
	var err error
	if r.dir, err = os.MkdirTemp("", "entropipe-chaos-"); err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d, folder %s", *seed, r.dir)
	t.Cleanup(r.clean)
	r.out = filepath.Join(r.dir, "out")
	if r.program, err = rig.Build(ctx, r.dir); err != nil {
		t.Fatal(err)
	}
	if r.broker, err = r.newBroker(ctx); err != nil {
		t.Fatal(err)
	}
	r.client = rig.NewClient(r.broker.Addr)
	switch *outKind {
	case "folder":
	case "s3":
		r.bucket = newBucket(ctx, t, r.dir, *seed)
	default:
		t.Fatalf("-chaos.out %s: want folder or s3", *outKind)
	}
	return r
}

// address is the crew's output.
func (r *run) address() string {
	if r.bucket == nil {
		return r.out
	}
	return r.bucket.address()
}

// look returns the folder with the crew's output as it is now.
func (r *run) look(ctx context.Context) string {
	if r.bucket != nil {
		if err := r.bucket.mirror(ctx, r.out); err != nil {
			r.t.Fatalf("mirror of the bucket: %v", err)
		}
	}
	return r.out
}

// ask runs verify on the crew's output.
func (r *run) ask(ctx context.Context) (said string, err error) {
	words := []string{"verify", r.address()}
	if r.bucket != nil {
		words = append(words, through(r.bucket.server.url)...)
	}
	_, said, err = r.program.Run(ctx, words...)
	return said, err
}

// hire starts the crew.
func (r *run) hire() {
	for i := range r.crew {
		r.crew[i] = &worker{run: r, name: fmt.Sprintf("worker%d", i)}
		r.crew[i].start()
	}
}

func (r *run) newBroker(ctx context.Context) (*rig.Broker, error) {
	dir := filepath.Join(r.dir, "broker")
	switch *kind {
	case rig.Embedded:
		return r.program.NewBroker(ctx, dir)
	case rig.Kafka:
		scripts, err := rig.ScriptsFromEnv()
		if err != nil {
			return nil, err
		}
		return scripts.NewBroker(ctx, dir)
	}
	return nil, fmt.Errorf("-chaos.broker %s: want %s or %s", *kind, rig.Embedded, rig.Kafka)
}

// produce starts the producer, by default of some 250 records a second over all partitions.
func (r *run) produce() {
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	r.producer = &producer{client: r.client, topic: topic, every: 100 * time.Millisecond,
		batch: max(1, *rate/10/partitions),
		acked: map[Place]Sent{}}
	go func() {
		defer close(r.produced)
		r.producer.run(ctx, partitions, *seed)
	}()
}

// event is something that happens to the run at a random moment.
type event func(ctx context.Context)

// deck returns the events in random order, so many kills and others in proportion, at least so
// many of most. Their numbers are fixed, so that no seed leaves a kind out.
func (r *run) deck(kills, least int) []event {
	var deck []event
	verifies, servers := max(least, kills/15), 0
	if r.bucket != nil {
		verifies = least // it reads each object
		if r.bucket.server.process != nil {
			servers = max(1, kills/20)
		}
	}
	for _, e := range []struct {
		do event
		n  int
	}{
		{r.kill, kills}, {r.freeze, max(2*least, kills/3)}, {r.terminate, max(least, kills/10)},
		{r.killBroker, max(1, kills/30)}, {r.verify, verifies}, {r.killServer, servers},
	} {
		for range e.n {
			deck = append(deck, e.do)
		}
	}
	r.rng.Shuffle(len(deck), func(i, k int) { deck[i], deck[k] = deck[k], deck[i] })
	return deck
}

func (r *run) chaos(ctx context.Context, kills, least int) {
	for _, do := range r.deck(kills, least) {
		r.atWork(ctx)
		r.wait(ctx, time.Duration(r.rng.Int64N(2*int64(*pause))))
		r.checkAll()
		do(ctx)
	}
	r.atWork(ctx)
}

// atWork waits until the crew has committed again, however slow the machine is:
// events that meet nobody at work prove nothing.
func (r *run) atWork(ctx context.Context) {
	for before := r.commits(); r.commits() == before; {
		r.wait(ctx, 50*time.Millisecond)
		if r.bucket != nil {
			r.checkAll()
		}
	}
}

func (r *run) checkAll() {
	for _, w := range r.crew {
		w.check()
	}
}

func (r *run) wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
		r.t.Fatal(context.Cause(ctx))
	case <-time.After(d):
	}
}

func (r *run) any() *worker { return r.crew[r.rng.IntN(workers)] }

func (r *run) kill(ctx context.Context) {
	r.kills++
	w := r.any()
	w.process.Kill()
	r.wait(ctx, time.Duration(r.rng.Int64N(int64(*pause))))
	w.start()
}

// freeze stops a worker for longer than the group waits for it: others take its
// partitions over, and it wakes up in the belief that they are its own.
func (r *run) freeze(context.Context) {
	r.freezes++
	d := *session + time.Duration(r.rng.Int64N(int64(*session)))
	r.any().freeze(d)
}

func (r *run) terminate(ctx context.Context) {
	r.stops++
	w := r.any()
	w.terminate(ctx)
	w.start()
}

// killBroker waits until every worker has found its brokers: one that begins
// without them gives up after ten seconds, and a real Kafka may take longer.
func (r *run) killBroker(ctx context.Context) {
	r.brokerKills++
	for _, w := range r.crew {
		w.until(ctx, "msg=assigned")
	}
	if err := r.broker.Kill(); err != nil {
		r.t.Fatal(err)
	}
	r.wait(ctx, 300*time.Millisecond+time.Duration(r.rng.Int64N(int64(time.Second))))
	if err := r.broker.Start(ctx); err != nil {
		r.t.Fatal(err)
	}
}

// killServer kills the server of the bucket, in the middle of what it does, and starts it anew.
func (r *run) killServer(ctx context.Context) {
	r.serverKills++
	r.bucket.server.kill()
	r.wait(ctx, time.Duration(r.rng.Int64N(int64(time.Second))))
	if err := r.bucket.server.start(ctx); err != nil {
		r.t.Fatal(err)
	}
}

// verify runs the program's own check beside the running workers.
func (r *run) verify(ctx context.Context) {
	r.verifies++
	if out, err := r.ask(ctx); err != nil {
		r.t.Errorf("verify beside running workers: %v\n%s", err, out)
	}
}

// drain ends the producer and the workers, and lets one more process whatever
// they left.
func (r *run) drain(ctx context.Context) {
	r.dismiss(ctx)
	v, err := Judge(r.look(ctx), r.expected(ctx))
	if err != nil {
		r.t.Fatal(err)
	}
	if r.left = v.Missing; r.left == v.Records {
		r.t.Errorf("the crew committed none of %d records", v.Records)
	}
	r.untilEnd(ctx, "drain", r.words)
}

// dismiss ends the producer and the workers.
func (r *run) dismiss(ctx context.Context) {
	r.stop()
	select {
	case <-r.produced:
	case <-ctx.Done():
		r.t.Fatal(context.Cause(ctx))
	}
	for _, w := range r.crew {
		w.check()
		w.terminate(ctx)
	}
	if r.bucket != nil {
		r.bucket.proxy.Settle() // the last run is disturbed by nobody
	}
}

// untilEnd has one process, which nobody disturbs, read what there is.
func (r *run) untilEnd(ctx context.Context, name string, words []string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeoutCause(ctx, 5*time.Minute, errors.New("5 minutes to read what is left"))
	defer cancel()
	p, err := rig.Start(rig.Spec{Path: r.program.Path, Args: append(slices.Clone(words), "--until-end"),
		Log: filepath.Join(r.dir, name+".log")})
	if err == nil {
		_, err = p.Wait(ctx)
	}
	if err != nil {
		r.t.Fatalf("%s: %v", name, err)
	}
}

// args is the command line of a worker.
func (r *run) args(topic, out string, more ...string) []string {
	words := []string{"run", "--brokers", r.broker.Addr, "--topic", topic, "--out", out, "--ops", *ops, "--roll-age",
		roll.String(), "--memory", "64MiB", "--session-timeout", session.String(), "--rebalance-timeout",
		(2 * *session).String()}
	if r.bucket != nil {
		words = append(words, through(r.bucket.proxy.URL)...)
	}
	return append(words, more...)
}

// judge compares the output with the log, and then makes sure that both judges
// can say no.
func (r *run) judge(ctx context.Context) {
	want := r.expected(ctx)
	v, err := Judge(r.look(ctx), want)
	if err != nil {
		r.t.Fatal(err)
	}
	if r.bucket != nil {
		r.report(want, v)
	}
	fmt.Printf("chaos: broker %s, seed %d, records %d (%d acknowledged, %d requests sent again, %d left to the last "+
		"run), kills %d, freezes %d, stops %d, broker kills %d, verified beside %d times, assignments %d, commits "+
		"%d, missing %d, doubled %d, stray %d, wrong %d, torn %d\n",
		r.broker.Kind, *seed, v.Records, len(want.Acked), r.producer.retries, r.left, r.kills, r.freezes, r.stops,
		r.brokerKills, r.verifies,
		r.assignments(), r.commits(), v.Missing, v.Doubled, v.Stray, v.Wrong, v.Torn)
	r.phase("judged")
	if !v.OK() {
		r.t.Error(v)
	}
	if v.Frames == 0 || v.Rejects == 0 || int(v.Records) < len(want.Acked) {
		r.t.Errorf("%v: want frames, rejects, and every acknowledged record in the log", v)
	}
	if out, err := r.ask(ctx); err != nil {
		r.t.Errorf("verify at the end: %v\n%s", err, out)
	}
	r.phase("verified")
	if !r.t.Failed() {
		r.damage(ctx, want)
	}
}

// assignments counts how often a worker was given partitions, by its log.
func (r *run) assignments() (n int) {
	for _, w := range r.crew {
		b, err := os.ReadFile(w.log())
		if err != nil {
			r.t.Fatal(err)
		}
		n += bytes.Count(b, []byte("msg=assigned"))
	}
	return n
}

// commits counts the manifests.
func (r *run) commits() int {
	if r.bucket != nil {
		return r.bucket.manifests()
	}
	m, err := filepath.Glob(filepath.Join(r.out, "_commits", "topics", "*", "*", "*.json"))
	if err != nil {
		r.t.Fatal(err)
	}
	return len(m)
}

func (r *run) expected(ctx context.Context) Expected {
	logs, err := r.client.Ranges(ctx, topic, partitions)
	if err != nil {
		r.t.Fatal(err)
	}
	r.producer.mu.Lock()
	defer r.producer.mu.Unlock()
	return Expected{Topic: topic, Logs: logs, Acked: r.producer.acked}
}

// damage moves a file of the good output, once away and once beside another
// name: the judge and verify must both notice each.
func (r *run) damage(ctx context.Context, want Expected) {
	files, err := filepath.Glob(filepath.Join(r.out, "frames", "*", "*", "*.parquet"))
	if err != nil || len(files) == 0 {
		r.t.Fatalf("files of frames: %v, %v", files, err)
	}
	victim := files[r.rng.IntN(len(files))]
	aside := filepath.Join(r.dir, "aside")
	err = os.Rename(victim, aside)
	if r.bucket != nil {
		err = errors.Join(err, r.bucket.hide(ctx, r.out, victim))
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.mustFail(ctx, want, "without "+victim)
	second := filepath.Join(filepath.Dir(victim), "again-"+filepath.Base(victim))
	err = errors.Join(os.Link(aside, victim), os.Link(aside, second))
	if r.bucket != nil {
		err = errors.Join(err, r.bucket.show(ctx, r.out, victim, aside), r.bucket.show(ctx, r.out, second, aside))
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.mustFail(ctx, want, "with "+victim+" twice")
	err = os.Remove(second)
	if r.bucket != nil {
		err = errors.Join(err, r.bucket.hide(ctx, r.out, second))
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *run) mustFail(ctx context.Context, want Expected, what string) {
	if v, err := Judge(r.out, want); err != nil || v.OK() {
		r.t.Errorf("%s the judge says %v, %v", what, v, err)
	}
	if out, err := r.ask(ctx); err == nil {
		r.t.Errorf("%s verify says\n%s", what, out)
	}
}

// clean ends what still runs, by its own pid, and removes the folder of a run
// that passed.
func (r *run) clean() {
	if r.stop != nil {
		r.stop()
		<-r.produced
	}
	for _, w := range r.crew {
		if w != nil && w.process != nil {
			w.process.Kill()
		}
	}
	if r.client != nil {
		r.client.Close()
	}
	if r.broker != nil {
		if err := r.broker.Kill(); err != nil {
			r.t.Error(err)
		}
	}
	if r.t.Failed() || *keep {
		fmt.Printf("chaos: seed %d, output, logs of workers and broker kept in %s\n", *seed, r.dir)
		return
	}
	os.RemoveAll(r.dir)
}
