package sinks

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"entropipe/sinks/internal/pairhash"
	"entropipe/sinks/record"
)

// StageFile stages one file of a commit that a caller makes itself. It calls write once, which
// writes the file and returns the number of its rows. No two files of a commit have one path.
type StageFile func(table, path string, write func(w PairWriter) (rows int64, err error)) error

// PairWriter writes a file whose SHA-256 is computed on the way.
type PairWriter interface {
	io.Writer

	// WriteBoth writes p to the file, and adds q to the message of other. Two digests may take the
	// time of one: see package pairhash.
	WriteBoth(p []byte, other *pairhash.Digest, q []byte) (int, error)
}

// CommitFiles commits m, whose files are made by make instead of the Encoder: their rows are
// those of another output. It sets UUID, Files and Writer of m. m.Start is where its partition
// continues, which was resumed. The record of m's content must be in the output.
//
// After any error the partition must be resumed. Errors mean the same as those of Commit; an
// error of make ends the attempt, and nothing of it is in the output.
func (o *Output) CommitFiles(ctx context.Context, m *record.Manifest, make func(stage StageFile) error) error {
	p := m.TopicPartition()
	if err := o.knowContent(ctx, m.ContentHash); err != nil {
		return err
	}
	if !o.take(p, m.Start) {
		return notReady(p, m.Start)
	}
	m.Format, m.UUID, m.Writer, m.Files = record.FormatVersion, record.NewUUID(), o.cfg.Version, []record.File{}
	if err := make(func(table, path string, write func(PairWriter) (int64, error)) error {
		return o.stageMade(ctx, m, table, path, write)
	}); err != nil {
		return unavailable(o.abandon(ctx, m, err))
	}
	name := record.ManifestName(p, m.Start)
	if _, err := record.ParseManifest(name, record.Encode(m)); err != nil {
		return o.abandon(ctx, m, fmt.Errorf("a commit cannot be recorded: %w", err))
	}
	_, err := o.settle(ctx, m)
	return err
}

// largeStager is a store that writes large files otherwise than small ones.
type largeStager interface {
	// StageLarge does what Stage does, for a file that is expected to be large.
	StageLarge(ctx context.Context, name string) (io.WriteCloser, error)
}

// stageMade stages one file and adds it to m.
func (o *Output) stageMade(ctx context.Context, m *record.Manifest, table, name string,
	write func(PairWriter) (int64, error)) (err error) {
	if !strings.HasPrefix(name, table+"/") ||
		slices.ContainsFunc(m.Files, func(f record.File) bool { return f.Path == name }) {
		return fmt.Errorf("%s is no path for a file of table %s, or another file of the commit has it", name, table)
	}
	folder := record.StagingName(m.TopicPartition(), m.Start, m.UUID)
	file := record.File{Table: table, Path: name, Staged: path.Join(folder, fmt.Sprintf("%s-%d", table, len(m.Files)))}
	stage := o.store.Stage
	if s, ok := o.store.(largeStager); ok {
		stage = s.StageLarge
	}
	w, err := stage(ctx, file.Staged)
	if err != nil {
		return fmt.Errorf("stage %s: %w", name, err)
	}
	out := newSummingWriter(w)
	file.Rows, err = write(out)
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("stage %s: %w", name, err)
	}
	file.Bytes, file.SHA256 = out.sum.Bytes(), out.sum.Hex()
	m.Files = append(m.Files, file)
	return nil
}

// knowContent checks that the output has the record of a content, so that settle need not
// write it.
func (o *Output) knowContent(ctx context.Context, hash string) error {
	o.mu.Lock()
	known := hash == "" || o.contents.recorded[hash]
	o.mu.Unlock()
	if known {
		return nil
	}
	data, err := o.store.Read(ctx, record.ContentName(hash)) // makes it durable
	if err == nil {
		_, err = parseContent(record.ContentName(hash), data)
	}
	if err != nil {
		return unavailable(fmt.Errorf("configuration: %w", err))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.contents.recorded[hash] = true
	return nil
}

// Unavailable returns err as a *schemas.UnavailableError if it may pass by itself, otherwise as
// it is: for errors of stores that are read beside an Output.
func Unavailable(err error) error { return unavailable(err) }
