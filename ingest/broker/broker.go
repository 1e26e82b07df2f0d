// Package broker runs a Kafka broker inside the process, with its log on disk, for
// demo, laptops and tests that have no cluster.
//
// It is not a broker for production: it is one node without replication and
// security. Records are in the page cache when they are acknowledged, so they
// survive the death of the process (kill -9), but not of the machine.
//
// kfake implements the protocol and the log. This package adds a choice of the
// listening address, a lock on the folder, and the refusal of topic names that are no
// file names. It also gives every new topic, even one that its first use creates, the
// limit on message sizes and its folder at once.
package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Defaults of Config.
const (
	DefaultListen          = "127.0.0.1:9092"
	DefaultPartitions      = 4
	DefaultMaxMessageBytes = 16 << 20
)

// Config configures a Broker. The zero value is a broker on DefaultListen that
// deletes its data when it closes.
type Config struct {
	// Listen is the HOST:PORT to listen on, and nothing else is. Port 0 takes
	// a free one.
	Listen string
	// Advertise is the HOST:PORT that clients are sent to after their first
	// request. Empty: Listen, or 127.0.0.1 where Listen names every interface.
	Advertise string
	// Dir holds the log. Empty: a temporary folder that Close removes.
	Dir string
	// Partitions of a topic whose creator does not say how many.
	Partitions int
	// MaxMessageBytes limits a batch of a topic whose creator sets no
	// max.message.bytes.
	MaxMessageBytes int64
	// Log gets a line a minute while the folder cannot be written, as on a full
	// disk. nil: silent.
	Log *slog.Logger
}

// Broker is a running broker. Any goroutine may call its methods.
type Broker struct {
	cluster *kfake.Cluster
	addr    string
	dir     string
	lock    *os.File
	temp    bool
	once    sync.Once
}

// Start opens the folder, replays its log and listens. It fails when the
// address is taken, when another broker has the folder, or when the log there
// cannot be read.
func Start(cfg Config) (*Broker, error) {
	cfg = cfg.withDefaults()
	if cfg.Partitions < 1 || cfg.MaxMessageBytes < 1024 || cfg.MaxMessageBytes > 1<<30 {
		return nil, fmt.Errorf("broker: %d partitions and messages of %d bytes: want at least 1, and 1 KiB to 1 GiB",
			cfg.Partitions, cfg.MaxMessageBytes)
	}
	b := &Broker{dir: cfg.Dir}
	if err := b.openDir(); err != nil {
		return nil, err
	}
	if err := b.start(cfg); err != nil {
		b.closeDir()
		return nil, err
	}
	return b, nil
}

// Addr returns the HOST:PORT that clients use.
func (b *Broker) Addr() string { return b.addr }

// Dir returns the folder that holds the log.
func (b *Broker) Dir() string { return b.dir }

// Close writes the state of groups and producers, stops listening, and removes
// the folder if it was a temporary one. Further calls do nothing.
func (b *Broker) Close() {
	b.once.Do(func() {
		b.cluster.Close()
		b.closeDir()
	})
}

func (c Config) withDefaults() Config {
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	if c.Partitions == 0 {
		c.Partitions = DefaultPartitions
	}
	if c.MaxMessageBytes == 0 {
		c.MaxMessageBytes = DefaultMaxMessageBytes
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

func (b *Broker) start(cfg Config) error {
	ln, err := listen(cfg.Listen, cfg.Advertise)
	if err != nil {
		return err
	}
	b.addr = ln.Addr().String()
	// kfake asks for a listener on 127.0.0.1 and a port of its own choice.
	given := func(string, string) (net.Listener, error) { return ln, nil }
	b.cluster, err = kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.ListenFn(given),
		kfake.DataDir(b.dir),
		kfake.WithLogger(&brokerLog{log: cfg.Log, dir: b.dir}),
		kfake.DefaultNumPartitions(cfg.Partitions),
		kfake.GroupMinSessionTimeout(time.Second),
		kfake.BrokerConfigs(map[string]string{"message.max.bytes": strconv.FormatInt(cfg.MaxMessageBytes, 10)}),
	)
	if err != nil {
		ln.Close()
		return fmt.Errorf("broker: the log in %s cannot be used: %w", b.dir, err)
	}
	newTopics{b.cluster, strconv.FormatInt(cfg.MaxMessageBytes, 10)}.install()
	return nil
}

// listener tells clients another address than the one that is bound.
type listener struct {
	net.Listener
	advertised address
}

func (l listener) Addr() net.Addr { return l.advertised }

type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }

func listen(addr, advertise string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("broker: listen address %q: want HOST:PORT", addr)
	}
	if _, port, err := net.SplitHostPort(advertise); advertise != "" && (err != nil || port == "") {
		return nil, fmt.Errorf("broker: advertised address %q: want HOST:PORT", advertise)
	}
	ln, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("broker: another process listens on %s already; name another address with --listen",
			addr)
	}
	if err != nil {
		return nil, fmt.Errorf("broker: cannot listen on %s: %w", addr, err)
	}
	if advertise == "" {
		if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
			host = "127.0.0.1"
		}
		_, port, _ := net.SplitHostPort(ln.Addr().String())
		advertise = net.JoinHostPort(host, port)
	}
	return listener{ln, address(advertise)}, nil
}
