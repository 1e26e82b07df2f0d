package tables

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/schemas"
	"entropipe/sinks/internal/batches"
)

type readRejects struct {
	Partition   int32   `parquet:"partition"`
	Offset      int64   `parquet:"offset"`
	Index       int32   `parquet:"index"`
	TS          int64   `parquet:"ts"`
	TSNs        int64   `parquet:"ts_ns"`
	Stage       string  `parquet:"stage"`
	Reason      string  `parquet:"reason"`
	Message     string  `parquet:"message"`
	Key         []byte  `parquet:"key,optional"`
	Headers     string  `parquet:"headers"`
	Value       []byte  `parquet:"value,optional"`
	ValueSize   int64   `parquet:"value_size"`
	ValueSHA256 *string `parquet:"value_sha256"`
	Retriable   bool    `parquet:"retriable"`
}

// What a reject holds is kept, binary or not; a tombstone has no value.
func TestRejectsRoundTrip(t *testing.T) {
	b := &schemas.Batch{Topic: "points", End: 300, Messages: 300}
	for o := range b.End {
		b.Rejects = append(b.Rejects, batches.SyntheticReject(b, o))
		b.Rejects[o].Value = bytes.Repeat([]byte{byte(o)}, int(o)*10) // more than one chunk
	}
	b.Rejects[7].Value, b.Rejects[7].ValueSHA, b.Rejects[7].Key, b.Rejects[7].Retriable, b.Rejects[7].TimeNs = nil, "",
		nil, true, -1
	rows := rowsOf[readRejects](t, fileOf(t, encodeAll(t, newEncoder(testConfig()), b), "rejects/topic=points/"))
	if len(rows) != 300 {
		t.Fatalf("%d rows", len(rows))
	}
	for i, got := range rows {
		r := &b.Rejects[i]
		want := readRejects{r.Partition, r.Offset, r.Index, microseconds(r.TimeNs), r.TimeNs, r.Stage, r.Reason,
			validText(r.Message), r.Key,
			`{"dataset":"synthetic","none":null,"raw":"data:;base64,Af4="}`, r.Value, r.ValueSize,
			&r.ValueSHA, r.Retriable}
		if i == 7 {
			want.ValueSHA256 = nil
			if got.TS != -1 {
				t.Errorf("the microsecond of -1 ns is %d, want -1", got.TS)
			}
		}
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("row %d: %s", i, cmp.Diff(want, got))
		}
	}
}
