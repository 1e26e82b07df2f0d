package command

import (
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"entropipe/cmd/config/value"
	"entropipe/cmd/mistake"
	"entropipe/ingest"
)

// The checks here are those that the grammar cannot express. Commands make them before
// they open or create anything, so that a mistake leaves no trace.

// CheckAmount returns a Usage if the value of a flag is not in [least, most].
// math.MaxInt64 stands for no upper bound.
func CheckAmount[T int | int64 | value.Size | time.Duration](flag string, is, least, most T) error {
	switch {
	case is >= least && is <= most:
		return nil
	case most == math.MaxInt64:
		return mistake.Value(flag, " %v: want %v or more", is, least)
	}
	return mistake.Value(flag, " %v: want %v to %v", is, least, most)
}

// CheckFolder returns a Usage if the value of a flag is no folder.
func CheckFolder(flag, out string) error {
	if scheme, _, ok := strings.Cut(out, "://"); ok {
		return mistake.Value(flag, " %s: want a folder or s3://BUCKET/PREFIX, not %s", value.Discreet(out), scheme)
	}
	if out == "" {
		return mistake.Value(flag, ": no folder given")
	}
	return nil
}

// CheckFileOut returns a Usage if the file that --out names cannot be made, since its folder is
// not there or a folder has its name. A long command would say so at its end.
func CheckFileOut(path string) error {
	if at, err := os.Stat(filepath.Dir(path)); err != nil || !at.IsDir() {
		return mistake.Value("out", " %s: there is no folder %s", path, filepath.Dir(path))
	}
	if at, err := os.Stat(path); err == nil && at.IsDir() {
		return mistake.Value("out", " %s: it is a folder; want the name of a file", path)
	}
	return nil
}

// CheckNoCheckpoint refuses to begin a training where an interrupted one left its checkpoint,
// which the new one would replace. A folder is none.
func CheckNoCheckpoint(path string) error {
	if at, err := os.Stat(path); err != nil || at.IsDir() {
		return nil
	}
	return fmt.Errorf("%s is there: a training was interrupted. --resume goes on from it; remove the file to begin "+
		"anew", path)
}

// CheckListen returns a Usage if --listen is neither HOST:PORT nor off.
func CheckListen(address string) error {
	if address == "off" {
		return nil
	}
	if CheckListenOn(address) != nil {
		return mistake.Value("listen", " %s: want HOST:PORT or off", address)
	}
	return nil
}

// CheckListenOn returns a Usage if --listen is not HOST:PORT.
func CheckListenOn(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil && value.Digits(port) { // a port may also be the name of a service
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return mistake.Value("listen", " %s: want HOST:PORT", address)
	}
	return nil
}

// CheckBrokers returns a Usage if --brokers is empty or no list of addresses. It adds
// Kafka's port, 9092, to addresses without one.
func CheckBrokers(brokers *[]string) error {
	if len(*brokers) == 0 {
		return mistake.Value("brokers", ": want HOST[:PORT][,HOST[:PORT]…]")
	}
	all, err := ingest.Addresses(*brokers)
	if err != nil {
		return mistake.Value("brokers", ": %v", err)
	}
	*brokers = all
	return nil
}

// topicName matches the names that brokers accept, with . and .. besides.
var topicName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

// CheckTopicName returns a Usage if the value of --topic is no name of a topic.
func CheckTopicName(topic string) error { return CheckNameOfTopic("topic", topic) }

// CheckNameOfTopic is CheckTopicName for the value of another flag.
func CheckNameOfTopic(flag, topic string) error {
	if !topicName.MatchString(topic) || topic == "." || topic == ".." {
		return mistake.Value(flag, ": %.300q is no name of a topic: want letters, digits, dot, _ and -", topic)
	}
	return nil
}

// Bounds of flags, far beyond useful values: they keep sums from overflowing and requests
// from exhausting memory.
const (
	MinMemory     = 64 << 10
	MaxSize       = 1 << 50
	MaxWorkers    = 4096
	MaxFrameBytes = 1 << 30
	MaxPartitions = 10_000
	MaxPack       = 10_000
)
