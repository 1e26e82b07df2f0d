package s3

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"

	"entropipe/ingest/bucket"
	"entropipe/sinks/record"
)

// Metadata of staged and published objects. Stores keep them through a copy, and no other
// program writes them.
const (
	metaUUID   = "Entropipe-Uuid"   // the attempt's
	metaSHA256 = "Entropipe-Sha256" // checksum of the bytes, in hex
	metaBytes  = "Entropipe-Bytes"
	metaSource = "Entropipe-Source" // ETag of the object of which this one is a copy
)

// headerSHA256 has the store check the bytes that it gets, and keep their checksum.
const headerSHA256 = "X-Amz-Checksum-Sha256"

// Sizes of staged objects. A file of up to largestPut bytes is one request; a longer one is
// sent in parts, all but the last of which have partPieces pieces, as some stores demand.
const (
	pieceSize    = 1 << 20
	partPieces   = 8
	largestPut   = 64 << 20
	sharedPieces = largestPut/pieceSize - partPieces // the others are for the file that has the turn
	largestFile  = 4 << 30                           // a copy in one request takes 5 GiB at most
)

// memory bounds the pieces of all files that are staged at a time to largestPut bytes. Where
// none is left, a file that has a part is sent in parts. Of the files that have less, one at a
// time has the turn: it gets the pieces of a part that are kept for it, so that it can always be
// sent; the others wait until pieces come back.
type memory struct {
	mu      sync.Mutex
	left    int // pieces beyond those of the turn
	turn    *upload
	free    [][]byte
	all     int           // pieces that there are, in files and free
	changed chan struct{} // closed when pieces or the turn come back; nil: nobody waits
}

// take returns an empty piece for a file; nil: the file has a part, and there is no other piece.
// It waits for a file that has less, and fails when the file's context ends.
func (m *memory) take(u *upload) ([]byte, error) {
	for {
		piece, wait := m.try(u)
		if wait == nil {
			return piece, nil
		}
		select {
		case <-wait:
		case <-u.ctx.Done():
			return nil, u.ctx.Err()
		}
	}
}

// try returns a piece or nil, or what to wait for.
func (m *memory) try(u *upload) (piece []byte, wait <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.left > 0:
		m.left--
		u.shared++
	case u.has() >= partPieces:
		return nil, nil
	case m.turn == nil || m.turn == u:
		m.turn = u
	default:
		if m.changed == nil {
			m.changed = make(chan struct{})
		}
		return nil, m.changed
	}
	if n := len(m.free); n > 0 {
		piece, m.free = m.free[n-1], m.free[:n-1]
		return piece, nil
	}
	m.all++
	return make([]byte, 0, pieceSize), nil
}

// give takes back the spare pieces of a file that has more than so many. A file without pieces
// gives its turn back.
func (m *memory) give(u *upload, keep int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(u.spare) > 0 && u.has() > keep {
		last := len(u.spare) - 1
		if len(m.free) < 2*partPieces {
			m.free = append(m.free, u.spare[last])
		} else {
			m.all--
		}
		u.spare = u.spare[:last]
		if u.shared > 0 {
			m.left, u.shared = m.left+1, u.shared-1
		}
	}
	if m.turn == u && u.has() == 0 {
		m.turn = nil
	}
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}

// upload is a staged file that is being written.
type upload struct {
	s    *Store
	ctx  context.Context
	name string

	pieces [][]byte // bytes to be sent; all but the last piece are full
	spare  [][]byte // empty ones
	shared int      // how many of both are of those that all files share
	sum    hash.Hash
	bytes  int64
	id     string // id of the upload in parts; empty: there is none
	parts  []minio.CompletePart
	err    error // the first one: nothing more is sent
	closed bool
}

// Stage implements sinks.Stager. The object is there when Close returns nil; before, there is
// nothing, or an upload that Close aborts when it fails.
func (s *Store) Stage(ctx context.Context, name string) (io.WriteCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &upload{s: s, ctx: ctx, name: name, sum: sha256.New()}, nil
}

// Write implements io.Writer.
func (u *upload) Write(p []byte) (n int, err error) {
	for len(p) > 0 && u.err == nil {
		last := len(u.pieces) - 1
		if last < 0 || len(u.pieces[last]) == pieceSize {
			u.err = u.grow()
			continue
		}
		k := min(len(p), pieceSize-len(u.pieces[last]))
		u.pieces[last] = append(u.pieces[last], p[:k]...)
		u.sum.Write(p[:k])
		u.bytes += int64(k)
		n, p = n+k, p[k:]
		if u.bytes > largestFile {
			u.err = u.s.c.Refusal(bucket.OpPut, u.name,
				"the file would have more than 4 GiB, which no store copies in one "+
					"request: commit earlier, with a smaller --roll-bytes")
		}
	}
	return n, u.err
}

// has returns how many pieces of memory the file has.
func (u *upload) has() int { return len(u.pieces) + len(u.spare) }

// grow makes room for a piece. A file that is longer than one request may be, or than there
// is memory, is sent in parts from then on.
func (u *upload) grow() error {
	if len(u.spare) == 0 && len(u.pieces) < largestPut/pieceSize && (u.id == "" || len(u.pieces) < partPieces) {
		piece, err := u.s.memory.take(u)
		if err != nil {
			return err
		}
		if piece != nil {
			u.spare = append(u.spare, piece)
		}
	}
	if len(u.spare) == 0 || u.id != "" && len(u.pieces) == partPieces {
		if err := u.sendParts(); err != nil {
			return err
		}
	}
	last := len(u.spare) - 1
	u.pieces, u.spare = append(u.pieces, u.spare[last]), u.spare[:last]
	return nil
}

// sendParts sends all parts that there are, and keeps the memory of one.
func (u *upload) sendParts() error {
	if u.id == "" {
		if err := u.begin(); err != nil {
			return err
		}
	}
	for len(u.pieces) >= partPieces {
		if err := u.sendPart(); err != nil {
			return err
		}
	}
	u.s.memory.give(u, partPieces)
	return nil
}

// begin begins an upload in parts. Its checksum is not known yet: the copy gets it.
func (u *upload) begin() error {
	return u.s.c.Do(u.ctx, bucket.OpPut, u.name, 0, func(ctx context.Context) (err error) {
		u.id, err = u.s.c.Core.NewMultipartUpload(ctx, u.s.in, u.s.c.Key(u.name), minio.PutObjectOptions{
			ContentType: contentType, UserMetadata: map[string]string{metaUUID: attemptOf(u.name)}})
		return err
	})
}

// sendPart sends the first pieces, which are empty then.
func (u *upload) sendPart() error {
	part := u.pieces[:min(len(u.pieces), partPieces)]
	size, sum := sizeOf(part), sumOfPieces(part)
	number := len(u.parts) + 1
	var sent minio.ObjectPart
	err := u.s.c.Do(u.ctx, bucket.OpPut, u.name, size, func(ctx context.Context) (err error) {
		sent, err = u.s.c.Core.PutObjectPart(ctx, u.s.in, u.s.c.Key(u.name), u.id, number, readerOf(part), size,
			minio.PutObjectPartOptions{Sha256Hex: sum, DisableContentSha256: true})
		return err
	})
	if err != nil {
		return err
	}
	u.parts = append(u.parts, minio.CompletePart{PartNumber: number, ETag: sent.ETag})
	u.empty(len(part))
	return nil
}

// empty empties the first pieces.
func (u *upload) empty(n int) {
	for _, piece := range u.pieces[:n] {
		u.spare = append(u.spare, piece[:0])
	}
	u.pieces = append([][]byte(nil), u.pieces[n:]...)
}

// Close sends what is left. After an error of Write it aborts.
func (u *upload) Close() error {
	if u.closed {
		return u.err
	}
	u.closed = true
	defer func() {
		u.empty(len(u.pieces))
		u.s.memory.give(u, 0)
	}()
	etag := ""
	if u.err == nil && u.id == "" {
		etag, u.err = u.put()
	} else if u.err == nil {
		etag, u.err = u.complete()
	}
	if u.err != nil {
		u.abort()
	}
	u.s.remember(u.name, etag) // after an error, too: the object may be there, and Discard removes it
	return u.err
}

// put sends the file in one request.
func (u *upload) put() (etag string, err error) {
	binary := u.sum.Sum(nil)
	sum, meta := hex.EncodeToString(binary), metadata(attemptOf(u.name), hex.EncodeToString(binary), u.bytes)
	meta[headerSHA256] = base64.StdEncoding.EncodeToString(binary)
	err = u.s.c.Do(u.ctx, bucket.OpPut, u.name, u.bytes, func(ctx context.Context) error {
		info, err := u.s.c.Core.PutObject(ctx, u.s.in, u.s.c.Key(u.name), readerOf(u.pieces), u.bytes, "", sum,
			minio.PutObjectOptions{ContentType: contentType, DisableContentSha256: true,
				UserMetadata: meta})
		etag = info.ETag
		return err
	})
	if err != nil {
		return "", err
	}
	return etag, nil
}

// complete ends an upload in parts. If an answer is lost, and the upload is gone, the object
// tells whether it was completed.
func (u *upload) complete() (etag string, err error) {
	if len(u.pieces) > 0 {
		if err := u.sendPart(); err != nil {
			return "", err
		}
	}
	err = u.s.c.Do(u.ctx, bucket.OpPut, u.name, 0, func(ctx context.Context) error {
		info, err := u.s.c.Core.CompleteMultipartUpload(ctx, u.s.in, u.s.c.Key(u.name), u.id, u.parts,
			minio.PutObjectOptions{})
		etag = info.ETag
		return err
	})
	if f := (*bucket.Fault)(nil); errors.As(err, &f) && f.Code == "NoSuchUpload" {
		found, there, headErr := u.s.head(u.ctx, u.name)
		if headErr == nil && there && found.size == u.bytes && found.uuid == attemptOf(u.name) {
			return found.etag, nil
		}
	}
	if err != nil {
		return "", err
	}
	return etag, nil
}

// abort gives up an upload in parts, and what its end may have made. An error does not
// matter: the staged object is discarded with its attempt, and rules of a bucket may abort
// uploads.
func (u *upload) abort() {
	if u.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(u.ctx), 10*time.Second)
	defer cancel()
	u.s.c.Core.AbortMultipartUpload(ctx, u.s.in, u.s.c.Key(u.name), u.id)
}

const contentType = "application/vnd.apache.parquet"

func metadata(uuid, sha256 string, bytes int64) map[string]string {
	m := map[string]string{metaBytes: strconv.FormatInt(bytes, 10)}
	if uuid != "" {
		m[metaUUID] = uuid
	}
	if sha256 != "" {
		m[metaSHA256] = sha256
	}
	return m
}

// attemptOf returns the uuid of the attempt that staged a file; empty: it is not in staging.
func attemptOf(staged string) string {
	folder := path.Dir(staged)
	if !strings.HasPrefix(folder, record.StagingFolder+"/") || len(folder) < record.UUIDSize {
		return ""
	}
	return folder[len(folder)-record.UUIDSize:]
}

func sizeOf(pieces [][]byte) (n int64) {
	for _, piece := range pieces {
		n += int64(len(piece))
	}
	return n
}

func sumOfPieces(pieces [][]byte) string {
	sum := sha256.New()
	for _, piece := range pieces {
		sum.Write(piece)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// pieceReader reads pieces one after the other.
type pieceReader struct{ pieces [][]byte }

func readerOf(pieces [][]byte) *pieceReader { return &pieceReader{append([][]byte(nil), pieces...)} }

// Read implements io.Reader.
func (r *pieceReader) Read(p []byte) (int, error) {
	for len(r.pieces) > 0 && len(r.pieces[0]) == 0 {
		r.pieces = r.pieces[1:]
	}
	if len(r.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.pieces[0])
	r.pieces[0] = r.pieces[0][n:]
	return n, nil
}

// remember keeps the ETag of an object that this process has staged.
func (s *Store) remember(name, etag string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	folder := path.Dir(name)
	if s.staged[folder] == nil {
		s.staged[folder] = map[string]string{}
	}
	s.staged[folder][name] = etag
}

// etagOf returns the ETag of an object that this process has staged; empty: it has not.
func (s *Store) etagOf(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.staged[path.Dir(name)][name]
}
