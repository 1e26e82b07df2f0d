package s3test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// Kind is what a store charges a request for.
type Kind string

// Kinds of requests.
const (
	Put      Kind = "put" // an object, or a part of one
	Create   Kind = "create"
	Copy     Kind = "copy"
	Begin    Kind = "begin of an upload"
	Complete Kind = "end of an upload"
	Get      Kind = "get"
	Head     Kind = "head"
	List     Kind = "list"
	Delete   Kind = "delete"
	Other    Kind = "other"
)

// Seen is a request as a Proxy sees it. Create is a PUT with If-None-Match.
type Seen struct {
	Kind   Kind
	Key    string // the object's, without the bucket; the first one's of many deleted
	repeat func()
}

// Repeat has the server execute the request once more, and returns when it is answered.
func (s *Seen) Repeat() { s.repeat() }

// seen reads a request whose bucket stands in the path.
func seen(r *http.Request, body []byte) Seen {
	query := r.URL.Query()
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	s := Seen{Kind: Other, Key: key}
	switch {
	case r.Method == http.MethodPut && r.Header.Get("X-Amz-Copy-Source") != "":
		s.Kind = Copy
	case r.Method == http.MethodPut && r.Header.Get("If-None-Match") != "":
		s.Kind = Create
	case r.Method == http.MethodPut && key != "":
		s.Kind = Put
	case r.Method == http.MethodPost && query.Has("uploads"):
		s.Kind = Begin
	case r.Method == http.MethodPost && query.Has("uploadId"):
		s.Kind = Complete
	case r.Method == http.MethodPost && query.Has("delete"):
		_, rest, _ := strings.Cut(string(body), "<Key>")
		rest, _, _ = strings.Cut(rest, "</Key>")
		s.Kind, s.Key = Delete, rest
	case r.Method == http.MethodDelete:
		s.Kind = Delete
	case r.Method == http.MethodHead && key != "":
		s.Kind = Head
	case r.Method == http.MethodGet && key != "":
		s.Kind = Get
	case r.Method == http.MethodGet && (query.Has("list-type") || query.Has("uploads")):
		s.Kind = List
	}
	return s
}

// Changes tells whether a request changes the bucket.
func (k Kind) Changes() bool {
	return k == Put || k == Create || k == Copy || k == Begin || k == Complete || k == Delete
}

// Proxy stands between the clients and a server of S3, and spoils requests as networks and
// busy servers do. It reads a request whole, so what it forwards does not end with its client.
// Signatures hold, since it forwards the Host header as it comes.
type Proxy struct {
	URL string

	server *httptest.Server
	target *url.URL
	next   *http.Transport
	plan   func(Seen) Fault

	mu       sync.Mutex
	requests map[Kind]int
	faults   map[Fault]int
	created  map[string]bool
	late     sync.WaitGroup
	active   sync.WaitGroup // requests that have come, whether or not their clients wait for them
	ended    chan struct{}
}

// Plan decides what happens to a request. It may block, and is called from several goroutines.
type Plan func(Seen) Fault

// NewProxy starts a proxy before the server at target. nil: it spoils nothing.
func NewProxy(target string, plan Plan) (*Proxy, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: u, plan: plan, requests: map[Kind]int{}, faults: map[Fault]int{}, created: map[string]bool{},
		ended: make(chan struct{}), next: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true,
			DialContext:           (&net.Dialer{Timeout: 3 * time.Second}).DialContext,
			ExpectContinueTimeout: time.Second}}
	p.server = httptest.NewServer(p)
	p.URL = p.server.URL
	return p, nil
}

// Before starts a proxy before the server, which ends with the test.
func (s *Server) Before(t testing.TB, plan Plan) *Proxy {
	t.Helper()
	p, err := NewProxy(s.URL, plan)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Close ends the proxy. What is late is forwarded at once, and waited for.
func (p *Proxy) Close() {
	p.Settle()
	p.server.CloseClientConnections()
	p.server.Close()
	p.next.CloseIdleConnections()
}

// Settle forwards at once what is late, and spoils nothing from now on.
func (p *Proxy) Settle() {
	p.mu.Lock()
	if !p.settled() {
		close(p.ended)
	}
	p.plan = nil
	p.mu.Unlock()
	p.late.Wait()
}

// Await waits for the requests that have come, also those whose clients have died.
func (p *Proxy) Await() { p.active.Wait() }

func (p *Proxy) settled() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Requests returns how many requests of each kind clients have sent.
func (p *Proxy) Requests() map[Kind]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.requests)
}

// Faults returns how many requests it has spoilt, by what it did to them.
func (p *Proxy) Faults() map[Fault]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.faults)
}

// Created calls f with the key of each object that a conditional PUT has created.
func (p *Proxy) Created(f func(key string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.created {
		f(key)
	}
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.active.Add(1)
	defer p.active.Done()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client has gone away
	}
	all := &sending{Seen: seen(r, body), request: r, body: body}
	all.repeat = func() { p.forward(all) }
	s := all.Seen
	p.mu.Lock()
	p.requests[s.Kind]++
	plan := p.plan
	p.mu.Unlock()
	fault := Fault("")
	if plan != nil {
		fault = plan(s)
	}
	if fault == Late && p.settled() {
		fault = ""
	}
	if fault != "" && !fault.Fits(s.Kind) {
		panic(fmt.Sprintf("s3test: %s cannot happen to a request of kind %s", fault, s.Kind))
	}
	if fault != "" {
		p.mu.Lock()
		p.faults[fault]++
		p.mu.Unlock()
	}
	p.spoil(w, all, fault)
}

// sending is a request that can be forwarded any number of times.
type sending struct {
	Seen
	request *http.Request
	body    []byte
}

// answer is the whole answer of a server.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// forward has the server execute the request. Any error means that the answer is not known.
func (p *Proxy) forward(s *sending) (*answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	to := *s.request.URL
	to.Scheme, to.Host = p.target.Scheme, p.target.Host
	r, err := http.NewRequestWithContext(ctx, s.request.Method, to.String(), bytes.NewReader(s.body))
	if err != nil {
		return nil, err
	}
	r.URL, r.Host, r.Header = &to, s.request.Host, s.request.Header.Clone()
	r.ContentLength, r.GetBody = int64(len(s.body)), nil
	if len(s.body) == 0 {
		r.Body = http.NoBody
	}
	got, err := p.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	a := &answer{status: got.StatusCode, header: got.Header}
	if a.body, err = io.ReadAll(got.Body); err != nil {
		return nil, err
	}
	if s.Kind == Create && a.status < 300 {
		p.mu.Lock()
		p.created[s.Key] = true
		p.mu.Unlock()
	}
	return a, nil
}

// write gives an answer to the client.
func (a *answer) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	w.Write(a.body)
}
