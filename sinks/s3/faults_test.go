package s3_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"entropipe/ingest/bucket"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/record"
	"entropipe/sinks/s3/s3test"
)

var every = flag.Bool("s3.every", false, "fail every request in turn, not only some")

// stride is the distance between the requests that fail in the usual run.
func stride(usual int) int {
	if *every {
		return 1
	}
	return usual
}

// nth counts requests, and says which of them are among those from n on.
type nth struct {
	mu             sync.Mutex
	n, calls, seen int
	hit            int
}

func (c *nth) next() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen++
	hit := c.seen > c.n && c.seen <= c.n+c.calls
	if hit {
		c.hit++
	}
	return hit
}

func (c *nth) hits() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hit
}

// faulty are ways in which a server may fail a request.
var faulty = []struct {
	name  string
	calls int
	ask   func(s *s3test.Server, c *nth)
}{
	{"503", 1, refusing(http.StatusServiceUnavailable, "SlowDown")},
	{"a storm of 503", 13, refusing(http.StatusServiceUnavailable, "SlowDown")},
	{"500", 1, refusing(http.StatusInternalServerError, "InternalError")},
	{"cut before", 1, refusing(0, "")},
	{"cut before, for a while", 9, refusing(0, "")},
	{"conflict", 2, refusing(http.StatusConflict, "ConditionalRequestConflict")},
	{"executed, answer lost", 1, hiding},
	{"executed, answers lost for a while", 9, hiding},
}

func refusing(status int, code string) func(s *s3test.Server, c *nth) {
	return func(s *s3test.Server, c *nth) {
		s.Ask(func(*http.Request) *s3test.Refusal {
			if c.next() {
				return &s3test.Refusal{Status: status, Code: code}
			}
			return nil
		}, nil)
	}
}

func hiding(s *s3test.Server, c *nth) {
	s.Ask(nil, func(*http.Request) bool { return c.next() })
}

// Law: whichever request fails, in whatever way, whether or not it was executed: the writer
// goes on from Resume with an error that may pass, nothing is lost or doubled, and nothing is
// left in staging once the partition is resumed again.
func TestFaultAtEveryRequest(t *testing.T) {
	const end = 5 // two batches
	for number, way := range faulty {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			for n := number % 5; ; n += stride(17) {
				s := s3test.New(t)
				c := &nth{n: n, calls: way.calls}
				way.ask(s, c)
				w := sinktest.Writer{Store: s.Open(t, "out"), End: end, Roll: sinktest.Roll(4), Parts: 1, Fail: passes}
				if err := w.Run(t.Context()); err != nil {
					t.Fatalf("request %d: %v", n, err)
				}
				s.Ask(nil, nil)
				mustBeWhole(t, s, end)
				if t.Failed() {
					t.Fatalf("request %d", n)
				}
				s.Close()
				if c.hits() == 0 {
					if n < 30 {
						t.Errorf("%d requests", n)
					}
					return
				}
			}
		})
	}
}

// passes returns errors that do not pass by themselves.
func passes(err error) error {
	if f := (*bucket.Fault)(nil); errors.As(err, &f) && f.Passing() {
		return nil
	}
	return fmt.Errorf("this does not pass: %w", err)
}

// mustBeWhole has another writer take over, and looks at what it leaves.
func mustBeWhole(t *testing.T, s *s3test.Server, end int64) {
	t.Helper()
	store := s.Open(t, "out")
	sinktest.TakeOver(t, store, 0, end, 5)
	sinktest.TakeOver(t, store, 0, end, 5)
	sinktest.MustBeWhole(t, store, 0, end)
	for _, key := range s.Keys(t, "out/"+record.StagingFolder) {
		if !strings.HasPrefix(key, "out/_staging/probe/") { // a few bytes, of who died before the output was there
			t.Errorf("%s is left", key)
		}
	}
}

// Law: a writer that dies at any request, before or after the request is executed, leaves an
// output that another writer completes.
func TestDeathAtEveryRequest(t *testing.T) {
	const end = 5
	for first, executed := range []bool{false, true} {
		t.Run(fmt.Sprintf("executed: %t", executed), func(t *testing.T) {
			t.Parallel()
			for n := first; diesAt(t, n, executed, end); n += stride(7) {
			}
		})
	}
}

// diesAt runs a writer that dies at its request n, and another one. false: it has fewer.
func diesAt(t *testing.T, n int, executed bool, end int64) bool {
	s := s3test.New(t)
	ctx, die := context.WithCancel(t.Context())
	c := &nth{n: n, calls: 1 << 30}
	s.Ask(func(*http.Request) *s3test.Refusal {
		if !c.next() {
			return nil
		}
		die()
		if executed && c.hits() == 1 {
			return nil
		}
		return &s3test.Refusal{}
	}, nil)
	w := sinktest.Writer{Store: s.Open(t, "out"), End: end, Roll: sinktest.Roll(4), Fail: sinktest.IsCrash}
	err := w.Run(ctx)
	die()
	s.Ask(nil, nil)
	if c.hits() == 0 {
		if err != nil || n < 20 {
			t.Errorf("%d requests, %v", n, err)
		}
		return false
	}
	if mustBeWhole(t, s, end); t.Failed() {
		t.Fatalf("death at request %d, executed: %t", n, executed)
	}
	s.Close()
	return true
}

// Law: a request that the store executes after its sender has died, and after another writer
// has taken over and committed the same records, changes nothing that readers see.
func TestLateRequests(t *testing.T) {
	const end, lanes = 5, 3
	for first := range lanes {
		t.Run(fmt.Sprintf("from request %d on", first*stride(4)), func(t *testing.T) {
			t.Parallel()
			for n := first * stride(4); isLate(t, n, end); n += lanes * stride(4) {
			}
		})
	}
}

// isLate has request n of a writer executed late. false: it has fewer.
func isLate(t *testing.T, n int, end int64) bool {
	s := s3test.New(t)
	ctx, die := context.WithCancel(t.Context())
	c := &nth{n: n, calls: 1 << 30}
	var late []func()
	var mu sync.Mutex
	s.Ask(func(r *http.Request) *s3test.Refusal {
		if !c.next() {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if len(late) == 0 {
			late = append(late, s.Keep(r))
		}
		die()
		return &s3test.Refusal{}
	}, nil)
	w := sinktest.Writer{Store: s.Open(t, "out"), End: end, Roll: sinktest.Roll(4), Fail: sinktest.IsCrash}
	w.Run(ctx)
	die()
	s.Ask(nil, nil)
	if c.hits() == 0 {
		if n < 20 {
			t.Errorf("%d requests", n)
		}
		return false
	}
	store := s.Open(t, "out")
	sinktest.TakeOver(t, store, 0, end, 3)
	mu.Lock()
	for _, execute := range late {
		execute()
	}
	mu.Unlock()
	sinktest.MustBeWhole(t, store, 0, end)
	sinktest.TakeOver(t, s.Open(t, "out"), 0, end+3, 3)
	if sinktest.MustBeWhole(t, store, 0, end+3); t.Failed() {
		t.Fatalf("late request %d", n)
	}
	s.Close()
	return true
}

// Two writers with batches of different sizes race for every manifest.
func TestWritersRace(t *testing.T) {
	t.Parallel()
	const end = 60
	s := s3test.New(t)
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			w := sinktest.Writer{Store: s.Open(t, "out"), End: end, Roll: sinktest.Roll(3 + i), Fail: sinktest.IsCrash}
			if err := w.Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	mustBeWhole(t, s, end)
}

// Whatever a test's server is asked, no error has the keys.
func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		is   s3test.Refusal
		want string
	}{
		{"wrong region", s3test.Refusal{Status: 400, Code: "AuthorizationHeaderMalformed",
			Header: map[string]string{"X-Amz-Bucket-Region": "eu-west-3"}},
			"bucket archive is not in region us-east-1, but in eu-west-3: say --s3-region eu-west-3"},
		{"redirect", s3test.Refusal{Status: 301, Code: "PermanentRedirect",
			Header: map[string]string{"X-Amz-Bucket-Region": "eu-west-3"}}, "but in eu-west-3"},
		{"clock", s3test.Refusal{Status: 403, Code: "RequestTimeTooSkewed"}, "set the clock"},
		{"expired token", s3test.Refusal{Status: 400, Code: "ExpiredToken"},
			"the session token of the credentials has expired"},
		{"wrong token", s3test.Refusal{Status: 400, Code: "InvalidToken"},
			"the session token of the credentials is wrong"},
		{"denied", s3test.Refusal{Status: 403, Code: "AccessDenied"},
			"s3:GetObject s3://archive/out/_commits/store.json: denied: the credentials lack s3:GetObject here, or " +
				"s3:ListBucket"},
		{"access key", s3test.Refusal{Status: 403, Code: "InvalidAccessKeyId"}, "does not know the access key"},
		{"secret key", s3test.Refusal{Status: 403, Code: "SignatureDoesNotMatch"}, "the secret key does not belong"},
		{"bucket", s3test.Refusal{Status: 404, Code: "NoSuchBucket"},
			"has no bucket archive: make it, or correct its name"},
		{"not implemented", s3test.Refusal{Status: 501, Code: "NotImplemented"}, "does not have what an output needs"},
		{"unknown", s3test.Refusal{Status: 418, Code: "Teapot"}, "Teapot: the test says so"},
	} {
		s := s3test.New(t)
		s.Ask(func(*http.Request) *s3test.Refusal { return &c.is }, nil)
		store := s.Open(t, "out")
		_, err := store.Read(t.Context(), record.StoreFile)
		f := (*bucket.Fault)(nil)
		if !errors.As(err, &f) || f.Passing() || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if seen := s.Requests(); seen != 1 {
			t.Errorf("%s: %d requests, want 1: repeating it is no use", c.name, seen)
		}
		for _, secret := range []string{s3test.AccessKey, s3test.SecretKey, s3test.Token} {
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error has a key: %v", c.name, err)
			}
		}
	}
	s := s3test.New(t)
	store := s.Open(t, "out")
	s.Close()
	_, err := store.Read(t.Context(), record.StoreFile)
	if err == nil || !strings.Contains(err.Error(), "cannot be reached") || passes(err) != nil {
		t.Errorf("without a server: %v", err)
	}
}
