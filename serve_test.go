package main

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"entropipe/cmd/command"
)

// get returns the body of a page and its status.
func get(t *testing.T, url string) (string, int) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body), r.StatusCode
}

// metric adds up a metric's values with a label, such as direction="in".
func metric(t *testing.T, url, name, label string) (sum float64) {
	t.Helper()
	body, _ := get(t, url)
	for _, m := range regexp.MustCompile(`(?m)^`+name+`\{[^}]*`+label+`[^}]*\} (\S+)$`).FindAllStringSubmatch(body, -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatalf("%s: %v", m[0], err)
		}
		sum += v
	}
	return sum
}

// becomesReady waits for a service to be ready: it is not while its last request to the
// brokers has failed, which is one of many.
func becomesReady(t *testing.T, base string) {
	t.Helper()
	waitFor(t, "readiness", func() bool { _, status := get(t, base+"/readyz"); return status == http.StatusOK })
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
	for path, want := range map[string]string{"/healthz": "", "/version": command.Version, "/debug/pprof/cmdline": "entropipe"} {
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
