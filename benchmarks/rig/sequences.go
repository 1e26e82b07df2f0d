package rig

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"entropipe/schemas"
)

// Sequences is a stream of made-up token sequences: as long as the requests of
// a trace, clipped, and of words of small letters. Sequence i is the same in
// every run with the same seed.
type Sequences struct {
	Lengths []int // lengths of the sequences, repeated as often as needed
	Seed    uint64
	Pack    int // sequences of a message
}

// TraceLengths returns the lengths of the requests of all traces below the
// folder traces of the real data, clipped: ContextTokens of .csv files,
// input_length of .jsonl files.
func TraceLengths(clip int) ([]int, error) {
	dir, err := TestData("traces")
	if err != nil {
		return nil, err
	}
	var lengths []int
	for _, pattern := range []string{"*.csv", "*.jsonl"} {
		files, err := filepath.Glob(filepath.Join(dir, "*", pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range files {
			if lengths, err = appendTrace(lengths, path); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	if len(lengths) == 0 {
		return nil, fmt.Errorf("%s: no trace", dir)
	}
	for i, n := range lengths {
		lengths[i] = min(max(n, 1), clip)
	}
	return lengths, nil
}

func appendTrace(dst []int, path string) ([]int, error) {
	f, err := os.Open(path)
	if err != nil {
		return dst, err
	}
	defer f.Close()
	if filepath.Ext(path) == ".jsonl" {
		return appendRequests(dst, json.NewDecoder(bufio.NewReader(f)))
	}
	rows := csv.NewReader(f)
	head, err := rows.Read()
	if err != nil {
		return dst, err
	}
	column := -1
	for i, name := range head {
		if name == "ContextTokens" {
			column = i
		}
	}
	if column < 0 {
		return dst, errors.New("no column ContextTokens")
	}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
		n, err := strconv.Atoi(row[column])
		if err != nil {
			return dst, err
		}
		dst = append(dst, n)
	}
}

func appendRequests(dst []int, d *json.Decoder) ([]int, error) {
	for {
		var r struct {
			Length int `json:"input_length"`
		}
		if err := d.Decode(&r); errors.Is(err, io.EOF) {
			return dst, nil
		} else if err != nil {
			return dst, err
		}
		dst = append(dst, r.Length)
	}
}

// ID names sequence i.
func (s *Sequences) ID(i int64) string { return fmt.Sprintf("s-%08d", i) }

// IDs returns sequence i, as ids of a model of bytes.
func (s *Sequences) IDs(dst []int32, i int64) []int32 {
	rng := rand.New(rand.NewPCG(s.Seed, uint64(i)))
	for range s.Lengths[i%int64(len(s.Lengths))] {
		c := int32('a' + rng.IntN(26))
		if rng.IntN(6) == 0 {
			c = ' '
		}
		dst = append(dst, c)
	}
	return dst
}

// Tokens returns how many tokens the first n sequences have.
func (s *Sequences) Tokens(n int64) (tokens int64) {
	for i := range n {
		tokens += int64(s.Lengths[i%int64(len(s.Lengths))])
	}
	return tokens
}

// Send writes the first n sequences to a topic as tokens/1, message by message
// over its partitions. It returns the number of messages.
func (s *Sequences) Send(ctx context.Context, c *Client, topic string, partitions int,
	n int64) (messages int64, err error) {
	const each = 16 // messages of a request
	var enc schemas.Encoder
	pending := make([][]kafka.Record, partitions)
	flush := func(p int) error {
		if len(pending[p]) == 0 {
			return nil
		}
		r, err := c.Produce(ctx, &kafka.ProduceRequest{Topic: topic, Partition: p, RequiredAcks: kafka.RequireAll,
			Records: kafka.NewRecordReader(pending[p]...)})
		if err == nil {
			err = r.Error
		}
		pending[p] = pending[p][:0]
		return err
	}
	for from := int64(0); from < n; from += int64(s.Pack) {
		p := int(messages % int64(partitions))
		record, err := s.record(&enc, from, min(from+int64(s.Pack), n))
		if err != nil {
			return messages, err
		}
		messages++
		if pending[p] = append(pending[p], record); len(pending[p]) == each {
			if err := flush(p); err != nil {
				return messages, err
			}
		}
	}
	for p := range pending {
		if err := flush(p); err != nil {
			return messages, err
		}
	}
	return messages, nil
}

// record makes the message of sequences from up to to.
func (s *Sequences) record(enc *schemas.Encoder, from, to int64) (kafka.Record, error) {
	rows := make([]schemas.Sequence, 0, to-from)
	for i := from; i < to; i++ {
		rows = append(rows, schemas.Sequence{ID: s.ID(i), IDs: s.IDs(nil, i)})
	}
	value, err := enc.AppendTokens(nil, rows, schemas.Vocabulary{})
	if err != nil {
		return kafka.Record{}, err
	}
	record := kafka.Record{Value: kafka.NewBytes(value)}
	key := schemas.FrameKey{Dataset: "traces", Sequence: "requests", FrameID: from, TimeNs: time.Now().UnixNano()}
	for _, h := range schemas.Headers(key, schemas.SchemaTokens, "/sequences") {
		record.Headers = append(record.Headers, kafka.Header{Key: h.Key, Value: h.Value})
	}
	return record, nil
}
