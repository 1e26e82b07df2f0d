package ingest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	kafka "github.com/segmentio/kafka-go"
)

// cluster is the way to some brokers.
type cluster struct {
	brokers   []string
	security  Security
	clientID  string
	addr      net.Addr
	transport *discreet
	client    *kafka.Client
	connected atomic.Bool // the last request was answered
}

// newCluster prepares connections; none is opened before the first request.
// The metadata of topics are renewed every second on average, which is how
// fast a new leader is found.
func newCluster(brokers []string, security Security, clientID string, topics []string) (*cluster, error) {
	if len(brokers) == 0 {
		return nil, errors.New("no Kafka broker given: name one with --brokers")
	}
	all, err := Addresses(brokers)
	if err != nil {
		return nil, fmt.Errorf("brokers: %w", err)
	}
	k := &cluster{brokers: all, security: security, clientID: clientID}
	k.addr = kafka.TCP(k.brokers...)
	k.transport = &discreet{security: security, Transport: &kafka.Transport{
		Dial:           dialer((&net.Dialer{Timeout: 3 * time.Second, KeepAlive: 10 * time.Second}).DialContext).link,
		DialTimeout:    callTimeout,
		MetadataTTL:    2 * time.Second,
		MetadataTopics: topics, // without it each request asks for every topic of the cluster
		ClientID:       clientID,
		TLS:            security.TLS,
		SASL:           security.SASL,
	}}
	k.client = &kafka.Client{Addr: k.addr, Transport: k.transport, Timeout: callTimeout}
	return k, nil
}

// heard notes whether the brokers answer. A request that its caller gave up
// tells nothing.
func (k *cluster) heard(ctx context.Context, err error) {
	if err == nil || !errors.Is(ctx.Err(), context.Canceled) {
		k.connected.Store(err == nil)
	}
}

func (k *cluster) close() { k.transport.CloseIdleConnections() }

// ErrNoBroker: none of the brokers that were named could be reached.
var ErrNoBroker = errors.New("no Kafka broker answers")

// reach makes sure that a broker answers, within the time to connect; one that
// answers and refuses this client is not asked again. It uses kafka-go's Dialer,
// which names what is wrong; Transport calls everything "no topic" or "broker not
// available".
func (k *cluster) reach(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	d := kafka.Dialer{ClientID: k.clientID, Timeout: min(3*time.Second, within), TLS: k.security.TLS,
		SASLMechanism: k.security.SASL}
	var b backoff
	var last error // the last informative error; a timeout that cuts an attempt off is none
	for {
		for _, addr := range k.brokers {
			err := k.greet(ctx, &d, addr)
			if err == nil {
				return nil
			}
			if wrong := k.security.mismatch(addr, err); wrong != "" {
				return fmt.Errorf("%w this client: %s, %s (%w)", ErrNoBroker, addr, wrong, k.security.conceal(err))
			}
			if last == nil || ctx.Err() == nil {
				last = err
			}
		}
		if err := b.wait(ctx); err != nil {
			return fmt.Errorf(`%w at %s within %v: %w; start one ("entropipe broker") or name another with --brokers`,
				ErrNoBroker, strings.Join(k.brokers, ", "), within, k.security.conceal(last))
		}
	}
}

// greet connects to one broker and asks what it speaks, and for the cluster: a
// broker that wants SASL answers the first, and hangs up at the second.
func (k *cluster) greet(ctx context.Context, d *kafka.Dialer, addr string) error {
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err == nil {
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(d.Timeout))
		if _, err = conn.ApiVersions(); err == nil {
			_, err = conn.Brokers()
		}
	}
	switch {
	case hangsUp(err):
		return fmt.Errorf("%s closes the connection: %s (%w)", addr, k.security.want(), err)
	case k.security.TLS != nil && errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s does not answer: it may speak no TLS at this port (%w)", addr, err)
	}
	return err
}
