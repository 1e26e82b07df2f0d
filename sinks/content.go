package sinks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"entropipe/sinks/record"
)

// Content is the configuration that decides the rows of a record: values by the name
// of their setting, with defaults filled in and hashes of models instead of file
// names. Settings that do not change rows, such as workers, brokers and commit
// intervals, are not part of it. A Content must not be changed after use.
type Content map[string]string

// Hash returns the SHA-256, in hex, of the content as JSON with sorted keys; "" for an
// empty content, which says nothing about rows.
func (c Content) Hash() string {
	if len(c) == 0 {
		return ""
	}
	text, err := json.Marshal(map[string]string(c)) // keys in order
	if err != nil {
		panic("sinks: a content without JSON form: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Changes lists the settings that differ in next, sorted by name, as "ops: hull2d ->
// hull2d,maxima3d". A setting that one of them lacks has the value (none) there.
func (c Content) Changes(next Content) (changes []string) {
	show := func(c Content, name string) string {
		if v, ok := c[name]; ok && v != "" {
			return v
		}
		return "(none)"
	}
	names := maps.Clone(c)
	if names == nil {
		names = Content{}
	}
	maps.Copy(names, next)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if was, is := show(c, name), show(next, name); was != is {
			changes = append(changes, name+": "+was+" -> "+is)
		}
	}
	return changes
}

// String lists the settings with their values, sorted by name, as "name: value; …".
func (c Content) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if c[name] != "" {
			all = append(all, name+": "+c[name])
		}
	}
	return strings.Join(all, "; ")
}

// contentRecord is _commits/configs/<hash>.json. All writers with one content create
// the same bytes, so any of them may be first.
type contentRecord struct {
	Format  int     `json:"format"`
	Content Content `json:"content"`
}

// parseContent parses the record of a content and checks that its hash matches its name.
func parseContent(name string, data []byte) (Content, error) {
	var r contentRecord
	if err := record.Parse(name, data, &r); err != nil {
		return nil, err
	}
	if want := record.ContentName(r.Content.Hash()); name != want {
		return nil, fmt.Errorf("%s is damaged: what it says belongs into %s", name, want)
	}
	return r.Content, nil
}

// ReadContent returns the content with the hash that a manifest has. ErrNotFound: the
// output has no record of that content.
func ReadContent(ctx context.Context, store Reader, hash string) (Content, error) {
	name := record.ContentName(hash)
	if !record.IsHash(hash) {
		return nil, fmt.Errorf("%q is no hash of a configuration", hash)
	}
	data, err := ReadRecord(ctx, store, name)
	if err != nil {
		return nil, err
	}
	return parseContent(name, data)
}

// contents holds the contents that an Output has set or read. The mutex of the Output
// guards it.
type contents struct {
	current  string             // hash of the content of the next attempt
	known    map[string]Content // by hash
	recorded map[string]bool    // hashes whose record is durable
	told     map[string]bool    // changes that OnChange was called with, by topic and both hashes
}

func newContents(c Content) contents {
	k := contents{current: c.Hash(), known: map[string]Content{}, recorded: map[string]bool{}, told: map[string]bool{}}
	if k.current != "" {
		k.known[k.current] = c
	}
	return k
}

// SetContent sets the content of the attempts that begin from now on, for example
// after the file of a model was replaced.
func (o *Output) SetContent(c Content) {
	o.mu.Lock()
	defer o.mu.Unlock()
	hash := c.Hash()
	o.contents.current = hash
	if hash != "" {
		o.contents.known[hash] = c
	}
}

// contentHash returns the hash of the current content.
func (o *Output) contentHash() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.contents.current
}

// record makes the record of a content durable. Commit calls it before it creates the
// first manifest that names the content.
func (o *Output) record(ctx context.Context, hash string) error {
	o.mu.Lock()
	done := hash == "" || o.contents.recorded[hash]
	content := o.contents.known[hash]
	o.mu.Unlock()
	if done {
		return nil
	}
	name := record.ContentName(hash)
	found, _, err := createOrAdopt(ctx, o.store, name, record.Encode(contentRecord{record.FormatVersion, content}))
	if err == nil {
		if _, err = parseContent(name, found); err != nil {
			err = fmt.Errorf("%w; remove this file, and the next commit writes it again", err)
		}
	}
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.contents.recorded[hash] = true
	return nil
}

// content returns the content with this hash, or nil if its record is missing or
// cannot be read; verify reports the reason.
func (o *Output) content(ctx context.Context, hash string) Content {
	o.mu.Lock()
	c, ok := o.contents.known[hash]
	o.mu.Unlock()
	if ok {
		return c
	}
	c, err := ReadContent(ctx, o.store, hash)
	if err != nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.contents.known[hash] = c
	return c
}

// ContentChange is a change of content between rows of one topic.
type ContentChange struct {
	Topic     string
	Partition int32
	Offset    int64    // first offset with the later content
	Was, Is   string   // hashes of the earlier and the later content
	Changes   []string // result of Content.Changes; empty: the record of a content is missing
}

// String describes the change in one line.
func (c *ContentChange) String() string {
	if len(c.Changes) == 0 {
		return fmt.Sprintf("configuration %.8s -> %.8s, which the output does not describe", c.Was, c.Is)
	}
	return strings.Join(c.Changes, "; ")
}

// change compares a manifest's content with the current one. nil: they are equal, or
// one of them is unknown.
func (o *Output) change(ctx context.Context, m *record.Manifest) *ContentChange {
	is := o.contentHash()
	if m == nil || m.ContentHash == "" || is == "" || m.ContentHash == is {
		return nil
	}
	c := &ContentChange{Topic: m.Topic, Partition: m.Partition, Offset: m.End, Was: m.ContentHash, Is: is}
	if was := o.content(ctx, m.ContentHash); was != nil {
		c.Changes = was.Changes(o.content(ctx, is))
	}
	return c
}

// ContentHash returns the hash of the current content.
func (o *Output) ContentHash() string { return o.contentHash() }

// Changed compares the content of a topic's newest manifest, by time of creation
// across all partitions, with the current content. nil: they are equal, or there is
// nothing to compare. Partitions that had no records since an earlier change do not
// count. Cost: the names of the topic's manifests are listed once.
func (o *Output) Changed(ctx context.Context, topic string) (*ContentChange, error) {
	ids, err := o.partitionsOf(ctx, topic)
	if err != nil {
		return nil, err
	}
	var newest *record.Manifest
	for _, id := range ids {
		m, err := o.newest(ctx, partition{Topic: topic, ID: id})
		if err != nil {
			return nil, err
		}
		same := m != nil && m.ContentHash == o.contentHash()
		if newest == nil || m != nil && (m.Created.After(newest.Created) || same && m.Created.Equal(newest.Created)) {
			newest = m
		}
	}
	return o.change(ctx, newest), nil
}

// partitionsOf returns the ids of a topic's partitions that have a folder of manifests, ascending.
func (o *Output) partitionsOf(ctx context.Context, topic string) (ids []int32, err error) {
	names, err := o.store.Names(ctx, record.TopicFolder(topic))
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	for _, name := range names {
		if id, ok := record.PartitionID(name); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, err
}

// resumed calls Config.OnChange if a partition continues with another content than
// that of its newest manifest m, once for each topic and change.
func (o *Output) resumed(ctx context.Context, m *record.Manifest) {
	c := o.change(ctx, m)
	if c == nil || o.cfg.OnChange == nil {
		return
	}
	key := c.Topic + " " + c.Was + " " + c.Is
	o.mu.Lock()
	told := o.contents.told[key]
	o.contents.told[key] = true
	o.mu.Unlock()
	if !told {
		o.cfg.OnChange(c)
	}
}
