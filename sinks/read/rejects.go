package read

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/parquet-go/parquet-go"

	"entropipe/schemas/codec/parquetfile"
	"entropipe/sinks"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// RefusedMessage is a message of which an output has rejects: one row, or one for each of its
// frames or sequences that were refused.
type RefusedMessage struct {
	Topic     string
	TopicID   string // id of the topic when the message was read; empty: the brokers had none
	Partition int32
	Offset    int64
	Index     int32 // of the first row; -1: the whole message
	Accepted  bool  // other frames or sequences of the message have rows
	Stage     string
	Reason    string // of the first row
	TimeNs    int64  // event time, else Kafka's
	Committed time.Time

	Key       []byte
	Headers   string // JSON object
	ValueSize int64
	ValueSHA  string // hex; empty: the value was never read whole, or is null

	value func() ([]byte, error)
}

// Value returns what the row has of the value, its first 64 KiB; nil: the value is null. It
// opens the file anew.
func (m *RefusedMessage) Value() (value []byte, err error) { return m.value() }

// RefusedQuery selects refused messages.
type RefusedQuery struct {
	Reasons []string  // reasons of which a row must have one; empty: all
	Since   time.Time // commits before are left out
}

// Refused calls use for each refused message that matches, by topic, partition and offset, and
// ends with its error. Cost: all manifests are opened; of files with rejects all columns but the
// value are read. Memory: a row group of rejects, and the keys of one commit's rows.
func Refused(ctx context.Context, store sinks.Reader, q RefusedQuery, use func(*RefusedMessage) error) error {
	return eachRefusing(ctx, store, q, func(m *record.Manifest) error {
		return (&refusals{ctx: ctx, store: store, manifest: m, query: q, use: use}).read()
	})
}

// CountRefused returns the number of rows in table rejects of commits that q does not leave out,
// whatever their reasons, and the time of the first such commit; zero: there is none. Cost: all
// manifests are opened.
func CountRefused(ctx context.Context, store sinks.Reader, q RefusedQuery) (rows int64, first time.Time, err error) {
	err = eachRefusing(ctx, store, q, func(m *record.Manifest) error {
		rows += m.Counts.Rejects
		if first.IsZero() || m.Created.Before(first) {
			first = m.Created
		}
		return nil
	})
	return rows, first, err
}

// eachRefusing gives use the manifests with rejects that q does not leave out.
func eachRefusing(ctx context.Context, store sinks.Reader, q RefusedQuery, use func(*record.Manifest) error) error {
	topics, err := listTopics(ctx, store, func(string) {})
	if err != nil {
		return err
	}
	for _, t := range topics {
		for _, p := range t.partitions {
			for _, name := range p.manifests {
				m, err := sinks.ReadManifest(ctx, store, name)
				if err == nil && m.Counts.Rejects > 0 && !m.Created.Before(q.Since) {
					err = use(m)
				}
				if err == nil {
					err = ctx.Err()
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// refusals reads the rejects of one commit.
type refusals struct {
	ctx      context.Context
	store    sinks.Reader
	manifest *record.Manifest
	query    RefusedQuery
	use      func(*RefusedMessage) error
	accepted map[int64]bool  // offsets with rows in frames or tokens; nil: not read yet
	last     *RefusedMessage // the rows of a message may go on in the next row group or file
	used     bool            // last was given to use
	failed   error           // of use
	values   rejectValues
}

func (r *refusals) read() error {
	for i := range r.manifest.Files {
		f := &r.manifest.Files[i]
		if f.Table != tables.Rejects {
			continue
		}
		err := withParquet(r.ctx, r.store, f, func(file *parquetfile.File) error {
			for g := range file.RowGroups() {
				if err := r.group(f, file, g); err != nil || r.failed != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || r.failed != nil {
			return orFirst(r.failed, orRetired(r.ctx, r.store, r.manifest, err))
		}
	}
	return nil
}

func orFirst(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// refusedRow is a row without what only the first of a message has.
type refusedRow struct {
	offset, time, size         int64
	index                      int32
	stage, reason, headers, of string
	key                        []byte
}

// group gives the messages of a row group to use.
func (r *refusals) group(f *record.File, file *parquetfile.File, g int) error {
	n := file.GroupRows(g)
	if n > math.MaxInt32 {
		return fmt.Errorf("a row group of %d rejects", n)
	}
	var rows []refusedRow
	cols := frameRows{file: file, group: g, to: n}
	i := 0
	each := func(column string, put func(row *refusedRow, v parquet.Value)) {
		i = 0
		cols.each(column, func(v parquet.Value) {
			if i < len(rows) {
				put(&rows[i], v)
			}
			i++
		})
	}
	cols.each("offset", func(v parquet.Value) { rows = append(rows, refusedRow{offset: v.Int64()}) })
	each("index", func(row *refusedRow, v parquet.Value) { row.index = v.Int32() })
	each("ts_ns", func(row *refusedRow, v parquet.Value) { row.time = v.Int64() })
	each("stage", func(row *refusedRow, v parquet.Value) { row.stage = string(v.ByteArray()) })
	each("reason", func(row *refusedRow, v parquet.Value) { row.reason = string(v.ByteArray()) })
	each("headers", func(row *refusedRow, v parquet.Value) { row.headers = string(v.ByteArray()) })
	each("key", func(row *refusedRow, v parquet.Value) {
		if !v.IsNull() {
			row.key = append([]byte{}, v.ByteArray()...)
		}
	})
	each("value_size", func(row *refusedRow, v parquet.Value) { row.size = v.Int64() })
	each("value_sha256", func(row *refusedRow, v parquet.Value) {
		if !v.IsNull() {
			row.of = string(v.ByteArray())
		}
	})
	if cols.err != nil {
		return cols.err
	}
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && rows[to].offset == rows[from].offset {
			to++
		}
		if err := r.message(f, g, from, rows[from:to]); err != nil || r.failed != nil {
			return err
		}
		from = to
	}
	return nil
}

// message gives one message to use, if it matches and was not given before.
func (r *refusals) message(f *record.File, g, at int, rows []refusedRow) error {
	first, m := &rows[0], r.manifest
	if r.last == nil || r.last.Offset != first.offset {
		r.used = false
		r.last = &RefusedMessage{Topic: m.Topic, TopicID: m.TopicID, Partition: m.Partition, Offset: first.offset,
			Index: first.index, Stage: first.stage, Reason: first.reason, TimeNs: first.time,
			Committed: m.Created, Key: first.key, Headers: first.headers, ValueSize: first.size, ValueSHA: first.of,
			value: func() ([]byte, error) { return r.values.of(r.ctx, r.store, f, g, int64(at)) }}
	}
	if r.used || len(r.query.Reasons) > 0 && !slices.ContainsFunc(rows, func(row refusedRow) bool {
		return slices.Contains(r.query.Reasons, row.reason)
	}) {
		return nil
	}
	if r.last.Index >= 0 {
		if err := r.readAccepted(); err != nil {
			return err
		}
		r.last.Accepted = r.accepted[first.offset]
	}
	r.used = true
	r.failed = r.use(r.last)
	return nil
}

// rejectValues keeps the values of a few rows that follow each other: opening a file for each
// takes longer than all else. Any goroutine may call its method.
type rejectValues struct {
	mu     sync.Mutex
	file   *record.File
	group  int
	from   int64 // row of the first value
	values [][]byte
}

// valuesAtOnce bounds the rows whose values are kept, each at most schemas.MaxRejectValue bytes.
const valuesAtOnce = 64

// of returns column value of one row; nil: it is null.
func (v *rejectValues) of(ctx context.Context, store sinks.Reader, f *record.File, group int, row int64) ([]byte,
	error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.file != f || v.group != group || row < v.from || row >= v.from+int64(len(v.values)) {
		v.file, v.group, v.from, v.values = f, group, row, nil
		err := withParquet(ctx, store, f, func(file *parquetfile.File) error {
			rows := frameRows{file: file, group: group, from: row, to: min(row+valuesAtOnce, file.GroupRows(group))}
			rows.each("value", func(value parquet.Value) {
				if value.IsNull() {
					v.values = append(v.values, nil)
				} else {
					v.values = append(v.values, append([]byte{}, value.ByteArray()...))
				}
			})
			return rows.err
		})
		if err != nil {
			v.values = nil
			return nil, err
		}
	}
	return v.values[row-v.from], nil
}

// readAccepted reads the offsets of the commit's frames and sequences.
func (r *refusals) readAccepted() error {
	if r.accepted != nil {
		return nil
	}
	r.accepted = map[int64]bool{}
	for i := range r.manifest.Files {
		f := &r.manifest.Files[i]
		if f.Table != tables.Frames && f.Table != tables.Tokens {
			continue
		}
		err := withParquet(r.ctx, r.store, f, func(file *parquetfile.File) error {
			for g := range file.RowGroups() {
				if err := readColumn(file, g, "offset", func(_ int, v parquet.Value) {
					r.accepted[v.Int64()] = true
				}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
