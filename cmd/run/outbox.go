package run

import (
	"context"
	"log/slog"

	"entropipe/cmd/run/flags"
	"entropipe/cmd/run/stage"
	"entropipe/ingest"
)

// openOutbox connects to the topic of --publish, which gets as many partitions
// as the largest of those that are read. It ends with close, not with ctx: what
// a stopping run has read is published.
func openOutbox(ctx context.Context, c *flags.Flags, security ingest.Security, partitions int, log *slog.Logger,
	complaints *ingest.Complaints) (*ingest.Outbox, error) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, cancel)()
	o, err := ingest.OpenOutbox(lasting, ingest.OutboxConfig{Brokers: c.Source.Brokers, Security: security,
		Complaints: complaints, Topic: c.Publish.Publish,
		Create: ingest.TopicSpec{Partitions: partitions}, Window: min(int64(c.Resource.Memory)/8, 32<<20),
		Patience: stage.PublishPatience, Log: log})
	if err != nil {
		cancel()
	}
	return o, err
}
