package sinks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"entropipe/schemas"
	"entropipe/sinks/record"
)

// Commit makes batch b durable, together with the parts of it that Stage has staged,
// and returns the files and rows of each table. It does not retain b.
//
// After any error the partition must be resumed. schemas.ErrLost: another writer has
// committed the same start, and nothing of b is in the output. After any other error
// only Resume can tell whether b is in the output. A *schemas.UnavailableError may
// pass by itself; the result beside it is what the output holds if Resume finds b
// there.
//
// Cost: encoding, two fsyncs a file, and about ten more fsyncs a commit.
func (o *Output) Commit(ctx context.Context, b *schemas.Batch) (schemas.Committed, error) {
	p := partition{Topic: b.Topic, ID: b.Partition}
	a, err := o.attempt(ctx, b)
	if err != nil {
		return schemas.Committed{}, err
	}
	if err := a.complete(b); err != nil {
		return schemas.Committed{}, o.refuse(ctx, p, err)
	}
	if !o.take(p, b.Start) {
		return schemas.Committed{}, o.refuse(ctx, p, notReady(p, b.Start))
	}
	m := a.m
	if err := o.stage(ctx, a, b); err != nil {
		return schemas.Committed{}, unavailable(o.abandon(ctx, m, err))
	}
	if recorded, err := o.settle(ctx, m); err != nil {
		if recorded {
			return committed(m), err
		}
		return schemas.Committed{}, err
	}
	if a.parts > 1 {
		// Attempts that died on so large a batch have left much in staging. An error
		// does not matter here: the next Resume cleans again.
		o.clean(ctx, p)
	}
	return committed(m), nil
}

// settle creates the manifest m, whose files are staged, and publishes them. After an
// error, recorded tells whether m may be in the output all the same.
func (o *Output) settle(ctx context.Context, m *record.Manifest) (recorded bool, err error) {
	if err := o.record(ctx, m.ContentHash); err != nil {
		return false, unavailable(o.abandon(ctx, m, err))
	}
	p := m.TopicPartition()
	name := record.ManifestName(p, m.Start)
	o.own.begin(m.UUID)
	found, won, err := createOrAdopt(ctx, o.store, name, record.Encode(m))
	o.own.end(m.UUID, err == nil && won)
	switch {
	case errors.Is(err, ErrNotCreated):
		return false, unavailable(o.abandon(ctx, m, err))
	case err != nil:
		return true, unavailable(err)
	case !won:
		return false, unavailable(o.lose(ctx, m, name, found))
	}
	if err := o.publish(ctx, m, justWritten); err != nil {
		return true, unavailable(err)
	}
	o.give(p, m.End)
	o.saw(p, m.Start)
	return true, nil
}

func notReady(p partition, start int64) error {
	return fmt.Errorf("offset %d is not where partition %s/%d goes on: it was not resumed, or its last commit failed",
		start, p.Topic, p.ID)
}

// take removes a partition's next start and tells whether it was start. Unless the
// attempt succeeds, a second one needs another Resume.
func (o *Output) take(p partition, start int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	next, ok := o.ready[p]
	delete(o.ready, p)
	if ok = ok && next == start; ok {
		delete(o.open, p) // the caller owns the attempt now
	}
	return ok
}

// give makes next the start that p may attempt: everything before it is published.
func (o *Output) give(p partition, next int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ready[p] = next
}

func (o *Output) newManifest(b *schemas.Batch) *record.Manifest {
	return &record.Manifest{Format: record.FormatVersion, UUID: record.NewUUID(), Topic: b.Topic,
		TopicID: b.TopicID.String(), Partition: b.Partition, Start: b.Start, End: b.End, Gap: b.Gap,
		Files: []record.File{}, ConfigHash: o.cfg.ConfigHash, ContentHash: o.contentHash(), Created: time.Now().UTC(),
		Writer: o.cfg.Version}
}

// stage writes the files of b, one at a time, and lists them in the manifest.
func (o *Output) stage(ctx context.Context, a *attempt, b *schemas.Batch) error {
	m := a.m
	folder := record.StagingName(m.TopicPartition(), m.Start, m.UUID)
	for _, f := range o.encoder.Plan(b, a.parts) {
		file := record.File{Table: f.Table, Path: f.Path,
			Staged: fmt.Sprintf("%s/%s-%d", folder, f.Table, len(m.Files))}
		if err := o.stageFile(ctx, f, b, &file); err != nil {
			return fmt.Errorf("stage %s: %w", f.Path, err)
		}
		m.Files = append(m.Files, file)
	}
	a.parts++
	return nil
}

// stageFile writes f into staging and fills in the size and checksum of file.
func (o *Output) stageFile(ctx context.Context, f File, b *schemas.Batch, file *record.File) error {
	w, err := o.store.Stage(ctx, file.Staged)
	if err != nil {
		return err
	}
	out := newSummingWriter(w)
	file.Rows, err = o.encoder.Encode(out, f, b)
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	file.Bytes, file.SHA256 = out.sum.Bytes(), out.sum.Hex()
	return err
}

// abandon ends an attempt whose manifest was certainly never created, and removes
// its staging: no manifest can name it any more, and it would keep a full disk full.
// It returns schemas.ErrLost if another writer's manifest has taken the start (that
// writer may have filled the disk with the same records), otherwise err.
func (o *Output) abandon(ctx context.Context, m *record.Manifest, err error) error {
	name := record.ManifestName(m.TopicPartition(), m.Start)
	for try := 0; ; try++ {
		found, readErr := o.store.Read(ctx, name)
		if readErr == nil {
			return o.lose(ctx, m, name, found)
		}
		// Somebody who has read another's manifest removes what is staged here. A network file
		// system may hide that manifest from this machine for a while.
		if !errors.Is(err, fs.ErrNotExist) || !errors.Is(readErr, ErrNotFound) || try == goneTries {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(createWait << try):
		}
	}
	o.store.Discard(ctx, record.StagingName(m.TopicPartition(), m.Start, m.UUID))
	return err
}

// lose ends an attempt after another writer's manifest was found under its name.
func (o *Output) lose(ctx context.Context, m *record.Manifest, name string, found []byte) error {
	other, err := record.ParseManifest(name, found)
	if err != nil {
		return err
	}
	if other.UUID == m.UUID {
		return fmt.Errorf("%s has the uuid of this attempt, but other bytes", name)
	}
	if err := o.store.Discard(ctx, record.StagingName(m.TopicPartition(), m.Start, m.UUID)); err != nil {
		return fmt.Errorf("after a lost race: %w", err)
	}
	return schemas.ErrLost
}

// publish moves the files of a manifest to where readers look, after the checks
// that trust asks for.
func (o *Output) publish(ctx context.Context, m *record.Manifest, trust trust) error {
	if err := o.store.Publish(ctx, moves(m, trust)); err != nil {
		return fmt.Errorf("publish [%d, %d): %w", m.Start, m.End, err)
	}
	if len(m.Files) == 0 {
		return nil
	}
	return o.store.Discard(ctx, record.StagingName(m.TopicPartition(), m.Start, m.UUID))
}

// committed counts the files of m by table.
func committed(m *record.Manifest) schemas.Committed {
	var c schemas.Committed
	for _, f := range m.Files {
		i := slices.IndexFunc(c.Tables, func(t schemas.TableFiles) bool { return t.Table == f.Table })
		if i < 0 {
			i = len(c.Tables)
			c.Tables = append(c.Tables, schemas.TableFiles{Table: f.Table})
		}
		t := &c.Tables[i]
		t.Files++
		t.Rows += f.Rows
		t.Bytes += f.Bytes
	}
	return c
}

// trust says whether the staged files of a manifest are known to be intact.
type trust int

const (
	// justWritten: this process computed the checksums while it wrote the files.
	justWritten trust = iota
	// foundStaged: the files were found beside a manifest and may have changed since
	// they were written, so each is compared with its checksum before it is moved.
	foundStaged
)

// moves returns the moves that publish the files of m: frames and tokens last, so
// that a reader that lists these tables first finds all other rows of their commits.
func moves(m *record.Manifest, trust trust) []Move {
	moves := make([]Move, 0, len(m.Files))
	for _, last := range []bool{false, true} {
		for i := range m.Files {
			f := &m.Files[i]
			if last != (f.Table == record.Frames || f.Table == record.Tokens) {
				continue
			}
			moves = append(moves, Move{From: f.Staged, To: f.Path, Bytes: f.Bytes, SHA256: f.SHA256,
				Fresh: trust == justWritten, Last: last})
		}
	}
	return moves
}
