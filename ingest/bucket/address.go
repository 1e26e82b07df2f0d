package bucket

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/minio/minio-go/v7/pkg/s3utils"
)

// Scheme begins the address of a place in a bucket.
const Scheme = "s3://"

// Address is a place in a bucket.
type Address struct {
	Bucket string
	Prefix string // without slashes at its ends; empty: the whole bucket
}

// IsAddress tells whether a text names a bucket, rightly or not.
func IsAddress(out string) bool {
	return len(out) >= len(Scheme) && strings.EqualFold(out[:len(Scheme)], Scheme)
}

// ParseAddress reads s3://BUCKET[/PREFIX]. Errors do not repeat what could be a password.
func ParseAddress(out string) (a Address, err error) {
	if !IsAddress(out) {
		return a, errors.New("want s3://BUCKET/PREFIX")
	}
	rest := strings.TrimRight(out[len(Scheme):], "/")
	a.Bucket, a.Prefix, _ = strings.Cut(rest, "/")
	if strings.ContainsAny(a.Bucket, "@:?#") {
		return Address{}, errors.New("want s3://BUCKET/PREFIX: credentials come from variables or profiles, and the " +
			"server from --s3-endpoint")
	}
	if err := s3utils.CheckValidBucketNameStrict(a.Bucket); err != nil || a.Bucket != strings.TrimSpace(a.Bucket) {
		return Address{}, fmt.Errorf("%q is no name of a bucket: want 3 to 63 lower-case letters, digits, dots and "+
			"hyphens", a.Bucket)
	}
	return a, checkPrefix(a.Prefix)
}

// maxPrefix leaves room for the names of an output: a key has 1,024 bytes at most.
const maxPrefix = 300

func checkPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	for element := range strings.SplitSeq(prefix, "/") {
		if element == "" || element == "." || element == ".." {
			return fmt.Errorf("prefix %q: an element between two slashes is empty, one dot or two dots", prefix)
		}
	}
	switch {
	case len(prefix) > maxPrefix:
		return fmt.Errorf("the prefix has %d bytes: at most %d leave room for the names of files", len(prefix),
			maxPrefix)
	case !utf8.ValidString(prefix) || strings.ContainsFunc(prefix, unicode.IsControl):
		return fmt.Errorf("prefix %q has control characters or is no UTF-8", prefix)
	}
	return nil
}

// String returns the address in its shortest form.
func (a Address) String() string { return strings.TrimSuffix(Scheme+a.Bucket+"/"+a.Prefix, "/") }

// Endpoint is a server.
type Endpoint struct {
	host   string // with a port, if one is given
	secure bool
}

// ParseEndpoint checks --s3-endpoint: http[s]://HOST[:PORT]. Errors do not repeat it, since
// it could have a password.
func ParseEndpoint(text string) (Endpoint, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return Endpoint{}, errors.New("want http[s]://HOST[:PORT]")
	case u.User != nil:
		return Endpoint{}, errors.New("want http[s]://HOST[:PORT] without credentials: they come from variables or " +
			"profiles")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return Endpoint{}, errors.New("want http[s]://HOST[:PORT] without a path: the bucket stands in s3://BUCKET")
	}
	return Endpoint{u.Host, u.Scheme == "https"}, nil
}

// String returns the URL of the server.
func (e Endpoint) String() string {
	if e.secure {
		return "https://" + e.host
	}
	return "http://" + e.host
}
