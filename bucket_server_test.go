//go:build s3

package main

import (
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A real server: versitygw, which keeps objects in a folder. With the tag s3 its program must
// be in PATH: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0.

// realServer starts versitygw on a folder and returns its URL and what restarts it.
func realServer(t *testing.T) (url string, restart func()) {
	t.Helper()
	program, err := exec.LookPath("versitygw")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "archive"), 0o777); err != nil {
		t.Fatal(err)
	}
	address := ownAddress(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "keyofthetest")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secretofthetest")
	t.Setenv("AWS_SESSION_TOKEN", "")
	var server *exec.Cmd
	start := func() {
		server = exec.Command(program, "--port", address, "--quiet", "posix", dir)
		server.Env = append(os.Environ(), "ROOT_ACCESS_KEY=keyofthetest", "ROOT_SECRET_KEY=secretofthetest")
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the server", func() bool {
			r, err := http.Get("http://" + address)
			if err == nil {
				r.Body.Close()
			}
			return err == nil
		})
	}
	stop := func() {
		server.Process.Kill()
		server.Wait()
	}
	start()
	t.Cleanup(func() { stop() })
	return "http://" + address, func() { stop(); start() }
}

// Law: workers that are killed at any moment, beside a server that is killed, too, leave each
// record of the topic in the tables exactly once.
func TestKilledWorkersOnARealServer(t *testing.T) {
	url, restart := realServer(t)
	brokers, dir := startBroker(t), t.TempDir()
	kills := 12
	if text := os.Getenv("ENTROPIPE_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	out := "s3://archive/lidar/out"
	args := []string{"run", "--brokers", brokers, "--topic", "points", "--out", out, "--s3-endpoint", url,
		"--roll-records", "5", "--roll-age", "100ms", "--ops", "hull2d", "--session-timeout", "2s"}
	producer := launch(t, dir, spread(brokers, "points", "a", "--rate", "100hz")...)
	waitFor(t, "records", func() bool { return sent(t, brokers, "points") > 20 })
	rng := rand.New(rand.NewPCG(1, 2))
	workers := [2]*process{launch(t, dir, args...), launch(t, dir, args...)}
	for n := range kills {
		time.Sleep(time.Duration(200+rng.IntN(1500)) * time.Millisecond)
		i := n % len(workers)
		workers[i].signal(syscall.SIGKILL)
		<-workers[i].done
		if n%4 == 3 {
			restart()
		}
		workers[i] = launch(t, dir, args...)
	}
	stopProducer(t, producer)
	for _, w := range workers {
		w.signal(os.Interrupt)
		<-w.done
	}
	must(t, dir, append(args, "--until-end")...)
	p := launch(t, dir, "verify", out, "--s3-endpoint", url)
	p.exits(0, patience)
	text := p.out()
	if !strings.Contains(text, "0 holes") {
		t.Errorf("verify: %s", text)
	}
	records := sent(t, brokers, "points")
	rows := int64(0)
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "frames "); ok {
			fields := strings.Fields(rest) // N files, N rows, N bytes
			rows, _ = strconv.ParseInt(strings.TrimSuffix(fields[2], ","), 10, 64)
		}
	}
	t.Logf("%d records, %d kills", records, kills)
	if rows != records {
		t.Errorf("%d rows of frames for %d records:\n%s", rows, records, text)
	}
}
