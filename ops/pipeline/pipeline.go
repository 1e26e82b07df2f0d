// Package pipeline runs the stream: for every assigned partition it fetches
// records, has workers turn each into results, puts the results back into
// offset order, and commits them in batches.
//
//	Partition.Fetch -> tasks -> workers (Process) -> in order -> batch -> Output.Commit
//
// One goroutine a partition reads, one collects; the workers are shared. Memory
// is bounded by a budget of bytes, not by counts: a reader waits when it is
// spent, and the largest batch is committed early to make room.
//
// Vocabulary: a task is one record on its way through a worker; a slot is its
// place in the partition's order; a batch is what the next commit will hold; a
// large message is one of so many sequences that its rows do not fit into memory
// at once, and a part some of them; a session is the time between resuming a partition from the output and losing
// it, by revocation, end of input, error, or a lost race.
//
// What frames have to publish is sent as they enter their batch, and a batch is
// committed when brokers have acknowledged all of its own: so it is there at
// least once, and again where a commit failed.
//
// What is exact about it: a batch covers [Start, End) without a hole that is
// not counted, in offset order, whatever the workers' speed.
package pipeline

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"entropipe/ops/metrics"
	"entropipe/schemas"
)

// Process turns one record into results and rejects, in order of their index.
// They own their memory. It never fails: what cannot be used is a reject. A
// Process belongs to one worker.
type Process func(schemas.Message) ([]schemas.Result, []schemas.Reject)

// Roll says when a batch is committed: whichever is reached first, always
// between records.
type Roll struct {
	Bytes   int64         // of record values
	Records int64         // records
	Age     time.Duration // wall clock since the batch's first record; 0: never
}

// Config says how a Pipeline works. All fields but Publisher and NewTokens are
// needed.
type Config struct {
	Output     Output
	Publisher  Publisher      // of what results have to publish; nil: they have nothing
	NewProcess func() Process // called once a worker
	NewTokens  func() *Tokens // for messages of sequences, once a worker; nil: NewProcess's get them too
	Workers    int
	Queue      int   // messages of sequences that may wait for a worker; 0: four a worker, as of clouds
	Memory     int64 // bytes of records, results and rows in memory
	Roll       Roll
	RetryFor   time.Duration // how long an output that cannot be written is waited for; 0: not at all
	SkipGaps   bool          // go on past records that retention deleted, else stop
	Metrics    *metrics.Metrics
	Log        *slog.Logger
}

// Pipeline processes partitions until Close. Its methods may be called from
// any goroutine.
type Pipeline struct {
	cfg    Config
	budget budget
	outage outage
	wg     sync.WaitGroup

	// What waits for a worker. A queue that is full of one branch's work must not
	// keep the other's waiting, so each has its own.
	clouds, sequences chan *task

	mu         sync.Mutex
	collectors map[*collector]struct{} // one for each session that runs
	stats      map[string]*counters    // by topic
}

// New starts the workers.
func New(cfg Config) *Pipeline {
	if cfg.Queue <= 0 {
		cfg.Queue = 4 * cfg.Workers
	}
	p := &Pipeline{cfg: cfg, clouds: make(chan *task, 4*cfg.Workers), sequences: make(chan *task, cfg.Queue),
		collectors: map[*collector]struct{}{}, stats: map[string]*counters{}}
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

// Close ends the workers. Every Partition call must have returned.
func (p *Pipeline) Close() {
	close(p.clouds)
	close(p.sequences)
	p.wg.Wait()
}

// submit gives t to whichever worker is next. It blocks while t's branch is
// behind.
func (p *Pipeline) submit(t *task) {
	if t.tokens {
		p.sequences <- t
	} else {
		p.clouds <- t
	}
	p.cfg.Metrics.Queued(len(p.clouds) + len(p.sequences))
}

// Partition processes one partition until ctx ends (then what was processed is
// committed and nil returned), the source says io.EOF (likewise), or something
// fails. A commit that another writer won is not a failure: the partition goes
// on from what that writer committed. Nor is an output that cannot be written for
// less than Config.RetryFor; when ctx ends meanwhile, the *schemas.UnavailableError
// says what is not committed and why.
func (p *Pipeline) Partition(ctx context.Context, topic string, id int32, part Partition) error {
	defer p.cfg.Metrics.Revoked(topic, id)
	log := p.cfg.Log.With("topic", topic, "partition", id)
	again := &retry{p: p}
	defer again.over()
	for {
		err := p.session(ctx, topic, id, part, again)
		if gap := (*schemas.GapError)(nil); p.cfg.SkipGaps && errors.As(err, &gap) {
			log.Warn("records deleted by retention are skipped", "from", gap.Next, "to", gap.LogStart)
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
			log.Warn("another writer committed this range; going on from its end")
			p.cfg.Metrics.Failed("commit", "lost_race")
		case again.again(ctx, err): // read again what was not committed
		default:
			return again.final(err)
		}
	}
}

// commitGap records that the offsets of gap were gone before they were read.
func (p *Pipeline) commitGap(ctx context.Context, topic string, id int32, gap *schemas.GapError) error {
	pos, err := p.cfg.Output.Resume(ctx, topic, id)
	if err != nil || pos.Next >= gap.LogStart {
		return err
	}
	_, err = p.cfg.Output.Commit(ctx, &schemas.Batch{Topic: topic, Partition: id,
		Start: pos.Next, End: gap.LogStart, Holes: gap.LogStart - pos.Next, Last: pos.Last, TopicID: pos.TopicID, Gap: true})
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

// Bounds of one fetch. A large one amortises the round trip, but every
// partition's counts against the budget while it waits for records, and what
// is read long before a worker takes it has left the cache by then. Above 8 MiB
// the round trip is not seen any more, but that and fresh memory are.
const (
	minFetch = 1 << 20
	maxFetch = 8 << 20
	minPoll  = 16 << 10
)

// fetchSize returns how much one partition may ask for: together the
// partitions take a quarter of the memory. One at its end asks for no more than
// that however little it is: of a thousand that wait for records all must wait at once,
// or the few that have some would wait for their turn.
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
