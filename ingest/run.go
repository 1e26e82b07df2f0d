package ingest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"entropipe/schemas"
)

// Handle reads one partition until ctx ends (the partition is revoked, or Run ends)
// or Fetch returns io.EOF. Then it makes durable what it has read, and returns nil.
// It may use ctx's values and the Partition after ctx has ended, because this process
// stays a member of the group until Handle returns.
type Handle func(ctx context.Context, p *Partition) error

// Starts returns the start of each partition of topic: its first offset if from is
// "earliest", its last stable offset if from is "latest". It waits for unreachable
// brokers for Timing.Connect. An unknown topic is an error, too.
func (c *Consumer) Starts(ctx context.Context, topic, from string) (map[int32]int64, error) {
	if from != "earliest" && from != "latest" {
		return nil, fmt.Errorf("start %q: want earliest or latest", from)
	}
	if err := c.cluster.reach(ctx, c.cfg.Timing.Connect); err != nil {
		return nil, err
	}
	extents, found, err := c.cluster.identified(ctx, topic, c.cfg.Timing.Connect)
	if err != nil {
		return nil, err
	}
	c.setTargets(topic, extents)
	c.mu.Lock()
	c.ids[topic] = found.id
	c.mu.Unlock()
	c.log.Info("found the topic", "topic", topic, "topic_id", found.id.String(), "cluster_id", found.cluster)
	starts := map[int32]int64{}
	for id, e := range extents {
		if starts[id] = e.start; from == "latest" {
			starts[id] = e.end
		}
	}
	return starts, nil
}

// TopicID returns the id that the topic had when Starts was called; the offsets of
// Starts and the targets belong to that topic. It returns zero if the brokers have no
// ids or Starts was not called.
func (c *Consumer) TopicID(topic string) schemas.TopicID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids[topic]
}

// setTargets fixes the ends of partitions that have none yet.
func (c *Consumer) setTargets(topic string, extents map[int32]extent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.targets == nil {
		return
	}
	if c.targets[topic] == nil {
		c.targets[topic] = map[int32]int64{}
	}
	for id, e := range extents {
		if _, known := c.targets[topic][id]; !known {
			c.targets[topic][id] = e.end
		}
	}
}

// warnOfOpen logs the partitions of topic whose targets leave records out: those behind the
// first one of a transaction that is open. A failure only loses the warning.
func (c *Consumer) warnOfOpen(ctx context.Context, topic string) {
	c.mu.Lock()
	targets := maps.Clone(c.targets[topic])
	c.mu.Unlock()
	if len(targets) == 0 {
		return
	}
	ends, err := c.cluster.listOffsets(ctx, topic, slices.Sorted(maps.Keys(targets)), kafka.LastOffset, false)
	if err != nil {
		c.log.Debug("the ends of partitions cannot be compared with open transactions", "topic", topic, "err", err)
		return
	}
	for _, id := range slices.Sorted(maps.Keys(targets)) {
		if left := ends[id] - targets[id]; left > 0 {
			c.log.Warn("the end is before the records of an open transaction; run again after it has ended",
				"topic", topic, "partition", id, "end", targets[id], "offsets_left", left)
		}
	}
}

func (c *Consumer) target(topic string, id int32) (target int64, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	target, known = c.targets[topic][id]
	return target, known
}

// Run joins the group and calls handle for every assigned partition, each in a
// goroutine of its own. It returns
//
//   - nil when ctx has ended, after all handles have returned and the group
//     is left; also when, with UntilEnd, all partitions are done: those of this
//     member and, by Config.Reached, those of others, for which it waits;
//   - the first error of a handle, once with its topic and partition, or a
//     clear one of its own: brokers that cannot be reached at first, a topic
//     that does not exist or is deleted. The handles are stopped before.
//
// When the group rebalances, the handles' contexts end, this member stays alive
// until they have returned, and joins again. Brokers that go away later are
// waited for. A handle that returns nil early leaves its partition idle.
func (c *Consumer) Run(ctx context.Context, handle Handle) error {
	if err := c.cluster.reach(ctx, c.cfg.Timing.Connect); err != nil {
		return ignoreEnd(ctx, err)
	}
	for _, topic := range c.cfg.Topics {
		extents, err := c.cluster.extents(ctx, topic, c.cfg.Timing.Connect)
		if err != nil {
			return ignoreEnd(ctx, err)
		}
		c.setTargets(topic, extents)
		c.warnOfOpen(ctx, topic)
	}
	c.dismiss(ctx)
	if err := c.agree(ctx); err != nil {
		return ignoreEnd(ctx, err)
	}
	var background sync.WaitGroup
	defer background.Wait()
	watching, end := context.WithCancel(ctx)
	defer end()
	background.Go(func() { c.dismissal(watching) })
	m := &membership{c: c, stays: c.cfg.Instance != ""}
	defer m.leave(ctx)
	for {
		done, err := c.round(ctx, m, handle)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if done {
			m.stays = false // nobody is to come back
			return nil
		}
		c.stats.rebalances.Add(1)
	}
}

// round is a member from one rebalance to the next. done: nothing is left to do.
func (c *Consumer) round(ctx context.Context, m *membership, handle Handle) (done bool, err error) {
	if m.anew { // the leave and the join make the group divide its partitions again
		m.anew, m.stays = false, false
		m.leave(ctx)
		m.stays = true
	}
	gen, err := m.join(ctx)
	if err != nil {
		return false, ignoreEnd(ctx, err)
	}
	again, err := c.generation(ctx, m, gen, handle)
	if err != nil || !again || ctx.Err() != nil {
		return !again, err
	}
	if c.cfg.UntilEnd && c.cfg.Reached != nil { // others may be done and leaving
		if left, err := c.unreached(ctx); err != nil || left == "" {
			return true, ignoreEnd(ctx, err)
		}
	}
	return false, nil
}

// ignoreEnd drops an error that came of ctx's end.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// result is how a handle ended.
type result struct {
	p   *Partition
	err error
}

// session is one generation while its handles run.
type session struct {
	c       *Consumer
	m       *membership
	ctx     context.Context // context of the handles
	revoke  context.CancelFunc
	running int
	again   bool // join again when all handles have returned
	err     error
	logged  time.Time
}

// generation runs the handles of one generation. again: the group has changed.
func (c *Consumer) generation(ctx context.Context, m *membership, gen *generation,
	handle Handle) (again bool, err error) {
	s := &session{c: c, m: m}
	s.ctx, s.revoke = context.WithCancel(ctx)
	defer s.revoke()
	parts, err := c.assigned(ctx, gen)
	if err != nil {
		return false, ignoreEnd(ctx, err)
	}
	c.log.Info("assigned", "group", c.cfg.Group, "generation", gen.id, "partitions", len(parts))
	c.stats.assigned.Store(int32(len(parts)))
	defer c.stats.assigned.Store(0)
	results := make(chan result)
	for _, p := range parts {
		s.running++
		go func() { results <- result{p, handle(s.ctx, p)} }()
	}
	// Heartbeats and the watch outlive ctx: the handles drain first.
	alive, rest := context.WithCancel(context.WithoutCancel(ctx))
	beats, watch := make(chan beat), make(chan error)
	var background sync.WaitGroup
	background.Go(func() { m.beat(alive, gen, beats) })
	background.Go(func() { c.watch(alive, gen, watch) })
	s.loop(results, beats, watch)
	rest()
	background.Wait()
	if fenced := (*InstanceError)(nil); ctx.Err() != nil && errors.As(s.err, &fenced) {
		s.err = nil // the successor came before this process had drained
	}
	return s.again && s.err == nil, s.err
}

// loop ends when no handle runs and none is to be waited for.
func (s *session) loop(results <-chan result, beats <-chan beat, watch <-chan error) {
	for !s.over() {
		var again <-chan time.Time
		if s.running == 0 && s.c.cfg.UntilEnd {
			again = time.After(s.c.cfg.Timing.Poll) // to ask over once more
		}
		select {
		case r := <-results:
			s.running--
			s.finished(r)
		case b := <-beats:
			if s.again = s.again || b != beatFine; b == beatFenced && s.err == nil {
				s.err = s.m.fenced()
			}
			if b != beatFine {
				s.revoke()
			}
		case err := <-watch:
			if err == errUnassigned {
				s.m.anew, err = true, nil
			}
			if s.again = s.again || err == nil; err != nil && s.err == nil {
				s.err = err
			}
			s.revoke()
		case <-s.done():
		case <-again:
		}
	}
}

// done is ready when the handles' context has ended and none runs.
func (s *session) done() <-chan struct{} {
	if s.running > 0 {
		return nil
	}
	return s.ctx.Done()
}

func (s *session) over() bool {
	switch {
	case s.running > 0:
		return false
	case s.ctx.Err() != nil:
		return true
	case !s.c.cfg.UntilEnd:
		return false
	case s.c.cfg.Reached == nil:
		return true
	}
	left, err := s.c.unreached(s.ctx)
	if err != nil {
		s.err = err
		return true
	}
	if left != "" && time.Since(s.logged) > 10*time.Second {
		s.logged = time.Now()
		s.c.log.Info("all partitions given to this process are done; waiting for those that other members of the "+
			"group have", "group", s.c.cfg.Group, "first", left)
	}
	return left == ""
}

// unreached returns a partition whose end is not durable yet, "" if there is
// none. What was reached is not asked for again.
func (c *Consumer) unreached(ctx context.Context) (string, error) {
	c.mu.Lock()
	targets := map[string]map[int32]int64{}
	for topic, byID := range c.targets {
		targets[topic] = maps.Clone(byID)
	}
	c.mu.Unlock()
	for _, topic := range slices.Sorted(maps.Keys(targets)) {
		for _, id := range slices.Sorted(maps.Keys(targets[topic])) {
			end, place := targets[topic][id], fmt.Sprintf("%s/%d", topic, id)
			if c.reached[place] {
				continue
			}
			done, err := c.cfg.Reached(ctx, topic, id, end)
			if err != nil {
				return place, fmt.Errorf("%s: the output does not say whether offset %d is durable: %w", place, end,
					err)
			}
			if !done {
				return place, nil
			}
			c.reached[place] = true
		}
	}
	return "", nil
}

// Left returns the first partition of the topics, as topic/partition, whose target is
// not durable according to Config.Reached, which must be set; "" if all targets are.
// It considers the partitions of all members. The caller makes sure that Run has
// returned.
func (c *Consumer) Left(ctx context.Context) (string, error) { return c.unreached(ctx) }

func (s *session) finished(r result) {
	if r.err == nil || s.ctx.Err() != nil && errors.Is(r.err, context.Canceled) {
		return
	}
	if s.err == nil {
		s.err = r.err
		// Some errors begin with their place, and with its offset.
		if at := fmt.Sprintf("%s/%d", r.p.Topic, r.p.ID); !strings.HasPrefix(r.err.Error(), at) {
			s.err = fmt.Errorf("%s: %w", at, r.err)
		}
	}
	s.revoke()
}

// assigned makes the partitions of gen, with their targets.
func (c *Consumer) assigned(ctx context.Context, gen *generation) ([]*Partition, error) {
	var parts []*Partition
	for _, topic := range slices.Sorted(maps.Keys(gen.assigned)) {
		slices.Sort(gen.assigned[topic])
		for _, id := range gen.assigned[topic] {
			p := c.partition(topic, id, gen)
			if c.cfg.UntilEnd {
				if err := c.aim(ctx, p); err != nil {
					return nil, err
				}
			}
			parts = append(parts, p)
		}
	}
	return parts, nil
}

// aim sets the target of a partition; one that was added since the start ends
// where it does now.
func (c *Consumer) aim(ctx context.Context, p *Partition) error {
	if _, known := c.target(p.Topic, p.ID); !known {
		extents, err := c.cluster.extents(ctx, p.Topic, c.cfg.Timing.Connect)
		if err != nil {
			return err
		}
		c.setTargets(p.Topic, extents)
	}
	p.target, _ = c.target(p.Topic, p.ID)
	return nil
}

// beat sends heartbeats until ctx ends, the last answers included.
func (m *membership) beat(ctx context.Context, gen *generation, out chan<- beat) {
	for sleep(ctx, m.c.cfg.Timing.Heartbeat) == nil {
		b := m.heartbeat(ctx, gen)
		select {
		case out <- b:
		case <-ctx.Done():
			return
		}
		if b == beatExpelled || b == beatFenced {
			return
		}
	}
}

// watch looks for topics that have got more partitions, which sends nil once,
// and for topics that are gone, which sends an error. Only the leader's join
// makes the group divide again, so only the leader looks for partitions. A static
// group may have no leader: there a member leaves the group and joins again.
func (c *Consumer) watch(ctx context.Context, gen *generation, out chan<- error) {
	missing, left := map[string]time.Time{}, orphans(0)
	for sleep(ctx, c.cfg.Timing.Watch) == nil {
		counts, err := c.cluster.partitions(ctx, c.cfg.Topics)
		if err != nil {
			continue // the brokers are away, which others report
		}
		news, err := false, error(nil)
		for _, topic := range c.cfg.Topics {
			switch since, gone := missing[topic]; {
			case counts[topic] == 0 && !gone:
				missing[topic] = time.Now()
			case counts[topic] == 0 && time.Since(since) >= c.cfg.Timing.Missing:
				err = fmt.Errorf("topic %q was deleted while it was read; a topic that is created again needs a new "+
					"--out", topic)
			case counts[topic] == 0:
			case gone: // created again: everything is to be checked
				news = true
			case gen.leader && counts[topic] != gen.counts[topic]:
				news = true
			}
		}
		if !news && err == nil {
			err = left.look(ctx, c, gen.member, counts)
		}
		if !news && err == nil {
			continue
		}
		select {
		case out <- err:
		case <-ctx.Done():
		}
		return
	}
}
