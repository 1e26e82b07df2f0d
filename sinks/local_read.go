package sinks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Open implements Reader.
func (l *Local) Open(_ context.Context, name string) (Object, error) {
	o, err := l.disk.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", name, ErrNotFound)
	}
	return o, err
}

// isSilly tells whether a name is that of a removed file, which NFS keeps while a process of
// this machine has it open.
func isSilly(name string) bool { return strings.HasPrefix(name, ".nfs") }

// List implements Reader. It passes over removed files.
func (l *Local) List(ctx context.Context, folder string, f func(Entry) error) error {
	entries, err := l.disk.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(folder, e.Name())
		if isSilly(e.Name()) {
			continue
		}
		if e.IsDir() {
			err = l.List(ctx, name, f)
		} else {
			err = listFile(name, e, f)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Names implements Reader.
func (l *Local) Names(_ context.Context, folder string) ([]string, error) {
	names, err := l.disk.Names(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return names, err
}

// compare reads the staged files of moves that have a checksum and are not fresh. It fails with a
// *DamagedFileError at the first file with another checksum or size. It passes over
// files that are not staged any more: move checks these.
func (l *Local) compare(ctx context.Context, moves []Move) error {
	var buffer []byte
	for _, m := range moves {
		if m.SHA256 == "" || m.Fresh {
			continue
		}
		if buffer == nil {
			buffer = make([]byte, 1<<20)
		}
		for try := 0; ; try++ {
			err := l.compareOne(ctx, m, buffer)
			damaged := (*DamagedFileError)(nil)
			if errors.As(err, &damaged) && l.looks == hiddenTries && try < lateTries {
				// The bytes of a file may come later than its size to another machine.
				if err = l.refresh(ctx, try, path.Dir(m.From)); err == nil {
					continue
				}
			}
			if err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// compareOne compares one file that is staged. One that is not staged passes.
func (l *Local) compareOne(ctx context.Context, m Move, buffer []byte) error {
	o, err := l.disk.Open(m.From)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	problem, err := differs(ctx, o, m, buffer)
	o.Close()
	if err != nil {
		return fmt.Errorf("%s: %w", m.From, err)
	}
	if problem != "" {
		return &DamagedFileError{m, problem}
	}
	return nil
}

// differs describes how a file differs from size and checksum of m; empty: it does not.
func differs(ctx context.Context, o Object, m Move, buffer []byte) (string, error) {
	if o.Size() != m.Bytes {
		return fmt.Sprintf("it has %d bytes, its manifest says %d", o.Size(), m.Bytes), nil
	}
	sum, err := Checksum(ctx, o, buffer)
	if err != nil || sum == m.SHA256 {
		return "", err
	}
	return fmt.Sprintf("its SHA-256 is %s, its manifest says %s", sum, m.SHA256), nil
}

// listFile calls f for one file, unless the file was removed after its folder was read.
func listFile(name string, e fs.DirEntry, f func(Entry) error) error {
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f(Entry{Name: name, Size: info.Size()})
}
