// Package web serves what people and programs watch of a process: the live page, its numbers
// and scenes, metrics and health, and the handlers that others mount beside it.
//
// # Requests
//
// All are GET. Open to everybody are /metrics, /healthz, /readyz, /version and, on request,
// /debug/pprof. The others pass a guard of Host, Origin and token (guard.go):
//
//	/ and /assets/...       the page
//	/live                   WebSocket of scenes, below
//	/api/state              live.State
//	/api/series?seconds=N   live.Series of the last N seconds, at most 600
//	/api/rejects            samples of rejects by reason
//	/api/files              tables, their sizes, the SQL that opens them
//	/api/config             the configuration in effect, without secrets
//	/api/events             live.State once a second, as server-sent events
//
// # Messages of the WebSocket
//
// The client sends JSON texts. {"op":"view","streams":[{"topic":"points","sequence":"drive"}],
// "hz":10} replaces its views; hz bounds the scenes of a stream a second. {"op":"history",
// "stream":{...}} asks for the kept scenes of a stream, oldest first, and {"op":"exact",
// "stream":{...}} for the newest one whole.
//
// The server sends JSON texts with a field type: hello (version, epoch: identifies the
// process), streams, state, durable (ends: committed ends of the partitions whose topics are
// viewed), error (message). Scenes are binary, little endian: u32 magic "ENP1", u32 length of
// the header, the header as JSON, padded with spaces to a multiple of 8 bytes, then sections,
// which header.sections places from the scene's begin. Their types are i16, u16, u32, u8 and
// f32; coordinates are offsets from header.origin. In section xyz of type i16 the value q of an
// axis stands for min + (q+32768)/65535 * (max-min). See type header for the rest.
//
// Each client has one place for each stream: a newer scene replaces one that was not yet sent.
// A client that does not read costs a scene a stream, and is dropped after ten seconds.
package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"entropipe/ops/live"
	"entropipe/ops/pipeline"
)

// Config configures a Server. Listen, Gatherer, Ready, Version and Log are required.
type Config struct {
	Listen   string // HOST:PORT; port 0 takes a free one
	Hosts    []string
	Origins  []string
	Token    string // empty: none
	Gatherer prometheus.Gatherer
	Ready    func() error // returns nil when the program is ready, else the reason for /readyz
	Version  string
	Revision string
	Pprof    bool // serves /debug/pprof
	Log      *slog.Logger

	Tap      *live.Tap     // nil: no scenes
	Always   bool          // keeps scenes although nobody watches
	Numbers  *live.Numbers // nil: no numbers
	Rejects  func() []pipeline.Refused
	Files    func(ctx context.Context) (Files, error)
	Settings func() []Setting
	// Patience is how long a client may leave a message unread before it is dropped; 0: ten
	// seconds.
	Patience time.Duration
	// Handlers are further handlers behind the guard, by the pattern of their path.
	Handlers map[string]http.Handler
	// Viewers returns the number of Foxglove's clients; nil: none.
	Viewers func() int
}

// Setting is one key of the configuration in effect.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source"`
}

// Server answers until Close. Any goroutine may call its methods.
type Server struct {
	srv   *http.Server
	addr  string
	hub   *hub
	done  chan error
	close func() error // once
	token bool         // the page wants one
	end   context.CancelFunc
}

// ListenError says that a Server cannot listen on the address.
type ListenError struct {
	Address string
	Err     error
}

func (e *ListenError) Error() string {
	return fmt.Sprintf("--listen %s: cannot listen there: %v", e.Address, e.Err)
}

func (e *ListenError) Unwrap() error { return e.Err }

// Serve starts a Server. The error is a *ListenError.
func Serve(cfg Config) (*Server, error) {
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, &ListenError{cfg.Listen, err}
	}
	ctx, end := context.WithCancel(context.Background())
	s := &Server{addr: l.Addr().String(), done: make(chan error, 1), hub: newHub(&cfg), end: end,
		token: cfg.Token != "" || !isLoopback(hostOf(l.Addr().String()))}
	// Requests that last, such as events, end with ctx: Shutdown waits for them.
	s.srv = &http.Server{Handler: routes(&cfg, s.hub, s.addr), ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
		ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug)}
	go func() {
		err := s.srv.Serve(l)
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		s.done <- err
	}()
	s.close = sync.OnceValue(s.shutdown)
	return s, nil
}

// Addr returns the HOST:PORT that the server listens on.
func (s *Server) Addr() string { return s.addr }

// Watched reports whether a page is open, or a program has asked for the numbers within the
// last seconds.
func (s *Server) Watched() bool {
	return s.hub.pages() > 0 || time.Since(time.Unix(0, s.hub.asked.Load())) < watchedFor
}

// watchedFor is how long a question for the numbers counts as watching.
const watchedFor = 15 * time.Second

// Guarded reports whether the page asks for a token.
func (s *Server) Guarded() bool { return s.token }

// Close stops listening, ends the clients of scenes, and waits up to a second for requests to
// be answered. Later calls return what the first one did.
func (s *Server) Close() error { return s.close() }

func (s *Server) shutdown() error {
	s.end()
	s.hub.close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.srv.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.srv.Close()
	}
	return errors.Join(err, <-s.done)
}
