package replay

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"entropipe/cmd/command"
	"entropipe/ingest"
	"entropipe/ingest/broker"
	"entropipe/schemas"
)

// listSource has messages that are made up.
type listSource struct {
	n      int64
	size   int
	before func(i int64) // called before each message
	to     string        // empty: topic target
}

func (s *listSource) each(ctx context.Context, use func(*candidate) error) error {
	for i := range s.n {
		s.before(i)
		id := schemas.DeadLetterID{Output: "o", Topic: "t", Offset: i, Index: -1}
		err := use(&candidate{id: id, stage: "decode", reason: "corrupt",
			fetch: func(context.Context) (*schemas.Message, error) {
				return &schemas.Message{Topic: "t", Offset: i, Value: make([]byte, s.size)}, nil
			}})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *listSource) extent(context.Context) (int64, time.Time, error) {
	return s.n, time.Now().Add(-time.Hour), nil
}
func (s *listSource) done() int64                                          { return 0 }
func (s *listSource) state(context.Context, *ingest.Topic) (*state, error) { return nil, nil }
func (s *listSource) close()                                               {}

// replayTo sends what a source has to topic target.
func replayTo(t *testing.T, addr string, s *listSource) (*summary, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	return replayWithin(ctx, addr, s)
}

// replayWithin is replayTo until ctx ends.
func replayWithin(ctx context.Context, addr string, s *listSource) (*summary, error) {
	c := &Command{From: "from", To: cmp.Or(s.to, "target"), MaxReplays: 3, Brokers: []string{addr}}
	log := slog.New(slog.DiscardHandler)
	r := &replayer{Command: c, source: s, kafka: cluster{brokers: c.Brokers, log: log}, summary: newSummary(c)}
	return r.summary, r.run(&command.Env{Ctx: ctx, Stdout: io.Discard, Stderr: io.Discard, Log: log})
}

func makeTarget(t *testing.T, addr string) {
	t.Helper()
	if err := ingest.EnsureTopic(t.Context(), []string{addr}, ingest.Security{}, "target",
		ingest.TopicSpec{Partitions: 2}); err != nil {
		t.Fatal(err)
	}
}

func deleteTarget(t *testing.T, addr string) {
	t.Helper()
	c := &kafka.Client{Addr: kafka.TCP(addr)}
	if _, err := c.DeleteTopics(t.Context(), &kafka.DeleteTopicsRequest{Topics: []string{"target"}}); err != nil {
		t.Fatal(err)
	}
	for {
		_, err := ingest.Describe(t.Context(), []string{addr}, ingest.Security{}, "target")
		if errors.Is(err, ingest.ErrNoTopic) {
			return
		}
	}
}

func startBroker(t *testing.T) string {
	t.Helper()
	b, err := broker.Start(broker.Config{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b.Addr()
}

// A target that is made again between two transactions has lost what was sent: the replay says
// so, and the next one sends what is missing.
func TestTargetIsMadeAgainInTheMiddle(t *testing.T) {
	t.Parallel()
	addr := startBroker(t)
	makeTarget(t, addr)
	const n = 3 * batchMessages
	s := &listSource{n: n, before: func(i int64) {
		if i == 2*batchMessages {
			deleteTarget(t, addr)
			makeTarget(t, addr)
		}
	}}
	if sum, err := replayTo(t, addr, s); err == nil || !strings.Contains(err.Error(), "was deleted meanwhile") {
		t.Errorf("%v with %s", err, sum)
	}
	s.before = func(int64) {}
	sum, err := replayTo(t, addr, s)
	if err != nil || sum.Sent+sum.Before != n || sum.Sent < batchMessages {
		t.Errorf("%v with %s", err, sum)
	}
	sum, err = replayTo(t, addr, s)
	if err != nil || sum.Counts != (Counts{Before: n}) {
		t.Errorf("%v with %s", err, sum)
	}
}

// A replay that another one fences in the middle ends with an error, and both together send
// each message once.
func TestTwoReplaysAtOnce(t *testing.T) {
	t.Parallel()
	addr := startBroker(t)
	makeTarget(t, addr)
	twoAtOnce(t, addr, "target")
}

// twoAtOnce starts a replay in the middle of another one.
func twoAtOnce(t *testing.T, addr, to string) {
	t.Helper()
	const n = 2*batchMessages + 50
	quiet := func(int64) {}
	var second *summary
	first := &listSource{n: n, to: to, before: func(i int64) {
		if i == batchMessages+10 { // a transaction is committed
			var err error
			if second, err = replayTo(t, addr, &listSource{n: n, to: to, before: quiet}); err != nil {
				t.Error(err)
			}
		}
	}}
	sum, err := replayTo(t, addr, first)
	if fenced := (*ingest.FencedError)(nil); !errors.As(err, &fenced) {
		t.Errorf("the first one: %v", err)
	}
	if second == nil || sum.Sent+second.Sent != n || sum.Sent != batchMessages {
		t.Errorf("%s, and %s", sum, second)
	}
	sum, err = replayTo(t, addr, &listSource{n: n, to: to, before: quiet})
	if err != nil || sum.Counts != (Counts{Before: n}) {
		t.Errorf("%v with %s", err, sum)
	}
}

// Headers of a row are those of the record, as far as the row can have them.
func TestHeadersOfRows(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                            "",
		"{}":                          "",
		`{"b":"2","a":"1"}`:           `a="1" b="2" `,
		`{"a":null,"b":""}`:           `a=null b="" `,
		`{"a":"data:;base64,/wA="}`:   `a="\xff\x00" `,
		`{"a":"data:;base64,no one"}`: `a="data:;base64,no one" `,
	} {
		hs, err := headersOf(text)
		var got bytes.Buffer
		for _, h := range hs {
			if h.Value == nil {
				fmt.Fprintf(&got, "%s=null ", h.Key)
				continue
			}
			fmt.Fprintf(&got, "%s=%q ", h.Key, h.Value)
		}
		if err != nil || got.String() != want {
			t.Errorf("%s: %s, %v; want %s", text, &got, err, want)
		}
	}
	if _, err := headersOf("[]"); err == nil {
		t.Error("a list passes for headers")
	}
}
