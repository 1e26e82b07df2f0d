package schemas

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const outputUUID = "0b7d6a52-3c5e-4f5f-9a55-1f2f3f4f5f6f"

// refusedMessage is a message that a decoder refuses, and its reject.
func refusedMessage() (*Message, Reject) {
	m := &Message{Topic: "points", Partition: 3, Offset: 41, Key: []byte("drive"), Value: []byte("no cloud"),
		Headers: []Header{{"dataset", []byte("kitti")}, {"empty", nil}}}
	return m, NewReject(m, formatErr(ReasonNotArrow, 0, "it is text"))
}

// The bytes of a letter are fixed: consumers read them with programs of their own.
func TestDeadLetterGolden(t *testing.T) {
	m, r := refusedMessage()
	d := NewDeadLetter(m, &r, 1, "")
	d.Output, d.Group, d.Worker = outputUUID, "entropipe-0b7d6a52", "host-7"
	got := d.Record(m)
	m.Key[0], m.Value[0], m.Headers[0].Value[0] = 'X', 'X', 'X' // the source has its memory back
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s %d\n", got.Key, got.Value, got.From)
	for _, h := range got.Headers {
		fmt.Fprintf(&text, "%s: %s\n", h.Key, h.Value)
	}
	const want = `drive no cloud 3
dataset: kitti
empty: 
entropipe.error.id: 0b7d6a52-3c5e-4f5f-9a55-1f2f3f4f5f6f/points/3/41/-1
entropipe.error.topic: points
entropipe.error.partition: 3
entropipe.error.offset: 41
entropipe.error.index: -1
entropipe.error.rejects: 1
entropipe.error.stage: decode
entropipe.error.reason: not_arrow
entropipe.error.exception.class.name: decode/not_arrow
entropipe.error.exception.message: it is text (at byte 0)
entropipe.error.retriable: true
entropipe.error.connector.name: entropipe-0b7d6a52
entropipe.error.task.id: host-7
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Error(diff)
	}
	if got.Headers[1].Value != nil {
		t.Error("a null header has become an empty one")
	}
	back, err := ParseDeadLetter(got.Headers)
	if diff := cmp.Diff(d, back); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if left := StripDeadLetter(got.Headers); len(left) != 2 || left[0].Key != "dataset" || left[1].Key != "empty" {
		t.Errorf("headers of the message: %v", left)
	}
}

// Each kind of message has a letter that holds what is said here.
func TestDeadLetterHolds(t *testing.T) {
	chunk := []Header{{"a", []byte("b")}, {"chunk-id", []byte("0123456789abcdef")}, {"chunk-index", []byte("0")},
		{"chunk-count", []byte("2")}, {"frame-bytes", []byte("9")}}
	incomplete := &FormatError{Stage: StageAssemble, Reason: ReasonIncomplete, At: -1}
	for _, c := range []struct {
		name  string
		m     Message
		err   error
		chunk string
		value string // null: nil
		want  DeadLetter
		heads string
	}{
		{"a whole value", Message{Value: []byte("v"), Headers: chunk[:1]}, formatErr(ReasonCorrupt, -1, ""), "", "v",
			DeadLetter{Stage: "decode", Reason: "corrupt", ValueBytes: -1}, "a"},
		{"a tombstone", Message{}, formatErr(ReasonEmpty, -1, ""), "", "null",
			DeadLetter{Stage: "decode", Reason: "empty", ValueBytes: -1}, ""},
		{"a value of no byte", Message{Value: []byte{}}, formatErr(ReasonEmpty, -1, ""), "", "",
			DeadLetter{Stage: "decode", Reason: "empty", ValueBytes: -1}, ""},
		{"beyond the limit", Message{Value: []byte("beg"), Oversize: 1 << 30}, formatErr(ReasonTooLarge, -1, ""), "",
			"null", DeadLetter{Stage: "decode", Reason: "too_large", Retriable: true, ValueBytes: 1 << 30}, ""},
		{"chunks beyond the limit", Message{Value: []byte("beg"), Oversize: 1 << 30, Headers: chunk[:1]},
			formatErr(ReasonTooLarge, -1, ""), "00112233aabbccdd", "null",
			DeadLetter{Stage: "decode", Reason: "too_large", Retriable: true, ValueBytes: 1 << 30,
				ChunkID: "00112233aabbccdd"}, "a"},
		{"chunks that were assembled", Message{Value: []byte("whole"), Headers: chunk[:1]},
			formatErr(ReasonCorrupt, -1, ""), "00112233aabbccdd", "whole",
			DeadLetter{Stage: "decode", Reason: "corrupt", ValueBytes: -1}, "a"},
		{"missing chunks", Message{Oversize: 9, Headers: chunk[:1]}, incomplete, "00112233aabbccdd", "null",
			DeadLetter{Stage: "assemble", Reason: "incomplete", ValueBytes: 9, ChunkID: "00112233aabbccdd"}, "a"},
		{"a chunk that cannot be used", Message{Value: []byte("part"), Headers: chunk},
			badChunk("chunk 0 of 0"), "", "null",
			DeadLetter{Stage: "assemble", Reason: "bad_chunk", Detail: "chunk 0 of 0", ValueBytes: 4,
				ChunkID: "0123456789abcdef"}, "a"},
	} {
		c.m.Topic, c.m.Offset = "t", 7
		r := NewReject(&c.m, c.err)
		got := NewDeadLetter(&c.m, &r, 1, c.chunk)
		c.want.DeadLetterID, c.want.Rejects = DeadLetterID{Topic: "t", Offset: 7, Index: -1}, 1
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		got.Output = outputUUID
		record := got.Record(&c.m)
		value := string(record.Value)
		if record.Value == nil {
			value = "null"
		}
		var heads []string
		for _, h := range StripDeadLetter(record.Headers) {
			heads = append(heads, h.Key)
		}
		if value != c.value || strings.Join(heads, " ") != c.heads {
			t.Errorf("%s: value %q, headers %v", c.name, value, heads)
		}
		if back, err := ParseDeadLetter(record.Headers); err != nil || back != got {
			t.Errorf("%s: read as %+v, %v", c.name, back, err)
		}
		if _, is, _ := ChunkOf(&Message{Headers: record.Headers}); is {
			t.Errorf("%s: the letter is a chunk", c.name)
		}
	}
}

// A letter that is read and refused again has the headers of its last refusal alone.
func TestDeadLetterOfADeadLetter(t *testing.T) {
	m, r := refusedMessage()
	d := NewDeadLetter(m, &r, 1, "")
	d.Output = outputUUID
	first := d.Record(m)
	again := &Message{Topic: "letters", Offset: 5, Key: first.Key, Value: first.Value, Headers: first.Headers}
	r = NewReject(again, formatErr(ReasonCorrupt, 0, "%s", strings.Repeat("ä", maxErrorMessage)))
	d = NewDeadLetter(again, &r, 12, "")
	d.Output = outputUUID
	second := d.Record(again)
	back, err := ParseDeadLetter(second.Headers)
	if err != nil || back.Topic != "letters" || back.Offset != 5 || back.Rejects != 12 || back.Retriable ||
		len(back.Detail) > maxErrorMessage || len(second.Headers) != len(first.Headers) {
		t.Errorf("%+v, %d headers, %v", back, len(second.Headers), err)
	}
}

func TestDeadLettersThatAreNone(t *testing.T) {
	if _, err := ParseDeadLetter([]Header{{"entropipe.error.topic", []byte("t")}}); !errors.Is(err, ErrNoDeadLetter) {
		t.Error(err)
	}
	for _, id := range []string{"", "u/t/1/2", "u/t/1/2/3/4", "/t/1/2/3", "u//1/2/3", "u/t/-1/2/3", "u/t/1/-2/3",
		"u/t/1/2/-2", "u/t/1/2/x", "u/t/01/2/3", "u/t/+1/2/3", "u/t/1/2/2147483648", "u/t/4294967296/2/0",
		"u/t/1/9223372036854775808/0"} {
		_, err := ParseDeadLetter([]Header{{HeaderErrorID, []byte(id)}})
		if err == nil || errors.Is(err, ErrNoDeadLetter) {
			t.Errorf("id %q: %v", id, err)
		}
	}
	for _, h := range []Header{{HeaderErrorRejects, []byte("0")}, {HeaderErrorRejects, []byte("many")},
		{HeaderErrorValueBytes, []byte("-1")}, {HeaderErrorValueBytes, []byte("")}} {
		if _, err := ParseDeadLetter([]Header{{HeaderErrorID, []byte("u/t/0/0/0")}, h}); err == nil ||
			!strings.Contains(err.Error(), h.Key) {
			t.Errorf("%s %q: %v", h.Key, h.Value, err)
		}
	}
}

// Every id is read back, and no two records have the same one.
func TestDeadLetterIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) DeadLetterID {
			return DeadLetterID{Output: outputUUID, Topic: rapid.StringMatching(`[a-zA-Z0-9._-]{1,20}`).Draw(t, name),
				Partition: rapid.Int32Min(0).Draw(t, "partition"), Offset: rapid.Int64Min(0).Draw(t, "offset"),
				Index: rapid.Int32Min(-1).Draw(t, "index")}
		}
		a, b := draw("a"), draw("b")
		if back, err := ParseDeadLetterID(a.String()); err != nil || back != a {
			t.Fatalf("%v is read as %v, %v", a, back, err)
		}
		if (a.String() == b.String()) != (a == b) {
			t.Fatalf("%v, %v", a, b)
		}
	})
}
