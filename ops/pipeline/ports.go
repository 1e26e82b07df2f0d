package pipeline

import (
	"context"

	"entropipe/schemas"
)

// Partition is one assigned partition of the source, as the pipeline needs it.
// One goroutine at a time calls Check and Fetch; another one may call Committed
// meanwhile.
type Partition interface {
	// Check tells whether the log still continues what was committed, and
	// returns the id of the topic whose records Fetch brings from then on; zero:
	// the source has no ids. It compares the id with that of pos and reads the
	// last committed record again. It fails with *schemas.RecreatedError when
	// the topic has another id, another record is there or the log ends before
	// pos.Next, and with *schemas.GapError when retention has deleted pos.Next.
	Check(ctx context.Context, pos schemas.Position) (schemas.TopicID, error)

	// Fetch returns records from offset from on, at most about maxBytes of
	// them but always a whole record, or an empty Fetched when none came
	// within the poll time. It retries what may pass (a broker that is away)
	// until ctx ends. io.EOF: the end that --until-end fixed is reached.
	// *schemas.GapError: retention overtook the reader. *schemas.RecreatedError:
	// the topic is another one now; nothing of it is ever returned.
	Fetch(ctx context.Context, from int64, maxBytes int32) (schemas.Fetched, error)

	// Committed tells the group that everything before next is durable. It is
	// advice for lag tools: failures are logged by the implementation.
	Committed(ctx context.Context, next int64)
}

// Publisher sends records to another topic, at least once. Its methods may be
// called from any goroutine.
type Publisher interface {
	// Send takes a record and its memory. It waits while too much is on its way,
	// until ctx ends. acked is called once all replicas in sync have the record,
	// from any goroutine, and never if the Publisher fails before.
	Send(ctx context.Context, r *schemas.Record, acked func()) error

	// Done is closed when the Publisher has failed: brokers were away for too
	// long, or refuse what they get. Err says why.
	Done() <-chan struct{}
	Err() error
}

// Output is where batches become durable, exactly once. An error of any method may
// be a *schemas.UnavailableError: it may pass, and Resume says what is in the output.
type Output interface {
	// Resume publishes the newest manifest of the partition, if there is one,
	// and returns where to go on.
	Resume(ctx context.Context, topic string, partition int32) (schemas.Position, error)

	// Stage takes a part of the results and rejects of a batch, in order, ahead
	// of its Commit, which brings the rest. Until then they are no part of the
	// output; Resume and a batch of another range forget them. b, which says
	// where the whole batch starts and ends, is not retained.
	Stage(ctx context.Context, b *schemas.Batch) error

	// Commit makes b durable, with the parts of it that were staged, or fails
	// with schemas.ErrLost when another writer has committed the same start. b
	// is not retained. Beside a *schemas.UnavailableError it returns what the output
	// holds if Resume finds b there.
	Commit(ctx context.Context, b *schemas.Batch) (schemas.Committed, error)
}
