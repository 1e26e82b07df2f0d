//go:build kafka

package replay_test

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"entropipe/cmd"
	"entropipe/ingest"
	"entropipe/schemas"
)

// argsOfChild makes this test program the program itself.
const argsOfChild = "ENTROPIPE_TEST_REPLAY"

func TestMain(m *testing.M) {
	if args := os.Getenv(argsOfChild); args != "" {
		os.Exit(cmd.Main(strings.Split(args, "\n"), os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// child starts the program; it is killed with the test.
func child(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	c, said := exec.CommandContext(t.Context(), os.Args[0]), &bytes.Buffer{}
	c.Env = append(os.Environ(), argsOfChild+"="+strings.Join(args, "\n"))
	c.Stderr = said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, said
}

// must runs the program in this process, and returns what it prints.
func must(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if status := cmd.Main(args, &stdout, &stderr); status != 0 {
		t.Fatalf("%v: exit status %d: %s", args, status, &stderr)
	}
	return stdout.String()
}

// sendScans sends raw scans that no header describes.
func sendScans(t *testing.T, broker, topic string, n int) {
	t.Helper()
	if err := ingest.EnsureTopic(t.Context(), []string{broker}, ingest.Security{}, topic,
		ingest.TopicSpec{Partitions: 2}); err != nil {
		t.Fatal(err)
	}
	o, err := ingest.OpenOutbox(t.Context(), ingest.OutboxConfig{Brokers: []string{broker}, Topic: topic,
		Chunk: ingest.ChunkAuto})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		var value []byte
		for j := range 20 {
			radius, angle := float64(i+j+1), 2.4*float64(j)
			for _, v := range []float64{radius * math.Cos(angle), radius * math.Sin(angle), 1, .5} {
				value = binary.LittleEndian.AppendUint32(value, math.Float32bits(float32(v)))
			}
		}
		r := &schemas.Record{Key: fmt.Appendf(nil, "drive %d", i%3), Value: value}
		if err := o.Send(t.Context(), r, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
}

// eachOnce checks that committed records of a topic send n messages again, each once.
func eachOnce(t *testing.T, broker, topic string, n int) {
	t.Helper()
	l, err := ingest.OpenLookup(t.Context(), []string{broker}, ingest.Security{}, topic, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	times := map[string]int{}
	for _, p := range l.Partitions {
		if err := l.Each(t.Context(), p.ID, p.Start, p.End, func(m *schemas.Message) (bool, error) {
			c, chunk, err := schemas.ChunkOf(m)
			if id, _, ok := schemas.ReplayOf(m.Headers); ok && (!chunk || c.Index == 0) {
				times[id.String()]++
			}
			return true, err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for id, k := range times {
		if k != 1 {
			t.Errorf("%s was sent again %d times", id, k)
		}
	}
	if len(times) != n {
		t.Errorf("topic %s: %d messages were sent again, want %d", topic, len(times), n)
	}
}

// counts is a part of what replay --json and run --json say.
type counts struct {
	Sent   int64 `json:"sent"`
	Before int64 `json:"sent_before"`
	Gone   int64 `json:"gone"`
}

// Refused clouds, some in chunks, and refused raw scans are sent again through a real broker, by
// replays that are killed and that run twice: a run with mended settings has each once.
func TestReplayThroughARealBroker(t *testing.T) {
	t.Parallel()
	broker := os.Getenv("ENTROPIPE_KAFKA")
	if broker == "" {
		t.Skip("ENTROPIPE_KAFKA does not name a broker (HOST:PORT)")
	}
	const scans, clouds, small = 900, 12, 20
	name, out := rand.Text(), filepath.Join(t.TempDir(), "out")
	points, raw := "points-"+name, "scans-"+name
	produce := func(args ...string) {
		must(t, append([]string{"produce", "synthetic", "--brokers", broker, "--topic", points, "--rate", "max",
			"--log-level", "warn"}, args...)...)
	}
	produce("--sequence", "small", "--frames", fmt.Sprint(small), "--points", "300")
	produce("--sequence", "large", "--frames", "6", "--points", "4000")
	produce("--sequence", "parted", "--frames", "6", "--points", "4000", "--chunk", "20KB")
	sendScans(t, broker, raw, scans)
	run := func(more ...string) string {
		return must(t, append([]string{"run", "--brokers", broker, "--topic", points + "," + raw, "--until-end",
			"--out", out, "--ops", "hull2d", "--max-rejects", "none", "--log-level", "error"}, more...)...)
	}
	run("--max-frame-bytes", "40KB")
	args := func(to, reason string) []string {
		return []string{"replay", out, "--brokers", broker, "--to", to, "--reason", reason, "--json", "--log-level",
			"error"}
	}
	kills := 0
	for pause := 50 * time.Millisecond; ; pause += 60*time.Millisecond + pause/3 {
		c, said := child(t, args(raw, "not_arrow")...)
		time.Sleep(pause)
		c.Process.Kill()
		if err := c.Wait(); err == nil {
			break
		} else if c.ProcessState.Exited() {
			t.Fatalf("%v: %s", err, said)
		}
		kills++
	}
	t.Logf("%d replays were killed", kills)
	first, said1 := child(t, args(points, "too_large")...)
	second, said2 := child(t, args(points, "too_large")...)
	for c, said := range map[*exec.Cmd]*bytes.Buffer{first: said1, second: said2} {
		err := c.Wait()
		if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1 ||
			!strings.Contains(said.String(), "another process sends as entropipe-replay-"+points) ||
			strings.Count(said.String(), "\n") != 1) {
			t.Errorf("one of two replays: %v: %s", err, said)
		}
	}
	for to, want := range map[string]counts{raw: {Before: scans}, points: {Before: clouds}} {
		reason := map[string]string{raw: "not_arrow", points: "too_large"}[to]
		must(t, args(to, reason)...)
		var got counts
		if said := must(t, args(to, reason)...); json.Unmarshal([]byte(said), &got) != nil || got != want {
			t.Errorf("%s: the last replay says %s", to, said)
		}
		eachOnce(t, broker, to, int(want.Before))
	}
	run("--content-type", raw+"=kitti")
	var info struct {
		Tables []struct {
			Name string `json:"table"`
			Rows int64  `json:"rows"`
		} `json:"tables"`
	}
	said := must(t, "info", out, "--json")
	if err := json.Unmarshal([]byte(said), &info); err != nil {
		t.Fatal(err)
	}
	rows := map[string]int64{}
	for _, table := range info.Tables {
		rows[table.Name] = table.Rows
	}
	if rows["frames"] != small+clouds+scans || rows["rejects"] != clouds+scans {
		t.Errorf("rows %v in %.600s", rows, said)
	}
	must(t, "verify", out)
}
