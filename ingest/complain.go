package ingest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Complaints keep the log short while brokers are away: then every partition, the
// group and what is published fail at once, for one reason. There is a line a
// minute for each broker, the first one at once; the others are counted, and
// logged for those who debug. A Consumer and an Outbox of the same brokers share
// one. The zero value is ready; its methods may be called from any goroutine.
type Complaints struct {
	mu     sync.Mutex
	about  map[string]time.Time // the last line about a broker
	nobody time.Time            // the last line of which nobody knew whose failure it was
	untold int                  // since the last line

	named            time.Time // the last failure that names a broker
	nameless, latest time.Time // the first that names none since then, and the last
}

const (
	complainEvery = time.Minute // a line about a broker
	// in an outage of brokers that were named, before failures that name none are a line
	namelessAlone = 5 * time.Second
	namelessRests = time.Minute     // after which these begin anew
	outageLasts   = 2 * time.Minute // after the last failure that names a broker
	debugEvery    = 5 * time.Second // a line of a partition for those who debug
)

// next tells whether there may be a line about err now, and how many there could
// have been since the last one.
//
// Some failures do not say which broker they are about: a connection that was lost
// between requests, a coordinator that nobody knows. They are taken for those of a
// broker that the log has: they are a line only where nothing else was in the last
// minute, and, while named brokers fail, where these have been silent for a while.
// The next broker to fail is taken for theirs.
func (c *Complaints) next(err error) (told bool, untold int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for broker, logged := range c.about {
		if now.Sub(logged) >= complainEvery {
			delete(c.about, broker)
		}
	}
	if now.Sub(c.nobody) >= complainEvery {
		c.nobody = time.Time{}
	}
	broker := brokerOf(err)
	logged := !c.about[broker].IsZero()
	switch alone := c.alone(broker, now); {
	case broker == "":
		logged = !alone || len(c.about) > 0 || !c.nobody.IsZero()
	case !logged && !c.nobody.IsZero():
		c.note(broker, c.nobody)
		c.nobody, logged = time.Time{}, true
	}
	if logged {
		c.untold++
		return false, 0
	}
	if c.note(broker, now); broker == "" {
		c.nobody = now
	}
	untold, c.untold = c.untold, 0
	return true, untold
}

// alone notes a failure, and tells whether those that name no broker are the only
// ones, and have been for a while if others were before.
func (c *Complaints) alone(broker string, now time.Time) bool {
	if broker != "" {
		c.named, c.nameless = now, time.Time{}
		return false
	}
	if c.nameless.IsZero() || now.Sub(c.latest) > namelessRests {
		c.nameless = now
	}
	c.latest = now
	return now.Sub(c.named) >= outageLasts || now.Sub(c.nameless) >= namelessAlone
}

// note remembers a line about a broker.
func (c *Complaints) note(broker string, at time.Time) {
	if c.about == nil {
		c.about = map[string]time.Time{}
	}
	if broker != "" {
		c.about[broker] = at
	}
}

// brokerOf returns the address of the broker that err is about, "" if it does not
// say.
func brokerOf(err error) string {
	var at *atBroker
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case errors.As(err, &at):
		return at.address
	case errors.As(err, &dns):
		return dns.Name
	case errors.As(err, &op) && op.Addr != nil:
		return op.Addr.String()
	}
	return ""
}

// atBroker is an error with the broker whose connection it came from. The errors
// of package net have it themselves; the end of a stream has not.
type atBroker struct {
	address string
	err     error
}

func (e *atBroker) Error() string { return e.address + ": " + e.err.Error() }
func (e *atBroker) Unwrap() error { return e.err }

// from returns err as one of the connection's broker.
func from(conn net.Conn, err error) error {
	if err == nil || brokerOf(err) != "" || conn.RemoteAddr() == nil {
		return err
	}
	return &atBroker{conn.RemoteAddr().String(), err}
}

// warn logs a failure of brokers as a warning if there may be a line now, else for
// those who debug.
func (c *Complaints) warn(log *slog.Logger, what string, err error, about ...any) {
	level := slog.LevelWarn
	told, untold := c.next(err)
	if !told {
		level = slog.LevelDebug
	}
	about = append(about, "error", err)
	if untold > 0 {
		about = append(about, "others_not_logged", untold)
	}
	log.Log(context.Background(), level, what, about...)
}

// complain logs a failure of the partition.
func (p *Partition) complain(what string, offset int64, err error) {
	if time.Since(p.logged) < debugEvery {
		return
	}
	p.logged = time.Now()
	p.c.complaints.warn(p.c.log, what, err, "topic", p.Topic, "partition", p.ID, "offset", offset)
}
