package sinks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"entropipe/sinks/internal/pairhash"
)

// summingWriter counts and hashes the bytes that are written through it.
type summingWriter struct {
	to  io.Writer
	sum *pairhash.Digest
}

func newSummingWriter(w io.Writer) *summingWriter {
	return &summingWriter{to: w, sum: pairhash.New()}
}

func (s *summingWriter) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	s.sum.Write(p[:n])
	return n, err
}

// WriteBoth implements PairWriter.
func (s *summingWriter) WriteBoth(p []byte, other *pairhash.Digest, q []byte) (int, error) {
	n, err := s.to.Write(p)
	pairhash.WriteBoth(s.sum, p[:n], other, q)
	return n, err
}

// Checksum returns the SHA-256 of a file in hex. It reads the whole file in pieces of
// len(buffer) bytes, and fails when ctx ends.
func Checksum(ctx context.Context, o Object, buffer []byte) (string, error) {
	sum := sha256.New()
	content := untilEnd{ctx, io.NewSectionReader(o, 0, o.Size())} // hides WriteTo, which would use a small buffer
	_, err := io.CopyBuffer(sum, content, buffer)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// untilEnd is a reader that fails when its context has ended.
type untilEnd struct {
	ctx context.Context
	r   io.Reader
}

func (u untilEnd) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}
