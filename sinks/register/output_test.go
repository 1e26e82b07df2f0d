package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"entropipe/sinks/record"
)

// output is an output in memory.
type output struct {
	store record.Store
	mu    sync.Mutex
	files map[string][]byte
	ends  map[record.TopicPartition]int64
}

func newOutput() *output {
	o := &output{files: map[string][]byte{}, ends: map[record.TopicPartition]int64{},
		store: record.Store{Format: record.FormatVersion, Schema: record.FormatVersion, UUID: record.NewUUID(),
			Created: time.Unix(1, 0).UTC(), PartitionBy: []string{record.ByDataset}}}
	o.saveStore()
	return o
}

func (o *output) saveStore() { o.files[record.StoreFile] = record.Encode(o.store) }

func (o *output) names(_ context.Context, folder string) (names []string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name := range o.files {
		if rest, ok := strings.CutPrefix(name, folder+"/"); ok {
			first, _, _ := strings.Cut(rest, "/")
			names = append(names, first)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (o *output) open(_ context.Context, name string) (object, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	data, ok := o.files[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, errMissing)
	}
	return bytesObject{bytes.NewReader(data)}, nil
}

func (o *output) location(name string) string { return "file:///output/" + o.store.UUID + "/" + name }

func (o *output) Close() error { return nil }

type bytesObject struct{ *bytes.Reader }

func (bytesObject) Close() error { return nil }

func (o *output) put(name string, data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.files[name] = data
}

func (o *output) remove(name string) (data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	data = o.files[name]
	delete(o.files, name)
	return data
}

// base makes the base of a topic that begins at start in partition 0.
func (o *output) base(topic string, start int64) {
	o.put(record.TopicFolder(topic)+"/"+record.BaseFile, record.Encode(record.Base{Format: record.FormatVersion,
		UUID: record.NewUUID(), Topic: topic, Created: time.Unix(1, 0).UTC(), Starts: map[string]int64{"0": start}}))
	o.ends[record.TopicPartition{Topic: topic}] = start
}

// grow adds a commit of n offsets to a partition, with a file of one row for each table.
func (o *output) grow(topic string, id int32, n int64, tables ...string) *record.Manifest {
	m := o.manifest(topic, id, n, tables...)
	o.publish(m)
	o.put(record.ManifestName(m.TopicPartition(), m.Start), record.Encode(m))
	return m
}

func (o *output) manifest(topic string, id int32, n int64, tables ...string) *record.Manifest {
	p := record.TopicPartition{Topic: topic, ID: id}
	start := o.ends[p]
	m := &record.Manifest{Format: record.FormatVersion, UUID: record.NewUUID(), Topic: topic, Partition: id,
		Start: start, End: start + n, Counts: record.Counts{Holes: n}, Files: []record.File{},
		Created: time.Unix(1, 0).UTC()}
	for i, name := range tables {
		folder := name + "/dataset=" + record.FolderValue("a b", record.MaxFolderValue)
		if name == rejects {
			folder = name
		}
		data := parquetFile(name, topic)
		sum := sha256.Sum256(data)
		m.Files = append(m.Files, record.File{Table: name, Rows: 1, Bytes: int64(len(data)),
			Path: fmt.Sprintf("%s/topic=%s/part-%d-%020d-%020d.parquet", folder,
				record.FolderValue(topic, record.MaxFolderValue), id, m.Start, m.End),
			Staged: path.Join(record.StagingName(p, start, m.UUID), fmt.Sprint(name, "-", i)),
			SHA256: hex.EncodeToString(sum[:])})
	}
	o.ends[p] = m.End
	return m
}

// publish puts the files of a commit in their places.
func (o *output) publish(m *record.Manifest) {
	for _, f := range m.Files {
		o.put(f.Path, parquetFile(f.Table, m.Topic))
	}
}

// retire does what vacuum does to a commit.
func (o *output) retire(m *record.Manifest) {
	o.put(record.RetiredName(m.TopicPartition(), m.Start), record.Encode(record.Retired{Format: record.FormatVersion,
		Topic: m.Topic, Partition: m.Partition, Start: m.Start, End: m.End, UUID: m.UUID, CoveredBy: record.NewUUID(),
		Created: time.Unix(1, 0).UTC()}))
	for _, f := range m.Files {
		o.remove(f.Path)
	}
}

// expected returns the addresses of the files of a table that manifests name and that are there.
func (o *output) expected(name string) (all []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for file := range o.files {
		if strings.HasPrefix(file, name+"/") {
			all = append(all, o.location(file))
		}
	}
	slices.Sort(all)
	return all
}

var parquetFiles sync.Map

// parquetFile returns a file of one row, in the manner of a table: keys, a list, a struct, bytes.
func parquetFile(name, topic string) []byte {
	if data, ok := parquetFiles.Load(name + "/" + topic); ok {
		return data.([]byte)
	}
	float := arrow.PrimitiveTypes.Float64
	if name == points {
		float = arrow.PrimitiveTypes.Float32
	}
	keys := []string{"entropipe.topic", topic}
	if name != rejects {
		keys = append(keys, "entropipe.dataset", "a b")
	}
	pairs := arrow.MetadataFrom(map[string]string{})
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "frame_id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
		{Name: "partition", Type: arrow.PrimitiveTypes.Int32},
		{Name: "layer", Type: arrow.PrimitiveTypes.Int16},
		{Name: "geometry", Type: arrow.BinaryTypes.Binary, Nullable: true},
		{Name: "bbox", Type: arrow.StructOf(arrow.Field{Name: "xmin", Type: float}), Nullable: true},
		{Name: "x", Type: float},
		{Name: "hull_idx", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int32)},
		{Name: "status", Type: arrow.BinaryTypes.String, Nullable: true},
	}, &pairs)
	row := fmt.Sprintf(`[{"frame_id":7,"ts":"2020-01-01T00:00:00Z","partition":0,"layer":1,"geometry":"AQ==",`+
		`"bbox":{"xmin":1.5},"x":2.5,"hull_idx":[1,2],"status":%q}]`, name)
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(row))
	if err != nil {
		panic(err)
	}
	var b bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &b, parquet.NewWriterProperties(parquet.WithCompression(
		compress.Codecs.Uncompressed)), pqarrow.DefaultWriterProps())
	for i := 0; err == nil && i < len(keys); i += 2 {
		err = w.AppendKeyValueMetadata(keys[i], keys[i+1])
	}
	if err == nil {
		err = w.Write(batch)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err)
	}
	parquetFiles.Store(name+"/"+topic, b.Bytes())
	return b.Bytes()
}

// quiet is a logger that writes nothing.
func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// open returns a registrar of an output.
func (l *lake) open(t fataler, o *output, change func(c *config)) *registrar {
	t.Helper()
	cfg := config{Namespace: []string{"entropipe"}, Batch: 3, Poll: time.Millisecond, RetryFor: time.Minute,
		FirstWait: time.Microsecond}
	if change != nil {
		change(&cfg)
	}
	r, err := openRegistrar(context.Background(), o, l.client(nil), cfg, quiet())
	if err != nil {
		t.Fatal(err)
	}
	return r
}
