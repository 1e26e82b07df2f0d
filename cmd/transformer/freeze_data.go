package transformer

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"entropipe/cmd/command"
	"entropipe/ingest/replay"
	"entropipe/models/plainfile"
	"entropipe/sparse/freeze"
)

// maxCalibration is the most of a calibration file that is read.
const maxCalibration = 1 << 30

// calibration is what a file holds: paragraphs of text, or sequences of ids.
type calibration struct {
	paragraphs []string
	sequences  [][]int32
}

// readCalibration reads at most most sequences, and all text. Rows of .jsonl and
// .parquet are those of produce tokens, also what it does with masks of padding;
// rows of Parquet that cannot be used are passed over. Everything else is text.
func readCalibration(path string, most int) (*calibration, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxCalibration {
		return nil, tooMuchCalibration(path)
	}
	c := &calibration{}
	switch strings.ToLower(filepath.Ext(strings.TrimSuffix(path, ".gz"))) {
	case ".jsonl", ".ndjson", ".parquet":
		err = c.readRows(path, most)
	default:
		err = c.readText(path)
	}
	if err == nil && len(c.paragraphs) == 0 && len(c.sequences) == 0 {
		err = fmt.Errorf("%s: holds neither text nor sequences", path)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

func tooMuchCalibration(path string) error {
	return fmt.Errorf("%s: more than %s, and a calibration takes no more", path, command.ByteSize(maxCalibration))
}

// readRows reads rows of text, or rows of ids.
func (c *calibration) readRows(path string, most int) error {
	src, err := replay.Tokens{Files: []string{path}, SkipBad: strings.EqualFold(filepath.Ext(path), ".parquet")}.Open()
	if err != nil {
		return err
	}
	defer src.Close()
	var it replay.Item
	for bytes := int64(0); len(c.sequences) < most; {
		err := src.Next(&it)
		var bad *replay.BadInputError
		switch {
		case err == io.EOF:
			return nil
		case errors.As(err, &bad):
			return bad // without the wrapper, which names a flag of produce
		case err != nil:
			return err
		}
		for i := range it.Sequences {
			switch s := &it.Sequences[i]; {
			case s.IsText:
				c.paragraphs = append(c.paragraphs, s.Text+"\n")
			case len(c.sequences) < most:
				c.sequences = append(c.sequences, slices.Clone(s.IDs))
			}
			bytes += int64(len(it.Sequences[i].Text) + 4*len(it.Sequences[i].IDs))
		}
		if len(c.paragraphs) > 0 && len(c.sequences) > 0 {
			return fmt.Errorf("%s: texts and sequences are mixed", path)
		}
		if bytes > maxCalibration { // they may have been compressed
			return tooMuchCalibration(path)
		}
	}
	return nil
}

// readText reads lines with their ends. A byte order mark is no text, and bytes
// that are not UTF-8 would be calibrated on without a word.
func (c *calibration) readText(path string) error {
	f, err := plainfile.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := io.Reader(f)
	if strings.EqualFold(filepath.Ext(path), ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	text, err := io.ReadAll(io.LimitReader(r, maxCalibration+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case len(text) > maxCalibration:
		return tooMuchCalibration(path)
	case !utf8.Valid(text):
		return fmt.Errorf("%s: is not text in UTF-8", path)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if len(text) > 0 {
		c.paragraphs = strings.SplitAfter(string(text), "\n")
	}
	return nil
}

// cutText cuts the text for every bucket, and shuffles nothing: the last pieces
// judge, of each bucket as many as of the others.
func cutText(e freeze.Encoder, paragraphs []string, buckets []int, count int) [][]int32 {
	var all [][][]int32
	for _, length := range buckets {
		all = append(all, freeze.Pieces(e, func(yield func(string) bool) {
			for _, p := range paragraphs {
				if !yield(p) {
					return
				}
			}
		}, length, count))
	}
	var inputs [][]int32
	for i := range count {
		for _, pieces := range all {
			if i < len(pieces) {
				inputs = append(inputs, pieces[i])
			}
		}
	}
	return inputs
}
