package protocol

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// bucketWorlds are explored in every run of the tests, large ones with ENTROPIPE_LONG.
func bucketWorlds(large bool) map[string]bucketWorld {
	two := bucketWorld{clients: 2, attempts: 2, records: 2, files: 2, symmetry: true}
	with := func(change func(w *bucketWorld)) bucketWorld {
		w := two
		change(&w)
		return w
	}
	if large {
		return map[string]bucketWorld{
			"three answers lost": with(func(w *bucketWorld) { w.faults = 3 }),
			"three attempts":     with(func(w *bucketWorld) { w.attempts, w.faults = 3, 1 }),
			"three clients":      with(func(w *bucketWorld) { w.clients, w.faults = 3, 1 }),
			"parallel copies": with(func(w *bucketWorld) {
				w.files, w.records, w.faults, w.parallel, w.reader = 3, 1, 2, true, true
			}),
			"uploads in parts": with(func(w *bucketWorld) { w.parts, w.faults = true, 2 }),
			"other ETags":      with(func(w *bucketWorld) { w.tags, w.faults = true, 2 }),
			"another program":  with(func(w *bucketWorld) { w.meddling, w.faults = true, 1 }),
		}
	}
	return map[string]bucketWorld{
		"two answers lost": with(func(w *bucketWorld) { w.records, w.faults = 1, 2 }),
		"three attempts":   with(func(w *bucketWorld) { w.attempts, w.hints = 3, true }),
		"three clients":    with(func(w *bucketWorld) { w.clients, w.records, w.faults = 3, 1, 0 }),
		"parallel copies": with(func(w *bucketWorld) {
			w.files, w.records, w.parallel, w.reader = 3, 1, true, true
		}),
		"uploads in parts": with(func(w *bucketWorld) { w.parts, w.records, w.faults = true, 1, 1 }),
		"other ETags":      with(func(w *bucketWorld) { w.tags, w.records, w.faults = true, 1, 1 }),
		"another program":  with(func(w *bucketWorld) { w.meddling, w.records = true, 1 }),
		"a reader":         with(func(w *bucketWorld) { w.reader, w.faults = true, 1 }),
	}
}

// Law: the same as of all stores, with every request of a store in a bucket as a step, its
// answers lost, itself executed late or twice.
func TestTheProtocolHoldsInABucket(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: nothing for the race detector")
	}
	all := bucketWorlds(false)
	if long {
		for name, w := range bucketWorlds(true) {
			all[name+" (large)"] = w
		}
	}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		w, begin := all[name], time.Now()
		n, v := w.Explore(20e6)
		if total += n; v != nil {
			t.Errorf("%s: %v", name, v)
		}
		t.Logf("%s: %d states, %.1f s", name, n, time.Since(begin).Seconds())
	}
	t.Logf("%d states", total)
}

// bucketFoundIn are the worlds that find the mutants, and what they find.
var bucketFoundIn = map[bucketMutant]struct{ world, problem string }{
	noIfNoneMatch:       {"a reader", "published without a manifest"},
	conflictIsLost:      {"two answers lost", "is gone"},
	unknownIsLost:       {"a reader", "is gone"},
	existsIsLost:        {"a reader", "is gone"},
	lastAnswerDecides:   {"two answers lost", "is gone"},
	publishByCompleting: {"a reader", "a committed file is gone"},
	missingUploadIsDone: {"uploads in parts", "is gone"},
	doneBySize:          {"another program", "is gone"},
	noIfMatch:           {"another program", "published with other bytes"},
	stagedIsTrusted:     {"another program", "published with other bytes"},
	changedIsLost:       {"other ETags", "a committed file is gone"},
	missingIsLost:       {"a reader", "a committed file is gone"},
	unknownCopyIsDone:   {"a reader", "is gone"},
	deleteBeforeCopies:  {"a reader", "is gone"},
	loserDeletesAll:     {"a reader", "is gone"},
	openStartIsLost:     {"a reader", "is gone"},
	framesWithOthers:    {"a reader", "a frame without its other rows"},
	hintIsTrusted:       {"three attempts", "continues none"},
	nextWithoutRoll:     {"a reader", "is gone"},
	stagingExpires:      {"a reader", "is gone"},
}

// Law: every fault that the protocol of a bucket avoids is found when it is made.
func TestEveryMutantOfABucketIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: nothing for the race detector")
	}
	for m := noIfNoneMatch; int(m) < len(bucketMutantNames); m++ {
		in := bucketFoundIn[m]
		w := bucketWorlds(false)[in.world]
		w.mutant = m
		n, v := w.Explore(100000)
		if v == nil || !strings.Contains(v.Problem, in.problem) {
			t.Errorf("%v: world %q does not find it, but %v", m, in.world, v)
			continue
		}
		t.Logf("%v: found in %q after %d states, %d steps: %s", m, in.world, n, len(v.Trace), v.Problem)
	}
}
