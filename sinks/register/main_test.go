package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"entropipe/sinks/record"
)

// on writes an output into a folder.
func (o *output) on(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, data := range o.files {
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestStatuses(t *testing.T) {
	l, o, foreign := newLake(t, t.TempDir()), newOutput(), newOutput()
	defer l.close()
	o.base("clouds", 0)
	o.grow("clouds", 0, 1, "frames", "hulls")
	folder := o.on(t)
	foreign.base("clouds", 0)
	foreign.grow("clouds", 0, 1, "frames")
	foreign.store.CompactionOf = o.store.UUID
	foreign.saveStore()
	t.Setenv(credentialVariable, "")
	t.Setenv(tokenVariable, "")
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"--help"}, 0, "Adds the files of OUT"},
		{[]string{"--version"}, 0, "register " + version},
		{nil, exitUsage, "missing flags"},
		{[]string{folder}, exitUsage, "--catalog"},
		{[]string{folder, "--catalog", "ftp://x"}, exitUsage, "--catalog: want http"},
		{[]string{folder, "--catalog", "http://me:secret@x"}, exitUsage, "not in the URL"},
		{[]string{folder, "--catalog", l.server.URL, "--namespace", "a..b"}, exitUsage, "--namespace"},
		{[]string{folder, "--catalog", l.server.URL, "--batch", "0"}, exitUsage, "--batch 0"},
		{[]string{folder, "--catalog", l.server.URL, "--poll", "0s"}, exitUsage, "--poll"},
		{[]string{folder, "--catalog", l.server.URL, "--location-prefix", "lake"}, exitUsage, "--location-prefix"},
		{[]string{"http://x/y", "--catalog", l.server.URL}, exitUsage, "want a folder or s3://"},
		{[]string{t.TempDir(), "--catalog", l.server.URL}, exitRuntime, "is not an output"},
		{[]string{folder, "--catalog", "http://127.0.0.1:1", "--retry-for", "0s"}, exitRuntime, "127.0.0.1:1"},
		{[]string{folder, "--catalog", l.server.URL}, 0, "2 files with 2 rows, of 1 commits, were added in 2"},
		{[]string{folder, "--catalog", l.server.URL}, 0, "nothing new to register"},
		{[]string{folder, "--catalog", l.server.URL, "--json"}, 0, `"files": 0`},
		{[]string{foreign.on(t), "--catalog", l.server.URL}, exitConfig, "this output is its compaction"},
	} {
		var out bytes.Buffer
		if got := run(c.args, &out, &out); got != c.status || !strings.Contains(out.String(), c.want) {
			t.Errorf("register %q: status %d, want %d with %q:\n%s", c.args, got, c.status, c.want, out.String())
		}
		if strings.Contains(out.String(), "secret") {
			t.Errorf("register %q prints a password:\n%s", c.args, out.String())
		}
	}
	if got, want := l.files("hulls"), "file://"+filepath.ToSlash(folder)+"/hulls/"; len(got) != 1 ||
		!strings.HasPrefix(got[0], want) {
		t.Errorf("%q, want one that begins with %q", got, want)
	}
}

func TestLocationPrefixStandsInPlaceOfTheOutput(t *testing.T) {
	l, o := newLake(t, t.TempDir()), newOutput()
	defer l.close()
	o.base("clouds", 0)
	o.grow("clouds", 0, 1, "rejects")
	var out bytes.Buffer
	args := []string{o.on(t), "--catalog", l.server.URL, "--location-prefix", "s3://lake/clouds/"}
	if status := run(args, &out, &out); status != 0 {
		t.Fatalf("status %d: %s", status, out.String())
	}
	want := "s3://lake/clouds/rejects/topic=clouds/"
	if got := l.files("rejects"); len(got) != 1 || !strings.HasPrefix(got[0], want) {
		t.Errorf("%q", got)
	}
}

// No text that the program prints has a credential, whatever an error quotes.
func TestCredentialsAreNeverPrinted(t *testing.T) {
	t.Setenv(credentialVariable, "me:hunter2")
	t.Setenv(tokenVariable, "t0k3n-of-mine")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t")
	for _, text := range []string{"login me:hunter2 failed", "secret hunter2", "Bearer t0k3n-of-mine", "key s3cr3t",
		"Get http://u:hunter2@x/v1", "?client_secret=abcdef&x=1", "?X-Amz-Signature=abcdef"} {
		got := discreet(text)
		for _, secret := range []string{"hunter2", "t0k3n", "s3cr3t", "abcdef"} {
			if strings.Contains(got, secret) {
				t.Errorf("%q is shown as %q", text, got)
			}
		}
	}
}

// A catalog that answers "too many requests" is tried again.
func TestBusyCatalogsAreTriedAgain(t *testing.T) {
	l, o := newLake(t, t.TempDir()), newOutput()
	defer l.close()
	o.base("clouds", 0)
	o.grow("clouds", 0, 1, "frames")
	busy := 5
	served := l.server.Config.Handler
	l.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if busy > 0 && q.Method == http.MethodPost {
			busy--
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		served.ServeHTTP(w, q)
	})
	r := &registrar{cfg: config{RetryFor: 1 << 40, FirstWait: 1}, log: quiet()}
	err := r.trying(context.Background(), func() (err error) {
		c, err := openCatalog(context.Background(), &cli{Catalog: l.server.URL})
		if err == nil {
			r, err = openRegistrar(context.Background(), o, c, config{Namespace: []string{"entropipe"}, Batch: 1,
				RetryFor: 1 << 40, FirstWait: 1}, quiet())
		}
		return err
	})
	if err == nil {
		err = r.run(context.Background())
	}
	if err != nil || busy != 0 {
		t.Fatalf("%v, %d refusals are left", err, busy)
	}
	same(t, l, o, "frames")
}

// Columns of the catalog are those of the files, with their bounds, and folder keys behind them.
func TestColumnsAndBounds(t *testing.T) {
	l, o := newLake(t, t.TempDir()), newOutput()
	defer l.close()
	o.base("clouds", 0)
	o.grow("clouds", 0, 1, "points", "rejects")
	if err := l.open(t, o, nil).run(context.Background()); err != nil {
		t.Fatal(err)
	}
	meta := l.metadata("points")
	schema := meta.CurrentSchema()
	for name, want := range map[string]string{"frame_id": "long", "ts": "timestamptz", "partition": "int",
		"layer": "int", "geometry": "binary", "x": "double", "status": "string", "dataset": "string",
		"topic": "string"} {
		f, ok := schema.FindFieldByName(name)
		if !ok || f.Type.String() != want {
			t.Errorf("column %s is %v, want %s", name, f, want)
		}
	}
	if meta.NameMapping() == nil {
		t.Error("the table has no name mapping")
	}
	d := l.dataFiles(l.client(nil), "points")[0]
	id, _ := schema.FindFieldByName("frame_id")
	if low := d.LowerBoundValues()[id.ID]; !bytes.Equal(low, []byte{7, 0, 0, 0, 0, 0, 0, 0}) {
		t.Errorf("the least frame_id is %v", low)
	}
	spec := meta.PartitionSpec()
	values := map[string]any{}
	for _, field := range spec.Fields() {
		values[field.Name] = d.Partition()[field.FieldID]
	}
	if len(values) != 2 || values["dataset"] != "a b" || values["topic"] != "clouds" {
		t.Errorf("partition %v", values)
	}
	if spec := l.metadata("rejects").PartitionSpec(); spec.NumFields() != 1 {
		t.Errorf("rejects are partitioned by %v", spec)
	}
	if fence, err := parseFence(o.store.UUID, meta.Properties(), map[string]string{"clouds": "clouds"}); err != nil ||
		fence.end(record.TopicPartition{Topic: "clouds"}, -1) != 1 {
		t.Errorf("fence %v, %v", fence, err)
	}
}
