// Package ingest reads records from Kafka for the pipeline: it joins a consumer
// group, reads the partitions that it is assigned, and hands their records over
// in offset order without copying them. It also sends records, for whoever
// has some (Outbox).
//
// It does not decode, and it does not remember how far it came: offsets
// committed to Kafka are advice for lag tools, and the output alone knows where
// a partition goes on. Two members may therefore read one partition for a
// moment (a frozen process that wakes up); the output decides who was first.
//
// Words used here: a member of the group holds an assignment of partitions for
// one generation. A rebalance ends a generation: its partitions are revoked,
// drained, and assigned anew. A hole is a run of offsets without a data record:
// compaction, control records, aborted transactions. A target is the offset at
// which a partition ends for --until-end. A batch is what Kafka stores and
// compresses, a block is the memory that records of one fetch lie in.
//
// kafka-go does the connections, the routing and most requests. Two things are
// done here instead, through the raw connections of its Transport. Fetch
// answers are decoded straight into pooled, aligned blocks (records.go), with
// every length checked; kafka-go's own decoder copies each value twice, takes
// lengths on trust and ignores the last offset of a batch. And the membership
// is a plain loop of JoinGroup, SyncGroup and Heartbeat (group.go): kafka-go's
// ConsumerGroup stops its heartbeats when a rebalance starts, which is just
// when a long flush needs them, and creates the topics that it is asked for.
//
// Records that must be assembled from several messages (chunked frames) are to
// be put together between Partition.Fetch and the pipeline: a type that has
// the same three methods and withholds a frame until its last chunk is there.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"entropipe/schemas"
)

// defaultClientID is what a client calls itself that has no other name.
const defaultClientID = "entropipe"

// DefaultMaxFrameBytes is the largest value that is handed over whole.
const DefaultMaxFrameBytes = 64 << 20

// Config says what a Consumer reads. Brokers, Topics and Group are required.
type Config struct {
	Brokers  []string // HOST or HOST:PORT of some brokers; the others are found through them
	Security Security // how they are spoken to
	Topics   []string
	Group    string
	ClientID string // named in the brokers' logs and quotas; empty: entropipe. Members of the group are called so and by their process

	// Output names where the results go. A group whose members name another is
	// not joined: each output would get a part of the records. Empty: any will do.
	Output string

	// OutputInode tells copies of an output, which have its name, from each
	// other. A member of the group that says another inode writes to a copy.
	// Empty: unknown, which fits all.
	OutputInode string

	// UntilEnd ends every partition at the last stable offset that it had when
	// the consumer first saw it.
	UntilEnd bool

	// Reached tells whether everything of a partition before end is durable,
	// whoever made it so; Run asks it with UntilEnd, for every partition of the
	// topics, when the handles of this member are done. So a partition that
	// another member took and left, by dying for one, is not forgotten. nil: Run
	// does not care for what it was not given.
	Reached func(ctx context.Context, topic string, partition int32, end int64) (bool, error)

	// MaxFrameBytes bounds the memory one record may take: of a longer value
	// only the beginning is handed over, and Message.Oversize tells its length.
	MaxFrameBytes int64

	Timing Timing
	Log    *slog.Logger // nil: silent
	// Complaints are shared with an Outbox of the same brokers, so that one that is
	// away is a line a minute of both. nil: the Consumer's own.
	Complaints *Complaints
}

// Timing holds the durations that a Consumer waits for. The zero value of each
// means its default.
type Timing struct {
	Session   time.Duration // silence after which the group drops a member; 10 s
	Rebalance time.Duration // time the members have to drain and rejoin; 30 s
	Heartbeat time.Duration // 500 ms, and at most a fifth of Session
	Poll      time.Duration // how long a fetch waits for a first record; 500 ms
	Watch     time.Duration // between looks for new partitions and deleted topics; 3 s
	Missing   time.Duration // how long a topic may be gone before that is an error; 10 s
	Connect   time.Duration // for a first answer of the brokers; 10 s
}

// Consumer reads the topics of one configuration as one member of a group. Its
// methods may be called concurrently, Run only once at a time.
type Consumer struct {
	cfg     Config
	log     *slog.Logger
	cluster *cluster
	self    process
	free    freeList
	stats   counters

	complaints *Complaints

	mu      sync.Mutex
	targets map[string]map[int32]int64 // topic, partition: where it ends; nil without UntilEnd
	ids     map[string]schemas.TopicID // of the topics that Starts was asked for
	reached map[string]bool            // topic/partition: its end is durable; Run's alone
}

// NewConsumer checks cfg. It does not touch the network.
func NewConsumer(cfg Config) (*Consumer, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.Timing.setDefaults()
	c := &Consumer{cfg: cfg, log: cfg.Log, self: thisProcess(), ids: map[string]schemas.TopicID{}, complaints: cfg.Complaints}
	if c.complaints == nil {
		c.complaints = new(Complaints)
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if cfg.UntilEnd {
		c.targets, c.reached = map[string]map[int32]int64{}, map[string]bool{}
	}
	c.free.limit = freeLimit
	var err error
	c.cluster, err = newCluster(cfg.Brokers, cfg.Security, cfg.ClientID, cfg.Topics)
	return c, err
}

// Close drops the idle connections and the pooled memory. It is called after
// Run has returned.
func (c *Consumer) Close() {
	c.cluster.close()
	c.free.drop()
}

func (c *Config) check() error {
	if len(c.Topics) == 0 || slices.Contains(c.Topics, "") {
		return errors.New("no topic given")
	}
	if c.Group == "" {
		return errors.New("no consumer group given")
	}
	if c.ClientID == "" {
		c.ClientID = defaultClientID
	}
	if c.MaxFrameBytes == 0 {
		c.MaxFrameBytes = DefaultMaxFrameBytes
	}
	if c.MaxFrameBytes < 0 || c.MaxFrameBytes > 1<<30 {
		return fmt.Errorf("frames of up to %d bytes: want at most 1 GiB", c.MaxFrameBytes)
	}
	c.Topics = slices.Compact(slices.Sorted(slices.Values(c.Topics)))
	return nil
}

func (t *Timing) setDefaults() {
	for _, d := range []struct {
		v    *time.Duration
		want time.Duration
	}{
		{&t.Session, 10 * time.Second}, {&t.Rebalance, 30 * time.Second}, {&t.Heartbeat, 500 * time.Millisecond},
		{&t.Poll, 500 * time.Millisecond}, {&t.Watch, 3 * time.Second}, {&t.Missing, 10 * time.Second}, {&t.Connect, 10 * time.Second},
	} {
		if *d.v <= 0 {
			*d.v = d.want
		}
	}
	t.Heartbeat = min(t.Heartbeat, t.Session/5)
}
