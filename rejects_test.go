package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	kafka "github.com/segmentio/kafka-go"

	"entropipe/ops/pipeline"
)

func TestRejectLimitTexts(t *testing.T) {
	for _, text := range []string{"auto", "none", "0", "100", "9223372036854775807", "0%", "5%", "0.25%", "100%"} {
		var l rejectLimit
		if err := l.UnmarshalText([]byte(text)); err != nil || l.String() != text {
			t.Errorf("%q is read as %q; %v", text, l, err)
		}
	}
	for _, text := range []string{"", "all", "-1", "1.5", "%", "-1%", "101%", "nan%", "5 %%", "1e3", "9223372036854775808"} {
		var l rejectLimit
		if err := l.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), "auto, none") {
			t.Errorf("%q is read as %q; %v", text, l, err)
		}
	}
}

// A share counts from a hundred on, or at the end; a number counts at once.
func TestRejectLimits(t *testing.T) {
	for _, c := range []struct {
		limit          string
		frames, tokens int64
		rejects        int64
		now, atEnd     bool // exceeded
	}{
		{"auto", 0, 0, 0, false, false},
		{"auto", 0, 0, 1000, false, true},
		{"auto", 1, 0, 1000, false, false},
		{"auto", 0, 1, 1000, false, false},
		{"none", 0, 0, 1000, false, false},
		{"0", 1000, 0, 0, false, false},
		{"0", 1000, 0, 1, true, true},
		{"3", 0, 0, 3, false, false},
		{"3", 1000, 1000, 4, true, true},
		{"10%", 0, 0, 0, false, false},
		{"10%", 9, 0, 1, false, false},
		{"10%", 8, 0, 1, false, true},
		{"10%", 0, 0, 99, false, true},
		{"10%", 0, 89, 11, true, true},
		{"10%", 45, 45, 10, false, false},
		{"0%", 98, 0, 1, false, true},
		{"100%", 0, 0, 200, false, false},
	} {
		var l rejectLimit
		if err := l.UnmarshalText([]byte(c.limit)); err != nil {
			t.Fatal(err)
		}
		st := pipeline.Stats{Frames: c.frames, Sequences: c.tokens, Rejects: c.rejects}
		now, atEnd := l.exceeded(&st, false), l.exceeded(&st, true)
		if (now != nil) != c.now || (atEnd != nil) != c.atEnd {
			t.Errorf("%s of %d frames, %d sequences, %d rejects: %v, at the end %v", c.limit, c.frames, c.tokens, c.rejects, now, atEnd)
		}
	}
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
