package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"entropipe/cmd/config/value"
	"entropipe/cmd/mistake"
	"entropipe/ingest/bucket"
	"entropipe/ingest/filesys"
	"entropipe/sinks"
	"entropipe/sinks/s3"
)

// Bucket are the flags of outputs and archives in buckets. Credentials are no flags: they come from where
// the programs of AWS look for them.
type Bucket struct {
	Endpoint  string `name:"s3-endpoint" placeholder:"URL" content:"no" more:"yes"`
	Region    string `name:"s3-region" placeholder:"NAME" content:"no" more:"yes"`
	PathStyle bool   `name:"s3-path-style" content:"no" more:"yes"`
}

// HelpLines describes the flags.
func (Bucket) HelpLines() map[string]string {
	return map[string]string{
		"s3-endpoint":   "Server of s3:// addresses; default: AWS_ENDPOINT_URL_S3, else AWS.",
		"s3-region":     "Region of the bucket; default: AWS_REGION, else what the server says.",
		"s3-path-style": "Send the bucket in the path of requests, not in the name of the host.",
	}
}

// Check returns all mistakes of the address of an output and of the flags, joined, each a
// mistake.Usage.
func (b *Bucket) Check(out string) error {
	return errors.Join(CheckAddress("out", out), b.checkEndpoint())
}

// CheckAddress returns a Usage if the value of a flag is the address of no output.
func CheckAddress(flag, out string) error {
	if !bucket.IsAddress(out) {
		return CheckFolder(flag, out)
	}
	if _, err := bucket.ParseAddress(out); err != nil {
		return mistake.Value(flag, " %s: %v", value.Discreet(out), err)
	}
	return nil
}

func (b *Bucket) checkEndpoint() error {
	if b.Endpoint == "" {
		return nil
	}
	if _, err := bucket.ParseEndpoint(b.Endpoint); err != nil {
		return mistake.Value("s3-endpoint", ": %v", err)
	}
	return nil
}

// IsBucket tells whether the address of an output names a bucket, not a folder.
func IsBucket(out string) bool { return bucket.IsAddress(out) }

// open returns a store in a bucket. It sends no request.
func (b *Bucket) open(out string) (*s3.Store, error) {
	at, err := bucket.ParseAddress(out)
	if err != nil {
		return nil, mistake.NewUsage(fmt.Errorf("%s: %w", value.Discreet(out), err))
	}
	if err := b.checkEndpoint(); err != nil {
		return nil, err
	}
	store, err := s3.New(bucket.Config{Address: at, Endpoint: b.Endpoint, Region: b.Region, PathStyle: b.PathStyle,
		Version: Version})
	if err != nil {
		return nil, mistake.NewUsage(fmt.Errorf("%s: %w", at, err))
	}
	return store, nil
}

// openOutput opens an output in a bucket.
func (b *Bucket) openOutput(ctx context.Context, out string) (Store, error) {
	store, err := b.open(out)
	if err != nil {
		return nil, err
	}
	object, err := store.Open(ctx, identityFile)
	switch {
	case errors.Is(err, sinks.ErrNotFound):
		err = fmt.Errorf("%s is not an output: it has no %s, which run makes", store, identityFile)
	case err == nil:
		object.Close()
		return store, nil
	}
	store.Close()
	return nil, err
}

// CheckSources returns all mistakes of the flags, and of paths that are addresses of a bucket,
// joined, each a mistake.Usage.
func (b *Bucket) CheckSources(paths []string) error {
	wrong := []error{b.checkEndpoint()}
	for _, path := range paths {
		if !bucket.IsAddress(path) {
			continue
		}
		of, _, _ := strings.Cut(path[len(bucket.Scheme):], "/")
		if _, err := bucket.ParseAddress(bucket.Scheme + of); err != nil {
			wrong = append(wrong, mistake.Value("path", " %s: %v", value.Discreet(path), err))
		}
	}
	return errors.Join(wrong...)
}

// Reading has archives in buckets be reached by the flags until end is called. memory bounds what
// is read ahead of all readers, in bytes.
func (b *Bucket) Reading(ctx context.Context, memory int64) (end func()) {
	return filesys.Use(ctx, bucket.Config{Endpoint: b.Endpoint, Region: b.Region, PathStyle: b.PathStyle,
		Version: Version}, memory)
}

// JoinOutput returns the address of a name in an output.
func JoinOutput(out, name string) string { return strings.TrimRight(out, "/") + "/" + name }
