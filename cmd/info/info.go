// Package info is the command info: it says what is in a file, a folder, a topic or a
// shipped model, and prints SQL that opens an output's tables. It changes nothing; the
// command verify finds faults, which info does not look for.
//
// An input is what the command produce can send: a data set, a recording, or files of one
// format. A checkpoint is the folder of
// a transformer.
package info

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"entropipe/cmd/command"
	"entropipe/ingest"
	"entropipe/ingest/replay"
	"entropipe/models"
	"entropipe/sinks/read"
)

// Command is the command info: its flags and arguments.
type Command struct {
	What    []string `arg:""`
	Brokers []string `default:"127.0.0.1:9092" placeholder:"HOST:PORT"`
	JSON    bool     `name:"json" xor:"form"`
	SQL     bool     `name:"sql" xor:"form"`
	Files   bool
	With    string `placeholder:"OUT2"`
	Format  string `enum:"duckdb,spark,polars" default:"duckdb"`

	Security command.Security `embed:"" group:"Brokers"`
	Bucket   command.Bucket   `embed:"" group:"Object store"`
}

// Run checks the flags and runs the command.
func (c *Command) Run(e *command.Env) error {
	if err := c.checkForms(); err != nil {
		return err
	}
	if c.Files {
		return c.printFiles(e)
	}
	if c.SQL {
		return c.printSQL(e)
	}
	var found fmt.Stringer
	err := command.UntilStopped(e, func() (err error) {
		if len(c.What) == 1 {
			found, err = c.describe(e, c.What[0])
		} else {
			found, err = describeInputs(e, c.What)
		}
		return err
	})
	if err != nil {
		return err
	}
	return command.PrintResult(e.Stdout, c.JSON, found)
}

// describe finds out what is meant: an address, a model that is shipped, a path,
// else a topic.
func (c *Command) describe(e *command.Env, what string) (fmt.Stringer, error) {
	if command.IsTopicURL(what) {
		brokers, topic, err := command.TopicURL(what)
		if err != nil {
			return nil, err
		}
		return c.describeTopic(e, brokers, topic)
	}
	if strings.HasPrefix(what, "builtin:") {
		return models.Describe(what)
	}
	if command.IsBucket(what) {
		return c.describeOutput(e, what)
	}
	info, err := os.Stat(what)
	switch {
	case err != nil && strings.ContainsAny(what, "*?["):
		return describeInputs(e, []string{what})
	case err != nil && strings.ContainsAny(what, `/\`):
		return nil, err
	case err != nil:
		found, failed := c.describeTopic(e, c.Brokers, what)
		if failed != nil {
			return nil, fmt.Errorf("%s is no file or folder here; as a topic: %w", what, failed)
		}
		return found, nil
	case info.IsDir():
		c.sayFolder(e, what)
		return c.describeFolder(e, what)
	}
	return describeFile(e, what)
}

// describeFile describes a file by its name where that says more than the content: a table
// of an output, texts, models.
func describeFile(e *command.Env, what string) (fmt.Stringer, error) {
	switch ext := strings.ToLower(filepath.Ext(strings.TrimSuffix(what, ".gz"))); {
	case ext == ".parquet" && strings.HasSuffix(strings.ToLower(what), ext):
		return describeParquet(e, what)
	case ext == ".txt" || ext == ".jsonl":
		return describeSequences(what, replay.Tokens{Files: []string{what}, SkipBad: true, Log: e.Log})
	case ext == ".safetensors" && strings.HasSuffix(what, ext), strings.HasSuffix(what, ".index.json"):
		return models.Describe(what) // also the index of tensors in several files
	}
	return describeInputs(e, []string{what})
}

// describeParquet describes a file as points, if it has any and is no table of an output, or
// its columns.
func describeParquet(e *command.Env, what string) (fmt.Stringer, error) {
	file, err := read.DescribeFile(what)
	if err != nil {
		return nil, err
	}
	for key := range file.Metadata {
		if strings.HasPrefix(key, "entropipe.") {
			return file, nil
		}
	}
	points, err := describeInputs(e, []string{what})
	if err != nil || points.Frames == 0 {
		return file, e.Ctx.Err()
	}
	return points, nil
}

// sayFolder says that a name was taken for a folder's, when a topic could have it
// too. The brokers are not asked whether one has: without brokers that would take
// the time of a connection, for each look at a folder.
func (c *Command) sayFolder(e *command.Env, what string) {
	if len(c.Brokers) == 0 || strings.ContainsAny(what, `/\`) || command.CheckTopicName(what) != nil {
		return
	}
	e.Log.Info("the folder of this name is described; a topic of this name has an address", "folder", what, "topic",
		"kafka://"+c.Brokers[0]+"/"+what)
}

func (c *Command) describeOutput(e *command.Env, out string) (fmt.Stringer, error) {
	store, err := command.OpenOutput(e.Ctx, out, &c.Bucket)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	return read.Describe(e.Ctx, store)
}

func (c *Command) describeFolder(e *command.Env, dir string) (fmt.Stringer, error) {
	if _, err := os.Stat(filepath.Join(dir, "_commits")); err == nil {
		return c.describeOutput(e, dir)
	}
	if found, err := describeCheckpoint(dir); found != nil || err != nil {
		return found, err
	}
	if file := firstTable(dir); file != "" {
		return nil, fmt.Errorf("%s: a folder of tables: want the output's folder, or one file such as %s", dir, file)
	}
	return describeInputs(e, []string{dir})
}

// firstTable returns a file of one of our tables below dir, where tables have at most five
// levels of folders; "" if there is none.
func firstTable(dir string) string {
	for pattern := "topic=*/part-*.parquet"; strings.Count(pattern, "/") <= 5; pattern = "*/" + pattern {
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
