package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"entropipe/sinks/s3/s3test"
)

// bucketVariables sets the variables of all servers, for the tests that follow, too: tests that
// run beside each other have the same ones.
var bucketVariables = sync.OnceValue(func() (err error) {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": s3test.AccessKey,
		"AWS_SECRET_ACCESS_KEY": s3test.SecretKey, "AWS_SESSION_TOKEN": s3test.Token, "AWS_PROFILE": "",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_EC2_METADATA_DISABLED": "true"} {
		err = errors.Join(err, os.Setenv(name, value))
	}
	return err
})

// inBucket starts a server and returns what programs need to reach it: the flags, and the
// address of an output.
func inBucket(t *testing.T) (s *s3test.Server, out string, flags []string) {
	t.Helper()
	if err := bucketVariables(); err != nil {
		t.Fatal(err)
	}
	s = s3test.New(t)
	return s, "s3://" + s3test.Bucket + "/lidar/out 1", []string{"--s3-endpoint", s.URL}
}

// Law: every command that takes OUT takes a bucket, and what they print of it has no
// credentials.
func TestCommandsOnABucket(t *testing.T) {
	if testing.Short() {
		t.Skip("one process at a time: nothing for the race detector")
	}
	t.Parallel()
	s, out, flags := inBucket(t)
	brokers, dir := startBroker(t), t.TempDir()
	must(t, dir, spread(brokers, "points", "a", "--frames", "60", "--rate", "max")...)
	all := ""
	do := func(args ...string) string {
		t.Helper()
		p := launch(t, dir, append(args, flags...)...)
		p.exits(0, patience)
		all += p.out() + p.log()
		return p.out()
	}
	run := []string{"run", "--brokers", brokers, "--out", out, "--until-end", "--roll-records", "10", "--log-level",
		"debug"}
	do(run...)
	do(run...) // there is nothing left, and nothing is doubled
	if text := do("verify", out); !strings.Contains(text, "ok") {
		t.Errorf("verify: %s", text)
	}
	if text := do("info", out); !strings.Contains(text, "frames") {
		t.Errorf("info: %s", text)
	}
	if text := do("info", out, "--sql"); !strings.Contains(text, "read_parquet('"+out+"/frames/**/*.parquet'") ||
		!strings.Contains(text, "httpfs") {
		t.Errorf("info --sql: %s", text)
	}
	do("compact", out, "--into", out+"-compacted")
	do("vacuum", out, "--covered-by", out+"-compacted", "--older-than", "1ms", "--dry-run")
	if text := do("info", out, "--files", "--with", out+"-compacted"); !strings.Contains(text, "CREATE SECRET") ||
		!strings.Contains(text, "'"+out+"-compacted/frames/dataset=") || strings.Contains(text, "'"+out+"/") {
		t.Errorf("info --files: %s", text)
	}
	do("export", out, "-o", "frame.svg")
	var top struct {
		Out string `json:"out"`
	}
	if text := do("top", out, "--json"); json.Unmarshal([]byte(text), &top) != nil || top.Out != out {
		t.Errorf("top: %s", text)
	}
	config := "brokers: [\"" + brokers + "\"]\nout: " + out + "\n"
	if err := os.WriteFile(filepath.Join(dir, "c.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if text := do("validate", "c.yaml", "--connect"); !strings.Contains(text, "conditional writes and copies work") {
		t.Errorf("validate: %s", text)
	}
	damage(t, s)
	p := launch(t, dir, append([]string{"verify", out, "--repair", "--yes", "--brokers", brokers}, flags...)...)
	p.exits(0, patience)
	all += p.out() + p.log()
	do(run...)
	if text := do("verify", out); !strings.Contains(text, "ok") {
		t.Errorf("verify after a repair: %s", text)
	}
	for _, secret := range []string{s3test.AccessKey, s3test.SecretKey, s3test.Token} {
		if strings.Contains(all, secret) {
			t.Errorf("%s is printed", secret)
		}
	}
}

// damage removes a file of the newest commit of a partition.
func damage(t *testing.T, s *s3test.Server) {
	t.Helper()
	newest := ""
	for _, key := range s.Keys(t, "lidar/out 1/frames/") {
		if strings.Contains(key, "/part-0-") {
			newest = max(newest, key)
		}
	}
	s.Remove(t, newest)
}

// An archive is computed into a bucket, and into another one from the first.
func TestBackfillIntoABucket(t *testing.T) {
	if testing.Short() {
		t.Skip("one process at a time: nothing for the race detector")
	}
	t.Parallel()
	_, out, flags := inBucket(t)
	dir := drives(t, 50, 6, 4)
	args := append([]string{"backfill", ".", "--ops", "hull2d", "--out", out}, flags...)
	must(t, dir, append(args, "--dry-run")...)
	must(t, dir, args...)
	must(t, dir, append([]string{"verify", out}, flags...)...)
	other := out + "-2"
	again := append([]string{"backfill", ".", "--ops", "hull2d", "--out", other, "--changed", "--reuse", out},
		flags...)
	must(t, dir, again...)
	must(t, dir, append([]string{"verify", other}, flags...)...)
}
