package sinks

import "context"

// Inode returns the inode number of store.json in decimal, as Open found it. A copy of
// an output has the uuid of the original and another inode number. A move within the
// file system, a bind mount, a container's view and a restart of the machine keep the
// number; the device's number may change at a restart, so it is not included. Empty:
// the store's files have no lasting numbers.
func (o *Output) Inode() string { return o.inode }

// inodes is implemented by stores whose files have inode numbers.
type inodes interface {
	// Inode returns the inode number of a file; empty: its file system has no lasting
	// numbers.
	Inode(ctx context.Context, name string) (string, error)
}

// inodeOf returns the inode number of a file; empty: the store has none.
func inodeOf(ctx context.Context, s Store, name string) (string, error) {
	if s, ok := s.(inodes); ok {
		return s.Inode(ctx, name)
	}
	return "", nil
}

// Inode returns the inode number of a file in decimal; empty: the operating system or
// the file system has no lasting numbers.
func (l *Local) Inode(_ context.Context, name string) (string, error) {
	if d, ok := l.disk.(interface {
		Inode(name string) (string, error)
	}); ok {
		return d.Inode(name)
	}
	return "", nil
}
