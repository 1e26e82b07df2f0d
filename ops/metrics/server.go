package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Server serves /metrics, /healthz (the process lives), /readyz (broker and
// output are connected), /version, and /debug/pprof on request.
type Server struct {
	srv  *http.Server
	addr string
	done chan error
}

// ServerConfig configures a Server.
type ServerConfig struct {
	Listen   string // HOST:PORT; port 0 takes a free one
	Gatherer prometheus.Gatherer
	Ready    func() error // returns nil when the program is ready, else the reason for /readyz
	Version  string       // for /version
	Pprof    bool         // serves /debug/pprof
}

// Serve starts a Server, which answers until Close. The error says why it cannot
// listen.
func Serve(cfg ServerConfig) (*Server, error) {
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: cannot listen there: %w", cfg.Listen, err)
	}
	s := &Server{addr: l.Addr().String(), done: make(chan error, 1),
		srv: &http.Server{Handler: routes(cfg), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}}
	go func() {
		err := s.srv.Serve(l)
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		s.done <- err
	}()
	return s, nil
}

func routes(cfg ServerConfig) http.Handler {
	mux := http.NewServeMux()
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
		json.NewEncoder(w).Encode(map[string]string{"version": cfg.Version, "revision": Revision(),
			"go": runtime.Version()})
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "entropipe: /metrics /healthz /readyz /version")
	})
	if cfg.Pprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// Addr returns the HOST:PORT that the server listens on.
func (s *Server) Addr() string { return s.addr }

// Close stops listening and waits up to a second for requests to be answered.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.srv.Shutdown(ctx)
	return errors.Join(err, <-s.done)
}
