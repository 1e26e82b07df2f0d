package protocol

import (
	"flag"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

var full = flag.Bool("protocol.full", false, "explore the large worlds, too: about two minutes")

func message() record                { return record{} }
func bad() record                    { return record{bad: true} }
func chunk(frame, i, n uint8) record { return record{frame: frame, index: i, count: n} }

// Logs. Of chunked, the frames are interleaved and one chunk is doubled; of broken, one frame
// ends behind the window.
var (
	two     = []log{{message(), bad()}}
	plain   = []log{{message(), bad(), message()}}
	chunked = []log{{chunk(1, 0, 2), chunk(2, 0, 2), chunk(1, 1, 2), chunk(1, 0, 2), chunk(2, 1, 2)}}
	broken  = []log{{chunk(1, 0, 2), chunk(2, 0, 2), message(), chunk(2, 1, 2), message(), chunk(1, 1, 2)}}
	doubled = []log{{chunk(1, 0, 2), chunk(1, 1, 2), chunk(1, 0, 2)}}
	halves  = []log{{message(), message()}, {bad()}}
	either  = []uint8{0, 1} // where writers may find that the log begins
	zero    = []uint8{0}
)

// worlds are explored in every run of the tests, large ones with -protocol.full.
func worlds(large bool) map[string]world {
	if large {
		return map[string]world{
			"a folder, chunks, a frame given up": {store: local, writers: 2, attempts: 4, logs: broken, starts: zero,
				letters: true},
			"S3":                {store: s3, writers: 2, attempts: 3, logs: plain, starts: either, letters: true},
			"S3, three writers": {store: s3, writers: 3, attempts: 2, logs: plain, starts: zero, letters: true},
			"S3, vacuum":        {store: s3, writers: 2, attempts: 2, logs: two, starts: zero, vacuum: true},
		}
	}
	return map[string]world{
		"a folder":                 {store: local, writers: 2, attempts: 4, logs: plain, starts: either, letters: true},
		"a folder, three writers":  {store: local, writers: 3, attempts: 3, logs: plain, starts: zero, letters: true},
		"a folder, two partitions": {store: local, writers: 2, attempts: 4, logs: halves, starts: zero, letters: true},
		"a folder, vacuum": {store: local, writers: 2, attempts: 3, logs: plain, starts: zero, vacuum: true,
			reader: true},
		"a folder, chunks": {store: local, writers: 2, attempts: 3, logs: chunked, starts: zero},
		"a folder, chunks, a frame given up": {store: local, writers: 2, attempts: 3, logs: broken, starts: zero,
			letters: true},
		"a folder, doubled chunks": {store: local, writers: 1, attempts: 3, logs: doubled, starts: zero},
		"S3":                       {store: s3, writers: 2, attempts: 2, logs: two, starts: either, letters: true},
		"S3, vacuum": {
			store:    s3,
			writers:  1,
			attempts: 2,
			logs:     two,
			starts:   zero,
			vacuum:   true,
			reader:   true,
		},
	}
}

// Law: in every state that the protocol can reach, every record from the base to the end is
// in the output once, verify finds no fault, every committed reject has its dead letter, and
// a new writer that works alone brings the rest.
func TestTheProtocolHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: nothing for the race detector")
	}
	all := worlds(false)
	if *full {
		for name, w := range worlds(true) {
			all[name+" (large)"] = w
		}
	}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		w, begin := all[name], time.Now()
		w.symmetry = true
		n, v := w.Explore(20e6)
		if total += n; v != nil {
			t.Errorf("%s: %v", name, v)
		}
		t.Logf("%s: %d states, %.1f s", name, n, time.Since(begin).Seconds())
	}
	t.Logf("%d states", total)
}

// Law: every fault that the protocol avoids is found when it is made, in some world. Where an
// output does not have each record once, verify says so.
func TestEveryMutantIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: nothing for the race detector")
	}
	for m := noCompareAndSet; int(m) < len(mutantNames); m++ {
		found := ""
		for _, name := range slices.Sorted(maps.Keys(worlds(false))) {
			w := worlds(false)[name]
			w.mutant, w.symmetry = m, true
			n, v := w.Explore(100000)
			if v != nil && !strings.HasPrefix(v.Problem, "more than") {
				found = name
				if strings.HasSuffix(v.Problem, unseen) {
					t.Errorf("%v: %v", m, v)
				}
				t.Logf("%v: found in %s after %d states, %d steps: %s", m, name, n, len(v.Trace), v.Problem)
				break
			}
		}
		if found == "" {
			t.Errorf("%v: no world finds it", m)
		}
	}
}
