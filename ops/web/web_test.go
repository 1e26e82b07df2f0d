package web_test

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"entropipe/ops/metrics"
	"entropipe/ops/web"
)

var quiet = slog.New(slog.DiscardHandler)

// The endpoints answer as operators expect: health always, readiness with its
// reason, profiles only on request.
func TestServerEndpoints(t *testing.T) {
	reg := prometheus.NewRegistry()
	metrics.New(reg, "1.2.3")
	var notReady error
	s, err := web.Serve(web.Config{Listen: "127.0.0.1:0", Gatherer: reg, Version: "1.2.3", Log: quiet,
		Ready: func() error { return notReady }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	get := func(path string) (int, string) {
		resp, err := http.Get("http://" + s.Addr() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ready", "/version": `"version":"1.2.3"`,
		"/metrics": "entropipe_build_info", "/": "<!doctype html>"} {
		if code, body := get(path); code != 200 || !strings.Contains(strings.ToLower(body), want) {
			t.Errorf("%s: %d %q, want 200 and %q", path, code, body, want)
		}
	}
	for _, path := range []string{"/debug/pprof/", "/nothing"} {
		if code, _ := get(path); code != 404 {
			t.Errorf("%s: %d, want 404", path, code)
		}
	}
	notReady = io.ErrClosedPipe
	if code, body := get("/readyz"); code != 503 || !strings.Contains(body, "closed pipe") {
		t.Errorf("/readyz: %d %q, want 503 and the reason", code, body)
	}
	if _, err := web.Serve(web.Config{Listen: s.Addr(), Gatherer: reg, Log: quiet}); err == nil ||
		!strings.Contains(err.Error(), "--listen "+s.Addr()) {
		t.Errorf("a taken address gives %v", err)
	}
}
