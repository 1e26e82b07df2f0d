package pipeline

import (
	"context"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"entropipe/ops/metrics"
	"entropipe/schemas"
)

// mailbox is a topic of dead letters, which outlives processes.
type mailbox struct {
	mu      sync.Mutex
	letters map[string]*schemas.Record // by id, as acknowledged
	sent    int
	wrong   string
}

// post takes an acknowledged letter. Two letters of one id are equal.
func (b *mailbox) post(r *schemas.Record) {
	d, err := schemas.ParseDeadLetter(r.Headers)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent++
	if first := b.letters[d.String()]; err != nil || first != nil && !cmp.Equal(first, r) {
		b.wrong = fmt.Sprintf("%v: %+v, at first %+v", err, r, first)
	}
	b.letters[d.String()] = r
}

// of returns the letters of a record.
func (b *mailbox) of(r *schemas.Reject) (found []schemas.DeadLetter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, letter := range b.letters {
		d, _ := schemas.ParseDeadLetter(letter.Headers)
		if d.Topic == r.Topic && d.Partition == r.Partition && d.Offset == r.Offset {
			found = append(found, d)
		}
	}
	return found
}

// letterTopic is the connection of one process to a mailbox.
type letterTopic struct {
	*slowTopic
	box *mailbox
}

func (l letterTopic) Send(ctx context.Context, r *schemas.Record, acked func()) error {
	return l.slowTopic.Send(ctx, &schemas.Record{}, func() {
		l.box.post(r)
		acked()
	})
}

// letteredOutput notes the rejects that are committed before their letter is acknowledged.
type letteredOutput struct {
	memoryOutput
	box     *mailbox
	missing []string
}

func (o *letteredOutput) Commit(ctx context.Context, b *schemas.Batch) (schemas.Committed, error) {
	for _, r := range slices.Concat(o.staged.Rejects, b.Rejects) {
		if len(o.box.of(&r)) != 1 {
			o.missing = append(o.missing, fmt.Sprintf("%s/%d/%d/%d", r.Topic, r.Partition, r.Offset, r.Index))
		}
	}
	return o.memoryOutput.Commit(ctx, b)
}

// check compares the letters with the rejects that are committed: each message has one, with
// the lowest index of its rows, their number, and the reason of the first.
func (o *letteredOutput) check(t *testing.T, name string) {
	t.Helper()
	type row struct {
		N               int64
		Stage, Reason   string
		HasValue, Chunk bool
	}
	want, got := map[string]row{}, map[string]row{}
	last, id := int64(-1), ""
	for _, b := range o.batches {
		for _, r := range b.Rejects {
			if r.Offset != last {
				last = r.Offset
				id = schemas.DeadLetterID{Output: "out", Topic: r.Topic, Partition: r.Partition, Offset: r.Offset,
					Index: r.Index}.String()
				want[id] = row{Stage: r.Stage, Reason: r.Reason,
					HasValue: r.Stage != schemas.StageAssemble && r.Reason != schemas.ReasonTooLarge,
					Chunk:    r.Stage == schemas.StageAssemble || r.Reason == schemas.ReasonTooLarge}
			}
			w := want[id]
			w.N++
			want[id] = w
		}
	}
	for id, letter := range o.box.letters {
		d, _ := schemas.ParseDeadLetter(letter.Headers)
		got[id] = row{N: d.Rejects, Stage: d.Stage, Reason: d.Reason, HasValue: d.ValueBytes < 0,
			Chunk: d.ChunkID != ""}
	}
	if diff := cmp.Diff(want, got); diff != "" || o.box.wrong != "" || len(o.missing) > 0 {
		t.Errorf("%s: committed before its letter: %v\nletters that differ: %s\n-rejects +letters\n%s", name, o.missing,
			o.box.wrong, diff)
	}
}

// picky refuses some messages, and some frames of others, by the sum of the value.
func picky() Process {
	return func(m schemas.Message) (results []schemas.Result, rejects []schemas.Reject) {
		if m.Oversize > 0 {
			return nil, []schemas.Reject{schemas.NewReject(&m, &schemas.FormatError{Stage: schemas.StageDecode,
				Reason: schemas.ReasonTooLarge, At: -1})}
		}
		sum := crc32.ChecksumIEEE(m.Value)
		if sum%7 == 0 {
			return nil, []schemas.Reject{schemas.NewReject(&m, &schemas.FormatError{Stage: schemas.StageDecode,
				Reason: schemas.ReasonCorrupt, Detail: fmt.Sprint(sum), At: -1})}
		}
		for i := range int32(5) {
			if sum>>(3+i)%8 == 0 {
				rejects = refuse(rejects, &m, i, fmt.Errorf("frame %d of %d", i, sum))
			} else {
				results = append(results, schemas.Result{FrameKey: schemas.FrameKey{Offset: m.Offset, Index: i}})
			}
		}
		return results, rejects
	}
}

// Law: whatever ends processes, brokers and races, a reject is committed when its letter is
// acknowledged, and not before. In the end the letters are those of the rows: none is missing,
// and none is about a message without a row.
func TestEveryRejectHasItsDeadLetter(t *testing.T) {
	var letters, again int
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 5))
			log, _ := sensors(seed, 1+rng.IntN(5), 60, 300, 100, func(int) bool { return rng.IntN(9) == 0 })
			for i := range log {
				switch rng.IntN(30) {
				case 0: // a checksum, or two chunks of one place, differ; or another value
					log[i].Value = slices.Clone(log[i].Value)
					log[i].Value[0]++
				case 1:
					log[i].Headers = []schemas.Header{{Key: schemas.HeaderChunkID, Value: []byte("none")}}
				case 2:
					log[i].Headers = nil
				}
			}
			size, box := int64(len(log)), &mailbox{letters: map[string]*schemas.Record{}}
			out := &letteredOutput{box: box}
			for next := int64(0); next < size; {
				delay := []time.Duration{0, time.Second, 3 * time.Second, drainTime * 3 / 2}[rng.IntN(4)]
				topic := newSlowTopic(delay, 1+rng.IntN(20), rng.IntN(40)-1)
				p := newPipeline(out, picky, func(c *Config) {
					c.Memory, c.Chunks = 4000, Chunks{Window: 20000, Recent: 64, Max: 400}
					c.Roll = Roll{Bytes: 5000, Records: int64(1 + rng.IntN(9)), Age: 4 * time.Second}
					c.Letters, c.Origin = letterTopic{topic, box}, Origin{"out", "group", "host"}
				})
				ctx, stop := context.WithCancel(t.Context())
				l := &messageLog{messages: log, end: size, perFetch: 5, rng: rng, stop: stop,
					stopAt: next + 1 + rng.Int64N(size)}
				if err := p.Partition(ctx, "t", 0, l); err != nil && !strings.HasSuffix(err.Error(), "took nothing") {
					t.Fatalf("seed %d: %v", seed, err)
				}
				stop()
				topic.sink.Wait()
				p.Close()
				if n, m := p.budget.used(), l.leased.Load(); n != 0 || m != 0 {
					t.Fatalf("seed %d: %d bytes are still counted, %d fetches were not released", seed, n, m)
				}
				if n := len(out.batches); n > 0 {
					next = out.batches[n-1].End
				}
			}
			out.check(t, fmt.Sprint("seed ", seed))
			letters, again = letters+len(box.letters), again+box.sent-len(box.letters)
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d letters, and %d sent again", letters, again)
	if letters < 100 || again < 10 {
		t.Errorf("%d letters, %d sent again: too few to test", letters, again)
	}
}

// A large message, which is read in parts, has one letter for the rows of all its parts.
func TestDeadLetterOfALargeMessage(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	l := &listLog{}
	for i, n := range []int{3, 1500, 4, 700, 14, 2500, 2} {
		l.messages = append(l.messages, idMessage(t, int64(i), someIDs(rng, n)...))
	}
	box, reg := &mailbox{letters: map[string]*schemas.Record{}}, prometheus.NewRegistry()
	out, topic := &letteredOutput{box: box}, newSlowTopic(time.Millisecond, 1, -1)
	p := smallMemory(t, out, 2)
	p.cfg.Letters, p.cfg.Origin, p.cfg.Metrics = letterTopic{topic, box}, Origin{"out", "group", "host"},
		metrics.New(reg, "test")
	if err := p.Partition(t.Context(), "t", 0, l); err != nil {
		t.Fatal(err)
	}
	topic.sink.Wait()
	p.Close()
	out.check(t, "sequences")
	var bytes int
	for _, letter := range box.letters {
		d, _ := schemas.ParseDeadLetter(letter.Headers)
		if m := l.messages[d.Offset]; !slices.Equal(letter.Value, m.Value) || !slices.Equal(letter.Key, m.Key) {
			t.Errorf("the letter of offset %d has another value or key", d.Offset)
		}
		bytes += len(letter.Value)
	}
	if st := p.Stats(); out.parts < 3 || len(box.letters) < 4 || st.Letters != int64(len(box.letters)) ||
		st.LetterBytes != int64(bytes) || p.budget.used() != 0 {
		t.Errorf("%d parts, letters %v, %d bytes are still counted, stats %+v", out.parts,
			slices.Collect(maps.Keys(box.letters)), p.budget.used(), st)
	}
	want := fmt.Sprintf("# HELP entropipe_records_out_total Kafka records that left a stage.\n"+
		"# TYPE entropipe_records_out_total counter\n"+
		"entropipe_records_out_total{source=\"t\",stage=\"commit\"} 7\n"+
		"entropipe_records_out_total{source=\"t\",stage=\"dead_letter\"} %d\n", len(box.letters))
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "entropipe_records_out_total"); err != nil {
		t.Error(err)
	}
}

// Brokers that refuse a letter end the partition: nothing is committed without its letter.
func TestRefusedDeadLetterStops(t *testing.T) {
	for _, until := range []int{0, 1, 9} {
		for _, room := range []int{1, 1000} { // it fails in Send, or while a commit waits
			synctest.Test(t, func(t *testing.T) {
				l, topic := randomLog(3, 300), newSlowTopic(time.Second, room, until)
				box := &mailbox{letters: map[string]*schemas.Record{}}
				out := &letteredOutput{box: box}
				p := newPipeline(out, func() Process {
					return func(m schemas.Message) ([]schemas.Result, []schemas.Reject) {
						time.Sleep(time.Duration(m.Offset%3) * time.Millisecond)
						return nil, []schemas.Reject{schemas.NewReject(&m, fmt.Errorf("record %d", m.Offset))}
					}
				}, func(c *Config) { c.Letters, c.Origin = letterTopic{topic, box}, Origin{"out", "group", "host"} })
				defer p.Close()
				err := p.Partition(t.Context(), "t", 5, l)
				topic.sink.Wait()
				if err == nil || !strings.HasPrefix(err.Error(), "t/5@") ||
					!strings.HasSuffix(err.Error(), ": publish: the brokers took nothing") {
					t.Errorf("after %d letters: error %v", until, err)
				}
				if len(box.letters) != until || len(out.missing) > 0 {
					t.Errorf("after %d letters: %d are there; committed without: %v", until, len(box.letters),
						out.missing)
				}
				checkMemory(t, p, l)
			})
		}
	}
}

// Letters that brokers have not acknowledged count against the memory: a slow topic holds the
// reader up, and all is refused and committed in the end.
func TestDeadLettersCountAsMemory(t *testing.T) {
	const limit, size, n = 4 << 20, 100_000, 300
	synctest.Test(t, func(t *testing.T) {
		l := &topicLog{data: map[int64]int{}, end: n, perFetch: 3, rng: rand.New(rand.NewPCG(1, 1))}
		for o := range int64(n) {
			l.data[o] = size
		}
		box := &mailbox{letters: map[string]*schemas.Record{}}
		out, topic := &letteredOutput{box: box}, newSlowTopic(time.Minute, 1<<20, -1)
		p := newPipeline(out, func() Process {
			return func(m schemas.Message) ([]schemas.Result, []schemas.Reject) {
				r := schemas.NewReject(&m, fmt.Errorf("record %d", m.Offset))
				r.Value = nil // which would fill the batch
				return nil, []schemas.Reject{r}
			}
		}, func(c *Config) {
			c.Letters, c.Origin = letterTopic{topic, box}, Origin{"out", "group", "host"}
			c.Memory, c.Roll = limit, Roll{Bytes: 1 << 40, Records: 1 << 40}
		})
		defer p.Close()
		var peak int64
		over := make(chan struct{})
		go func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(time.Second):
					peak = max(peak, p.budget.used())
				}
			}
		}()
		if err := p.Partition(t.Context(), "t", 0, l); err != nil {
			t.Fatal(err)
		}
		close(over)
		synctest.Wait()
		// Beyond it go the records that were fetched before it was reached, and their letters.
		if most := int64(limit + 2*(4*4+4+3)*size); peak < limit/2 || peak > most {
			t.Errorf("peak %d bytes, want about %d, at most %d", peak, limit, most)
		}
		if len(box.letters) != n || len(out.missing) > 0 {
			t.Errorf("%d letters; committed without: %v", len(box.letters), out.missing)
		}
		checkMemory(t, p, l)
	})
}
