package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/minio/minio-go/v7"

	"entropipe/ingest/bucket"
	"entropipe/sinks"
	"entropipe/sinks/record"
)

// Create implements sinks.Records, by a PUT that fails if there is an object.
//
// 412 says that there is one, which an earlier try whose answer was lost may have made. 409
// says that another writer is at it: neither won nor lost, so the same request is sent again.
func (s *Store) Create(ctx context.Context, name string, data []byte) error {
	if len(data) > record.MaxSize {
		return fmt.Errorf("%w: %d bytes are too many for a commit record (at most %d)", sinks.ErrNotCreated,
			len(data), record.MaxSize)
	}
	certain := true // no earlier try can have created it
	for try := 0; ; try++ {
		f := s.c.Once(ctx, bucket.OpPut, name, int64(len(data)), func(ctx context.Context) error {
			return s.putNew(ctx, name, data)
		})
		switch {
		case f == nil:
			return nil
		case f.Changed():
			return fmt.Errorf("%s: %w", name, sinks.ErrExists)
		case ctx.Err() != nil:
			return ctx.Err()
		}
		certain = certain && f.Certain()
		if try == bucket.Tries-1 || !f.Passing() {
			if certain && !f.Conflict() {
				return fmt.Errorf("%w: %w", sinks.ErrNotCreated, f)
			}
			return f
		}
		if err := s.c.Pause(ctx, try); err != nil {
			return err
		}
	}
}

// putNew sends one conditional PUT.
func (s *Store) putNew(ctx context.Context, name string, data []byte) error {
	opts := minio.PutObjectOptions{ContentType: "application/json", DisableContentSha256: true}
	opts.SetMatchETagExcept("*")
	_, err := s.c.Core.PutObject(ctx, s.in, s.c.Key(name), bytes.NewReader(data), int64(len(data)), "",
		sumOf(data), opts)
	return err
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Read implements sinks.Records. An object that can be read is durable.
func (s *Store) Read(ctx context.Context, name string) (data []byte, err error) {
	err = s.c.Do(ctx, bucket.OpGet, name, 0, func(ctx context.Context) error {
		body, info, _, err := s.c.Core.GetObject(ctx, s.in, s.c.Key(name), minio.GetObjectOptions{})
		if err != nil {
			return err
		}
		defer body.Close()
		if info.Size > record.MaxSize {
			return s.c.Refusal(bucket.OpGet, name, fmt.Sprintf("%d bytes are no commit record (at most %d)", info.Size,
				record.MaxSize))
		}
		data = make([]byte, info.Size)
		_, err = io.ReadFull(body, data)
		return err
	})
	return data, notFound(name, err)
}

// notFound makes the error for a missing object that of stores.
func notFound(name string, err error) error {
	if f := (*bucket.Fault)(nil); errors.As(err, &f) && f.Missing() {
		return fmt.Errorf("%s: %w", name, sinks.ErrNotFound)
	}
	return err
}
