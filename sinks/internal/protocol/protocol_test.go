package protocol

import (
	"testing"
	"time"
)

func message() record                { return record{} }
func bad() record                    { return record{bad: true} }
func chunk(frame, i, n uint8) record { return record{frame: frame, index: i, count: n} }

var plain = []log{{message(), bad(), message()}}
var chunked = []log{{chunk(1, 0, 2), chunk(2, 0, 2), chunk(1, 1, 2), chunk(1, 0, 2), chunk(2, 1, 2)}}
var broken = []log{{chunk(1, 0, 2), chunk(2, 0, 2), message(), chunk(2, 1, 2), message(), chunk(1, 1, 2)}}
var two = []log{{message(), message()}, {bad()}}

func worlds() map[string]*world {
	return map[string]*world{
		"local":     {store: local, writers: 2, attempts: 4, logs: plain, starts: []uint8{0, 1}, letters: true},
		"local3":    {store: local, writers: 3, attempts: 3, logs: plain, starts: []uint8{0}, letters: true},
		"s3":        {store: s3, writers: 2, attempts: 3, logs: plain, starts: []uint8{0, 1}, letters: true},
		"s3-3":      {store: s3, writers: 3, attempts: 2, logs: plain, starts: []uint8{0}, letters: true},
		"chunks":    {store: local, writers: 2, attempts: 4, logs: chunked, starts: []uint8{0}},
		"broken":    {store: local, writers: 2, attempts: 4, logs: broken, starts: []uint8{0}, letters: true},
		"two":       {store: local, writers: 2, attempts: 4, logs: two, starts: []uint8{0}, letters: true},
		"vacuum":    {store: local, writers: 2, attempts: 3, logs: plain, starts: []uint8{0}, vacuum: true, reader: true},
		"vacuum-s3": {store: s3, writers: 1, attempts: 3, logs: plain, starts: []uint8{0}, vacuum: true, reader: true},
	}
}

func TestX(t *testing.T) {
	for name, w := range worlds() {
		w.symmetry = true
		begin := time.Now()
		n, v := w.Explore(20e6)
		t.Logf("%s: %d states in %v", name, n, time.Since(begin))
		if v != nil {
			t.Error(v)
		}
	}
}

func TestMutants(t *testing.T) {
	for m := noCompareAndSet; m <= ignoreRetired; m++ {
		for name, w := range worlds() {
			w.mutant, w.symmetry = m, true
			n, v := w.Explore(300000)
			if v != nil {
				t.Logf("%v in %s: %d states, %d: %v", m, name, n, len(v.Trace), v.Problem)
			}
		}
	}
}
