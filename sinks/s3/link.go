package s3

import (
	"context"
	"errors"

	"github.com/minio/minio-go/v7"

	"entropipe/ingest/bucket"
	"entropipe/sinks"
	"entropipe/sinks/record"
)

// Link makes file.Staged a copy of an object of another output, which the server makes, if it is
// the server of both. The copy is made on condition that the object is the one that is open; it
// gets the metadata of a staged file. An error that wraps errors.ErrUnsupported: the outputs lie on
// two servers, or the credentials for this one cannot read there; then nothing was done.
func (s *Store) Link(ctx context.Context, from sinks.Reader, o sinks.Object, name string, file *record.File) error {
	other, ok := from.(*Store)
	source, open := o.(*object)
	if !ok || !open || other.c.Server() != s.c.Server() || file.Bytes > largestFile {
		return errors.ErrUnsupported
	}
	etag := ""
	err := s.c.Do(ctx, bucket.OpPut, file.Staged, file.Bytes, func(ctx context.Context) error {
		info, err := s.c.Core.Client.CopyObject(ctx,
			minio.CopyDestOptions{Bucket: s.in, Object: s.c.Key(file.Staged), ReplaceMetadata: true,
				ContentType: contentType, UserMetadata: metadata(attemptOf(file.Staged), file.SHA256, file.Bytes)},
			minio.CopySrcOptions{Bucket: other.in, Object: other.c.Key(name), MatchETag: source.ETag()})
		etag = info.ETag
		return err
	})
	if f := (*bucket.Fault)(nil); errors.As(err, &f) && (f.Status == 403 || f.Missing() || f.Changed()) {
		return errors.Join(errors.ErrUnsupported, err) // a copy through this process says what is wrong
	}
	s.remember(file.Staged, etag) // after an error, too: the object may be there, and Discard removes it
	return err
}

// SyncNames does nothing: an object is durable once it is there.
func (s *Store) SyncNames(string) error { return nil }

// SHA256 returns the checksum of the object in hex, as the store has computed it; empty: it does
// not say.
func (o *object) SHA256(ctx context.Context) string {
	f, there, err := o.s.head(ctx, o.name)
	if err != nil || !there || f.etag != o.ETag() {
		return ""
	}
	return f.sum
}
