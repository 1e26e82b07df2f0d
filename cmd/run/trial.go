package run

import (
	"context"
	"sync"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/record"
)

// trial is an output that encodes tables and keeps none of them: it costs what an output
// costs, without its disk.
type trial struct {
	encoder sinks.Encoder

	mu    sync.Mutex
	next  map[record.TopicPartition]int64
	parts map[record.TopicPartition]int // staged parts of the next commit
	rows  map[record.TopicPartition]map[string]*schemas.TableFiles
}

func newTrial(encoder sinks.Encoder) *trial {
	return &trial{encoder: encoder, next: map[record.TopicPartition]int64{},
		parts: map[record.TopicPartition]int{},
		rows:  map[record.TopicPartition]map[string]*schemas.TableFiles{}}
}

// Resume returns the end of what was committed.
func (t *trial) Resume(_ context.Context, topic string, partition int32) (schemas.Position, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return schemas.Position{Next: t.next[record.TopicPartition{Topic: topic, ID: partition}]}, nil
}

// Stage encodes some of a batch.
func (t *trial) Stage(_ context.Context, b *schemas.Batch) error {
	p := record.TopicPartition{Topic: b.Topic, ID: b.Partition}
	t.mu.Lock()
	part := t.parts[p]
	t.parts[p]++
	t.mu.Unlock()
	for _, f := range t.encoder.Plan(b, part) {
		var w counter
		rows, err := t.encoder.Encode(&w, f, b)
		if err != nil {
			return err
		}
		t.mu.Lock()
		if t.rows[p] == nil {
			t.rows[p] = map[string]*schemas.TableFiles{}
		}
		table := t.rows[p][f.Table]
		if table == nil {
			table = &schemas.TableFiles{Table: f.Table}
			t.rows[p][f.Table] = table
		}
		table.Files++
		table.Rows += rows
		table.Bytes += int64(w)
		t.mu.Unlock()
	}
	return nil
}

// Commit encodes the rest of a batch and counts its files.
func (t *trial) Commit(ctx context.Context, b *schemas.Batch) (schemas.Committed, error) {
	if err := t.Stage(ctx, b); err != nil {
		return schemas.Committed{}, err
	}
	p := record.TopicPartition{Topic: b.Topic, ID: b.Partition}
	t.mu.Lock()
	defer t.mu.Unlock()
	var done schemas.Committed
	for _, table := range t.rows[p] {
		done.Tables = append(done.Tables, *table)
	}
	t.next[p] = b.End
	delete(t.parts, p)
	delete(t.rows, p)
	return done, nil
}

// counter counts the bytes that are written to it.
type counter int64

// Write implements io.Writer.
func (c *counter) Write(data []byte) (int, error) {
	*c += counter(len(data))
	return len(data), nil
}
