// Package s3test is an S3 server in memory, for tests: of the store, and of commands that
// write to buckets. It keeps nothing, and knows no permissions.
package s3test

import (
	"bytes"
	"context"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"entropipe/ingest/bucket"
	"entropipe/sinks/s3"
)

// Bucket is the one bucket of a Server.
const Bucket = "archive"

// Credentials of clients. They must be in no text.
const (
	AccessKey = "AKIDOFTHETEST"
	SecretKey = "SECRETOFTHETEST"
	Token     = "TOKENOFTHETEST"
)

// Server is an S3 server. A test may have a say before a request is executed, and after.
type Server struct {
	*httptest.Server

	mu      sync.Mutex
	count   int
	fake    http.Handler
	backend gofakes3.Backend
	clock   clock
	before  func(r *http.Request) *Refusal
	after   func(r *http.Request) bool
}

// Refusal is an answer in place of an execution.
type Refusal struct {
	Status int // 0: the connection is cut
	Code   string
	Header map[string]string
}

// New starts a server, which ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{}
	s.backend = s3mem.New(s3mem.WithTimeSource(&s.clock))
	if err := s.backend.CreateBucket(Bucket); err != nil {
		t.Fatal(err)
	}
	fake := gofakes3.New(s.backend, gofakes3.WithLogger(gofakes3.StdLog(log.New(io.Discard, "", 0)))).Server()
	s.fake = fake
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.count++
		before, after := s.before, s.after
		s.mu.Unlock()
		var refused *Refusal
		if before != nil {
			refused = before(r)
		}
		if refused == nil {
			refused = s.condition(r)
		}
		switch {
		case refused != nil:
			io.Copy(io.Discard, r.Body)
			refused.write(w, r)
		case after != nil && after(r):
			fake.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		case r.Header.Get("Range") != "":
			fake.ServeHTTP(part{w}, r)
		default:
			fake.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// part is the answer that holds a range of an object. It does not have the checksum of the
// whole object, which programs would compare with that of the range.
type part struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (p part) WriteHeader(status int) {
	for name := range p.Header() {
		if strings.HasPrefix(name, "X-Amz-Checksum-") {
			p.Header().Del(name)
		}
	}
	p.ResponseWriter.WriteHeader(status)
}

// condition is x-amz-copy-source-if-match, which the fake below does not know.
func (s *Server) condition(r *http.Request) *Refusal {
	etag := r.Header.Get("X-Amz-Copy-Source-If-Match")
	if etag == "" {
		return nil
	}
	source, err := url.PathUnescape(r.Header.Get("X-Amz-Copy-Source"))
	if err != nil {
		return &Refusal{Status: http.StatusBadRequest, Code: "InvalidArgument"}
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(source, "/"), "/")
	o, err := s.backend.HeadObject(bucket, key)
	if err != nil {
		return &Refusal{Status: http.StatusNotFound, Code: "NoSuchKey"}
	}
	o.Contents.Close()
	if strings.Trim(gofakes3.FormatETag(o.Hash), `"`) != strings.Trim(etag, `"`) {
		return &Refusal{Status: http.StatusPreconditionFailed, Code: "PreconditionFailed"}
	}
	return nil
}

func (f *Refusal) write(w http.ResponseWriter, r *http.Request) {
	if f.Status == 0 {
		panic(http.ErrAbortHandler)
	}
	for name, value := range f.Header {
		w.Header().Set(name, value)
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(f.Status)
	if r.Method != http.MethodHead {
		io.WriteString(w, "<Error><Code>"+f.Code+"</Code><Message>the test says so</Message></Error>")
	}
}

// Ask sets what the test has to say: before refuses a request unless it returns nil, after
// hides the answer of one that was executed if it returns true. Either may be nil.
func (s *Server) Ask(before func(r *http.Request) *Refusal, after func(r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.after = before, after
}

// Requests returns the number of requests.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// Keep takes a request, whose answer nobody will wait for, and returns what executes it.
func (s *Server) Keep(r *http.Request) (execute func()) {
	body, _ := io.ReadAll(r.Body)
	kept := r.Clone(context.WithoutCancel(r.Context()))
	kept.Body = io.NopCloser(bytes.NewReader(body))
	return func() {
		if s.condition(kept) == nil {
			s.fake.ServeHTTP(httptest.NewRecorder(), kept)
		}
	}
}

// Open returns a store on the server, whose retries wait less than usual.
func (s *Server) Open(t testing.TB, prefix string) *s3.Store {
	t.Helper()
	return s.OpenAt(t, s.URL, prefix)
}

// OpenAt returns a store as Open does, which sends its requests to url, as to a Proxy.
func (s *Server) OpenAt(t testing.TB, url, prefix string) *s3.Store {
	t.Helper()
	store, err := s3.New(bucket.Config{Address: bucket.Address{Bucket: Bucket, Prefix: prefix}, Endpoint: url,
		Wait: time.Millisecond, Provider: &credentials.Static{Value: credentials.Value{AccessKeyID: AccessKey,
			SecretAccessKey: SecretKey, SessionToken: Token, SignerType: credentials.SignatureV4}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// Keys returns the keys of all objects below a prefix, in order.
func (s *Server) Keys(t testing.TB, prefix string) (keys []string) {
	t.Helper()
	list, err := s.backend.ListBucket(Bucket, &gofakes3.Prefix{HasPrefix: prefix != "", Prefix: prefix},
		gofakes3.ListBucketPage{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list.Contents {
		keys = append(keys, o.Key)
	}
	return keys
}

// Put stores an object behind the back of all stores.
func (s *Server) Put(t testing.TB, key, text string, metadata map[string]string) {
	t.Helper()
	all := map[string]string{"Last-Modified": time.Now().UTC().Format(http.TimeFormat)}
	maps.Copy(all, metadata)
	if _, err := s.backend.PutObject(Bucket, key, all, strings.NewReader(text), int64(len(text)), nil); err != nil {
		t.Fatal(err)
	}
}

// Remove deletes an object behind the back of all stores.
func (s *Server) Remove(t testing.TB, key string) {
	t.Helper()
	if _, err := s.backend.DeleteObject(Bucket, key); err != nil {
		t.Fatal(err)
	}
}
