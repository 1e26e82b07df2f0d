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
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"entropipe/schemas"
	"entropipe/sinks/record"
)

// Config says what an Output records beside rows. Its zero value is usable.
type Config struct {
	ConfigHash string // stands in every manifest
	// Content decides what rows are: its hash stands in every manifest, and its
	// text among the commit records. Empty: nobody knows.
	Content Content
	// OnChange is told when a partition goes on with another content than before,
	// once for each topic and change, from any goroutine; nil: nobody is.
	OnChange func(*ContentChange)
	Version  string // of the program, stands in every manifest
}

// ConfigError says that an Output cannot be opened with this configuration.
type ConfigError struct{ Field, Problem string }

func (e *ConfigError) Error() string { return e.Field + ": " + e.Problem }

// Output is where batches become durable. Its methods may be called from
// several goroutines, for one partition from one at a time.
type Output struct {
	store    Store
	encoder  Encoder
	cfg      Config
	identity record.Store
	inode    string // of store.json; empty: unknown

	own      ownCommits
	mu       sync.Mutex
	contents contents
	ready    map[record.TopicPartition]int64           // the start that a partition may attempt: everything before is published
	open     map[record.TopicPartition]*attempt        // there, if parts of it are staged
	seen     map[record.TopicPartition]int64           // start of the newest manifest that was looked for
	ids      map[record.TopicPartition]schemas.TopicID // of the topic that a partition continues; zero: any
}

// Open opens the output that the store holds, or makes it one. A *ConfigError
// says that the configuration is wrong or not the one the output began with.
func Open(ctx context.Context, store Store, encoder Encoder, cfg Config) (*Output, error) {
	identity, err := openIdentity(ctx, store, encoder.Layout())
	if err != nil {
		return nil, err
	}
	inode, err := inodeOf(ctx, store, record.StoreFile)
	if err != nil {
		return nil, fmt.Errorf("open output: %w", err)
	}
	return &Output{contents: newContents(cfg.Content), store: store, encoder: encoder, cfg: cfg, identity: identity, inode: inode,
		ready: map[record.TopicPartition]int64{}, open: map[record.TopicPartition]*attempt{}, seen: map[record.TopicPartition]int64{}, ids: map[record.TopicPartition]schemas.TopicID{}}, nil
}

// UUID identifies the output. It is made when the output is.
func (o *Output) UUID() string { return o.identity.UUID }

// DefaultGroup is the consumer group for this output: two outputs never share
// a group, or each would get a part of the records.
func (o *Output) DefaultGroup() string { return DefaultGroup(o.identity.UUID) }

// DefaultGroup is the consumer group for the output of this uuid.
func DefaultGroup(uuid string) string { return "entropipe-" + uuid[:min(8, len(uuid))] }

// openIdentity reads store.json, or creates it.
func openIdentity(ctx context.Context, store Store, layout Layout) (record.Store, error) {
	by := layout.PartitionBy
	mine := record.Store{Format: record.FormatVersion, Schema: layout.Schema, UUID: record.NewUUID(), Created: time.Now().UTC(), PartitionBy: by}
	data, err := store.Read(ctx, record.StoreFile)
	if errors.Is(err, ErrNotFound) {
		data, _, err = createOrAdopt(ctx, store, record.StoreFile, record.Encode(mine))
	}
	if err != nil {
		return record.Store{}, fmt.Errorf("open output: %w", err)
	}
	found, err := record.ParseStore(data)
	if err == nil && found.Format != record.FormatVersion {
		err = &record.FormatError{Name: record.StoreFile, Format: found.Format}
	}
	if format := (*record.FormatError)(nil); errors.As(err, &format) {
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
