package replay

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"entropipe/ingest"
	"entropipe/schemas"
)

// Resume continues an earlier run of a Producer that ended at any moment. The earlier run
// must have had the same source, keys, packs and pass count or fewer; its messages say by
// their headers how far it came.
//
// With KeySequence the partition of a sequence is read back from its end until the last
// message of each sensor is found; the source goes on behind that frame. With KeyFrame and
// KeyNone all partitions are read back, and a frame whose number is there is not sent
// again.
type Resume struct {
	// Window bounds the bytes that are read back: of a partition with KeySequence, else of
	// all together; 0: 1 GiB.
	Window int64
	// OrStart sends a source from its begin if the topic has none of its frames; else that
	// is an error.
	OrStart bool
}

const defaultResumeWindow = 1 << 30

// frameKey is what the frames of one sensor have in common.
type frameKey struct{ dataset, sequence, sensor string }

// resumer reads a topic back. Any goroutine may use it; a nil resumer finds nothing.
type resumer struct {
	Resume
	topic    string
	keyed    bool // all frames of a sequence are in one partition
	consumer *ingest.Consumer

	mu    sync.Mutex
	tails map[int]*tail
	sets  map[frameKey]*frameSet // without keyed; nil: not read yet
	sent  map[string]bool        // data sets of which a message was found
}

// tail is the end of a partition that was read back.
type tail struct {
	start, from int64              // first offset of the partition, and of what was read
	bytes       int64              // keys and values that were read
	records     int64              // records that were read
	last        map[frameKey]int64 // number of the newest message
}

// frameSet holds numbers of frames that are in the topic. Numbers below floor are taken to
// be there.
type frameSet struct {
	numbers map[int64]struct{}
	floor   int64
}

func (p *Producer) openResumer(ctx context.Context) (*resumer, error) {
	t, err := ingest.Describe(ctx, p.Brokers, p.Security, p.Topic)
	if err != nil {
		return nil, fmt.Errorf("resume: %w", err)
	}
	r := &resumer{Resume: *p.Resume, topic: p.Topic, keyed: p.Key == KeySequence, tails: map[int]*tail{},
		sent: map[string]bool{}}
	if r.Window <= 0 {
		r.Window = defaultResumeWindow
	}
	r.consumer, err = ingest.NewConsumer(ingest.Config{Brokers: p.Brokers, Security: p.Security,
		Topics: []string{p.Topic}, Group: "entropipe-resume", ClientID: "entropipe-produce", Log: p.Log})
	if err != nil {
		return nil, err
	}
	for _, at := range t.Partitions {
		r.tails[int(at.ID)] = &tail{start: at.Start, from: at.Stable, last: map[frameKey]int64{}}
	}
	return r, nil
}

func (r *resumer) close() { r.consumer.Close() }

// begin returns the state for one source; nil for a nil resumer.
func (r *resumer) begin(ctx context.Context) *resumed {
	if r == nil {
		return nil
	}
	return &resumed{resumer: r, ctx: ctx, at: map[frameKey]*position{}}
}

// resumed is how far one source came in an earlier run.
type resumed struct {
	*resumer
	ctx context.Context
	at  map[frameKey]*position
}

// position is the newest frame of a sensor in the topic.
type position struct {
	last  int64
	ahead bool // the source has not come to that frame yet
}

// has reports whether the topic has an item already. partition is where the item goes.
func (s *resumed) has(it *Item, partition int) (bool, error) {
	if s == nil {
		return false, nil
	}
	key := frameKey{it.Dataset, it.Sequence, it.Sensor}
	if !s.keyed {
		return s.inSet(key, it.Number)
	}
	at := s.at[key]
	if at == nil {
		last, found, err := s.find(s.ctx, key, partition)
		if err != nil {
			return false, err
		}
		at = &position{last: last, ahead: found}
		s.at[key] = at
	}
	if !at.ahead {
		return false, nil
	}
	if it.Number == at.last {
		at.ahead = false
	}
	return true, nil
}

// finished returns an error if a source ended before it came to where the topic ends.
func (s *resumed) finished() error {
	if s == nil {
		return nil
	}
	for key, at := range s.at {
		if at.ahead {
			return fmt.Errorf("resume: topic %s ends with frame %d of %s, which the source does not have: nothing "+
				"of %s was sent; the source, --loop, --limit, --pack and the names must be those of the run that is "+
				"resumed",
				s.topic, at.last, key, key.sequence)
		}
	}
	return nil
}

// String names the sensor of a sequence.
func (k frameKey) String() string {
	text := k.dataset + " " + k.sequence
	if k.sensor != "" {
		text += ", " + k.sensor
	}
	return text
}

// find returns the number of the newest message of key, which is in the partition.
func (r *resumer) find(ctx context.Context, key frameKey, partition int) (last int64, found bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tails[partition]
	if t == nil {
		return 0, false, fmt.Errorf("resume: topic %s has got a partition %d meanwhile", r.topic, partition)
	}
	for {
		if last, found = t.last[key]; found {
			return last, true, nil
		}
		if t.from <= t.start || t.bytes >= r.Window {
			break
		}
		if err := r.back(ctx, int32(partition), t, t.step(r.Window), t.keep); err != nil {
			return 0, false, err
		}
	}
	return 0, false, r.absent(key, partition, t.start > 0 || t.from > t.start)
}

// absent returns nil if a sequence that was not found is to be sent from its begin. cut:
// older messages of its partition were not read, or are deleted.
func (r *resumer) absent(key frameKey, partition int, cut bool) error {
	if r.OrStart || !cut && r.sent[key.dataset] {
		return nil
	}
	where := fmt.Sprintf("partition %d of topic %s", partition, r.topic)
	if partition < 0 {
		where = "topic " + r.topic
	}
	if cut {
		return fmt.Errorf("resume: no message of %s is among the last %d bytes of %s; raise --resume-window, or "+
			"send it from its begin with --resume=or-start", key, r.Window, where)
	}
	return fmt.Errorf("resume: %s has no message of %s; send it from its begin with --resume=or-start", where, key)
}

// step returns how many offsets to go back at once: about 32 MiB, and within the window.
func (t *tail) step(window int64) int64 {
	const first, block = 16, 32 << 20
	if t.records == 0 {
		return first
	}
	mean := max(1, t.bytes/t.records)
	return max(1, min(block, window-t.bytes)/mean)
}

// back reads the n offsets before what was read of a partition.
func (r *resumer) back(ctx context.Context, partition int32, t *tail, n int64,
	keep func(frameKey, int64)) error {
	from := max(t.start, t.from-n)
	newest := map[frameKey]int64{}
	bytes, err := r.consumer.Read(ctx, r.topic, partition, from, t.from, func(m *schemas.Message) error {
		t.records++
		key, number, ok := frameOf(m)
		if !ok {
			return nil
		}
		r.sent[key.dataset] = true
		if !completes(m) {
			return nil
		}
		newest[key] = number
		if keep != nil && !r.keyed {
			keep(key, number)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	if r.keyed {
		for key, number := range newest {
			keep(key, number)
		}
	}
	t.from, t.bytes = from, t.bytes+bytes
	return nil
}

// keep notes the newest message of a key, unless a newer one is known.
func (t *tail) keep(key frameKey, number int64) {
	if _, ok := t.last[key]; !ok {
		t.last[key] = number
	}
}

// frameOf returns what the headers of a message say; false: it is none of produce's.
func frameOf(m *schemas.Message) (key frameKey, number int64, ok bool) {
	for _, h := range m.Headers {
		switch h.Key {
		case schemas.HeaderDataset:
			key.dataset = string(h.Value)
		case schemas.HeaderSequence:
			key.sequence = string(h.Value)
		case schemas.HeaderSensor:
			key.sensor = string(h.Value)
		case schemas.HeaderFrameID:
			n, err := strconv.ParseInt(strings.TrimSpace(string(h.Value)), 10, 64)
			number, ok = n, err == nil
		}
	}
	return key, number, ok
}

// completes reports whether the message that m belongs to is whole with m. Chunks of one
// sending are in their order in one partition, so the last one comes after all others. A
// producer that died between them leaves a message that nobody can read: it is sent again.
func completes(m *schemas.Message) bool {
	c, chunk, err := schemas.ChunkOf(m)
	return err == nil && (!chunk || c.Index == c.Count-1)
}

// inSet reports whether a frame is in any partition.
func (s *resumed) inSet(key frameKey, number int64) (bool, error) {
	r := s.resumer
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sets == nil {
		if err := r.readSets(s.ctx); err != nil {
			return false, err
		}
	}
	set := r.sets[key]
	if set == nil {
		cut := false
		for _, t := range r.tails {
			cut = cut || t.from > 0
		}
		if err := r.absent(key, -1, cut); err != nil {
			return false, err
		}
		set = &frameSet{}
		r.sets[key] = set
	}
	_, is := set.numbers[number]
	return is || number < set.floor, nil
}

// readSets reads all partitions back, each by an equal share of the window.
func (r *resumer) readSets(ctx context.Context) error {
	r.sets = map[frameKey]*frameSet{}
	share := max(1, r.Window/int64(len(r.tails)))
	for id, t := range r.tails {
		least := map[frameKey]int64{}
		keep := func(key frameKey, number int64) {
			set := r.sets[key]
			if set == nil {
				set = &frameSet{numbers: map[int64]struct{}{}}
				r.sets[key] = set
			}
			set.numbers[number] = struct{}{}
			if n, ok := least[key]; !ok || number < n {
				least[key] = number
			}
		}
		for t.from > t.start && t.bytes < share {
			if err := r.back(ctx, int32(id), t, t.step(share), keep); err != nil {
				return err
			}
		}
		if t.from == 0 {
			continue
		}
		for key, n := range least { // frames before the first one that was read are taken to be there
			r.sets[key].floor = max(r.sets[key].floor, n)
		}
	}
	return nil
}
