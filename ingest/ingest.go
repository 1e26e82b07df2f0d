// Package ingest reads records from Kafka for the pipeline: a Consumer joins a
// consumer group, reads its assigned partitions, and returns their records in
// offset order without copying them. An Outbox sends records to a topic.
//
// Package ingest does not decode values, and it does not store positions: offsets
// committed to Kafka only serve lag tools, and the output alone knows where a
// partition resumes. So two members may read one partition for a moment, for example
// after a frozen process wakes up; the output decides which of them commits.
//
// Vocabulary: a member of the group holds an assignment of partitions for one
// generation. A rebalance ends a generation: its partitions are revoked, drained,
// and assigned anew. A hole is a run of offsets without a data record: compacted
// records, control records, aborted transactions. A target is the offset at which a
// partition ends for --until-end. A batch is Kafka's unit of storage and compression;
// a block is memory that holds records of one fetch.
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
	"sync/atomic"
	"time"

	"entropipe/schemas"
)

// defaultClientID is what a client calls itself that has no other name.
const defaultClientID = "entropipe"

// DefaultMaxFrameBytes is the default of Config.MaxFrameBytes.
const DefaultMaxFrameBytes = 64 << 20

// Config configures a Consumer. Brokers, Topics and Group are required.
type Config struct {
	Brokers  []string // HOST or HOST:PORT of some brokers, which name the others
	Security Security // encryption and login for connections to the brokers
	Topics   []string
	Group    string
	ClientID string // name in the brokers' logs, quotas and group members; empty: entropipe

	// Instance is the group instance id of a static member: a process that joins with the id of
	// another takes its place, partitions and all, and the other's Run returns an InstanceError.
	// Run leaves the group only when its work is done, not when its context ends or after an
	// error. CheckInstance must accept it. Empty: a dynamic member.
	Instance string

	// Output names the output of the results. The Consumer does not join a group
	// whose members name another output, since each output would get a part of the
	// records. Empty: the Consumer joins any group.
	Output string

	// OutputInode distinguishes copies of an output, which have the same name. A
	// member of the group with another inode writes to a copy. Empty: unknown, which
	// matches every inode.
	OutputInode string

	// Page is the URL of this process's live page, which members of the group may read
	// (View). CheckPage must accept it. Empty, and without Output: none is told.
	Page string

	// UntilEnd ends every partition at the last stable offset that it had when
	// the consumer first saw it.
	UntilEnd bool

	// Reached tells whether all records of a partition before end are durable,
	// whichever process committed them. With UntilEnd, Run calls Reached for every
	// partition of the topics when the handles of this member have returned, so that
	// the partitions of a member that died are waited for. nil: Run waits only for
	// the partitions that were assigned to this member.
	Reached func(ctx context.Context, topic string, partition int32, end int64) (bool, error)

	// MaxFrameBytes bounds the memory of one record. A Message holds only the
	// beginning of a longer value, and the length in Oversize. 0:
	// DefaultMaxFrameBytes.
	MaxFrameBytes int64

	Timing Timing
	Log    *slog.Logger // nil: no log
	// Complaints are shared with an Outbox of the same brokers, so that both together
	// log one line a minute about a broker that is away. nil: the Consumer's own.
	Complaints *Complaints
}

// Timing holds the intervals and timeouts of a Consumer. A zero field means the
// default that its comment names.
type Timing struct {
	Session   time.Duration // silence after which the group drops a member; 10 s
	Rebalance time.Duration // time that members have to drain and rejoin; 30 s
	Heartbeat time.Duration // interval of heartbeats; 500 ms, and at most a fifth of Session
	Poll      time.Duration // time that a fetch waits for a first record; 500 ms
	Watch     time.Duration // interval of checks for new partitions and deleted topics; 3 s
	Missing   time.Duration // time after which a missing topic is an error; 10 s
	Connect   time.Duration // timeout of the brokers' first answer; 10 s
}

// Consumer reads the topics of one configuration as one member of a group. Any
// goroutine may call its methods, but only one at a time may call Run.
type Consumer struct {
	cfg     Config
	log     *slog.Logger
	cluster *cluster
	self    process
	free    freeList
	stats   counters

	complaints *Complaints
	memberID   atomic.Pointer[string] // id of this member; nil before the first generation

	mu      sync.Mutex
	targets map[string]map[int32]int64 // by topic and partition, the target; nil without UntilEnd
	ids     map[string]schemas.TopicID // by topic, the id that Starts found
	// by topic/partition, whether all before the target is durable; used by Run alone
	reached map[string]bool
}

// NewConsumer checks cfg and returns a Consumer. It does not use the network.
func NewConsumer(cfg Config) (*Consumer, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.Timing.setDefaults()
	c := &Consumer{cfg: cfg, log: cfg.Log, self: thisProcess(), ids: map[string]schemas.TopicID{},
		complaints: cfg.Complaints}
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

// Close closes idle connections and frees pooled memory. The caller makes sure that
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
		return fmt.Errorf("the largest frame has %d bytes; want at most 1 GiB (--max-frame-bytes)", c.MaxFrameBytes)
	}
	if c.Page != "" {
		if err := CheckPage(c.Page); err != nil {
			return fmt.Errorf("page %q: %w", c.Page, err)
		}
	}
	if c.Instance != "" {
		if err := CheckInstance(c.Instance); err != nil {
			return fmt.Errorf("group instance %q: %w", c.Instance, err)
		}
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
		{&t.Poll, 500 * time.Millisecond}, {&t.Watch, 3 * time.Second}, {&t.Missing, 10 * time.Second},
		{&t.Connect, 10 * time.Second},
	} {
		if *d.v <= 0 {
			*d.v = d.want
		}
	}
	t.Heartbeat = min(t.Heartbeat, t.Session/5)
}
