// Package bucket is the client of object stores that speak the protocol of S3, of AWS and of
// other servers: addresses, credentials, tries of a request, faults in words, reads of ranges
// and listings. The store of an output (sinks/s3) and sources in buckets share it.
//
// Any answer may be lost, and a request may be executed after its sender has given it up.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Config says where a bucket is. Its zero value with an address is one of AWS.
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

// Client sends requests for the objects below one address. Names are keys relative to it. Its
// methods may be called from several goroutines.
type Client struct {
	Core minio.Core // for requests that Client has no method for; their errors go to Fault

	at     Address
	end    Endpoint
	region string
	counts *counter
	close  func()
	wait   time.Duration
}

// Actions of a policy.
const (
	OpPut    = "s3:PutObject"
	OpGet    = "s3:GetObject"
	OpDelete = "s3:DeleteObject"
	OpList   = "s3:ListBucket"
)

const (
	amazon        = "https://s3.amazonaws.com"
	defaultRegion = "us-east-1"
)

// New returns a client. It sends no request.
func New(config Config) (*Client, error) {
	text := firstOf(config.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), amazon)
	end, err := ParseEndpoint(text)
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	c := &Client{at: config.Address, end: end, wait: config.Wait, close: func() {}}
	if c.wait == 0 {
		c.wait = firstWait
	}
	c.region = firstOf(config.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	if c.region == "" && text != amazon {
		c.region = defaultRegion
	}
	provider := config.Provider
	if provider == nil {
		provider = newSources(text == amazon)
	}
	transport := config.Transport
	if transport == nil {
		own := newTransport()
		transport, c.close = own, own.CloseIdleConnections
	}
	c.counts = &counter{next: transport}
	lookup := minio.BucketLookupAuto
	if config.PathStyle {
		lookup = minio.BucketLookupPath
	}
	core, err := minio.NewCore(end.host, &minio.Options{Creds: credentials.New(provider), Secure: end.secure,
		Transport: c.counts, Region: c.region, BucketLookup: lookup, MaxRetries: 1}) // one try: the tries are ours
	if err != nil {
		return nil, fmt.Errorf("endpoint: %s", short(err.Error()))
	}
	if config.Version != "" {
		core.SetAppInfo("entropipe", config.Version)
	}
	c.Core = *core
	return c, nil
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
func (c *Client) Close() error {
	c.close()
	return nil
}

// Address returns the place below which the objects are.
func (c *Client) Address() Address { return c.at }

// Requests returns the requests that the client has sent, answered or not.
func (c *Client) Requests() Requests { return c.counts.read() }

// Server returns the URL of the server.
func (c *Client) Server() string { return c.end.String() }

// Key returns the key of a name.
func (c *Client) Key(name string) string {
	if c.at.Prefix == "" {
		return name
	}
	return c.at.Prefix + "/" + name
}

// Shown returns the address of a name for errors.
func (c *Client) Shown(name string) string {
	if name == "" || name == "." {
		return c.at.String()
	}
	return c.at.String() + "/" + name
}

// name returns the name of a key.
func (c *Client) name(key string) string {
	return strings.TrimPrefix(strings.TrimPrefix(key, c.at.Prefix), "/")
}

// prefix returns what the keys below a folder begin with.
func (c *Client) prefix(folder string) string {
	if folder != "." {
		return c.Key(folder) + "/"
	}
	if c.at.Prefix == "" {
		return ""
	}
	return c.at.Prefix + "/"
}

func (c *Client) shownRegion() string { return firstOf(c.region, defaultRegion) }

// Tries is how often a request is sent, and Patience the time for an answer without a body.
const (
	Tries    = 5
	Patience = 30 * time.Second

	firstWait = 100 * time.Millisecond // doubles from try to try
	slowest   = 256 << 10              // bytes a second, below which a request is given up
)

// Do sends a request until it is answered, with waits between. send is called with a context
// that ends when bytes of its body would have passed a slow network. The error is a *Fault,
// or that of ctx.
func (c *Client) Do(ctx context.Context, op, name string, bytes int64, send func(ctx context.Context) error) error {
	for try := 0; ; try++ {
		f := c.Once(ctx, op, name, bytes, send)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if f == nil {
			return nil
		}
		if try == Tries-1 || !f.Passing() {
			return f
		}
		if err := c.Pause(ctx, try); err != nil {
			return err
		}
	}
}

// Once sends a request once.
func (c *Client) Once(ctx context.Context, op, name string, bytes int64, send func(ctx context.Context) error) *Fault {
	ctx, cancel := context.WithTimeout(ctx, Patience+time.Duration(bytes/slowest)*time.Second)
	defer cancel()
	err := send(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && !errors.Is(err, context.DeadlineExceeded) {
		err = errors.Join(err, ctx.Err())
	}
	return c.Fault(op, name, err)
}

// Pause waits before the next try: longer from try to try, and not in step with others.
func (c *Client) Pause(ctx context.Context, try int) error {
	wait := c.wait << min(try, 5)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait/2 + rand.N(wait)):
		c.counts.retries.Add(1)
		return nil
	}
}
