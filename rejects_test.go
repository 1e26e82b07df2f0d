package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	kafka "github.com/segmentio/kafka-go"
)

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
	run(1, `^entropipe: 7 of 7 frames and sequences were refused, more than --max-rejects 6: `, "--out", "six", "--max-rejects", "6")

	must(t, dir, spread(brokers, "points", "a", "--frames", "21", "--rate", "max")...)
	run(0, `msg=done frames=21 .* rejects=0 `, "--out", "out")
	run(0, `msg=done frames=21 .* rejects=7 `, "--out", "both")
	run(0, `msg=done frames=21 .* rejects=7 `, "--out", "quarter", "--max-rejects", "25%")
	run(1, `^entropipe: 7 of 28 frames and sequences were refused, more than --max-rejects 24.9%: `, "--out", "less", "--max-rejects", "24.9%")
	run(2, `^entropipe: .*expected auto, none, a number like 100, or a share like 5%`, "--out", "absent", "--max-rejects", "few")
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
			r.says(`^entropipe: \d+ of \d+ frames and sequences were refused, more than --max-rejects ` + limit + `: table rejects has the reasons`)
			verified(t, filepath.Join(dir, "out"))
			must(t, dir, append(fast(brokers, "points", "--until-end"), "--max-rejects", "none")...)
			if n := committed(verified(t, filepath.Join(dir, "out"))); n != 150 {
				t.Errorf("%d records are committed, want 150", n)
			}
		})
	}
}

// --until-end that was stopped before the end asks to be run again; a service that was
// stopped has done what it was to do.
func TestInterruptedBeforeTheEnd(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	out := filepath.Join(dir, "out")
	const n = 20
	must(t, dir, spread(brokers, "points", "a", "--frames", "1", "--rate", "max")...)
	// A member that has all partitions and says nothing, so that nobody else gets any.
	frozen := launch(t, dir, fast(brokers, "points", "--session-timeout", "4m", "--rebalance-timeout", "4m")...)
	waitFor(t, "its commit", func() bool { return reached(t, out) == 1 })
	frozen.signal(syscall.SIGSTOP)
	must(t, dir, spread(brokers, "points", "a", "--frames", strconv.Itoa(n-1), "--rate", "max")...)
	r := launch(t, dir, fast(brokers, "points", "--until-end")...)
	r.until(`msg=running`)
	r.signal(syscall.SIGTERM)
	r.exits(75, patience)
	r.says(`msg=stopped frames=0 `)
	r.says(`^entropipe: interrupted before the end, which points/\d has not reached; run it again to go on from there$`)
	frozen.signal(syscall.SIGKILL)
	frozen.killed()
	must(t, dir, fast(brokers, "points", "--until-end")...)
	holds(t, out, n)
}
