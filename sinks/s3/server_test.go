//go:build s3

package s3_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"entropipe/ingest/bucket"
	"entropipe/sinks"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/record"
	"entropipe/sinks/s3"
	"entropipe/sinks/s3/s3test"
)

// versitygw starts a server that lives until the test ends, and returns its URL.
func versitygw(t *testing.T) (url string) {
	t.Helper()
	program, err := exec.LookPath("versitygw")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, s3test.Bucket), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.SecretKey)
	t.Setenv("AWS_SESSION_TOKEN", "")
	for range 20 { // another process may take the port
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		l.Close()
		server := exec.CommandContext(t.Context(), program, "--port", address, "--quiet", "posix", dir)
		server.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+s3test.AccessKey, "ROOT_SECRET_KEY="+s3test.SecretKey)
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { server.Wait(); close(ended) }()
		t.Cleanup(func() { server.Process.Kill(); <-ended })
		for up := true; up; {
			if r, err := http.Get("http://" + address); err == nil {
				r.Body.Close()
				return "http://" + address
			}
			select {
			case <-ended:
				up = false
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	t.Fatal("versitygw does not start")
	return ""
}

// onServer returns a store whose files are sent in parts.
func onServer(t *testing.T, url string) *s3.Store {
	t.Helper()
	store, err := s3.New(bucket.Config{Address: bucket.Address{Bucket: s3test.Bucket, Prefix: "out"}, Endpoint: url,
		PathStyle: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	store.Starve()
	return store
}

// Law: files that are sent in parts to a real server are in the tables as they were written. A
// writer that dies at any moment of its uploads leaves an output that the next one completes.
func TestPartsOnARealServer(t *testing.T) {
	url := versitygw(t)
	next, encoder := int64(0), large{Encoder: sinktest.EncoderOf(), every: true}
	for _, at := range []moment{{kind: s3test.Begin}, {kind: s3test.Put}, {kind: s3test.Put, nth: 1},
		{kind: s3test.Complete}, {kind: s3test.Create}, {kind: s3test.Copy}, {kind: s3test.Copy, nth: 1}} {
		for _, fault := range []s3test.Fault{s3test.CutBefore, s3test.CutAfter} {
			ctx, die := context.WithCancel(t.Context())
			z := &standing{at: at, commit: ctx, kept: map[s3test.Kind][]s3test.Seen{}, stood: func() s3test.Fault {
				die()
				return fault
			}}
			proxy, err := s3test.NewProxy(url, z.plan)
			if err != nil {
				t.Fatal(err)
			}
			o, start := resumeAs(t, onServer(t, proxy.URL), encoder)
			if start != next && start != next+4 { // the one before may have committed
				t.Fatalf("%+v, %s: goes on at %d, not at %d", at, fault, start, next)
			}
			z.mu.Lock()
			z.begun = true
			z.mu.Unlock()
			if _, err := o.Commit(ctx, sinktest.LogBatch(start, 4)); err == nil {
				t.Errorf("%+v, %s: the writer has not died", at, fault)
			}
			die()
			proxy.Await()
			proxy.Close()
			next = start
		}
	}
	store := onServer(t, url)
	o, start := resumeAs(t, store, encoder)
	if _, err := o.Commit(t.Context(), sinktest.LogBatch(start, 4)); err != nil {
		t.Fatal(err)
	}
	files := 0
	for next = 0; next < start+4; {
		name := record.ManifestName(record.TopicPartition{Topic: sinktest.LogTopic}, next)
		text, err := store.Read(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := record.ParseManifest(name, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range m.Files {
			files++
			if got := sum(contentOf(t, store, f.Path)); got != f.SHA256 {
				t.Errorf("%s is not what was written", f.Path)
			}
		}
		next = m.End
	}
	there := 0
	if err := store.List(t.Context(), ".", func(e sinks.Entry) error {
		if strings.HasSuffix(e.Name, record.DataSuffix) {
			there++
		}
		return nil
	}); err != nil || there != files || files == 0 {
		t.Errorf("%d files, the manifests name %d: %v", there, files, err)
	}
}

// Large files of several partitions, sent beside each other.
func TestLargeFilesOnARealServer(t *testing.T) {
	store := onServer(t, versitygw(t))
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			p := record.TopicPartition{Topic: "t", ID: int32(i)}
			name := record.StagingName(p, 0, record.NewUUID()) + "/frames-0"
			text := strings.Repeat(string(rune('a'+i))+"23456789abcdef\n", 1_200_000+i) // 19 MB
			w, err := store.Stage(t.Context(), name)
			if err == nil {
				_, err = w.Write([]byte(text))
				err = errors.Join(err, w.Close())
			}
			if err != nil {
				t.Error(err)
				return
			}
			move := sinks.Move{From: name, To: fmt.Sprintf("frames/part-%d.parquet", i), Bytes: int64(len(text)),
				SHA256: sum(text), Fresh: true}
			if err := store.Publish(t.Context(), []sinks.Move{move}); err != nil {
				t.Error(err)
				return
			}
			if contentOf(t, store, move.To) != text {
				t.Errorf("file %d is not what was written", i)
			}
		})
	}
	all.Wait()
}
