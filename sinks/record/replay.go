package record

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"entropipe/schemas/codec/identity"
)

// Replay is _commits/replays/<id>.json: refused messages of the output are sent again to a
// topic. The topic has none of them before Starts, so that whoever sends again what is missing
// begins to read there.
type Replay struct {
	Format  int              `json:"format"`
	To      string           `json:"to"`                 // topic
	TopicID string           `json:"topic_id,omitempty"` // id of To; empty: the brokers had no ids
	Starts  map[string]int64 `json:"starts"`             // offset by partition of To, in decimal; 0 if it is not named
	Reasons []string         `json:"reasons,omitempty"`  // the selection; empty: every reason
	Since   *time.Time       `json:"since,omitempty"`    // the selection: first time of commits
	Created time.Time        `json:"created"`
	Writer  string           `json:"writer,omitempty"`
}

// Replayed is _commits/replays/<id>.<n>.json: messages of the output that are in the topic of
// the replay.
type Replayed struct {
	Format  int           `json:"format"`
	To      string        `json:"to"`
	TopicID string        `json:"topic_id,omitempty"`
	Folder  string        `json:"folder"` // value of the topic's folder in tables
	Sent    []SentMessage `json:"sent"`
	Created time.Time     `json:"created"`
}

// SentMessage is a refused message and the record that sends it again.
type SentMessage struct {
	Folder      string `json:"folder"` // value of the source topic's folder in tables
	Topic       string `json:"topic"`
	Partition   int32  `json:"partition"`
	Offset      int64  `json:"offset"`
	ToPartition int32  `json:"to_partition"`
	ToOffset    int64  `json:"to_offset"` // a message in chunks has that of its first chunk
}

// ReplaysFolder has the records of replays.
const ReplaysFolder = CommitsFolder + "/replays"

// MaxSent bounds the messages of a Replayed: readers of JSON bound their objects.
const MaxSent = 20_000

const replayIDSize = 32 // hex digits

// ReplayName returns the path of a replay's record; id has 32 hex digits.
func ReplayName(id string) string { return ReplaysFolder + "/" + id + ".json" }

// ReplayedName returns the path of the n-th list of what a replay has sent, from 1 on.
func ReplayedName(id string, n int) string { return fmt.Sprintf("%s/%s.%d.json", ReplaysFolder, id, n) }

// ParseReplayName returns id and number of the list, 0 for the replay itself, if name is a path
// of one of both.
func ParseReplayName(name string) (id string, n int, ok bool) {
	base, found := strings.CutSuffix(path.Base(name), ".json")
	if !found || path.Dir(name) != ReplaysFolder {
		return "", 0, false
	}
	id, digits, list := strings.Cut(base, ".")
	if len(id) != replayIDSize || strings.Trim(id, "0123456789abcdef") != "" {
		return "", 0, false
	}
	if !list {
		return id, 0, true
	}
	n, err := strconv.Atoi(digits)
	return id, n, err == nil && n >= 1 && strconv.Itoa(n) == digits
}

// ParseReplay decodes and checks the record of a replay.
func ParseReplay(name string, data []byte) (*Replay, error) {
	r := new(Replay)
	if err := Parse(name, data, r); err != nil {
		return nil, err
	}
	_, err := identity.ParseTopicID(r.TopicID)
	if err == nil && r.To == "" {
		err = errors.New("it names no topic")
	}
	for id, start := range r.Starts {
		if n, failed := strconv.ParseInt(id, 10, 32); err == nil && (failed != nil || n < 0 || start < 0) {
			err = fmt.Errorf("partition %q starts at %d", id, start)
		}
	}
	if err != nil {
		return nil, &DamagedError{name, err}
	}
	return r, nil
}

// ParseReplayed decodes and checks a list of what a replay has sent.
func ParseReplayed(name string, data []byte) (*Replayed, error) {
	r := new(Replayed)
	if err := Parse(name, data, r); err != nil {
		return nil, err
	}
	_, err := identity.ParseTopicID(r.TopicID)
	if err == nil && (r.To == "" || r.Folder != FolderValue(r.To, MaxFolderValue)) {
		err = fmt.Errorf("topic %q is in folder %q", r.To, r.Folder)
	}
	for _, s := range r.Sent {
		if err == nil && (s.Topic == "" || s.Folder != FolderValue(s.Topic, MaxFolderValue) || s.Partition < 0 ||
			s.Offset < 0 || s.ToPartition < 0 || s.ToOffset < 0) {
			err = fmt.Errorf("%s/%d@%d was sent to %d@%d", s.Topic, s.Partition, s.Offset, s.ToPartition, s.ToOffset)
		}
	}
	if err != nil {
		return nil, &DamagedError{name, err}
	}
	return r, nil
}
