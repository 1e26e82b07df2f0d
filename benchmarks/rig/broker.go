package rig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Scripts name the two programs that start and stop a real Kafka:
//
//	Start PORT DIR     a node on 127.0.0.1:PORT (PORT+1 is free, too) with its
//	                   log below DIR; returns when it serves; a second call with
//	                   the same DIR keeps the log
//	Stop DIR [-9]      ends the node of DIR, -9 at once
type Scripts struct{ Start, Stop string }

// ScriptsFromEnv takes the scripts that ENTROPIPE_KAFKA_START and
// ENTROPIPE_KAFKA_STOP name, relative to the module's root, or else those of the
// module's own tests.
func ScriptsFromEnv() (Scripts, error) {
	root, err := Root()
	if err != nil {
		return Scripts{}, err
	}
	s := Scripts{cmp.Or(os.Getenv("ENTROPIPE_KAFKA_START"), ".ci/kafka/start"),
		cmp.Or(os.Getenv("ENTROPIPE_KAFKA_STOP"), ".ci/kafka/stop")}
	for _, path := range []*string{&s.Start, &s.Stop} {
		if !filepath.IsAbs(*path) {
			*path = filepath.Join(root, *path)
		}
		if _, err := os.Stat(*path); err != nil {
			return s, fmt.Errorf("script of a real Kafka: %w (set ENTROPIPE_KAFKA_START and ENTROPIPE_KAFKA_STOP)", err)
		}
	}
	return s, nil
}

// Kinds of brokers.
const (
	Embedded = "embedded"
	Kafka    = "kafka"
)

// Broker is a broker in a process of its own that can be killed and started
// again on the same address and log. It is used by one goroutine.
type Broker struct {
	Kind string // Embedded or Kafka
	Addr string // HOST:PORT
	Dir  string // holds the log

	program Program
	scripts Scripts
	port    string
	process *Process // embedded, while it runs
	running bool
}

// NewBroker makes an embedded broker with its log below dir, and starts it.
func (p Program) NewBroker(ctx context.Context, dir string) (*Broker, error) {
	return newBroker(ctx, &Broker{Kind: Embedded, Dir: dir, program: p})
}

// NewBroker makes a real one with its log below dir, and starts it.
func (s Scripts) NewBroker(ctx context.Context, dir string) (*Broker, error) {
	return newBroker(ctx, &Broker{Kind: Kafka, Dir: dir, scripts: s})
}

func newBroker(ctx context.Context, b *Broker) (*Broker, error) {
	port, err := freePorts()
	if err != nil {
		return nil, err
	}
	b.port = strconv.Itoa(port)
	b.Addr = net.JoinHostPort("127.0.0.1", b.port)
	if err := os.MkdirAll(b.Dir, 0o777); err != nil {
		return nil, err
	}
	return b, b.Start(ctx)
}

// freePorts returns a port that is free and whose next one is free, too. It
// lies below the range from which the kernel takes the ports of outgoing
// connections: a client that calls a dead broker there may be given the
// broker's own port, is then connected to itself, and the port is taken.
func freePorts() (int, error) {
	for range 200 {
		port := 20000 + 2*rand.IntN(5000)
		if free(port) && free(port+1) {
			return port, nil
		}
	}
	return 0, errors.New("no two free ports between 20000 and 30000")
}

func free(port int) bool {
	ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	ln.Close()
	return true
}

// Start starts the broker, again after Kill or Stop, and returns when it
// accepts connections. A port that a killed one still holds is waited for.
func (b *Broker) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 4*time.Minute, errors.New("4 minutes to start a broker"))
	defer cancel()
	for {
		err := b.start(ctx)
		if err == nil {
			b.running = true
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s broker on %s: %w: %w", b.Kind, b.Addr, context.Cause(ctx), err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (b *Broker) start(ctx context.Context) error {
	if b.Kind == Kafka {
		_, _, err := Run(ctx, Spec{Path: b.scripts.Start, Args: []string{b.port, b.Dir}})
		return err
	}
	p, err := Start(Spec{Path: b.program.Path,
		Args: []string{"broker", "--listen", b.Addr, "--data", filepath.Join(b.Dir, "log")},
		Log:  filepath.Join(b.Dir, "broker.log")})
	if err != nil {
		return err
	}
	for {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", b.Addr)
		if err == nil {
			conn.Close()
			b.process = p
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("the broker ended:\n%s", p.Tail(5))
		case <-ctx.Done():
			p.Kill()
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Kill ends the broker with kill -9.
func (b *Broker) Kill() error { return b.end(killed) }

// Stop asks the broker to end. Further calls do nothing.
func (b *Broker) Stop() error { return b.end(asked) }

// ending is the way in which a broker ends.
type ending int

const (
	asked ending = iota
	killed
)

func (b *Broker) end(how ending) error {
	if !b.running {
		return nil
	}
	b.running = false
	switch {
	case b.Kind == Kafka && how == killed:
		return b.script(b.Dir, "-9")
	case b.Kind == Kafka:
		return b.script(b.Dir)
	case how == killed:
		b.process.Kill()
		return nil
	}
	_, err := b.process.Stop(2 * time.Minute)
	return err
}

func (b *Broker) script(args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	_, _, err := Run(ctx, Spec{Path: b.scripts.Stop, Args: args})
	return err
}

// Pid returns the process of an embedded broker, 0 for a real one.
func (b *Broker) Pid() int {
	if b.process == nil {
		return 0
	}
	return b.process.Pid()
}
