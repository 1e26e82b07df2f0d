package replay

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strconv"
	"time"

	"entropipe/cmd/command"
	"entropipe/ingest"
	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/record"
)

// state is what an output keeps of its replays to one topic.
type state struct {
	store  sinks.Store
	output string // uuid
	id     string // name of the replay with this selection
	now    record.Replay
	begun  bool // the output has the record of this replay
	starts map[int32]int64
	known  map[key]struct{} // messages that lists name
	lists  int              // this replay's
	fresh  map[key]record.SentMessage
}

// openState reads the records of replays to a topic.
func openState(ctx context.Context, store sinks.Store, output string, c *Command, to *ingest.Topic) (*state, error) {
	s := &state{store: store, output: output, known: map[key]struct{}{}, fresh: map[key]record.SentMessage{},
		starts: map[int32]int64{}}
	s.now = record.Replay{Format: record.FormatVersion, To: to.Name, TopicID: to.ID.String(),
		Starts: map[string]int64{}, Reasons: slices.Compact(slices.Sorted(slices.Values(c.Reason))),
		Created: time.Now().UTC(), Writer: command.Version}
	if to.ID.IsZero() {
		s.now.TopicID = ""
	}
	since := ""
	if !c.Since.IsZero() {
		at := c.Since.UTC()
		s.now.Since = &at
		since = at.Format(time.RFC3339Nano)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", s.now.To, s.now.TopicID, s.now.Reasons, since))
	s.id = hex.EncodeToString(sum[:16])
	names, err := store.Names(ctx, record.ReplaysFolder)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := s.read(ctx, path.Join(record.ReplaysFolder, name)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// read reads one record, if it is about this topic.
func (s *state) read(ctx context.Context, name string) error {
	id, n, ok := record.ParseReplayName(name)
	if !ok || n == 0 && id != s.id {
		return nil
	}
	data, err := s.store.Read(ctx, name)
	if err != nil {
		return err
	}
	if n == 0 {
		return s.adopt(name, data)
	}
	list, err := record.ParseReplayed(name, data)
	if err != nil {
		return err
	}
	if id == s.id {
		s.lists = max(s.lists, n)
	}
	if list.To != s.now.To || list.TopicID != s.now.TopicID {
		return nil
	}
	for i := range list.Sent {
		m := &list.Sent[i]
		s.known[keyOf(schemas.DeadLetterID{Output: s.output, Topic: m.Topic, Partition: m.Partition,
			Offset: m.Offset})] = struct{}{}
	}
	return nil
}

// adopt takes over the record of this replay.
func (s *state) adopt(name string, data []byte) error {
	r, err := record.ParseReplay(name, data)
	if err != nil {
		return err
	}
	if r.To != s.now.To || r.TopicID != s.now.TopicID {
		return fmt.Errorf("%s is about topic %s with id %q", name, r.To, r.TopicID)
	}
	for id, start := range r.Starts {
		n, _ := strconv.ParseInt(id, 10, 32) // as ParseReplay has checked
		s.starts[int32(n)] = start
	}
	s.begun = true
	return nil
}

// begin creates the record of this replay, unless it exists.
func (s *state) begin(ctx context.Context, starts map[int32]int64) error {
	if s.begun {
		return nil
	}
	for id, start := range starts {
		s.now.Starts[strconv.Itoa(int(id))] = start
	}
	name := record.ReplayName(s.id)
	found, _, err := sinks.CreateRecord(ctx, s.store, name, record.Encode(s.now))
	if err != nil {
		return err
	}
	return s.adopt(name, found)
}

// saw notes a record of the topic that sends a message of the output.
func (s *state) saw(of schemas.DeadLetterID, k key, partition int32, offset int64) {
	if _, known := s.known[k]; known {
		return
	}
	if _, noted := s.fresh[k]; noted {
		return
	}
	s.fresh[k] = record.SentMessage{Folder: record.FolderValue(of.Topic, record.MaxFolderValue), Topic: of.Topic,
		Partition: of.Partition, Offset: of.Offset, ToPartition: partition, ToOffset: offset}
}

// keep creates lists of the messages that no list names yet.
func (s *state) keep(ctx context.Context) error {
	all := make([]record.SentMessage, 0, len(s.fresh))
	for _, m := range s.fresh {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b record.SentMessage) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition),
			cmp.Compare(a.Offset, b.Offset))
	})
	for part := range slices.Chunk(all, record.MaxSent) {
		list := record.Replayed{Format: record.FormatVersion, To: s.now.To, TopicID: s.now.TopicID,
			Folder: record.FolderValue(s.now.To, record.MaxFolderValue), Sent: part, Created: time.Now().UTC()}
		data := record.Encode(list)
		for mine := false; !mine; {
			s.lists++
			var err error
			if _, mine, err = sinks.CreateRecord(ctx, s.store, record.ReplayedName(s.id, s.lists), data); err != nil {
				return err
			}
		}
	}
	return nil
}
