// Package pairhash computes two SHA-256 in the time of one.
//
// A file that is copied has two checksums: that of its source, which is compared, and that of
// its copy, which is recorded. One SHA-256 cannot keep a core busy, since each round waits for
// the one before it. Where the CPU has the SHA extensions, WriteBoth alternates the rounds of two
// messages. Elsewhere, and for all else that a SHA-256 needs, it is crypto/sha256.
package pairhash

import (
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

//go:generate go run -C gen . -out ../blocks_amd64.s -stubs ../blocks_amd64.go -pkg pairhash

// Digest is a SHA-256 that is being computed. New makes one. One goroutine may use it.
type Digest struct {
	hash  hash.Hash
	bytes int64
	state []byte // hash, encoded; memory that is used again
}

// New returns the digest of the empty message.
func New() *Digest { return &Digest{hash: sha256.New()} }

// Write adds p to the message. It never fails.
func (d *Digest) Write(p []byte) (int, error) {
	d.bytes += int64(len(p))
	return d.hash.Write(p)
}

// Bytes returns the length of the message.
func (d *Digest) Bytes() int64 { return d.bytes }

// Hex returns the SHA-256 of the message in hex. The message may go on.
func (d *Digest) Hex() string { return hex.EncodeToString(d.hash.Sum(nil)) }

// Reset makes the message empty.
func (d *Digest) Reset() {
	d.hash.Reset()
	d.bytes = 0
}

// blockBytes is the size of a block of SHA-256.
const blockBytes = 64

// worthwhile is the number of bytes from which on moving two states costs less than it saves.
const worthwhile = 16 * blockBytes

// paired tells whether blocksSHANI is used.
var paired = hasSHA() && agrees()

// Paired tells whether WriteBoth takes two messages at once.
func Paired() bool { return paired }

// Single makes WriteBoth take one message after the other until restore is called. It is for tests
// and benchmarks; no digest may be in use in another goroutine.
func Single() (restore func()) {
	was := paired
	paired = false
	return func() { paired = was }
}

// WriteBoth adds p to the message of a and q to that of b, which is another digest. Cost: that
// of the longer one, where the CPU has the SHA extensions; elsewhere that of both.
func WriteBoth(a *Digest, p []byte, b *Digest, q []byte) {
	if paired && min(len(p), len(q)) >= worthwhile {
		p, q = a.align(p), b.align(q)
		n := min(len(p), len(q)) / blockBytes
		h, g := a.export(), b.export()
		blocksSHANI(&h, &p[0], &g, &q[0], n)
		a.adopt(h, n)
		b.adopt(g, n)
		p, q = p[n*blockBytes:], q[n*blockBytes:]
	}
	a.Write(p)
	b.Write(q)
}

// align adds bytes of p until the message has whole blocks, and returns the others. p is at least
// as long as a block.
func (d *Digest) align(p []byte) []byte {
	n := -d.bytes & (blockBytes - 1)
	d.Write(p[:n])
	return p[n:]
}

// An encoded state of crypto/sha256 has a name, the words of the state, the bytes that are no
// whole block yet, and the length of the message. agrees fails if that has changed.
const (
	stateName  = "sha\x03"
	lengthAt   = len(stateName) + sha256.Size + blockBytes
	stateBytes = lengthAt + 8
)

// export returns the state of a message that has whole blocks.
func (d *Digest) export() (h [8]uint32) {
	d.state, _ = d.hash.(encoding.BinaryAppender).AppendBinary(d.state[:0]) // never fails
	for i := range h {
		h[i] = binary.BigEndian.Uint32(d.state[len(stateName)+4*i:])
	}
	return h
}

// adopt sets the state to that after so many more blocks.
func (d *Digest) adopt(h [8]uint32, blocks int) {
	d.bytes += int64(blocks) * blockBytes
	for i, word := range h {
		binary.BigEndian.PutUint32(d.state[len(stateName)+4*i:], word)
	}
	binary.BigEndian.PutUint64(d.state[lengthAt:], uint64(d.bytes))
	if err := d.hash.(encoding.BinaryUnmarshaler).UnmarshalBinary(d.state); err != nil {
		panic("pairhash: crypto/sha256 refuses its own state: " + err.Error())
	}
}

// agrees tells whether this package knows the encoded state of crypto/sha256, and computes what
// that does.
func agrees() bool {
	state, err := sha256.New().(encoding.BinaryAppender).AppendBinary(nil)
	if err != nil || len(state) != stateBytes || string(state[:len(stateName)]) != stateName {
		return false
	}
	message := make([]byte, 200)
	for i := range message {
		message[i] = byte(7 * i)
	}
	a, b := New(), New()
	a.Write(message[:blockBytes])
	h, g := a.export(), b.export()
	blocksSHANI(&h, &message[blockBytes], &g, &message[1], 2)
	a.adopt(h, 2)
	b.adopt(g, 2)
	a.Write(message[3*blockBytes:])
	b.Write(message[1+2*blockBytes:])
	sum := func(p []byte) string { s := sha256.Sum256(p); return hex.EncodeToString(s[:]) }
	return a.Hex() == sum(message) && b.Hex() == sum(message[1:])
}
