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
	"sync"

	"entropipe/ingest/bucket"
)

// Store is a sinks.Store in a bucket. Its methods may be called from several goroutines.
type Store struct {
	c      *bucket.Client
	in     string // name of the bucket
	memory memory

	mu     sync.Mutex
	staged map[string]map[string]string // ETags of what this process has staged: by folder, by name
	listed map[string][]string          // names of staging folders, as the last listing found them
}

// New returns a store. It sends no request.
func New(c bucket.Config) (*Store, error) {
	client, err := bucket.New(c)
	if err != nil {
		return nil, err
	}
	return &Store{c: client, in: c.Address.Bucket, staged: map[string]map[string]string{},
		listed: map[string][]string{},
		memory: memory{left: sharedPieces}}, nil
}

// Close ends idle connections.
func (s *Store) Close() error { return s.c.Close() }

// String returns the address of the output.
func (s *Store) String() string { return s.c.Address().String() }

// Space returns false: nothing bounds a bucket.
func (s *Store) Space() (free, size int64, ok bool) { return 0, 0, false }

// Requests returns the requests that the store has sent, answered or not.
func (s *Store) Requests() bucket.Requests { return s.c.Requests() }
