package tables

import (
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"

	"entropipe/schemas"
)

// addReject appends a record, or a frame of one, that could not be used.
func addReject(t *tableWriter, r *schemas.Reject) {
	t.begin(1, 256+len(r.Key)+len(r.Value))
	t.int32(r.Partition)
	t.int64(r.Offset)
	t.int32(r.Index)
	t.int64(microseconds(r.TimeNs))
	t.int64(r.TimeNs)
	t.text(r.Stage)
	t.text(r.Reason)
	t.text(r.Message)
	t.binary(r.Key)
	t.text(headersJSON(r.Headers))
	t.binary(r.Value)
	t.int64(r.ValueSize)
	t.textOrNull(r.ValueSHA)
	t.boolean(r.Retriable)
	t.end(1)
}

// headersJSON returns headers as one JSON object with sorted keys. The last value of a
// repeated header counts. A value that is not UTF-8 becomes a data URI in base64, an
// empty value "", a null value null.
func headersJSON(hs []schemas.Header) string {
	object := make(map[string]*string, len(hs))
	for _, h := range hs {
		key := validText(h.Key)
		if h.Value == nil {
			object[key] = nil
			continue
		}
		value := string(h.Value)
		if !utf8.Valid(h.Value) {
			value = "data:;base64," + base64.StdEncoding.EncodeToString(h.Value)
		}
		object[key] = &value
	}
	data, err := json.Marshal(object)
	if err != nil {
		panic("tables: headers cannot be encoded")
	}
	return string(data)
}
