package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	kafka "github.com/segmentio/kafka-go"
)

// refusedBy is a connection that a broker refuses.
func refusedBy(host int) error {
	return fmt.Errorf("kafka: %w", &net.OpError{Op: "dial", Net: "tcp",
		Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, byte(host)), Port: 9092}, Err: syscall.ECONNREFUSED})
}

// Law: however many partitions fail, and the group and the outbox beside them, each
// broker that is away is a line a minute, the first one at once. Failures that name
// no broker are no further lines.
func TestOutagesAreALineAMinuteAndBroker(t *testing.T) {
	for _, c := range []struct {
		partitions, brokers int
		nameless            bool // every third failure does not say whose it is
		lines               int  // in ten minutes
	}{{1, 1, false, 10}, {500, 1, false, 10}, {500, 3, false, 30}, {500, 3, true, 30}, {1, 1, true, 10},
		{3, 0, true, 10}} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			consumer := &Consumer{log: slog.New(slog.NewTextHandler(&log, nil)), complaints: new(Complaints)}
			var all []*Partition
			for id := range c.partitions {
				all = append(all, consumer.partition("t", int32(id), nil))
			}
			for k := range 1200 { // ten minutes
				for i, p := range all {
					var err error = &atBroker{"10.0.0.7:9092", io.EOF}
					switch {
					case c.nameless && (k+i)%3 == 0 || c.brokers == 0:
						err = kafka.LeaderNotAvailable
					case c.brokers > 0:
						err = refusedBy(i % c.brokers)
					}
					p.complain("fetch fails", 7, err)
				}
				join := error(kafka.GroupCoordinatorNotAvailable)
				if c.brokers > 0 {
					join = refusedBy(0)
				}
				consumer.complaints.warn(consumer.log, "joining fails", join)
				time.Sleep(500 * time.Millisecond)
			}
			if n := strings.Count(log.String(), "level=WARN"); n != c.lines {
				t.Errorf("%+v made %d lines:\n%.4000s", c, n, log.String())
			}
			for host := range c.brokers {
				if n := strings.Count(log.String(), fmt.Sprintf("10.0.0.%d:9092", host)); n < 9 {
					t.Errorf("%+v: broker %d is named %d times", c, host, n)
				}
			}
			if told := strings.Contains(log.String(), "others_not_logged="); !told {
				t.Errorf("%+v: of others nothing is told:\n%.2000s", c, log.String())
			}
		})
	}
}

// The end of a stream gets the address of its broker; what has one keeps it.
func TestFailuresNameTheirBroker(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, err := range []error{io.EOF, fmt.Errorf("reading: %w", io.ErrUnexpectedEOF)} {
		got := from(conn, err)
		if brokerOf(got) != l.Addr().String() || !errors.Is(got, errors.Unwrap(err)) && !errors.Is(got, err) ||
			!strings.HasPrefix(got.Error(), l.Addr().String()+": ") {
			t.Errorf("%v: %v, of %q", err, got, brokerOf(got))
		}
	}
	if got := from(conn, refusedBy(3)); brokerOf(got) != "10.0.0.3:9092" ||
		strings.HasPrefix(got.Error(), l.Addr().String()) {
		t.Errorf("%v, of %q", got, brokerOf(got))
	}
	if from(conn, nil) != nil {
		t.Error("no error is one")
	}
	if got := brokerOf(&net.DNSError{Name: "kafka1"}); got != "kafka1" {
		t.Errorf("a name that is not known: %q", got)
	}
}
