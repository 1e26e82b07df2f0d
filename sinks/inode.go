package sinks

import "context"

// Inode says which file of its file system names this output: the inode number of
// store.json, in decimal. A copy of an output has the uuid of the original and
// another inode. A move within the file system, a bind mount, a container's view
// and a restart of the machine keep the number; the device's number would not
// survive a restart, so it is no part of it. Empty: the store has no numbers that
// last, and nothing can be told. It costs nothing: Open has asked.
func (o *Output) Inode() string { return o.inode }

// inodes is what a Store has besides where files have inode numbers.
type inodes interface {
	// Inode returns the inode number of a file, empty if the file system gives
	// files no numbers that last.
	Inode(ctx context.Context, name string) (string, error)
}

// inodeOf returns the inode number of a file, empty for stores without.
func inodeOf(ctx context.Context, s Store, name string) (string, error) {
	if s, ok := s.(inodes); ok {
		return s.Inode(ctx, name)
	}
	return "", nil
}

// Inode tells which file a name is, in decimal; empty where the operating system
// or the file system has no numbers that last.
func (l *Local) Inode(_ context.Context, name string) (string, error) {
	if d, ok := l.disk.(interface {
		Inode(name string) (string, error)
	}); ok {
		return d.Inode(name)
	}
	return "", nil
}
