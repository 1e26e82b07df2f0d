package schemas

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What headers are missing has the defaults of docs/messages.md; what is there
// counts in any spelling, the last of a name.
func TestKeys(t *testing.T) {
	value := kittiValue()
	kitti := Header{"content-type", []byte(ContentTypeKITTI)}
	at := time.Unix(0, 1234567890)
	h := func(key, value string) Header { return Header{key, []byte(value)} }
	cases := []struct {
		name    string
		key     string
		headers []Header
		want    FrameKey
		reason  string
	}{
		{name: "nothing", want: FrameKey{Dataset: "t", Sequence: "t", FrameID: 42, TimeNs: 1234567890}},
		{name: "key", key: "drive 7", want: FrameKey{Dataset: "t", Sequence: "drive 7", FrameID: 42,
			TimeNs: 1234567890}},
		{name: "binary key", key: "\x00\x00\x00\xc8",
			want: FrameKey{Dataset: "t", Sequence: "0x000000c8", FrameID: 42, TimeNs: 1234567890}},
		{name: "all", key: "k", headers: []Header{h("DataSet", "../.."), h("sequence", "2011-09-26"),
			h("SENSOR", "12:30:00"), h("Frame_ID", "-7"), h("ts_ns", "5")},
			want: FrameKey{Dataset: "../..", Sequence: "2011-09-26", Sensor: "12:30:00", FrameID: -7, TimeNs: 5}},
		{name: "last counts", headers: []Header{h("frame-id", "x"), h("dataset", "a"), h("dataset", "b"),
			h("dataset", "")}, reason: ReasonBadHeader},
		{name: "empty is missing", headers: []Header{h("dataset", "a"), h("dataset", ""), h("frame-id", "")},
			want: FrameKey{Dataset: "a", Sequence: "t", FrameID: 42, TimeNs: 1234567890}},
		{name: "frame-id of 65 bits", headers: []Header{h("frame-id", "18446744073709551616")},
			reason: ReasonBadHeader},
		{name: "time in words", headers: []Header{h("ts-ns", "2011-09-26")}, reason: ReasonBadHeader},
		{name: "dataset not UTF-8", headers: []Header{h("dataset", "a\xff")}, reason: ReasonBadHeader},
		{name: "long dataset", headers: []Header{h("dataset", strings.Repeat("a", maxName+1))},
			reason: ReasonBadHeader},
		{name: "long key", key: strings.Repeat("a", maxName), reason: ReasonBadHeader},
		{name: "long key beside a sequence", key: strings.Repeat("a", maxName), headers: []Header{h("sequence", "s")},
			want: FrameKey{Dataset: "t", Sequence: "s", FrameID: 42, TimeNs: 1234567890}},
		{name: "unknown type", headers: []Header{h("content-type", "image/png")}, reason: ReasonUnknownContentType},
		{name: "sketches of bytes", headers: []Header{h("schema", SchemaSketches)}, reason: ReasonUnknownSchema},
	}
	var d Decoder
	for _, c := range cases {
		m := Message{Topic: "t", Partition: 3, Offset: 42, Time: at, Key: []byte(c.key), Value: value,
			Headers: append([]Header{kitti}, c.headers...)}
		frames, err := d.Decode(m)
		if got := reasonOf(t, err); got != c.reason {
			t.Errorf("%s: %v, want reason %q", c.name, err, c.reason)
			continue
		}
		if err != nil {
			continue
		}
		c.want.Topic, c.want.Partition, c.want.Offset = "t", 3, 42
		if diff := cmp.Diff(c.want, frames[0].FrameKey); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// Drawings are numbered within the message, keep their labels beyond the next
// Decode, and take the header's time where they have none.
func TestSketchKeys(t *testing.T) {
	streams := sketchStreams(t)
	var d Decoder
	headers := []Header{{"frame-id", []byte("100")}, {"ts-ns", []byte("999")}, {"schema", []byte(SchemaSketches)}}
	frames, err := d.Decode(Message{Topic: "t", Value: streams[0].value, Headers: headers})
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]FrameKey, len(frames))
	for i := range frames {
		keys[i] = frames[i].FrameKey
	}
	if _, err := d.Decode(Message{Topic: "other", Value: streams[2].value}); err != nil {
		t.Fatal(err)
	}
	want := []FrameKey{
		{Dataset: "t", Sequence: "t", Topic: "t", FrameID: 100, Index: 0, TimeNs: 100, Drawing: &Drawing{7, "cat"}},
		{Dataset: "t", Sequence: "t", Topic: "t", FrameID: 101, Index: 1, TimeNs: 999, Drawing: &Drawing{8, "dog"}},
		{Dataset: "t", Sequence: "t", Topic: "t", FrameID: 102, Index: 2, TimeNs: 300, Drawing: &Drawing{7, "cat"}},
	}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Error(diff)
	}
	headers[0].Value = []byte(fmt.Sprint(int64(math.MaxInt64)))
	if _, err := d.Decode(Message{Topic: "t", Value: streams[0].value, Headers: headers}); reasonOf(t,
		err) != ReasonBadHeader {
		t.Errorf("frame-id without room for three drawings: %v", err)
	}
}
