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

// Content is what decides the rows that a writer makes of a record: settings by
// name, defaults filled in, hashes of models in place of their files' names. How
// many workers there are, where brokers are, and when batches are committed is no
// part of it. It is not changed after use.
type Content map[string]string

// Hash identifies the content: equal contents have equal hashes. It is the empty
// text for no content, which says nothing about rows.
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

// Changes lists what differs in next, by name and in order: "ops: hull2d ->
// hull2d,maxima3d". What only one of them has is (none) in the other.
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

// String lists the settings of the content with their values, in order.
func (c Content) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if c[name] != "" {
			all = append(all, name+": "+c[name])
		}
	}
	return strings.Join(all, "; ")
}

// contentRecord is _commits/configs/<hash>.json. Whoever writes with a content
// makes the same bytes, so it does not matter who is first.
type contentRecord struct {
	Format  int     `json:"format"`
	Content Content `json:"content"`
}

// parseContent reads the record of a content, which has to have its hash.
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

// ReadContent returns the content of a hash that a manifest has. ErrNotFound: the
// output has no record of it.
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

// contents is what an Output knows of contents: its own, and of others. The mutex
// of the Output guards it.
type contents struct {
	current  string             // hash of what the next attempt writes
	known    map[string]Content // by hash
	recorded map[string]bool    // hashes whose record is durable
	told     map[string]bool    // changes along chains that OnChange was told of, by topic and hashes
}

func newContents(c Content) contents {
	k := contents{current: c.Hash(), known: map[string]Content{}, recorded: map[string]bool{}, told: map[string]bool{}}
	if k.current != "" {
		k.known[k.current] = c
	}
	return k
}

// SetContent says what attempts that begin from now on write: a model's file was
// replaced, say.
func (o *Output) SetContent(c Content) {
	o.mu.Lock()
	defer o.mu.Unlock()
	hash := c.Hash()
	o.contents.current = hash
	if hash != "" {
		o.contents.known[hash] = c
	}
}

// contentHash is the hash of what is written now.
func (o *Output) contentHash() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.contents.current
}

// record makes the record of a content durable, before the first manifest that
// names it.
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

// content returns the content of a hash, nil where there is no record of it that
// can be read: what it said is then unknown, and verify says why.
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

// ContentChange says that rows of one topic were made with different contents.
type ContentChange struct {
	Topic     string
	Partition int32
	Offset    int64    // the first one with the later content
	Was, Is   string   // hashes
	Changes   []string // as Content.Changes lists them; empty: a record is missing
}

// String names the change for people.
func (c *ContentChange) String() string {
	if len(c.Changes) == 0 {
		return fmt.Sprintf("configuration %.8s -> %.8s, which the output does not describe", c.Was, c.Is)
	}
	return strings.Join(c.Changes, "; ")
}

// change compares a manifest's content with what is written now. nil: they are
// equal, or one of them says nothing.
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

// Changed compares the newest manifest of a topic, of all its partitions, with
// what this Output writes. nil: they agree, or there is nothing to compare.
// Partitions that had no records since an earlier change do not count. The cost is
// that of listing the names of the topic's manifests once.
func (o *Output) Changed(ctx context.Context, topic string) (*ContentChange, error) {
	ids, err := o.partitionsOf(ctx, topic)
	if err != nil {
		return nil, err
	}
	var newest *record.Manifest
	for _, id := range ids {
		m, err := o.newest(ctx, record.TopicPartition{Topic: topic, ID: id})
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

// partitionsOf returns the partitions of a topic that have a folder for manifests.
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

// resumed tells Config.OnChange that a partition goes on with another content,
// once for each topic and change.
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
