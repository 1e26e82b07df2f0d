package read

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"entropipe/models/plainfile"
	"entropipe/schemas/codec/parquetfile"
	"entropipe/sinks"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// Summary describes an output by its manifests. Nothing is verified.
type Summary struct {
	Store       string             `json:"store"` // uuid of the output
	Format      int                `json:"format"`
	Schema      int                `json:"schema"`
	Created     time.Time          `json:"created"`
	PartitionBy []string           `json:"partition_by"`
	Compacts    string             `json:"compaction_of,omitempty"` // uuid of the output that it is a compaction of
	Partitions  []PartitionSummary `json:"partitions"`
	Plans       []PlanReport       `json:"plans,omitempty"`
	Tables      []TableReport      `json:"tables"`
	Adopted     []AdoptedReport    `json:"adopted,omitempty"`
	Commit      *CommitCosts       `json:"commit,omitempty"` // nil: the store charges for nothing
	// Configurations are the contents with which rows were made, in the order of the
	// first manifests that have them, by topic and partition.
	Configurations []Configuration `json:"configurations,omitempty"`
	// smallest event time of a frame or sequence; nil: there is none
	First *time.Time `json:"first,omitempty"`
	Last  *time.Time `json:"last,omitempty"`
}

// PartitionSummary sums up the manifests of one partition.
type PartitionSummary struct {
	PartitionReport
	LastCommit time.Time `json:"last_commit"`
}

// readIdentity reads store.json. sinks.ErrNotFound: the store has no output.
func readIdentity(ctx context.Context, store sinks.Reader) ([]byte, error) {
	data, err := sinks.ReadRecord(ctx, store, record.StoreFile)
	if errors.Is(err, sinks.ErrNotFound) {
		err = fmt.Errorf("this is not an output: %w", err)
	}
	return data, err
}

// Identify reads store.json. The Summary has Store, Format, Schema, Created and
// PartitionBy; its lists are empty. sinks.ErrNotFound: the store has no output. Cost: one
// small file.
func Identify(ctx context.Context, store sinks.Reader) (*Summary, error) {
	data, err := readIdentity(ctx, store)
	if err != nil {
		return nil, err
	}
	identity, err := record.ParseStore(data)
	if err != nil {
		return nil, err
	}
	return &Summary{Store: identity.UUID, Format: identity.Format, Schema: identity.Schema, Created: identity.Created,
		PartitionBy: identity.PartitionBy, Compacts: identity.CompactionOf,
		Partitions: []PartitionSummary{}, Tables: []TableReport{}}, nil
}

// Describe summarises an output. Cost: it reads all manifests, and for the event times
// the footers of all files of tables frames and tokens.
func Describe(ctx context.Context, store sinks.Reader) (*Summary, error) {
	s, err := Identify(ctx, store)
	if err != nil {
		return nil, err
	}
	d := describer{store: store, Summary: s}
	topics, err := listTopics(ctx, store, func(string) {})
	if err != nil {
		return nil, err
	}
	for _, t := range topics {
		before := len(d.Partitions)
		for _, p := range t.partitions {
			if err := d.partition(ctx, p.manifests); err != nil {
				return nil, err
			}
		}
		if err := d.plan(ctx, t, d.Partitions[before:]); err != nil {
			return nil, err
		}
	}
	d.readContents(ctx)
	if c, ok := store.(charging); ok {
		d.Commit = newCommitCosts(c, d.charge, d.commits)
	}
	slices.SortFunc(d.Partitions, comparePartitions)
	slices.SortFunc(d.Tables, compareTables)
	return d.Summary, nil
}

// WrittenTables returns the names of the tables that have a published file, in the order
// of tables.Names. Cost: each table's folder is listed up to its first file.
func WrittenTables(ctx context.Context, store sinks.Reader) ([]string, error) {
	var written []string
	for _, table := range tables.Names() {
		err := store.List(ctx, table, func(e sinks.Entry) error {
			if strings.HasSuffix(e.Name, ".parquet") {
				return errFound
			}
			return nil
		})
		if errors.Is(err, errFound) {
			written, err = append(written, table), nil
		}
		if err != nil {
			return nil, err
		}
	}
	return written, nil
}

// errFound ends a listing.
var errFound = errors.New("found")

type describer struct {
	store sinks.Reader
	*Summary
	charge  sinks.Charge // all commits
	commits int64
}

// partition adds up the manifests of one partition.
func (d *describer) partition(ctx context.Context, names []string) error {
	var sum PartitionSummary
	for i, name := range names {
		m, err := sinks.ReadManifest(ctx, d.store, name)
		if err != nil {
			return err
		}
		if i == 0 {
			sum.PartitionReport = PartitionReport{Topic: m.Topic, Partition: m.Partition, Base: m.Start}
		}
		sum.add(m)
		sum.LastCommit = m.Created
		d.configuration(m)
		addAdopted(&d.Adopted, m)
		d.commits++
		if c, ok := d.store.(charging); ok {
			d.charge.Add(c.Charge(m.Files))
		}
		for i := range m.Files {
			addFile(&d.Tables, &m.Files[i])
			if t := m.Files[i].Table; t == tables.Frames || t == tables.Tokens {
				d.times(ctx, &m.Files[i])
			}
		}
	}
	d.Partitions = append(d.Partitions, sum)
	return nil
}

// times widens the range of event times by that of a file. Files that are not published
// or cannot be read are left out.
func (d *describer) times(ctx context.Context, f *record.File) {
	o, err := d.store.Open(ctx, f.Path)
	if err != nil {
		return
	}
	defer o.Close()
	file, err := parquetfile.Open(o, o.Size())
	if err != nil {
		return
	}
	if low, high, ok := columnRange(file, "ts_ns"); ok {
		first, last := time.Unix(0, low).UTC(), time.Unix(0, high).UTC()
		if d.First == nil || first.Before(*d.First) {
			d.First = &first
		}
		if d.Last == nil || last.After(*d.Last) {
			d.Last = &last
		}
	}
}

// String returns the summary as text, a line for each partition, configuration and table.
func (s *Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "output %s, format %d, made %s, folders by %s\n", s.Store, s.Format, s.Created.Format(time.RFC3339),
		strings.Join(s.PartitionBy, ", "))
	writeCompaction(&b, s.Compacts)
	for _, p := range s.Partitions {
		if hidden(s.Plans, p.Topic) {
			continue
		}
		fmt.Fprintf(&b, "%s/%d: offsets %d to %d in %d commits: %s, %d gaps; last commit %s\n",
			p.Topic, p.Partition, p.Base, p.End, p.Manifests, countsText(&p.Counts), len(p.Gaps),
			p.LastCommit.Format(time.RFC3339))
	}
	writePlans(&b, s.Plans)
	s.writeConfigurations(&b)
	for _, t := range s.Tables {
		fmt.Fprintf(&b, "%-10s %d files, %d rows, %d bytes\n", t.Table, t.Files, t.Rows, t.Bytes)
	}
	writeAdopted(&b, s.Adopted)
	if s.Commit != nil {
		s.Commit.write(&b)
	}
	if s.First != nil {
		fmt.Fprintf(&b, "%s from %s to %s\n", s.kinds(), s.First.Format(time.RFC3339Nano),
			s.Last.Format(time.RFC3339Nano))
	}
	return b.String()
}

// kinds returns "frames", "sequences" or both: the rows that have event times.
func (s *Summary) kinds() string {
	names := []string{}
	for _, k := range [][2]string{{tables.Frames, "frames"}, {tables.Tokens, "sequences"}} {
		if slices.ContainsFunc(s.Tables, func(t TableReport) bool { return t.Table == k[0] }) {
			names = append(names, k[1])
		}
	}
	return strings.Join(names, " and ")
}

// FileSummary describes a Parquet file by its footer.
type FileSummary struct {
	Path      string            `json:"path"`
	Bytes     int64             `json:"bytes"`
	Rows      int64             `json:"rows"`
	RowGroups int               `json:"row_groups"`
	CreatedBy string            `json:"created_by"`
	Columns   []ColumnSummary   `json:"columns"`
	Metadata  map[string]string `json:"metadata"` // key-value pairs of the footer
}

// ColumnSummary is one leaf column of a file.
type ColumnSummary struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Encoding   string `json:"encoding"` // encodings of the first row group's pages
	Codec      string `json:"codec"`
	Compressed int64  `json:"compressed_bytes"`
	Plain      int64  `json:"uncompressed_bytes"`
}

// DescribeFile reads the footer of any Parquet file. name must be a regular file.
func DescribeFile(name string) (*FileSummary, error) {
	o, err := plainfile.Open(name)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	info, err := o.Stat()
	if err != nil {
		return nil, err
	}
	f, err := parquetfile.Open(o, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s := &FileSummary{Path: name, Bytes: info.Size(), Metadata: map[string]string{}, Columns: []ColumnSummary{}}
	return s, parquetfile.Guard(func() error { s.fill(f); return nil })
}

func (s *FileSummary) fill(f *parquetfile.File) {
	m := f.Metadata()
	s.Rows, s.RowGroups, s.CreatedBy = f.NumRows(), len(m.RowGroups), m.CreatedBy
	for _, kv := range m.KeyValueMetadata {
		s.Metadata[kv.Key] = kv.Value
	}
	for i, path := range f.Schema().Columns() {
		leaf, _ := f.Schema().Lookup(path...)
		c := ColumnSummary{Name: strings.Join(path, "."), Type: leaf.Node.Type().String()}
		for g := range m.RowGroups {
			md := &m.RowGroups[g].Columns[i].MetaData
			c.Compressed += md.TotalCompressedSize
			c.Plain += md.TotalUncompressedSize
			if c.Codec = md.Codec.String(); g == 0 && len(md.Encoding) > 0 {
				c.Encoding = fmt.Sprint(md.Encoding)
			}
		}
		s.Columns = append(s.Columns, c)
	}
}

// String returns the summary as text of bounded length.
func (s *FileSummary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d rows in %d row groups, %d bytes, written by %s\n", s.Path, s.Rows, s.RowGroups,
		s.Bytes, s.CreatedBy)
	for _, c := range s.Columns[:min(len(s.Columns), shownColumns)] {
		fmt.Fprintf(&b, "  %-24s %-28s %-30s %10d bytes of %d\n", c.Name, c.Type, c.Codec+" "+c.Encoding,
			c.Compressed, c.Plain)
	}
	keys := make([]string, 0, len(s.Metadata))
	for k := range s.Metadata {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	if n := len(s.Columns) - shownColumns; n > 0 {
		fmt.Fprintf(&b, "  and %d more columns; --json has them all\n", n)
	}
	for _, k := range keys[:min(len(keys), shownKeys)] {
		fmt.Fprintf(&b, "  %s = %s\n", cutText(k), cutText(s.Metadata[k]))
	}
	if n := len(keys) - shownKeys; n > 0 {
		fmt.Fprintf(&b, "  and %d more metadata; --json has them all\n", n)
	}
	return b.String()
}

// Limits of FileSummary.String: a footer may have any number of columns and keys.
const (
	shownColumns = 1000
	shownKeys    = 200
	shownText    = 4000 // bytes
)

// cutText returns s on one line and without control characters; of a long text its
// beginning and the number of bytes left out.
func cutText(s string) string {
	rest := ""
	if n := len(s) - shownText; n > 0 {
		s = strings.ToValidUTF8(s[:shownText], "")
		rest = fmt.Sprintf("… (and %d more bytes; --json has them all)", n)
	}
	if strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		s = strconv.Quote(s)
	}
	return s + rest
}
