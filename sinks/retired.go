package sinks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"entropipe/sinks/record"
)

// Remover deletes published files of commits that are retired. Stores of outputs have it.
type Remover interface {
	// Remove deletes files durably, in any order. A file that is not there is no error.
	Remove(ctx context.Context, names []string) error
}

// ReadRetired reads the record that retires the commit of p that begins at start. ErrNotFound:
// the commit is not retired.
func ReadRetired(ctx context.Context, store Reader, p record.TopicPartition, start int64) (*record.Retired, error) {
	name := record.RetiredName(p, start)
	data, err := ReadRecord(ctx, store, name)
	if err != nil {
		return nil, err
	}
	return record.ParseRetired(name, data)
}

// Remove implements Remover. It fsyncs each folder once.
func (l *Local) Remove(ctx context.Context, names []string) error {
	folders := map[string]bool{}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.disk.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove: %w", err)
		}
		folders[path.Dir(name)] = true
	}
	for folder := range folders {
		if err := l.disk.SyncDir(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove: %w", err)
		}
	}
	return nil
}
