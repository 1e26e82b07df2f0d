package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"entropipe/cmd/command"
	"entropipe/cmd/config"
	"entropipe/cmd/mistake"
	"entropipe/cmd/run/flags"
	"entropipe/ops/foxglove"
	"entropipe/ops/live"
	"entropipe/ops/metrics"
	"entropipe/ops/pipeline"
	"entropipe/ops/web"
	"entropipe/sinks/read"
)

// Show says how a service is watched.
type Show struct {
	Settings []config.Line // the configuration in effect
	// Demo keeps scenes although nobody watches, and takes a free port if --listen's is taken.
	Demo bool
	// Trial computes and encodes everything, and writes nothing: there is no Output.
	Trial bool
}

// leastToken is the length of a token that cannot be guessed.
const leastToken = 16

// token reads --listen-token-file; empty: there is none.
func (s *Service) token() (string, error) {
	file := s.flags.Serve.TokenFile
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("--listen-token-file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < leastToken {
		return "", mistake.Value("listen-token-file", " %s: want a token of %d characters or more", file, leastToken)
	}
	return token, nil
}

// serve starts the HTTP server, if one is wanted: before the rest, so that it
// answers while brokers are waited for, and a port that is taken is noticed first.
func (s *Service) serve() error {
	c := &s.flags.Serve
	if c.Listen == "off" || c.Listen == "" || s.show.Trial {
		return nil
	}
	token, err := s.token()
	if err != nil {
		return err
	}
	s.tap = &live.Tap{}
	if s.show.Demo {
		s.tap.Always()
	}
	s.numbers.Version, s.numbers.Revision = command.Version, metrics.Revision()
	s.viewers = foxglove.New(foxglove.Config{Tap: s.tap, Version: command.Version, Log: s.log})
	settings := make([]web.Setting, len(s.show.Settings))
	for i, l := range s.show.Settings {
		settings[i] = web.Setting{Key: l.Key, Value: l.Value, Source: l.Source}
	}
	hosts := slices.Clone(c.Hosts)
	if u, err := url.Parse(advertised(c)); err == nil && u.Hostname() != "" {
		hosts = append(hosts, u.Hostname()) // links lead there
	}
	cfg := web.Config{Listen: c.Listen, Hosts: hosts, Origins: c.Origins, Token: token, Gatherer: s.registry,
		Ready: s.ready, Version: command.Version, Revision: metrics.Revision(), Pprof: c.Pprof, Log: s.log, Tap: s.tap,
		Always: s.show.Demo, Numbers: &s.numbers, Rejects: s.refused, Files: s.files,
		Settings: func() []web.Setting { return settings },
		Handlers: map[string]http.Handler{"GET /foxglove": s.viewers}, Viewers: s.viewers.Clients}
	s.Server, err = web.Serve(cfg)
	if s.show.Demo && errors.Is(err, syscall.EADDRINUSE) {
		s.Moved = true
		host, _, _ := net.SplitHostPort(c.Listen)
		cfg.Listen = net.JoinHostPort(host, "0")
		s.Server, err = web.Serve(cfg)
	}
	if err != nil {
		return err
	}
	s.log.Info("listening", "page", "http://"+s.Server.Addr()+"/", "metrics", "http://"+s.Server.Addr()+"/metrics")
	if s.Server.Guarded() && token == "" {
		s.log.Warn("off loopback the page needs --listen-token-file; only metrics and health are served")
	}
	return nil
}

// advertised returns the URL of --listen-advertise; empty: it names none.
func advertised(c *flags.ServeFlags) string {
	if c.Advertise == "" {
		return ""
	}
	page, _ := c.Page("any") // checked before
	return page
}

// page returns the URL of this process's page for others; empty: it is not told.
func (s *Service) page() string {
	if s.Server == nil {
		return ""
	}
	page, err := s.flags.Serve.Page(s.Server.Addr())
	if err != nil { // an address with a zone, say
		s.log.Debug("other processes are not told where this one listens", "error", err)
	}
	return page
}

// sampler returns what makes the samples of the numbers; nil if nobody can read them.
func (s *Service) sampler() *web.Sampler {
	if s.Server == nil {
		return nil
	}
	sampler := &web.Sampler{Gatherer: s.registry, Pipeline: s.Pipeline, Workers: s.workers,
		Patience: s.flags.RollAge, Health: s.health, Group: s.neighbours.known}
	if a, ok := s.feed.(Archived); ok {
		sampler.Backfill = a.Backfill
	}
	return sampler
}

// sample adds the numbers of this second.
func (s *Service) sample(from *web.Sampler) {
	if from != nil {
		s.numbers.Add(from.Sample())
	}
}

// health says which parts work, and why the service is not ready.
func (s *Service) health() ([]live.Health, error) {
	part := func(what string, err error) live.Health {
		if err != nil {
			return live.Health{What: what, Reason: err.Error()}
		}
		return live.Health{What: what, OK: true}
	}
	output := s.Pipeline.Unavailable()
	if output != nil {
		output = fmt.Errorf("the output cannot be written: %w", output)
	}
	return []live.Health{part(s.feed.Name(), s.feed.Ready()), part("output", output)}, s.ready()
}

// refused returns samples of rejects; none before the start's end.
func (s *Service) refused() []pipeline.Refused {
	if !s.started.Load() {
		return nil
	}
	return s.Pipeline.Refused()
}

// files returns the tables, and the SQL that opens them.
func (s *Service) files(ctx context.Context) (web.Files, error) {
	if !s.started.Load() {
		return web.Files{}, errors.New("starting")
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out := command.WholeOutput(s.flags.Output.Out)
	f := web.Files{Out: out}
	f.Tables, f.Disk = web.Tables(s.registry)
	names, err := read.WrittenTables(ctx, s.store)
	if err != nil {
		return f, err
	}
	f.SQL = read.SQL(out, names)
	return f, nil
}
