package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"entropipe/ingest"
	"entropipe/ingest/broker"
	"entropipe/schemas"
)

// proxy stands between a producer and its broker, and can be cut.
type proxy struct {
	net.Listener
	to    string
	mu    sync.Mutex
	conns []net.Conn
	away  bool        // takes no connection
	stall atomic.Bool // forwards requests, swallows answers
	wg    sync.WaitGroup
}

func startProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, to: to}
	p.wg.Go(p.serve)
	t.Cleanup(func() { l.Close(); p.cut(true); p.wg.Wait() })
	return p
}

func (p *proxy) serve() {
	for {
		c, err := p.Accept()
		if err != nil {
			return
		}
		up, err := net.Dial("tcp", p.to)
		if err != nil {
			c.Close()
			continue
		}
		if !p.keep(c, up) {
			c.Close()
			up.Close()
			continue
		}
		p.wg.Go(func() { defer up.Close(); io.Copy(up, c) })
		p.wg.Go(func() { defer c.Close(); p.back(c, up) })
	}
}

// keep notes both ends of a connection, unless there may be none.
func (p *proxy) keep(c, up net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.away {
		p.conns = append(p.conns, c, up)
	}
	return !p.away
}

func (p *proxy) back(c, up net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := up.Read(buf)
		if err != nil {
			return
		}
		if p.stall.Load() {
			continue
		}
		if _, err := c.Write(buf[:n]); err != nil {
			return
		}
	}
}

// cut ends all connections, and, if away, takes no other until the next cut.
func (p *proxy) cut(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

// behindProxy starts a broker that sends its clients through a proxy.
func behindProxy(t *testing.T) (*proxy, *broker.Broker, string) {
	l, err := net.Listen("tcp", ownHost()+":0")
	if err != nil {
		t.Fatal(err)
	}
	x := startProxy(t, l.Addr().String())
	l.Close()
	b := startBroker(t, broker.Config{Listen: x.to, Advertise: x.Addr().String(), Partitions: 1})
	return x, b, x.to
}

// ownHost is an address of this machine that no other process chooses ports of:
// one that is free for a moment is not taken meanwhile.
func ownHost() string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 64|pid>>16&63, pid>>8&255, pid&255)
}

// ticking yields small frames for ever. Before a frame it does what is to be done
// then: at that time the producer is neither about to begin nor at its end.
type ticking struct {
	n      int64
	before map[int64]func()
}

func (s *ticking) Next(it *Item) error {
	if do := s.before[s.n]; do != nil {
		do()
	}
	x := make([]float32, 1000)
	*it = Item{Sequence: "a", Number: s.n, Clock: SinceEpoch, TimeNs: s.n * 1e6}
	it.Cloud.Cloud32.X, it.Cloud.Cloud32.Y = x, x
	s.n++
	return nil
}
func (s *ticking) Rewind() error { s.n = 0; return nil }
func (s *ticking) Close() error  { return nil }

// Every frame is there, in order, when connections are cut again and again; a
// frame may be there twice.
func TestBrokerThatGoesAwayAndReturns(t *testing.T) {
	x, _, direct := behindProxy(t)
	log, book := logBook()
	p := &Producer{Brokers: []string{x.Addr().String()}, Topic: "t", Create: ingest.TopicSpec{Partitions: 1},
		Play: Play{Limit: 1500}, Log: log}
	cut := func() { x.cut(false) }
	st := produce(t, p, &ticking{before: map[int64]func(){300: cut, 600: func() {
		x.cut(true)
		before := p.Progress().Retries
		go func() { // beside the frames that follow
			eventually(t, "it is noticed", func() bool { return p.Progress().Retries > before })
			cut()
		}()
	}, 900: cut, 1200: cut}})
	if st.Frames != 1500 || st.Retries == 0 {
		t.Errorf("%+v", st)
	}
	if !strings.Contains(book.String(), "brokers do not take messages") {
		t.Errorf("nothing was logged: %q", book)
	}
	d, err := ingest.Describe(soon(t), []string{x.Addr().String()}, ingest.Security{}, "t")
	if err != nil {
		t.Fatal(err)
	}
	var dec schemas.Decoder
	next, twice := int64(0), 0
	for _, m := range consume(t, x.Addr().String(), "t", 1, int(d.Partitions[0].End)) {
		switch f := decode(t, &dec, m)[0]; {
		case f.FrameID == next:
			next++
		case f.FrameID < next:
			twice++
			next = f.FrameID + 1 // a batch that is repeated is repeated whole
		default:
			t.Fatalf("frame %d follows %d", f.FrameID, next-1)
		}
	}
	if next != 1500 {
		t.Errorf("the last frame is %d", next-1)
	}
	t.Logf("%d retries, %d frames twice, %s", st.Retries, twice, direct)
}

func TestPatienceEnds(t *testing.T) {
	x, _, _ := behindProxy(t)
	p := &Producer{Brokers: []string{x.Addr().String()}, Topic: "t", Patience: 2 * time.Second}
	st, err := p.Run(soon(t), &ticking{before: map[int64]func(){100: func() {
		eventually(t, "some are there", func() bool { return p.Progress().Messages > 0 })
		x.cut(true)
	}}})
	failsWith(t, err, "t/0", x.Addr().String(), "took nothing for 2s")
	if st.Messages == 0 {
		t.Errorf("%+v", st)
	}
}

func TestNoBroker(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	l, err := net.Listen("tcp", ownHost()+":0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	if _, err := (&Producer{Brokers: []string{addr}, Topic: "t"}).Run(ctx, &ticking{}); err == nil {
		t.Error("no error")
	}
}

// When it is told to stop it stops, and what it says was acknowledged is what
// the topic holds.
func TestCancelStopsAtOnceWithExactStats(t *testing.T) {
	b := startBroker(t, broker.Config{Partitions: 1})
	for _, c := range []struct {
		rate     Rate
		messages int64 // acknowledged before it is told to
	}{{Rate{max: true}, 500}, {Rate{}, 100}, {Rate{hz: 1e-4}, 1}} {
		rate := c.rate
		topic := "t" + rate.String()
		p := &Producer{Brokers: []string{b.Addr()}, Topic: topic, Create: ingest.TopicSpec{Partitions: 1},
			Play: Play{Rate: rate}}
		ctx, cancel := context.WithCancel(soon(t)) // the second frame at the lowest rate is due in hours
		var at, asked time.Time
		begun := time.Now()
		go func() {
			defer cancel()
			eventually(t, "it is at work", func() bool { return p.Progress().Messages >= c.messages })
			at = time.Now()
			time.Sleep(50 * time.Millisecond) // Elapsed must contain this pause
			asked = time.Now()
		}()
		st, err := p.Run(ctx, &ticking{})
		ended := time.Now()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, %s after the end was asked for", rate, err, ended.Sub(asked))
		}
		d, err := ingest.Describe(soon(t), []string{b.Addr()}, ingest.Security{}, topic)
		if err != nil || d.Partitions[0].End != st.Messages || st.Messages == 0 {
			t.Errorf("%s: %d messages acknowledged, the topic holds %+v, %v", rate, st.Messages, d.Partitions, err)
		}
		if st.Elapsed < asked.Sub(at) || st.Elapsed > ended.Sub(begun) || p.Progress() != st {
			t.Errorf("%s: %+v, progress %+v", rate, st, p.Progress())
		}
	}
}

// A broker that accepts everything and answers nothing does not hold us up for
// as long as a request may take.
func TestCancelDoesNotWaitForAnAnswer(t *testing.T) {
	x, _, _ := behindProxy(t)
	p := &Producer{Brokers: []string{x.Addr().String()}, Topic: "t"}
	ctx, cancel := context.WithCancel(soon(t))
	defer cancel()
	var asked time.Time
	if _, err := p.Run(ctx, &ticking{before: map[int64]func(){
		100: func() {
			eventually(t, "some are there", func() bool { return p.Progress().Messages > 0 })
			x.stall.Store(true)
		},
		200: func() { asked = time.Now(); cancel() },
	}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if took := time.Since(asked); took > 12*time.Second { // a request may take 15 s and more
		t.Errorf("it took %s", took)
	}
}
