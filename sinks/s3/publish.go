package s3

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/minio/minio-go/v7"

	"entropipe/ingest/bucket"
	"entropipe/sinks"
	"entropipe/sinks/record"
)

// found is what a store says of an object without its bytes.
type found struct {
	etag   string
	size   int64
	uuid   string // metadata; empty: it has none
	sha256 string
	bytes  int64 // -1: none
	source string
	sum    string // SHA-256 of the bytes in hex, as the store has computed it; empty: it does not say
}

// head asks for an object. false: it is not there.
func (s *Store) head(ctx context.Context, name string) (f found, there bool, err error) {
	info, err := s.c.Stat(ctx, name)
	if errors.Is(notFound(name, err), sinks.ErrNotFound) {
		return found{}, false, nil
	}
	f = found{etag: info.ETag, size: info.Size, uuid: info.UserMetadata[metaUUID],
		sha256: info.UserMetadata[metaSHA256], source: info.UserMetadata[metaSource], bytes: -1}
	if n, bad := strconv.ParseInt(info.UserMetadata[metaBytes], 10, 64); bad == nil {
		f.bytes = n
	}
	f.sum = wholeSum(&info)
	return f, err == nil, err
}

// wholeSum returns the SHA-256 of an object as the store has computed it, in hex. Of an object
// that was sent in parts it is one of the parts' checksums, and so none.
func wholeSum(info *minio.ObjectInfo) string {
	sum, err := base64.StdEncoding.DecodeString(info.ChecksumSHA256)
	if err != nil || len(sum) != sha256.Size || info.ChecksumMode != minio.ChecksumFullObjectMode.String() {
		return ""
	}
	return hex.EncodeToString(sum)
}

// Publish implements sinks.Stager, by copies with a condition on the source. Fresh files are
// copied without a look at what is there: that costs one request a file, and their names
// belong to this commit alone. Copies run beside each other; those of moves that are Last begin
// when all others are done. After the last copy one request deletes the staged objects.
func (s *Store) Publish(ctx context.Context, moves []sinks.Move) error {
	steps := make([]step, len(moves))
	for i, m := range moves {
		steps[i] = step{Move: m, s: s}
		if m.Fresh {
			steps[i].etag = s.etagOf(m.From)
		}
	}
	if err := together(ctx, steps, (*step).look); err != nil {
		return err
	}
	first := slices.IndexFunc(moves, func(m sinks.Move) bool { return m.Last })
	if first < 0 {
		first = len(moves)
	}
	for _, some := range [][]step{steps[:first], steps[first:]} {
		if err := together(ctx, some, (*step).run); err != nil {
			return err
		}
	}
	var left []string
	for i := range steps {
		if steps[i].etag != "" {
			left = append(left, steps[i].From)
		}
	}
	if err := s.remove(ctx, left); err != nil {
		return err
	}
	s.forget(moves)
	return nil
}

// atOnce bounds the requests of one call that are under way at a time.
const atOnce = 8

// together calls do for all steps, some at a time, and waits for them. After an error it begins
// no further one. Of several errors it returns one that no later try mends, if there is one.
func together(ctx context.Context, steps []step, do func(t *step, ctx context.Context) error) error {
	errs := make([]error, len(steps))
	var next atomic.Int64
	var failed atomic.Bool
	var all sync.WaitGroup
	for range min(atOnce, len(steps)) {
		all.Go(func() {
			for i := int(next.Add(1) - 1); i < len(steps) && !failed.Load(); i = int(next.Add(1) - 1) {
				if errs[i] = do(&steps[i], ctx); errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	all.Wait()
	return gravest(errs)
}

// gravest returns the first error about a lost or damaged file, else the first one.
func gravest(errs []error) error {
	for _, err := range errs {
		lost, damaged := (*sinks.LostFileError)(nil), (*sinks.DamagedFileError)(nil)
		if errors.As(err, &damaged) || errors.As(err, &lost) {
			return err
		}
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// step is one move.
type step struct {
	sinks.Move
	s     *Store
	etag  string // the staged object's; empty: it is not there
	known bool   // nothing needs to be looked at
}

// look finds the staged object, and compares it with its checksum unless it is fresh.
func (t *step) look(ctx context.Context) error {
	if t.etag != "" {
		t.known = true
		return nil
	}
	if t.SHA256 == "" {
		f, there, err := t.s.head(ctx, t.From)
		if there {
			t.etag = f.etag
		}
		return err
	}
	return t.compare(ctx)
}

// compare compares the checksum of the staged object, which the store has, or which is computed
// here from its bytes. *sinks.DamagedFileError: it is another than was staged.
func (t *step) compare(ctx context.Context) error {
	t.etag = ""
	f, there, err := t.s.head(ctx, t.From)
	if err != nil || !there {
		return err
	}
	sum := f.sum
	if f.size == t.Bytes && sum == "" {
		o, err := t.s.open(ctx, t.From)
		if errors.Is(err, sinks.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		defer o.Close()
		f.etag, f.size = o.ETag(), o.Size()
		sum, err = sinks.Checksum(ctx, o, make([]byte, pieceSize))
		if errors.Is(err, sinks.ErrNotFound) {
			return nil // another process has published it meanwhile
		}
		if err != nil {
			return err
		}
	}
	switch {
	case f.size != t.Bytes:
		return t.damaged("it has %d bytes, its manifest says %d", f.size, t.Bytes)
	case sum != t.SHA256:
		return t.damaged("its SHA-256 is %s, its manifest says %s", sum, t.SHA256)
	}
	t.etag = f.etag
	return nil
}

func (t *step) damaged(format string, args ...any) error {
	return &sinks.DamagedFileError{Move: t.Move, Problem: fmt.Sprintf(format, args...)}
}

// run copies the file, unless that is done.
func (t *step) run(ctx context.Context) error {
	if !t.known {
		done, err := t.done(ctx)
		if done || err != nil {
			return err
		}
	}
	for try := 0; ; try++ {
		err := t.copy(ctx)
		f := (*bucket.Fault)(nil)
		switch {
		case err == nil:
			return nil
		case !errors.As(err, &f) || try == bucket.Tries:
			return err
		case f.Missing(): // another process has published it, and deleted the staged object
			t.etag = ""
		case f.Changed() && t.SHA256 != "": // another one of the same bytes, after an answer that was lost
			err = t.compare(ctx)
		case f.Changed():
			err = t.look(ctx)
		default:
			return err
		}
		if f.Changed() && err != nil {
			return err
		}
		if done, err := t.done(ctx); done || err != nil {
			return err
		}
	}
}

// done tells whether the destination is the file of the move. If it is another one, or if
// the file is nowhere, the error is a *sinks.LostFileError.
func (t *step) done(ctx context.Context) (bool, error) {
	f, there, err := t.s.head(ctx, t.To)
	switch {
	case err != nil:
		return false, err
	case !there && t.etag != "":
		return false, nil
	case !there:
		return false, t.lost("its commit is recorded, but the file is neither here nor in %s; nothing in this output "+
			"explains it", t.From)
	}
	same, err := t.same(ctx, &f)
	switch {
	case same || err != nil:
		return same, err
	case t.etag != "":
		return false, t.lost("another file has this name; the one of the commit is still in %s", t.From)
	case f.size != t.Bytes:
		return false, t.lost("the file has %d bytes, its manifest says %d", f.size, t.Bytes)
	}
	return false, t.lost("the file is not the one of the manifest, although it has its size")
}

// Published tells whether the destination of a move is its file, by the rules of Publish. The
// move has a checksum. A destination that does not exist is not its file.
func (s *Store) Published(ctx context.Context, m sinks.Move) (bool, error) {
	f, there, err := s.head(ctx, m.To)
	if err != nil || !there {
		return false, err
	}
	t := step{Move: m, s: s}
	return t.same(ctx, &f)
}

// same tells whether an object at the destination is the file of the move: by its metadata, or
// by its bytes, if it has no metadata, as after a copy of a whole output by other programs.
func (t *step) same(ctx context.Context, f *found) (bool, error) {
	switch {
	case f.size != t.Bytes:
		return false, nil
	case t.SHA256 == "" && t.etag != "":
		return f.source == t.etag, nil
	case t.SHA256 == "":
		return true, nil // nobody knows more of the file
	case f.sha256 != "":
		uuid := attemptOf(t.From)
		return f.sha256 == t.SHA256 && f.bytes == t.Bytes && (f.uuid == uuid || f.uuid == ""), nil
	}
	if f.sum != "" {
		return f.sum == t.SHA256, nil
	}
	o, err := t.s.open(ctx, t.To)
	if err != nil {
		return false, err
	}
	defer o.Close()
	sum, err := sinks.Checksum(ctx, o, make([]byte, pieceSize))
	return sum == t.SHA256, err
}

func (t *step) lost(format string, args ...any) error {
	return &sinks.LostFileError{Move: t.Move, Problem: fmt.Sprintf(format, args...)}
}

// copy copies the staged object, on condition that it is the one that was looked at.
func (t *step) copy(ctx context.Context) error {
	s, meta := t.s, metadata(attemptOf(t.From), t.SHA256, t.Bytes)
	meta[metaSource] = t.etag
	return s.c.Do(ctx, bucket.OpPut, t.To, t.Bytes, func(ctx context.Context) error {
		_, err := s.c.Core.Client.CopyObject(ctx,
			minio.CopyDestOptions{Bucket: s.in, Object: s.c.Key(t.To), ReplaceMetadata: true, UserMetadata: meta,
				ContentType: contentType},
			minio.CopySrcOptions{Bucket: s.in, Object: s.c.Key(t.From), MatchETag: t.etag})
		return err
	})
}

// Remove implements sinks.Remover.
func (s *Store) Remove(ctx context.Context, names []string) error { return s.remove(ctx, names) }

// remove deletes objects, up to 1,000 in a request. What is not there is no error.
func (s *Store) remove(ctx context.Context, names []string) error {
	for batch := range slices.Chunk(names, 1000) {
		err := s.c.Do(ctx, bucket.OpDelete, path.Dir(batch[0]), 0, func(ctx context.Context) error {
			return s.removeSome(ctx, batch)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) removeSome(ctx context.Context, names []string) (first error) {
	objects := make(chan minio.ObjectInfo, len(names))
	for _, name := range names {
		objects <- minio.ObjectInfo{Key: s.c.Key(name)}
	}
	close(objects)
	for wrong := range s.c.Core.RemoveObjects(ctx, s.in, objects, minio.RemoveObjectsOptions{}) {
		var answer minio.ErrorResponse
		if errors.As(wrong.Err, &answer) && answer.Code == minio.NoSuchKey {
			continue
		}
		if first == nil {
			first = wrong.Err
		}
	}
	return first
}

// forget notes that Publish has emptied the folders of what it moved, so that Discard need
// not list them.
func (s *Store) forget(moves []sinks.Move) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range moves {
		folder := path.Dir(m.From)
		if attemptOf(m.From) == "" {
			continue
		}
		if s.staged[folder] == nil {
			s.staged[folder] = map[string]string{}
		}
		delete(s.staged[folder], m.From)
	}
}

// Discard implements sinks.Stager. It lists the folder only if this process has neither made,
// emptied nor listed it before.
func (s *Store) Discard(ctx context.Context, folder string) error {
	s.mu.Lock()
	own, isOwn := s.staged[folder]
	names, known := s.listed[folder]
	s.mu.Unlock()
	if isOwn {
		names, known = slices.Sorted(maps.Keys(own)), true
	}
	if !known {
		err := s.List(ctx, folder, func(e sinks.Entry) error {
			names = append(names, e.Name)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := s.remove(ctx, names); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.staged, folder)
	delete(s.listed, folder)
	return nil
}

// noteListed keeps what a listing of the staging folders that begin with begin has found, for the
// calls of Discard that follow.
func (s *Store) noteListed(begin string, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.listed, func(folder string, _ []string) bool {
		return strings.HasPrefix(folder, record.StagingFolder+"/"+begin)
	})
	for _, name := range names {
		if folder := path.Dir(name); strings.HasPrefix(folder, record.StagingFolder+"/") {
			s.listed[folder] = append(s.listed[folder], name)
		}
	}
}
