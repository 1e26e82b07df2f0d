// Package tfrecord reads the framing of TFRecord files.
//
// It does not know what the records hold, and it does not unpack files that were
// compressed as a whole.
//
//	record = length uint64 | masked CRC of the length uint32 | data | masked CRC of the data uint32
//
// All numbers are little-endian. The CRC is CRC-32C; Mask turns it by 15 bits and adds a
// constant, so that a CRC of data which contain CRCs stays useful.
package tfrecord

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"entropipe/schemas/codec"
)

const (
	headBytes = 12
	footBytes = 4
	// step is the number of bytes by which memory grows while a record arrives: a length
	// reserves no memory that the file does not fill.
	step = 1 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Mask returns the masked CRC-32C of data.
func Mask(data []byte) uint32 {
	c := crc32.Checksum(data, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// Append appends a record with both checksums to dst.
func Append(dst, data []byte) []byte {
	head := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	dst = append(dst, head...)
	dst = binary.LittleEndian.AppendUint32(dst, Mask(head))
	dst = append(dst, data...)
	return binary.LittleEndian.AppendUint32(dst, Mask(data))
}

// Is reports whether head begins a TFRecord file: the checksum of the first length is
// right. head needs 12 bytes.
func Is(head []byte) bool {
	return len(head) >= headBytes && binary.LittleEndian.Uint32(head[8:]) == Mask(head[:8])
}

// Reader reads one record after the other. It is for one goroutine.
type Reader struct {
	in     *bufio.Reader
	source io.Reader
	size   int64 // bytes of source, if it is a file; 0: unknown
	limit  int64
	number int64 // number of records begun
	start  int64 // offset of the current record
	next   int64 // offset of the next record
	end    bool  // no record can be found any more
	data   []byte
}

// NewReader returns a reader of r's records. A record of more than limit bytes is an
// error.
func NewReader(r io.Reader, limit int64) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, 64<<10), source: r, limit: limit, size: extent(r)}
}

// extent returns the number of bytes of a file that is at its begin; 0: it is none.
func extent(r io.Reader) int64 {
	f, ok := r.(io.Seeker)
	if !ok {
		return 0
	}
	if at, err := f.Seek(0, io.SeekCurrent); err != nil || at != 0 {
		return 0
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0
	}
	return size
}

// Number returns the number of the current record, from 0.
func (r *Reader) Number() int64 { return r.number - 1 }

// Offset returns the offset at which the current record begins.
func (r *Reader) Offset() int64 { return r.start }

// Next returns the data of the next record, valid until the next call. io.EOF: the file
// ends behind the last record. A *codec.Error names record and offset. After an error in
// the data, or a record that is too large, the next call returns the record behind it;
// after an error in the length, or a file that ends within a record, it returns io.EOF.
// Other errors are those of the reader.
func (r *Reader) Next() ([]byte, error) {
	length, err := r.begin()
	switch {
	case err != nil:
		return nil, err
	case length > r.limit:
		return nil, r.skip(length)
	}
	return r.read(int(length))
}

// Skip passes over the next record, whose data it does not read where the source is a file. The
// errors are those of Next, without those of the data.
func (r *Reader) Skip() error {
	length, err := r.begin()
	if err != nil {
		return err
	}
	if r.next > r.size || length+footBytes <= int64(r.in.Buffered()) {
		_, err := r.discard(length + footBytes)
		return err
	}
	if _, err := r.source.(io.Seeker).Seek(r.next, io.SeekStart); err != nil {
		r.end = true
		return err
	}
	r.in.Reset(r.source)
	return nil
}

// begin reads the length of the next record.
func (r *Reader) begin() (length int64, err error) {
	if r.end {
		return 0, io.EOF
	}
	r.number++
	r.start = r.next
	var head [headBytes]byte
	switch n, err := io.ReadFull(r.in, head[:]); {
	case err == io.EOF:
		r.end = true
		r.number--
		return 0, io.EOF
	case err == io.ErrUnexpectedEOF:
		return 0, r.cut(n)
	case err != nil:
		r.end = true
		return 0, err
	}
	if binary.LittleEndian.Uint32(head[8:]) != Mask(head[:8]) {
		r.end = true
		return 0, r.fault(codec.Corrupt,
			"the checksum of its length does not match: the records behind cannot be found")
	}
	claimed := binary.LittleEndian.Uint64(head[:])
	if claimed > 1<<62 {
		r.end = true
		return 0, r.fault(codec.TooLarge, "it claims %d bytes", claimed)
	}
	r.next += headBytes + int64(claimed) + footBytes
	return int64(claimed), nil
}

func (r *Reader) fault(reason, format string, args ...any) *codec.Error {
	return &codec.Error{Reason: reason, Detail: fmt.Sprintf("record %d: ", r.Number()) + fmt.Sprintf(format, args...),
		At: r.start}
}

// cut ends the file within a record of which n bytes are there.
func (r *Reader) cut(n int) *codec.Error {
	r.end = true
	return r.fault(codec.Truncated, "the file ends %d bytes behind the begin of the record", n)
}

// skip moves behind a record of length bytes that is too large.
func (r *Reader) skip(length int64) error {
	if cut, err := r.discard(length + footBytes); cut || err != nil {
		return err
	}
	return r.fault(codec.TooLarge, "it has %d bytes, more than the limit of %d", length, r.limit)
}

// discard reads over n bytes of the record. cut: the file ends within them, as err says.
func (r *Reader) discard(n int64) (cut bool, err error) {
	done, err := io.CopyN(io.Discard, r.in, n)
	switch {
	case errors.Is(err, io.EOF):
		return true, r.cut(headBytes + int(done))
	case err != nil:
		r.end = true
	}
	return false, err
}

// read returns the data of the record that begins.
func (r *Reader) read(length int) ([]byte, error) {
	r.data = r.data[:0]
	for want := length + footBytes; len(r.data) < want; {
		at := len(r.data)
		grown := min(want, max(at+step, 2*at))
		if cap(r.data) < grown {
			r.data = append(make([]byte, 0, grown), r.data...)
		}
		r.data = r.data[:min(want, cap(r.data))]
		n, err := io.ReadFull(r.in, r.data[at:])
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return nil, r.cut(headBytes + at + n)
		case err != nil:
			r.end = true
			return nil, err
		}
	}
	data := r.data[:length]
	if binary.LittleEndian.Uint32(r.data[length:]) != Mask(data) {
		return nil, r.fault(codec.Corrupt, "the checksum of its %d bytes does not match", length)
	}
	return data, nil
}
