// Package sinks commits batches of results to an output, each Kafka record exactly
// once. It holds the commit protocol and the local store.
//
// It is not a catalogue and not a lock service: writers need not know of each
// other, and Kafka's committed offsets are hints at most. It knows no Parquet: an
// Encoder writes the files (package tables), and package read checks and reads them.
//
// Vocabulary. An output is a folder with tables and commit records. A commit record
// is a small JSON file below _commits (package record): store.json identifies the
// output, base.json fixes where each partition of a topic begins, a manifest
// describes one commit. A manifest is named after its first offset, so two writers
// that continue from the same offset compete for one name: its exclusive creation is
// the compare-and-set that one of them loses. To stage a file is to write and fsync
// it where no reader looks; to publish it is to rename it to where readers look. An
// attempt is one try to commit a batch, identified by a uuid; a large batch is
// staged in parts before its Commit.
//
//	OUT/
//	  frames/dataset=<d>/topic=<t>/part-<partition>-<start>-<end>.parquet   a file per table, folder and commit
//	  hulls/…  maxima/…  triangles/…  points/…                              columns: schemas/docs/tables.md
//	  rejects/topic=<t>/part-<partition>-<start>-<end>.parquet
//	  _staging/<t>-<partition>-<start>-<uuid>/<table>-<number>              until published
//	  _quarantine/<time>/<path>.quarantined                                 files that a repair moved aside
//	  _commits/store.json                                                   uuid, format, partition_by
//	  _commits/configs/<hash>.json                                          the content whose hash is in manifests
//	  _commits/topics/<t>/base.json                                         first offset of each partition
//	  _commits/topics/<t>/plan.json, _commits/plans/<hash>.jsonl            lanes of an archive that t is the name of
//	  _commits/plans/order/<n, 8 digits>.json                               plans that are worked on, in their order
//	  _commits/topics/<t>/<partition>/<start, 20 digits>.json               manifests
//	  _commits/topics/<t>/<partition>/<start, 20 digits>.retired.json       commits whose rows a compaction has
//
// The states of a commit, and the result of a crash in each:
//
//	Stage, Commit            Commit                    Commit or Resume
//	┌────────┐   create the   ┌───────────┐   rename    ┌───────────┐   optional  ┌────────────────┐
//	│ staged │──────────────▶│ committed │───────────▶│ published │───────────▶│ offset told to │
//	└────────┘   manifest     └───────────┘   files     └───────────┘             │ Kafka (caller) │
//	    │                         │                         │                     └────────────────┘
//	no manifest names the     the commit counts; the    all is done; lag tools
//	files: never happened,    next Resume publishes     may show an older offset
//	discarded later           its files first
//
// A writer that resumes a partition publishes the newest manifest before anything
// else, so at most the newest manifest of a partition has staged files.
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

// Config is what an Output records beside rows. The zero value is usable.
type Config struct {
	ConfigHash string // hash of the writer's whole configuration; every manifest has it
	// Content is the configuration that decides rows. Every manifest has its hash, and
	// a commit record has its settings. Empty: the output does not record a content.
	Content Content
	// OnChange is called when Resume finds that a partition continues with another
	// content than before: once for each topic and change, from the goroutine that
	// called Resume. nil: changes are not reported.
	OnChange func(*ContentChange)
	Version  string // version of the program; every manifest has it
	// CompactionOf is the uuid of the output whose commits a compaction takes over; empty:
	// this writer is no compaction. It must be the one of the output.
	CompactionOf string
}

// ConfigError is the error of an output that cannot be opened with a configuration.
// Field is the name of a setting of the command line, without dashes.
type ConfigError struct{ Field, Problem string }

func (e *ConfigError) Error() string { return e.Field + ": " + e.Problem }

// partition is short for the key of most state of an Output.
type partition = record.TopicPartition

// Output commits batches to one store. Its methods may be called from several
// goroutines, but for each partition from one goroutine at a time.
type Output struct {
	store    Store
	encoder  Encoder
	cfg      Config
	identity record.Store
	inode    string // inode number of store.json; empty: unknown

	own      ownCommits
	mu       sync.Mutex
	contents contents
	// the offset at which a partition may commit next: all before it is published
	ready map[partition]int64
	open  map[partition]*attempt        // attempts with staged parts
	seen  map[partition]int64           // start of the newest known manifest
	hints map[partition]int64           // see Hint
	ids   map[partition]schemas.TopicID // id of the topic that a partition continues; zero: any
	bases map[string]*record.Base       // first base, by topic
}

// Open opens the output in a store, and makes the store an output if it is none. It
// fails with a *ConfigError if the output was made with other folder keys or has
// another format, and if its file system has no hard links. It retains store and encoder, and reads one small file.
func Open(ctx context.Context, store Store, encoder Encoder, cfg Config) (*Output, error) {
	identity, err := openIdentity(ctx, store, encoder.Layout(), cfg.CompactionOf)
	if err != nil {
		return nil, err
	}
	inode, err := inodeOf(ctx, store, record.StoreFile)
	if err != nil {
		return nil, fmt.Errorf("open output: %w", err)
	}
	return &Output{contents: newContents(cfg.Content), store: store, encoder: encoder, cfg: cfg,
		identity: identity, inode: inode,
		ready: map[partition]int64{}, open: map[partition]*attempt{}, seen: map[partition]int64{},
		hints: map[partition]int64{},
		ids:   map[partition]schemas.TopicID{}, bases: map[string]*record.Base{}}, nil
}

// UUID returns the uuid of the output, which Open drew when it made the output.
func (o *Output) UUID() string { return o.identity.UUID }

// DefaultGroup returns the consumer group for this output. Two outputs never share
// a group: each would get a part of the records.
func (o *Output) DefaultGroup() string { return DefaultGroup(o.identity.UUID) }

// DefaultGroup returns "entropipe-" and the first 8 characters of an output's uuid.
func DefaultGroup(uuid string) string { return "entropipe-" + uuid[:min(8, len(uuid))] }

// prober is a store that may lack what the commit protocol needs.
type prober interface {
	// Probe returns a *ConfigError if the store is not fit for an output. It is called before
	// an output is made, and leaves nothing behind.
	Probe(ctx context.Context) error
}

// Probe asks a store whether it is fit for an output, if the store can tell. The error is a
// *ConfigError if it is not. Open asks before it makes an output.
func Probe(ctx context.Context, store Store) error {
	if p, ok := store.(prober); ok {
		return p.Probe(ctx)
	}
	return nil
}

// openIdentity reads store.json, or creates it with this layout.
func openIdentity(ctx context.Context, store Store, layout Layout, compacted string) (record.Store, error) {
	by := layout.PartitionBy
	mine := record.Store{Format: record.FormatVersion, Schema: layout.Schema, UUID: record.NewUUID(),
		Created: time.Now().UTC(), PartitionBy: by, CompactionOf: compacted}
	data, err := store.Read(ctx, record.StoreFile)
	if errors.Is(err, ErrNotFound) {
		if err = Probe(ctx, store); err == nil {
			data, _, err = createOrAdopt(ctx, store, record.StoreFile, record.Encode(mine))
		}
	}
	if wrong := (*ConfigError)(nil); errors.As(err, &wrong) {
		return record.Store{}, err
	}
	if cannot := (*noLinksError)(nil); errors.As(err, &cannot) {
		return record.Store{}, &ConfigError{"out", cannot.Error()}
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
	if err := checkCompaction(&found, compacted); err != nil {
		return found, err
	}
	if !slices.Equal(found.PartitionBy, by) {
		return found, &ConfigError{"partition-by",
			fmt.Sprintf("this output was made with %s; it cannot be changed to %s: write to another folder",
				strings.Join(found.PartitionBy, ","), strings.Join(by, ","))}
	}
	return found, nil
}

// checkCompaction returns a *ConfigError if a writer may not commit to an output: only a
// compaction of the same output goes on with a compaction. Records that others would add
// have no place in the offsets of the output that it follows.
func checkCompaction(found *record.Store, compacted string) error {
	switch {
	case found.CompactionOf == compacted:
		return nil
	case compacted == "":
		return &ConfigError{"out", fmt.Sprintf("this output is a compaction of output %s: only compact writes to "+
			"it, and the rows of other records would never fit behind its own; name another --out", found.CompactionOf)}
	case found.CompactionOf == "":
		return &ConfigError{"into", fmt.Sprintf("this is the output %s itself, or one that run or backfill writes, "+
			"and no compaction: name a new folder", found.UUID)}
	}
	return &ConfigError{"into", fmt.Sprintf("this is a compaction of another output, %s, not of %s: name a new folder",
		found.CompactionOf, compacted)}
}
