package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/pprof"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"entropipe/ops/live"
)

// routes returns the handler of everything. address is that of the listener.
func routes(cfg *Config, h *hub, address string) http.Handler {
	mux := http.NewServeMux()
	open(mux, cfg)
	g := newGuard(cfg, address)
	guarded := func(pattern string, handler http.Handler) { mux.Handle(pattern, g.protect(handler)) }
	files := newAssets()
	guarded("GET /{$}", files)
	guarded("GET /assets/", files)
	guarded("GET /live", h)
	api := func(path string, answer func(r *http.Request) (any, error)) {
		guarded("GET "+path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			value, err := answer(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(value)
		}))
	}
	if n := cfg.Numbers; n != nil {
		api("/api/state", func(*http.Request) (any, error) { return h.state(), nil })
		api("/api/series", func(r *http.Request) (any, error) {
			seconds, err := strconv.Atoi(r.URL.Query().Get("seconds"))
			if err != nil {
				seconds = 600
			}
			return n.Series(seconds), nil
		})
		guarded("GET /api/events", http.HandlerFunc(h.events))
	}
	if cfg.Rejects != nil {
		api("/api/rejects", func(*http.Request) (any, error) { return rejectsOf(cfg.Rejects()), nil })
	}
	if cfg.Files != nil {
		api("/api/files", func(r *http.Request) (any, error) { return cfg.Files(r.Context()) })
	}
	if cfg.Settings != nil {
		api("/api/config", func(*http.Request) (any, error) {
			return map[string]any{"lines": cfg.Settings()}, nil
		})
	}
	for pattern, handler := range cfg.Handlers {
		guarded(pattern, handler)
	}
	return mux
}

// open adds what is served to everybody.
func open(mux *http.ServeMux, cfg *Config) {
	mux.Handle("GET /metrics", promhttp.HandlerFor(cfg.Gatherer, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := cfg.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]string{"version": cfg.Version, "revision": cfg.Revision,
			"go": runtime.Version()})
	})
	if cfg.Pprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
}

// state returns the state with the numbers of those who watch.
func (h *hub) state() live.State {
	h.asked.Store(time.Now().UnixNano())
	s := h.cfg.Numbers.State()
	s.Watchers.Pages = h.pages()
	if h.cfg.Viewers != nil {
		s.Watchers.Foxglove = h.cfg.Viewers()
	}
	return s
}

// events sends the state once a second, as server-sent events, to clients without WebSocket.
func (h *hub) events(w http.ResponseWriter, r *http.Request) {
	if !h.enter() {
		http.Error(w, tooMany, http.StatusServiceUnavailable)
		return
	}
	defer h.leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		text, err := json.Marshal(h.state())
		if err != nil {
			return
		}
		out.SetWriteDeadline(time.Now().Add(h.cfg.Patience))
		if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil || out.Flush() != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}
