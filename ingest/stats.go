package ingest

import "sync/atomic"

// Stats is a snapshot of a Consumer's counters since NewConsumer.
type Stats struct {
	Fetches      int64 // answers of brokers
	Bytes        int64 // bytes of record batches received
	Records      int64 // data records handed over
	FetchErrors  int64 // fetches that failed and were tried again
	Rebalances   int64 // generations that ended because the group changed
	JoinErrors   int64 // attempts to join that failed
	CommitErrors int64 // offset commits that failed
	Generation   int32 // generation of the group; -1: this process is no member now
	Assigned     int   // partitions held now
	Connected    bool  // the last request to the brokers was answered
}

// Stats returns the present counters.
func (c *Consumer) Stats() Stats {
	s := &c.stats
	return Stats{
		Fetches: s.fetches.Load(), Bytes: s.bytes.Load(), Records: s.records.Load(), FetchErrors: s.fetchErrors.Load(),
		Rebalances: s.rebalances.Load(), JoinErrors: s.joinErrors.Load(), CommitErrors: s.commitErrors.Load(),
		Generation: s.generation.Load() - 1, Assigned: int(s.assigned.Load()), Connected: c.cluster.connected.Load(),
	}
}

type counters struct {
	fetches, bytes, records, fetchErrors, rebalances, joinErrors, commitErrors atomic.Int64

	generation atomic.Int32 // one more than the group's, so that zero is none
	assigned   atomic.Int32
}
