package pipeline

import (
	"bytes"
	"testing"

	"entropipe/schemas"
)

// The chunks of one message are put together whatever stands between them.
func TestSingle(t *testing.T) {
	t.Parallel()
	value := bytes.Repeat([]byte("0123456789"), 10)
	chunks := func(value []byte, id string) (ms []schemas.Message) {
		for i, r := range schemas.ChunksOf(&schemas.Record{Key: []byte("k"), Value: value,
			Headers: []schemas.Header{{Key: "a", Value: []byte("b")}}}, 30, id) {
			ms = append(ms, schemas.Message{Offset: int64(i), Key: r.Key, Value: r.Value, Headers: r.Headers})
		}
		return ms
	}
	own, other := chunks(value, "0123456789abcdef"), chunks(bytes.ToUpper(append(value, "x"...)), "fedcba9876543210")
	spoilt := *own[2].Clone()
	spoilt.Value[0]++
	record := schemas.Message{Value: []byte("no chunk")}
	for _, c := range []struct {
		name    string
		records []schemas.Message
		whole   bool
		fails   bool
	}{
		{"in order", own, true, false},
		{"out of order, doubled, among others", []schemas.Message{own[3], other[0], record, own[0], own[3], own[2],
			other[1], own[1]}, true, false},
		{"one is missing", own[1:], false, false},
		{"no chunk comes first", []schemas.Message{record}, false, true},
		{"a chunk is spoilt", []schemas.Message{own[0], own[1], spoilt, own[3]}, false, true},
		{"two differ", []schemas.Message{own[0], own[2], spoilt}, false, true},
	} {
		var s Single
		whole, err := false, error(nil)
		for i := range c.records {
			if whole, err = s.Add(&c.records[i], 1000); whole || err != nil {
				break
			}
		}
		if whole != c.whole || (err != nil) != c.fails {
			t.Errorf("%s: whole is %v, %v", c.name, whole, err)
		}
		if m := s.f; c.whole && (!bytes.Equal(m.message.Value, value) || len(m.message.Headers) != 1 ||
			string(m.message.Key) != "k") {
			t.Errorf("%s: %+v", c.name, m.message)
		}
	}
	var s Single
	if whole, err := s.Add(&own[0], 50); whole || err == nil {
		t.Errorf("a message of %d bytes passes a limit of 50", len(value))
	}
}
