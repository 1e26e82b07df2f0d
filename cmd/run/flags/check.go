package flags

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"entropipe/cmd/command"
	"entropipe/cmd/config/value"
	"entropipe/cmd/mistake"
	"entropipe/ingest"
)

// Check returns all mistakes of the flags, joined, each a mistake.Usage.
func (c *Flags) Check() error {
	topics := []error{}
	if len(c.Source.Topic) == 0 {
		topics = append(topics, mistake.Value("topic", ": no topic given"))
	}
	for i, topic := range c.Source.Topic {
		topics = append(topics, command.CheckNameOfTopic(fmt.Sprintf("topic[%d]", i), topic))
	}
	for i, topic := range c.Source.AcceptTopic {
		if !slices.Contains(c.Source.Topic, topic) {
			topics = append(topics, mistake.Value(fmt.Sprintf("accept-topic[%d]", i),
				" %s: it is not among --topic", topic))
		}
	}
	return errors.Join(command.CheckBrokers(&c.Source.Brokers), c.Source.Security.Check(), errors.Join(topics...),
		c.Output.Bucket.Check(c.Output.Out), checkPartitionBy(c.Output.PartitionBy),
		command.CheckListen(c.Serve.Listen), c.Serve.Check(),
		c.Stage.Check(&c.Publish), c.Publish.Check(c.Source.Topic), c.Tokens.Check(), checkOps(c.Frames.Ops),
		checkContentTypes(c.Source.ContentType, c.Source.Topic), checkInstance(c.Source.GroupInstance),
		c.checkAmounts())
}

// Check returns all mistakes of the names that may watch, joined, each a Usage. It opens no file.
func (c *ServeFlags) Check() error {
	var wrong []error
	for i, host := range c.Hosts {
		if host == "" || strings.ContainsAny(host, "/:*@ ") && net.ParseIP(host) == nil {
			wrong = append(wrong, mistake.Value(fmt.Sprintf("listen-host[%d]", i), " %s: want a name without scheme "+
				"and port", host))
		}
	}
	for i, origin := range c.Origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
			strings.TrimSuffix(u.Scheme+"://"+u.Host, "/") != strings.TrimSuffix(origin, "/") {
			wrong = append(wrong, mistake.Value(fmt.Sprintf("listen-origin[%d]", i), " %s: want http[s]://HOST[:PORT]",
				value.Discreet(origin)))
		}
	}
	if _, err := c.Page(""); err != nil {
		wrong = append(wrong, mistake.Value("listen-advertise", " %s: %v", value.Discreet(c.Advertise), err))
	}
	return errors.Join(wrong...)
}

// Page returns the URL of the page that other processes of the output are told; empty: none.
// listens is the HOST:PORT that the page is served at; empty: it is not served.
func (c *ServeFlags) Page(listens string) (string, error) {
	if c.Advertise == "off" {
		return "", nil
	}
	page := c.Advertise
	if page == "" {
		page = listens
	}
	if page == "" {
		return "", nil
	}
	if !strings.Contains(page, "://") {
		page = "http://" + page + "/"
	}
	if err := ingest.CheckPage(page); err != nil {
		return "", err
	}
	if listens == "" {
		page = ""
	}
	return page, nil
}

// checkOps finds operators beside none.
func checkOps(ops []string) error {
	if len(ops) > 1 && slices.Contains(ops, "none") {
		return mistake.Value("ops", " none: it stands alone")
	}
	return nil
}

// checkContentTypes finds what --content-type does not know.
func checkContentTypes(settings, topics []string) error {
	_, err := command.ContentTypes(settings, topics)
	return err
}

// checkInstance finds an id that the brokers would refuse; empty is none.
func checkInstance(id string) error {
	if id == "" {
		return nil
	}
	if err := ingest.CheckInstance(id); err != nil {
		return mistake.Value("group-instance", " %s: %v", id, err)
	}
	return nil
}

func (c *Flags) checkAmounts() error {
	return errors.Join(
		command.CheckAmount("session-timeout", c.Source.Session, 100*time.Millisecond, 24*time.Hour),
		command.CheckAmount("rebalance-timeout", c.Source.Rebalance, 100*time.Millisecond, 24*time.Hour),
		command.CheckAmount("chunk-window", c.Source.ChunkWindow, 1, command.MaxSize),
		command.CheckAmount("chunk-age", c.Source.ChunkAge, time.Second, 24*time.Hour),
		command.CheckAmount("workers", c.Resource.Workers, 0, command.MaxWorkers),
		command.CheckAmount("memory", c.Resource.Memory, command.MinMemory, command.MaxSize),
		command.CheckAmount("retry-for", c.Output.RetryFor, 0, 30*24*time.Hour),
		command.CheckAmount("roll-bytes", c.Output.RollBytes, 1, command.MaxSize),
		command.CheckAmount("roll-records", c.Output.RollRecords, 1, 1<<50),
		command.CheckAmount("entropy-every", c.Frames.EntropyEvery, 0, 1<<40),
		command.CheckAmount("max-frame-bytes", c.Frames.MaxFrameBytes, 1, command.MaxFrameBytes))
}

// checkPartitionBy returns a Usage if folders are not
// dataset[,sequence][,date].
func checkPartitionBy(by []string) error {
	order, at := []string{"dataset", "sequence", "date"}, -1
	for _, key := range by {
		i := slices.Index(order, key)
		if i <= at || at < 0 && i > 0 {
			return mistake.Value("partition-by", " %s: want dataset[,sequence][,date]", strings.Join(by, ","))
		}
		at = i
	}
	return nil
}

// Idle returns the flags that were given another value than their default, as
// differs tells, and do nothing without others, with what these are. It is no
// mistake: a file may hold the settings of several tasks.
func (c *Flags) Idle(differs func(flag string) bool) (flags, want []string) {
	t := &c.Tokens
	for _, f := range []struct {
		name  string
		works bool
		wants string
	}{
		{"entropy-every", slices.Contains(c.Output.Tables, "entropy"), "--tables with entropy"},
		{"new-config", c.Output.StrictConfig, "--strict-config"},
		{"on-foreign", c.Stage.Model != "", "--model"},
		{"device", t.LM != "", "--lm"},
		{"token-budget", t.LM != "", "--lm"},
		{"truncate", t.LM != "", "--lm"},
		{"truncate-side", t.LM != "", "--lm"},
		{"max-new", t.Task == "generate", "--task generate"},
		{"top-k", t.Task == "logits", "--task logits"},
		{"mask-use", t.Mask != "", "--mask"},
		{"audit-every", t.Mask != "", "--mask"},
		{"listen-advertise", c.Serve.Listen != "off", "--listen"},
		{"listen-token-file", c.Serve.Listen != "off", "--listen"},
		{"pprof", c.Serve.Listen != "off", "--listen"},
	} {
		if !f.works && differs(f.name) {
			flags, want = append(flags, f.name), append(want, f.wants)
		}
	}
	return flags, want
}
