// Package info is the command info: it says what is in a file, a folder, a topic or a
// shipped model, and prints SQL that opens an output's tables. It changes nothing; the
// command verify finds faults, which info does not look for.
//
// A source is a data set that the command produce can send. A checkpoint is the folder of
// a transformer.
package info

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"entropipe/algos/geom"
	"entropipe/cmd/command"
	"entropipe/ingest"
	"entropipe/ingest/replay"
	"entropipe/models"
	"entropipe/models/plainfile"
	"entropipe/sinks/read"
)

// Command is the command info: its flags and arguments.
type Command struct {
	What    string   `arg:""`
	Brokers []string `default:"127.0.0.1:9092" placeholder:"HOST:PORT"`
	JSON    bool     `name:"json" xor:"form"`
	SQL     bool     `name:"sql" xor:"form"`

	Security command.Security `embed:"" group:"Brokers"`
}

// Run checks the flags and runs the command.
func (c *Command) Run(e *command.Env) error {
	if c.SQL {
		return c.printSQL(e)
	}
	var found fmt.Stringer
	err := command.UntilStopped(e, func() (err error) {
		found, err = c.describe(e)
		return err
	})
	if err != nil {
		return err
	}
	return command.PrintResult(e.Stdout, c.JSON, found)
}

// describe finds out what is meant: an address, a model that is shipped, a path,
// else a topic.
func (c *Command) describe(e *command.Env) (fmt.Stringer, error) {
	if command.IsTopicURL(c.What) {
		brokers, topic, err := command.TopicURL(c.What)
		if err != nil {
			return nil, err
		}
		return c.describeTopic(e, brokers, topic)
	}
	if strings.HasPrefix(c.What, "builtin:") {
		return models.Describe(c.What)
	}
	info, err := os.Stat(c.What)
	switch {
	case err != nil && strings.ContainsAny(c.What, `/\`):
		return nil, err
	case err != nil:
		found, failed := c.describeTopic(e, c.Brokers, c.What)
		if failed != nil {
			return nil, fmt.Errorf("%s is no file or folder here; as a topic: %w", c.What, failed)
		}
		return found, nil
	case info.IsDir():
		c.sayFolder(e)
		return describeFolder(e, c.What)
	}
	ext := strings.ToLower(filepath.Ext(c.What))
	if name := c.What[:len(c.What)-len(ext)]; ext == ".gz" {
		switch inner := strings.ToLower(filepath.Ext(name)); inner {
		case ".txt", ".jsonl":
			ext = inner
		case ".bin":
			return nil, fmt.Errorf(
				"%s: a scan in gzip, which is read with the others of its folder: entropipe info %s",
				c.What,
				filepath.Dir(c.What),
			)
		}
	}
	switch ext {
	case ".parquet":
		return read.DescribeFile(c.What)
	case ".txt", ".jsonl":
		return describeSequences(c.What, replay.Tokens{Files: []string{c.What}, SkipBad: true, Log: e.Log})
	case ".ndjson", ".gz":
		return describeSource(replay.QuickDraw{Files: []string{c.What}, SkipBad: true, Log: e.Log}.Open())
	case ".bin":
		return describeScan(c.What)
	case ".safetensors":
		return models.Describe(c.What)
	}
	if strings.HasSuffix(c.What, ".index.json") { // the index of tensors in several files
		return models.Describe(c.What)
	}
	return nil, fmt.Errorf("%s: not a file that entropipe knows: want .parquet, .bin, .ndjson, .ndjson.gz, .txt, "+
		".jsonl or .safetensors", c.What)
}

// sayFolder says that a name was taken for a folder's, when a topic could have it
// too. The brokers are not asked whether one has: without brokers that would take
// the time of a connection, for each look at a folder.
func (c *Command) sayFolder(e *command.Env) {
	if len(c.Brokers) == 0 || strings.ContainsAny(c.What, `/\`) || command.CheckTopicName(c.What) != nil {
		return
	}
	e.Log.Info("the folder of this name is described; a topic of this name has an address", "folder", c.What, "topic",
		"kafka://"+c.Brokers[0]+"/"+c.What)
}

func describeFolder(e *command.Env, dir string) (fmt.Stringer, error) {
	if _, err := os.Stat(filepath.Join(dir, "_commits")); err == nil {
		store, err := command.OpenOutput(dir)
		if err != nil {
			return nil, err
		}
		defer store.Close()
		return read.Describe(e.Ctx, store)
	}
	if found, err := describeCheckpoint(dir); found != nil || err != nil {
		return found, err
	}
	found, err := describeSource(replay.KITTI{Dir: dir, SkipBad: true, Log: e.Log}.Open())
	if err != nil {
		if file := firstTable(dir); file != "" {
			return nil, fmt.Errorf("%s: a folder of tables: want the output's folder, or one file such as %s", dir,
				file)
		}
	}
	return found, err
}

// firstTable returns a Parquet file below dir, where tables have at most five
// levels of folders; "" if there is none.
func firstTable(dir string) string {
	for pattern := "*.parquet"; strings.Count(pattern, "/") <= 5; pattern = "*/" + pattern {
		if found, err := fs.Glob(os.DirFS(dir), pattern); err == nil && len(found) > 0 {
			return filepath.Join(dir, filepath.FromSlash(found[0]))
		}
	}
	return ""
}

// topicInfo is what a topic holds.
type topicInfo struct {
	Topic           string          `json:"topic"`
	TopicID         string          `json:"topic_id,omitempty"` // as Kafka's tools print it
	MaxMessageBytes int64           `json:"max_message_bytes"`  // -1: unknown
	Partitions      []partitionInfo `json:"partitions"`
}

// partitionInfo is what is there of a partition: [Start, End), of which
// [Start, Stable) belongs to no open transaction.
type partitionInfo struct {
	Partition int32 `json:"partition"`
	Start     int64 `json:"start"`
	Stable    int64 `json:"stable"`
	End       int64 `json:"end"`
}

func (c *Command) describeTopic(e *command.Env, brokers []string, topic string) (fmt.Stringer, error) {
	if err := cmp.Or(command.CheckBrokers(&brokers), command.CheckTopicName(topic)); err != nil {
		return nil, err
	}
	security, err := c.Security.Open(e.Log)
	if err != nil {
		return nil, err
	}
	t, err := ingest.Describe(e.Ctx, brokers, security, topic)
	if err != nil {
		return nil, err
	}
	found := &topicInfo{Topic: t.Name, TopicID: t.ID.String(), MaxMessageBytes: t.MaxMessageBytes,
		Partitions: []partitionInfo{}}
	for _, p := range t.Partitions {
		found.Partitions = append(found.Partitions, partitionInfo{p.ID, p.Start, p.Stable, p.End})
	}
	return found, nil
}

// String is a line for the topic and one for every partition.
func (t *topicInfo) String() string {
	var b strings.Builder
	limit := "an unknown size"
	if t.MaxMessageBytes >= 0 {
		limit = command.ByteSize(t.MaxMessageBytes)
	}
	fmt.Fprintf(&b, "topic %s: %d partitions, messages of up to %s\n", t.Topic, len(t.Partitions), limit)
	if t.TopicID != "" {
		fmt.Fprintf(&b, "  id %s\n", t.TopicID)
	}
	for _, p := range t.Partitions {
		fmt.Fprintf(&b, "  partition %d: offsets %d to %d", p.Partition, p.Start, p.End)
		if p.Stable < p.End {
			fmt.Fprintf(&b, ", stable up to %d", p.Stable)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// sourceInfo is what a data set holds.
type sourceInfo struct {
	Dataset  string     `json:"dataset"`
	Sequence string     `json:"sequence"` // the first one's
	Frames   int64      `json:"frames"`
	Points   int64      `json:"points"`
	Skipped  int64      `json:"skipped"` // could not be read
	Least    [2]float64 `json:"least"`   // least x and y
	Most     [2]float64 `json:"most"`
	First    *time.Time `json:"first,omitempty"`
	Last     *time.Time `json:"last,omitempty"`
}

// describeScan describes one KITTI scan by itself. It needs no more than the
// file's size, which may be anything.
func describeScan(path string) (fmt.Stringer, error) {
	f, err := plainfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(path, ".pcd.bin") {
		return nil, fmt.Errorf("%s: a nuScenes scan has five numbers a point where KITTI has four: entropipe does "+
			"not read it", path)
	}
	n := info.Size()
	if n%16 != 0 {
		return nil, fmt.Errorf("%s: %d bytes are not a whole number of points of 16 bytes: %d are left over", path, n,
			n%16)
	}
	return text(
		fmt.Sprintf("%s: a KITTI scan of %s points, %s\n", path, command.Count(n/16), command.ByteSize(n)),
	), nil
}

type text string

// String is the text itself.
func (t text) String() string { return string(t) }

// describeSource reads a whole data set.
func describeSource(src replay.Source, err error) (fmt.Stringer, error) {
	if err != nil {
		return nil, err
	}
	defer src.Close()
	inf := math.Inf(1)
	s := &sourceInfo{Least: [2]float64{inf, inf}, Most: [2]float64{-inf, -inf}}
	var it replay.Item
	for {
		err := src.Next(&it)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		s.add(&it)
	}
	if k, ok := src.(interface{ Skipped() int64 }); ok {
		s.Skipped = k.Skipped()
	}
	if s.Points == 0 {
		s.Least, s.Most = [2]float64{}, [2]float64{}
	}
	return s, nil
}

func (s *sourceInfo) add(it *replay.Item) {
	if s.Frames == 0 {
		s.Dataset, s.Sequence = it.Dataset, it.Sequence
	}
	s.Frames += it.Frames()
	s.Points += it.Points()
	cover(s, 0, it.Cloud.Cloud32.X)
	cover(s, 1, it.Cloud.Cloud32.Y)
	cover(s, 0, it.Cloud.Cloud64.X)
	cover(s, 1, it.Cloud.Cloud64.Y)
	for i := range it.Drawings {
		cover(s, 0, it.Drawings[i].X)
		cover(s, 1, it.Drawings[i].Y)
	}
	if it.Clock == replay.UTC || it.Clock == replay.Unordered {
		t := time.Unix(0, it.TimeNs).UTC()
		if s.First == nil || t.Before(*s.First) {
			s.First = &t
		}
		if s.Last == nil || t.After(*s.Last) {
			s.Last = &t
		}
	}
}

func cover[T geom.Float](s *sourceInfo, axis int, v []T) {
	for _, f := range v {
		if f-f == 0 {
			s.Least[axis], s.Most[axis] = min(s.Least[axis], float64(f)), max(s.Most[axis], float64(f))
		}
	}
}

// String is the summary for people.
func (s *sourceInfo) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s frames, %s points, x %g to %g, y %g to %g\n", s.Dataset, s.Sequence,
		command.Count(s.Frames), command.Count(s.Points), s.Least[0], s.Most[0], s.Least[1], s.Most[1])
	if s.First != nil {
		fmt.Fprintf(&b, "  from %s to %s\n", s.First.Format(time.RFC3339Nano), s.Last.Format(time.RFC3339Nano))
	}
	if s.Skipped > 0 {
		fmt.Fprintf(&b, "  %s inputs could not be read\n", command.Count(s.Skipped))
	}
	return b.String()
}
