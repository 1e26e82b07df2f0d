package live

import "fmt"

// State is what people read of a process, once a second. Names of its fields in JSON never
// change.
type State struct {
	TimeNs   int64    `json:"time_ns"` // nanoseconds since 1970
	UptimeS  float64  `json:"uptime_s"`
	Version  string   `json:"version"`
	Revision string   `json:"revision"`
	Ready    bool     `json:"ready"`
	Reason   string   `json:"reason"` // why it is not ready
	Health   []Health `json:"health"`

	Totals  Counts[int64]   `json:"totals"`
	Rates   Counts[float64] `json:"rates"` // a second, over the last five
	Latency Latency         `json:"latency"`
	Topics  []TopicState    `json:"topics"`
	Lag     Lag             `json:"lag"`

	Way              []Stage `json:"way"`
	Bottleneck       string  `json:"bottleneck"` // a stage of Way; empty: none
	BottleneckReason string  `json:"bottleneck_reason"`

	Backfill *Backfill `json:"backfill,omitempty"` // nil: the process follows topics

	Process   Process  `json:"process"`
	Peers     []Peer   `json:"peers"`
	PeersNote string   `json:"peers_note"` // why Peers may lack some; empty: it lacks none
	Watchers  Watchers `json:"watchers"`
}

// Health says whether one part works, else why not.
type Health struct {
	What   string `json:"what"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason"`
}

// Counts are totals since the start, or a second. All but Messages, BytesIn and Rejects
// count what is committed.
type Counts[N int64 | float64] struct {
	Messages  N `json:"messages"`
	Frames    N `json:"frames"`
	Points    N `json:"points"`
	Sequences N `json:"sequences"`
	Tokens    N `json:"tokens"`
	Rejects   N `json:"rejects"`
	BytesIn   N `json:"bytes_in"`
	BytesOut  N `json:"bytes_out"`
	Rows      N `json:"rows"`
}

// add adds the counts of o.
func (c *Counts[N]) add(o *Counts[N]) {
	to, from := c.all(), o.all()
	for i := range to {
		*to[i] += *from[i]
	}
}

// all returns the counts in a fixed order.
func (c *Counts[N]) all() [9]*N {
	return [...]*N{&c.Messages, &c.Frames, &c.Points, &c.Sequences, &c.Tokens, &c.Rejects, &c.BytesIn, &c.BytesOut,
		&c.Rows}
}

// rates returns what came in a second between two counts. A count that fell, because the
// process counts anew, gives 0.
func rates(from, to *Counts[int64], seconds float64) (r Counts[float64]) {
	if seconds <= 0 {
		return r
	}
	old, now, each := from.all(), to.all(), r.all()
	for i := range each {
		*each[i] = float64(max(*now[i]-*old[i], 0)) / seconds
	}
	return r
}

// Latency holds quantiles of the time from Kafka's timestamp to the commit; nil: nothing
// was committed.
type Latency struct {
	P50 *float64 `json:"p50_ms"`
	P95 *float64 `json:"p95_ms"`
	P99 *float64 `json:"p99_ms"`
}

// TopicState is the part of a topic.
type TopicState struct {
	Topic   string          `json:"topic"`
	Totals  Counts[int64]   `json:"totals"`
	Rates   Counts[float64] `json:"rates"`
	Latency Latency         `json:"latency"`
}

// Lag says how far the commits are behind.
type Lag struct {
	Verdict    string      `json:"verdict"`
	Seconds    float64     `json:"seconds"` // lag of the partition that is most behind
	Partitions []Partition `json:"partitions"`
	// Elsewhere are the partitions of the topics that this process does not read.
	Elsewhere     []Elsewhere `json:"elsewhere"`
	ElsewhereNote string      `json:"elsewhere_note"` // reason for unknown numbers; empty: none
}

// Partition is the lag of one partition.
type Partition struct {
	Topic      string   `json:"topic"`
	Partition  int32    `json:"partition"`
	Records    int64    `json:"records"`
	Seconds    float64  `json:"seconds"`
	Owner      string   `json:"owner"`
	CommitAgeS *float64 `json:"commit_age_s"` // nil: nothing was committed
	OpenFrames int64    `json:"open_frames"`  // messages of which some chunks were read, and others were not
	Held       string   `json:"held"`         // reason for which it stands still; empty: none
}

// Backfill is how far the lanes of a process are, whichever process computed them.
type Backfill struct {
	Lanes     int      `json:"lanes"`
	LanesDone int      `json:"lanes_done"`
	Items     int64    `json:"items"`
	ItemsDone int64    `json:"items_done"`
	LeftS     *float64 `json:"left_s"` // nil: not known yet
}

// String says it in words: backfill: 12 of 97 lanes, 3 min left.
func (b *Backfill) String() string {
	switch text := fmt.Sprintf("backfill: %d of %d lanes", b.LanesDone, b.Lanes); {
	case b.LanesDone == b.Lanes || b.LeftS == nil:
		return text
	default:
		return text + ", " + duration(*b.LeftS) + " left"
	}
}

// Elsewhere is a partition that another member of the consumer group reads, or none.
type Elsewhere struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	// Records is the log's end less the offset that the group has committed to the brokers,
	// which is advice: the output may be ahead of it. nil: unknown.
	Records *int64 `json:"records"`
	Owner   string `json:"owner"` // empty: none
	URL     string `json:"url"`   // URL of the owner's page; empty: unknown
}

// Stage is one stage on the way of a frame.
type Stage struct {
	Stage string  `json:"stage"`
	Rate  float64 `json:"rate"` // a second
	Ms    float64 `json:"ms"`   // mean
	Busy  float64 `json:"busy"` // share of the time in which its resource was in use, 0 to 1
	Queue *Queue  `json:"queue"`
}

// Queue is what waits before a stage.
type Queue struct {
	Length   float64 `json:"length"`
	Capacity float64 `json:"capacity"`
}

// Process holds the numbers of the operating system's process.
type Process struct {
	CPUCores   float64 `json:"cpu_cores"` // in use, over the last five seconds
	RSSBytes   int64   `json:"rss_bytes"`
	HeapBytes  int64   `json:"heap_bytes"`
	Goroutines int64   `json:"goroutines"`
	Memory     Memory  `json:"memory"`
}

// Memory is the budget of records, results and rows.
type Memory struct {
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
}

// Peer is another process that writes to the same output.
type Peer struct {
	Name       string `json:"name"`
	URL        string `json:"url"`        // URL of its page, http or https; empty: unknown
	Partitions int    `json:"partitions"` // number of partitions it reads
}

// Group is what a process knows of the other members of its consumer group.
type Group struct {
	Peers         []Peer
	Note          string // why Peers may lack some; empty: it lacks none
	Elsewhere     []Elsewhere
	ElsewhereNote string
}

// Watchers counts who watches.
type Watchers struct {
	Pages    int `json:"pages"`
	Foxglove int `json:"foxglove"`
}

// Series holds numbers of the last seconds, oldest first. A latency is nil in a second
// without commits.
type Series struct {
	Seconds    []int64    `json:"seconds"` // Unix time
	Frames     []float64  `json:"frames"`  // a second, as all of these
	Points     []float64  `json:"points"`
	BytesIn    []float64  `json:"bytes_in"`
	BytesOut   []float64  `json:"bytes_out"`
	Tokens     []float64  `json:"tokens"`
	Rejects    []float64  `json:"rejects"`
	P50        []*float64 `json:"p50_ms"`
	P95        []*float64 `json:"p95_ms"`
	P99        []*float64 `json:"p99_ms"`
	LagSeconds []float64  `json:"lag_seconds"`
}
