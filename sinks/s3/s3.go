// Package s3 is the store of an output in a bucket: sinks.Store over the protocol of S3, of
// AWS and of servers that speak it.
//
// A record is created by a PUT with If-None-Match: *, which one of several writers wins. A
// staged file is a complete object below _staging, never an unfinished upload: rules of a
// bucket may abort these. Its publication is a copy with a condition on the source's ETag,
// whose metadata name the file; when all files of a commit are copied, one request deletes
// their staged objects.
//
// Any answer may be lost, and a request may be executed after its sender has given it up. So
// every request may be repeated, and whether one has worked is read from the bucket: a record
// by its bytes, a published file by its metadata or by its bytes, never by its size.
package s3

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Config says where a store is. Its zero value with a bucket is one of AWS.
type Config struct {
	Address   Address
	Endpoint  string // URL of the server; empty: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or AWS
	Region    string // empty: AWS_REGION, AWS_DEFAULT_REGION, or what the server says
	PathStyle bool   // the bucket stands in the path of URLs, not in the name of the host

	Version string // version of the program, for the logs of servers

	// Provider has the credentials; nil: variables, profiles, web identity, roles.
	Provider credentials.Provider
	// Wait is the time before a second try; 0: a tenth of a second. Later ones wait longer.
	Wait time.Duration
	// Transport carries the requests; nil: one of its own.
	Transport http.RoundTripper
}

// Store is a sinks.Store in a bucket. Its methods may be called from several goroutines.
type Store struct {
	at     Address
	end    endpoint
	region string
	core   minio.Core
	counts *counter
	close  func()
	memory memory
	wait   time.Duration

	mu     sync.Mutex
	staged map[string]map[string]string // ETags of what this process has staged: by folder, by name
	listed map[string][]string          // names of staging folders, as the last listing found them
}

// Actions of a policy.
const (
	opPut    = "s3:PutObject"
	opGet    = "s3:GetObject"
	opDelete = "s3:DeleteObject"
	opList   = "s3:ListBucket"
)

const (
	amazon        = "https://s3.amazonaws.com"
	defaultRegion = "us-east-1"
)

// New returns a store. It sends no request.
func New(c Config) (*Store, error) {
	text := firstOf(c.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), amazon)
	end, err := ParseEndpoint(text)
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	s := &Store{at: c.Address, end: end, staged: map[string]map[string]string{}, listed: map[string][]string{},
		memory: memory{left: sharedPieces}, wait: c.Wait}
	if s.wait == 0 {
		s.wait = firstWait
	}
	s.region = firstOf(c.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	if s.region == "" && text != amazon {
		s.region = defaultRegion
	}
	provider := c.Provider
	if provider == nil {
		provider = newSources(text == amazon)
	}
	transport := c.Transport
	s.close = func() {}
	if transport == nil {
		own := newTransport()
		transport, s.close = own, own.CloseIdleConnections
	}
	s.counts = &counter{next: transport}
	lookup := minio.BucketLookupAuto
	if c.PathStyle {
		lookup = minio.BucketLookupPath
	}
	core, err := minio.NewCore(end.host, &minio.Options{Creds: credentials.New(provider), Secure: end.secure,
		Transport: s.counts, Region: s.region, BucketLookup: lookup, MaxRetries: 1}) // one try: the tries are ours
	if err != nil {
		return nil, fmt.Errorf("endpoint: %s", short(err.Error()))
	}
	if c.Version != "" {
		core.SetAppInfo("entropipe", c.Version)
	}
	s.core = *core
	return s, nil
}

// newTransport returns a transport whose connections are kept: a commit sends some dozens
// of small requests.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       50 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: time.Minute,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true, // bytes come as they are stored
	}
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// Close ends idle connections.
func (s *Store) Close() error {
	s.close()
	return nil
}

// String returns the address of the output.
func (s *Store) String() string { return s.at.String() }

// Space returns false: nothing bounds a bucket.
func (s *Store) Space() (free, size int64, ok bool) { return 0, 0, false }

// Requests returns the requests that the store has sent, answered or not.
func (s *Store) Requests() Requests { return s.counts.read() }

// key returns the key of a name of the output.
func (s *Store) key(name string) string {
	if s.at.Prefix == "" {
		return name
	}
	return s.at.Prefix + "/" + name
}

// name returns the name of a key of the output.
func (s *Store) name(key string) string {
	return strings.TrimPrefix(strings.TrimPrefix(key, s.at.Prefix), "/")
}

// prefix returns what the keys below a folder begin with.
func (s *Store) prefix(folder string) string {
	if folder != "." {
		return s.key(folder) + "/"
	}
	if s.at.Prefix == "" {
		return ""
	}
	return s.at.Prefix + "/"
}

// shown returns the address of a name for errors.
func (s *Store) shown(name string) string {
	if name == "" || name == "." {
		return s.at.String()
	}
	return s.at.String() + "/" + name
}

// server returns the server for errors.
func (s *Store) server() string {
	if s.end.secure {
		return "https://" + s.end.host
	}
	return "http://" + s.end.host
}

func (s *Store) shownRegion() string { return firstOf(s.region, defaultRegion) }

// Tries of a request.
const (
	tries     = 5
	firstWait = 100 * time.Millisecond // doubles from try to try
	patience  = 30 * time.Second       // for an answer without a body
	slowest   = 256 << 10              // bytes a second, below which a request is given up
)

// do sends a request until it is answered, with waits between. send is called with a context
// that ends when bytes of its body would have passed a slow network. The error is a *Fault,
// or that of ctx.
func (s *Store) do(ctx context.Context, op, name string, bytes int64, send func(ctx context.Context) error) error {
	for try := 0; ; try++ {
		f := s.once(ctx, op, name, bytes, send)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if f == nil {
			return nil
		}
		if try == tries-1 || !f.Passing() {
			return f
		}
		if err := s.pause(ctx, try); err != nil {
			return err
		}
	}
}

// once sends a request once.
func (s *Store) once(ctx context.Context, op, name string, bytes int64, send func(ctx context.Context) error) *Fault {
	ctx, cancel := context.WithTimeout(ctx, patience+time.Duration(bytes/slowest)*time.Second)
	defer cancel()
	err := send(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && !errors.Is(err, context.DeadlineExceeded) {
		err = errors.Join(err, ctx.Err())
	}
	return s.fault(op, name, err)
}

// pause waits before the next try: longer from try to try, and not in step with others.
func (s *Store) pause(ctx context.Context, try int) error {
	wait := s.wait << min(try, 5)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait/2 + rand.N(wait)):
		return nil
	}
}
