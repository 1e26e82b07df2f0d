package schemas

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// A record that is sent again has the keys that it would have had, and says where it is from.
func TestReplayedRecord(t *testing.T) {
	id := DeadLetterID{Output: "o", Topic: "t", Partition: 2, Offset: 7, Index: -1}
	for _, c := range []struct {
		name    string
		key     string
		at      time.Time
		headers []Header
		count   int64
		want    string
	}{
		{"bare", "", time.Unix(1, 5), nil, 1,
			"dataset=t frame-id=7 replay-count=1 replayed-from=o/t/2/7/-1 sequence=t ts-ns=1000000005"},
		{"with a key and without a time", "k", time.Time{}, nil, 2,
			"dataset=t frame-id=7 replay-count=2 replayed-from=o/t/2/7/-1"},
		{"with its own headers, spelled otherwise", "k", time.Unix(1, 0), []Header{{"Frame_ID", []byte("bad")},
			{"dataset", []byte("d")}, {"ts_ns", []byte("3")}, {"x", nil}}, 1,
			"Frame_ID=bad dataset=d replay-count=1 replayed-from=o/t/2/7/-1 ts_ns=3 x="},
		{"of a letter, in chunks, sent again before", "k", time.Time{}, []Header{{HeaderChunkID, []byte("1")},
			{HeaderErrorReason, []byte("r")}, {HeaderReplayCount, []byte("1")},
			{HeaderReplayedFrom, []byte("o/t/0/0/0")}, {HeaderFrameID, []byte("1")}, {HeaderDataset, []byte("d")}}, 2,
			"dataset=d frame-id=1 replay-count=2 replayed-from=o/t/2/7/-1"},
	} {
		m := &Message{Key: []byte(c.key), Time: c.at, Value: []byte("v"), Headers: c.headers, Partition: 2}
		r := ReplayedRecord(m, id, c.count)
		var got []string
		for _, h := range r.Headers {
			got = append(got, fmt.Sprintf("%s=%s", h.Key, h.Value))
		}
		slices.Sort(got)
		if s := strings.Join(got, " "); s != c.want || string(r.Value) != "v" || string(r.Key) != c.key || r.From != 2 {
			t.Errorf("%s: %s\nwant %s", c.name, s, c.want)
		}
		if of, count, ok := ReplayOf(r.Headers); of != id || count != c.count || !ok {
			t.Errorf("%s: it is %v for the %d time, %v", c.name, of, count, ok)
		}
	}
	for _, hs := range [][]Header{nil, {{HeaderReplayedFrom, []byte("o/t/x/7/-1")}},
		{{HeaderReplayCount, []byte("1")}}} {
		if id, n, ok := ReplayOf(hs); ok || n != 0 {
			t.Errorf("%v passes as %v", hs, id)
		}
	}
}
