package parquetfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/format"
)

// runSlack is the number of values that runs may have beyond those of a page: bit-packed
// values come in groups of eight, and some writers pad the last run.
const runSlack = 512

// checkBody compares the lengths inside an unpacked page with the number of its values,
// because the library's decoders reserve memory by these lengths.
func (s *stream) checkBody(h *format.PageHeader, body []byte) error {
	switch h.Type {
	case format.DictionaryPage:
		return s.checkDictionary(&h.DictionaryPageHeader.V, body)
	case format.DataPageV2:
		v := &h.DataPageHeaderV2.V
		n, repetition, definition := int(v.NumValues), int(v.RepetitionLevelsByteLength),
			int(v.DefinitionLevelsByteLength)
		if err := s.checkLevels(body[:repetition], s.leaf.MaxRepetitionLevel(), n); err != nil {
			return err
		}
		if err := s.checkLevels(body[repetition:repetition+definition], s.leaf.MaxDefinitionLevel(), n); err != nil {
			return err
		}
		return s.checkValues(v.Encoding, n-int(v.NumNulls), body[repetition+definition:])
	}
	v := &h.DataPageHeader.V
	n := int(v.NumValues)
	for _, level := range []struct {
		most     int
		encoding format.Encoding
	}{{s.leaf.MaxRepetitionLevel(), v.RepetitionLevelEncoding},
		{s.leaf.MaxDefinitionLevel(), v.DefinitionLevelEncoding}} {
		if level.most == 0 {
			continue
		}
		if len(body) < 4 || uint64(binary.LittleEndian.Uint32(body)) > uint64(len(body)-4) {
			return errors.New("its levels are longer than the page")
		}
		end := 4 + int(binary.LittleEndian.Uint32(body))
		if level.encoding == format.RLE {
			if err := s.checkLevels(body[4:end], level.most, n); err != nil {
				return err
			}
		}
		body = body[end:]
	}
	return s.checkValues(v.Encoding, n, body)
}

func (s *stream) checkLevels(data []byte, most, n int) error {
	if len(data) == 0 || most == 0 {
		return nil
	}
	if err := checkRuns(data, bits.Len(uint(most)), n); err != nil {
		return fmt.Errorf("its levels: %w", err)
	}
	return nil
}

// checkRuns walks the RLE/bit-packed hybrid encoding. It accepts at most n values and
// runSlack values of padding.
func checkRuns(data []byte, width, n int) error {
	total := uint64(0)
	for at := 0; at < len(data); {
		head, k := binary.Uvarint(data[at:])
		if k <= 0 {
			return io.ErrUnexpectedEOF
		}
		at += k
		count := min(head>>1, 1<<32)
		switch {
		case count == 0: // no value follows, for the library
		case head&1 == 1:
			at += int(count) * width
			total += 8 * count
		default:
			at += (width + 7) / 8
			total += count
		}
		if total > uint64(n)+runSlack {
			return fmt.Errorf("its runs have more than %d values", n)
		}
	}
	return nil
}

// plainDictionary is the encoding that files of Parquet 1 name for a dictionary and for
// indices into it. Such files must be readable.
//
//lint:ignore SA1019 deprecated for writers
const plainDictionary = format.PlainDictionary

// checkDictionary compares the number of a dictionary's values with its bytes:
// dictionaries are plain, so every value has bytes of its own.
func (s *stream) checkDictionary(v *format.DictionaryPageHeader, body []byte) error {
	if v.Encoding != format.Plain && v.Encoding != plainDictionary {
		return fmt.Errorf("a dictionary cannot be encoded as %s", v.Encoding)
	}
	least := uint64(4) // bytes a value: the length before a text
	if width := fixedWidth(s.leaf); width > 0 {
		least = uint64(width)
	}
	if s.leaf.Type().Kind() == parquet.Boolean {
		return errors.New("a column of booleans cannot have a dictionary")
	}
	if uint64(v.NumValues)*least > uint64(len(body)) {
		return fmt.Errorf("it claims %d values in %d bytes", v.NumValues, len(body))
	}
	return nil
}

// fixedWidth returns the number of bytes of a value; 0 for texts and booleans.
func fixedWidth(c *parquet.Column) int {
	switch c.Type().Kind() {
	case parquet.Int32, parquet.Float:
		return 4
	case parquet.Int64, parquet.Double:
		return 8
	case parquet.Int96:
		return 12
	case parquet.FixedLenByteArray:
		return c.Type().Length()
	}
	return 0
}

// checkValues compares the lengths in the values of a data page with n, the largest
// number of values that are not null.
func (s *stream) checkValues(encoding format.Encoding, n int, data []byte) error {
	switch encoding {
	case plainDictionary, format.RLEDictionary:
		if len(data) == 0 {
			return nil
		}
		if data[0] > 32 {
			return fmt.Errorf("its indices have %d bits", data[0])
		}
		return checkRuns(data[1:], int(data[0]), n)
	case format.RLE:
		if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
			return io.ErrUnexpectedEOF
		}
		return checkRuns(data[4:4+binary.LittleEndian.Uint32(data)], 1, n)
	case format.DeltaBinaryPacked, format.DeltaLengthByteArray:
		_, err := deltaLength(data, n)
		return err
	case format.DeltaByteArray:
		return checkPrefixes(data, n)
	case format.ByteStreamSplit:
		if width := fixedWidth(s.leaf); int64(width)*int64(n) > MaxPageBytes {
			return fmt.Errorf("it claims %d values of %d bytes", n, width)
		}
	}
	return nil
}

// deltaLength returns the number of bytes of the delta-encoded integers at the beginning
// of data. More than n integers are an error.
func deltaLength(data []byte, n int) (int, error) {
	at := 0
	var head [4]uint64 // values a block, miniblocks a block, values, the first one
	for i := range head {
		v, k := binary.Uvarint(data[at:])
		if k <= 0 {
			return 0, io.ErrUnexpectedEOF
		}
		head[i] = v
		at += k
	}
	block, minis, total := head[0], head[1], head[2]
	switch {
	case total > uint64(n):
		return 0, fmt.Errorf("it claims %d integers of at most %d", total, n)
	case block == 0 || minis == 0 || block > 1<<20 || minis > block || block%minis != 0:
		return 0, fmt.Errorf("it claims blocks of %d integers in %d parts", block, minis)
	}
	each := block / minis
	for left := int64(total) - 1; left > 0; {
		_, k := binary.Uvarint(data[at:])
		if k <= 0 {
			return 0, io.ErrUnexpectedEOF
		}
		at += k
		if uint64(len(data)-at) < minis {
			return 0, io.ErrUnexpectedEOF
		}
		widths := data[at : at+int(minis)]
		at += int(minis)
		for _, width := range widths {
			if left <= 0 {
				break
			}
			if width > 64 {
				return 0, fmt.Errorf("it claims integers of %d bits", width)
			}
			at = min(at+int(each)*int(width)/8, len(data)) // writers may cut the last part
			left -= int64(each)
		}
	}
	return at, nil
}

// checkPrefixes checks texts in incremental encoding. It adds up the lengths of shared
// prefixes and suffixes, since a few bytes can claim any total.
func checkPrefixes(data []byte, n int) error {
	total := int64(0)
	for range 2 {
		end, err := deltaLength(data, n)
		if err != nil {
			return err
		}
		lengths, err := new(delta.BinaryPackedEncoding).DecodeInt32(nil, data)
		if err != nil {
			return err
		}
		for _, length := range lengths {
			if length < 0 {
				return errors.New("it claims a text of negative length")
			}
			total += int64(length)
		}
		data = data[end:]
	}
	if total > MaxPageBytes {
		return fmt.Errorf("its texts have %d bytes; at most %d are read", total, MaxPageBytes)
	}
	return nil
}
