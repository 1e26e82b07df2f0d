package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog/rest"
	"github.com/apache/iceberg-go/table"
)

// fataler is a test, or a test of rapid.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// lake is a REST catalog in memory. Metadata of tables is files of a folder.
type lake struct {
	t      fataler
	folder string
	server *httptest.Server

	mu         sync.Mutex
	namespaces map[string]bool
	tables     map[string]table.Metadata // by name; one namespace
	versions   int
}

func newLake(t fataler, folder string) *lake {
	l := &lake{t: t, folder: folder, namespaces: map[string]bool{}, tables: map[string]table.Metadata{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/config", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{"defaults": map[string]string{}, "overrides": map[string]string{}})
	})
	mux.HandleFunc("POST /v1/namespaces", l.makeNamespace)
	mux.HandleFunc("GET /v1/namespaces/{space}", l.namespace)
	mux.HandleFunc("HEAD /v1/namespaces/{space}", l.namespace)
	mux.HandleFunc("GET /v1/namespaces/{space}/tables", l.list)
	mux.HandleFunc("POST /v1/namespaces/{space}/tables", l.make)
	mux.HandleFunc("GET /v1/namespaces/{space}/tables/{name}", l.load)
	mux.HandleFunc("POST /v1/namespaces/{space}/tables/{name}", l.commit)
	l.server = httptest.NewServer(mux)
	return l
}

func (l *lake) close() { l.server.Close() }

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, kind, text string) {
	answer(w, status, map[string]any{"error": map[string]any{"message": text, "type": kind, "code": status}})
}

func (l *lake) makeNamespace(w http.ResponseWriter, q *http.Request) {
	var body struct{ Namespace []string }
	if err := json.NewDecoder(q.Body).Decode(&body); err != nil {
		refuse(w, 400, "BadRequestException", err.Error())
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	name := strings.Join(body.Namespace, "\x1f")
	if l.namespaces[name] {
		refuse(w, 409, "AlreadyExistsException", "it exists")
		return
	}
	l.namespaces[name] = true
	answer(w, 200, map[string]any{"namespace": body.Namespace, "properties": map[string]string{}})
}

func (l *lake) namespace(w http.ResponseWriter, q *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.namespaces[q.PathValue("space")] {
		refuse(w, 404, "NoSuchNamespaceException", "there is none")
		return
	}
	answer(w, 200, map[string]any{"namespace": []string{q.PathValue("space")}, "properties": map[string]string{}})
}

func (l *lake) list(w http.ResponseWriter, q *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := []map[string]any{}
	for name := range l.tables {
		ids = append(ids, map[string]any{"namespace": []string{q.PathValue("space")}, "name": name})
	}
	answer(w, 200, map[string]any{"identifiers": ids})
}

func (l *lake) make(w http.ResponseWriter, q *http.Request) {
	var body struct {
		Name       string
		Schema     *iceberg.Schema
		Spec       *iceberg.PartitionSpec `json:"partition-spec"`
		Properties iceberg.Properties
	}
	if err := json.NewDecoder(q.Body).Decode(&body); err != nil {
		refuse(w, 400, "BadRequestException", err.Error())
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, there := l.tables[body.Name]; there {
		refuse(w, 409, "AlreadyExistsException", "it exists")
		return
	}
	meta, err := table.NewMetadata(body.Schema, body.Spec, table.UnsortedSortOrder,
		"file://"+filepath.Join(l.folder, body.Name), body.Properties)
	if err != nil {
		refuse(w, 400, "BadRequestException", err.Error())
		return
	}
	l.tables[body.Name] = meta
	l.show(w, meta)
}

func (l *lake) show(w http.ResponseWriter, meta table.Metadata) {
	l.versions++
	answer(w, 200, map[string]any{"metadata": meta, "config": map[string]string{},
		"metadata-location": fmt.Sprintf("%s/metadata/%05d.metadata.json", meta.Location(), l.versions)})
}

func (l *lake) load(w http.ResponseWriter, q *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	meta, there := l.tables[q.PathValue("name")]
	if !there {
		refuse(w, 404, "NoSuchTableException", "there is none")
		return
	}
	l.show(w, meta)
}

func (l *lake) commit(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	var change struct {
		Requirements table.Requirements
		Updates      table.Updates
	}
	if err == nil {
		err = json.Unmarshal(body, &change)
	}
	if err != nil {
		refuse(w, 400, "BadRequestException", err.Error())
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	meta, there := l.tables[q.PathValue("name")]
	if !there {
		refuse(w, 404, "NoSuchTableException", "there is none")
		return
	}
	for _, required := range change.Requirements {
		if err := required.Validate(meta); err != nil {
			refuse(w, 409, "CommitFailedException", err.Error())
			return
		}
	}
	made, err := table.UpdateTableMetadata(meta, change.Updates, "")
	if err != nil {
		refuse(w, 400, "BadRequestException", err.Error())
		return
	}
	l.tables[q.PathValue("name")] = made
	l.show(w, made)
}

// drop removes a table from the catalog.
func (l *lake) drop(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.tables, name)
}

func (l *lake) metadata(name string) table.Metadata {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tables[name]
}

// client returns a client of the catalog, whose requests go through transport; nil: directly.
func (l *lake) client(transport http.RoundTripper) *rest.Catalog {
	opts := []rest.Option{}
	if transport != nil {
		opts = append(opts, rest.WithCustomTransport(transport))
	}
	c, err := rest.NewCatalog(context.Background(), "lake", l.server.URL, opts...)
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

// files returns the addresses of all data files of a table, those twice that are twice there.
func (l *lake) files(name string) (all []string) {
	if l.metadata(name) == nil {
		return nil
	}
	for _, d := range l.dataFiles(l.client(nil), name) {
		all = append(all, d.FilePath())
	}
	slices.Sort(all)
	return all
}

func (l *lake) dataFiles(c *rest.Catalog, name string) (all []iceberg.DataFile) {
	ctx := context.Background()
	t, err := c.LoadTable(ctx, table.Identifier{"entropipe", name})
	if err != nil {
		l.t.Fatal(err)
	}
	fs, err := t.FS(ctx)
	if err != nil {
		l.t.Fatal(err)
	}
	snapshot := t.CurrentSnapshot()
	if snapshot == nil {
		return nil
	}
	manifests, err := snapshot.Manifests(fs)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, m := range manifests {
		entries, err := m.FetchEntries(fs, true)
		if err != nil {
			l.t.Fatal(err)
		}
		for _, e := range entries {
			all = append(all, e.DataFile())
		}
	}
	return all
}

// expire removes all snapshots of a table but the current one, as another engine would.
func (l *lake) expire(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	meta := l.tables[name]
	if meta == nil || meta.CurrentSnapshot() == nil {
		return
	}
	var old []int64
	for _, s := range meta.Snapshots() {
		if s.SnapshotID != meta.CurrentSnapshot().SnapshotID {
			old = append(old, s.SnapshotID)
		}
	}
	if len(old) == 0 {
		return
	}
	made, err := table.UpdateTableMetadata(meta, []table.Update{table.NewRemoveSnapshotsUpdate(old, false)}, "")
	if err != nil {
		l.t.Fatal(err)
	}
	l.tables[name] = made
}

// rewrite replaces all files of a table by one, as compaction by another engine does. It returns
// the address of the new file and those that it replaces.
func (l *lake) rewrite(name string, number int) (into string, from []string) {
	if l.metadata(name) == nil {
		return "", nil
	}
	ctx, c := context.Background(), l.client(nil)
	t, err := c.LoadTable(ctx, table.Identifier{"entropipe", name})
	if err != nil {
		l.t.Fatal(err)
	}
	old := l.dataFiles(c, name)
	if len(old) == 0 {
		return "", nil
	}
	into = fmt.Sprintf("%s/data/rewritten-%d.parquet", t.Location(), number)
	rows, partition := int64(0), old[0].Partition()
	for _, d := range old {
		rows += d.Count()
		from = append(from, d.FilePath())
	}
	b, err := iceberg.NewDataFileBuilder(t.Spec(), iceberg.EntryContentData, into, iceberg.ParquetFile, partition, nil,
		nil, rows, rows)
	if err != nil {
		l.t.Fatal(err)
	}
	tx := t.NewTransaction()
	if err := tx.ReplaceDataFilesWithDataFiles(ctx, old, []iceberg.DataFile{b.Build()}, nil); err != nil {
		l.t.Fatal(err)
	}
	if _, err := tx.Commit(ctx); err != nil {
		l.t.Fatal(err)
	}
	return into, from
}
