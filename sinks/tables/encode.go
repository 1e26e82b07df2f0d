package tables

import (
	"fmt"
	"io"
	"runtime"
	"slices"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/record"
)

// Config selects the tables that an Encoder writes and their form. The zero value is
// usable.
type Config struct {
	PartitionBy []string // folder keys: dataset[,sequence][,date]; empty: dataset
	// Tables names the tables to write. Tables frames, tokens, attention_stats and rejects
	// are written in any case. nil: hulls, hulls3d, maxima, triangles.
	Tables []string
	// NullDegenerate writes a null geometry for hulls of fewer than three vertices.
	// Otherwise their geometry is a Point or a LineString.
	NullDegenerate bool
	Version, Build string // version of the program, in every footer's created_by
	RowGroupRows   int64  // largest number of rows in a row group of several frames; 0: 1 Mi
	RowGroupBytes  int64  // the same for bytes before encoding; 0: 64 MB
}

// Encoder writes the files of tables. It implements sinks.Encoder: its methods may be
// called from several goroutines.
type Encoder struct {
	cfg     Config
	tables  []*table     // tables of results, in the order in which files are written
	writers chan writers // pool, one entry for each file that may be encoded at once; nil: not made yet
}

// writers holds table writers for use by one goroutine at a time. They are kept from
// file to file, because their buffers take most of the memory.
type writers map[*table]*tableWriter

// New returns an encoder. It fails with a *sinks.ConfigError if a folder key or table is
// unknown, or folder keys are out of order.
func New(cfg Config) (*Encoder, error) {
	if len(cfg.PartitionBy) == 0 {
		cfg.PartitionBy = []string{record.ByDataset}
	}
	if cfg.Tables == nil {
		cfg.Tables = []string{Hulls, Hulls3D, Maxima, Triangles}
	}
	if cfg.RowGroupRows <= 0 {
		cfg.RowGroupRows = 1 << 20
	}
	if cfg.RowGroupBytes <= 0 {
		cfg.RowGroupBytes = 64e6
	}
	if err := record.CheckPartitionBy(cfg.PartitionBy); err != nil {
		return nil, &sinks.ConfigError{Field: "partition-by", Problem: err.Error()}
	}
	tables, err := selectTables(cfg.Tables)
	if err != nil {
		return nil, err
	}
	return newTables(cfg, tables), nil
}

func newTables(cfg Config, tables []*table) *Encoder {
	e := &Encoder{cfg: cfg, tables: tables, writers: make(chan writers, runtime.GOMAXPROCS(0))}
	for range cap(e.writers) {
		e.writers <- nil
	}
	return e
}

// Layout returns the version of the tables and the folder keys.
func (e *Encoder) Layout() sinks.Layout {
	return sinks.Layout{Schema: SchemaVersion, PartitionBy: e.cfg.PartitionBy}
}

// Plan returns the files of part number part of a batch: for every table one file in
// each folder where it has rows. The files of rejects and of messages are the last ones.
func (e *Encoder) Plan(b *schemas.Batch, part int) []sinks.File {
	var files []sinks.File
	groups := e.group(b.Results)
	for _, t := range e.tables {
		for _, g := range groups {
			if rows := rowsWith(t, b.Results, g.rows); len(rows) > 0 {
				files = append(files, sinks.File{Table: t.name, Path: e.dataFile(t, g.key, b, part), Rows: rows})
			}
		}
	}
	if len(b.Rejects) > 0 {
		files = append(files, sinks.File{Table: Rejects, Path: e.dataFile(rejectsTable, folderKey{}, b, part)})
	}
	if len(b.Originals) > 0 && slices.Contains(e.cfg.Tables, Messages) {
		files = append(files, sinks.File{Table: Messages, Path: e.dataFile(messagesTable, folderKey{}, b, part)})
	}
	return files
}

// rowsWith returns the elements of rows whose results have rows in table t. It copies
// only if it leaves some out.
func rowsWith(t *table, results []schemas.Result, rows []int32) []int32 {
	lacks := func(i int32) bool { return !t.has(&results[i]) }
	if !slices.ContainsFunc(rows, lacks) {
		return rows
	}
	return slices.DeleteFunc(slices.Clone(rows), lacks)
}

// resultGroup holds the indices of results that share a folder, ascending.
type resultGroup struct {
	key  folderKey
	rows []int32
}

// group splits results by folder. Groups are in the order of their first results.
func (e *Encoder) group(results []schemas.Result) []*resultGroup {
	var groups []*resultGroup
	byKey := map[folderKey]*resultGroup{}
	var last *resultGroup
	for i := range results {
		if key := e.keyOf(&results[i]); last == nil || last.key != key {
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

// tableOf returns the table of file f; nil: there is none. The coordinates of a file of
// points are float64 if any of its frames has float64.
func tableOf(f sinks.File, b *schemas.Batch) *table {
	i := slices.IndexFunc(allTables, func(t *table) bool { return t.name == f.Table })
	if i < 0 {
		return nil
	}
	if allTables[i] == pointsTable && slices.ContainsFunc(f.Rows,
		func(r int32) bool { return b.Results[r].Points.X64 != nil }) {
		return pointsTableWide
	}
	return allTables[i]
}

// Encode writes file f of Plan(b, part) to out and returns the number of its rows. At
// most GOMAXPROCS files are encoded at once; further calls wait. Memory: one row group
// for each file that is being encoded.
func (e *Encoder) Encode(out io.Writer, f sinks.File, b *schemas.Batch) (rows int64, err error) {
	t := tableOf(f, b)
	if t == nil {
		return 0, fmt.Errorf("there is no table %q", f.Table)
	}
	w := <-e.writers
	defer func() { e.writers <- w }()
	if w == nil {
		w = writers{}
	}
	return w.encode(out, e, t, f, b)
}

// encode writes one file of table t.
func (w writers) encode(out io.Writer, e *Encoder, t *table, f sinks.File, b *schemas.Batch) (rows int64, err error) {
	tw := w[t]
	if tw == nil {
		tw = newTableWriter(t, &e.cfg)
		w[t] = tw
	}
	tw.reset(out)
	for _, i := range f.Rows {
		t.add(tw, &b.Results[i])
	}
	switch t {
	case rejectsTable:
		for i := range b.Rejects {
			addReject(tw, &b.Rejects[i])
		}
	case messagesTable:
		for i := range b.Originals {
			addMessage(tw, &b.Originals[i])
		}
	}
	if rows, err = tw.finish(e.footer(tw, t, f, b)); err != nil {
		delete(w, t) // the error leaves the table writer in an unknown state
	}
	return rows, err
}

// footer returns the key-value metadata of file f, apart from the pairs that all files of
// the table share.
func (e *Encoder) footer(tw *tableWriter, t *table, f sinks.File, b *schemas.Batch) [][2]string {
	kv := [][2]string{
		{"entropipe.topic", validText(b.Topic)},
		{"entropipe.partition", fmt.Sprint(b.Partition)},
		{offsetsKey, fmt.Sprintf("%d-%d", b.Start, b.End)},
	}
	if !t.ofRecords() {
		key := e.keyOf(&b.Results[f.Rows[0]])
		for _, by := range e.cfg.PartitionBy {
			kv = append(kv, [2]string{"entropipe." + by, validText(key.value(by))})
		}
	}
	switch t {
	case hullsTable:
		kv = append(kv, [2]string{"geo", tw.geo.metadata()})
	case tokensTable:
		kv = append(kv, tw.embeddings.footer()...)
	}
	return kv
}
