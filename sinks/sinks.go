// Package sinks makes batches durable, exactly once: it writes them as Parquet
// tables and keeps the commit records that say which offsets an output holds.
//
// It is not a catalogue and not a lock service: writers need not know of each
// other, and nothing here trusts Kafka's offsets. The store decides.
//
// Vocabulary. An output is a folder (later: a bucket's prefix). A commit
// record is a small JSON file under _commits that is created once, never
// changed or deleted, and ends in its own checksum: store.json says what the
// output is, base.json where each partition of a topic begins, a manifest what
// one commit holds. A manifest is named after the first offset it covers, so two
// writers that go on from the same place want the same name, and the exclusive
// creation of that name is the compare-and-set that one of them loses. To stage
// is to write and fsync a file where no reader looks; to publish is to rename it
// to where readers do. An attempt is one run of Commit, and of Stage for parts of
// its batch before it, with a uuid of its own.
//
//	OUT/
//	  frames/dataset=<d>/topic=<t>/part-<partition>-<start>-<end>.parquet    one a table, dataset and commit; of a batch in parts more, <end>-1, -2, …
//	  hulls/…  maxima/…  triangles/…  points/…                               columns: schemas/docs/tables.md
//	  rejects/topic=<t>/part-<partition>-<start>-<end>.parquet
//	  _staging/<t>-<partition>-<start>-<uuid>/<table>-<number>               until published
//	  _quarantine/<time>/<path>.quarantined                                  what a Repair has moved aside
//	  _commits/store.json                                                    uuid, format, partition_by
//	  _commits/configs/<hash>.json                                           what decided the rows of manifests with this hash
//	  _commits/topics/<t>/base.json                                          where each partition begins; base-2.json: the topic's next id
//	  _commits/topics/<t>/<partition>/<start, 20 digits>.json                manifests
//
// What a commit does, and what a crash after each step leaves behind:
//
//	stage every file      staging without a manifest: an attempt that never was
//	create the manifest   the commit has happened; its files may still be staged
//	publish the files     all is done
//
// Who resumes a partition publishes its newest manifest before anything else,
// so at most the newest manifest of a partition has files in staging.
package sinks

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"entropipe/schemas"
)

// Config says how an Output writes. Its zero value is usable.
type Config struct {
	PartitionBy []string // folders of a table: dataset[,sequence][,date]; empty: dataset
	Tables      []string // tables besides frames and rejects, which are always written; nil: hulls, hulls3d, maxima, triangles
	// NullDegenerate writes a null geometry for hulls of fewer than three
	// vertices. Otherwise these are a Point or a LineString.
	NullDegenerate bool
	ConfigHash     string // stands in every manifest
	// Content decides what rows are: its hash stands in every manifest, and its
	// text among the commit records. Empty: nobody knows.
	Content Content
	// OnChange is told when a partition goes on with another content than before,
	// once for each topic and change, from any goroutine; nil: nobody is.
	OnChange       func(*ContentChange)
	Version, Build string // stand in every file's footer
	RowGroupRows   int64  // at most so many rows in a row group; 0: 1 Mi
	RowGroupBytes  int64  // and so many bytes before encoding; 0: 64 MB
}

// ConfigError says that an Output cannot be opened with this configuration.
type ConfigError struct{ Field, Problem string }

func (e *ConfigError) Error() string { return e.Field + ": " + e.Problem }

// Output is where batches become durable. Its methods may be called from
// several goroutines, for one partition from one at a time.
type Output struct {
	store    Store
	cfg      Config
	identity storeRecord
	inode    string        // of store.json; empty: unknown
	tables   []*table      // in the order of allTables
	encoders chan *encoder // as many as files may be encoded at once; nil entries are made on first use

	own      ownCommits
	mu       sync.Mutex
	contents contents
	ready    map[partition]int64           // the start that a partition may attempt: everything before is published
	open     map[partition]*attempt        // there, if parts of it are staged
	seen     map[partition]int64           // start of the newest manifest that was looked for
	ids      map[partition]schemas.TopicID // of the topic that a partition continues; zero: any
}

// partition names a partition of a topic.
type partition struct {
	topic string
	id    int32
}

// Open opens the output that the store holds, or makes it one. A *ConfigError
// says that the configuration is wrong or not the one the output began with.
func Open(ctx context.Context, store Store, cfg Config) (*Output, error) {
	if len(cfg.PartitionBy) == 0 {
		cfg.PartitionBy = []string{byDataset}
	}
	if cfg.Tables == nil {
		cfg.Tables = []string{tableHulls, tableHulls3D, tableMaxima, tableTriangles}
	}
	if cfg.RowGroupRows <= 0 {
		cfg.RowGroupRows = 1 << 20
	}
	if cfg.RowGroupBytes <= 0 {
		cfg.RowGroupBytes = 64e6
	}
	if err := checkPartitionBy(cfg.PartitionBy); err != nil {
		return nil, err
	}
	tables, err := selectTables(cfg.Tables)
	if err != nil {
		return nil, err
	}
	identity, err := openIdentity(ctx, store, cfg.PartitionBy)
	if err != nil {
		return nil, err
	}
	inode, err := inodeOf(ctx, store, storeFile)
	if err != nil {
		return nil, fmt.Errorf("open output: %w", err)
	}
	o := &Output{contents: newContents(cfg.Content), store: store, cfg: cfg, identity: identity, inode: inode, tables: tables, ready: map[partition]int64{}, open: map[partition]*attempt{}, seen: map[partition]int64{}, ids: map[partition]schemas.TopicID{},
		encoders: make(chan *encoder, runtime.GOMAXPROCS(0))}
	for range cap(o.encoders) {
		o.encoders <- nil
	}
	return o, nil
}

// UUID identifies the output. It is made when the output is.
func (o *Output) UUID() string { return o.identity.UUID }

// DefaultGroup is the consumer group for this output: two outputs never share
// a group, or each would get a part of the records.
func (o *Output) DefaultGroup() string { return DefaultGroup(o.identity.UUID) }

// DefaultGroup is the consumer group for the output of this uuid.
func DefaultGroup(uuid string) string { return "entropipe-" + uuid[:min(8, len(uuid))] }

// openIdentity reads store.json, or creates it.
func openIdentity(ctx context.Context, store Store, by []string) (storeRecord, error) {
	mine := storeRecord{Format: formatVersion, Schema: SchemaVersion, UUID: newUUID(), Created: time.Now().UTC(), PartitionBy: by}
	data, err := store.Read(ctx, storeFile)
	if errors.Is(err, ErrNotFound) {
		data, _, err = createOrAdopt(ctx, store, storeFile, encodeRecord(mine))
	}
	if err != nil {
		return storeRecord{}, fmt.Errorf("open output: %w", err)
	}
	found, err := parseStore(data)
	if err == nil && found.Format != formatVersion {
		err = &FormatError{storeFile, found.Format}
	}
	if format := (*FormatError)(nil); errors.As(err, &format) {
		return found, &ConfigError{"out", format.Error()}
	}
	if err != nil {
		return found, err
	}
	if !slices.Equal(found.PartitionBy, by) {
		return found, &ConfigError{"partition-by", fmt.Sprintf("this output was made with %s; it cannot be changed to %s: write to another folder",
			strings.Join(found.PartitionBy, ","), strings.Join(by, ","))}
	}
	return found, nil
}

// newUUID returns a random (version 4) UUID.
func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
