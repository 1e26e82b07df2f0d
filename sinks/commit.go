package sinks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"entropipe/schemas"
)

// Commit makes b durable, or fails with schemas.ErrLost when another writer
// has committed the same start: then nothing of b is in the output, and the
// partition must be resumed. After any other error too; whether b is in the
// output is then for Resume to say. b is not retained.
//
// The cost is that of encoding, plus two fsyncs a file and some ten more.
func (o *Output) Commit(ctx context.Context, b *schemas.Batch) (schemas.Committed, error) {
	if err := checkBatch(b); err != nil {
		return schemas.Committed{}, err
	}
	p := partition{b.Topic, b.Partition}
	if !o.take(p, b.Start) {
		return schemas.Committed{}, fmt.Errorf("offset %d is not where partition %s/%d goes on: it was not resumed, or its last commit failed", b.Start, p.topic, p.id)
	}
	m := o.newManifest(b)
	if err := o.stage(ctx, m, b); err != nil {
		return schemas.Committed{}, o.abandon(ctx, m, err)
	}
	name := manifestFile(p, b.Start)
	found, won, err := createOrAdopt(ctx, o.store, name, encodeRecord(m))
	switch {
	case errors.Is(err, ErrNotCreated):
		return schemas.Committed{}, o.abandon(ctx, m, err)
	case err != nil:
		return schemas.Committed{}, err
	case !won:
		return schemas.Committed{}, o.lose(ctx, m, name, found)
	}
	if err := o.publish(ctx, m); err != nil {
		return schemas.Committed{}, err
	}
	o.give(p, b.End)
	return m.committed(), nil
}

// take reserves a partition's next start, if it is the one: a second attempt
// needs another Resume, unless this one succeeds.
func (o *Output) take(p partition, start int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	next, ok := o.ready[p]
	delete(o.ready, p)
	return ok && next == start
}

// give says that everything of p before next is published.
func (o *Output) give(p partition, next int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ready[p] = next
}

func (o *Output) newManifest(b *schemas.Batch) *Manifest {
	m := &Manifest{Format: formatVersion, UUID: newUUID(), Topic: b.Topic, Partition: b.Partition, Start: b.Start, End: b.End, Gap: b.Gap,
		Counts: countsOf(b),
		Files:  []ManifestFile{}, ConfigHash: o.cfg.ConfigHash, Created: time.Now().UTC(), Writer: o.cfg.Version}
	if b.Last != nil {
		last := *b.Last
		m.Last = &last
	}
	return m
}

// countsOf says what becomes of the records of b.
func countsOf(b *schemas.Batch) Counts {
	c := Counts{Messages: b.Messages, Rejects: int64(len(b.Rejects)), Holes: b.Holes}
	for i := range b.Results {
		if hasTokens(&b.Results[i]) {
			c.Sequences++
		} else {
			c.Frames++
		}
	}
	return c
}

// stage writes the files of b, one at a time, and lists them in m.
func (o *Output) stage(ctx context.Context, m *Manifest, b *schemas.Batch) error {
	e := <-o.encoders
	defer func() { o.encoders <- e }()
	if e == nil {
		e = newEncoder(&o.cfg)
	}
	folder := stagingName(m.of(), m.Start, m.UUID)
	for i, f := range o.plan(b) {
		file := ManifestFile{Table: f.table.name, Path: f.path, Staged: fmt.Sprintf("%s/%s-%d", folder, f.table.name, i)}
		if err := o.stageFile(ctx, e, &f, b, &file); err != nil {
			return fmt.Errorf("stage %s: %w", f.path, err)
		}
		m.Files = append(m.Files, file)
	}
	return nil
}

func (o *Output) stageFile(ctx context.Context, e *encoder, f *filePlan, b *schemas.Batch, file *ManifestFile) error {
	w, err := o.store.Stage(ctx, file.Staged)
	if err != nil {
		return err
	}
	out := newSummingWriter(w)
	file.Rows, err = e.encode(out, f, b)
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
func (o *Output) abandon(ctx context.Context, m *Manifest, err error) error {
	name := manifestFile(m.of(), m.Start)
	if found, readErr := o.store.Read(ctx, name); readErr == nil {
		return o.lose(ctx, m, name, found)
	}
	o.store.Discard(ctx, stagingName(m.of(), m.Start, m.UUID))
	return err
}

// lose ends an attempt after another's manifest was found under the same name.
func (o *Output) lose(ctx context.Context, m *Manifest, name string, found []byte) error {
	other, err := parseManifest(name, found)
	if err != nil {
		return err
	}
	if other.UUID == m.UUID {
		return fmt.Errorf("%s has the uuid of this attempt, but other bytes", name)
	}
	if err := o.store.Discard(ctx, stagingName(m.of(), m.Start, m.UUID)); err != nil {
		return fmt.Errorf("after a lost race: %w", err)
	}
	return schemas.ErrLost
}

// publish moves the files of a manifest to where readers look.
func (o *Output) publish(ctx context.Context, m *Manifest) error {
	if err := o.store.Publish(ctx, m.moves()); err != nil {
		return fmt.Errorf("publish [%d, %d): %w", m.Start, m.End, err)
	}
	if len(m.Files) == 0 {
		return nil
	}
	return o.store.Discard(ctx, stagingName(m.of(), m.Start, m.UUID))
}

// committed counts the files of m by table.
func (m *Manifest) committed() schemas.Committed {
	var c schemas.Committed
	for _, f := range m.Files {
		if n := len(c.Tables); n == 0 || c.Tables[n-1].Table != f.Table {
			c.Tables = append(c.Tables, schemas.TableFiles{Table: f.Table})
		}
		t := &c.Tables[len(c.Tables)-1]
		t.Files++
		t.Rows += f.Rows
		t.Bytes += f.Bytes
	}
	return c
}

// checkBatch refuses a batch that does not keep the promise that each of its
// records leaves a trace: better no commit than a wrong one.
func checkBatch(b *schemas.Batch) error {
	if b.Start < 0 || b.End <= b.Start || b.Messages < 0 || b.Holes < 0 || b.Messages > b.End-b.Start || b.Holes != b.End-b.Start-b.Messages {
		return fmt.Errorf("a batch of [%d, %d) has %d messages and %d holes", b.Start, b.End, b.Messages, b.Holes)
	}
	if b.Gap && b.Messages > 0 || b.Messages > 0 && (b.Last == nil || b.Last.Offset < b.Start || b.Last.Offset >= b.End) {
		return fmt.Errorf("a batch of [%d, %d) with %d messages: gap %t, last record %+v", b.Start, b.End, b.Messages, b.Gap, b.Last)
	}
	traces := int64(0)
	seen, rejects := int64(-1), b.Rejects
	for i := 0; i < len(b.Results) || len(rejects) > 0; {
		// Merge the two ordered lists, and count the offsets in them.
		var offset int64
		if i < len(b.Results) && (len(rejects) == 0 || b.Results[i].Offset <= rejects[0].Offset) {
			r := &b.Results[i]
			if offset = r.Offset; r.Topic != b.Topic || r.Partition != b.Partition {
				return fmt.Errorf("a batch of %s/%d has a result of %s/%d", b.Topic, b.Partition, r.Topic, r.Partition)
			}
			if i > 0 && offset == b.Results[i-1].Offset && r.Index <= b.Results[i-1].Index {
				return fmt.Errorf("a batch has result %d of offset %d after result %d", r.Index, offset, b.Results[i-1].Index)
			}
			i++
		} else {
			offset, rejects = rejects[0].Offset, rejects[1:]
		}
		if offset < b.Start || offset >= b.End || offset < seen {
			return fmt.Errorf("a batch of [%d, %d) has offset %d after %d", b.Start, b.End, offset, seen)
		}
		if offset > seen {
			seen, traces = offset, traces+1
		}
	}
	if traces != b.Messages {
		return fmt.Errorf("a batch of [%d, %d) has %d messages, but %d of its offsets have rows or rejects", b.Start, b.End, b.Messages, traces)
	}
	return nil
}
