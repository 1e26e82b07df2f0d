package main

import (
	"strings"
	"testing"
	"time"
)

// A broker that is away for as long as it is: the partitions, the group and what is
// published fail hundreds of times, and the log has a line a minute.
func TestOutageIsALineAMinute(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	address := ownAddress(t) // where no other broker answers later
	b := brokerProcess(t, dir, address)
	must(t, dir, append(spread(address, "points", "a", "--frames", "40", "--rate", "max"), "--partitions", "30")...)
	r := launch(t, dir, fast(address, "points", "--publish", "survivors", "--for", "hull2d", "--listen", "127.0.0.1:0")...)
	url := r.until(`metrics=(http://\S+)`)[1]
	failures := func() float64 { return metric(t, url, "entropipe_errors_total", `stage="fetch"`) }
	waitFor(t, "the frames", func() bool { return metric(t, url, "entropipe_frames_total", `direction="out"`) == 40 })
	begin := time.Now()
	b.killed()
	waitFor(t, "hundreds of failures", func() bool { return failures() > 300 })
	lines := strings.Count(r.log(), "level=WARN")
	if most := 1 + int(time.Since(begin)/time.Minute); lines < 1 || lines > most {
		t.Errorf("%d lines in %v, want %d at most:\n%s", lines, time.Since(begin), most, r.log())
	}
	// The broker is there again, and all that it has is read.
	brokerProcess(t, dir, address)
	must(t, dir, spread(address, "points", "a", "--frames", "20", "--rate", "max")...)
	waitFor(t, "the other frames", func() bool { return metric(t, url, "entropipe_frames_total", `direction="out"`) == 60 })
	if !strings.Contains(r.log(), address) {
		t.Errorf("the broker is not named:\n%s", r.log())
	}
}
