package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/rest"
	icebergio "github.com/apache/iceberg-go/io"

	_ "github.com/apache/iceberg-go/io/gocloud/s3" // metadata of tables in buckets
)

// Variables with the login of the catalog.
const (
	credentialVariable = "ENTROPIPE_CATALOG_CREDENTIAL"
	tokenVariable      = "ENTROPIPE_CATALOG_TOKEN"
)

// openCatalog asks the catalog for its configuration, and logs in.
func openCatalog(ctx context.Context, c *cli) (catalog.Catalog, error) {
	props := iceberg.Properties{}
	if text := c.Bucket.endpoint(); text != "" {
		props[icebergio.S3EndpointURL] = text
	}
	if text := c.Bucket.region(); text != "" {
		props[icebergio.S3Region] = text
	}
	opts := []rest.Option{rest.WithCustomTransport(newTransport()), rest.WithAdditionalProps(props)}
	if c.Warehouse != "" {
		opts = append(opts, rest.WithWarehouseLocation(c.Warehouse))
	}
	if c.Scope != "" {
		opts = append(opts, rest.WithScope(c.Scope))
	}
	if c.TokenURL != "" {
		u, err := url.Parse(c.TokenURL)
		if err != nil || u.Host == "" {
			return nil, usage("--token-url: want http://HOST[:PORT]/PATH or https://…")
		}
		opts = append(opts, rest.WithAuthURI(u))
	}
	credential, token := os.Getenv(credentialVariable), os.Getenv(tokenVariable)
	switch {
	case credential != "" && token != "":
		return nil, configError(credentialVariable, "%s is set, too: set one of them", tokenVariable)
	case credential != "":
		opts = append(opts, rest.WithCredential(credential))
	case token != "":
		opts = append(opts, rest.WithOAuthToken(token))
	}
	lake, err := rest.NewCatalog(ctx, "lake", c.Catalog, opts...)
	if err != nil {
		return nil, fmt.Errorf("catalog %s: %w", c.Catalog, err)
	}
	return lake, nil
}

func (b *bucketFlags) endpoint() string {
	for _, text := range []string{b.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL")} {
		if text != "" {
			return text
		}
	}
	return ""
}

// region returns the region of buckets; a server that is not AWS has one by convention.
func (b *bucketFlags) region() string {
	for _, text := range []string{b.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")} {
		if text != "" {
			return text
		}
	}
	if b.endpoint() != "" {
		return "us-east-1"
	}
	return ""
}

// transport carries the requests for the catalog. "Too many requests" becomes "service
// unavailable", for which the library has an error of its own.
type transport struct{ next http.RoundTripper }

func newTransport() http.RoundTripper {
	return &transport{&http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       50 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 2 * time.Minute,
	}}
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(q *http.Request) (*http.Response, error) {
	a, err := t.next.RoundTrip(q)
	if err == nil && a.StatusCode == http.StatusTooManyRequests {
		a.StatusCode = http.StatusServiceUnavailable
	}
	return a, err
}

// userInURL matches the login of a URL, and secrets among its parameters.
var userInURL = regexp.MustCompile(`(://)[^/@\s"]*@|([?&](?:X-Amz-[A-Za-z-]*|client_secret|token)=)[^&\s"]*`)

// discreet hides what a text must not show: logins in URLs, and the login of the catalog.
func discreet(text string) string {
	text = userInURL.ReplaceAllString(text, "${1}${2}…")
	_, secret, _ := strings.Cut(os.Getenv(credentialVariable), ":")
	for _, hidden := range []string{os.Getenv(credentialVariable), secret, os.Getenv(tokenVariable),
		os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SESSION_TOKEN")} {
		if len(hidden) > 3 {
			text = strings.ReplaceAll(text, hidden, "…")
		}
	}
	return text
}
