package sinks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"entropipe/schemas"
	"entropipe/sinks/internal/disk"
	"entropipe/sinks/record"
)

// To adopt a commit is to make the files of another output's commit files of this
// output, without computing their rows again. The files get a second name (a hard
// link, or a copy by the server of both buckets) in staging; from there on an adopted commit is
// like any other: one exclusive manifest, then renames. So a process may die anywhere, and several
// processes may adopt or compute the same partition: each manifest has one creator.
//
//	OLD/frames/…/part-….parquet ──link──▶ NEW/_staging/… ──manifest, rename──▶ NEW/frames/…/part-….parquet
//	      (stays)
//
// The other output is only read. It may be removed afterwards. Names, offsets and
// rows stay, so topic and partition are the same in both outputs.

// Former is another output, whose commits an Output may adopt. It is only read. Its
// methods may be called from several goroutines.
type Former struct {
	store    Reader
	identity record.Store
}

// OpenFormer opens the output in store for adoption. The error is a *ConfigError if
// there is no output, or one of another format. It reads one small file.
func OpenFormer(ctx context.Context, store Reader) (*Former, error) {
	data, err := ReadRecord(ctx, store, record.StoreFile)
	if errors.Is(err, ErrNotFound) {
		return nil, &ConfigError{reuseFlag, "this is not an output: it has no " + record.StoreFile}
	}
	if err != nil {
		return nil, fmt.Errorf("output to adopt from: %w", err)
	}
	identity, err := record.ParseStore(data)
	if err == nil && identity.Format != record.FormatVersion {
		err = &record.FormatError{Name: record.StoreFile, Format: identity.Format}
	}
	if err != nil {
		return nil, &ConfigError{reuseFlag, "nothing can be adopted from this output: " + err.Error()}
	}
	return &Former{store, identity}, nil
}

// reuseFlag is the flag that names the other output.
const reuseFlag = "reuse"

// UUID returns the uuid of the other output.
func (f *Former) UUID() string { return f.identity.UUID }

// Adoptable returns a *ConfigError if no commit of f can be adopted: f is this output
// or a copy of it, or its tables have other columns or other folders.
func (o *Output) Adoptable(f *Former) error {
	mine, theirs := &o.identity, &f.identity
	switch {
	case mine.UUID == theirs.UUID:
		return &ConfigError{reuseFlag, "this is the output that is written, or a copy of it: name an earlier output " +
			"here, and a new one with --out"}
	case mine.Schema != theirs.Schema:
		return &ConfigError{reuseFlag, fmt.Sprintf("its tables have schema %d, those of the new output schema %d: one "+
			"output has one schema", theirs.Schema, mine.Schema)}
	}
	return f.CheckFolders(mine.PartitionBy)
}

// CheckFolders returns a *ConfigError if an output whose tables have folders by these keys
// cannot adopt commits of f. It tells before there is such an output.
func (f *Former) CheckFolders(by []string) error {
	theirs := f.identity.PartitionBy
	if slices.Equal(by, theirs) {
		return nil
	}
	return &ConfigError{reuseFlag, fmt.Sprintf("its folders are by %s, those of the new output by %s: say "+
		"--partition-by %s, or compute all of it without --reuse", strings.Join(theirs, ","), strings.Join(by, ","),
		strings.Join(theirs, ","))}
}

// Adopted is what Adopt did.
type Adopted struct {
	Next    int64  // first offset that the partition lacks now
	Commits int64  // commits that this call adopted
	Linked  int64  // files that share their bytes with the other output
	Copied  int64  // files that were copied, since the stores share no file system
	Bytes   int64  // size of both
	Why     string // why the offsets from Next on were not adopted; empty: there are none
}

// Adopt adopts the commits of a partition of f, in order, until the partition reaches
// end, or until f has no commit that can be adopted next. Such a commit
//
//   - begins where this output's partition ends, and ends at end or before,
//   - has the current content,
//   - has all its files, whole: each is read and compared with its SHA-256. This costs
//     a second for one to two GB, less than a tenth of computing rows, and without it a
//     damaged file would live on in every later output.
//
// Adopted.Why has the reason if the partition does not reach end, a fault of f
// included; the caller then computes the rest. Part of a partition may be adopted:
// the commits before the first one that cannot be.
//
// The caller must know that the partition has the same records in both outputs. Ids of
// topics are not compared: adopted manifests have the id of this output's topic.
//
// Errors are faults of this output, and mean the same as those of Commit. The
// partition must be resumed afterwards. The topic must have a base. Like Commit, Adopt
// may be called for several partitions at once.
//
// Cost: one read of the files, two fsyncs of folders and about ten fsyncs a commit; a
// copied file costs its bytes again.
func (o *Output) Adopt(ctx context.Context, f *Former, topic string, id int32, end int64) (Adopted, error) {
	p := partition{Topic: topic, ID: id}
	var a Adopted
	if err := o.Adoptable(f); err != nil {
		return a, err
	}
	pos, err := o.Resume(ctx, topic, id)
	for a.Next = pos.Next; err == nil && a.Next < end; {
		a.Why, err = o.adoptNext(ctx, f, p, end, &a)
		if a.Why != "" {
			break
		}
		if errors.Is(err, schemas.ErrLost) { // another process has committed this start: go on behind it
			pos, err = o.Resume(ctx, topic, id)
			a.Next = pos.Next
		}
	}
	if err != nil {
		return a, fmt.Errorf("%s/%d: adopt offset %d: %w", topic, id, a.Next, err)
	}
	return a, nil
}

// adoptNext adopts the commit of f that begins at a.Next. why is the reason if it
// cannot be adopted.
func (o *Output) adoptNext(ctx context.Context, f *Former, p partition, end int64, a *Adopted) (why string,
	err error) {
	old, why := o.adoptable(ctx, f, p, a.Next, end)
	if err := ctx.Err(); err != nil || why != "" {
		return why, err
	}
	if !o.take(p, old.Start) {
		return "", notReady(p, old.Start)
	}
	m := *old
	m.UUID, m.Created, m.AdoptedFrom = record.NewUUID(), time.Now().UTC(), f.identity.UUID
	o.mu.Lock()
	m.TopicID = o.ids[p].String()
	o.mu.Unlock()
	m.Files = slices.Clone(old.Files)
	s := adoption{o: o, from: f, m: &m, buffer: make([]byte, 1<<20)}
	if err := s.stage(ctx); err != nil {
		err = o.abandon(ctx, &m, err)
		if fault := (*formerError)(nil); errors.As(err, &fault) && ctx.Err() == nil {
			return fault.Error(), nil
		}
		return "", unavailable(err)
	}
	if _, err := o.settle(ctx, &m); err != nil {
		return "", err
	}
	a.Next = m.End
	a.Commits++
	a.Linked += s.linked
	a.Copied += s.copied
	a.Bytes += s.bytes
	return "", nil
}

// adoptable reads the manifest of f that begins at start. why is the reason if it
// cannot be adopted, whatever its files are.
func (o *Output) adoptable(ctx context.Context, f *Former, p partition, start, end int64) (m *record.Manifest,
	why string) {
	m, err := ReadManifest(ctx, f.store, record.ManifestName(p, start))
	content := o.contentHash()
	switch {
	case errors.Is(err, ErrNotFound) && start == 0:
		return nil, "nothing of it is there"
	case errors.Is(err, ErrNotFound):
		return nil, fmt.Sprintf("it ends at offset %d there", start)
	case err != nil:
		return nil, err.Error()
	case m.Format != record.FormatVersion:
		return nil, (&record.FormatError{Name: record.ManifestName(p, start), Format: m.Format}).Error()
	case content == "" || m.ContentHash == "":
		return nil, "the configuration that made its rows is not recorded"
	case m.ContentHash != content:
		return nil, "its rows were made with another configuration: " + o.otherContent(ctx, f, m.ContentHash)
	case m.End > end:
		return nil, fmt.Sprintf("a commit there ends at offset %d, behind the end at %d", m.End, end)
	}
	return m, ""
}

// otherContent describes how the content of f with this hash differs from the current one.
func (o *Output) otherContent(ctx context.Context, f *Former, hash string) string {
	current := o.contentHash()
	c := ContentChange{Was: hash, Is: current}
	if was, err := ReadContent(ctx, f.store, hash); err == nil {
		c.Changes = was.Changes(o.content(ctx, current))
	}
	return c.String()
}

// formerError is a fault of the other output: its commit is not adopted.
type formerError struct {
	name string
	err  error
}

func (e *formerError) Error() string { return e.name + ": " + e.err.Error() }
func (e *formerError) Unwrap() error { return e.err }

// linker is implemented by stores that can give a file of another store a name of
// their own. A store without it copies.
type linker interface {
	// Link gives the file name of another store, which is open as object, the second
	// name staged, of which file says size and checksum. An error that wraps
	// errors.ErrUnsupported: these stores share no files, or not this one, and nothing was
	// done. The name is not durable yet.
	Link(ctx context.Context, from Reader, object Object, name string, file *record.File) error

	// SyncNames makes the names of a staging folder durable.
	SyncNames(folder string) error
}

// summed is an object whose store has the SHA-256 of all of it.
type summed interface {
	// SHA256 returns the checksum in hex, or "" if the store does not have it.
	SHA256(ctx context.Context) string
}

// sumOf returns the checksum of an object, which is read if its store does not have it.
func sumOf(ctx context.Context, o Object, buffer []byte) (string, error) {
	if s, ok := o.(summed); ok {
		if sum := s.SHA256(ctx); sum != "" {
			return sum, nil
		}
	}
	return Checksum(ctx, o, buffer)
}

// adoption is the staging of one adopted commit.
type adoption struct {
	o                     *Output
	from                  *Former
	m                     *record.Manifest // its files are renamed to their staged names one by one
	buffer                []byte
	linked, copied, bytes int64
}

// stage gives all files of the manifest staged names. A *formerError is a fault of the
// other output.
func (s *adoption) stage(ctx context.Context) error {
	folder := record.StagingName(s.m.TopicPartition(), s.m.Start, s.m.UUID)
	paths := map[string]bool{}
	theirs := s.m.Files
	s.m.Files = make([]record.File, 0, len(theirs))
	for i, file := range theirs {
		if paths[file.Path] {
			return &formerError{file.Path, errors.New("its manifest names this file twice")}
		}
		paths[file.Path] = true
		mine := file
		mine.Staged = fmt.Sprintf("%s/%s-%d", folder, file.Table, i)
		s.m.Files = append(s.m.Files, mine)
		if err := s.file(ctx, &file, mine.Staged); err != nil {
			return err
		}
	}
	if l, ok := s.o.store.(linker); ok && s.linked > 0 {
		return l.SyncNames(folder)
	}
	return nil
}

// file links or copies one file and compares it with its checksum.
func (s *adoption) file(ctx context.Context, f *record.File, staged string) error {
	object, name, err := s.from.open(ctx, f)
	if err != nil {
		return &formerError{f.Path, err}
	}
	defer object.Close()
	if object.Size() != f.Bytes {
		return &formerError{name, fmt.Errorf("it has %d bytes, its manifest says %d", object.Size(), f.Bytes)}
	}
	s.bytes += f.Bytes
	if l, ok := s.o.store.(linker); ok {
		linked := *f
		linked.Staged = staged
		err = l.Link(ctx, s.from.store, object, name, &linked)
		if err == nil {
			s.linked++
			sum, err := sumOf(ctx, object, s.buffer)
			return s.intact(name, f, sum, err)
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return fmt.Errorf("link %s: %w", f.Path, err)
		}
	}
	s.copied++
	sum, err := s.copy(ctx, object, name, staged)
	if fault := (*formerError)(nil); errors.As(err, &fault) {
		return err
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", f.Path, err)
	}
	return s.intact(name, f, sum, nil)
}

// copy writes the bytes of object into staging and returns their checksum. A
// *formerError is a fault of reading.
func (s *adoption) copy(ctx context.Context, object Object, name, staged string) (sum string, err error) {
	w, err := s.o.store.Stage(ctx, staged)
	if err != nil {
		return "", err
	}
	in := &noting{Reader: untilEnd{ctx, io.NewSectionReader(object, 0, object.Size())}}
	out := newSummingWriter(w)
	_, err = io.CopyBuffer(struct{ io.Writer }{out}, in, s.buffer)
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	if in.err != nil {
		err = &formerError{name, in.err}
	}
	return out.sum.Hex(), err
}

// intact returns a *formerError if a file could not be read or has another checksum
// than its manifest says.
func (s *adoption) intact(name string, f *record.File, sum string, err error) error {
	if err == nil && sum != f.SHA256 {
		err = fmt.Errorf("its SHA-256 is %s, its manifest says %s", sum, f.SHA256)
	}
	if err != nil {
		return &formerError{name, err}
	}
	return nil
}

// noting is a reader that remembers its error, which a copy cannot tell from that of
// the writer.
type noting struct {
	io.Reader
	err error // not io.EOF
}

func (n *noting) Read(p []byte) (int, error) {
	k, err := n.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.err = err
	}
	return k, err
}

// open opens a file of a commit where readers find it, or in staging: the process that
// made the newest commit may have died before it moved the files, or moves them now.
func (f *Former) open(ctx context.Context, file *record.File) (o Object, name string, err error) {
	for _, name := range []string{file.Path, file.Staged, file.Path} {
		if o, err = f.store.Open(ctx, name); !errors.Is(err, ErrNotFound) {
			return o, name, err
		}
	}
	return nil, "", errors.New("the file of a commit is missing")
}

// linkDisk is a disk that can give a file of another disk a second name here.
type linkDisk interface {
	LinkFrom(from disk.Disk, object disk.Object, name, to string) error
}

// Link implements linker, for stores in folders of one file system.
func (l *Local) Link(_ context.Context, from Reader, object Object, name string, file *record.File) error {
	other, ok := from.(*Local)
	d, can := l.disk.(linkDisk)
	if !ok || !can {
		return errors.ErrUnsupported
	}
	if err := l.makeFolder(path.Dir(file.Staged)); err != nil {
		return err
	}
	return d.LinkFrom(other.disk, object, name, file.Staged)
}

// SyncNames implements linker.
func (l *Local) SyncNames(folder string) error { return l.disk.SyncDir(folder) }
