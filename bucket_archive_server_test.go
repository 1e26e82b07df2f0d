//go:build s3 && linux

package main

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"entropipe/ingest/bucket"
	"entropipe/sinks/s3"
)

// uploaded copies an archive to a real server, and returns its address there.
func uploaded(t *testing.T, url, archive string) (address string, size int64) {
	t.Helper()
	store, err := s3.New(bucket.Config{Address: bucket.Address{Bucket: "archive", Prefix: "drives"}, Endpoint: url,
		PathStyle: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	err = filepath.WalkDir(archive, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, bad := filepath.Rel(archive, path)
		if err = errors.Join(err, bad); err != nil {
			return err
		}
		size += int64(len(data))
		return store.Create(t.Context(), filepath.ToSlash(name), data)
	})
	if err != nil {
		t.Fatal(err)
	}
	return "s3://archive/drives", size
}

// resident fails the test if an ended process has held more than so many bytes.
func resident(t *testing.T, p *process, most int64) {
	t.Helper()
	held := p.cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	if t.Logf("%s held %d MB", p.name, held/1e6); held > most {
		t.Errorf("%s held %d MB, want %d MB at most", p.name, held/1e6, most/1e6)
	}
}

// Law: backfill and produce, killed at any moment beside a server that is killed, too, make of an
// archive in a bucket what they make of the folder, in bounded memory. ENTROPIPE_LONG takes
// 300 MB.
func TestArchivesOnARealServer(t *testing.T) {
	url, restart := realServer(t)
	drive, kills, points := 12, 3, 6_000
	if os.Getenv("ENTROPIPE_LONG") != "" {
		drive, kills, points = 60, 12, 80_000
	}
	archive := drives(t, points, drive, drive, drive, drive)
	address, size := uploaded(t, url, archive)
	brokers, dir := startBroker(t), t.TempDir()
	flags := []string{"--s3-endpoint", url, "--s3-path-style"}
	t.Logf("%d MB", size/1e6)

	fill := func(path, out string) []string {
		return append([]string{"backfill", path, "--out", out, "--ops", "hull2d", "--roll-records", "2"}, flags...)
	}
	must(t, dir, fill(archive, "local")...)
	out := filepath.Join(dir, "bucket")
	for n := range kills {
		before, p := manifests(t, out), launch(t, dir, fill(address, "bucket")...)
		waitFor(t, "a commit or the end", func() bool {
			select {
			case <-p.done:
				return true
			default:
				return manifests(t, out) > before
			}
		})
		if n%3 == 1 {
			restart()
			waitFor(t, "a commit after the server's death, or the end", func() bool {
				select {
				case <-p.done:
					return true
				default:
					return manifests(t, out) > before+2
				}
			})
		}
		p.killed()
	}
	p := launch(t, dir, fill(address, "bucket")...)
	p.exits(0, patience)
	resident(t, p, 300e6)
	holds(t, out, int64(4*drive))
	sameRows(t, out, filepath.Join(dir, "local"))

	produce := func(path, topic, rate string, more ...string) []string {
		return slices.Concat([]string{"produce", "files", path, "--brokers", brokers, "--topic", topic, "--rate", rate},
			flags, more)
	}
	must(t, dir, produce(archive, "local", "max")...)
	want := keyed(t, brokers, "local")
	for n := 0; ; n++ {
		before := settled(t, brokers, "bucket")
		p = launch(t, dir, produce(address, "bucket", "200hz", "--resume=or-start")...)
		if n == kills {
			break
		}
		waitFor(t, "a message or the end", func() bool {
			select {
			case <-p.done:
				return true
			default:
				return sent(t, brokers, "bucket") > before
			}
		})
		if n%3 == 1 {
			restart()
		}
		p.killed()
	}
	p.exits(0, patience)
	resident(t, p, 300e6)
	local := func(text string) string { return strings.ReplaceAll(text, address, archive) }
	got := map[string][]string{}
	for key, messages := range keyed(t, brokers, "bucket") {
		for _, m := range messages {
			got[local(key)] = append(got[local(key)], local(m))
		}
	}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%d keys of the bucket, %d of the folder, or other messages", len(got), len(want))
	}
}
