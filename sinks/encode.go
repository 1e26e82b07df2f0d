package sinks

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"slices"

	"entropipe/schemas"
)

// encoder turns batches into files, one file at a time. It keeps the writers
// of the tables it has met, whose buffers are what takes the memory.
type encoder struct {
	cfg     *Config
	writers map[*table]*tableWriter
}

func newEncoder(cfg *Config) *encoder {
	return &encoder{cfg: cfg, writers: map[*table]*tableWriter{}}
}

// filePlan is one file of a commit.
type filePlan struct {
	table *table
	path  string
	key   folderKey
	rows  []int32 // indices of the batch's results that stand in the file
}

// plan says which files a batch, or part number part of one, becomes: for every
// table one a folder, if it has rows there. The rejects come last.
func (o *Output) plan(b *schemas.Batch, part int) []filePlan {
	var files []filePlan
	groups := o.group(b.Results)
	for _, t := range o.tables {
		for _, g := range groups {
			f := filePlan{table: t, key: g.key, rows: rowsWith(t, b.Results, g.rows)}
			if t == pointsTable && slices.ContainsFunc(f.rows, func(i int32) bool { return b.Results[i].Points.X64 != nil }) {
				f.table = pointsTableWide
			}
			if len(f.rows) > 0 {
				f.path = o.dataFile(t, g.key, b, part)
				files = append(files, f)
			}
		}
	}
	if len(b.Rejects) > 0 {
		files = append(files, filePlan{table: rejectsTable, path: o.dataFile(rejectsTable, folderKey{}, b, part)})
	}
	return files
}

// rowsWith returns those of rows that have something for table t. It copies
// only if some have not.
func rowsWith(t *table, results []schemas.Result, rows []int32) []int32 {
	lacks := func(i int32) bool { return !t.has(&results[i]) }
	if !slices.ContainsFunc(rows, lacks) {
		return rows
	}
	return slices.DeleteFunc(slices.Clone(rows), lacks)
}

// resultGroup is the results that share a folder, in their order.
type resultGroup struct {
	key  folderKey
	rows []int32
}

// group splits results by folder, in order of first appearance.
func (o *Output) group(results []schemas.Result) []*resultGroup {
	var groups []*resultGroup
	byKey := map[folderKey]*resultGroup{}
	var last *resultGroup
	for i := range results {
		if key := o.keyOf(&results[i]); last == nil || last.key != key {
			if last = byKey[key]; last == nil {
				last = &resultGroup{key: key}
				byKey[key] = last
				groups = append(groups, last)
			}
		}
		last.rows = append(last.rows, int32(i))
	}
	return groups
}

// encode writes one file.
func (e *encoder) encode(out io.Writer, f *filePlan, b *schemas.Batch) (rows int64, err error) {
	t := e.writers[f.table]
	if t == nil {
		noSequence := f.table != rejectsTable && slices.Contains(e.cfg.PartitionBy, bySequence)
		t = newTableWriter(f.table, e.cfg, noSequence)
		e.writers[f.table] = t
	}
	t.reset(out)
	for _, i := range f.rows {
		f.table.add(t, &b.Results[i])
	}
	if f.table == rejectsTable {
		for i := range b.Rejects {
			addReject(t, &b.Rejects[i])
		}
	}
	if rows, err = t.finish(e.footer(t, f, b)); err != nil {
		delete(e.writers, f.table) // its state is anyone's guess
	}
	return rows, err
}

// footer returns the file's own key-value metadata.
func (e *encoder) footer(t *tableWriter, f *filePlan, b *schemas.Batch) [][2]string {
	kv := [][2]string{
		{"entropipe.topic", validText(b.Topic)},
		{"entropipe.partition", fmt.Sprint(b.Partition)},
		{"entropipe.offsets", fmt.Sprintf("%d-%d", b.Start, b.End)},
	}
	if f.table != rejectsTable {
		for _, by := range e.cfg.PartitionBy {
			value := map[string]string{byDataset: f.key.dataset, bySequence: f.key.sequence, byDate: f.key.date}[by]
			kv = append(kv, [2]string{"entropipe." + by, validText(value)})
		}
	}
	switch f.table {
	case hullsTable:
		kv = append(kv, [2]string{"geo", t.geo.metadata()})
	case tokensTable:
		kv = append(kv, t.embeddings.footer()...)
	}
	return kv
}

// summingWriter counts and hashes what is written.
type summingWriter struct {
	io.Writer
	hash  hash.Hash
	bytes int64
}

func newSummingWriter(w io.Writer) *summingWriter {
	return &summingWriter{Writer: w, hash: sha256.New()}
}

func (s *summingWriter) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	s.hash.Write(p[:n])
	s.bytes += int64(n)
	return n, err
}

func (s *summingWriter) sum() string { return hex.EncodeToString(s.hash.Sum(nil)) }
