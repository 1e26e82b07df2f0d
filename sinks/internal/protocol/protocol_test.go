package protocol

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// long explores the large worlds, too: about two minutes.
var long = os.Getenv("ENTROPIPE_LONG") != ""

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

// worlds are explored in every run of the tests, large ones with ENTROPIPE_LONG.
func worlds(large bool) map[string]world {
	if large {
		return map[string]world{
			"a folder": {store: local, writers: 2, attempts: 4, logs: plain, starts: either, letters: true},
			"a folder, three writers": {store: local, writers: 3, attempts: 3, logs: plain, starts: zero,
				letters: true},
			"a folder, two partitions": {store: local, writers: 2, attempts: 4, logs: halves, starts: zero,
				letters: true},
			"a folder, vacuum": {store: local, writers: 2, attempts: 3, logs: plain, starts: zero, vacuum: true,
				reader: true},
			"a folder, chunks, a frame given up": {store: local, writers: 2, attempts: 4, logs: broken, starts: zero,
				letters: true},
			"S3":                {store: s3, writers: 2, attempts: 3, logs: plain, starts: either, letters: true},
			"S3, three writers": {store: s3, writers: 3, attempts: 2, logs: plain, starts: zero, letters: true},
			"S3, vacuum":        {store: s3, writers: 2, attempts: 2, logs: two, starts: zero, vacuum: true},
		}
	}
	return map[string]world{
		"a folder":                 {store: local, writers: 2, attempts: 3, logs: plain, starts: either, letters: true},
		"a folder, three writers":  {store: local, writers: 3, attempts: 3, logs: two, starts: zero, letters: true},
		"a folder, two partitions": {store: local, writers: 2, attempts: 3, logs: halves, starts: zero, letters: true},
		"a folder, vacuum": {store: local, writers: 2, attempts: 3, logs: two, starts: zero, vacuum: true,
			reader: true},
		"a folder, chunks": {store: local, writers: 2, attempts: 3, logs: chunked, starts: zero},
		"a folder, chunks, a frame given up": {store: local, writers: 2, attempts: 2, logs: broken, starts: zero,
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
	if long {
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

// foundIn are the worlds that find the mutants.
var foundIn = map[mutant]string{
	noCompareAndSet:      "S3",
	noBase:               "S3",
	nextBeforePublished:  "S3",
	discardAfterUnknown:  "S3",
	endBeyondOpenFrame:   "a folder, chunks",
	framesFirst:          "S3, vacuum",
	lettersAfterManifest: "S3",
	vacuumUncovered:      "S3, vacuum",
	vacuumWithoutRecord:  "S3, vacuum",
	vacuumNewest:         "S3, vacuum",
	forgetAhead:          "a folder, chunks",
	forgetClosed:         "a folder, doubled chunks",
	cleanOpenStart:       "S3",
	multipartPublication: "S3",
	ignoreRetired:        "S3, vacuum",
	rememberByEnd:        "a folder, chunks",
}

// Law: every fault that the protocol avoids is found when it is made. Where an output does
// not have each record once, verify says so.
func TestEveryMutantIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: nothing for the race detector")
	}
	for m := noCompareAndSet; int(m) < len(mutantNames); m++ {
		w := worlds(false)[foundIn[m]]
		w.mutant, w.symmetry = m, true
		n, v := w.Explore(100000)
		switch {
		case v == nil || strings.HasPrefix(v.Problem, "more than"):
			t.Errorf("%v: world %q does not find it", m, foundIn[m])
		case strings.HasSuffix(v.Problem, unseen):
			t.Errorf("%v: %v", m, v)
		default:
			t.Logf("%v: found in %s after %d states, %d steps: %s", m, foundIn[m], n, len(v.Trace), v.Problem)
		}
	}
}
