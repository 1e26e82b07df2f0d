package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"entropipe/sinks/s3/s3test"
)

// Law: backfill and produce read an archive in a bucket as they read a folder: the tables have
// the same rows, and topics the same messages. A changed object stops its lane.
func TestArchivesInABucket(t *testing.T) {
	if testing.Short() {
		t.Skip("one process at a time: nothing for the race detector")
	}
	t.Parallel()
	s, _, flags := inBucket(t)
	brokers, dir := startBroker(t), t.TempDir()
	archive := drives(t, 20, 30)
	address := s.Upload(t, archive)
	var topics [2]string
	for i, path := range []string{archive, address} {
		out := filepath.Join(dir, []string{"local", "bucket"}[i])
		fill := append([]string{"backfill", path, "--out", out, "--plan", "all", "--ops", "hull2d"}, flags...)
		for range 2 { // the second one has nothing left to do
			launch(t, dir, fill...).exits(0, patience)
		}
		p := launch(t, dir, "info", out, "--json")
		p.exits(0, patience)
		if want := []string{`"mtime"`, `"etag"`}[i]; !strings.Contains(p.out(), want) {
			t.Errorf("info of %s does not say %s:\n%s", path, want, p.out())
		}
		topic := []string{"local", "bucket"}[i]
		p = launch(t, dir, append([]string{"produce", path, "--brokers", brokers, "--topic", topic, "--rate", "max"},
			flags...)...)
		p.exits(0, patience)
		_, topics[i], _ = strings.Cut(p.out(), ": ")
		topics[i], _, _ = strings.Cut(topics[i], " in ")
	}
	sameRows(t, filepath.Join(dir, "bucket"), filepath.Join(dir, "local"))
	if topics[0] != topics[1] || !strings.Contains(topics[0], "30 frames") {
		t.Errorf("of the folder %q, of the bucket %q", topics[0], topics[1])
	}
	s.Put(t, "copy"+archive+"/a/0000000007.bin", strings.Repeat("\x01", 160), nil)
	p := launch(t, dir, append([]string{"backfill", "plan", address, "--out", filepath.Join(dir, "bucket")},
		flags...)...)
	p.exits(78, patience)
	if text := p.log(); !strings.Contains(text, "1 files have changed") || strings.Contains(text, s3test.SecretKey) {
		t.Errorf("a changed object: %s", text)
	}
	for _, c := range []struct {
		path, want string
		status     int
	}{{address + "/none", "none", 1}, {"s3://archive@x/a", "credentials come from", 2}} {
		p = launch(t, dir, append([]string{"backfill", c.path, "--out", filepath.Join(dir, "no")}, flags...)...)
		p.exits(c.status, patience)
		if !strings.Contains(p.log(), c.want) {
			t.Errorf("%s: %s", c.path, p.log())
		}
		if _, err := os.Stat(filepath.Join(dir, "no")); err == nil {
			t.Errorf("%s: an output was made", c.path)
		}
	}
}
