package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"entropipe/ingest"
	"entropipe/ingest/replay"
)

// What the grammar cannot say of flags: the checks here are made before
// anything is opened or made, so that a mistake leaves no trace.

// Bounds of flags, far from what anybody needs.
const (
	minMemory     = 64 << 10
	maxSize       = 1 << 50
	maxWorkers    = 4096
	maxFrameBytes = 1 << 30
	maxPartitions = 10_000
	maxPack       = 10_000
)

// check returns all mistakes, as usageErrors.
func (c *runFlags) check() error {
	topics := []error{}
	if len(c.Source.Topic) == 0 {
		topics = append(topics, wrongValue("topic", ": no topic given"))
	}
	for i, topic := range c.Source.Topic {
		topics = append(topics, checkNameOfTopic(fmt.Sprintf("topic[%d]", i), topic))
	}
	for i, topic := range c.Source.AcceptTopic {
		if !slices.Contains(c.Source.Topic, topic) {
			topics = append(topics, wrongValue(fmt.Sprintf("accept-topic[%d]", i), " %s: it is not among --topic", topic))
		}
	}
	return errors.Join(checkBrokers(&c.Source.Brokers), c.Source.Security.check(), errors.Join(topics...),
		checkOut(c.Output.Out), checkPartitionBy(c.Output.PartitionBy), checkListen(c.Serve.Listen),
		c.Stage.check(&c.Publish), c.Publish.check(c.Source.Topic), c.Tokens.check(), checkOps(c.Frames.Ops), checkRaw(c.Frames.Raw, c.Source.Topic),
		c.checkAmounts())
}

// checkOps finds operators beside none.
func checkOps(ops []string) error {
	if len(ops) > 1 && slices.Contains(ops, "none") {
		return wrongValue("ops", " none: it stands alone")
	}
	return nil
}

// checkRaw finds what --raw does not know.
func checkRaw(settings, topics []string) error {
	_, err := rawTopics(settings, topics)
	return err
}

func (c *runFlags) checkAmounts() error {
	return errors.Join(
		checkAmount("session-timeout", c.Source.Session, 100*time.Millisecond, 24*time.Hour),
		checkAmount("rebalance-timeout", c.Source.Rebalance, 100*time.Millisecond, 24*time.Hour),
		checkAmount("workers", c.Resource.Workers, 0, maxWorkers),
		checkAmount("memory", c.Resource.Memory, minMemory, maxSize),
		checkAmount("retry-for", c.Output.RetryFor, 0, 30*24*time.Hour),
		checkAmount("roll-bytes", c.Output.RollBytes, 1, maxSize),
		checkAmount("roll-records", c.Output.RollRecords, 1, 1<<50),
		checkAmount("entropy-every", c.Frames.EntropyEvery, 0, 1<<40),
		checkAmount("max-frame-bytes", c.Frames.MaxFrameBytes, 1, maxFrameBytes))
}

// check returns all mistakes, as usageErrors.
func (c *producerFlags) check() error {
	var stage error
	switch {
	case c.Stage == "off" && (len(c.For) > 0 || c.Model != ""):
		stage = mistaken("--for, --model: want --stage prune", "for", "model")
	case c.Stage == "prune" && len(c.For) == 0:
		stage = mistaken("--stage prune: want --for, the operators that consumers run", "stage")
	}
	return errors.Join(stage, checkBrokers(&c.Brokers), c.Security.check(), checkTopicName(c.Topic),
		checkAmount("partitions", c.Partitions, 1, maxPartitions),
		checkAmount("replication", c.Replication, 0, math.MaxInt16),
		checkAmount("max-message-bytes", c.MaxMessageBytes, 1, math.MaxInt32),
		checkAmount("loop", c.Loop, 0, math.MaxInt32),
		checkAmount("limit", c.Limit, 0, math.MaxInt64))
}

// check returns all mistakes, as usageErrors.
func (c *demoCmd) check() error {
	return errors.Join(checkAmount("frames", c.Frames, 0, math.MaxInt64),
		checkAmount("points", c.Points, 1, replay.MaxSyntheticPoints),
		checkOut(c.Out), checkListen(c.Listen))
}

// checkAmount returns a usageError if a flag's value is out of range.
func checkAmount[T int | int64 | Size | time.Duration](flag string, is, least, most T) error {
	switch {
	case is >= least && is <= most:
		return nil
	case most == math.MaxInt64:
		return wrongValue(flag, " %v: want %v or more", is, least)
	}
	return wrongValue(flag, " %v: want %v to %v", is, least, most)
}

// checkPartitionBy returns a usageError if folders are not
// dataset[,sequence][,date].
func checkPartitionBy(by []string) error {
	order, at := []string{"dataset", "sequence", "date"}, -1
	for _, key := range by {
		i := slices.Index(order, key)
		if i <= at || at < 0 && i > 0 {
			return wrongValue("partition-by", " %s: want dataset[,sequence][,date]", strings.Join(by, ","))
		}
		at = i
	}
	return nil
}

// idle returns the flags that were given another value than their default, as
// differs tells, and do nothing without others, with what these are. It is no
// mistake: a file may hold the settings of several tasks.
func (c *runFlags) idle(differs func(flag string) bool) (flags, want []string) {
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
		{"pprof", c.Serve.Listen != "off", "--listen"},
	} {
		if !f.works && differs(f.name) {
			flags, want = append(flags, f.name), append(want, f.wants)
		}
	}
	return flags, want
}

func checkOut(out string) error {
	if scheme, _, ok := strings.Cut(out, "://"); ok {
		return wrongValue("out", " %s: this version writes to folders, not to %s", discreet(out), scheme)
	}
	if out == "" {
		return wrongValue("out", ": no folder given")
	}
	return nil
}

// checkListen takes an address to serve on, or off.
func checkListen(address string) error {
	if address == "off" {
		return nil
	}
	if checkListenOn(address) != nil {
		return wrongValue("listen", " %s: want HOST:PORT or off", address)
	}
	return nil
}

func checkListenOn(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil && digits(port) { // else the name of a service
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return wrongValue("listen", " %s: want HOST:PORT", address)
	}
	return nil
}

// checkBrokers gives brokers that are named without a port Kafka's, 9092.
func checkBrokers(brokers *[]string) error {
	if len(*brokers) == 0 {
		return wrongValue("brokers", ": want HOST[:PORT][,HOST[:PORT]…]")
	}
	all, err := ingest.Addresses(*brokers)
	if err != nil {
		return wrongValue("brokers", ": %v", err)
	}
	*brokers = all
	return nil
}

// topicName is what brokers take as one.
var topicName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

func checkTopicName(topic string) error { return checkNameOfTopic("topic", topic) }

func checkNameOfTopic(flag, topic string) error {
	if !topicName.MatchString(topic) || topic == "." || topic == ".." {
		return wrongValue(flag, ": %.300q is no name of a topic: want letters, digits, dot, _ and -", topic)
	}
	return nil
}
