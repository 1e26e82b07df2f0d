package pipeline

import (
	"context"

	"entropipe/schemas"
)

// Partition is one assigned partition of the source, as the pipeline needs it.
// One goroutine at a time calls Check and Fetch; another one may call Committed
// meanwhile.
type Partition interface {
	// Check verifies that the log still continues the committed records. It
	// returns the id of the topic whose records Fetch returns from now on, or zero
	// if the source has no ids. Check compares the id with pos.TopicID and reads
	// the record of pos.Last again. The error is a *schemas.RecreatedError when the
	// topic has another id, another record is at that offset or the log ends before
	// pos.Next, and a *schemas.GapError when retention has deleted pos.Next.
	Check(ctx context.Context, pos schemas.Position) (schemas.TopicID, error)

	// Fetch returns records from offset from on: about maxBytes at most, but at
	// least one whole record, or an empty Fetched if no record came within the poll
	// time. Until ctx ends it retries passing failures, such as a broker that is
	// away. The error is io.EOF at the end that --until-end fixed, a
	// *schemas.GapError when retention deleted from, and a *schemas.RecreatedError
	// when another topic has the name now; Fetch never returns records of that one.
	Fetch(ctx context.Context, from int64, maxBytes int32) (schemas.Fetched, error)

	// Committed tells the consumer group that all records before next are durable.
	// Only lag tools use that offset, so the implementation logs failures.
	Committed(ctx context.Context, next int64)
}

// Past is what a Partition may have beside its methods, so that messages in chunks that begin
// before the end of --until-end are read to their ends behind it.
type Past interface {
	// FetchPast is Partition.Fetch behind that end. At the end of the log it returns an empty
	// Fetched. Fetch is not called after it.
	FetchPast(ctx context.Context, from int64, maxBytes int32) (schemas.Fetched, error)
}

// Publisher sends records to another topic, at least once. Any goroutine may call
// its methods.
type Publisher interface {
	// Send queues r, whose memory it then owns. It blocks until ctx ends while too
	// many bytes are unacknowledged. Once all replicas in sync have the record, acked
	// is called, from any goroutine; if the Publisher fails before, never.
	Send(ctx context.Context, r *schemas.Record, acked func()) error

	// Done is closed when the Publisher has failed: brokers were away for too
	// long, or refused a record. Err then returns the reason.
	Done() <-chan struct{}
	Err() error
}

// Output makes batches durable, exactly once. An error of any method may be a
// *schemas.UnavailableError: the call may succeed later, and Resume says what the
// output holds by then. Different goroutines call the methods for different
// partitions at the same time.
type Output interface {
	// Resume publishes the newest manifest of the partition, if there is one,
	// and returns the position of its end.
	Resume(ctx context.Context, topic string, partition int32) (schemas.Position, error)

	// Stage writes some of a batch's results and rejects, in order, ahead of its
	// Commit, which writes the rest. Before that Commit they are no part of the
	// output; Resume and a batch of another range discard them. b.Start and b.End
	// bound the whole batch. Stage does not retain b.
	Stage(ctx context.Context, b *schemas.Batch) error

	// Commit makes b durable, with the rows of it that were staged. It fails with
	// schemas.ErrLost when another writer has committed a batch of the same start.
	// Beside a *schemas.UnavailableError it returns the counts that hold if a later
	// Resume finds b in the output. Commit does not retain b.
	Commit(ctx context.Context, b *schemas.Batch) (schemas.Committed, error)
}
