package sinks

import (
	"context"
	"fmt"
	"io"

	"entropipe/sinks/record"
)

// ReadRecord returns the bytes of a commit record. Unlike Records.Read it does not
// make the record durable, so it needs no permission to write. ErrNotFound: there is
// no such record. A file of more than record.MaxSize bytes is an error.
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

// ReadManifest reads the manifest of this name, as ReadRecord does, and checks it.
func ReadManifest(ctx context.Context, store Reader, name string) (*record.Manifest, error) {
	data, err := ReadRecord(ctx, store, name)
	if err != nil {
		return nil, err
	}
	return record.ParseManifest(name, data)
}
