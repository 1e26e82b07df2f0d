package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"entropipe/ops/leaktest"
	"entropipe/ops/metrics"
	"entropipe/schemas"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// topicLog is a partition in memory: data records at some offsets, holes at the
// others.
type topicLog struct {
	data     map[int64]int // size of the value
	end      int64
	logStart int64
	perFetch int
	follow   bool // wait at the end instead of io.EOF
	age      time.Duration
	timeless bool // records carry no timestamp
	rng      *rand.Rand
	leased   atomic.Int64 // fetches not released
	biggest  int64
	checks   atomic.Int64
	advised  atomic.Int64
	id       schemas.TopicID
}

func (l *topicLog) Check(_ context.Context, pos schemas.Position) (schemas.TopicID, error) {
	l.checks.Add(1)
	if pos.Next < l.logStart {
		return pos.TopicID, &schemas.GapError{Topic: "t", Next: pos.Next, LogStart: l.logStart}
	}
	return l.id, nil
}

func (l *topicLog) Fetch(ctx context.Context, from int64, _ int32) (schemas.Fetched, error) {
	if from < l.logStart {
		return schemas.Fetched{}, &schemas.GapError{Topic: "t", Next: from, LogStart: l.logStart}
	}
	if from >= l.end {
		if l.follow {
			<-ctx.Done()
			return schemas.Fetched{}, ctx.Err()
		}
		return schemas.Fetched{}, io.EOF
	}
	if ctx.Err() != nil {
		return schemas.Fetched{}, ctx.Err()
	}
	f := schemas.Fetched{From: from, Next: min(from+int64(1+l.rng.IntN(l.perFetch)), l.end), End: l.end}
	for o := from; o < f.Next; o++ {
		if size, ok := l.data[o]; ok {
			m := schemas.Message{Topic: "t", Offset: o, Value: make([]byte, size)}
			if !l.timeless {
				m.Time = time.Now().Add(-l.age)
			}
			f.Messages = append(f.Messages, m)
			f.Bytes += int64(size)
		}
	}
	l.leased.Add(1)
	f.Release = func() { l.leased.Add(-1) }
	l.biggest = max(l.biggest, f.Bytes)
	return f, nil
}

func (l *topicLog) Committed(_ context.Context, next int64) { l.advised.Store(next) }

// memoryOutput keeps what is committed. Another writer may be let in.
type memoryOutput struct {
	mu      sync.Mutex
	base    int64
	batches []schemas.Batch
	rival   func(start int64) (end int64) // 0: no rival this time
	fail    error
	slow    time.Duration

	staged     schemas.Batch // since the last Resume or Commit
	parts      int           // staged so far
	stagedRows int
	countOnly  bool // rows are not kept
	failStage  error
}

func (o *memoryOutput) Resume(context.Context, string, int32) (schemas.Position, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.staged = schemas.Batch{}
	if n := len(o.batches); n > 0 {
		return schemas.Position{Next: o.batches[n-1].End, Last: o.batches[n-1].Last, TopicID: o.batches[n-1].TopicID,
				Chunks: o.batches[n-1].Chunked},
			nil
	}
	return schemas.Position{Next: o.base}, nil
}

// Stage keeps a part for the commit, or, of an output that is large, only counts
// its rows.
func (o *memoryOutput) Stage(_ context.Context, b *schemas.Batch) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.parts++
	o.stagedRows += len(b.Results) + len(b.Rejects)
	if o.failStage != nil {
		return o.failStage
	}
	if !o.countOnly {
		o.staged.Results = append(o.staged.Results, b.Results...)
		o.staged.Rejects = append(o.staged.Rejects, b.Rejects...)
	}
	return nil
}

func (o *memoryOutput) Commit(_ context.Context, b *schemas.Batch) (schemas.Committed, error) {
	time.Sleep(o.slow)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fail != nil {
		return schemas.Committed{}, o.fail
	}
	if o.rival != nil {
		if end := o.rival(b.Start); end > 0 {
			o.batches = append(o.batches, schemas.Batch{Start: b.Start, End: end})
			return schemas.Committed{}, schemas.ErrLost
		}
	}
	c := *b
	if o.countOnly {
		c.Results, c.Rejects = nil, nil
	}
	c.Results = append(o.staged.Results, c.Results...)
	c.Rejects = append(o.staged.Rejects, c.Rejects...)
	o.staged = schemas.Batch{}
	o.batches = append(o.batches, c)
	return schemas.Committed{Tables: []schemas.TableFiles{{Table: "frames", Files: 1,
		Rows: int64(len(b.Results)), Bytes: 10}}}, nil
}

// echo gives one result a record, after a delay that differs from record to
// record, and refuses every seventh.
func echo(maxDelay time.Duration) func() Process {
	return func() Process {
		return func(m schemas.Message) ([]schemas.Result, []schemas.Reject) {
			if maxDelay > 0 {
				time.Sleep(time.Duration(m.Offset*7919%100) * maxDelay / 100)
			}
			if m.Offset%7 == 3 {
				return nil, []schemas.Reject{{Offset: m.Offset, Index: -1}}
			}
			return []schemas.Result{{FrameKey: schemas.FrameKey{Offset: m.Offset}, NPoints: 2}}, nil
		}
	}
}

func newPipeline(out Output, process func() Process, change func(*Config)) *Pipeline {
	cfg := Config{Output: out, NewProcess: process, Workers: 4, Memory: 1 << 30,
		Roll:    Roll{Bytes: 1 << 30, Records: 10},
		Metrics: metrics.New(prometheus.NewRegistry(), "test"), Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&cfg)
	}
	return New(cfg)
}

func randomLog(seed uint64, n int64) *topicLog {
	l := &topicLog{data: map[int64]int{}, end: n, perFetch: 9, rng: rand.New(rand.NewPCG(seed, 1))}
	for o := range n {
		if l.rng.IntN(5) > 0 {
			l.data[o] = l.rng.IntN(3000)
		}
	}
	return l
}

// checkChain fails unless the batches cover [base, end) without hole or
// overlap, hold every data record exactly once and in order, and count the rest
// as holes.
func checkChain(t *testing.T, o *memoryOutput, l *topicLog, end int64) {
	t.Helper()
	next := o.base
	for _, b := range o.batches {
		if b.Start != next {
			t.Fatalf("batch starts at %d, want %d", b.Start, next)
		}
		next = b.End
		var seen []int64
		r, x := b.Results, b.Rejects
		for len(r)+len(x) > 0 {
			if len(x) == 0 || (len(r) > 0 && r[0].Offset < x[0].Offset) {
				seen, r = append(seen, r[0].Offset), r[1:]
			} else {
				seen, x = append(seen, x[0].Offset), x[1:]
			}
		}
		var want []int64
		for off := b.Start; off < b.End; off++ {
			if _, ok := l.data[off]; ok {
				want = append(want, off)
			}
		}
		if fmt.Sprint(seen) != fmt.Sprint(want) {
			t.Fatalf("batch [%d, %d) holds %v, want %v", b.Start, b.End, seen, want)
		}
		if b.TopicID != l.id {
			t.Fatalf("batch [%d, %d) is of topic %x, want %x", b.Start, b.End, b.TopicID, l.id)
		}
		if b.Messages != int64(len(want)) || b.Holes != b.End-b.Start-b.Messages {
			t.Fatalf("batch [%d, %d) counts %d messages and %d holes", b.Start, b.End, b.Messages, b.Holes)
		}
		if len(want) > 0 && (b.Last == nil || b.Last.Offset != want[len(want)-1]) {
			t.Fatalf("batch [%d, %d): last record %+v, want offset %d", b.Start, b.End, b.Last, want[len(want)-1])
		}
	}
	if next != end {
		t.Fatalf("committed up to %d, want %d", next, end)
	}
}

// checkMemory fails unless all memory was handed back.
func checkMemory(t *testing.T, p *Pipeline, l *topicLog) {
	t.Helper()
	if n := l.leased.Load(); n != 0 {
		t.Errorf("%d fetches were not released", n)
	}
	if n := p.budget.used(); n != 0 {
		t.Errorf("%d bytes are still counted", n)
	}
}

// Whatever the speed of the workers, batches are in order and complete.
func TestEveryRecordIsCommittedOnceAndInOrder(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			l, o := randomLog(seed, 400), &memoryOutput{base: int64(seed % 3)}
			l.id = schemas.TopicID{byte(seed), 1}
			p := newPipeline(o, echo(10*time.Millisecond), nil)
			defer p.Close()
			if err := p.Partition(t.Context(), "t", 0, l); err != nil {
				t.Fatal(err)
			}
			checkChain(t, o, l, l.end)
			checkMemory(t, p, l)
			if l.advised.Load() != l.end {
				t.Errorf("the group was told %d, want %d", l.advised.Load(), l.end)
			}
			st := p.Stats()
			if int(st.Messages) != countFrom(l, o.base) || st.Frames+st.Rejects != st.Messages ||
				st.Points != 2*st.Frames {
				t.Errorf("stats %+v, want %d messages", st, countFrom(l, o.base))
			}
		})
	}
}

func countFrom(l *topicLog, base int64) (n int) {
	for o := range l.data {
		if o >= base {
			n++
		}
	}
	return n
}

// A race that is lost again and again loses no record and doubles none.
func TestLostRaceResumesFromTheRival(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			l, rng := randomLog(seed, 300), rand.New(rand.NewPCG(seed, 2))
			o := &memoryOutput{}
			theirs := map[int64]int64{}
			o.rival = func(start int64) int64 {
				if rng.IntN(3) > 0 {
					return 0
				}
				theirs[start] = min(start+1+int64(rng.IntN(30)), l.end)
				return theirs[start]
			}
			p := newPipeline(o, echo(time.Millisecond), nil)
			defer p.Close()
			if err := p.Partition(t.Context(), "t", 0, l); err != nil {
				t.Fatal(err)
			}
			if len(theirs) == 0 {
				t.Fatal("the rival never won: nothing was tested")
			}
			next := int64(0)
			for _, b := range o.batches {
				if b.Start != next {
					t.Fatalf("batch starts at %d, want %d", b.Start, next)
				}
				next = b.End
			}
			if next != l.end {
				t.Fatalf("committed up to %d, want %d", next, l.end)
			}
			checkMemory(t, p, l)
		})
	}
}

// The end of ctx commits what was processed and returns without an error.
func TestRevokedPartitionCommitsWhatItProcessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, o := randomLog(7, 45), &memoryOutput{}
		l.follow = true
		p := newPipeline(o, echo(time.Millisecond), nil)
		defer p.Close()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Partition(ctx, "t", 0, l) }()
		time.Sleep(time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		checkChain(t, o, l, l.end)
		checkMemory(t, p, l)
	})
}

// In the middle of the work, revocation leaves a chain that ends somewhere, and
// returns soon: work that has not begun is not done any more.
func TestRevocationSkipsWorkThatHasNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, o := randomLog(3, 100_000), &memoryOutput{}
		p := newPipeline(o, echo(time.Second), nil)
		defer p.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		start := time.Now()
		if err := p.Partition(ctx, "t", 0, l); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > 32*time.Second {
			t.Errorf("returned %v after the end of ctx", d-30*time.Second)
		}
		end := o.batches[len(o.batches)-1].End
		if end == l.end {
			t.Fatal("the whole log was processed: nothing was tested")
		}
		checkChain(t, o, l, end)
		checkMemory(t, p, l)
	})
}

// A batch is committed when it is old, though no record follows it.
func TestAgeRollsWithoutFurtherRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, o := randomLog(1, 5), &memoryOutput{}
		l.follow = true
		p := newPipeline(o, echo(0), func(c *Config) { c.Roll.Age = 40 * time.Second }) // a quarter in the first batch
		defer p.Close()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Partition(ctx, "t", 0, l) }()
		time.Sleep(9 * time.Second)
		if n := p.Stats().Batches; n != 0 {
			t.Errorf("%d batches before their age", n)
		}
		time.Sleep(2 * time.Second)
		if n := p.Stats().Messages; n != int64(len(l.data)) {
			t.Errorf("%d records committed after the age, want %d", n, len(l.data))
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

// A partition whose commits are stuck is seen to fall behind: lag is what is
// not committed, whether fetched or not, and as old as the first record read.
func TestLagGrowsWhileCommitsAreStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		l, o := randomLog(1, 50), &memoryOutput{base: 10, slow: time.Hour}
		l.follow, l.age = true, 2*time.Hour
		p := newPipeline(o, echo(0), func(c *Config) { c.Metrics = metrics.New(reg, "test") })
		defer p.Close()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Partition(ctx, "t", 0, l) }()
		time.Sleep(time.Minute)
		want := `
# HELP entropipe_consumer_lag_records Offsets from the end of the committed records to the end of the partition.
# TYPE entropipe_consumer_lag_records gauge
entropipe_consumer_lag_records{partition="0",topic="t"} 40
# HELP entropipe_consumer_lag_seconds Age of the last committed record while the partition lags; before the first commit, age of the first record read; 0 without lag.
# TYPE entropipe_consumer_lag_seconds gauge
entropipe_consumer_lag_seconds{partition="0",topic="t"} 7200
`
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "entropipe_consumer_lag_records",
			"entropipe_consumer_lag_seconds"); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

// Records without a timestamp have no age: no latency of centuries.
func TestRecordsWithoutTimestampHaveNoAge(t *testing.T) {
	for timeless, want := range map[bool]uint64{false: 1, true: 0} {
		reg := prometheus.NewRegistry()
		l, o := randomLog(1, 50), &memoryOutput{base: 10}
		l.timeless = timeless
		p := newPipeline(o, echo(0), func(c *Config) { c.Metrics = metrics.New(reg, "test") })
		if err := p.Partition(t.Context(), "t", 0, l); err != nil {
			t.Fatal(err)
		}
		p.Close()
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var count uint64 // a histogram without a value is not exported
		for _, f := range families {
			if f.GetName() == "entropipe_frame_latency_seconds" {
				count = f.Metric[0].Histogram.GetSampleCount()
			}
		}
		committed := 0
		for _, b := range o.batches {
			committed += len(b.Results) + len(b.Rejects)
		}
		if count != uint64(committed)*want || committed == 0 {
			t.Errorf("timeless %v: %d latencies of %d records", timeless, count, committed)
		}
	}
}

// Whatever is fetched and held stays near the limit, also when nothing but
// memory makes a batch roll, and the work ends.
func TestMemoryStaysBoundedAndRollsEarly(t *testing.T) {
	const limit = 8 << 20
	big := func() Process {
		return func(m schemas.Message) ([]schemas.Result, []schemas.Reject) {
			return []schemas.Result{{FrameKey: schemas.FrameKey{Offset: m.Offset}, Triangles: make([]int32, 100_000)}},
				nil
		}
	}
	o := &memoryOutput{}
	p := newPipeline(o, big, func(c *Config) { c.Memory, c.Roll = limit, Roll{Bytes: 1 << 40, Records: 1 << 40} })
	defer p.Close()
	var peak atomic.Int64
	watch := make(chan struct{})
	go func() {
		for {
			select {
			case <-watch:
				return
			default:
				peak.Store(max(peak.Load(), p.budget.used()))
				time.Sleep(50 * time.Microsecond)
			}
		}
	}()
	var wg sync.WaitGroup
	logs := make([]*topicLog, 3)
	for i := range logs {
		logs[i] = randomLog(uint64(i), 150)
		wg.Go(func() {
			if err := p.Partition(t.Context(), "t", int32(i), &renamed{logs[i]}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	close(watch)
	// What is fetched when the limit is reached becomes results of 400 kB: of each
	// partition nine records of one fetch, and what waits for the four workers or
	// is with them, five each.
	if got, most := peak.Load(), int64(limit+(3*9+4*5)*(400_512+3000)); got > most {
		t.Errorf("peak %d bytes, want at most %d", got, most)
	}
	if n := p.Stats().Batches; n < 6 {
		t.Errorf("%d batches: memory did not make them roll", n)
	}
	for i := range logs {
		checkMemory(t, p, logs[i])
	}
}

type renamed struct{ *topicLog }

func (r *renamed) Committed(context.Context, int64) {}

// Retention that overtakes the reader stops, or is recorded and skipped.
func TestGapStopsOrIsCommitted(t *testing.T) {
	l := randomLog(5, 100)
	l.logStart = 40
	stop := &memoryOutput{base: 10}
	p := newPipeline(stop, echo(0), nil)
	var gap *schemas.GapError
	if err := p.Partition(t.Context(), "t", 0, l); !errors.As(err, &gap) || gap.Next != 10 || gap.LogStart != 40 {
		t.Errorf("error %v, want the gap 10 to 40", err)
	}
	p.Close()

	skip := &memoryOutput{base: 10}
	p = newPipeline(skip, echo(0), func(c *Config) { c.SkipGaps = true })
	defer p.Close()
	if err := p.Partition(t.Context(), "t", 0, l); err != nil {
		t.Fatal(err)
	}
	if g := skip.batches[0]; !g.Gap || g.Start != 10 || g.End != 40 || g.Holes != 30 || len(g.Results) != 0 {
		t.Errorf("gap batch %+v", g)
	}
	skip.base, skip.batches = 40, skip.batches[1:]
	checkChain(t, skip, l, l.end)
}

// revokedOutput ends the partition when it is resumed for the second time.
type revokedOutput struct {
	memoryOutput
	resumed int
	revoke  func()
}

func (o *revokedOutput) Resume(ctx context.Context, topic string, id int32) (schemas.Position, error) {
	if o.resumed++; o.resumed == 2 {
		o.revoke()
		return schemas.Position{}, fmt.Errorf("%s/%d: resume: %w", topic, id, ctx.Err())
	}
	return o.memoryOutput.Resume(ctx, topic, id)
}

// A partition that is revoked while a gap is recorded has not failed, and one
// whose gap another writer records goes on from its end.
func TestGapThatIsNotCommitted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	revoked := &revokedOutput{revoke: cancel}
	skip := func(c *Config) { c.SkipGaps = true }
	l := randomLog(5, 100)
	l.logStart = 40
	p := newPipeline(revoked, echo(0), skip)
	if err := p.Partition(ctx, "t", 0, l); err != nil || len(revoked.batches) > 0 {
		t.Errorf("revoked: %v, %d batches", err, len(revoked.batches))
	}
	p.Close()

	rivals := 0
	o := &memoryOutput{base: 10, rival: func(int64) int64 {
		if rivals++; rivals == 1 {
			return 50
		}
		return 0
	}}
	p = newPipeline(o, echo(0), skip)
	if err := p.Partition(t.Context(), "t", 0, l); err != nil || rivals < 2 {
		t.Errorf("another's gap: %v", err)
	}
	p.Close()
	if o.batches[0].End != 50 {
		t.Errorf("the other's batch ends at %d", o.batches[0].End)
	}
	o.base, o.batches = 50, o.batches[1:]
	checkChain(t, o, l, l.end)

	broken := &memoryOutput{base: 10, fail: errors.New("no space left on device")}
	p = newPipeline(broken, echo(0), skip)
	defer p.Close()
	if err := p.Partition(t.Context(), "t", 0, l); !errors.Is(err, broken.fail) {
		t.Errorf("a gap that cannot be recorded: %v", err)
	}
}

// A commit that fails ends the partition with one error that says where.
func TestCommitFailureIsNamedOnce(t *testing.T) {
	l, o := randomLog(9, 100), &memoryOutput{fail: errors.New("no space left on device")}
	p := newPipeline(o, echo(0), nil)
	defer p.Close()
	err := p.Partition(t.Context(), "t", 3, l)
	if err == nil || err.Error() != "t/3@0: commit: no space left on device" {
		t.Errorf("error %q", err)
	}
	checkMemory(t, p, l)
}
