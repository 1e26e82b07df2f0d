package schemas

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A reject holds copies, of bounded size, and the checksum of everything.
func TestNewReject(t *testing.T) {
	value := bytes.Repeat([]byte{7}, MaxRejectValue+10)
	m := Message{Topic: "t", Partition: 1, Offset: 2, Time: time.Unix(5, 0), Key: []byte("k"), Value: value,
		Headers: []Header{{"ts-ns", []byte("77")}, {"big", make([]byte, MaxRejectValue)}, {"last", nil}}}
	r := NewReject(&m, fmt.Errorf("wrapped: %w", formatErr(ReasonCorrupt, 9, "broken")))
	value[0], m.Key[0] = 0, 0 // the source has its memory back
	if r.Stage != StageDecode || r.Reason != ReasonCorrupt || r.Message != "broken (at byte 9)" || r.Index != -1 ||
		r.TimeNs != 77 || r.Retriable {
		t.Errorf("%+v", r)
	}
	if len(r.Value) != MaxRejectValue || r.Value[0] != 7 || string(r.Key) != "k" || r.ValueSize != MaxRejectValue+10 ||
		len(r.Headers) != 1 {
		t.Errorf("value %d bytes of %d, key %q, %d headers", len(r.Value), r.ValueSize, r.Key, len(r.Headers))
	}
	if r.ValueSHA != "f8b8d18a11621c4ba395542037e870c4041f11ffa95e2cfe9524eaabbff6e4d6" {
		t.Errorf("checksum %q", r.ValueSHA)
	}
	for name, c := range map[string]struct {
		m    Message
		size int64
	}{
		"a chunk with bad headers": {Message{Value: []byte("abc")}, 3},
		"chunks with a wrong sum":  {Message{Value: []byte("abcdef")}, 6},
		"chunks are missing":       {Message{Oversize: 9}, 9},
		"two chunks of one place":  {Message{Value: []byte("abc"), Oversize: 9}, 9},
	} {
		r := NewReject(&c.m, &FormatError{Stage: StageAssemble, Reason: ReasonChunkConflict, Detail: "d", At: -1})
		if r.Value != nil || r.ValueSHA != "" || r.ValueSize != c.size {
			t.Errorf("%s: value %q of %d bytes, checksum %q", name, r.Value, r.ValueSize, r.ValueSHA)
		}
	}
	m = Message{Topic: "t", Time: time.Unix(5, 0)}
	r = NewReject(&m, errors.New("disk on fire"))
	if r.Reason != ReasonInternal || r.ValueSHA != "" || r.Value != nil || r.TimeNs != 5e9 {
		t.Errorf("tombstone: %+v", r)
	}
}

// A message whose every sequence is refused costs its own bytes once, not once
// a sequence.
func TestRejectsOfOneMessageShareWhatTheyHave(t *testing.T) {
	m := Message{Topic: "t", Partition: 2, Offset: 9, Key: []byte("key"),
		Value: bytes.Repeat([]byte("v"), MaxRejectValue), Headers: []Header{{Key: "h", Value: []byte("x")}}}
	first := NewReject(&m, formatErr(ReasonBadValue, 7, "first"))
	got := first.Another(5, &FormatError{Stage: StageModel, Reason: ReasonTooLong, Detail: "second", At: -1})
	want := first
	want.Index, want.Stage, want.Reason, want.Message = 5, StageModel, ReasonTooLong, "second"
	want.Key, want.Headers, want.Value = nil, nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(first.Value) != MaxRejectValue || first.Message != "first (at byte 7)" || got.ValueSHA == "" {
		t.Errorf("%+v", first.Message)
	}
}
