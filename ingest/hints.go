package ingest

import (
	"context"
	"strconv"
	"strings"
	"time"

	kafka "github.com/segmentio/kafka-go"
)

// beginPrefix begins the metadata of a committed offset.
const beginPrefix = "begin="

// beginOf returns the metadata of a committed offset whose last commit begins at from.
func beginOf(from int64) string { return beginPrefix + strconv.FormatInt(from, 10) }

// parseBegin is the inverse of beginOf. false: other programs wrote the metadata.
func parseBegin(metadata string) (from int64, ok bool) {
	digits, ok := strings.CutPrefix(metadata, beginPrefix)
	from, err := strconv.ParseInt(digits, 10, 64)
	return from, ok && err == nil && from >= 0
}

// Hints returns where the newest commit of partitions began, as far as the group's coordinator
// knows: what Committed left there last, by a process of the group. It is advice alone. It may
// be of a time long past, of another output, or of another topic of that name; partitions of
// which nothing is known are absent, all of them after a failure, which is logged. Hints takes
// at most two seconds.
func (c *Consumer) Hints(ctx context.Context, topic string, ids []int32) map[int32]int64 {
	asked, hints := make([]int, len(ids)), map[int32]int64{}
	for i, id := range ids {
		asked[i] = int(id)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := c.cluster.client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: c.cfg.Group,
		Topics: map[string][]int{topic: asked}})
	if err == nil {
		err = r.Error
	}
	if err != nil {
		c.log.Debug("committed offsets cannot be fetched", "topic", topic, "error", err)
		return hints
	}
	for _, p := range r.Topics[topic] {
		if from, ok := parseBegin(p.Metadata); ok && p.Error == nil {
			hints[int32(p.Partition)] = from
		}
	}
	return hints
}
