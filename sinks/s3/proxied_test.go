package s3_test

import (
	"sync"
	"testing"

	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/s3/s3test"
)

// at returns a plan that spoils the nth request of a kind; the first one is 0.
func at(nth int, kind s3test.Kind, fault s3test.Fault) s3test.Plan {
	var mu sync.Mutex
	count := 0
	return func(seen s3test.Seen) s3test.Fault {
		mu.Lock()
		defer mu.Unlock()
		if seen.Kind != kind {
			return ""
		}
		if count++; count == nth+1 {
			return fault
		}
		return ""
	}
}

// Law: whatever a proxy does to any one request, and whether or not the server executes it,
// once or twice: the writer goes on, and nothing is lost, doubled or left in staging.
func TestSpoiltRequests(t *testing.T) {
	const end, most = 5, 5
	kinds := []s3test.Kind{s3test.Put, s3test.Create, s3test.Copy, s3test.Get, s3test.Head, s3test.List, s3test.Delete}
	spoil := func(t *testing.T, nth int, kind s3test.Kind, fault s3test.Fault) (hit bool) {
		s := s3test.New(t)
		p := s.Before(t, at(nth, kind, fault))
		w := sinktest.Writer{Store: s.OpenAt(t, p.URL, "out"), End: end, Roll: sinktest.Roll(4), Parts: 1, Fail: passes}
		if err := w.Run(t.Context()); err != nil {
			t.Fatalf("request %d: %v", nth, err)
		}
		p.Settle()
		if mustBeWhole(t, s, end); t.Failed() {
			t.Fatalf("request %d", nth)
		}
		return p.Faults()[fault] > 0
	}
	number := 0
	for _, fault := range s3test.Faults {
		if !*every && (fault == s3test.SlowDown || fault == s3test.CutBefore || fault == s3test.CutAfter) {
			continue // TestFaultAtEveryRequest has them
		}
		for _, kind := range kinds {
			if !fault.Fits(kind) || fault == s3test.Slow || fault == s3test.Late { // these take seconds
				continue
			}
			number++
			if number%stride(2) != 0 {
				continue
			}
			first := number / 2 % most
			t.Run(string(fault)+" of "+string(kind), func(t *testing.T) {
				t.Parallel()
				if *every {
					for nth := 0; spoil(t, nth, kind, fault); nth++ {
					}
					return
				}
				for nth := first; !spoil(t, nth, kind, fault); nth = 0 {
					if nth == 0 {
						t.Fatal("there was no such request")
					}
				}
			})
		}
	}
}

// A resume costs two listings, a commit none, as a proxy counts them.
func TestListingsOfAResume(t *testing.T) {
	s := s3test.New(t)
	p := s.Before(t, nil)
	sinktest.TakeOver(t, s.Open(t, "out"), 0, 10, 2)
	w := sinktest.Writer{Store: s.OpenAt(t, p.URL, "out"), End: 40, Roll: sinktest.Roll(5), Fail: sinktest.IsCrash}
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := p.Requests()
	if got[s3test.List] > 2 || got[s3test.Create] != 6 || got[s3test.Delete] < 6 || got[s3test.Copy] < 12 {
		t.Errorf("a resume and six commits: %v", got)
	}
}
