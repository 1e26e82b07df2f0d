package run

import (
	"context"

	"entropipe/ops/live"
	"entropipe/ops/metrics"
	"entropipe/ops/pipeline"
)

// Feed is where the records of a Service come from: topics, or an archive. One goroutine
// calls its methods, but Ready and Count, which any goroutine may call after Open.
type Feed interface {
	// Look finds the source before the output is opened, so that a start that fails for it
	// leaves no folder.
	Look(ctx context.Context, s *Service) error

	// Open is called once the output is open and before there is a pipeline. It compares
	// the content with the one of the output (Service.CheckContent) and writes down where
	// every partition begins. It returns how many partitions the largest topic has.
	Open(ctx context.Context, s *Service) (partitions int, err error)

	// Run calls handle for the partitions, each in a goroutine of its own, until all of
	// them are done, ctx ends (then it returns nil), or one fails.
	Run(ctx context.Context, handle Handle) error

	// Verdict says why a run that ended without an error is no success. ctx has ended if a
	// signal came.
	Verdict(ctx context.Context) error

	// Topics are the topics of the output that the feed writes. They are fixed by Open.
	Topics() []string

	// Name is what Ready is about, such as brokers.
	Name() string

	// Ready says why no record can be read now; nil: records can be read.
	Ready() error

	// Count reports what has changed since its last call.
	Count(m *metrics.Metrics)

	// Close ends what Look and Open began. Run has returned.
	Close()
}

// Archived is a Feed of recorded items: their times say nothing about when they came.
type Archived interface {
	Feed

	// Backfill says how far the lanes of this process are. Any goroutine may call it after Open.
	Backfill() *live.Backfill
}

// Handle processes a partition until ctx ends or the partition does.
type Handle func(ctx context.Context, topic string, id int32, p pipeline.Partition) error
