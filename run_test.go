package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"entropipe/cmd/command"
)

// These tests are about processes: signals, two at a time, and brokers that die.
// In all of them every acknowledged record must be in the output exactly once.

// fast are flags of run that make it commit often.
func fast(brokers, topic string, more ...string) []string {
	return append([]string{"run", "--brokers", brokers, "--topic", topic, "--out", "out", "--roll-records", "20",
		"--roll-age", "200ms", "--ops", "hull2d"}, more...)
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
			r := launch(t, dir, "run", "--brokers", brokers, "--out", "out", "--roll-age", "0",
				"--listen", "127.0.0.1:0")
			url := r.until(`metrics=(http://\S+)`)[1]
			waitFor(t, "the frames", func() bool {
				return metric(t, url, "entropipe_frames_total", `direction="in"`) == n
			})
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
		ps = append(ps, launch(t, dir, spread(brokers, topic, name, "--rate", "20hz")...))
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
	reaches(t, out, n)
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
	runs := []*process{launch(t, dir, fast(brokers, "points", "--group", "one")...),
		launch(t, dir, fast(brokers, "points", "--group", "two")...)}
	for _, r := range runs {
		r.until(`msg=assigned .* partitions=4$`)
	}
	waitFor(t, "a lost race", func() bool {
		return strings.Contains(runs[0].log()+runs[1].log(), "another writer committed this range")
	})
	waitFor(t, "commits", func() bool { return manifests(t, out) > 20 })
	n := stopFeed(t, brokers, "points", feeding)
	reaches(t, out, n)
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
	reaches(t, out, n)
	r.signal(syscall.SIGTERM)
	r.exits(0, patience)
	holds(t, out, n)
}

// sendBad sends records that are no frames.
func sendBad(t *testing.T, brokers, topic string, n int) {
	t.Helper()
	messages := make([]kafka.Message, n)
	for i := range messages {
		messages[i] = kafka.Message{Key: fmt.Append(nil, i), Value: []byte("no frame")}
	}
	if err := sendRaw(brokers, topic, messages...); err != nil {
		t.Fatal(err)
	}
}

// A run of which nothing but rejects came is no success, once: what is refused is
// committed, and the next run has nothing to read.
func TestRunOfRejectsFails(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	sendBad(t, brokers, "points", 7)
	run := func(status int, says string, args ...string) {
		t.Helper()
		r := launch(t, dir, append([]string{"run", "--brokers", brokers, "--until-end"}, args...)...)
		r.exits(status, patience)
		r.says(says)
	}
	run(1, `^entropipe: nothing but rejects came, 7 of them: table rejects has the reasons, and what is committed stays \(--max-rejects none takes that for success\)$`, "--out", "out")
	must(t, dir, "verify", "out")
	run(0, `msg=done .* rejects=0 `, "--out", "out")
	run(0, `msg=done .* rejects=7 `, "--out", "none", "--max-rejects", "none")
	run(0, `msg=done .* rejects=7 `, "--out", "seven", "--max-rejects", "7")
	run(1, `^entropipe: 7 of 7 frames and sequences were refused, more than --max-rejects 6: `, "--out", "six",
		"--max-rejects", "6")

	must(t, dir, spread(brokers, "points", "a", "--frames", "21", "--rate", "max")...)
	run(0, `msg=done frames=21 .* rejects=0 `, "--out", "out")
	run(0, `msg=done frames=21 .* rejects=7 `, "--out", "both")
	run(0, `msg=done frames=21 .* rejects=7 `, "--out", "quarter", "--max-rejects", "25%")
	run(1, `^entropipe: 7 of 28 frames and sequences were refused, more than --max-rejects 24.9%: `, "--out", "less",
		"--max-rejects", "24.9%")
	run(2, `^entropipe: .*expected auto, none, a number like 100, or a share like 5%`, "--out", "absent",
		"--max-rejects", "few")
}

// A service stops by itself, keeps what it has committed, and says why.
func TestServiceStopsAtTooManyRejects(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]string{"number": "20", "share": "20%"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brokers, dir := startBroker(t), t.TempDir()
			must(t, dir, spread(brokers, "points", "a", "--frames", "30", "--rate", "max")...)
			r := launch(t, dir, fast(brokers, "points", "--max-rejects", limit)...)
			waitFor(t, "the frames", func() bool { return reached(t, filepath.Join(dir, "out")) == 30 })
			sendBad(t, brokers, "points", 120)
			r.exits(1, patience)
			r.says(`msg=stopped frames=30 `)
			r.says(`^entropipe: \d+ of \d+ frames and sequences were refused, more than --max-rejects ` + limit +
				`: table rejects has the reasons`)
			verified(t, filepath.Join(dir, "out"))
			must(t, dir, append(fast(brokers, "points", "--until-end"), "--max-rejects", "none")...)
			if n := committed(verified(t, filepath.Join(dir, "out"))); n != 150 {
				t.Errorf("%d records are committed, want 150", n)
			}
		})
	}
}

func TestServedPages(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	must(t, dir, spread(brokers, "points", "a", "--frames", "30", "--rate", "max")...)
	r := launch(t, dir, fast(brokers, "points", "--listen", "127.0.0.1:0", "--pprof")...)
	metrics := r.until(`metrics=(http://127\.0\.0\.1:\d+/metrics)`)[1]
	base := strings.TrimSuffix(metrics, "/metrics")
	waitFor(t, "commits", func() bool { return metric(t, metrics, "entropipe_frames_total", `direction="out"`) == 30 })
	body, _ := get(t, metrics)
	if !strings.Contains(body, "# HELP entropipe_") || strings.Contains(body, "NaN") {
		t.Errorf("metrics without help, or not numbers:\n%s", body)
	}
	becomesReady(t, base)
	for name, least := range map[string]float64{"output_disk_free_bytes": 1, "output_disk_size_bytes": 1,
		"batch_age_limit_seconds": .2, "record_size_limit_bytes": 1 << 20, "brokers_connected": 1, "output_writable": 1,
		"ready": 1, "consumer_partitions": 4} {
		line := regexp.MustCompile(`(?m)^entropipe_` + name + ` (\S+)$`)
		waitFor(t, name, func() bool {
			body, _ := get(t, metrics)
			m := line.FindStringSubmatch(body)
			if m == nil {
				return false
			}
			v, err := strconv.ParseFloat(m[1], 64)
			return err == nil && v >= least
		})
	}
	for name, label := range map[string]string{"consumer_info": `group="entropipe-`,
		"queue_capacity": `stage="operate"`, "last_commit_timestamp_seconds": `partition="3"`,
		"record_size_max_bytes": `source="points"`, "result_elements_total": `op="hull2d"`} {
		if metric(t, metrics, "entropipe_"+name, label) <= 0 {
			t.Errorf("no %s of %s", name, label)
		}
	}
	for path, want := range map[string]string{"/healthz": "", "/version": command.Version,
		"/debug/pprof/cmdline": "entropipe"} {
		if body, status := get(t, base+path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: status %d, %q, want %q", path, status, body, want)
		}
	}
	if _, status := get(t, base+"/nothing"); status != http.StatusNotFound {
		t.Errorf("an unknown page: status %d", status)
	}
	r.signal(syscall.SIGTERM)
	r.exits(0, patience)
}

// Without --pprof there is no profiler, and ready means that a broker answers.
func TestNotReadyWithoutBroker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	address := ownAddress(t) // where no other broker answers later
	b := brokerProcess(t, dir, address)
	must(t, dir, spread(address, "points", "a", "--frames", "3", "--rate", "max")...)
	r := launch(t, dir, fast(address, "points", "--listen", "127.0.0.1:0")...)
	base := r.until(`metrics=(http://127\.0\.0\.1:\d+)/metrics`)[1]
	ready := func() bool { _, status := get(t, base+"/readyz"); return status == http.StatusOK }
	waitFor(t, "readiness", func() bool {
		return ready() && metric(t, base+"/metrics", "entropipe_frames_total", `direction="out"`) == 3
	})
	if _, status := get(t, base+"/debug/pprof/"); status != http.StatusNotFound {
		t.Errorf("profiler without --pprof: status %d", status)
	}
	b.killed()
	waitFor(t, "the broker to be missed", func() bool { return !ready() })
	if body, status := get(t, base+"/healthz"); status != http.StatusOK {
		t.Errorf("alive is not ready, but: status %d, %q", status, body)
	}
	r.signal(syscall.SIGTERM)
	r.exits(0, patience)
}

// A broker that is away for as long as it is: the partitions, the group and what is
// published fail hundreds of times, and the log has a line a minute.
func TestOutageIsALineAMinute(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	address := ownAddress(t) // where no other broker answers later
	b := brokerProcess(t, dir, address)
	must(t, dir, append(spread(address, "points", "a", "--frames", "40", "--rate", "max"), "--partitions", "30")...)
	r := launch(t, dir, fast(address, "points", "--publish", "survivors", "--for", "hull2d",
		"--listen", "127.0.0.1:0")...)
	url := r.until(`metrics=(http://\S+)`)[1]
	failures := func() float64 { return metric(t, url, "entropipe_errors_total", `stage="fetch"`) }
	waitFor(t, "the frames", func() bool { return metric(t, url, "entropipe_frames_total", `direction="out"`) == 40 })
	before, begin := strings.Count(r.log(), "level=WARN"), time.Now() // a slow machine misses the broker earlier
	b.killed()
	waitFor(t, "hundreds of failures", func() bool { return failures() > 300 })
	lines := strings.Count(r.log(), "level=WARN")
	if most := 1 + int(time.Since(begin)/time.Minute); lines < 1 || lines-before > most {
		t.Errorf("%d lines in %v, want %d at most:\n%s", lines-before, time.Since(begin), most, r.log())
	}
	// The broker is there again, and all that it has is read.
	brokerProcess(t, dir, address)
	must(t, dir, spread(address, "points", "a", "--frames", "20", "--rate", "max")...)
	waitFor(t, "the other frames", func() bool {
		return metric(t, url, "entropipe_frames_total", `direction="out"`) == 60
	})
	if !strings.Contains(r.log(), address) {
		t.Errorf("the broker is not named:\n%s", r.log())
	}
}
