package ingest

import (
	"context"
	"maps"
	"slices"

	"entropipe/schemas"
)

// firstBytes is what is fetched to see one record: a broker sends the whole of the
// first one, however large.
const firstBytes = 64 << 10

// First gives use the first record of each partition at or behind its offset in
// from, partition by partition in their order, until use returns false. The record
// is valid during the call. It is for a look before the run: a partition without
// a record there, or whose record cannot be read now, is passed over, and the
// reading ends after Timing.Connect. Its only error is that of ctx.
func (c *Consumer) First(ctx context.Context, topic string, from map[int32]int64,
	use func(schemas.Message) bool) error {
	within, cancel := context.WithTimeout(ctx, c.cfg.Timing.Connect)
	defer cancel()
	extents, err := c.cluster.extents(within, topic, c.cfg.Timing.Connect)
	if err != nil {
		return ctx.Err()
	}
	for _, id := range slices.Sorted(maps.Keys(from)) {
		e := extents[id]
		e.start = max(e.start, from[id])
		if !c.first(within, topic, id, e, use) {
			break
		}
	}
	return ctx.Err()
}

// first gives use the first record of a partition within e, and returns what use
// does; true where there is no record.
func (c *Consumer) first(ctx context.Context, topic string, id int32, e extent, use func(schemas.Message) bool) bool {
	p := c.partition(topic, id, &generation{})
	p.target, p.topicID = e.end, c.TopicID(topic)
	for at := e.start; at < e.end; {
		f, err := p.Fetch(ctx, at, firstBytes)
		if err != nil {
			return ctx.Err() == nil
		}
		if len(f.Messages) > 0 {
			defer f.Release()
			return use(f.Messages[0])
		}
		at = f.Next
	}
	return true
}
