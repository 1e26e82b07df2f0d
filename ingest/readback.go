package ingest

import (
	"context"
	"errors"
	"io"

	"entropipe/schemas"
)

// readBackBytes is what Read fetches at a time.
const readBackBytes = 8 << 20

// Read gives use the records of a partition from offset from up to offset to, exclusive,
// in their order, and returns how many bytes their keys and values have. A record is valid
// during the call. Read joins no group. Its errors are those of Partition.Fetch and of
// use, and ctx's.
func (c *Consumer) Read(ctx context.Context, topic string, id int32, from, to int64,
	use func(*schemas.Message) error) (bytes int64, err error) {
	p := c.partition(topic, id, &generation{})
	p.target = to
	for at := from; at < to; {
		f, err := p.Fetch(ctx, at, readBackBytes)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return bytes, err
		}
		for i := range f.Messages {
			m := &f.Messages[i]
			bytes += int64(len(m.Key)) + max(int64(len(m.Value)), m.Oversize)
			if err = use(m); err != nil {
				break
			}
		}
		at = f.Next
		if f.Release != nil {
			f.Release()
		}
		if err != nil {
			return bytes, err
		}
	}
	return bytes, nil
}
