package replay

import (
	"context"
	"errors"
	"io"
	"net"
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
	down  atomic.Bool
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
	t.Cleanup(func() { l.Close(); p.cut(); p.wg.Wait() })
	return p
}

func (p *proxy) serve() {
	for {
		c, err := p.Accept()
		if err != nil {
			return
		}
		up, err := net.Dial("tcp", p.to)
		if err != nil || p.down.Load() {
			c.Close()
			if err == nil {
				up.Close()
			}
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, c, up)
		p.mu.Unlock()
		p.wg.Go(func() { defer up.Close(); io.Copy(up, c) })
		p.wg.Go(func() { defer c.Close(); p.back(c, up) })
	}
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

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

// behindProxy starts a broker that sends its clients through a proxy.
func behindProxy(t *testing.T) (*proxy, *broker.Broker, string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x := startProxy(t, l.Addr().String())
	l.Close()
	b := startBroker(t, broker.Config{Listen: x.to, Advertise: x.Addr().String(), Partitions: 1})
	return x, b, x.to
}

// ticking yields small frames for ever.
type ticking struct{ n int64 }

func (s *ticking) Next(it *Item) error {
	x := make([]float32, 1000)
	*it = Item{Sequence: "a", Number: s.n, Clock: SinceEpoch, TimeNs: s.n * 1e6}
	it.Cloud.X, it.Cloud.Y = x, x
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
	p := &Producer{Brokers: []string{x.Addr().String()}, Topic: "t", Create: ingest.TopicSpec{Partitions: 1}, Play: Play{Limit: 1500}, Log: log}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, away := range []time.Duration{0, 300 * time.Millisecond, 0} {
			time.Sleep(250 * time.Millisecond)
			x.down.Store(away > 0)
			x.cut()
			time.Sleep(away)
			x.down.Store(false)
		}
	}()
	st := produce(t, p, &ticking{})
	<-done
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
	p := &Producer{Brokers: []string{x.Addr().String()}, Topic: "t", Patience: 400 * time.Millisecond}
	go func() {
		time.Sleep(200 * time.Millisecond)
		x.down.Store(true)
		x.cut()
	}()
	st, err := p.Run(soon(t), &ticking{})
	failsWith(t, err, "t/0", x.Addr().String(), "took nothing for 400ms")
	if st.Messages == 0 {
		t.Errorf("%+v", st)
	}
}

func TestNoBroker(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
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
	for _, rate := range []Rate{{max: true}, {}, {hz: 0.1}} {
		topic := "t" + rate.String()
		p := &Producer{Brokers: []string{b.Addr()}, Topic: topic, Create: ingest.TopicSpec{Partitions: 1}, Play: Play{Rate: rate}}
		ctx, cancel := context.WithCancel(context.Background())
		var asked time.Time
		time.AfterFunc(500*time.Millisecond, func() { asked = time.Now(); cancel() })
		st, err := p.Run(ctx, &ticking{})
		took := time.Since(asked)
		if !errors.Is(err, context.Canceled) || took > 2*time.Second {
			t.Errorf("%s: %v, %s after the end was asked for", rate, err, took)
		}
		d, err := ingest.Describe(soon(t), []string{b.Addr()}, ingest.Security{}, topic)
		if err != nil || d.Partitions[0].End != st.Messages || st.Messages == 0 {
			t.Errorf("%s: %d messages acknowledged, the topic holds %+v, %v", rate, st.Messages, d.Partitions, err)
		}
		if st.Elapsed < 400*time.Millisecond || p.Progress() != st {
			t.Errorf("%s: %+v, progress %+v", rate, st, p.Progress())
		}
	}
}

// A broker that accepts everything and answers nothing does not hold us up.
func TestCancelDoesNotWaitForAnAnswer(t *testing.T) {
	x, _, _ := behindProxy(t)
	p := &Producer{Brokers: []string{x.Addr().String()}, Topic: "t"}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var asked time.Time
	time.AfterFunc(300*time.Millisecond, func() { x.stall.Store(true) })
	time.AfterFunc(600*time.Millisecond, func() { asked = time.Now(); cancel() })
	if _, err := p.Run(ctx, &ticking{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if took := time.Since(asked); took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
}
