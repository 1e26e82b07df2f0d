package tables

import (
	"github.com/parquet-go/parquet-go"

	"entropipe/schemas"
)

// addMessage appends a message itself. Its value must not change before the file ends.
func addMessage(t *tableWriter, o *schemas.Original) {
	t.begin(1, 256+len(o.Key)+int(o.Size))
	t.int32(o.Partition)
	t.int64(o.Offset)
	if o.TimeNs != 0 {
		t.int64(microseconds(o.TimeNs))
	} else {
		t.nulls(1)
	}
	t.binary(o.Key)
	t.headers(o.Headers)
	if o.Value == nil && o.Packed == nil && o.Size == 0 { // a tombstone
		t.nulls(1)
	} else {
		t.int64(o.Size)
	}
	if o.Packed != nil {
		t.packed(o.Packed, int(o.Size))
	} else {
		t.binary(o.Value)
	}
	t.end(1)
}

// headers appends a required list of required structs of a required name and an optional value,
// which are two columns. An empty list is one value of definition level 0 in each.
func (t *tableWriter) headers(hs []schemas.Header) {
	if len(hs) == 0 {
		t.nulls(2)
		return
	}
	names, values := &t.columns[t.next], &t.columns[t.next+1]
	for i := range hs {
		h, again := &hs[i], min(i, 1)
		names.values = append(names.values,
			parquet.ByteArrayValue([]byte(validText(h.Key))).Level(again, 1, t.next))
		v := parquet.NullValue().Level(again, 1, t.next+1)
		if h.Value != nil {
			v = parquet.ByteArrayValue(h.Value).Level(again, 2, t.next+1)
		}
		values.values = append(values.values, v)
		t.bytes += len(h.Key) + len(h.Value)
	}
	t.next += 2
}
