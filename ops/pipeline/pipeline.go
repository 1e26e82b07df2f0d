// Package pipeline runs the stream: for every assigned partition it fetches
// records, has workers turn each into results, puts the results back into
// offset order, and commits them in batches. It does not know Kafka or Parquet:
// records come from a Partition, batches go to an Output, both of which the
// caller implements.
//
//	Partition.Fetch -> tasks -> workers (Process) -> in order -> batch -> Output.Commit
//
// Each partition has two goroutines, a reader and a collector (session.go); all
// partitions share the workers. Memory is bounded by a budget of bytes, not by
// counts: a reader waits when the budget is spent, and the largest batch is
// committed early to make room.
//
// Vocabulary:
//   - session: the time from resuming a partition from the output to losing it by
//     revocation, end of input, error, or a lost race;
//   - task: one record on its way through a worker;
//   - slot: a record's place in the partition's order;
//   - batch: the rows of the next commit;
//   - large message: a message of so many sequences that their rows do not fit into
//     memory at once; a part is some of its sequences.
//
// A record that a frame publishes (its survivors, or what was found in it) is sent when the frame
// enters its batch, and the batch is committed after brokers have acknowledged all of its records.
// So every such record is published at least once, and again after a commit that failed. The
// dead letter of a refused message is such a record, too.
//
// A batch covers the offsets [Start, End) in order, with every hole counted,
// whatever the speed of the workers.
package pipeline

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"entropipe/ops/live"
	"entropipe/ops/metrics"
	"entropipe/schemas"
)

// Process turns one record into results and rejects, each in order of their index.
// Results and rejects own their memory. A Process never fails: a record that it
// cannot use becomes a reject. Each worker has its own Process.
type Process func(schemas.Message) ([]schemas.Result, []schemas.Reject)

// Roll bounds a batch: it is committed as soon as it reaches one of the bounds,
// always between records.
type Roll struct {
	Bytes   int64         // bytes of record keys and values
	Records int64         // records
	Age     time.Duration // time since the batch's first record entered it, a quarter in a session's first; 0: no bound
}

// Config configures a Pipeline. Output, NewProcess, Workers, Memory, Roll, Metrics
// and Log are required.
type Config struct {
	Output     Output
	Publisher  Publisher      // takes the survivors that results publish; nil if no result has some
	Results    Publisher      // takes the records Found of results; nil if no result has one
	Letters    Publisher      // takes the dead letters of refused messages; nil: there are none
	Origin     Origin         // of the dead letters
	NewProcess func() Process // called once for each worker
	NewTokens  func() *Tokens // called once for each worker; nil: the Process gets messages of sequences, too
	Originals  bool           // batches have the messages themselves
	// Pack appends a value to dst as the output will have it, so that workers do what a commit
	// would do alone. nil: this value stays as it is. Any worker calls it. May be nil.
	Pack     func(dst, value []byte) []byte
	Workers  int
	Queue    int   // messages of sequences that may wait for a worker; 0: four for each worker, as for clouds
	Memory   int64 // bytes of records, results and rows in memory
	Roll     Roll
	Chunks   Chunks        // how far the chunks of a message may be apart
	RetryFor time.Duration // how long an output that cannot be written is retried; 0: not at all
	SkipGaps bool          // continue after records that retention deleted, instead of stopping
	Archive  bool          // times of messages are those of recorded items: no latency, no lag in seconds
	Tap      *live.Tap     // is told what is committed; may be nil
	Metrics  *metrics.Metrics
	Log      *slog.Logger
}

// Pipeline processes partitions until Close. Any goroutine may call its methods.
type Pipeline struct {
	cfg     Config
	began   time.Time
	budget  budget
	outage  outage
	busy    underWay
	refused refusals
	buffers buffers
	wg      sync.WaitGroup

	// The tasks that wait for a worker. Each branch has its own queue, because a
	// queue that is full of one branch's tasks must not block the other branch.
	clouds, sequences chan *task

	mu         sync.Mutex
	collectors map[*collector]struct{} // one for each session that runs
	stats      map[string]*counters    // by topic
}

// New returns a Pipeline and starts its workers, which run until Close.
func New(cfg Config) *Pipeline {
	if cfg.Queue <= 0 {
		cfg.Queue = 4 * cfg.Workers
	}
	p := &Pipeline{cfg: cfg, began: time.Now(), clouds: make(chan *task, 4*cfg.Workers),
		sequences: make(chan *task, cfg.Queue), collectors: map[*collector]struct{}{}, stats: map[string]*counters{}}
	p.budget = budget{limit: cfg.Memory, relieve: p.relieve}
	for range cfg.Workers {
		w := worker{p: p, process: cfg.NewProcess()}
		if cfg.NewTokens != nil {
			w.tokens = cfg.NewTokens()
			w.tokens.limit(p.largeRows())
		}
		p.wg.Go(w.run)
	}
	return p
}

// Close ends the workers and waits for them. The caller makes sure that every
// Partition call has returned.
func (p *Pipeline) Close() {
	close(p.clouds)
	close(p.sequences)
	p.wg.Wait()
}

// submit queues t for the workers. It blocks while the queue of t's branch is full.
func (p *Pipeline) submit(t *task) {
	t.submitted = true
	p.budget.work(1)
	if t.tokens {
		p.sequences <- t
	} else {
		p.clouds <- t
	}
}

// Partition processes one partition, in the caller's goroutine and a second one,
// until ctx ends, the source returns io.EOF, or an error occurs. In the first two
// cases it commits the records that were read and returns nil.
//
// A commit that another writer won is no error: Partition continues where that
// writer's commit ends. Nor is an output that cannot be written for less than
// Config.RetryFor; if ctx ends meanwhile, the *schemas.UnavailableError says what is
// not committed and why. A *schemas.GapError is skipped if Config.SkipGaps is set.
func (p *Pipeline) Partition(ctx context.Context, topic string, id int32, part Partition) error {
	p.cfg.Metrics.Assigned(topic, id)
	defer p.cfg.Metrics.Revoked(topic, id)
	log := p.cfg.Log.With("topic", topic, "partition", id)
	again := &retry{p: p}
	defer again.over()
	for {
		err := p.session(ctx, topic, id, part, again)
		if gap := (*schemas.GapError)(nil); p.cfg.SkipGaps && errors.As(err, &gap) {
			log.Warn("skipping records that retention deleted", "from", gap.Next, "to", gap.LogStart)
			p.cfg.Metrics.Failed("fetch", "gap_skipped")
			if err = p.commitGap(ctx, topic, id, gap); err == nil {
				continue
			}
		}
		switch {
		case err == nil, errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil && (errors.Is(err, schemas.ErrLost) || errors.Is(err, ctx.Err())):
			return nil // revoked: the next owner reads the store as we would
		case errors.Is(err, schemas.ErrLost):
			log.Warn("another writer committed this range; continuing at its end")
			p.cfg.Metrics.Failed("commit", "lost_race")
		case again.again(ctx, err): // read again what was not committed
		default:
			return again.final(err)
		}
	}
}

// commitGap commits a batch without rows for the offsets of gap, which retention
// deleted before they were read.
func (p *Pipeline) commitGap(ctx context.Context, topic string, id int32, gap *schemas.GapError) error {
	pos, err := p.cfg.Output.Resume(ctx, topic, id)
	if err != nil || pos.Next >= gap.LogStart {
		return err
	}
	_, err = p.cfg.Output.Commit(ctx, &schemas.Batch{Topic: topic, Partition: id,
		Start: pos.Next, End: gap.LogStart, Holes: gap.LogStart - pos.Next, Last: pos.Last,
		TopicID: pos.TopicID, Gap: true, Chunked: pos.Chunks.From(gap.LogStart)})
	return err
}

// attach makes c one of the collectors that relieve may ask.
func (p *Pipeline) attach(c *collector) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.collectors[c] = struct{}{}
}

func (p *Pipeline) detach(c *collector) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.collectors, c)
}

// relieve asks the partition with the most results in memory to commit them.
func (p *Pipeline) relieve() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var largest *collector
	for c := range p.collectors {
		if c.buffered.Load() > 0 && (largest == nil || c.buffered.Load() > largest.buffered.Load()) {
			largest = c
		}
	}
	if largest != nil {
		select {
		case largest.rollNow <- struct{}{}:
		default: // asked already
		}
	}
}

// Bounds of the bytes of one fetch. A large fetch amortises the round trip. But
// every partition's fetch counts against the budget while it waits for records, and
// records that are read long before a worker takes them have left the CPU's caches
// by then. Above 8 MiB the round trip is negligible; cache misses and the cost of
// fresh memory are not.
const (
	minFetch = 1 << 20
	maxFetch = 8 << 20
	minPoll  = 16 << 10
)

// fetchSize returns the bytes that one partition asks for: memory/4/partitions,
// within the bounds above. A partition at its end has the lower bound minPoll: when
// a thousand partitions wait for records, all of their fetches must fit into the
// budget at once, or the few partitions with records would wait for their turn.
func (p *Pipeline) fetchSize(atEnd bool) int64 {
	p.mu.Lock()
	n := int64(len(p.collectors))
	p.mu.Unlock()
	least := int64(minFetch)
	if atEnd {
		least = minPoll
	}
	return min(max(p.cfg.Memory/4/max(n, 1), least), maxFetch)
}
