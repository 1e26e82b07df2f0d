package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"entropipe/sinks/record"
)

// config says how a registrar works.
type config struct {
	Namespace []string
	Tables    []string // empty: all
	Poll      time.Duration
	Batch     int // files of a transaction
	RetryFor  time.Duration
	FirstWait time.Duration // before a second try; later waits are longer
}

// done counts what a registrar has done.
type done struct {
	Commits      int64 `json:"commits"` // manifests of the output
	Files        int64 `json:"files"`
	Rows         int64 `json:"rows"`
	Bytes        int64 `json:"bytes"`
	Transactions int64 `json:"transactions"`
	Conflicts    int64 `json:"conflicts"` // transactions that another process was ahead of
	Unknown      int64 `json:"unknown"`   // transactions without an answer
	Retired      int64 `json:"retired"`   // commits whose rows only another output has
	Unpublished  int64 `json:"unpublished"`
}

// registrar adds the files of one output to tables of a catalog. One goroutine may use it, and
// any may call count.
type registrar struct {
	cfg     config
	source  source
	catalog catalog.Catalog
	log     *slog.Logger

	store  record.Store
	topics map[string]string // name by folder value
	tables map[string]*state
	chains map[record.TopicPartition]*chain
	bases  map[record.TopicPartition]int64

	mu   sync.Mutex // guards done
	done done
	step atomic.Int64 // manifests that were read
}

// state is a table of the catalog with its fence.
type state struct {
	name   string
	table  *table.Table
	fence  *fence
	behind int // manifests that were passed since the fence moved
}

// settle is how many manifests without a file of a table are passed before its fence moves
// without one: a restart reads them again.
const settle = 1000

// openRegistrar reads the output's identity and the tables of the namespace, which it makes if
// there is none.
func openRegistrar(ctx context.Context, s source, c catalog.Catalog, cfg config, log *slog.Logger) (*registrar, error) {
	store, err := readStore(ctx, s)
	if err != nil {
		return nil, err
	}
	r := &registrar{cfg: cfg, source: s, catalog: c, log: log, store: store}
	err = c.CreateNamespace(ctx, cfg.Namespace, nil)
	if err != nil && !errors.Is(err, catalog.ErrNamespaceAlreadyExists) {
		there, lookErr := c.CheckNamespaceExists(ctx, cfg.Namespace)
		if lookErr != nil || !there {
			return nil, fmt.Errorf("make namespace %s: %w", r.shown(""), err)
		}
	}
	return r, nil
}

func (r *registrar) identifier(name string) table.Identifier {
	return append(slices.Clone(r.cfg.Namespace), name)
}

// shown returns the name of a table for people.
func (r *registrar) shown(name string) string { return join(r.cfg.Namespace) + name }

func join(namespace []string) (text string) {
	for _, part := range namespace {
		text += part + "."
	}
	return text
}

func (r *registrar) selected(name string) bool {
	return len(r.cfg.Tables) == 0 || slices.Contains(r.cfg.Tables, name)
}

// count returns what was done so far.
func (r *registrar) count() done {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done
}

func (r *registrar) counted(f func(d *done)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.done)
}

// run registers what the output holds when it is called, and returns.
func (r *registrar) run(ctx context.Context) error {
	return r.trying(ctx, func() error { return r.passOrForget(ctx) })
}

// follow registers commits as the output grows, until ctx ends. Errors that may pass are waited
// for.
func (r *registrar) follow(ctx context.Context) error {
	for {
		if err := r.trying(ctx, func() error { return r.passOrForget(ctx) }); err != nil {
			return err
		}
		if err := pause(ctx, r.cfg.Poll); err != nil {
			return err
		}
	}
}

// trying calls f until it succeeds, fails for good, or has failed for RetryFor.
func (r *registrar) trying(ctx context.Context, f func() error) error {
	begin, wait := time.Now(), 2*r.cfg.FirstWait
	for {
		err := f()
		if err == nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if !isPassing(err) || time.Since(begin) > r.cfg.RetryFor {
			return err
		}
		r.log.Warn("register waits, and tries again", "error", err)
		if err := pause(ctx, wait); err != nil {
			return err
		}
		wait = min(2*wait, 30*time.Second)
	}
}

// passOrForget is pass. After an error the next one reads catalog and output anew.
func (r *registrar) passOrForget(ctx context.Context) error {
	err := r.pass(ctx)
	if err != nil {
		r.tables, r.chains = nil, nil
	}
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// pass registers all commits that the output has behind the fences.
func (r *registrar) pass(ctx context.Context) error {
	if err := r.look(ctx); err != nil {
		return err
	}
	for {
		b, err := r.collect(ctx)
		if err != nil {
			return err
		}
		if b.empty() {
			return nil
		}
		if err := r.register(ctx, b); err != nil {
			return err
		}
		if b.empty() { // the last commits are not published yet
			return nil
		}
	}
}

// look opens the tables, if they are not, and the chains of partitions that are new.
func (r *registrar) look(ctx context.Context) error {
	topics, err := readTopics(ctx, r.source)
	if err != nil {
		return err
	}
	r.topics, r.bases = map[string]string{}, map[record.TopicPartition]int64{}
	for _, t := range topics {
		r.topics[record.FolderValue(t.Topic, record.MaxFolderValue)] = t.Topic
		for _, id := range t.partitions {
			r.bases[record.TopicPartition{Topic: t.Topic, ID: id}] = t.Start(id)
		}
	}
	if r.tables == nil {
		if err := r.openTables(ctx); err != nil {
			return err
		}
		r.chains = map[record.TopicPartition]*chain{}
	}
	for p, base := range r.bases {
		c := r.chains[p]
		if c != nil && c.polls < relist {
			continue
		}
		if r.chains[p], err = r.openChain(ctx, p, base); err != nil {
			return err
		}
	}
	return nil
}

// openTables loads the tables of the namespace that this program made.
func (r *registrar) openTables(ctx context.Context) error {
	tables := map[string]*state{}
	for id, err := range r.catalog.ListTables(ctx, r.cfg.Namespace) {
		if err != nil {
			return fmt.Errorf("list tables of %s: %w", r.shown(""), err)
		}
		name := id[len(id)-1]
		t, err := r.catalog.LoadTable(ctx, r.identifier(name))
		if errors.Is(err, catalog.ErrNoSuchTable) {
			continue // it was dropped meanwhile
		}
		if err != nil {
			return fmt.Errorf("load table %s: %w", r.shown(name), err)
		}
		if t.Properties()[tableKey] != name {
			continue
		}
		if tables[name], err = r.stateOf(name, t); err != nil {
			return err
		}
	}
	r.tables = tables
	return nil
}

// stateOf reads the fence of a table. The error is a configuration error if the table has rows
// that the output would add a second time.
func (r *registrar) stateOf(name string, t *table.Table) (*state, error) {
	f, err := parseFence(r.store.UUID, t.Properties(), r.topics)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", r.shown(name), err)
	}
	if f.others[r.store.CompactionOf] {
		return nil, configError("namespace", "table %s has the rows of output %s, and this output is its "+
			"compaction, with the same rows; name another --namespace", r.shown(name), r.store.CompactionOf)
	}
	for key, of := range t.Properties() {
		if of == r.store.UUID && len(key) > len(compactionPrefix) && key[:len(compactionPrefix)] == compactionPrefix {
			return nil, configError("namespace", "table %s has the rows of output %s, the compaction of this one; "+
				"name another --namespace", r.shown(name), key[len(compactionPrefix):])
		}
	}
	if r.selected(name) {
		if err := checkSpec(t, r.shown(name), folderKeys(&r.store, name)); err != nil {
			return nil, err
		}
	}
	return &state{name: name, table: t, fence: f}, nil
}

// openChain opens the manifests of a partition where the first table needs them. A table that is
// not in the catalog needs all of them if a fence says that the output had files of it; else no
// manifest before any fence has one.
func (r *registrar) openChain(ctx context.Context, p record.TopicPartition, base int64) (*chain, error) {
	next, marks := int64(-1), map[string]mark{}
	for name, s := range r.tables {
		if m, ok := s.fence.marks[p]; ok {
			marks[r.shown(name)] = m
		}
		end := s.fence.end(p, base)
		if r.selected(name) && (next < 0 || end < next) {
			next = end
		}
		for _, other := range s.fence.seen {
			if r.tables[other] == nil && r.selected(other) { // dropped, or selected now for the first time
				next = base
			}
		}
	}
	if next < 0 || len(marks) == 0 {
		next = base
	}
	return openChain(ctx, r.source, p, next, marks)
}

// register adds the files of a batch to their tables, makes those that are missing first, and
// moves all fences.
func (r *registrar) register(ctx context.Context, b *batch) error {
	footers, err := r.footers(ctx, b)
	if err != nil || b.empty() {
		return err
	}
	byTable := map[string][]entry{}
	for i, m := range b.manifests {
		for k := range m.Files {
			name := m.Files[k].Table
			b.seen = append(b.seen, name)
			if f := footers[i][k]; f != nil {
				byTable[name] = append(byTable[name], entry{m, f})
			}
		}
	}
	for _, s := range r.tables {
		b.seen = union(b.seen, s.fence.seen)
	}
	names := slices.SortedFunc(maps.Keys(byTable), framesLast)
	for _, name := range names {
		if err := r.prepare(ctx, name, byTable[name][0].footer); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := r.commit(ctx, r.tables[name], b, byTable[name]); err != nil {
			return err
		}
	}
	for name, s := range r.tables {
		if s.behind += len(b.manifests); r.selected(name) && len(byTable[name]) == 0 && s.behind >= settle {
			if err := r.commit(ctx, s, b, nil); err != nil {
				return err
			}
		}
	}
	r.counted(func(d *done) { d.Commits += int64(len(b.manifests)) })
	return nil
}

// framesLast orders tables so that a row of another table has its frame later, never earlier: as
// files of a commit are published.
func framesLast(a, b string) int {
	last := func(name string) int {
		if name == record.Frames || name == record.Tokens {
			return 1
		}
		return 0
	}
	if d := last(a) - last(b); d != 0 {
		return d
	}
	if a < b {
		return -1
	}
	return 1
}

// prepare makes a table if there is none.
func (r *registrar) prepare(ctx context.Context, name string, f *footer) error {
	if r.tables[name] != nil {
		return nil
	}
	t, err := r.openTable(ctx, name)
	if err == nil && t == nil {
		t, err = r.makeTable(ctx, name, f)
	}
	if err == nil {
		r.tables[name], err = r.stateOf(name, t)
	}
	return err
}
