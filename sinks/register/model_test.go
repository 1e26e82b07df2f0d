package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// What becomes of a request of a registrar.
const (
	served   = "served"
	refused  = "refused"  // not done, 500
	conflict = "conflict" // not done, 409
	lost     = "lost"     // done, 500
	cut      = "cut"      // done, no answer
	late     = "late"     // no answer, done at some later time
	killed   = "killed"   // done, and its sender dies
)

var fates = []string{served, served, served, served, refused, conflict, lost, cut, late, killed}

// turn is a request that waits to be let on.
type turn struct {
	q    *http.Request
	body []byte
	fate chan string
}

// gate is the transport of one registrar: the model says when each request goes on, and what
// becomes of it.
type gate struct {
	m     *model
	turns chan *turn
	kill  context.CancelFunc
}

func (g *gate) RoundTrip(q *http.Request) (*http.Response, error) {
	turn := &turn{q: q, fate: make(chan string)}
	if q.Body != nil {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return nil, err
		}
		turn.body = body
	}
	select {
	case g.turns <- turn:
	case <-q.Context().Done():
		return nil, q.Context().Err()
	}
	switch fate := <-turn.fate; fate {
	case refused, conflict:
		status := map[string]int{refused: 500, conflict: 409}[fate]
		return &http.Response{StatusCode: status, Body: io.NopCloser(bytes.NewReader(nil)), Request: q,
			Header: http.Header{}}, nil
	case late:
		g.m.late = append(g.m.late, turn)
		return nil, io.ErrUnexpectedEOF
	case lost:
		g.m.serve(turn)
		return &http.Response{StatusCode: 500, Body: io.NopCloser(bytes.NewReader(nil)), Request: q,
			Header: http.Header{}}, nil
	case cut:
		g.m.serve(turn)
		return nil, io.ErrUnexpectedEOF
	case killed:
		g.m.serve(turn)
		g.kill()
		return nil, q.Context().Err()
	}
	return g.m.serve(turn), nil
}

// model is a catalog, an output, and registrars between them.
type model struct {
	l         *lake
	o         *output
	late      []*turn
	rewritten map[string][]string // files by the file that replaces them
}

// serve has the catalog execute a request, whether or not its sender still waits.
func (m *model) serve(turn *turn) *http.Response {
	q := turn.q.Clone(context.Background())
	q.Body, q.ContentLength = io.NopCloser(bytes.NewReader(turn.body)), int64(len(turn.body))
	a, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		panic(err)
	}
	return a
}

// process is a registrar that runs until it ends, or dies.
type process struct {
	gate *gate
	end  chan error
}

func (m *model) start(t *rapid.T) *process {
	ctx, kill := context.WithCancel(context.Background())
	p := &process{gate: &gate{m: m, turns: make(chan *turn), kill: kill}, end: make(chan error, 1)}
	c := m.l.client(nil) // its first request is no part of the model
	batch := rapid.IntRange(1, 4).Draw(t, "batch")
	go func() {
		defer kill()
		r, err := openRegistrar(ctx, m.o, c, config{Namespace: []string{"entropipe"}, Batch: batch,
			RetryFor: time.Hour, FirstWait: time.Microsecond}, quiet())
		if err == nil {
			r.catalog = m.l.client(&opened{p.gate})
			err = r.run(ctx)
		}
		p.end <- err
	}()
	return p
}

// opened answers the request for the configuration, and hands others on.
type opened struct{ next http.RoundTripper }

func (o *opened) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.Method == http.MethodGet && q.URL.Path == "/v1/config" {
		return http.DefaultTransport.RoundTrip(q)
	}
	return o.next.RoundTrip(q)
}

// files returns the files of a table, with what files of other engines replace.
func (m *model) files(name string) (all []string) {
	for _, file := range m.l.files(name) {
		all = append(all, m.expand(file)...)
	}
	slices.Sort(all)
	return all
}

func (m *model) expand(file string) (all []string) {
	from, ok := m.rewritten[file]
	if !ok {
		return []string{file}
	}
	for _, file := range from {
		all = append(all, m.expand(file)...)
	}
	return all
}

var modelTables = []string{"frames", "hulls", "rejects"}

// meddle does what others do: the output grows, engines expire snapshots and rewrite files, and a
// late request arrives.
func (m *model) meddle(t *rapid.T) {
	name := rapid.SampledFrom(modelTables).Draw(t, "table")
	switch rapid.SampledFrom([]string{"nothing", "nothing", "grow", "expire", "rewrite", "late"}).Draw(t, "meddle") {
	case "grow":
		m.grow(t)
	case "expire":
		m.l.expire(name)
	case "rewrite":
		if into, from := m.l.rewrite(name, len(m.rewritten)); into != "" {
			m.rewritten[into] = from
		}
	case "late":
		if len(m.late) > 0 {
			i := rapid.IntRange(0, len(m.late)-1).Draw(t, "which")
			m.serve(m.late[i]).Body.Close()
			m.late = slices.Delete(m.late, i, i+1)
		}
	}
}

func (m *model) grow(t *rapid.T) {
	tables := rapid.SliceOfNDistinct(rapid.SampledFrom(modelTables), 0, 3, rapid.ID[string]).Draw(t, "tables")
	partition, n := rapid.Int32Range(0, 1).Draw(t, "partition"), rapid.Int64Range(1, 3).Draw(t, "offsets")
	m.o.grow("clouds", partition, n, tables...)
}

// nothingTwice fails if a table has a file twice, or one that the output has not.
func (m *model) nothingTwice(t *rapid.T) {
	for _, name := range modelTables {
		files, expected := m.files(name), m.o.expected(name)
		for i, file := range files {
			if i > 0 && files[i-1] == file {
				t.Fatalf("table %s has %s twice", name, file)
			}
			if _, found := slices.BinarySearch(expected, file); !found {
				t.Fatalf("table %s has %s, and the output has not", name, file)
			}
		}
	}
}

// Two registrars work at once. Any request may be refused, or done without an answer, or late, and
// either may die at any of them; engines expire snapshots and rewrite files beside them. No table
// ever has a file twice, and a last registrar leaves each table with every file.
func TestEachFileIsAddedOnceWhateverFails(t *testing.T) {
	folder := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		l := newLake(t, folder)
		defer l.close()
		m := &model{l: l, o: newOutput(), rewritten: map[string][]string{}}
		m.o.base("clouds", 0)
		m.o.grow("clouds", 0, 1, "frames")
		for range rapid.IntRange(0, 4).Draw(t, "commits") {
			m.grow(t)
		}
		running := []*process{m.start(t), m.start(t)}
		waiting := make([]*turn, len(running))
		starts := 0
		for steps := 0; slices.ContainsFunc(running, func(p *process) bool { return p != nil }); steps++ {
			for i, p := range running { // until each has ended, or asks
				if p == nil || waiting[i] != nil {
					continue
				}
				select {
				case waiting[i] = <-p.gate.turns:
				case err := <-p.end:
					if running[i] = nil; err != nil && !errors.Is(err, context.Canceled) {
						t.Fatalf("registrar %d: %v", i, err)
					}
					if starts++; starts < 3 && steps < 60 {
						running[i] = m.start(t)
					}
				}
			}
			var ready []int
			for i := range waiting {
				if waiting[i] != nil {
					ready = append(ready, i)
				}
			}
			if len(ready) == 0 {
				continue
			}
			i, fate := rapid.SampledFrom(ready).Draw(t, "next"), served
			if steps < 60 { // afterwards it comes to an end
				m.meddle(t)
				fate = rapid.SampledFrom(fates).Draw(t, "fate")
			}
			if fate == conflict && waiting[i].q.Method != http.MethodPost {
				fate = refused
			}
			waiting[i].fate <- fate
			waiting[i] = nil
		}
		for _, turn := range m.late {
			m.serve(turn).Body.Close()
		}
		m.nothingTwice(t)
		if err := l.open(t, m.o, nil).run(context.Background()); err != nil {
			t.Fatal(err)
		}
		for _, name := range modelTables {
			want := m.o.expected(name)
			if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(m.files(name))); diff != "" {
				t.Fatalf("table %s (-output +catalog): %s", name, diff)
			}
		}
	})
}
