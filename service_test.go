package main

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// These tests are about processes: signals, two at a time, and brokers that die.
// In all of them every acknowledged record must be in the output exactly once.

// fast are flags of run that make it commit often.
func fast(brokers, topic string, more ...string) []string {
	return append([]string{"run", "--brokers", brokers, "--topic", topic, "--out", "out", "--roll-records", "20", "--roll-age", "200ms", "--ops", "hull2d"}, more...)
}

// stopProducer ends a producer as Ctrl-C does, and returns how many frames it
// says were acknowledged.
func stopProducer(t *testing.T, p *process) int64 {
	t.Helper()
	p.signal(os.Interrupt)
	p.exits(0, patience)
	return frames(t, p.out())
}

// frames is the number in a producer's summary.
func frames(t *testing.T, summary string) int64 {
	t.Helper()
	_, text, _ := strings.Cut(summary, ": ")
	text, _, ok := strings.Cut(text, " frames in ")
	n, err := strconv.ParseInt(strings.ReplaceAll(text, " ", ""), 10, 64)
	if !ok || err != nil {
		t.Fatalf("no number of frames in the summary %q", summary)
	}
	return n
}

func TestInterruptedProducerSaysWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	brokers := startBroker(t)
	p := launch(t, t.TempDir(), spread(brokers, "points", "a", "--rate", "500hz")...)
	waitFor(t, "records", func() bool { return sent(t, brokers, "points") > 50 })
	begin := time.Now()
	said := stopProducer(t, p)
	took := time.Since(begin)
	// A request without an answer a second after the signal is cut off: the broker
	// may have it all the same.
	if there := sent(t, brokers, "points"); said > there || said < there && took < time.Second {
		t.Errorf("the producer says %d frames, the topic has %d; it ended after %v", said, there, took)
	}
}

// --until-end says where to stop, not how: a signal ends that too.
func TestStoppedRunCommitsWhatItHasRead(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]os.Signal{"SIGTERM": syscall.SIGTERM, "Ctrl-C": os.Interrupt} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brokers, dir := startBroker(t), t.TempDir()
			const n = 150 // few, so that memory is not what makes it commit
			must(t, dir, spread(brokers, "points", "a", "--frames", strconv.Itoa(n), "--rate", "max")...)
			// Nothing rolls by itself: only the end can commit.
			r := launch(t, dir, "run", "--brokers", brokers, "--out", "out", "--roll-age", "0", "--listen", "127.0.0.1:0")
			url := r.until(`metrics=(http://\S+)`)[1]
			waitFor(t, "the frames", func() bool { return metric(t, url, "entropipe_frames_total", `direction="in"`) == n })
			if m := manifests(t, filepath.Join(dir, "out")); m != 0 {
				t.Fatalf("%d commits before the end", m)
			}
			r.signal(s)
			r.exits(0, patience)
			r.says(`msg=done frames=` + strconv.Itoa(n) + ` `)
			holds(t, filepath.Join(dir, "out"), n)
			if left, err := os.ReadDir(filepath.Join(dir, "out", "_staging")); err != nil || len(left) > 0 {
				t.Errorf("%d folders are left in _staging; %v", len(left), err)
			}
		})
	}
}

// A signal while run still looks for its brokers is no failure.
func TestSignalWhileBrokersAreLookedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		args   []string
	}{
		"run":       {0, []string{"run", "--out", "out"}},
		"until end": {75, []string{"run", "--out", "out", "--until-end"}},
		"produce":   {0, []string{"produce", "synthetic"}},
	} {
		args := c.args
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A broker that takes connections and says nothing.
			silent, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer silent.Close()
			r := launch(t, t.TempDir(), append(args, "--brokers", silent.Addr().String())...)
			if err := silent.(*net.TCPListener).SetDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			conn, err := silent.Accept()
			if err != nil {
				t.Fatalf("%s has not asked the broker: %v", args[0], err)
			}
			defer conn.Close()
			r.signal(syscall.SIGTERM)
			r.exits(c.status, patience)
		})
	}
}

func TestSecondSignalAborts(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	const n = 40
	must(t, dir, "produce", "synthetic", "--frames", strconv.Itoa(n), "--points", "40000", "--rate", "max", "--brokers", brokers)
	r := launch(t, dir, "run", "--brokers", brokers, "--out", "out", "--roll-records", "2", "--workers", "1")
	waitFor(t, "a commit", func() bool { return manifests(t, filepath.Join(dir, "out")) > 0 })
	// Stopped, it gets both at once: it cannot drain in between.
	r.signal(syscall.SIGSTOP)
	r.signal(syscall.SIGTERM)
	r.signal(os.Interrupt)
	r.signal(syscall.SIGCONT)
	r.exits(130, patience)
	before := committed(verified(t, filepath.Join(dir, "out")))
	if before >= n {
		t.Errorf("all %d frames are committed: there was nothing to abort", before)
	}
	// Its own group has not missed the dead process yet.
	must(t, dir, "run", "--brokers", brokers, "--out", "out", "--until-end", "--group", "another")
	holds(t, filepath.Join(dir, "out"), n)
}

// brokerProcess starts a broker in a process of its own, whose log is in dir, and
// returns when it listens on address.
func brokerProcess(t *testing.T, dir, address string) *process {
	t.Helper()
	b := launch(t, dir, "broker", "--listen", address, "--data", "log")
	b.until("^" + regexp.QuoteMeta(address) + "$")
	return b
}

func TestStoppedBroker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	address := ownAddress(t)
	b := brokerProcess(t, dir, address)
	must(t, dir, spread(address, "points", "a", "--frames", "5", "--rate", "max")...)
	b.signal(syscall.SIGTERM)
	b.exits(0, patience)
	if got := strings.TrimSpace(b.out()); got != address {
		t.Errorf("stdout is %q, want the address alone", got)
	}
	brokerProcess(t, dir, address)
	if n := sent(t, address, "points"); n != 5 {
		t.Errorf("%d records after a restart, want 5", n)
	}
}

// feed starts three producers whose records spread over the partitions.
func feed(t *testing.T, dir, brokers, topic string) []*process {
	t.Helper()
	var ps []*process
	for _, name := range []string{"a", "b", "e"} {
		ps = append(ps, launch(t, dir, spread(brokers, topic, name, "--rate", "60hz")...))
	}
	waitFor(t, "the topic", func() bool { return sent(t, brokers, topic) > 0 })
	return ps
}

// stopFeed ends the producers and returns the number of records in the topic.
func stopFeed(t *testing.T, brokers, topic string, ps []*process) int64 {
	t.Helper()
	var said int64
	for _, p := range ps {
		said += stopProducer(t, p)
	}
	n := sent(t, brokers, topic)
	if said > n {
		t.Fatalf("the producers say that %d frames were acknowledged, but the topic has %d", said, n)
	}
	return n
}

func TestTwoRunsShareThePartitions(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	out := filepath.Join(dir, "out")
	feeding := feed(t, dir, brokers, "points")
	first := launch(t, dir, fast(brokers, "points")...)
	waitFor(t, "commits", func() bool { return manifests(t, out) > 3 })
	second := launch(t, dir, fast(brokers, "points")...)
	second.until(`msg=assigned .* partitions=[1-3]$`)
	seen := manifests(t, out)
	waitFor(t, "commits of both", func() bool { return manifests(t, out) > seen+10 })
	first.signal(syscall.SIGTERM)
	first.exits(0, patience)
	second.until(`msg=assigned .* partitions=4$`)
	n := stopFeed(t, brokers, "points", feeding)
	waitFor(t, "the rest", func() bool { return reached(t, out) >= n })
	second.signal(syscall.SIGTERM)
	second.exits(0, patience)
	holds(t, out, n)
}

// Two groups know nothing of each other: both read every partition, and only
// the output tells who was first.
func TestTwoGroupsOnOneOutput(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	out := filepath.Join(dir, "out")
	feeding := feed(t, dir, brokers, "points")
	runs := []*process{launch(t, dir, fast(brokers, "points", "--group", "one")...), launch(t, dir, fast(brokers, "points", "--group", "two")...)}
	for _, r := range runs {
		r.until(`msg=assigned .* partitions=4$`)
	}
	waitFor(t, "a lost race", func() bool {
		return strings.Contains(runs[0].log()+runs[1].log(), "another writer committed this range")
	})
	waitFor(t, "commits", func() bool { return manifests(t, out) > 20 })
	n := stopFeed(t, brokers, "points", feeding)
	waitFor(t, "the rest", func() bool { return reached(t, out) >= n })
	for _, r := range runs {
		r.signal(syscall.SIGTERM)
	}
	for _, r := range runs {
		r.exits(0, patience)
	}
	holds(t, out, n)
}

// The broker dies without a word and comes back with its log: producers and
// run wait for it.
func TestBrokerDiesAndReturns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	address := ownAddress(t)
	b := brokerProcess(t, dir, address)
	feeding := feed(t, dir, address, "points")
	r := launch(t, dir, fast(address, "points")...)
	for range 2 {
		seen := manifests(t, out)
		waitFor(t, "commits", func() bool { return manifests(t, out) > seen+3 })
		b.killed()
		time.Sleep(200 * time.Millisecond) // long enough to be missed
		b = brokerProcess(t, dir, address)
	}
	seen := manifests(t, out)
	waitFor(t, "commits after the last start", func() bool { return manifests(t, out) > seen+3 })
	n := stopFeed(t, address, "points", feeding)
	waitFor(t, "the rest", func() bool { return reached(t, out) >= n })
	r.signal(syscall.SIGTERM)
	r.exits(0, patience)
	holds(t, out, n)
}
