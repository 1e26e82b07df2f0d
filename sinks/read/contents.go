package read

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"

	"entropipe/schemas/codec/parquetfile"
	"entropipe/sinks"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// contents checks the files of a manifest. It reads them through buffer.
func (v *verifier) contents(ctx context.Context, m manifestJob, buffer []byte) {
	if m.retired || v.retiredNow(ctx, m) {
		v.retired(ctx, m)
		return
	}
	var found accounts
	readable := true
	for i := range m.Files {
		f := &m.Files[i]
		if ctx.Err() != nil {
			return
		}
		v.mu.Lock()
		delete(v.listed, f.Path)
		v.mu.Unlock()
		keys, ok := v.file(ctx, m, f, buffer)
		readable = readable && ok
		switch f.Table {
		case tables.Frames:
			found.frames = append(found.frames, keys...)
		case tables.Tokens:
			found.sequences = append(found.sequences, keys...)
		case tables.Rejects:
			found.rejects = append(found.rejects, keys...)
		case tables.Messages:
			found.kept = true
			found.messages = append(found.messages, keys...)
		}
	}
	if readable { // otherwise the counts must differ, and the fault is reported already
		v.accounts(m, &found)
	}
}

// file checks one file: existence, size, checksum, footer and rows. It returns the keys
// of the rows if the table is frames, tokens, rejects or messages; ok: the file could be read.
func (v *verifier) file(ctx context.Context, m manifestJob, f *record.File, buffer []byte) (keys []rowKey, ok bool) {
	v.checked(checkFiles, 1)
	o, pending, err := v.find(ctx, m, f)
	if err != nil {
		if errors.Is(err, errMissing) {
			v.spoilt(f)
		}
		v.fault(checkFiles, f.Path, "%v", err)
		return nil, false
	}
	defer o.Close()
	if o.Size() != f.Bytes {
		v.spoilt(f)
		v.fault(checkFiles, f.Path, "it has %d bytes, its manifest says %d", o.Size(), f.Bytes)
		return nil, false
	}
	if m.newest && !pending {
		switch staged, err := v.stagedAlone(ctx, f); {
		case err != nil:
			v.fault(checkFiles, f.Path, "whether it is still staged is unknown: %v", err)
		case staged:
			v.spoilt(f)
			v.fault(checkFiles, f.Path, "another file has this name, whatever is in it: the one of the commit is "+
				"still staged, and cannot be published")
			return nil, false
		}
	}
	v.reporter.file(f, pending)
	if pending {
		v.mu.Lock()
		v.pending[path.Dir(f.Staged)] = true
		v.mu.Unlock()
	}
	v.checked(checkSums, 1)
	got, err := sinks.Checksum(ctx, o, buffer)
	if err != nil {
		v.fault(checkSums, f.Path, "cannot be read: %v", err)
		return nil, false
	}
	if got != f.SHA256 {
		v.spoilt(f)
		v.fault(checkSums, f.Path, "its SHA-256 is %s, its manifest says %s", got, f.SHA256)
		return nil, false
	}
	v.checked(checkRows, 1)
	keys, err = readKeys(o, m.Manifest, f, v.Schema)
	if err != nil {
		v.fault(checkRows, f.Path, "%v", err)
	}
	return keys, err == nil
}

// spoilt notes for the plan of a repair that a file is missing or differs from its
// manifest. Unreadable files are not noted: they may be whole.
func (v *verifier) spoilt(f *record.File) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.repair.spoilt(f.Path)
}

// copying is a store that publishes a file by a copy, and removes the staged one later: for a
// while the file is at both places.
type copying interface {
	// Published tells whether the destination of a move is its file.
	Published(ctx context.Context, m sinks.Move) (bool, error)
}

// stagedAlone tells whether a file is in staging, and its path is another one's. Where a rename
// publishes files, it removes them from staging atomically.
func (v *verifier) stagedAlone(ctx context.Context, f *record.File) (bool, error) {
	o, err := v.store.Open(ctx, f.Staged)
	if errors.Is(err, sinks.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	o.Close()
	store, copies := v.store.(copying)
	if !copies {
		return true, nil
	}
	published, err := store.Published(ctx, sinks.Move{From: f.Staged, To: f.Path, Bytes: f.Bytes, SHA256: f.SHA256})
	return !published, err
}

var errMissing = errors.New("the file of a commit is missing")

// find opens a file at its path, or in staging if its manifest m is the newest.
func (v *verifier) find(ctx context.Context, m manifestJob, f *record.File) (o sinks.Object, pending bool, err error) {
	o, err = v.store.Open(ctx, f.Path)
	if errors.Is(err, sinks.ErrNotFound) && m.newest {
		if o, err = v.store.Open(ctx, f.Staged); err == nil {
			return o, true, nil
		}
	}
	if errors.Is(err, sinks.ErrNotFound) { // it may have been published between the two calls
		o, err = v.store.Open(ctx, f.Path)
	}
	if errors.Is(err, sinks.ErrNotFound) {
		err = errMissing
	}
	return o, false, err
}

// readKeys compares a file's footer with its manifest and with the schema of the
// output (0: unknown). It returns the keys of the rows if the table is frames, tokens,
// rejects or messages.
func readKeys(o sinks.Object, m *record.Manifest, f *record.File, schema int) ([]rowKey, error) {
	file, err := parquetfile.Open(o, o.Size())
	if err != nil {
		return nil, err
	}
	if file.NumRows() != f.Rows {
		return nil, fmt.Errorf("it has %d rows, its manifest says %d", file.NumRows(), f.Rows)
	}
	if got, want := footerOf(file, "entropipe.offsets"), fmt.Sprintf("%d-%d", m.Start, m.End); got != want {
		return nil, fmt.Errorf("its footer says offsets %q, its manifest %q", got, want)
	}
	if got := footerOf(file, "entropipe.schema"); schema != 0 && got != strconv.Itoa(schema) {
		return nil, fmt.Errorf("its footer says schema %q, the output has %d: readers of the whole table would "+
			"fail, or lose columns", got, schema)
	}
	if low, high, ok := columnRange(file, "offset"); ok && (low < m.Start || high >= m.End) {
		return nil, fmt.Errorf("it has rows of offsets %d to %d, its manifest covers [%d, %d)", low,
			high, m.Start, m.End)
	}
	switch f.Table {
	case tables.Frames, tables.Tokens, tables.Rejects, tables.Messages:
		return rowKeys(nil, file, f.Table, m.Partition)
	}
	return nil, nil
}

// accounts are the keys of a commit's rows.
type accounts struct {
	frames, sequences, rejects, messages []rowKey

	kept bool // table messages is among the files
}

// accounts checks that every message of a manifest has a row or a reject, and no row twice, and
// that table messages, if there is one, has a row of each message.
func (v *verifier) accounts(m manifestJob, found *accounts) {
	v.checked(checkAccounts, m.End-m.Start)
	c := &m.Counts
	frames, sequences, rejects := found.frames, found.sequences, found.rejects
	if int64(len(frames)) != c.Frames || int64(len(sequences)) != c.Sequences || int64(len(rejects)) != c.Rejects {
		v.fault(checkAccounts, m.name, "its files have %d frames, %d sequences and %d rejects, it says %d, %d and %d",
			len(frames), len(sequences), len(rejects), c.Frames, c.Sequences, c.Rejects)
	}
	all := append(frames, sequences...)
	slices.SortFunc(all, compareKeys)
	for i := 1; i < len(all); i++ {
		if all[i] == all[i-1] {
			v.fault(checkAccounts, m.name, "two rows are offset %d, index %d", all[i].offset, all[i].index)
		}
	}
	all = append(all, rejects...)
	slices.SortFunc(all, compareKeys)
	traces := int64(0)
	offsets := all[:0:0]
	for i, k := range all {
		if k.offset < m.Start || k.offset >= m.End {
			v.fault(checkAccounts, m.name, "a row of offset %d is outside of [%d, %d)", k.offset, m.Start, m.End)
		}
		if i == 0 || k.offset != all[i-1].offset {
			traces++
			offsets = append(offsets, rowKey{offset: k.offset})
		}
		if slices.Contains(m.ahead, k.offset) {
			v.fault(checkAccounts, m.name, "offset %d holds a chunk of a message before it, and has a row of its own",
				k.offset)
		}
	}
	if traces != m.Counts.Messages {
		v.fault(checkAccounts, m.name, "of its %d messages %d have a frame, a sequence or a reject",
			m.Counts.Messages, traces)
	}
	if found.kept && !slices.Equal(found.messages, offsets) {
		v.fault(checkAccounts, m.name, "table messages has %d rows, and not one of each of the %d messages that have "+
			"a frame, a sequence or a reject", len(found.messages), traces)
	}
}

func compareKeys(a, b rowKey) int {
	return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.index, b.index))
}
