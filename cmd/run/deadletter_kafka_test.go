//go:build kafka

package run_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"entropipe/cmd"
	"entropipe/ingest"
	"entropipe/schemas"
)

// A real broker whose topics take 1 MB: a refused message in chunks has a letter in chunks, and
// a second run sends nothing again.
func TestDeadLettersOnARealBroker(t *testing.T) {
	broker := os.Getenv("ENTROPIPE_KAFKA")
	if broker == "" {
		t.Skip("ENTROPIPE_KAFKA does not name a broker (HOST:PORT)")
	}
	topic, dir := "letters-"+rand.Text(), t.TempDir()
	dead, out := topic+".dead", filepath.Join(dir, "out")
	for _, name := range []string{topic, dead} {
		spec := ingest.TopicSpec{Partitions: 2, MaxMessageBytes: 1 << 20}
		if err := ingest.EnsureTopic(t.Context(), []string{broker}, ingest.Security{}, name, spec); err != nil {
			t.Fatal(err)
		}
	}
	values := map[string][]byte{"text": []byte("hello"), "none": nil, "empty": {},
		"large": bytes.Repeat([]byte("no cloud "), 300_000)}
	o, err := ingest.OpenOutbox(t.Context(), ingest.OutboxConfig{Brokers: []string{broker}, Topic: topic,
		Chunk: ingest.ChunkAuto})
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range values {
		r := &schemas.Record{Key: []byte(key), Value: value, Headers: []schemas.Header{{Key: "a", Value: []byte("b")}}}
		if err := o.Send(t.Context(), r, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		var stdout, stderr bytes.Buffer
		if status := cmd.Main([]string{"run", "--brokers", broker, "--topic", topic, "--out", out, "--until-end",
			"--dead-letter", dead, "--max-rejects", "none"}, &stdout, &stderr); status != 0 {
			t.Fatalf("round %d: exit status %d: %s", round, status, &stderr)
		}
		if want := fmt.Sprint("dead_letters=", len(values)*(1-round)); !strings.Contains(stderr.String(), want+" ") {
			t.Errorf("round %d: want %s: %s", round, want, &stderr)
		}
	}
	got, n := readAll(t, broker, dead), 0
	for _, m := range got {
		d, err := schemas.ParseDeadLetter(m.Headers)
		if err != nil || d.Topic != topic || d.ValueBytes >= 0 || len(schemas.StripDeadLetter(
			schemas.WithoutChunk(m.Headers))) != 1 {
			t.Errorf("%s: %+v, %v, headers %v", m.Key, d, err, m.Headers)
		}
		c, is, err := schemas.ChunkOf(&m)
		value, known := values[string(m.Key)]
		if err != nil || !known || is != (string(m.Key) == "large") || !is && !bytes.Equal(value, m.Value) ||
			(value == nil) != (m.Value == nil) {
			t.Errorf("letter of %s: %d bytes, chunk %v, %v", m.Key, len(m.Value), is, err)
		}
		if is {
			n++
			at := min(c.Index*len(m.Value), len(value)-len(m.Value))
			if c.Index == c.Count-1 {
				at = len(value) - len(m.Value)
			}
			if c.FrameBytes != int64(len(value)) || !bytes.Equal(value[at:at+len(m.Value)], m.Value) {
				t.Errorf("chunk %d of %d differs", c.Index, c.Count)
			}
		}
	}
	if n != 3 || len(got) != 6 {
		t.Errorf("%d letters and chunks, %d of them chunks of the large one", len(got), n)
	}
}

// readAll returns all records of a topic.
func readAll(t *testing.T, broker, topic string) (all []schemas.Message) {
	t.Helper()
	var starts map[int32]int64
	c, err := ingest.NewConsumer(ingest.Config{Brokers: []string{broker}, Topics: []string{topic},
		Group: "letters-" + rand.Text(), UntilEnd: true, MaxFrameBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if starts, err = c.Starts(t.Context(), topic, "earliest"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	read := make(chan schemas.Message, 100)
	err = c.Run(ctx, func(ctx context.Context, p *ingest.Partition) error {
		for next := starts[p.ID]; ; {
			f, err := p.Fetch(ctx, next, 1<<20)
			if err != nil {
				return nil // the end
			}
			for _, m := range f.Messages {
				m.Key, m.Value = slices.Clone(m.Key), slices.Clone(m.Value)
				m.Headers = slices.Clone(m.Headers)
				for i := range m.Headers {
					m.Headers[i] = schemas.Header{Key: strings.Clone(m.Headers[i].Key),
						Value: slices.Clone(m.Headers[i].Value)}
				}
				read <- m
			}
			next = f.Next
			f.Release()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	close(read)
	for m := range read {
		all = append(all, m)
	}
	return all
}
