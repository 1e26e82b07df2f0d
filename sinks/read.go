package sinks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"entropipe/sinks/record"
)

// ReadRecord returns the bytes of a commit record. Unlike Records.Read it does not
// make the record durable, so it needs no permission to write. ErrNotFound: there is
// no such record. A file of more than record.MaxSize bytes is an error.
func ReadRecord(ctx context.Context, r Reader, name string) ([]byte, error) {
	for try := 0; ; try++ {
		data, err := readRecord(ctx, r, name)
		if try == lateTries || err == nil && isWhole(data) || err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return data, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(createWait << try):
		}
	}
}

// lateTries is how often bytes are read again that have not come to this machine yet: a
// network file system may show a file's size first.
const lateTries = 3

// isWhole tells whether all bytes of a record have come, of which none is 0. A damaged record
// and other files may pass.
func isWhole(data []byte) bool {
	return len(data) > 0 && data[0] != 0 && (data[0] != '{' || bytes.IndexByte(data, 0) < 0)
}

func readRecord(ctx context.Context, r Reader, name string) ([]byte, error) {
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
