package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

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

// check returns the first mistake, as a usageError.
func (c *runFlags) check() error {
	if err := cmp.Or(checkBrokers(c.Source.Brokers), c.Source.Security.check()); err != nil {
		return err
	}
	if len(c.Source.Topic) == 0 {
		return usageError{errors.New("--topic: no topic given")}
	}
	for _, topic := range c.Source.Topic {
		if err := checkTopicName(topic); err != nil {
			return err
		}
	}
	if err := cmp.Or(checkOut(c.Output.Out), checkPartitionBy(c.Output.PartitionBy), checkListen(c.Serve.Listen)); err != nil {
		return err
	}
	if err := cmp.Or(c.Stage.check(&c.Publish), c.Publish.check(c.Source.Topic), c.Tokens.check(), checkOps(c.Frames.Ops), checkRaw(c.Frames.Raw, c.Source.Topic)); err != nil {
		return err
	}
	return c.checkAmounts()
}

// checkOps finds operators beside none.
func checkOps(ops []string) error {
	if len(ops) > 1 && slices.Contains(ops, "none") {
		return usageError{errors.New("--ops none: it stands alone")}
	}
	return nil
}

// checkRaw finds what --raw does not know.
func checkRaw(settings, topics []string) error {
	_, err := rawTopics(settings, topics)
	return err
}

func (c *runFlags) checkAmounts() error {
	return cmp.Or(
		checkAmount("session-timeout", c.Source.Session, 100*time.Millisecond, 24*time.Hour),
		checkAmount("rebalance-timeout", c.Source.Rebalance, 100*time.Millisecond, 24*time.Hour),
		checkAmount("workers", c.Resource.Workers, 0, maxWorkers),
		checkAmount("memory", c.Resource.Memory, minMemory, maxSize),
		checkAmount("roll-bytes", c.Output.RollBytes, 1, maxSize),
		checkAmount("roll-records", c.Output.RollRecords, 1, 1<<50),
		checkAmount("entropy-every", c.Frames.EntropyEvery, 0, 1<<40),
		checkAmount("max-frame-bytes", c.Frames.MaxFrameBytes, 1, maxFrameBytes))
}

// check returns the first mistake, as a usageError.
func (c *producerFlags) check() error {
	switch {
	case c.Stage == "off" && (len(c.For) > 0 || c.Model != ""):
		return usageError{errors.New("--for, --model: want --stage prune")}
	case c.Stage == "prune" && len(c.For) == 0:
		return usageError{errors.New("--stage prune: want --for, the operators that consumers run")}
	}
	return cmp.Or(checkBrokers(c.Brokers), c.Security.check(), checkTopicName(c.Topic),
		checkAmount("partitions", c.Partitions, 1, maxPartitions),
		checkAmount("replication", c.Replication, 0, math.MaxInt16),
		checkAmount("max-message-bytes", c.MaxMessageBytes, 1, math.MaxInt32),
		checkAmount("loop", c.Loop, 0, math.MaxInt32),
		checkAmount("limit", c.Limit, 0, math.MaxInt64))
}

// check returns the first mistake, as a usageError.
func (c *demoCmd) check() error {
	return cmp.Or(checkAmount("frames", c.Frames, 0, math.MaxInt64),
		checkAmount("points", c.Points, 1, replay.MaxSyntheticPoints),
		checkOut(c.Out), checkListen(c.Listen))
}

// checkAmount returns a usageError if a flag's value is out of range.
func checkAmount[T int | int64 | Size | time.Duration](flag string, is, least, most T) error {
	switch {
	case is >= least && is <= most:
		return nil
	case most == math.MaxInt64:
		return usageError{fmt.Errorf("--%s %v: want %v or more", flag, is, least)}
	}
	return usageError{fmt.Errorf("--%s %v: want %v to %v", flag, is, least, most)}
}

// checkPartitionBy returns a usageError if folders are not
// dataset[,sequence][,date].
func checkPartitionBy(by []string) error {
	order, at := []string{"dataset", "sequence", "date"}, -1
	for _, key := range by {
		i := slices.Index(order, key)
		if i <= at || at < 0 && i > 0 {
			return usageError{fmt.Errorf("--partition-by %s: want dataset[,sequence][,date]", strings.Join(by, ","))}
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
		return usageError{fmt.Errorf("--out %s: this version writes to folders, not to %s", out, scheme)}
	}
	if out == "" {
		return usageError{errors.New("--out: no folder given")}
	}
	return nil
}

// checkListen takes an address to serve on, or off.
func checkListen(address string) error {
	if address == "off" {
		return nil
	}
	if checkListenOn(address) != nil {
		return usageError{fmt.Errorf("--listen %s: want HOST:PORT or off", address)}
	}
	return nil
}

func checkListenOn(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil && digits(port) { // else the name of a service
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return usageError{fmt.Errorf("--listen %s: want HOST:PORT", address)}
	}
	return nil
}

func checkBrokers(brokers []string) error {
	if len(brokers) == 0 {
		return usageError{errors.New("--brokers: want HOST:PORT[,HOST:PORT…]")}
	}
	for _, b := range brokers {
		if host, port, err := net.SplitHostPort(strings.TrimSpace(b)); err != nil || host == "" || port == "" {
			return usageError{fmt.Errorf("--brokers: %q: want HOST:PORT", b)}
		}
	}
	return nil
}

// topicName is what brokers take as one.
var topicName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

func checkTopicName(topic string) error { return checkNameOfTopic("topic", topic) }

func checkNameOfTopic(flag, topic string) error {
	if !topicName.MatchString(topic) || topic == "." || topic == ".." {
		return usageError{fmt.Errorf("--%s: %.300q is no name of a topic: want letters, digits, dot, _ and -", flag, topic)}
	}
	return nil
}

// inFile is a mistake of the flags as one of the configuration, where a file
// was given: it may stand there.
func inFile(file string, err error) error {
	if usage := (usageError{}); file != "" && errors.As(err, &usage) {
		return &ConfigError{Problems: []Problem{{File: shownPath(file), What: err.Error()}}}
	}
	return err
}
