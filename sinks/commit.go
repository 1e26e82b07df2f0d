package sinks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"entropipe/schemas"
	"entropipe/sinks/record"
)

// Commit makes b durable, with the parts of it that Stage has taken, or fails
// with schemas.ErrLost when another writer has committed the same start: then
// nothing of b is in the output, and the partition must be resumed. After any
// other error too; whether b is in the output is then for Resume to say. With a
// *schemas.UnavailableError the reason may pass, and what is returned beside it
// is what the output holds if Resume finds b there. b is not retained.
//
// The cost is that of encoding, plus two fsyncs a file and some ten more.
func (o *Output) Commit(ctx context.Context, b *schemas.Batch) (schemas.Committed, error) {
	p := record.TopicPartition{Topic: b.Topic, ID: b.Partition}
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
	if err := o.record(ctx, m.ContentHash); err != nil {
		return schemas.Committed{}, unavailable(o.abandon(ctx, m, err))
	}
	name := record.ManifestName(p, b.Start)
	o.own.begin(m.UUID)
	found, won, err := createOrAdopt(ctx, o.store, name, record.Encode(m))
	o.own.end(m.UUID, err == nil && won)
	switch {
	case errors.Is(err, ErrNotCreated):
		return schemas.Committed{}, unavailable(o.abandon(ctx, m, err))
	case err != nil:
		return committed(m), unavailable(err)
	case !won:
		return schemas.Committed{}, unavailable(o.lose(ctx, m, name, found))
	}
	if err := o.publish(ctx, m, false); err != nil {
		return committed(m), unavailable(err)
	}
	o.give(p, b.End)
	o.saw(p, b.Start)
	if a.parts > 1 {
		// Attempts that died on a batch so large have left much. What this does
		// not remove, the next Resume does.
		o.clean(ctx, p)
	}
	return committed(m), nil
}

func notReady(p record.TopicPartition, start int64) error {
	return fmt.Errorf("offset %d is not where partition %s/%d goes on: it was not resumed, or its last commit failed", start, p.Topic, p.ID)
}

// take reserves a partition's next start, if it is the one: a second attempt
// needs another Resume, unless this one succeeds.
func (o *Output) take(p record.TopicPartition, start int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	next, ok := o.ready[p]
	delete(o.ready, p)
	if ok = ok && next == start; ok {
		delete(o.open, p) // its caller's now
	}
	return ok
}

// give says that everything of p before next is published.
func (o *Output) give(p record.TopicPartition, next int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ready[p] = next
}

func (o *Output) newManifest(b *schemas.Batch) *record.Manifest {
	return &record.Manifest{Format: record.FormatVersion, UUID: record.NewUUID(), Topic: b.Topic, TopicID: b.TopicID.String(), Partition: b.Partition, Start: b.Start, End: b.End, Gap: b.Gap,
		Files: []record.File{}, ConfigHash: o.cfg.ConfigHash, ContentHash: o.contentHash(), Created: time.Now().UTC(), Writer: o.cfg.Version}
}

// stage writes the files of b, one at a time, and lists them in the manifest.
func (o *Output) stage(ctx context.Context, a *attempt, b *schemas.Batch) error {
	m := a.m
	folder := record.StagingName(m.TopicPartition(), m.Start, m.UUID)
	for _, f := range o.encoder.Plan(b, a.parts) {
		file := record.File{Table: f.Table, Path: f.Path, Staged: fmt.Sprintf("%s/%s-%d", folder, f.Table, len(m.Files))}
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
	file.Bytes, file.SHA256 = out.bytes, out.sum()
	return err
}

// abandon ends an attempt whose manifest was certainly never created. If that
// is because another took the start, as a full disk is when another filled it
// with the same records, the race is lost; otherwise err is what is wrong. The
// staging is removed in either case, since no manifest can name it any more:
// left behind, it would keep a full disk full.
func (o *Output) abandon(ctx context.Context, m *record.Manifest, err error) error {
	name := record.ManifestName(m.TopicPartition(), m.Start)
	if found, readErr := o.store.Read(ctx, name); readErr == nil {
		return o.lose(ctx, m, name, found)
	}
	o.store.Discard(ctx, record.StagingName(m.TopicPartition(), m.Start, m.UUID))
	return err
}

// lose ends an attempt after another's manifest was found under the same name.
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

// publish moves the files of a manifest to where readers look. With compare it
// reads what is still staged before that. Commit has just summed what it wrote;
// whoever finds a manifest knows nothing of the bytes, which may have lain in
// staging through a crash or a year.
func (o *Output) publish(ctx context.Context, m *record.Manifest, compare bool) error {
	if err := o.store.Publish(ctx, moves(m, compare)); err != nil {
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

// moves says how the files of m are published: frames and tokens last, so that a
// reader who lists these first finds every other row of what it has listed. With
// compare, a file that is still staged is compared with its checksum before it is
// moved.
func moves(m *record.Manifest, compare bool) []Move {
	moves := make([]Move, 0, len(m.Files))
	for _, last := range []bool{false, true} {
		for i := range m.Files {
			f := &m.Files[i]
			if last != (f.Table == record.Frames || f.Table == record.Tokens) {
				continue
			}
			move := Move{From: f.Staged, To: f.Path, Bytes: f.Bytes}
			if compare {
				move.SHA256 = f.SHA256
			}
			moves = append(moves, move)
		}
	}
	return moves
}
