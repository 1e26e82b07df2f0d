package main

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	kafka "github.com/segmentio/kafka-go"

	"entropipe/ingest"
	"entropipe/ops/pipeline"
	"entropipe/schemas"
)

// kept is a row of table messages, and what it should be.
type kept struct {
	Timestamp *int64       `parquet:"timestamp"`
	Partition int32        `parquet:"partition"`
	Offset    int64        `parquet:"offset"`
	Key       *string      `parquet:"key"`
	Headers   []keptHeader `parquet:"headers,list"`
	ValueSize *int64       `parquet:"value_size"`
	Value     *string      `parquet:"value"`
}

type keptHeader struct {
	Key   string  `parquet:"key"`
	Value *string `parquet:"value"`
}

// messageAt identifies a message.
type messageAt struct {
	partition int32
	offset    int64
}

// textOrNull returns bytes as a string; nil: they are nil.
func textOrNull(b []byte) *string {
	if b == nil {
		return nil
	}
	return new(string(b))
}

// keptOf is the row of a message.
func keptOf(m *schemas.Message) *kept {
	row := &kept{Partition: m.Partition, Offset: m.Offset, Key: textOrNull(m.Key), Value: textOrNull(m.Value)}
	if ms := m.Time.UnixMilli(); ms > 0 {
		row.Timestamp = new(ms * 1000)
	}
	if m.Value != nil {
		row.ValueSize = new(int64(len(m.Value)))
	}
	for _, h := range m.Headers {
		row.Headers = append(row.Headers, keptHeader{h.Key, textOrNull(h.Value)})
	}
	return row
}

// messagesOf returns the rows that the messages of a topic should have.
func messagesOf(t *testing.T, brokers, topic string) map[messageAt]*kept {
	t.Helper()
	found, err := ingest.Describe(t.Context(), []string{brokers}, ingest.Security{}, topic)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ingest.NewConsumer(ingest.Config{Brokers: []string{brokers}, Topics: []string{topic}, Group: "rows"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	rows := map[messageAt]*kept{}
	for _, p := range found.Partitions {
		open := map[string]*pipeline.Single{} // messages of chunks
		if _, err := c.Read(t.Context(), topic, p.ID, p.Start, p.End, func(m *schemas.Message) error {
			chunk, is, err := schemas.ChunkOf(m)
			if !is {
				rows[messageAt{p.ID, m.Offset}] = keptOf(m)
				return nil
			}
			if err == nil && open[chunk.ID] == nil {
				open[chunk.ID] = &pipeline.Single{}
			}
			if err != nil {
				return err
			}
			whole, err := open[chunk.ID].Add(m, 1<<30)
			if whole {
				first := open[chunk.ID].Message()
				rows[messageAt{p.ID, first.Offset}] = keptOf(first)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return rows
}

// keptRows returns the rows of table messages, and fails if one is there twice.
func keptRows(t *testing.T, out string) map[messageAt]*kept {
	t.Helper()
	rows := map[messageAt]*kept{}
	files, err := filepath.Glob(filepath.Join(out, "messages", "topic=*", "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		found, err := parquet.ReadFile[kept](file)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for i := range found {
			row := &found[i]
			if len(row.Headers) == 0 {
				row.Headers = nil
			}
			at := messageAt{row.Partition, row.Offset}
			if rows[at] != nil {
				t.Errorf("offset %d of partition %d is there twice", at.offset, at.partition)
			}
			rows[at] = row
		}
	}
	return rows
}

// sameMessages compares rows, and names the first that differs.
func sameMessages(t *testing.T, want, got map[messageAt]*kept) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d messages are kept, the topic has %d", len(got), len(want))
	}
	for _, at := range slices.SortedFunc(maps.Keys(want), func(a, b messageAt) int {
		return int(int64(a.partition-b.partition)<<32 + a.offset - b.offset)
	}) {
		w, g := want[at], got[at]
		switch {
		case g == nil:
			t.Fatalf("offset %d of partition %d is missing", at.offset, at.partition)
		case w.Value != nil && g.Value != nil && *w.Value != *g.Value:
			t.Fatalf("offset %d of partition %d: %d bytes, which are not the %d that were sent", at.offset,
				at.partition, len(*g.Value), len(*w.Value))
		case w.Value != nil && g.Value != nil:
			w.Value, g.Value = nil, nil // too long to show
		}
		if d := cmp.Diff(w, g); d != "" {
			t.Fatalf("offset %d of partition %d: -want +got\n%s", at.offset, at.partition, d)
		}
	}
}

// Law: table messages has a row of each message, byte for byte, though the run is killed at any
// moments: frames, frames in chunks, tombstones, empty values, and what nobody can read, with
// keys and headers that are null, empty, repeated and no text. Rows = messages.
func TestMessagesAreKeptThroughKills(t *testing.T) {
	t.Parallel()
	dir, brokers, rng := t.TempDir(), startBroker(t), rand.New(rand.NewPCG(1, 7))
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	const kinds, frames, chunked = 5 * 7, 12, 8 // each size, with and without what else differs
	var strange []kafka.Message
	for i := range kinds {
		m := kafka.Message{Key: noise(i % 4), Value: noise([]int{0, 1, 900, 70_000, 300_000}[i%5]),
			Headers: []kafka.Header{{Key: "number", Value: fmt.Append(nil, i)}, {Key: "raw", Value: noise(5)},
				{Key: "raw", Value: []byte{}}, {Key: "none"}}}
		switch i % 7 {
		case 3:
			m.Value = nil // a tombstone
		case 5:
			m.Key, m.Headers = nil, nil
		}
		strange = append(strange, m)
	}
	if err := sendRaw(brokers, "all", strange...); err != nil {
		t.Fatal(err)
	}
	must(t, dir, "produce", "synthetic", "--kind", "lidar", "--points", "6000", "--frames", strconv.Itoa(frames),
		"--rate", "max", "--key", "frame", "--brokers", brokers, "--topic", "all")
	must(t, dir, "produce", "synthetic", "--kind", "lidar", "--points", "9000", "--frames", strconv.Itoa(chunked),
		"--rate", "max", "--chunk", "64KiB", "--brokers", brokers, "--topic", "all")
	if err := sendRaw(brokers, "all", strange...); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "--brokers", brokers, "--topic", "all", "--out", "out", "--roll-records", "1",
		"--roll-age", "100ms", "--ops", "none", "--tables", "messages", "--max-rejects", "none",
		"--session-timeout", "6s", "--memory", "16MiB"}
	out := filepath.Join(dir, "out")
	total, between := sent(t, brokers, "all"), 0
	for range 4 { // each kill comes when some more is committed
		before := reached(t, out)
		p := launch(t, dir, args...)
		waitFor(t, "a commit", func() bool { return reached(t, out) > min(before+rng.Int64N(20), total-1) })
		p.killed()
		if n := reached(t, out); n < total {
			between++
		}
	}
	if between == 0 {
		t.Error("no run was killed before its end")
	}
	must(t, dir, append(args, "--until-end")...)
	want := messagesOf(t, brokers, "all")
	sameMessages(t, want, keptRows(t, out))
	messages := int64(0)
	for _, p := range verified(t, out).Partitions {
		messages += p.Messages
	}
	if all := 2*kinds + frames + chunked; len(want) != all || messages != int64(len(want)) {
		t.Errorf("the topic has %d messages, and verify counts %d; want %d", len(want), messages, all)
	}
	if said := must(t, dir, "info", "out", "--sql"); !bytes.Contains([]byte(said), []byte("VIEW messages AS")) {
		t.Errorf("info --sql has no view of the messages:\n%s", said)
	}
}
