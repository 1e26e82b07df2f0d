// Package compact copies the commits of one output to another one, in larger files.
//
// It is a consumer of manifests, as a run is one of records: for each partition it reads the
// manifests of the source in their order, from where the target ends, and commits ranges that
// end where manifests of the source end. The target is an ordinary output with the same
// bases, so what holds of outputs holds of it: one exclusive manifest a range, nothing twice
// and nothing lost, whatever dies and however many compactors work at once. The source is
// only read, except by Vacuum.
//
// It decodes no value: a file of the target holds the column chunks of its sources byte for
// byte, with the numbers in the footer moved (splice.go). Row groups stay as they are.
//
// Vocabulary. The source is the output whose commits are copied, the target the compaction. A
// range is consecutive manifests of one partition of the source that become one manifest of
// the target. The tail is what the source holds behind the end of the target. To retire a
// commit is to record that the target holds its rows, and then to delete its files.
package compact

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// Config says how a Compactor works. The zero value is usable.
type Config struct {
	TargetBytes int64         // a range ends before a file would get larger; 0: DefaultTarget
	MaxAge      time.Duration // Follow commits a smaller range when this process has seen it for so long
	Poll        time.Duration // time between two looks of Follow; 0: a second
	Readers     int           // files that are opened at once; 0: GOMAXPROCS, at least 4
	Version     string        // version of the program; every manifest has it

	// Waiting is called when Follow meets an error that may pass, and before it tries again.
	// nil: nobody is told.
	Waiting func(err error)
}

// DefaultTarget is the size of files that a range is to have.
const DefaultTarget = 256 << 20

// maxManifests bounds the manifests of a range, so that a crash costs little.
const maxManifests = 20_000

// SourceError is the error for a commit of the source that cannot be copied: a file is missing
// or damaged. Nothing of its range is committed.
type SourceError struct {
	Name string // path in the source
	Err  error
}

func (e *SourceError) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap returns the fault.
func (e *SourceError) Unwrap() error { return e.Err }

// Copied counts what a Compactor has done.
type Copied struct {
	Commits   int64 `json:"commits"`    // manifests of the source
	Ranges    int64 `json:"ranges"`     // manifests of the target
	Files     int64 `json:"files"`      // files of the source
	Into      int64 `json:"into"`       // files of the target
	BytesRead int64 `json:"bytes_read"` // size of the files of the source
	Bytes     int64 `json:"bytes"`      // size of the files of the target
	Rows      int64 `json:"rows"`
}

// Compactor copies the commits of one output to another one. One goroutine may use it, and any
// may call Copied.
type Compactor struct {
	cfg    Config
	from   sinks.Reader
	into   sinks.Store
	source record.Store
	out    *sinks.Output
	mu     sync.Mutex // guards copied
	copied Copied
	done   map[string]bool // records that the target has
	chains map[record.TopicPartition]*chain
}

// Open prepares to copy the commits of the output in from to the output in into, and makes that
// one if there is none. The error is a *sinks.ConfigError if into is another output than a
// compaction of from, or if from has another format than this program writes.
func Open(ctx context.Context, from sinks.Reader, into sinks.Store, cfg Config) (*Compactor, error) {
	source, err := openSourceOutput(ctx, from)
	if err != nil {
		return nil, err
	}
	encoder, err := tables.New(tables.Config{PartitionBy: source.PartitionBy})
	if err != nil {
		return nil, err
	}
	out, err := sinks.Open(ctx, into, encoder, sinks.Config{Version: cfg.Version, CompactionOf: source.UUID})
	if err != nil {
		return nil, err
	}
	if cfg.TargetBytes <= 0 {
		cfg.TargetBytes = DefaultTarget
	}
	if cfg.Poll <= 0 {
		cfg.Poll = time.Second
	}
	if cfg.Readers <= 0 {
		cfg.Readers = max(4, runtime.GOMAXPROCS(0))
	}
	return &Compactor{cfg: cfg, from: from, into: into, source: source, out: out, done: map[string]bool{},
		chains: map[record.TopicPartition]*chain{}}, nil
}

// openSourceOutput reads the identity of the source.
func openSourceOutput(ctx context.Context, from sinks.Reader) (record.Store, error) {
	data, err := sinks.ReadRecord(ctx, from, record.StoreFile)
	if err != nil {
		return record.Store{}, fmt.Errorf("output to compact: %w", err)
	}
	source, err := record.ParseStore(data)
	if err == nil && source.Format != record.FormatVersion {
		return source, &sinks.ConfigError{Field: "out", Problem: fmt.Sprintf("the output has format %d, and files of "+
			"format %d cannot stand beside them: no column chunk of one fits the other; read its topics again into a "+
			"new output", source.Format, record.FormatVersion)}
	}
	return source, err
}

// Copied returns what was done so far.
func (c *Compactor) Copied() Copied {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.copied
}

// Run copies what the source holds when it is called, and returns. The last range of a
// partition may be small.
func (c *Compactor) Run(ctx context.Context) error { return c.pass(ctx, true) }

// Follow copies ranges as the source grows, until ctx ends. A range is committed when a file
// has its size, or after Config.MaxAge. Errors that may pass are waited for.
func (c *Compactor) Follow(ctx context.Context) error {
	wait := c.cfg.Poll
	for {
		err := c.pass(ctx, false)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			wait = c.cfg.Poll
		case !passes(err):
			return err
		default:
			clear(c.chains)
			if wait = min(2*wait, time.Minute); c.cfg.Waiting != nil {
				c.cfg.Waiting(err)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// passes tells whether an error may pass by itself.
func passes(err error) bool {
	away := (*schemas.UnavailableError)(nil)
	return errors.As(err, &away)
}

// pass copies all partitions once. all: small ranges, too.
func (c *Compactor) pass(ctx context.Context, all bool) error {
	topics, err := c.topics(ctx)
	if err != nil {
		return sinks.Unavailable(err)
	}
	for _, t := range topics {
		for _, id := range t.partitions {
			if err := c.partition(ctx, record.TopicPartition{Topic: t.name, ID: id}, all); err != nil {
				return fmt.Errorf("%s/%d: %w", t.name, id, err)
			}
		}
	}
	return sinks.Unavailable(c.replays(ctx))
}

// partition copies one partition as far as its ranges are ready.
func (c *Compactor) partition(ctx context.Context, p record.TopicPartition, all bool) error {
	for {
		h, err := c.resumed(ctx, p)
		if err != nil {
			return err
		}
		r, err := h.ready(ctx, c, all)
		if err != nil {
			return sinks.Unavailable(err)
		}
		if r == nil {
			return nil
		}
		err = c.commit(ctx, r)
		if errors.Is(err, schemas.ErrLost) { // another compactor was first: go on behind it
			delete(c.chains, p)
			continue
		}
		if err != nil {
			delete(c.chains, p)
			return err
		}
		h.drop(r)
	}
}

// resumed returns the chain of a partition, from the end of the target on.
func (c *Compactor) resumed(ctx context.Context, p record.TopicPartition) (*chain, error) {
	if h := c.chains[p]; h != nil {
		return h, nil
	}
	pos, err := c.out.Resume(ctx, p.Topic, p.ID)
	if err != nil {
		return nil, err
	}
	h, err := openChain(ctx, c.from, p, pos.Next)
	if err != nil {
		return nil, sinks.Unavailable(err)
	}
	c.chains[p] = h
	return h, nil
}

// commit copies one range.
func (c *Compactor) commit(ctx context.Context, r *span) error {
	m := r.manifest()
	if m.ContentHash != "" {
		if err := c.copyRecord(ctx, record.ContentName(m.ContentHash)); err != nil {
			return err
		}
	}
	err := c.out.CommitFiles(ctx, m, func(stage sinks.StageFile) error {
		for _, g := range r.groups() {
			if err := c.group(ctx, m, g, stage); err != nil {
				return err
			}
		}
		if problem := differs(r.manifests, m); problem != "" { // no fault of this program costs a row
			return fmt.Errorf("the copy of offsets %d to %d is not what it was made from: %s",
				m.Start, m.End-1, problem)
		}
		return ctx.Err()
	})
	if err != nil {
		return c.explained(ctx, r, err)
	}
	c.count(r, m)
	return nil
}

// count adds a range that became m.
func (c *Compactor) count(r *span, m *record.Manifest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.copied.Ranges++
	for i := range m.Files {
		c.copied.Into++
		c.copied.Bytes += m.Files[i].Bytes
		c.copied.Rows += m.Files[i].Rows
	}
	c.copied.Commits += int64(len(r.manifests))
	for _, m := range r.manifests {
		for i := range m.Files {
			c.copied.Files++
			c.copied.BytesRead += m.Files[i].Bytes
		}
	}
}

// group writes the files of one folder: one, or more where schemas differ or footers get too
// large.
func (c *Compactor) group(ctx context.Context, m *record.Manifest, g *group, stage sinks.StageFile) error {
	l := load(ctx, c.from, g.files, c.cfg.Readers)
	defer l.close()
	for part := 0; ; part++ {
		if s, err := l.peek(); s == nil || err != nil {
			return err
		}
		w := &partWriter{l: l, start: m.Start, end: m.End}
		if err := stage(g.table, g.path(m, part), w.write); err != nil {
			return err
		}
	}
}
