package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/parquet-go/parquet-go"

	"entropipe/sparse/freeze"
)

// maxCalibration is the most of a calibration file that is read.
const maxCalibration = 1 << 30

// calibration is what a file holds: paragraphs of text, or sequences of ids.
type calibration struct {
	paragraphs []string
	sequences  [][]int32
}

// readCalibration reads at most most sequences, and all text. A .jsonl line is
// an object with a text or with input_ids, a Parquet file has such a column;
// everything else is text.
func readCalibration(path string, most int) (*calibration, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxCalibration {
		return nil, fmt.Errorf("%s: %d bytes, and a calibration takes at most %d", path, info.Size(), maxCalibration)
	}
	c := &calibration{}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".jsonl", ".ndjson":
		err = c.readLines(f, most)
	case ".parquet":
		err = c.readParquet(f, info.Size(), most)
	default:
		var text []byte
		if text, err = io.ReadAll(f); err == nil {
			c.paragraphs = strings.SplitAfter(string(text), "\n")
		}
	}
	if err == nil && len(c.paragraphs) == 0 && len(c.sequences) == 0 {
		err = errors.New("holds neither text nor sequences")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

func (c *calibration) readLines(r io.Reader, most int) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for number := 1; lines.Scan() && len(c.sequences) < most; number++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var row struct {
			Text *string `json:"text"`
			IDs  []int32 `json:"input_ids"`
		}
		err := json.Unmarshal(lines.Bytes(), &row)
		switch {
		case err != nil:
			return fmt.Errorf("line %d: %w", number, err)
		case (row.Text == nil) == (row.IDs == nil):
			return fmt.Errorf("line %d: want an object with text or with input_ids", number)
		case row.Text != nil:
			c.paragraphs = append(c.paragraphs, *row.Text+"\n")
		default:
			c.sequences = append(c.sequences, row.IDs)
		}
		if len(c.paragraphs) > 0 && len(c.sequences) > 0 {
			return fmt.Errorf("line %d: texts and sequences are mixed", number)
		}
	}
	return lines.Err()
}

// readParquet reads the column input_ids, or text, of any file that has it.
func (c *calibration) readParquet(r io.ReaderAt, size int64, most int) error {
	f, err := parquet.OpenFile(r, size)
	if err != nil {
		return err
	}
	leaf, ids := -1, false
	for i, path := range f.Schema().Columns() {
		if path[0] == "input_ids" || path[0] == "text" && leaf < 0 {
			leaf, ids = i, path[0] == "input_ids"
		}
	}
	if leaf < 0 {
		return errors.New("has neither a column input_ids nor text")
	}
	for _, group := range f.RowGroups() {
		if err := c.readColumn(group, leaf, ids, most); err != nil {
			return err
		}
	}
	return nil
}

func (c *calibration) readColumn(group parquet.RowGroup, leaf int, ids bool, most int) error {
	rows := group.Rows()
	defer rows.Close()
	buffer := make([]parquet.Row, 64)
	for len(c.sequences) < most {
		n, err := rows.ReadRows(buffer)
		for _, row := range buffer[:n] {
			var sequence []int32
			for _, v := range row {
				switch {
				case v.Column() != leaf || v.IsNull():
				case !ids && v.Kind() == parquet.ByteArray:
					c.paragraphs = append(c.paragraphs, string(v.ByteArray())+"\n")
				case ids && v.Kind() == parquet.Int32:
					sequence = append(sequence, v.Int32())
				case ids && v.Kind() == parquet.Int64:
					id := v.Int64()
					if int64(int32(id)) != id {
						return fmt.Errorf("an id of %d", id)
					}
					sequence = append(sequence, int32(id))
				default:
					return fmt.Errorf("a value of type %s", v.Kind())
				}
			}
			if len(sequence) > 0 && len(c.sequences) < most {
				c.sequences = append(c.sequences, sequence)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
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
