package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"entropipe/ingest/bucket"
	"entropipe/sinks/record"
)

// errMissing is the error for a file that the output does not have.
var errMissing = errors.New("no such file in the output")

// source is the output that is registered. It is only read. Its methods may be called from
// several goroutines.
type source interface {
	// names returns the last elements of the names in a folder, in no order. A missing folder
	// is empty.
	names(ctx context.Context, folder string) ([]string, error)
	// open opens a file, or fails with errMissing.
	open(ctx context.Context, name string) (object, error)
	// location returns the address of a file as readers of the catalog see it.
	location(name string) string
	Close() error
}

// object is an open file.
type object interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// openSource opens the output at an address: a folder, or s3://BUCKET/PREFIX. seen is the
// address of the output as readers of the catalog see it; empty: out.
func openSource(out, seen string, b *bucketFlags) (source, error) {
	if bucket.IsAddress(out) {
		at, err := bucket.ParseAddress(out)
		if err != nil {
			return nil, usage("OUT: %v", err)
		}
		client, err := bucket.New(bucket.Config{Address: at, Endpoint: b.Endpoint, Region: b.Region,
			PathStyle: b.PathStyle, Version: version})
		if err != nil {
			return nil, usage("OUT: %v", err)
		}
		if seen == "" {
			seen = at.String()
		}
		return &bucketSource{client, strings.TrimRight(seen, "/")}, nil
	}
	if scheme, _, ok := strings.Cut(out, "://"); ok {
		return nil, usage("OUT: want a folder or s3://BUCKET/PREFIX, not %s", scheme)
	}
	root, err := filepath.Abs(out)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(record.StoreFile))); err != nil {
		return nil, fmt.Errorf("%s is not an output: it has no %s, which run makes", out, record.StoreFile)
	}
	if seen == "" {
		seen = "file://" + filepath.ToSlash(root)
	}
	return &folderSource{root, strings.TrimRight(seen, "/")}, nil
}

// checkLocation returns a usage error unless an address can begin those of files.
func checkLocation(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Path == "" && u.Host == "" {
		return usage("--location-prefix: want a URL, such as s3://lake/points or file:///data/points")
	}
	if u.User != nil || u.RawQuery != "" {
		return usage("--location-prefix: readers of the table would see its user or its query")
	}
	return nil
}

// folderSource is an output in a folder.
type folderSource struct{ root, seen string }

func (s *folderSource) file(name string) string {
	return filepath.Join(s.root, filepath.FromSlash(name))
}

func (s *folderSource) names(_ context.Context, folder string) (names []string, err error) {
	entries, err := os.ReadDir(s.file(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (s *folderSource) open(_ context.Context, name string) (object, error) {
	f, err := os.Open(s.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", name, errMissing)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no plain file", name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &openFile{f, info.Size()}, nil
}

func (s *folderSource) location(name string) string { return s.seen + "/" + name }

func (s *folderSource) Close() error { return nil }

type openFile struct {
	*os.File
	size int64
}

func (f *openFile) Size() int64 { return f.size }

// bucketSource is an output in a bucket.
type bucketSource struct {
	client *bucket.Client
	seen   string
}

func (s *bucketSource) names(ctx context.Context, folder string) (names []string, err error) {
	err = s.client.List(ctx, folder, false, func(e bucket.Entry) error {
		names = append(names, path.Base(e.Name))
		return nil
	})
	return names, err
}

func (s *bucketSource) open(ctx context.Context, name string) (object, error) {
	o, err := s.client.Open(ctx, name)
	if fault := (*bucket.Fault)(nil); errors.As(err, &fault) && fault.Missing() {
		return nil, fmt.Errorf("%s: %w", name, errMissing)
	}
	if err != nil {
		return nil, err
	}
	return o, nil
}

func (s *bucketSource) location(name string) string { return s.seen + "/" + name }

func (s *bucketSource) Close() error { return s.client.Close() }

// lateTries is how often a record is read again whose bytes have not come to this machine yet: a
// network file system may show a file's size first.
const lateTries = 3

// readRecord returns the bytes of a commit record. errMissing: there is none.
func readRecord(ctx context.Context, s source, name string) ([]byte, error) {
	for try := 0; ; try++ {
		data, err := readOnce(ctx, s, name)
		late := errors.Is(err, io.ErrUnexpectedEOF) || err == nil && (len(data) == 0 || bytes.IndexByte(data, 0) >= 0)
		if try == lateTries || !late {
			return data, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond << try):
		}
	}
}

func readOnce(ctx context.Context, s source, name string) ([]byte, error) {
	o, err := s.open(ctx, name)
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

// readManifest reads and checks a manifest. errMissing: there is none.
func readManifest(ctx context.Context, s source, p record.TopicPartition, start int64) (*record.Manifest, error) {
	name := record.ManifestName(p, start)
	data, err := readRecord(ctx, s, name)
	if err != nil {
		return nil, err
	}
	return record.ParseManifest(name, data)
}

// readRetired tells which output has the rows of a commit that is retired; empty: the commit is
// not retired. The error: the record is damaged, or another commit was retired there.
func readRetired(ctx context.Context, s source, m *record.Manifest) (coveredBy string, err error) {
	name := record.RetiredName(m.TopicPartition(), m.Start)
	data, err := readRecord(ctx, s, name)
	if errors.Is(err, errMissing) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	r, err := record.ParseRetired(name, data)
	if err == nil && r.UUID != m.UUID {
		err = fmt.Errorf("%s retires another commit of the same offset", name)
	}
	if err != nil {
		return "", err
	}
	return r.CoveredBy, nil
}

// readStore reads the identity of the output.
func readStore(ctx context.Context, s source) (record.Store, error) {
	data, err := readRecord(ctx, s, record.StoreFile)
	if errors.Is(err, errMissing) {
		return record.Store{}, fmt.Errorf("there is no output: %s is missing, which run makes", record.StoreFile)
	}
	if err != nil {
		return record.Store{}, err
	}
	store, err := record.ParseStore(data)
	if err == nil && store.Format != record.FormatVersion {
		return store, configError("out", "the output has format %d, and its tables have other columns than those of "+
			"format %d: read its topics again into a new output", store.Format, record.FormatVersion)
	}
	return store, err
}

// base is a topic of the output with the offsets at which its partitions begin.
type base struct {
	*record.Base
	partitions []int32
}

// readTopics returns the topics of the output. A topic without a base has no commits yet.
func readTopics(ctx context.Context, s source) ([]base, error) {
	folders, err := s.names(ctx, record.TopicsFolder)
	if err != nil {
		return nil, err
	}
	var topics []base
	for _, folder := range folders {
		name := record.TopicsFolder + "/" + folder + "/" + record.BaseFile
		data, err := readRecord(ctx, s, name)
		if errors.Is(err, errMissing) {
			continue
		}
		b := base{Base: new(record.Base)}
		if err == nil {
			err = record.Parse(name, data, b.Base)
		}
		if err == nil && record.TopicFolder(b.Topic) != record.TopicsFolder+"/"+folder {
			err = fmt.Errorf("%s belongs to topic %q", name, b.Topic)
		}
		var names []string
		if err == nil {
			names, err = s.names(ctx, record.TopicsFolder+"/"+folder)
		}
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if id, ok := record.PartitionID(name); ok {
				b.partitions = append(b.partitions, id)
			}
		}
		topics = append(topics, b)
	}
	return topics, nil
}
