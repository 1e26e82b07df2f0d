// Package record holds the commit records of an output: their names, their bytes,
// and what makes one valid.
//
// It is not a store: it reads and writes no file. It does not decide who may
// commit; package sinks does.
//
// Vocabulary. A commit record is a small JSON file below _commits that is created
// once, never changed or deleted, and ends in its own checksum. A base fixes the
// offsets at which an output begins in each partition of a topic. A manifest
// describes one commit: the offsets [Start, End) of a partition, their counts and
// files. An offset is a hole when it has no data record: compaction removed it, or
// it is a control record.
//
//	store.json    Store       once an output
//	base.json     Base        once a topic; base-2.json, …: once for each later topic id
//	<start>.json  Manifest    once a commit, named after its first offset
//
//	{
//	 "format": 2,
//	 …
//	 "crc32c": "89abcdef"     CRC-32C (Castagnoli) of all bytes before this key
//	}
package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"entropipe/schemas/codec/identity"
)

// FormatVersion is the version of the commit records that this program writes.
// Records with a higher version are refused: a later program wrote them, by unknown
// rules. Version 1 is read, never written: its tables have fewer columns, and readers
// of a folder with both versions would drop columns or refuse the files.
const FormatVersion = 2

// FormatError is the error for a commit record whose format is later than this
// program's, or earlier where the program would have to write.
type FormatError struct {
	Name   string // path of the record
	Format int
}

func (e *FormatError) Error() string {
	if e.Format >= 1 && e.Format < FormatVersion {
		return fmt.Sprintf("%s: its format is %d, and this program writes format %d: verify, info and export read "+
			"this output; to go on writing, name a new --out, "+
			"into which the topics are read again from --from, or use the version of entropipe that made it", e.Name,
			e.Format, FormatVersion)
	}
	return fmt.Sprintf("%s: its format is %d, this program knows formats 1 to %d: it was written by a later version "+
		"of entropipe, which is needed to use this output",
		e.Name, e.Format, FormatVersion)
}

// DamagedError is the error for a commit record whose bytes are incomplete, changed or
// inconsistent.
type DamagedError struct {
	Name string
	Err  error
}

func (e *DamagedError) Error() string { return e.Name + " is damaged: " + e.Err.Error() }

// Unwrap returns the fault of the record.
func (e *DamagedError) Unwrap() error { return e.Err }

// Store is _commits/store.json, the identity of an output.
type Store struct {
	Format      int       `json:"format"`
	Schema      int       `json:"schema"` // version of the tables in every file's footer
	UUID        string    `json:"uuid"`
	Created     time.Time `json:"created"`
	PartitionBy []string  `json:"partition_by"`
	// CompactionOf is the uuid of the output whose commits this one holds in larger files;
	// empty: no other output. Only a compaction of that output may commit here.
	CompactionOf string `json:"compaction_of,omitempty"`
}

// Base is _commits/topics/<topic>/base.json: the offsets at which the output begins. A
// partition that it lacks was added to the topic later and begins at 0.
type Base struct {
	Format  int              `json:"format"`
	UUID    string           `json:"uuid"` // drawn by the writer that created the record
	Topic   string           `json:"topic"`
	TopicID string           `json:"topic_id,omitempty"` // as Kafka's tools print it; empty: the brokers had no ids
	Created time.Time        `json:"created"`
	Starts  map[string]int64 `json:"starts"` // first offset by partition, in decimal
}

// Start returns the offset at which the output begins in partition id.
func (b *Base) Start(id int32) int64 { return b.Starts[strconv.Itoa(int(id))] }

// Manifest describes one commit: the records with offsets [Start, End) of a partition.
type Manifest struct {
	Format    int                `json:"format"`
	UUID      string             `json:"uuid"` // identifies the attempt
	Topic     string             `json:"topic"`
	TopicID   string             `json:"topic_id,omitempty"` // as Kafka's tools print it; empty: the brokers had no ids
	Partition int32              `json:"partition"`
	Start     int64              `json:"start"`
	End       int64              `json:"end"`
	Gap       bool               `json:"gap,omitempty"` // the records were deleted before they could be read
	Counts    Counts             `json:"counts"`
	Chunks    *Chunks            `json:"chunks,omitempty"` // nil: no message of the range came in chunks
	Last      *identity.RecordID `json:"last,omitempty"`   // last data record before End; inherited over holes
	Files     []File             `json:"files"`
	// ConfigHash covers the whole configuration of the writer, ContentHash only the
	// settings that decide rows.
	ConfigHash  string    `json:"config_hash,omitempty"`
	ContentHash string    `json:"content_hash,omitempty"`
	AdoptedFrom string    `json:"adopted_from,omitempty"` // uuid of the output whose commit this was
	Created     time.Time `json:"created"`
	Writer      string    `json:"writer,omitempty"` // version of the program
}

// Chunks describes the messages of a manifest that came in several records. The rows
// of such a message have its lowest offset.
type Chunks struct {
	Ahead  []int64  `json:"ahead"`  // offsets at or after End that hold chunks of messages of this manifest, ascending
	Closed []string `json:"closed"` // chunk-ids of the last messages that began before End, oldest first
}

// Counts holds the numbers of a manifest's records and rows. Messages + Chunks + Holes
// = End - Start.
type Counts struct {
	Messages int64 `json:"messages"` // data records that are a message, or the first chunk of one
	Chunks   int64 `json:"chunks"`   // data records that are a further chunk of a message
	Frames   int64 `json:"frames"`   // rows of table frames
	Rejects  int64 `json:"rejects"`  // rows of table rejects
	Holes    int64 `json:"holes"`    // offsets without a data record
	// Sequences counts the rows of table tokens.
	Sequences int64 `json:"sequences,omitempty"`
}

// File is one file of a commit.
type File struct {
	Table  string `json:"table"`
	Path   string `json:"path"`   // path of the published file
	Staged string `json:"staged"` // path of the staged file
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// TopicPartition returns the partition whose records m describes.
func (m *Manifest) TopicPartition() TopicPartition { return TopicPartition{m.Topic, m.Partition} }

// A commit record ends in the CRC-32C of all bytes before this key: with a changed
// digit, for example in the offset of a base, it would still be valid JSON. Records of
// earlier programs have no checksum.
const (
	sumBegin = ",\n \"crc32c\": \""
	sumEnd   = "\"\n}\n"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Encode returns the bytes of a commit record: indented JSON that ends in its checksum.
func Encode(v any) []byte {
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		panic("record: a commit record cannot be encoded")
	}
	data = bytes.TrimSuffix(data, []byte("\n}"))
	return fmt.Appendf(data, "%s%08x%s", sumBegin, crc32.Checksum(data, castagnoli), sumEnd)
}

// checkSum compares the bytes of a commit record with their checksum, if they have
// one. The checksum is also looked for at its fixed distance from the end, so that a
// record whose key crc32c was damaged does not pass as a record without checksum.
func checkSum(data []byte) error {
	i := bytes.LastIndex(data, []byte(sumBegin))
	last := len(data) - len(sumBegin) - len("01234567") - len(sumEnd)
	if i < 0 && last >= 0 && bytes.Contains(data[last:],
		fmt.Appendf(nil, "%08x", crc32.Checksum(data[:last], castagnoli))) {
		i = last
	}
	if i < 0 {
		return nil
	}
	if sum := crc32.Checksum(data[:i], castagnoli); string(data[i:]) != fmt.Sprintf("%s%08x%s", sumBegin, sum, sumEnd) {
		return fmt.Errorf("it does not end in its checksum, %08x", sum)
	}
	return nil
}

// Parse checks the checksum and the format of a commit record and decodes it into v, a
// pointer. The error is a *DamagedError or a *FormatError; name is for its text.
func Parse(name string, data []byte, v any) error {
	if err := checkSum(data); err != nil {
		return &DamagedError{name, err}
	}
	format, err := formatOf(data)
	if err != nil {
		return &DamagedError{name, err}
	}
	if format < 1 {
		return &DamagedError{name, fmt.Errorf("format %d", format)}
	}
	if format > FormatVersion {
		return &FormatError{name, format}
	}
	if err := json.Unmarshal(data, v); err != nil {
		return &DamagedError{name, err}
	}
	return nil
}

// formatOf returns the format of a record; 0: it has none. Programs write the format first: other
// records are read twice.
func formatOf(data []byte) (int, error) {
	if rest, first := bytes.CutPrefix(data, []byte("{\n \"format\": ")); first {
		digits, _, _ := bytes.Cut(rest, []byte(",\n"))
		format, err := strconv.Atoi(string(digits[:min(len(digits), 9)]))
		if err == nil && format >= 1 && format <= FormatVersion {
			return format, nil
		}
	}
	var head struct {
		Format int `json:"format"`
	}
	err := json.Unmarshal(data, &head)
	return head.Format, err
}

// ParseStore decodes and checks store.json. The result of an error is incomplete.
func ParseStore(data []byte) (Store, error) {
	var r Store
	err := Parse(StoreFile, data, &r)
	if r.Format == 1 {
		r.Schema = 1 // there was one
	}
	if err == nil && r.Schema != r.Format { // each format has had one schema so far
		err = fmt.Errorf("%s is damaged: format %d with schema %d", StoreFile, r.Format, r.Schema)
	}
	if err == nil && len(r.UUID) != UUIDSize {
		err = fmt.Errorf("%s is damaged: uuid %q", StoreFile, r.UUID)
	}
	if err == nil && r.CompactionOf != "" && len(r.CompactionOf) != UUIDSize {
		err = fmt.Errorf("%s is damaged: compaction of %q", StoreFile, r.CompactionOf)
	}
	if err == nil && (len(r.PartitionBy) == 0 || CheckPartitionBy(r.PartitionBy) != nil) {
		err = fmt.Errorf("%s is damaged: partition_by %q", StoreFile, r.PartitionBy)
	}
	return r, err
}

// ParseBase decodes and checks a base of this topic; name is for errors.
func ParseBase(name string, data []byte, topic string) (*Base, error) {
	r := new(Base)
	if err := Parse(name, data, r); err != nil {
		return nil, err
	}
	if r.Topic != topic {
		return nil, fmt.Errorf("%s belongs to topic %q, not to %q", name, r.Topic, topic)
	}
	if _, err := identity.ParseTopicID(r.TopicID); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", name, err)
	}
	for id, start := range r.Starts {
		if n, err := strconv.ParseInt(id, 10, 32); err != nil || n < 0 || start < 0 {
			return nil, fmt.Errorf("%s is damaged: partition %q starts at %d", name, id, start)
		}
	}
	return r, nil
}

// ParseManifest decodes the manifest with this name. It checks the checksum, that the
// name fits topic, partition and start, and that counts and paths of files are
// possible, so that a damaged manifest cannot move a file out of its place.
func ParseManifest(name string, data []byte) (*Manifest, error) {
	m := new(Manifest)
	if err := Parse(name, data, m); err != nil {
		return nil, err
	}
	if problem := m.problem(); problem != "" {
		return nil, &DamagedError{name, errors.New(problem)}
	}
	if want := ManifestName(m.TopicPartition(), m.Start); name != want {
		return nil, &DamagedError{name, fmt.Errorf("what it says belongs into %s", want)}
	}
	return m, nil
}

func (m *Manifest) problem() string {
	c := &m.Counts
	_, idErr := identity.ParseTopicID(m.TopicID)
	switch {
	case idErr != nil:
		return idErr.Error()
	case len(m.UUID) != UUIDSize:
		return fmt.Sprintf("uuid %q", m.UUID)
	case m.Partition < 0 || m.Start < 0 || m.End <= m.Start:
		return fmt.Sprintf("partition %d, offsets [%d, %d)", m.Partition, m.Start, m.End)
	case c.Messages < 0 || c.Chunks < 0 || c.Holes < 0 || c.Frames < 0 || c.Sequences < 0 || c.Rejects < 0 ||
		c.Messages > m.End-m.Start || c.Chunks > m.End-m.Start-c.Messages ||
		c.Holes != m.End-m.Start-c.Messages-c.Chunks:
		return fmt.Sprintf("%d messages, %d chunks and %d holes are not the %d offsets of [%d, %d)", c.Messages,
			c.Chunks, c.Holes, m.End-m.Start, m.Start, m.End)
	case m.Chunks != nil && !m.Chunks.valid(m.End):
		return fmt.Sprintf("chunks ahead at %d, %d closed", m.Chunks.Ahead, len(m.Chunks.Closed))
	case m.Gap && (c.Messages+c.Chunks > 0 || len(m.Files) > 0):
		return "a gap with messages or files"
	case m.Last != nil && (m.Last.Offset < 0 || m.Last.Offset >= m.End):
		return fmt.Sprintf("its last record is at %d, at or after its end", m.Last.Offset)
	case c.Messages+c.Chunks > 0 && (m.Last == nil || m.Last.Offset < m.Start):
		return "it has messages, but its last record is before its start"
	}
	if m.AdoptedFrom != "" && len(m.AdoptedFrom) != UUIDSize {
		return fmt.Sprintf("adopted from %q", m.AdoptedFrom)
	}
	staging := StagingName(m.TopicPartition(), m.Start, m.UUID) + "/"
	for _, f := range m.Files {
		if !fs.ValidPath(f.Path) || !strings.HasPrefix(f.Path, f.Table+"/") || !strings.HasSuffix(f.Path, DataSuffix) ||
			!strings.HasPrefix(f.Staged, staging) || !fs.ValidPath(f.Staged) || f.Rows < 0 ||
			f.Bytes < 0 || f.SHA256 == "" {
			return fmt.Sprintf("file %q, staged as %q, SHA-256 %q", f.Path, f.Staged, f.SHA256)
		}
	}
	return ""
}

// valid tells whether c is possible for a manifest that ends at end.
func (c *Chunks) valid(end int64) bool {
	for i, offset := range c.Ahead {
		if offset < end || i > 0 && offset <= c.Ahead[i-1] {
			return false
		}
	}
	return len(c.Closed) <= identity.MaxClosed
}
