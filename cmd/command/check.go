package command

import (
	"math"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"entropipe/cmd/config/value"
	"entropipe/cmd/mistake"
	"entropipe/ingest"
)

// What the grammar cannot say of flags: the checks here are made before
// anything is opened or made, so that a mistake leaves no trace.

// CheckAmount returns a Usage if a flag's value is out of range.
func CheckAmount[T int | int64 | value.Size | time.Duration](flag string, is, least, most T) error {
	switch {
	case is >= least && is <= most:
		return nil
	case most == math.MaxInt64:
		return mistake.Value(flag, " %v: want %v or more", is, least)
	}
	return mistake.Value(flag, " %v: want %v to %v", is, least, most)
}

func CheckOut(out string) error {
	if scheme, _, ok := strings.Cut(out, "://"); ok {
		return mistake.Value("out", " %s: this version writes to folders, not to %s", value.Discreet(out), scheme)
	}
	if out == "" {
		return mistake.Value("out", ": no folder given")
	}
	return nil
}

// CheckListen takes an address to serve on, or off.
func CheckListen(address string) error {
	if address == "off" {
		return nil
	}
	if CheckListenOn(address) != nil {
		return mistake.Value("listen", " %s: want HOST:PORT or off", address)
	}
	return nil
}

func CheckListenOn(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil && value.Digits(port) { // else the name of a service
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return mistake.Value("listen", " %s: want HOST:PORT", address)
	}
	return nil
}

// CheckBrokers gives brokers that are named without a port Kafka's, 9092.
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

// topicName is what brokers take as one.
var topicName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

func CheckTopicName(topic string) error { return CheckNameOfTopic("topic", topic) }

func CheckNameOfTopic(flag, topic string) error {
	if !topicName.MatchString(topic) || topic == "." || topic == ".." {
		return mistake.Value(flag, ": %.300q is no name of a topic: want letters, digits, dot, _ and -", topic)
	}
	return nil
}

// Bounds of flags, far from what anybody needs.
const (
	MinMemory     = 64 << 10
	MaxSize       = 1 << 50
	MaxWorkers    = 4096
	MaxFrameBytes = 1 << 30
	MaxPartitions = 10_000
	MaxPack       = 10_000
)
