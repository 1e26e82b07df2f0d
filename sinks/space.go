package sinks

// Space returns the bytes that this process may still write to the file system of the
// folder, and the size of that file system. ok is false where the operating system
// does not say.
func (l *Local) Space() (free, size int64, ok bool) {
	if d, has := l.disk.(interface {
		Space() (free, size int64, ok bool)
	}); has {
		return d.Space()
	}
	return 0, 0, false
}
