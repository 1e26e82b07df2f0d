package sinks

import (
	"context"
	"fmt"
	"io"

	"entropipe/sinks/record"
)

// ReadRecord returns the bytes of a commit record without making it durable, as
// Records.Read would. It may be used beside writers. ErrNotFound: there is no such
// record. A larger file than a record may be is an error.
func ReadRecord(ctx context.Context, r Reader, name string) ([]byte, error) {
	o, err := r.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	if o.Size() > record.MaxSize {
		return nil, fmt.Errorf("%s: %d bytes are no commit record (at most %d)", name, o.Size(), record.MaxSize)
	}
	data := make([]byte, o.Size())
	if _, err := io.ReadFull(io.NewSectionReader(o, 0, o.Size()), data); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// ReadManifest reads and checks a manifest without making it durable, as
// Records.Read would. It may be used beside writers. ErrNotFound: there is none of
// this name.
func ReadManifest(ctx context.Context, store Reader, name string) (*record.Manifest, error) {
	data, err := ReadRecord(ctx, store, name)
	if err != nil {
		return nil, err
	}
	return record.ParseManifest(name, data)
}
