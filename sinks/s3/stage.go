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
	metaUUID   = "Entropipe-Uuid"   // of the attempt
	metaSHA256 = "Entropipe-Sha256" // of the bytes, in hex
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
	sharedPieces = largestPut/pieceSize - partPieces // beyond the partPieces that each file may have
	largestFile  = 4 << 30                           // a copy in one request takes 5 GiB at most
)

// memory bounds the pieces of all files that are staged at a time. A file may have partPieces
// in any case.
type memory struct {
	mu   sync.Mutex
	left int // pieces beyond those
	free [][]byte
}

// take returns an empty piece for a file that has so many; nil: there is none.
func (m *memory) take(has int) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if has >= partPieces {
		if m.left == 0 {
			return nil
		}
		m.left--
	}
	if n := len(m.free); n > 0 {
		piece := m.free[n-1]
		m.free = m.free[:n-1]
		return piece
	}
	return make([]byte, 0, pieceSize)
}

// give takes the first n pieces of a file back, and returns the others.
func (m *memory) give(pieces [][]byte, n int) (rest [][]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left += max(len(pieces)-partPieces, 0) - max(len(pieces)-n-partPieces, 0)
	for _, piece := range pieces[:n] {
		if len(m.free) < 2*partPieces {
			m.free = append(m.free, piece[:0])
		}
	}
	return append(rest, pieces[n:]...)
}

// upload is a staged file that is being written.
type upload struct {
	s    *Store
	ctx  context.Context
	name string

	pieces [][]byte // what is not sent yet; all but the last are full
	sum    hash.Hash
	bytes  int64
	id     string // of the upload in parts; empty: there is none
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

// grow makes room for a piece. A file that is longer than one request may be, or than there
// is memory, is sent in parts from then on.
func (u *upload) grow() error {
	if u.id != "" && len(u.pieces) == partPieces {
		if err := u.sendPart(); err != nil {
			return err
		}
	}
	if u.id == "" && len(u.pieces) < largestPut/pieceSize {
		if piece := u.s.memory.take(len(u.pieces)); piece != nil {
			u.pieces = append(u.pieces, piece)
			return nil
		}
	}
	if u.id == "" {
		if err := u.begin(); err != nil {
			return err
		}
		for len(u.pieces) >= partPieces {
			if err := u.sendPart(); err != nil {
				return err
			}
		}
	}
	u.pieces = append(u.pieces, u.s.memory.take(0))
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

// sendPart sends the first pieces, and gives their memory back.
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
	u.pieces = u.s.memory.give(u.pieces, len(part))
	return nil
}

// Close sends what is left. After an error of Write it aborts.
func (u *upload) Close() error {
	if u.closed {
		return u.err
	}
	u.closed = true
	defer func() { u.pieces = u.s.memory.give(u.pieces, len(u.pieces)) }()
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
