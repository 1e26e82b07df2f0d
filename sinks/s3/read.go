package s3

import (
	"context"
	"path"

	"entropipe/ingest/bucket"
	"entropipe/sinks"
	"entropipe/sinks/record"
)

// Open implements sinks.Reader. It costs one request, which brings the first bytes, too.
// Reads fail if the object is replaced meanwhile.
func (s *Store) Open(ctx context.Context, name string) (sinks.Object, error) {
	o, err := s.open(ctx, name)
	if err != nil {
		return nil, err
	}
	return o, nil
}

func (s *Store) open(ctx context.Context, name string) (*object, error) {
	o, err := s.c.Open(ctx, name)
	if err != nil {
		return nil, notFound(name, err)
	}
	return &object{o, s, name}, nil
}

// object is an open object.
type object struct {
	*bucket.Object
	s    *Store
	name string
}

// ReadAt implements io.ReaderAt.
func (o *object) ReadAt(p []byte, at int64) (int, error) {
	n, err := o.Object.ReadAt(p, at)
	return n, notFound(o.name, err)
}

// List implements sinks.Reader: one request for 1,000 files.
func (s *Store) List(ctx context.Context, folder string, f func(sinks.Entry) error) error {
	return s.ListBegin(ctx, folder, "", f)
}

// ListBegin lists those files below folder whose paths from there on begin with begin: one
// request for 1,000 of them.
func (s *Store) ListBegin(ctx context.Context, folder, begin string, f func(sinks.Entry) error) error {
	var staged []string
	err := s.c.ListPart(ctx, bucket.Part{Folder: folder, Deep: true, Begin: begin}, func(e bucket.Entry) error {
		if folder == record.StagingFolder {
			staged = append(staged, e.Name)
		}
		return f(sinks.Entry{Name: e.Name, Size: e.Size})
	})
	if err == nil && folder == record.StagingFolder {
		s.noteListed(begin, staged)
	}
	return err
}

// Names implements sinks.Reader: one request for 1,000 names.
func (s *Store) Names(ctx context.Context, folder string) (names []string, err error) {
	return s.NamesAfter(ctx, folder, "")
}

// NamesAfter returns the last elements of the names in folder behind after: one request for
// 1,000 of them.
func (s *Store) NamesAfter(ctx context.Context, folder, after string) (names []string, err error) {
	err = s.c.ListPart(ctx, bucket.Part{Folder: folder, After: after}, func(e bucket.Entry) error {
		names = append(names, path.Base(e.Name))
		return nil
	})
	return names, err
}
