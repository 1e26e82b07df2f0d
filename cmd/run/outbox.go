package run

import (
	"context"
	"log/slog"

	"entropipe/cmd/run/flags"
	"entropipe/cmd/run/stage"
	"entropipe/ingest"
)

// openOutbox connects to a topic that is published to, which gets as many partitions as
// the largest of those that are read. limit is the size of the largest message in a topic
// that is created; 0: the default. The outbox ends with close, not with ctx: what a
// stopping run has read is published.
func openOutbox(ctx context.Context, c *flags.Flags, topic string, limit int64, security ingest.Security,
	partitions int, log *slog.Logger, complaints *ingest.Complaints) (*ingest.Outbox, error) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, cancel)()
	o, err := ingest.OpenOutbox(lasting, ingest.OutboxConfig{Brokers: c.Source.Brokers, Security: security,
		Complaints: complaints, Topic: topic, Chunk: ingest.ChunkAuto,
		Create:   ingest.TopicSpec{Partitions: partitions, MaxMessageBytes: limit},
		Window:   min(int64(c.Resource.Memory)/8, 32<<20),
		Patience: stage.PublishPatience, Log: log})
	if err != nil {
		cancel()
	}
	return o, err
}

// resultsLimit is the size of the largest message in a topic of results that is created. A
// mesh takes some 50 bytes a point, so that a million points fit.
const resultsLimit = 64 << 20
