package pipeline

import (
	"bytes"
	"testing"

	"entropipe/schemas"
)

// Each reason keeps its newest sample with a value, in bounded memory of its own.
func TestRefusedKeepsSamples(t *testing.T) {
	p := &Pipeline{}
	p.refused.add(nil)
	if p.refused.by != nil {
		t.Error("no reject makes a sample")
	}
	value := bytes.Repeat([]byte{7}, 4096)
	reject := func(offset int64, reason string, value []byte) schemas.Reject {
		return schemas.Reject{Stage: schemas.StageDecode, Reason: reason, Offset: offset, Value: value,
			Headers: make([]schemas.Header, 1000)}
	}
	p.refused.add([]schemas.Reject{reject(1, "corrupt", value)})
	p.refused.add([]schemas.Reject{reject(2, "corrupt", value), reject(2, "corrupt", nil), reject(2, "empty", nil)})
	value[0] = 9 // the message's memory is used again
	all := p.Refused()
	if len(all) != 2 || all[0].Count != 3 || all[0].Sample.Reason != "corrupt" || all[0].Sample.Offset != 2 ||
		all[1].Count != 1 || all[1].Sample.Reason != "empty" {
		t.Fatalf("%+v", all)
	}
	if s := all[0].Sample; len(s.Value) != sampleValue || s.Value[0] != 7 || len(s.Headers) != sampleHeaders {
		t.Errorf("a sample of %d bytes, the first is %d, %d headers", len(s.Value), s.Value[0], len(s.Headers))
	}
}
