package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"entropipe/schemas/codec/parquetfile"
	"entropipe/sinks/record"
)

// footer is the footer of a file of a commit.
type footer struct {
	file   *record.File
	meta   *metadata.FileMetaData
	values map[string]string // value by folder key
}

// tailBytes is what is read of a file's end at once. Most footers are shorter.
const tailBytes = 64 << 10

// readFooter reads and checks the footer of a published file with these folder keys. errMissing:
// the file is not there.
func readFooter(ctx context.Context, s source, f *record.File, keys []string) (*footer, error) {
	o, err := s.open(ctx, f.Path)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	if o.Size() != f.Bytes {
		return nil, damaged(f, fmt.Errorf("it has %d bytes, its manifest says %d", o.Size(), f.Bytes))
	}
	end := &tail{r: o, size: f.Bytes}
	if _, begin, err := parquetfile.ReadFooter(end, f.Bytes); err != nil {
		return nil, damaged(f, err)
	} else if data, err := end.from(begin); err != nil {
		return nil, damaged(f, err)
	} else if meta, err := arrowFooter(data); err != nil {
		return nil, damaged(f, err)
	} else if meta.NumRows != f.Rows {
		return nil, damaged(f, fmt.Errorf("it has %d rows, its manifest says %d", meta.NumRows, f.Rows))
	} else if values, err := partitionOf(f, meta, keys); err != nil {
		return nil, damaged(f, err)
	} else {
		return &footer{f, meta, values}, nil
	}
}

// arrowFooter decodes a footer that is checked, with the 8 bytes behind it.
func arrowFooter(data []byte) (meta *metadata.FileMetaData, err error) {
	err = parquetfile.Guard(func() error {
		meta, err = metadata.NewFileMetaData(data[:len(data)-8], nil)
		return err
	})
	return meta, err
}

// damagedError is the error for a file that is not what its manifest says.
type damagedError struct {
	name string
	err  error
}

func (e *damagedError) Error() string {
	return fmt.Sprintf("%s: %v; nothing of its commit is registered, and entropipe verify tells more", e.name, e.err)
}

func (e *damagedError) Unwrap() error { return e.err }

func damaged(f *record.File, err error) error {
	if format := (*parquetfile.FormatError)(nil); errors.As(err, &format) || !isPassing(err) {
		return &damagedError{f.Path, err}
	}
	return err
}

// tail reads the end of a file at once.
type tail struct {
	r    io.ReaderAt
	size int64
	data []byte // the last bytes of the file
}

// from returns the bytes from an offset to the end.
func (t *tail) from(at int64) ([]byte, error) {
	if begin := t.size - int64(len(t.data)); at >= begin && at <= t.size {
		return t.data[at-begin:], nil
	}
	data := make([]byte, t.size-at)
	_, err := t.ReadAt(data, at)
	return data, err
}

// ReadAt implements io.ReaderAt.
func (t *tail) ReadAt(p []byte, at int64) (int, error) {
	if t.data == nil {
		data := make([]byte, min(t.size, tailBytes))
		if n, err := t.r.ReadAt(data, t.size-int64(len(data))); n < len(data) {
			return 0, err
		}
		t.data = data
	}
	begin := t.size - int64(len(t.data))
	if at < begin || at+int64(len(p)) > t.size {
		return t.r.ReadAt(p, at)
	}
	return copy(p, t.data[at-begin:]), nil
}

// dataFile describes a file for a table of the catalog: its address, its folder keys as
// partition, its rows, and the bounds that its footer has.
func (r *registrar) dataFile(t *table.Table, name string, f *footer) (iceberg.DataFile, error) {
	keys := folderKeys(&r.store, name)
	if err := checkColumns(t, name, f.file.Path, f.meta, keys); err != nil {
		return nil, err
	}
	spec := t.Spec()
	byID := map[int]any{}
	for _, field := range spec.Fields() {
		byID[field.FieldID] = f.values[field.Name]
	}
	d, err := table.DataFileFromMetadata(table.DataFileArgs{Schema: t.Schema(), Spec: spec, Format: iceberg.ParquetFile,
		Metadata: f.meta, FilePath: r.source.location(f.file.Path), FileSize: f.file.Bytes,
		Content: iceberg.EntryContentData, PartitionValues: byID, Properties: t.Properties(), FormatVersion: 2})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.file.Path, err)
	}
	return d, nil
}

// partitionOf returns the values of a file's folder keys, as its footer has them. They must fit
// the file's path.
func partitionOf(f *record.File, meta *metadata.FileMetaData, keys []string) (map[string]string, error) {
	values, kv := map[string]string{}, meta.KeyValueMetadata()
	folders := strings.Split(path.Dir(f.Path), "/")[1:]
	if len(folders) != len(keys) {
		return nil, fmt.Errorf("it has not the folders %s", strings.Join(keys, ", "))
	}
	for i, key := range keys {
		value := kv.FindValue("entropipe." + key)
		if value == nil {
			return nil, fmt.Errorf("its footer has no entropipe.%s", key)
		}
		if folders[i] != key+"="+record.FolderValue(*value, record.MaxFolderValue) {
			return nil, fmt.Errorf("its footer says %s %q, its path says otherwise", key, *value)
		}
		values[key] = *value
	}
	return values, nil
}
