package pipeline

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"entropipe/schemas"
)

// Law: the log has the first reject of every reason of a topic, and no other.
func TestFirstRejectOfEveryReasonIsLogged(t *testing.T) {
	var log bytes.Buffer
	out := &topicOutput{}
	refuse := func() Process {
		return func(m schemas.Message) ([]schemas.Result, []schemas.Reject) {
			if m.Offset < 3 {
				return []schemas.Result{{FrameKey: schemas.FrameKey{Offset: m.Offset}}}, nil
			}
			return nil, []schemas.Reject{{Offset: m.Offset, Index: -1, Stage: "decode",
				Reason: fmt.Sprintf("reason_%d", m.Offset%2), Message: "bytes 1 to 4"}}
		}
	}
	p := newPipeline(out, refuse, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	for _, topic := range []string{"a", "b"} {
		if err := p.Partition(t.Context(), topic, 0,
			&endless{message: schemas.Message{Topic: topic}, n: 1000, each: 7}); err != nil {
			t.Fatal(err)
		}
	}
	p.Close()
	for _, want := range []string{"topic=a partition=0 offset=3 index=-1 stage=decode reason=reason_1",
		"topic=a partition=0 offset=4 ", "topic=b partition=0 offset=3 ", "topic=b partition=0 offset=4 ",
		`message="bytes 1 to 4"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no line has %s:\n%s", want, log.String())
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 4 {
		t.Errorf("%d lines, want one for each of two reasons of two topics:\n%s", n, log.String())
	}
}
